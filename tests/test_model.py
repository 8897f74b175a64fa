"""The models equal lists of separate heads, and the identities of causal attention hold."""

import math

import pytest
import torch
from torch.nn import functional as F

from minigpt import model as module
from minigpt.config import ModelConfig
from minigpt.errors import ConfigError
from minigpt.model import (
    Block,
    FeedForward,
    Head,
    MultiHeadAttention,
    MultiHeadAttentionLanguageModel,
    SingleHeadAttentionLanguageModel,
    TransformerLanguageModel,
    build_model,
)
from tests.reference import LoopHead, LoopMultiHead, LoopSingleHead, LoopTransformer, scattered

# batch 2, head 3, head_size 5, token 7, layer 4, vocabulary 11, block_size 9: no two alike
V, BLOCK, C, H, L, B, T = 11, 9, 15, 3, 4, 2, 7

KINDS = {
    "single-head": (lambda: LoopSingleHead(V, BLOCK, C), lambda: SingleHeadAttentionLanguageModel(V, BLOCK, C)),
    "multi-head": (
        lambda: LoopMultiHead(V, BLOCK, C, H, 0.0),
        lambda: MultiHeadAttentionLanguageModel(V, BLOCK, C, H, 0.0),
    ),
    "transformer": (
        lambda: LoopTransformer(V, BLOCK, C, H, L, 0.0),
        lambda: TransformerLanguageModel(V, BLOCK, C, H, L, 0.0),
    ),
}
OPTIONS = [
    {},
    {"activation": "gelu", "bias": False, "head_bias": False},
    {"activation": "gelu_tanh", "qkv_bias": True, "tied": True, "layer_norm_epsilon": 0.1},
]


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def idx():
    return torch.randint(V, (B, T), generator=torch.Generator().manual_seed(5))


CONFIGS = [
    pytest.param(
        ModelConfig(kind=kind, vocab_size=V, block_size=BLOCK, n_embd=C, n_head=n_head, n_layer=n_layer, **options),
        id=f"{kind}-{number}",
    )
    for number, options in enumerate(OPTIONS)
    for kind, n_head, n_layer in (("single-head", 1, 1), ("multi-head", H, 1), ("transformer", H, L))
]


# --- parity with separate heads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_a_file_of_separate_heads_gives_equal_logits_and_weights(kind, idx, dtype, tolerance):
    loop, fast = (make().to(dtype).eval() for make in KINDS[kind])
    fast.load_state_dict(scattered(loop).state_dict())
    expected_logits, expected_weights = loop(idx)
    logits, loss, weights = fast(idx, return_weights=True)
    assert loss is None
    assert weights.shape == expected_weights.shape
    assert (weights - expected_weights).abs().max() <= tolerance
    assert (logits - expected_logits).abs().max() <= tolerance
    assert (fast(idx)[0] - expected_logits).abs().max() <= tolerance


def test_state_dict_has_exactly_the_names_of_separate_heads_and_loads_there(kind, idx):
    loop, fast = (make().eval() for make in KINDS[kind])
    state = scattered(fast).state_dict()
    assert list(state) == list(loop.state_dict())
    loop.load_state_dict(state)
    assert (loop(idx)[0] - fast(idx)[0]).abs().max() <= 1e-5


def test_the_same_seed_draws_the_same_initial_numbers(kind):
    states = []
    for make in KINDS[kind]:
        torch.manual_seed(1337)
        states.append(make().state_dict())
    for name, tensor in states[0].items():
        assert torch.equal(tensor, states[1][name]), name


def test_generate_draws_what_separate_heads_draw_inside_and_beyond_the_window(kind, idx):
    loop, fast = (make().double().eval() for make in KINDS[kind])
    fast.load_state_dict(scattered(loop).state_dict())
    results = []
    for model in (loop, fast):
        torch.manual_seed(3)
        results.append(model.generate(idx[:, :2], 2 * BLOCK))
    assert results[1].shape == (B, 2 + 2 * BLOCK)
    assert torch.equal(*results)


def test_a_head_alone_equals_a_head_of_the_loop():
    loop, head = LoopHead(C, 5, BLOCK, 0.0), Head(C, 5, BLOCK)
    head.load_state_dict(loop.state_dict())
    x = torch.randn(B, T, C)
    out, weights = head(x, return_weights=True)
    expected_out, expected_weights = loop(x)
    assert out.shape == (B, T, 5)
    assert (out - expected_out).abs().max() <= 1e-6
    assert (weights - expected_weights).abs().max() <= 1e-6
    assert torch.equal(head(x), out)


def under_our_names(gpt2):
    """Return the state_dict of a GPT-2 under the chapters' names; its matrices are transposed, its heads fused."""
    source = gpt2.state_dict()
    names = {
        "attn.c_proj": "sa.proj",
        "mlp.c_fc": "ffwd.net.0",
        "mlp.c_proj": "ffwd.net.2",
        "ln_1": "ln1",
        "ln_2": "ln2",
    }
    state = {
        "token_embedding_table.weight": source["wte.weight"],
        "position_embedding_table.weight": source["wpe.weight"],
        "lm_head.weight": source["wte.weight"],
        "ln_f.weight": source["ln_f.weight"],
        "ln_f.bias": source["ln_f.bias"],
    }
    for layer in range(L):
        for what in ("weight", "bias"):
            for theirs, ours in names.items():
                state[f"blocks.{layer}.{ours}.{what}"] = source[f"h.{layer}.{theirs}.{what}"].t()
            fused = source[f"h.{layer}.attn.c_attn.{what}"].t()
            for name, part in zip(("query", "key", "value"), fused.chunk(3), strict=True):
                for head, rows in enumerate(part.chunk(H)):
                    state[f"blocks.{layer}.sa.heads.{head}.{name}.{what}"] = rows
    return state


def test_gpt2_is_this_model_with_other_options(idx):
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = GPT2Config(vocab_size=V, n_positions=BLOCK, n_embd=C, n_head=H, n_layer=L, layer_norm_epsilon=1e-3)
    sizes._attn_implementation = "eager"
    theirs = scattered(GPT2LMHeadModel(sizes).double().eval())
    like_gpt2 = {"activation": "gelu_tanh", "qkv_bias": True, "head_bias": False, "tied": True}
    ours = TransformerLanguageModel(V, BLOCK, C, H, L, layer_norm_epsilon=1e-3, **like_gpt2).double().eval()
    ours.load_state_dict(under_our_names(theirs.transformer))
    expected = theirs(idx, output_attentions=True)
    logits, _, weights = ours(idx, return_weights=True)
    assert (logits - expected.logits).abs().max() <= 1e-12
    assert (weights - torch.stack(expected.attentions)).abs().max() <= 1e-12


# --- identities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGS)
def test_rows_sum_to_one_and_the_future_is_exactly_zero(config, idx):
    model = scattered(build_model(config).eval())
    _, _, weights = model(idx, return_weights=True)
    assert weights.shape == (config.n_layer, B, config.n_head, T, T)
    assert (weights.sum(-1) - 1).abs().max() <= 1e-6
    assert weights.triu(1).count_nonzero() == 0
    assert weights.tril().count_nonzero() == config.n_layer * B * config.n_head * T * (T + 1) // 2


@pytest.mark.parametrize("config", CONFIGS)
def test_the_future_cannot_change_the_past(config, idx):
    model = scattered(build_model(config).double().eval())
    changed = idx.clone()
    changed[:, 4] = (changed[:, 4] + 1) % V
    before, after = model(idx)[0], model(changed)[0]
    assert torch.equal(before[:, :4], after[:, :4])
    assert (before[:, 4:] != after[:, 4:]).any(-1).all()


@pytest.mark.parametrize("config", CONFIGS)
def test_asking_for_weights_changes_nothing_but_the_way(config, idx):
    model = scattered(build_model(config).double().eval())
    plain, _ = model(idx)
    explicit, _, _ = model(idx, return_weights=True)
    assert (plain - explicit).abs().max() <= 1e-12


@pytest.mark.parametrize("config", CONFIGS)
def test_state_dict_survives_with_every_option(config, idx):
    model, other = scattered(build_model(config).eval()), build_model(config).eval()
    other.load_state_dict(model.state_dict())
    assert torch.equal(model(idx)[0], other(idx)[0])


def test_each_option_does_what_it_says():
    def count(**options):
        return sum(p.numel() for p in TransformerLanguageModel(V, BLOCK, C, H, L, **options).parameters())

    assert count(qkv_bias=True) - count() == L * 3 * C
    assert count() - count(bias=False) == L * (C + 4 * C + C + 2 * C) + C
    assert count() - count(head_bias=False) == V
    assert count() - count(tied=True) == V * C
    x = torch.linspace(-3, 3, C).expand(1, 1, C)
    for activation, expected in (
        ("relu", F.relu(x)),
        ("gelu", F.gelu(x)),
        ("gelu_tanh", F.gelu(x, approximate="tanh")),
    ):
        assert torch.equal(FeedForward(C, activation=activation).net[1](x), expected)
    assert Block(C, H, BLOCK, layer_norm_epsilon=0.5).ln2.eps == 0.5


# --- the chapters' examples -------------------------------------------------------------------------------------------


def test_the_chapters_shapes():
    x = torch.randn(4, 8, 64)
    attention = MultiHeadAttention(64, 4, 8, 0.0)
    out, weights = attention(x, return_weights=True)
    assert out.shape == (4, 8, 64)
    assert weights.shape == (4, 4, 8, 8)
    assert attention(x).shape == Block(64, 4, 8, 0.0)(x).shape == FeedForward(64, 0.0)(x).shape == (4, 8, 64)
    idx = torch.randint(65, (4, 8))
    logits, loss = TransformerLanguageModel(65, 8, 64, 4, 2, 0.1)(idx, idx)
    assert logits.shape == (4, 8, 65)
    assert loss.shape == ()


@pytest.mark.parametrize(("n_embd", "n_head"), [(64, 4), (96, 6), (128, 8)])
def test_heads_of_sixteen(n_embd, n_head):
    assert MultiHeadAttention(n_embd, n_head, 8, 0.0).state_dict()["heads.3.query.weight"].shape == (16, n_embd)


@pytest.mark.parametrize("layer", [MultiHeadAttention, Block])
def test_heads_that_do_not_divide_are_refused_in_the_chapters_words(layer):
    with pytest.raises(ValueError, match=r"^n_embd must be divisible by n_head$"):
        layer(64, 3, 8, 0.0)


def test_a_model_whose_heads_do_not_divide_is_refused_with_both_numbers():
    with pytest.raises(ConfigError, match="n_embd must be divisible by n_head: 64 cannot be split over 3 heads"):
        TransformerLanguageModel(65, 8, 64, 3, 1, 0.0)


def test_the_loss_is_the_mean_negative_log_probability_of_the_targets(kind, idx):
    model = scattered(KINDS[kind][1]().eval())
    targets = idx.flip(1)
    logits, loss = model(idx, targets)
    chosen = logits.log_softmax(-1).gather(-1, targets[..., None])
    assert logits.shape == (B, T, V)
    assert torch.allclose(loss, -chosen.mean())
    assert torch.equal(model(idx, targets, return_weights=True)[1], loss)


@pytest.mark.parametrize(
    ("wrong", "error", "named"),
    [
        (torch.zeros(B, BLOCK + 1, dtype=torch.long), ValueError, r"block_size = 9 tokens, got \(2, 10\); crop"),
        (torch.zeros(B, 0, dtype=torch.long), ValueError, r"got \(2, 0\)"),
        (torch.tensor([[3, V]]), IndexError, "0 to vocab_size - 1 = 10, got 3 to 11"),
        (torch.tensor([[-1, 3]]), IndexError, "got -1 to 3"),
    ],
)
def test_ids_that_do_not_fit_are_refused_with_what_would(kind, wrong, error, named):
    with pytest.raises(error, match=named):
        KINDS[kind][1]()(wrong)


@pytest.mark.parametrize("layer", [Head(C, 5, BLOCK), MultiHeadAttention(C, H, BLOCK), Block(C, H, BLOCK)])
def test_a_layer_refuses_more_tokens_than_it_has_a_mask_for(layer):
    assert layer(torch.randn(B, BLOCK, C)).shape[1] == BLOCK
    with pytest.raises(ValueError, match="at most block_size = 9 tokens, got 10"):
        layer(torch.randn(B, BLOCK + 1, C))


# --- dropout and modes ------------------------------------------------------------------------------------------------


def test_weights_are_those_before_dropout(idx):
    model = scattered(TransformerLanguageModel(V, BLOCK, C, H, 1, dropout=0.5))
    quiet = model.eval()(idx, return_weights=True)[2]
    logits, _, loud = model.train()(idx, return_weights=True)
    assert torch.equal(quiet, loud)
    assert not torch.allclose(logits, model.eval()(idx)[0])


def test_attention_in_slices_is_attention(monkeypatch):
    """Nothing dropped, 150 tokens in slices of 64: what is left is plain causal attention, and its gradient."""
    monkeypatch.setattr(module, "drop", lambda weights, _dropout: weights)
    q, k, v = (torch.randn(B, H, 150, 5, dtype=torch.float64, requires_grad=True) for _ in range(3))
    sliced = module.attend_with_dropout(q, k, v, 0.3)
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert (sliced - whole).abs().max() <= 1e-12
    upstream = torch.randn_like(whole)
    for got, expected in zip(
        torch.autograd.grad(sliced, (q, k, v), upstream), torch.autograd.grad(whole, (q, k, v), upstream), strict=True
    ):
        assert (got - expected).abs().max() <= 1e-12


@pytest.mark.parametrize("dropout", [0.1, 0.75])
def test_dropout_drops_its_share_and_keeps_the_mean(dropout):
    count = 199_999  # no multiple of the four that share a random number
    torch.manual_seed(2)
    weights = torch.full((count,), 3.0)
    dropped = module.drop(weights, dropout)
    share = (dropped == 0).double().mean().item()
    assert abs(share - dropout) <= 5 * math.sqrt(dropout * (1 - dropout) / count)
    kept = dropped[dropped != 0]
    assert torch.allclose(kept, torch.tensor(3.0 / (1 - dropout)), rtol=1e-4)
    # the four that share a number are independent: pairs fall together as often as chance has it
    pairs = (dropped[: count // 4 * 4].view(-1, 4) == 0).double()
    assert (pairs.T.corrcoef() - torch.eye(4)).abs().max() <= 5 / math.sqrt(count / 4)
    torch.manual_seed(2)
    assert torch.equal(module.drop(weights, dropout), dropped)


def test_generate_is_without_dropout_and_leaves_the_mode_alone(idx):
    model = scattered(TransformerLanguageModel(V, BLOCK, C, H, 2, dropout=0.5))
    results = []
    for training in (True, False):
        torch.manual_seed(4)
        results.append(model.train(training).generate(idx, 5))
        assert model.training is training
        assert model.blocks[0].sa.dropout.training is training
    assert torch.equal(*results)
    assert not results[0].requires_grad


# --- loading ----------------------------------------------------------------------------------------------------------


def test_masks_may_be_missing():
    state = scattered(TransformerLanguageModel(V, BLOCK, C, H, 2)).state_dict()
    other = TransformerLanguageModel(V, BLOCK, C, H, 2)
    other.load_state_dict({name: tensor for name, tensor in state.items() if not name.endswith("tril")})
    assert torch.equal(
        other.state_dict()["blocks.1.sa.heads.2.value.weight"], state["blocks.1.sa.heads.2.value.weight"]
    )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda s: s.pop("blocks.1.sa.heads.2.key.weight"), r'Missing key\(s\).*"blocks.1.sa.heads.2.key.weight"'),
        (lambda s: s.update({"blocks.0.sa.heads.3.key.weight": torch.ones(5, C)}), r"Unexpected key\(s\).*heads.3.key"),
        (lambda s: s.update({"blocks.0.sa.heads.0.key.weight": torch.ones(6, C)}), r"heads.0.key.weight .*\(6, 15\)"),
        (lambda s: s.update({"blocks.0.sa.heads.1.tril": torch.ones(BLOCK, BLOCK)}), r"heads.1.tril is not the lower"),
        (lambda s: s.update({"blocks.0.sa.heads.1.tril": torch.ones(3, 3).tril()}), r"heads.1.tril .*\(3, 3\)"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_name(change, named):
    model = TransformerLanguageModel(V, BLOCK, C, H, 2)
    state = dict(model.state_dict())
    change(state)
    with pytest.raises(RuntimeError, match=named):
        model.load_state_dict(state)


def test_training_moves_every_parameter(kind, idx):
    model = KINDS[kind][1]()
    model(idx, idx)[1].backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []
