"""The instrumented pass and interventions: identities, and the same computed by hooks on another program's model."""

import pytest
import torch
from torch.nn import functional as F

from minigpt.analysis import sweeps
from minigpt.analysis.ablation import compare_continuations, what_if
from minigpt.analysis.forward import forward, head_means
from minigpt.analysis.interventions import Intervention
from minigpt.analysis.sweeps import edge_sweep, sweep
from minigpt.errors import ConfigError, PromptError
from minigpt.generation import generate
from minigpt.model import TransformerLanguageModel
from tests import foreign
from tests.causal import TEXT, TOKENIZER, VARIANTS, checkpoint
from tests.reference import LoopTransformer, scattered

IDX = torch.tensor(TOKENIZER.encode(TEXT))
EVERY_KIND = pytest.mark.parametrize("variant", VARIANTS)


def every_head(ckpt):
    return tuple((layer, head) for layer in range(ckpt.config.n_layer) for head in range(ckpt.config.n_head))


def apart(first, second):
    return float((first - second).detach().abs().max())


# --- the pass itself --------------------------------------------------------------------------------------------------


@EVERY_KIND
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_the_instrumented_pass_is_the_models_own(variant, dtype, bound):
    ckpt = checkpoint(variant, dtype)
    run = forward(ckpt.model, IDX)
    logits, _, weights = ckpt.model(IDX[None], return_weights=True)
    assert apart(run.logits[0], logits[0]) < bound
    assert apart(run.inside.pattern[0], weights[:, 0]) < bound


@EVERY_KIND
def test_the_parts_of_a_layer_sum_to_its_step_in_the_residual_stream(variant):
    ckpt = checkpoint(variant, torch.float64)
    inside = forward(ckpt.model, IDX).inside
    before = inside.residual[0, :-1] if ckpt.config.kind == "transformer" else 0
    assert apart(inside.residual[0, 1:], before + inside.attention[0] + inside.mlp[0]) < 1e-12
    assert apart(inside.heads[0], inside.pattern[0] @ inside.values[0]) < 1e-12


def test_without_keeping_the_layers_the_logits_are_the_same():
    ckpt = checkpoint("gpt2")
    change = Intervention(heads_off=((2, 1),), edges_off=((1, 0, 6, 3),))
    run = forward(ckpt.model, IDX, [change], keep=False)
    assert torch.equal(run.logits, forward(ckpt.model, IDX, [change]).logits)
    with pytest.raises(ValueError, match="keep=True"):
        _ = run.inside


@EVERY_KIND
def test_many_interventions_in_one_pass_are_each_what_they_are_alone(variant):
    ckpt = checkpoint(variant, torch.float64)
    last_layer, last_head = ckpt.config.n_layer - 1, ckpt.config.n_head - 1
    changes = [
        Intervention(heads_off=((last_layer, last_head),)),
        Intervention(),
        Intervention(attention_off=(0,), edges_off=((last_layer, 0, 5, 2),)),
        Intervention(head_scales=((0, last_head, 1.7),), edges_off=((0, 0, 7, 1), (0, 0, 7, 4)), renormalise=False),
        Intervention(heads_off=((0, 0),), replace="mean"),
    ]
    means = head_means(ckpt.model, TOKENIZER.encode("cabbage\nhead"))
    together = forward(ckpt.model, IDX, changes, means=means)
    for row, change in enumerate(changes, start=1):
        alone = forward(ckpt.model, IDX, [change], means=means)
        assert apart(together.logits[row], alone.logits[1]) < 1e-12
        for name, tensor in vars(together.inside).items():
            assert apart(tensor[row], getattr(alone.inside, name)[1]) < 1e-12, name
        assert apart(together.logits[row], together.logits[0]) > 1e-3 or change == Intervention()


def test_a_text_longer_than_the_window_is_refused():
    ckpt = checkpoint()
    with pytest.raises(ValueError, match="at most block_size = 16 tokens, got 17"):
        forward(ckpt.model, torch.zeros(17, dtype=torch.long))


# --- identities of interventions --------------------------------------------------------------------------------------


@EVERY_KIND
def test_changing_nothing_changes_nothing(variant):
    found = what_if(checkpoint(variant), TEXT, Intervention())
    assert torch.equal(found.before, found.after)
    assert (found.kl == 0).all()
    assert found.loss_before == found.loss_after


@EVERY_KIND
def test_a_factor_of_1_changes_nothing_and_a_factor_of_0_is_off(variant):
    ckpt = checkpoint(variant, torch.float64)
    heads = every_head(ckpt)
    ones, zeros, off = forward(
        ckpt.model,
        IDX,
        [
            Intervention(head_scales=tuple((*head, 1.0) for head in heads)),
            Intervention(head_scales=tuple((*head, 0.0) for head in heads)),
            Intervention(heads_off=heads),
        ],
    ).logits[1:]
    assert apart(ones, forward(ckpt.model, IDX).logits[0]) < 1e-12
    assert torch.equal(zeros, off)


def test_a_factor_scales_what_the_head_adds():
    ckpt = checkpoint("multi-head", torch.float64)
    plain, half, double = forward(
        ckpt.model, IDX, [Intervention(head_scales=((0, 3, factor),)) for factor in (0.5, 2.0)]
    ).logits
    assert apart(double - plain, 2 * (plain - half)) < 1e-12


def test_without_any_head_embeddings_and_networks_alone_remain():
    ckpt = checkpoint("no bias", torch.float64)
    off = forward(ckpt.model, IDX, [Intervention(heads_off=every_head(ckpt))]).logits[1]
    model = ckpt.model
    x = model.embed(IDX[None])
    for block in model.blocks:
        x = x + block.ffwd(block.ln2(x))
    assert apart(off, model.lm_head(model.ln_f(x))[0]) < 1e-12
    assert torch.equal(off, forward(model, IDX, [Intervention(attention_off=(0, 1, 2, 3))]).logits[1])


def test_heads_that_are_off_leave_the_projections_bias_and_a_layer_that_is_off_does_not():
    ckpt = checkpoint("multi-head", torch.float64)
    changes = [Intervention(heads_off=every_head(ckpt)), Intervention(attention_off=(0,))]
    heads, layer = forward(ckpt.model, IDX, changes).logits[1:]
    model = ckpt.model
    assert apart(heads, model.lm_head(model.sa_heads.proj.bias).expand_as(heads)) < 1e-12
    assert apart(layer, model.lm_head.bias.expand_as(layer)) < 1e-12


def test_a_network_that_is_off_adds_nothing():
    ckpt = checkpoint("gelu", torch.float64)
    off = forward(ckpt.model, IDX, [Intervention(mlps_off=(1,))]).logits[1]
    for parameter in ckpt.model.blocks[1].ffwd.net[2].parameters():
        parameter.data.zero_()
    assert apart(off, ckpt.model(IDX[None])[0][0]) < 1e-12


@EVERY_KIND
@pytest.mark.parametrize("renormalise", [True, False])
def test_with_every_key_but_one_hidden_a_head_hands_over_that_value_alone(variant, renormalise):
    ckpt = checkpoint(variant, torch.float64)
    layer, head, query, key = ckpt.config.n_layer - 1, ckpt.config.n_head - 1, 9, 4
    others = tuple((layer, head, query, other) for other in range(query + 1) if other != key)
    run = forward(ckpt.model, IDX, [Intervention(edges_off=others, renormalise=renormalise)]).inside
    weight = 1 if renormalise else run.pattern[0, layer, head, query, key]
    assert apart(run.heads[1, layer, head, query], weight * run.values[0, layer, head, key]) < 1e-12
    assert run.pattern[1, layer, head, query, key] == pytest.approx(float(weight))
    untouched = torch.arange(len(IDX)) != query
    assert torch.equal(run.heads[1, layer, head, untouched], run.heads[0, layer, head, untouched])


@pytest.mark.parametrize("renormalise", [True, False])
def test_a_hidden_key_leaves_a_row_that_is_renormalised_or_not(renormalise):
    ckpt = checkpoint("chapters", torch.float64)
    run = forward(ckpt.model, IDX, [Intervention(edges_off=((1, 2, 8, 3),), renormalise=renormalise)]).inside
    before, after = run.pattern[:, 1, 2, 8]
    kept = before.clone()
    kept[3] = 0
    assert apart(after, kept / kept.sum() if renormalise else kept) < 1e-12


def test_a_query_without_any_key_takes_nothing():
    ckpt = checkpoint()
    run = forward(ckpt.model, IDX, [Intervention(edges_off=((0, 1, 0, 0),))]).inside
    assert (run.heads[1, 0, 1, 0] == 0).all()
    assert (run.pattern[1, 0, 1, 0] == 0).all()


def test_edges_count_from_the_start_of_the_text():
    ckpt = checkpoint(block_size=8)
    assert len(TEXT) == 13
    found = what_if(ckpt, TEXT, Intervention(edges_off=((1, 0, 11, 7), (1, 0, 11, 2))))
    assert found.start == 5
    row = found.inside_after.pattern[0, 1, 0, 11 - 5]
    assert row[7 - 5] == 0
    assert (row[: 11 - 5 + 1] > 0).sum() == 6


def test_a_head_is_replaced_by_its_mean_over_a_reference_text():
    ckpt = checkpoint("gpt2", torch.float64)
    reference = "abcabc fed jig\nhead"  # longer than the window of 16
    ids = TOKENIZER.encode(reference)
    parts = [forward(ckpt.model, torch.tensor(ids[first : first + 16])).inside.heads[0] for first in (0, 16)]
    expected = torch.cat(parts, dim=2).mean(2)
    assert apart(head_means(ckpt.model, ids), expected) < 1e-12
    change = Intervention(heads_off=((2, 1), (3, 0)), replace="mean")
    found = what_if(ckpt, TEXT, change, reference=reference)
    assert apart(found.inside_after.heads[0, 3, 0], expected[3, 0].expand(len(TEXT), -1)) < 1e-12
    own = what_if(ckpt, TEXT, change).inside_after.heads[0, 2, 1, 0]
    assert apart(own, head_means(ckpt.model, TOKENIZER.encode(TEXT))[2, 1]) < 1e-12
    with pytest.raises(ValueError, match="expected the heads' means"):
        forward(ckpt.model, IDX, [change])


# --- parity with hooks ------------------------------------------------------------------------------------------------


def hooked(model, hooks):
    """Return the logits of a model of transformers while functions stand between its modules."""
    handles = [
        module.register_forward_pre_hook(function) if before else module.register_forward_hook(function)
        for module, before, function in hooks
    ]
    with torch.no_grad():
        logits = model(foreign.IDX[:1]).logits[0]
    for handle in handles:
        handle.remove()
    return logits


def test_switching_off_equals_hooks_on_a_gpt2(pair):
    theirs, ckpt = pair
    blocks, size = theirs.transformer.h, foreign.WIDTH // foreign.HEADS

    def without_head(head, factor):
        def change(_module, given):
            heads = given[0].clone()
            heads[..., head * size : (head + 1) * size] *= factor
            return (heads,)

        return change

    expected = [
        hooked(theirs, [(blocks[2].attn.c_proj, True, without_head(1, 0))]),
        hooked(theirs, [(blocks[0].attn.c_proj, True, without_head(2, 1.5))]),
        hooked(theirs, [(blocks[1].attn, False, lambda _module, _given, out: (out[0] * 0, *out[1:]))]),
        hooked(theirs, [(blocks[3].mlp, False, lambda _module, _given, out: out * 0)]),
    ]
    changes = [
        Intervention(heads_off=((2, 1),)),
        Intervention(head_scales=((0, 2, 1.5),)),
        Intervention(attention_off=(1,)),
        Intervention(mlps_off=(3,)),
    ]
    logits = forward(ckpt.model, foreign.IDX[0], changes).logits
    for row, each in enumerate(expected, start=1):
        assert apart(logits[row], each) < 1e-4
        assert apart(logits[row], logits[0]) > 1e-2


def test_a_sweep_is_one_hook_after_another(pair):
    theirs, ckpt = pair
    ids = foreign.IDX[0].tolist()
    text = ckpt.tokenizer.decode(ids)
    found = sweep(ckpt, text, position=3, token=5)
    size = foreign.WIDTH // foreign.HEADS
    clean = hooked(theirs, [])
    probability = clean.softmax(-1)[3, 5]
    loss = F.cross_entropy(clean[:-1], foreign.IDX[0, 1:])
    assert found.probability == pytest.approx(float(probability), abs=1e-5)
    assert found.loss == pytest.approx(float(loss), abs=1e-5)
    for layer, block in enumerate(theirs.transformer.h):
        for head in range(foreign.HEADS):

            def off(_module, given, head=head):
                heads = given[0].clone()
                heads[..., head * size : (head + 1) * size] = 0
                return (heads,)

            logits = hooked(theirs, [(block.attn.c_proj, True, off)])
            effect = logits.softmax(-1)[3, 5] - probability
            assert found.head_map("probability")[layer, head] == pytest.approx(float(effect), abs=1e-5)
            change = F.cross_entropy(logits[:-1], foreign.IDX[0, 1:]) - loss
            assert found.head_map("loss")[layer, head] == pytest.approx(float(change), abs=1e-5)
            moved = (logits[3, 5] - logits[3].mean()) - (clean[3, 5] - clean[3].mean())
            assert found.head_map("logit")[layer, head] == pytest.approx(float(moved), abs=1e-4)
        logits = hooked(theirs, [(block.mlp, False, lambda _module, _given, out: out * 0)])
        effect = logits.softmax(-1)[3, 5] - probability
        assert found.mlps.probability[layer] == pytest.approx(float(effect), abs=1e-5)


def test_the_mean_in_place_of_a_head_equals_a_hook_on_a_gpt2(pair):
    theirs, ckpt = pair
    size = foreign.WIDTH // foreign.HEADS
    reference = [3, 9, 3, 0, 7, 5, 5, 1, 10, 2]  # longer than the window of 7: two windows, one after another
    put_out = {}
    handles = [
        block.attn.c_proj.register_forward_pre_hook(
            lambda _module, given, layer=layer: put_out.setdefault(layer, []).append(given[0][0])
        )
        for layer, block in enumerate(theirs.transformer.h)
    ]
    with torch.no_grad():
        theirs(torch.tensor([reference[:7]]))
        theirs(torch.tensor([reference[7:]]))
    for handle in handles:
        handle.remove()
    text, about = (ckpt.tokenizer.decode(ids) for ids in (foreign.IDX[0].tolist(), reference))
    for layer, head in ((0, 2), (2, 1), (3, 0)):
        mine = slice(head * size, (head + 1) * size)
        mean = torch.cat(put_out[layer]).mean(0)[mine]

        def averaged(_module, given, mine=mine, mean=mean):
            heads = given[0].clone()
            heads[..., mine] = mean
            return (heads,)

        expected = hooked(theirs, [(theirs.transformer.h[layer].attn.c_proj, True, averaged)])
        change = Intervention(heads_off=((layer, head),), replace="mean")
        found = what_if(ckpt, text, change, reference=about)
        assert apart(found.after, expected.softmax(-1)) < 1e-6
        assert apart(found.after, found.before) > 1e-4


@pytest.mark.parametrize("renormalise", [True, False])
def test_a_hidden_key_equals_a_hook_on_a_gpt2s_weights(pair, renormalise):
    theirs, ckpt = pair
    layer, head, query, keys = 1, 2, 5, (3, 0)
    attention, size = theirs.transformer.h[layer].attn, foreign.WIDTH // foreign.HEADS
    mine = slice(head * size, (head + 1) * size)
    values = {}

    def keep(_module, _given, out):
        values["all"] = out[0].split(foreign.WIDTH, -1)[2]

    def hide(_module, given):
        heads = given[0].clone()
        heads[0, query, mine] = row @ values["all"][:, mine]
        return (heads,)

    row = foreign.computed(theirs, foreign.IDX[:1])[1][layer, 0, head, query].clone()
    row[list(keys)] = 0
    if renormalise:
        row /= row.sum()
    expected = hooked(theirs, [(attention.c_attn, False, keep), (attention.c_proj, True, hide)])
    change = Intervention(edges_off=tuple((layer, head, query, key) for key in keys), renormalise=renormalise)
    run = forward(ckpt.model, foreign.IDX[0], [change])
    assert apart(run.inside.pattern[1, layer, head, query], row) < 1e-6
    assert apart(run.logits[1], expected) < 1e-4
    assert apart(run.logits[1], run.logits[0]) > 1e-3
    assert apart(run.logits[1, :query], run.logits[0, :query]) < 1e-6


def test_a_hidden_key_equals_another_mask_in_the_chapters_loop():
    torch.manual_seed(8)
    loop = scattered(LoopTransformer(TOKENIZER.vocab_size, 16, 12, 3, 2, 0.0), 0.5).eval()
    ours = TransformerLanguageModel(TOKENIZER.vocab_size, 16, 12, 3, 2).eval()
    ours.load_state_dict(loop.state_dict())
    change = Intervention(edges_off=((1, 2, 10, 4), (1, 2, 10, 7)))
    run = forward(ours, IDX, [change])
    mask = loop.blocks[1].sa.heads[2].tril
    mask[10, [4, 7]] = 0
    logits, weights = loop(IDX[None])
    assert apart(run.logits[1], logits[0]) < 1e-5
    assert apart(run.inside.pattern[1], weights[:, 0]) < 1e-6


# --- what if ----------------------------------------------------------------------------------------------------------


def test_what_changed_is_measured_in_bits_nats_and_probabilities():
    ckpt = checkpoint("gelu", torch.float64)
    change = Intervention(heads_off=((1, 1),), mlps_off=(2,))
    found = what_if(ckpt, TEXT, change, most=3)
    before, after = forward(ckpt.model, IDX, [change]).logits
    p, q = before.softmax(-1), after.softmax(-1)
    assert apart(found.kl, (p * (p.log2() - q.log2())).sum(-1)) < 1e-12
    assert found.loss_after == pytest.approx(float(F.cross_entropy(after[:-1], IDX[1:])))
    assert found.changed_ids.shape == (13, 3)
    change_sizes = (found.changed_after - found.changed_before).abs()
    assert apart(change_sizes[:, 0], (q - p).abs().max(-1).values) < 1e-12
    assert (change_sizes.diff(dim=1) <= 0).all()
    table = found.to_frame()
    assert list(table.columns) == ["position", "token", "kl_bits", "following_before", "following_after"]
    assert table.following_before[4] == pytest.approx(float(p[4, IDX[5]]))


def test_the_same_seed_continues_alike_until_the_first_difference():
    ckpt = checkpoint("gpt2")
    sampling = {"max_new_tokens": 23, "temperature": 0.9, "top_k": 7, "repetition_penalty": 1.2, "seed": 3}
    plain = [step.token for step in generate(ckpt, "a bad", **sampling)]
    nothing = compare_continuations(ckpt, "a bad", Intervention(), **sampling)
    assert nothing.before == nothing.after == plain  # 28 tokens, past the window of 16
    assert nothing.first_difference is None
    found = compare_continuations(ckpt, "a bad", Intervention(attention_off=(0, 1, 2)), **sampling)
    assert found.before == plain
    first = found.first_difference
    assert found.before[:first] == found.after[:first]
    assert found.before[first] != found.after[first]
    table = found.to_frame()
    assert list(table.columns) == ["index", "before", "before_probability", "after", "after_probability"]
    assert list(table.after) == found.after
    assert table.before_probability[3] == found.before_probability[3]


def test_a_continuation_under_an_intervention_is_that_of_the_changed_model():
    ckpt = checkpoint("no bias")
    change = Intervention(mlps_off=(3,), heads_off=((1, 0), (2, 2)))
    found = compare_continuations(ckpt, "fed a", change, max_new_tokens=19, seed=6)
    with torch.no_grad():
        ckpt.model.blocks[3].ffwd.net[2].weight.zero_()
        ckpt.model.blocks[1].sa.proj.weight[:, :7] = 0
        ckpt.model.blocks[2].sa.proj.weight[:, 14:] = 0
    changed = list(generate(ckpt, "fed a", max_new_tokens=19, seed=6))
    assert found.after == [step.token for step in changed]
    assert found.after_probability == pytest.approx([step.model_probability for step in changed], abs=1e-6)
    again = compare_continuations(ckpt, "fed a", Intervention(), max_new_tokens=19, seed=6, temperature=0.5, top_k=4)
    assert again.before_probability == pytest.approx(again.after_probability, abs=1e-6)


# --- sweeps -----------------------------------------------------------------------------------------------------------


@EVERY_KIND
def test_a_sweep_is_every_ablation_by_itself(variant):
    ckpt = checkpoint(variant, torch.float64)
    found = sweep(ckpt, TEXT, position=6, replace="mean")
    assert found.token_id == TOKENIZER.encode(TEXT)[7]
    for layer, head in every_head(ckpt):
        alone = what_if(ckpt, TEXT, Intervention(heads_off=((layer, head),), replace="mean"))
        change = alone.after[6, found.token_id] - alone.before[6, found.token_id]
        assert found.head_map("probability")[layer, head] == pytest.approx(float(change), abs=1e-12)
        assert found.head_map("kl")[layer, head] == pytest.approx(float(alone.kl[6]), abs=1e-12)
        loss = alone.loss_after - alone.loss_before
        assert found.head_map("loss")[layer, head] == pytest.approx(loss, abs=1e-12)
    networks = ckpt.config.n_layer if ckpt.config.kind == "transformer" else 0
    assert found.mlps.loss.shape == (networks,)
    assert len(found.to_frame()) == len(every_head(ckpt)) + networks


def test_a_sweep_in_several_passes_is_the_same(monkeypatch):
    ckpt = checkpoint("gelu", torch.float64)
    whole = sweep(ckpt, TEXT)
    monkeypatch.setattr("minigpt.analysis.sweeps.MOST_NUMBERS", 1000)
    pieces = sweep(ckpt, TEXT)
    for name in ("probability", "logit", "kl", "loss"):
        assert apart(whole.head_map(name), pieces.head_map(name)) < 1e-12
        assert apart(whole.mlps.named(name), pieces.mlps.named(name)) < 1e-12


def test_after_the_last_token_the_likeliest_is_asked_about():
    ckpt = checkpoint()
    found = sweep(ckpt, TEXT)
    probability = forward(ckpt.model, IDX).logits[0, -1].softmax(-1)
    assert found.token_id == int(probability.argmax())
    assert found.position == 12
    assert found.token == TOKENIZER.piece(found.token_id)
    assert sweep(ckpt, TEXT, token="e").token_id == TOKENIZER.encode("e")[0]


@pytest.mark.parametrize(
    ("query", "position", "renormalise"),
    [(7, 10, True), (7, 10, False), (12, None, True), (0, 3, False), (9, 4, True)],
)
@EVERY_KIND
def test_an_edge_sweep_is_each_key_hidden_by_itself_the_long_way(variant, query, position, renormalise):
    ckpt = checkpoint(variant, torch.float64)
    layer, head = ckpt.config.n_layer // 2, ckpt.config.n_head - 1
    found = edge_sweep(ckpt, TEXT, layer, head, query=query, position=position, renormalise=renormalise)
    place = query if position is None else position
    assert (found.query, found.position) == (query, place)
    assert list(found.to_frame().token) == list(TEXT[: query + 1])
    if place < 12:
        assert found.token_id == TOKENIZER.encode(TEXT)[place + 1]
    for key in range(query + 1):
        change = Intervention(edges_off=((layer, head, query, key),), renormalise=renormalise)
        alone = what_if(ckpt, TEXT, change)
        moved = alone.after[place, found.token_id] - alone.before[place, found.token_id]
        assert found.keys.probability[key] == pytest.approx(float(moved), abs=1e-12)
        assert found.keys.kl[key] == pytest.approx(float(alone.kl[place]), abs=1e-12)
        assert found.keys.loss[key] == pytest.approx(alone.loss_after - alone.loss_before, abs=1e-12)
        assert found.weight[key] == pytest.approx(float(alone.inside_before.pattern[0, layer, head, query, key]))


def test_an_edge_sweep_in_many_passes_is_the_one_in_one_pass(monkeypatch):
    ckpt = checkpoint("gpt2", torch.float64)
    whole = edge_sweep(ckpt, TEXT, 1, 2, query=8)
    monkeypatch.setattr(sweeps, "MOST_NUMBERS", 1)
    split = edge_sweep(ckpt, TEXT, 1, 2, query=8)
    assert torch.allclose(split.keys.loss, whole.keys.loss, atol=1e-12)
    assert torch.allclose(split.keys.probability, whole.keys.probability, atol=1e-12)
    assert float(whole.keys.loss.abs().max()) > 1e-6


# --- what a person can get wrong --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "kind", "code"),
    [
        ({"heads_off": ((3, 0),)}, ConfigError, "no_such_head"),
        ({"head_scales": ((0, 4, 1.0),)}, ConfigError, "no_such_head"),
        ({"edges_off": ((0, -1, 2, 1),)}, ConfigError, "no_such_head"),
        ({"attention_off": (3,)}, ConfigError, "no_such_layer"),
        ({"mlps_off": (-1,)}, ConfigError, "no_such_layer"),
        ({"head_scales": ((0, 1, 2.5),)}, ConfigError, "number_out_of_range"),
        ({"edges_off": ((0, 1, 2, 3),)}, PromptError, "edge_out_of_range"),
        ({"edges_off": ((0, 1, 13, 3),)}, PromptError, "edge_out_of_range"),
    ],
)
def test_what_the_model_or_the_text_lacks_is_refused(change, kind, code):
    with pytest.raises(kind) as refused:
        what_if(checkpoint(), TEXT, Intervention(**change))
    assert refused.value.code == code


def test_a_model_without_networks_has_none_to_switch_off():
    with pytest.raises(ConfigError, match="A multi-head model has no feed-forward networks"):
        what_if(checkpoint("multi-head"), TEXT, Intervention(mlps_off=(0,)))


def test_a_position_or_token_that_is_not_there_is_refused():
    ckpt = checkpoint(block_size=8)
    with pytest.raises(PromptError, match="Choose a position from 5 to 12"):
        sweep(ckpt, TEXT, position=4)
    with pytest.raises(PromptError, match="'ab' is 2 tokens"):
        sweep(ckpt, TEXT, token="ab")
    with pytest.raises(ConfigError, match="token is 12; it must be 0 – 11"):
        sweep(ckpt, TEXT, token=12)
    with pytest.raises(PromptError, match="empty"):
        sweep(ckpt, "")
    with pytest.raises(PromptError, match="empty"):
        what_if(ckpt, TEXT, Intervention(heads_off=((0, 0),), replace="mean"), reference="")
