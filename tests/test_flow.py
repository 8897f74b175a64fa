"""The text on its way through a model: every step against hooks on the model's own modules, and what parts weigh."""

import functools
import json
import subprocess
import sys

import pytest
import torch
from torch.nn import functional as F

from minigpt.analysis.flow import debug_shapes, dropped_weights, flow, parameter_parts, strongest
from minigpt.config import ModelConfig
from minigpt.model import build_model
from tests.causal import TEXT, TOKENIZER, VARIANTS, checkpoint
from tests.documents import ROOT

B, T = 2, 7
BLOCKS = ("chapters", "gelu", "no bias", "gpt2")


@functools.cache
def model_of(variant):
    return checkpoint(variant, torch.float64).model


def ids():
    return torch.randint(TOKENIZER.vocab_size, (B, T), generator=torch.Generator().manual_seed(3))


def hooked(model, idx):
    """Run the model and return what went into and came out of each of its modules."""
    seen = {}
    hooks = [
        module.register_forward_hook(
            lambda _, given, returned, name=name: seen.__setitem__(name, (given[0], returned)), always_call=False
        )
        for name, module in model.named_modules()
        if name
    ]
    with torch.no_grad():
        logits, _, weights = model(idx, return_weights=True)
    for hook in hooks:
        hook.remove()
    return seen, logits, weights


def same(stage, expected):
    torch.testing.assert_close(stage.values, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("variant", BLOCKS)
def test_every_step_through_a_block_is_the_models_own(variant):
    model, idx = model_of(variant), ids()
    layer, head = model.config.n_layer - 2, 1
    found = flow(model, idx, layer, head)
    seen, logits, weights = hooked(model, idx)
    block = f"blocks.{layer}"
    same(found["token_embedding"], seen["token_embedding_table"][1])
    same(found["embedding"], model.embed(idx).detach())
    same(found["norm1"], seen[f"{block}.ln1"][1])
    keys, queries, values = seen[f"{block}.sa.heads"][1]
    same(found["query"], queries[:, head])
    same(found["key"], keys[:, head])
    same(found["value"], values[:, head])
    same(found["pattern"], weights[layer, :, head])
    same(found["scores"], queries[:, head] @ keys[:, head].mT / keys.shape[-1] ** 0.5)
    same(found["head_output"], weights[layer, :, head] @ values[:, head])
    same(found["concat"], seen[f"{block}.sa.proj"][0])
    same(found["projection"], seen[f"{block}.sa"][1][0])
    same(found["attention_sum"], seen[f"{block}.ln2"][0])
    same(found["norm2"], seen[f"{block}.ln2"][1])
    same(found["hidden"], seen[f"{block}.ffwd.net.0"][1])
    same(found["activation"], seen[f"{block}.ffwd.net.1"][1])
    same(found["feed_forward"], seen[f"{block}.ffwd"][1])
    same(found["layer_output"], seen[block][1][0])
    same(found["norm_f"], seen["ln_f"][1])
    same(found["logits"], logits)
    for point in range(model.config.n_layer):
        torch.testing.assert_close(found.stream[point], seen[f"blocks.{point}"][0])
        torch.testing.assert_close(found.stream[point + 1], seen[f"blocks.{point}"][1][0])


def test_attention_alone_has_no_steps_that_it_lacks():
    model, idx = model_of("multi-head"), ids()
    found = flow(model, idx, 0, 3)
    seen, logits, weights = hooked(model, idx)
    same(found["query"], seen["sa_heads.heads"][1][1][:, 3])
    same(found["pattern"], weights[0, :, 3])
    same(found["concat"], seen["sa_heads.proj"][0])
    same(found["projection"], seen["sa_heads"][1][0])
    same(found["logits"], logits)
    torch.testing.assert_close(found.stream[1], seen["lm_head"][0])
    names = [stage.name for stage in found.stages if stage.layer == 0]
    assert names == ["query", "key", "value", "scores", "pattern", "head_output", "concat", "projection"]


def test_a_single_head_hands_its_output_on():
    model, idx = model_of("single-head"), ids()
    found = flow(model, idx)
    seen, logits, weights = hooked(model, idx)
    for name in ("query", "key", "value"):
        same(found[name], seen[f"sa_head.{name}"][1])
    same(found["pattern"], weights[0, :, 0])
    same(found["head_output"], seen["sa_head"][1][0])
    same(found["logits"], logits)
    assert found.stages[-2].name == "head_output"


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_shapes_are_printed_as_the_chapters_write_them(variant):
    model = model_of(variant)
    config = model.config
    lines = debug_shapes(model, ids()).splitlines()
    C, D, V = config.n_embd, config.head_size, config.vocab_size
    said = {line.split("  ")[0]: line.rsplit("  ", 1)[1] for line in lines}
    assert said["idx"] == f"({B}, {T})"
    assert said["x = tok_emb + pos_emb"] == f"({B}, {T}, {C})"
    own = "" if variant == "single-head" else "heads[0]."
    source = "h" if config.kind == "transformer" else "x"
    assert said[f"q = {own}query({source})"] == f"({B}, {T}, {D})"
    assert said["weights = softmax(scores.masked_fill(tril == 0, -inf))"] == f"({B}, {T}, {T})"
    assert said["logits = lm_head(x)"] == f"({B}, {T}, {V})"
    assert ("ffwd.net[0](h)" in said) == (config.kind == "transformer")
    if config.kind == "transformer":
        assert said["ffwd.net[0](h)"] == f"({B}, {T}, {4 * C})"


def test_what_the_model_refuses_is_refused():
    model = model_of("chapters")
    with pytest.raises(ValueError, match="1 to block_size = 16 tokens"):
        flow(model, torch.zeros(1, 17, dtype=torch.long))
    with pytest.raises(IndexError, match="0 to vocab_size - 1 = 11"):
        flow(model, torch.tensor([[1, 12]]))
    with pytest.raises(ValueError, match="layer must be from 0 to 2, got 3"):
        flow(model, ids(), layer=3)
    with pytest.raises(ValueError, match="head must be from 0 to 3, got -1"):
        flow(model, ids(), head=-1)
    with pytest.raises(KeyError, match="hidden"):
        flow(model_of("multi-head"), ids())["hidden"]


# --- dropout ----------------------------------------------------------------------------------------------------------


def test_dropout_leaves_a_weight_or_nothing_and_its_mean():
    pattern = flow(model_of("chapters"), torch.tensor([TOKENIZER.encode(TEXT)]), 1, 2)["pattern"].values[0].float()
    draws = torch.stack([dropped_weights(pattern, 0.3, seed) for seed in range(900)])
    kept = draws != 0
    torch.testing.assert_close(draws, torch.where(kept, pattern / 0.7, 0.0), rtol=1e-4, atol=0)
    past = pattern > 0
    assert float(kept[:, past].double().mean()) == pytest.approx(0.7, abs=0.01)
    torch.testing.assert_close(draws.mean(0), pattern, rtol=0, atol=0.09)
    assert torch.equal(dropped_weights(pattern, 0.3, 5), draws[5])
    assert torch.equal(dropped_weights(pattern, 0.0, 5), pattern)


# --- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n_layer", [1, 2, 4, 6])
def test_the_parts_have_the_parameters_of_a_model_that_is_built(variant, n_layer):
    settings = {**VARIANTS[variant]}
    if settings.get("kind", "transformer") == "transformer":
        settings["n_layer"] = n_layer
    config = ModelConfig(vocab_size=11, block_size=9, **settings)
    parts = parameter_parts(config)
    model = build_model(config)
    counted = dict.fromkeys(parts, 0)
    for name, parameter in model.named_parameters():
        counted[part_of(name)] += parameter.numel()
    assert parts == counted


def part_of(name):
    if "embedding_table" in name:
        return "position_embedding" if "position" in name else "token_embedding"
    if ".ffwd." in name:
        return "feed_forward"
    if ".proj." in name:
        return "projection"
    if "sa" in name.split(".")[0] or ".sa." in name:
        return "query_key_value"
    return "lm_head" if name.startswith("lm_head") else "norms"


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_a_cell_of_a_picture_is_the_number_of_its_block_furthest_from_zero():
    numbers = torch.randn(11, 29, generator=torch.Generator().manual_seed(8))
    found = strongest(numbers, 5)
    assert found.shape == (4, 5)
    for row in range(4):
        for column in range(5):
            block = numbers[3 * row : 3 * row + 3, 6 * column : 6 * column + 6].flatten()
            assert found[row, column] == block[block.abs().argmax()]
    assert torch.equal(strongest(numbers, 29), numbers)
    assert torch.equal(strongest(F.pad(numbers, (0, 0, 0, 1)), 12)[:11], strongest(numbers, 12))


# --- common mistakes --------------------------------------------------------------------------------------------------

SAID = {
    "heads": ("ConfigError", "n_embd must be divisible by n_head: 64 cannot be split over 3 heads"),
    "window": ("ValueError", "1 to block_size = 16 tokens, got (1, 17)"),
    "characters": ("PromptError", "no 'H' ×1, '?' ×1"),
    "ids": ("IndexError", "0 to vocab_size - 1 = 64, got 1 to 65"),
    "batch": ("ValueError", "idx must be (batch, time)"),
    "targets": ("ValueError", "targets must have the shape of idx, (1, 8), got (1, 9)"),
    "mask": ("RuntimeError", "blocks.0.sa.heads.0.tril is not the lower triangle of ones"),
    "eval": (None, "0."),
    "state_dict": ("RuntimeError", "size mismatch for position_embedding_table.weight"),
    "short_text": ("CorpusError", "has 5 tokens, but at least 17 are needed"),
    "dropout": ("ConfigError", "dropout is 20; it must be at least 0 and below 1"),
}


def test_every_common_mistake_says_what_to_change():
    # In a process of its own, where no types are checked: so it is on the page.
    code = "import json; from minigpt.ui.mistakes import all_made; print(json.dumps(all_made()))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    made = json.loads(ran.stdout)
    assert list(made) == list(SAID)
    for name, (error, sentence) in SAID.items():
        assert made[name]["error"] == error, name
        assert sentence in made[name]["said"]["en"], name
        assert made[name]["code"], name
    assert float(made["eval"]["said"]["en"]) > 0.001
    assert made["dropout"]["said"]["ko"].startswith("dropout이 20입니다.")
    assert made["window"]["code"].splitlines()[-1] == "model(text)"
