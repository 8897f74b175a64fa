"""A training configuration means what it says: schedules, optimizers, first weights, repeated text, presets."""

import json
import math
from dataclasses import replace

import pytest
import torch

from minigpt.config import ModelConfig, TrainingConfig
from minigpt.errors import ConfigError
from minigpt.optim import Muon, orthogonalise
from minigpt.presets import PRESETS
from minigpt.recipe import learning_rate_scale, make_optimizers, new_model, product_type, repeat_some

MODEL = ModelConfig(vocab_size=14, block_size=9, n_embd=12, n_head=3, n_layer=2)
PLAIN = TrainingConfig(seed=5)
FAST = replace(PLAIN, optimizer="muon", average_decay=0.9, initial_weights="quiet", attention_dropout=0.0)


def weights(network):
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


# --- schedules --------------------------------------------------------------------------------------------------------


def test_cosine_warms_up_and_ends_at_its_final_rate():
    config = TrainingConfig(steps=1000, schedule="cosine", warmup_steps=100, final_rate=0.1)
    scales = [learning_rate_scale(config, step) for step in range(1000)]
    assert scales[:3] == pytest.approx([0.01, 0.02, 0.03])
    assert max(scales) == pytest.approx(1)
    assert scales.index(max(scales)) in (99, 100)
    assert scales[550] == pytest.approx(0.55)
    assert scales[-1] == pytest.approx(0.1, abs=1e-4)
    assert scales[100:] == sorted(scales[100:], reverse=True)


def test_trapezoid_stays_then_falls_straight_to_its_final_rate():
    config = TrainingConfig(steps=100, schedule="trapezoid", warmup_steps=10, decay_share=0.4, final_rate=0.0)
    scales = [learning_rate_scale(config, step) for step in range(100)]
    assert scales[10:61] == [1.0] * 51
    assert scales[80] == pytest.approx(0.5)
    assert scales[99] == pytest.approx(1 / 40)


def test_constant_never_changes():
    config = TrainingConfig(steps=7, schedule="constant", warmup_steps=0)
    assert {learning_rate_scale(config, step) for step in range(7)} == {1.0}


# --- optimizers and initial weights -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["transformer", "multi-head", "single-head"])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("tied", [False, True])
def test_every_parameter_is_optimized_exactly_once(kind, optimizer, tied):
    sizes = {"transformer": {"n_head": 3, "n_layer": 2}, "multi-head": {"n_head": 3}, "single-head": {}}[kind]
    model = new_model(ModelConfig(kind=kind, vocab_size=11, block_size=7, n_embd=12, tied=tied, **sizes), PLAIN)
    optimizers = make_optimizers(model, replace(PLAIN, optimizer=optimizer))
    held = [id(p) for each in optimizers for group in each.param_groups for p in group["params"]]
    assert sorted(held) == sorted(id(p) for p in model.parameters())


def test_muon_gets_the_matrices_inside_the_blocks_and_each_head_by_itself():
    model = new_model(MODEL, FAST)
    muon = make_optimizers(model, FAST)[0]
    assert isinstance(muon, Muon)
    shapes = sorted((group["rows"], *group["params"][0].shape, len(group["params"])) for group in muon.param_groups)
    assert shapes == [(4, 36, 12, 2), (12, 12, 12, 2), (12, 12, 48, 2), (48, 48, 12, 2)]


@pytest.mark.parametrize("shape", [(3, 5, 8), (2, 8, 5), (1, 6, 6)])
def test_orthogonalising_keeps_directions_and_evens_out_their_sizes(shape):
    torch.manual_seed(1)
    u, _, v = torch.linalg.svd(torch.randn(shape, dtype=torch.float64), full_matrices=False)
    sizes = torch.linspace(1.0, 0.1, min(shape[1:]), dtype=torch.float64)
    made = orthogonalise(u * sizes @ v, 6)
    assert made.shape == shape
    rounded = orthogonalise(u * sizes @ v, 6, torch.bfloat16)
    torch.testing.assert_close(rounded, made, atol=0.05, rtol=0)
    new_sizes = (u.mT @ made @ v.mT).diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(u * new_sizes[:, None] @ v, made, atol=1e-9, rtol=0)
    assert bool(((new_sizes > 0.6) & (new_sizes < 1.3)).all())


def test_muon_moves_a_fused_matrix_as_it_would_move_its_parts():
    torch.manual_seed(3)
    start, gradients = torch.randn(6, 5), torch.randn(4, 6, 5)
    whole = torch.nn.Parameter(start.clone())
    parts = [torch.nn.Parameter(part.clone()) for part in start.split(2)]
    fused = Muon([{"params": [whole], "rows": 2}], lr=0.1, weight_decay=0.3)
    apart = Muon([{"params": parts}], lr=0.1, weight_decay=0.3)
    for gradient in gradients:
        whole.grad = gradient
        for part, piece in zip(parts, gradient.split(2), strict=True):
            part.grad = piece
        fused.step()
        apart.step()
    torch.testing.assert_close(whole.detach(), torch.cat(parts).detach())


def test_muon_agrees_with_pytorchs_own_but_for_its_bfloat16():
    torch.manual_seed(4)
    start, gradients = torch.randn(8, 6), torch.randn(5, 8, 6)
    ours, theirs = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.clone())
    settings = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.2}
    optimizers = [Muon([{"params": [ours]}], steps=5, **settings), torch.optim.Muon([theirs], ns_steps=5, **settings)]
    for gradient in gradients:
        ours.grad = theirs.grad = gradient
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(ours.detach(), theirs.detach(), atol=0.02, rtol=0)


@pytest.mark.parametrize(("units", "auto"), [(True, torch.bfloat16), (False, None)])
def test_products_are_bfloat16_where_that_is_asked_for_or_pays(monkeypatch, units, auto):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": units})
    precisions = ("float32", "bfloat16", "auto")
    assert [product_type(replace(PLAIN, precision=each)) for each in precisions] == [None, torch.bfloat16, auto]


def test_a_step_in_bfloat16_goes_where_one_in_float32_goes():
    torch.manual_seed(2)
    model = new_model(MODEL, PLAIN)
    idx, targets = torch.randint(14, (2, 5, 9))
    exact, rounded = ({}, {})
    for gradients, is_rounded in ((exact, False), (rounded, True)):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=is_rounded):
            loss = model(idx, targets)[1]
        loss.backward()
        gradients.update((name, parameter.grad.clone()) for name, parameter in model.named_parameters())
    assert not all(torch.equal(exact[name], rounded[name]) for name in exact)
    for name, gradient in exact.items():
        cosine = torch.cosine_similarity(rounded[name].flatten(), gradient.flatten(), dim=0)
        assert cosine > 0.99, name


def test_muon_refuses_what_is_no_batch_of_equal_matrices():
    with pytest.raises(ValueError, match="one shape"):
        Muon([{"params": [torch.nn.Parameter(torch.zeros(3))]}])
    with pytest.raises(ValueError, match="one shape"):
        Muon([{"params": [torch.nn.Parameter(torch.zeros(3, 2)), torch.nn.Parameter(torch.zeros(2, 3))]}])
    with pytest.raises(ValueError, match="cannot be split"):
        Muon([{"params": [torch.nn.Parameter(torch.zeros(3, 2))], "rows": 2}])


def test_quiet_weights_guess_evenly_and_differ_by_seed():
    model = new_model(MODEL, FAST)
    idx = torch.randint(MODEL.vocab_size, (2, 9))
    torch.testing.assert_close(model(idx)[0], torch.zeros(2, 9, MODEL.vocab_size))
    assert float(model.token_embedding_table.weight.detach().std()) == pytest.approx(0.3, rel=0.2)
    assert same(weights(model), weights(new_model(MODEL, FAST)))
    assert not same(weights(model), weights(new_model(MODEL, replace(FAST, seed=6))))


# --- settings and presets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 0),
        ("batch_size", True),
        ("learning_rate", 0.0),
        ("learning_rate", math.nan),
        ("betas", (0.9, 1.0)),
        ("weight_decay", -0.1),
        ("matrix_momentum", 1.0),
        ("warmup_steps", -1),
        ("decay_share", 0.0),
        ("final_rate", 1.5),
        ("gradient_clip", 0.0),
        ("average_decay", 1.0),
        ("attention_dropout", -0.1),
        ("schedule", "linear"),
        ("optimizer", "sgd"),
        ("stored_as", "int8"),
        ("precision", "float64"),
    ],
)
def test_a_setting_out_of_its_range_is_named(name, value):
    with pytest.raises(ConfigError, match=f"^{name} is"):
        TrainingConfig.from_dict({name: value})


def test_settings_survive_json():
    assert TrainingConfig.from_dict(json.loads(json.dumps(FAST.to_dict()))) == FAST
    with pytest.raises(ConfigError, match="no setting called speed"):
        TrainingConfig.from_dict({"speed": 3})


CHAPTERS = {
    "chapter": ("transformer", 64, 64, 4, 4, 0.2),
    "transformer-small": ("transformer", 32, 32, 4, 2, 0.1),
    "multi-head": ("multi-head", 64, 64, 4, 1, 0.2),
    "single-head": ("single-head", 64, 64, 1, 1, 0.0),
}


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_chapters_presets_have_the_chapters_settings(name):
    preset = PRESETS[name]
    model, training = preset.model_config(65), preset.training
    assert (model.kind, training.batch_size, model.n_embd, model.n_head, model.n_layer, model.dropout) == CHAPTERS[name]
    assert (model.block_size, model.activation, model.tied, model.qkv_bias) == (16, "relu", False, False)
    assert (training.steps, training.evaluate_every, training.evaluate_batches, training.seed) == (3000, 300, 200, 1337)
    assert (training.optimizer, training.learning_rate, training.schedule) == ("adamw", 1e-3, "constant")
    assert (training.gradient_clip, training.average_decay, training.initial_weights) == (None, None, "torch")
    ours = make_optimizers(new_model(model, training), training)[0].defaults
    theirs = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=1e-3).defaults
    assert {**ours, "fused": None} == theirs
    assert [learning_rate_scale(training, step) for step in (0, 2999)] == [1.0, 1.0]


# --- text that repeats itself -----------------------------------------------------------------------------------------


def period(window):
    return next(length for length in range(1, len(window) + 1) if torch.equal(window[length:], window[:-length]))


def test_some_windows_repeat_their_beginning_and_the_others_are_left_alone():
    whole = torch.randperm(12 * 41).view(12, 41)
    generator = torch.Generator().manual_seed(2)
    lengths = set()
    for _ in range(20):
        idx, targets = repeat_some(whole[:, :-1], whole[:, 1:], 3, generator)
        assert torch.equal(idx[:, 1:], targets[:, :-1])
        again = torch.cat((idx, targets[:, -1:]), dim=1)
        changed = [row for row in range(12) if not torch.equal(again[row], whole[row])]
        assert changed == [0, 4, 8]
        for row in changed:
            length = period(again[row])
            assert torch.equal(again[row, :length], whole[row, :length])
            lengths.add(length)
    assert min(lengths) == 5
    assert max(lengths) == 20
