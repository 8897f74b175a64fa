"""What a run leaves to look at: snapshots at the right steps, the history, and how the heads came about."""

import json
from dataclasses import replace

import pytest
import torch

from minigpt import load_checkpoint
from minigpt.analysis.development import Development, head_development
from minigpt.analysis.head_finder import probe_heads
from minigpt.config import ModelConfig, TrainingConfig
from minigpt.errors import CheckpointError, ConfigError
from minigpt.recipe import new_model
from minigpt.snapshots import list_snapshots, load_snapshots, read_history, snapshot_steps
from minigpt.tokenizer import CharTokenizer
from minigpt.training import train

TEXT = "the cat sat on the mat; the rat ate the hat.\n" * 30
TOKENIZER = CharTokenizer(TEXT)
MODEL = ModelConfig(vocab_size=TOKENIZER.vocab_size, block_size=16, n_embd=12, n_head=3, n_layer=2, dropout=0.2)
SETTINGS = TrainingConfig(
    steps=33, batch_size=4, average_decay=0.9, evaluate_every=20, evaluate_batches=2, save_every=7, snapshots=2, seed=5
)


def run(out, *, stop_at=None, resume=False, **changes):
    config = replace(SETTINGS, **changes)
    model = new_model(MODEL, config)
    records = train(model, TOKENIZER, TEXT, config, out=out, resume=resume)
    for record in records:
        if record.step == stop_at:
            records.close()
            break
    return model


def kept(out):
    return {step: (path / "model.safetensors").read_bytes() for step, path in list_snapshots(out).items()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    run(out)
    return out


@pytest.mark.parametrize(
    ("steps", "per_decade", "taken"),
    [
        (2000, 2, [0, 10, 30, 100, 300, 1000, 2000]),
        (1000, 3, [0, 10, 20, 50, 100, 200, 500, 1000]),
        (10, 2, [0, 10]),
        (4, 5, [0, 4]),
        (2000, 0, []),
    ],
)
def test_snapshots_are_spaced_on_a_logarithmic_scale_and_hold_both_ends(steps, per_decade, taken):
    assert snapshot_steps(steps, per_decade) == taken


def test_a_run_keeps_the_model_as_it_was_at_each_of_these_steps(finished, tmp_path):
    assert list(list_snapshots(finished)) == [0, 10, 30, 33]
    last, whole = load_checkpoint(list_snapshots(finished)[33]), load_checkpoint(finished)
    assert last.training == {"steps": 33}
    for name, value in whole.model.state_dict().items():
        assert torch.equal(last.model.state_dict()[name], value.half().float())
    early = run(tmp_path, steps=10, schedule="constant", snapshots=0)
    assert not list_snapshots(tmp_path)
    assert not torch.equal(early.lm_head.weight.half().float(), last.model.lm_head.weight)


def test_the_losses_are_known_at_every_snapshot(finished):
    assert [record["step"] for record in read_history(finished)] == [0, 10, 20, 30, 33]


def test_a_run_that_was_cut_and_resumed_keeps_the_same_snapshots(finished, tmp_path):
    run(tmp_path, stop_at=17)
    assert list(list_snapshots(tmp_path)) == [0, 10]
    run(tmp_path, resume=True)
    assert kept(tmp_path) == kept(finished)


def test_half_a_snapshot_is_none(tmp_path):
    (tmp_path / "snapshots" / "step-10").mkdir(parents=True)
    (tmp_path / "snapshots" / "step-10" / "model.safetensors.new").write_bytes(b"cut")
    (tmp_path / "snapshots" / "step-007").mkdir()
    (tmp_path / "snapshots" / "notes.txt").touch()
    assert list_snapshots(tmp_path) == {}
    assert list_snapshots(tmp_path / "nothing") == {}


@pytest.mark.parametrize("value", [-1, 1.5, True])
def test_a_number_of_snapshots_that_makes_no_sense_is_refused(value):
    with pytest.raises(ConfigError, match="snapshots"):
        TrainingConfig.from_dict({"snapshots": value})


def test_a_run_without_history_has_none_and_a_damaged_one_is_refused(finished, tmp_path):
    assert read_history(tmp_path) == []
    for line in ("{", "[1]", '{"step": 1}', json.dumps({**read_history(finished)[0], "train_loss": "low"})):
        (tmp_path / "training.jsonl").write_text(line + "\n")
        with pytest.raises(CheckpointError, match=r"training\.jsonl"):
            read_history(tmp_path)


def test_the_scores_at_a_snapshot_are_those_of_the_probe(finished):
    developed = head_development(load_snapshots(finished), samples=3, seed=4)
    assert developed.steps == [0, 10, 30, 33]
    for index, (_, ckpt) in enumerate(load_snapshots(finished)):
        for name, values in probe_heads(ckpt, samples=3, seed=4).scores.items():
            torch.testing.assert_close(developed.scores[name][index], values, equal_nan=True)
    table = developed.to_frame()
    assert list(table.columns) == ["step", "head", *developed.scores]
    assert (table["step"][9], table["head"][9]) == (10, "L1H0")
    assert table["previous"][9] == float(developed.scores["previous"][1, 1, 0])
    assert len(Development(steps=[], scores={}).to_frame()) == 0


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0.1, 0.2, 0.7, 0.9], 100),
        ([0.1, 0.8, 0.2, 0.9], 1000),  # it went away again
        ([0.1, 0.9, 0.9, 0.9], 10),
        ([0.5, 0.9, 0.7, 0.4], None),
        ([0.3, 0.3, 0.3, 0.3], None),
        ([0.3, 0.3, 0.3, float("nan")], None),
    ],
)
def test_a_head_appeared_where_its_score_stays_above_half_of_its_growth(values, step):
    scores = torch.tensor(values).view(4, 1, 1)
    assert Development(steps=[0, 10, 100, 1000], scores={"induction": scores}).appeared("induction", 0, 0) == step
