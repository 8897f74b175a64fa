"""Training repeats, goes on after a kill as if nothing had happened, and does what its settings say."""

import json
import math
import os
import shutil
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from minigpt.checkpoint import load_checkpoint
from minigpt.config import ModelConfig, TrainingConfig
from minigpt.errors import ConfigError, CorpusError
from minigpt.model import MultiHeadAttention
from minigpt.recipe import learning_rate_scale, new_model
from minigpt.snapshots import read_history
from minigpt.splits import train_validation_split, validation_loss
from minigpt.tokenizer import CharTokenizer
from minigpt.training import saved_settings, train

TEXT = "the cat sat on the mat; the rat ate the hat.\n" * 30
TOKENIZER = CharTokenizer(TEXT)
MODEL = ModelConfig(vocab_size=TOKENIZER.vocab_size, block_size=9, n_embd=12, n_head=3, n_layer=2, dropout=0.2)
PLAIN = TrainingConfig(
    steps=11,
    batch_size=4,
    schedule="cosine",
    warmup_steps=3,
    evaluate_every=4,
    evaluate_batches=2,
    save_every=3,
    seed=5,
)
FAST = replace(
    PLAIN,
    optimizer="muon",
    learning_rate=0.01,
    schedule="trapezoid",
    average_decay=0.9,
    initial_weights="quiet",
    attention_dropout=0.0,
    matrix_weight_decay=0.1,
)


def run(config, out=None, *, stop_at=None, resume=False, model=MODEL, text=TEXT):
    """Train, perhaps closing the iterator at a step; return the model and the records."""
    network = new_model(model, config)
    records = []
    iterator = train(network, TOKENIZER, text, config, out=out, resume=resume)
    for record in iterator:
        records.append(record)
        if record.step == stop_at:
            iterator.close()
            break
    return network, records


def weights(network):
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def losses(records):
    return [(record.step, record.train_loss, record.validation_loss) for record in records if record.train_loss]


@pytest.mark.parametrize("config", [PLAIN, FAST], ids=["plain", "fast"])
@pytest.mark.parametrize("stop_at", [1, 5, 6])
def test_a_run_that_was_stopped_and_resumed_ends_like_one_that_was_not(tmp_path, config, stop_at):
    whole, records = run(config, tmp_path / "whole")
    run(config, tmp_path / "cut", stop_at=stop_at)
    torch.manual_seed(99)
    torch.rand(3)
    resumed, rest = run(config, tmp_path / "cut", resume=True)
    assert same(weights(whole), weights(resumed))
    assert rest[0].step == stop_at + 1
    assert [record.loss for record in records[stop_at + 1 :]] == [record.loss for record in rest]
    histories = [
        [
            {
                name: value
                for name, value in json.loads(line).items()
                if name not in ("seconds", "seconds_left", "tokens_per_second")
            }
            for line in (tmp_path / name / "training.jsonl").read_text().splitlines()
        ]
        for name in ("whole", "cut")
    ]
    assert histories[0] == histories[1]
    assert [record["step"] for record in histories[0]] == [0, 4, 8, 11]


def test_a_run_with_snapshots_is_saved_at_each_from_the_first_on_and_goes_on_from_there(tmp_path):
    config = replace(PLAIN, snapshots=2, save_every=100)
    whole, records = run(config, tmp_path / "whole")
    for step in (0, 10):
        killed = tmp_path / str(step)
        iterator = train(new_model(MODEL, config), TOKENIZER, TEXT, config, out=killed)
        while next(iterator).step < step:
            pass
        shutil.copytree(killed, tmp_path / f"{step} at once")
        iterator.close()
        resumed, rest = run(config, tmp_path / f"{step} at once", resume=True)
        assert same(weights(whole), weights(resumed))
        assert [record.step for record in rest] == list(range(step + 1, 12))
        history = read_history(tmp_path / f"{step} at once")
        assert [record["step"] for record in history] == [0, 4, 8, 10, 11]
    assert [record.step for record in records] == list(range(12))


def test_the_same_seed_trains_the_same_model_and_another_seed_another():
    first, records = run(PLAIN)
    second, again = run(PLAIN)
    other, _ = run(replace(PLAIN, seed=6))
    assert same(weights(first), weights(second))
    assert losses(records) == losses(again)
    assert not same(weights(first), weights(other))


def test_the_model_learns():
    _, records = run(replace(FAST, steps=120, evaluate_every=60))
    steps, _, validation = zip(*losses(records), strict=True)
    assert steps == (0, 60, 120)
    assert validation[0] == pytest.approx(math.log(TOKENIZER.vocab_size), abs=1e-5)
    assert validation[2] < 1.2 < validation[0] - 1


def test_a_constant_phase_can_be_made_longer_or_shorter_while_it_lasts(tmp_path):
    run(replace(FAST, steps=40), tmp_path / "long", stop_at=6)
    shortened, _ = run(FAST, tmp_path / "long", resume=True)
    straight, _ = run(FAST)
    assert same(weights(shortened), weights(straight))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"batch_size": 5}, "batch_size"),
        ({"learning_rate": 0.5}, "learning_rate"),
        ({"seed": 8}, "seed"),
        ({"average_decay": 0.5}, "average_decay"),
        ({"optimizer": "muon"}, "optimizer"),
        ({"steps": 12}, "steps"),
    ],
)
def test_a_run_is_not_resumed_under_other_settings(tmp_path, change, named):
    run(PLAIN, tmp_path, stop_at=5)
    with pytest.raises(ConfigError, match=rf"these differ: {named}\."):
        run(replace(PLAIN, **change), tmp_path, resume=True)


def test_a_run_is_not_resumed_with_another_model_or_text(tmp_path):
    run(PLAIN, tmp_path, stop_at=5)
    with pytest.raises(ConfigError, match=r"these differ: corpus\."):
        run(PLAIN, tmp_path, resume=True, text=TEXT.replace("mat", "met"))
    with pytest.raises(ConfigError, match=r"these differ: model\."):
        run(PLAIN, tmp_path, resume=True, model=replace(MODEL, n_head=2))


def test_what_does_not_touch_the_weights_may_change_on_resuming(tmp_path):
    run(PLAIN, tmp_path, stop_at=5)
    other = replace(PLAIN, evaluate_every=2, evaluate_batches=1, save_every=1, stored_as="float16")
    resumed, _ = run(other, tmp_path, resume=True)
    assert same(weights(resumed), weights(run(PLAIN)[0]))


def test_settings_of_a_run_can_be_read_back(tmp_path):
    network = new_model(MODEL, PLAIN)
    for record in train(network, TOKENIZER, TEXT, PLAIN, out=tmp_path, notes={"corpus": "cats"}):
        if record.step == 3:
            break
    assert saved_settings(tmp_path) == (MODEL, PLAIN, {"corpus": "cats"})


def test_no_run_is_overwritten_or_resumed_where_there_is_none(tmp_path):
    with pytest.raises(ConfigError, match="no run to resume"):
        run(PLAIN, tmp_path, resume=True)
    run(PLAIN, tmp_path)
    with pytest.raises(ConfigError, match="holds a training run already"):
        run(PLAIN, tmp_path)
    with pytest.raises(ConfigError, match="has taken its 11 steps already"):
        run(PLAIN, tmp_path, resume=True)


class Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_damaged_or_hostile_state_is_refused_and_nothing_in_it_runs(tmp_path):
    run(PLAIN, tmp_path, stop_at=5)
    state = tmp_path / "training.pt"
    content = state.read_bytes()
    damaged = [b"", content[:500], content[: len(content) // 2], b"no state at all"]
    for bad in damaged:
        state.write_bytes(bad)
        with pytest.raises(ConfigError, match="no state of a training run"):
            run(PLAIN, tmp_path, resume=True)
    torch.save({"version": 1, "step": Payload(tmp_path / "touched")}, state)
    with pytest.raises(ConfigError, match="no state of a training run"):
        run(PLAIN, tmp_path, resume=True)
    assert not (tmp_path / "touched").exists()
    torch.save({"version": 99}, state)
    with pytest.raises(ConfigError, match="another kind or version"):
        run(PLAIN, tmp_path, resume=True)


def test_the_saved_checkpoint_is_the_model_that_was_evaluated(tmp_path):
    network, records = run(FAST, tmp_path)
    ckpt = load_checkpoint(tmp_path)
    assert same(weights(network), weights(ckpt.model))
    assert not network.training
    assert ckpt.training["steps"] == 11
    assert ckpt.training["tokens"] == 11 * 4 * 9
    assert TrainingConfig.from_dict(ckpt.training["settings"]) == FAST
    _, validation_ids = train_validation_split(torch.tensor(TOKENIZER.encode(TEXT)))
    assert records[-1].validation_loss == pytest.approx(validation_loss(ckpt.model, validation_ids), abs=0.3)


def test_the_mean_of_the_weights_is_saved_beside_the_weights_that_go_on(tmp_path):
    run(FAST, tmp_path)
    state = torch.load(tmp_path / "training.pt", weights_only=True)
    assert not same(state["model"], state["average"])
    assert same(dict(state["average"]), weights(load_checkpoint(tmp_path).model))


def test_float16_halves_the_file_and_keeps_three_digits(tmp_path):
    exact, _ = run(PLAIN, tmp_path / "single")
    run(replace(PLAIN, stored_as="float16"), tmp_path / "half")
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("single", "half")]
    assert sizes[1] < 0.75 * sizes[0]
    rounded = load_checkpoint(tmp_path / "half").model.state_dict()
    for name, tensor in exact.state_dict().items():
        torch.testing.assert_close(rounded[name], tensor, atol=1e-4, rtol=1e-3)


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(PLAIN)
    run(PLAIN, stop_at=2)
    assert list(tmp_path.iterdir()) == []


def test_records_tell_step_speed_rate_and_time_left():
    _, records = run(PLAIN)
    assert [record.step for record in records] == list(range(12))
    assert {record.steps for record in records} == {11}
    assert math.isnan(records[0].loss)
    assert all(record.tokens_per_second > 0 and record.seconds_left >= 0 for record in records[1:])
    assert records[-1].seconds_left == 0
    assert [record.learning_rate for record in records[1:]] == [
        PLAIN.learning_rate * learning_rate_scale(PLAIN, step) for step in range(11)
    ]


def test_a_text_too_short_for_the_block_is_named():
    with pytest.raises(CorpusError, match=r"has 8 tokens, but at least 10 are needed"):
        run(PLAIN, text=TEXT[:80])


def test_a_loss_that_is_no_number_ends_the_run_and_keeps_the_last_state(tmp_path):
    network = new_model(MODEL, PLAIN)
    records = train(network, TOKENIZER, TEXT, PLAIN, out=tmp_path)
    for record in records:
        if record.step == 4:
            with torch.no_grad():
                network.lm_head.weight[0, 0] = math.nan
            break
    with pytest.raises(ConfigError, match="at step 5"):
        next(records)
    assert torch.load(tmp_path / "training.pt", weights_only=True)["step"] == 3
    load_checkpoint(tmp_path)


def test_repetition_begins_at_its_step_and_not_before():
    repeating = replace(PLAIN, repeat_share=0.5, repeat_from=6)
    plain = [record.loss for record in run(PLAIN)[1]][1:]
    losses_of_steps = [record.loss for record in run(repeating)[1]][1:]
    assert losses_of_steps[:6] == plain[:6]
    assert losses_of_steps[6] != plain[6]
    assert [record.loss for record in run(replace(PLAIN, repeat_from=6))[1]][1:] == plain


def test_attention_dropout_replaces_the_models_own_only_inside_attention():
    network, _ = run(FAST)
    rates = {module.dropout.p for module in network.modules() if isinstance(module, MultiHeadAttention)}
    assert rates == {0.0}
    assert {m.p for m in network.modules() if isinstance(m, torch.nn.Dropout)} == {0.0, 0.2}


def test_gradients_are_clipped_to_the_given_norm(monkeypatch):
    norms = []
    step = torch.optim.AdamW.step

    def watched(self, *arguments):
        gradients = [p.grad for group in self.param_groups for p in group["params"]]
        norms.append(float(torch.cat([gradient.flatten() for gradient in gradients]).norm()))
        return step(self, *arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", watched)
    run(replace(PLAIN, gradient_clip=0.25))
    assert max(norms) == pytest.approx(0.25, rel=1e-4)
    norms.clear()
    run(replace(PLAIN, gradient_clip=None))
    assert max(norms) > 0.3


# --- kills ------------------------------------------------------------------------------------------------------------


def train_until_killed(out, resume, channel):
    """Be a child process: train without end, and write the number of every step down the channel."""
    config = replace(FAST, steps=100_000, schedule="constant", save_every=1, evaluate_every=7)
    records = train(new_model(MODEL, config), TOKENIZER, TEXT, config, out=out, resume=resume)
    for record in records:
        os.write(channel, f"{record.step}\n".encode())


def killed_after(steps, delay, out, resume):
    """Fork a child that trains, wait for a number of steps and a moment more, and kill it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            train_until_killed(out, resume, writer)
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as lines:
        for _ in range(steps):
            assert lines.readline()
        threading.Event().wait(delay)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def test_a_kill_at_any_moment_leaves_state_and_checkpoint_whole(tmp_path):
    moments = torch.rand(12, generator=torch.Generator().manual_seed(0)).tolist()
    reached = 0
    for attempt, moment in enumerate(moments):
        killed_after(2 + attempt % 5, moment * 0.03, tmp_path, resume=attempt > 0)
        load_checkpoint(tmp_path)
        state = torch.load(tmp_path / "training.pt", weights_only=True)
        assert state["step"] > reached
        reached = state["step"]
        for line in (tmp_path / "training.jsonl").read_text().splitlines():
            json.loads(line)
    network, _ = run(replace(FAST, steps=100_000, schedule="constant", evaluate_every=7), stop_at=reached)
    assert same(weights(network), state["model"])
