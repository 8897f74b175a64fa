"""Training from the page without a browser: what is refused, one run at a time, and that nothing is lost on the way."""

import json
import os
import signal
import threading
from dataclasses import replace
from types import SimpleNamespace

import gradio as gr
import pytest
import torch
from starlette.datastructures import Headers

from minigpt import load_checkpoint
from minigpt.errors import CorpusError, MiniGPTError
from minigpt.presets import PRESETS
from minigpt.snapshots import save_snapshot
from minigpt.splits import get_batch, train_validation_split
from minigpt.ui.answers import Answers
from minigpt.ui.learning import Runs
from minigpt.ui.models import Models
from minigpt.ui.new_run import (
    MOST_BYTES,
    MOST_CHARACTERS,
    MOST_STEPS,
    OFFERED,
    characters_needed,
    checked,
    may_train,
    plain,
    settings_of,
)
from minigpt.ui.trainer import ENDED, Trainer, thinned
from tests.ui.test_parts import built
from tests.ui.viewing import save_random_model

TEXT = "the cat sat on the mat; the rat ate the hat.\n" * 30
STEPS = 240
RUN = {"name": "cats", "preset": "transformer-small", "steps": STEPS, "text": TEXT}
HERE = SimpleNamespace(client=SimpleNamespace(host="127.0.0.1"), headers={"host": "127.0.0.1:7860"})
ELSEWHERE = SimpleNamespace(client=SimpleNamespace(host="10.0.0.7"), headers={"host": "classroom:7860"})


def until(trainer, reached):
    """Wait until the run is as asked for."""
    pause = threading.Event()
    while not reached(run := trainer._run):
        assert run.status not in ENDED, run
        pause.wait(0.01)


def ended(trainer):
    trainer._run.reader.join()
    return trainer.state()["run"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run from start to end, with how it was told last."""
    models = Models(tmp_path_factory.mktemp("models"))
    trainer = Trainer(models, threads=1)
    trainer.start(RUN)
    return models, ended(trainer)


def test_a_run_ends_as_a_model_with_its_losses_snapshots_and_a_card(whole):
    models, told = whole
    assert (told["status"], told["step"], told["reason"]) == ("finished", STEPS, "")
    assert models.names() == ["cats"]
    ckpt = models.load("cats")
    assert ckpt.training["steps"] == STEPS
    assert f"**{ckpt.training['validation_loss']:.4f}**" in ckpt.card
    assert ckpt.config.n_layer == PRESETS["transformer-small"].model["n_layer"]
    described = Runs(models).one("cats")
    assert described["steps"] == told["snapshots"] == [0, 10, 20, 50, 100, 200, 240]
    assert described["records"]["validation"] == list(told["estimates"]["validation"])
    assert told["losses"]["step"][-1] == STEPS
    assert told["losses"]["loss"][-1] < told["losses"]["loss"][0]
    sample = told["sample"]
    assert sample["step"] == STEPS
    assert TEXT.startswith(sample["start"])
    assert set(sample["written"]) <= set(TEXT)


def test_a_run_that_was_killed_stopped_and_outlived_by_its_app_ends_like_one_that_was_not(whole, tmp_path):
    models = Models(tmp_path)
    trainer = Trainer(models, threads=1)
    trainer.start(RUN)
    for act, given in (("start", {**RUN, "name": "dogs"}), ("resume", "cats")):
        with pytest.raises(MiniGPTError, match="cats is being trained"):
            trainer.act(act, given)
    assert not (tmp_path / "dogs").exists()

    until(trainer, lambda run: run.step >= 1)
    os.kill(trainer._run.process.pid, signal.SIGKILL)
    killed = ended(trainer)
    assert (killed["status"], killed["reason"]) == ("failed", "exit status -9")
    assert [each["name"] for each in trainer.state()["stopped"]] == ["cats"]

    trainer.resume("cats")
    until(trainer, lambda run: run.losses)
    trainer.stop()
    stopped = ended(trainer)
    assert stopped["status"] == "stopped"
    assert 1 <= stopped["step"] < STEPS
    load_checkpoint(tmp_path / "cats")
    save_snapshot(tmp_path / "cats", STEPS, models.load("cats").model, models.load("cats").tokenizer)
    assert STEPS not in trainer.state()["run"]["snapshots"]  # not saved yet: the history does not know it

    # The app was ended and started again: what it knows lies in the folder.
    again = Trainer(models, threads=1)
    assert again.state()["run"] is None
    saved = torch.load(tmp_path / "cats" / "training.pt", weights_only=True)["step"]
    assert again.state()["stopped"] == [{"name": "cats", "step": saved, "steps": STEPS}]
    assert saved == stopped["step"]
    with pytest.raises(MiniGPTError, match="no stopped run called 'dogs'"):
        again.resume("dogs")
    again.act("resume", "cats")
    finished = ended(again)
    assert finished["status"] == "finished"
    assert again.state()["stopped"] == []
    one, other = (each.load("cats").model.state_dict() for each in (whole[0], models))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert finished["estimates"] == whole[1]["estimates"]


def test_a_run_that_cannot_go_on_says_why_and_another_can_be_started(tmp_path):
    models = Models(tmp_path)
    folder = tmp_path / "cats"
    folder.mkdir()
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    (folder / "page-run.json").write_text(json.dumps({"preset": "quick", "steps": 9}), encoding="utf-8")
    (folder / "training.pt").write_bytes(b"damaged")
    for name, content in (
        ("not-json", "{"),
        ("no-preset", "{}"),
        ("list", "[]"),
        ("odd", '{"preset": "huge", "steps": 9}'),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text.txt").write_text(TEXT, encoding="utf-8")
        (tmp_path / name / "page-run.json").write_text(content, encoding="utf-8")
    trainer = Trainer(models, threads=1)
    assert trainer.state()["stopped"] == [{"name": "cats", "step": 0, "steps": 9}]
    trainer.resume("cats")
    failed = ended(trainer)
    assert failed["status"] == "failed"
    assert "training.pt holds no state of a training run" in failed["reason"]
    assert failed["sample"] is None
    with pytest.raises(MiniGPTError, match="no stopped run"):
        trainer.resume("../cats")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"text": " \n"}, "train_no_text"),
        ({"text": TEXT[:159]}, "train_text_too_short"),
        ({"text": TEXT[:639], "preset": "quick"}, "train_text_too_short"),
        ({"text": "ab" * 100}, "train_vocabulary"),
        ({"text": "".join(map(chr, range(0x4E00, 0x4E00 + MOST_CHARACTERS + 1)))}, "train_vocabulary"),
        ({"text": "가" * (MOST_BYTES // 3 + 1)}, "train_text_too_large"),
        ({"text": 7}, "wrong_type"),
        ({"name": ""}, "train_name"),
        ({"name": ".."}, "train_name"),
        ({"name": "a/b"}, "train_name"),
        ({"name": "a\\b"}, "train_name"),
        ({"name": "-x"}, "train_name"),
        ({"name": "mine:x"}, "train_name"),
        ({"name": "NUL"}, "train_name"),
        ({"name": "x" * 41}, "train_name"),
        ({"name": "Taken "}, "train_name_taken"),
        ({"name": None}, "wrong_type"),
        ({"preset": "korean-novels"}, "wrong_type"),
        ({"preset": ["quick"]}, "wrong_type"),
        ({"steps": 0}, "number_out_of_range"),
        ({"steps": MOST_STEPS + 1}, "number_out_of_range"),
        ({"steps": None}, "number_out_of_range"),
        ({"steps": True}, "number_out_of_range"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(tmp_path, change, code):
    (tmp_path / "taken").mkdir()
    told = Answers(Models(tmp_path)).train("start", {**RUN, **change}, allowed=True)
    assert (told["kind"], told["code"]) == ("notice", code)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize("name", ["a", "내 모델", "Ünïcode 2.1-b_c", "x" * 40])
def test_names_in_any_script_are_taken(tmp_path, name):
    assert checked({**RUN, "name": f" {name} "}, tmp_path / "none").name == name


@pytest.mark.parametrize(("act", "given"), [("begin", None), (None, None), ("start", None), ("resume", ["cats"])])
def test_anything_else_is_answered_with_a_notice(tmp_path, act, given):
    assert Answers(Models(tmp_path)).train(act, given, allowed=True)["kind"] == "notice"


@pytest.mark.parametrize("name", OFFERED)
def test_the_shortest_text_is_just_long_enough_for_both_splits(name):
    window = PRESETS[name].model["block_size"]
    needed = characters_needed(window)
    get_batch(train_validation_split(torch.arange(needed))[1], window, 1)
    with pytest.raises(CorpusError):
        get_batch(train_validation_split(torch.arange(needed - 1))[1], window, 1)


@pytest.mark.parametrize("name", OFFERED)
def test_a_preset_trains_on_the_page_as_it_does_elsewhere(name):
    own = PRESETS[name].training
    told = settings_of(PRESETS[name], own.steps)
    shown = ("snapshots", "save_every", "evaluate_batches")
    assert replace(told, **{each: getattr(own, each) for each in shown}) == own
    assert told.snapshots >= 3


def test_a_text_is_trained_on_in_one_spelling():
    assert plain("\ufeffa\r\nb\rc") == "a\nb\nc"
    assert plain("\u1112\u1161\u11ab") == "한"
    assert plain("a\ud800") == "a?"


def test_a_thinned_curve_is_the_mean_of_its_stretches():
    points = [(step, float(step)) for step in range(1, 8)]
    assert thinned(points, 10) == {"step": [1, 2, 3, 4, 5, 6, 7], "loss": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]}
    assert thinned(points, 3) == {"step": [3, 6, 7], "loss": [2.0, 5.0, 7.0]}
    assert thinned([], 3) == {"step": [], "loss": []}


@pytest.mark.parametrize(
    ("environment", "is_shared", "request_", "allowed"),
    [
        ({}, False, HERE, True),
        ({}, False, SimpleNamespace(client=SimpleNamespace(host="::1"), headers={"host": "[::1]:7860"}), True),
        ({}, False, SimpleNamespace(client=HERE.client, headers={"host": "localhost"}), True),
        ({}, True, HERE, False),
        ({"SPACE_ID": "someone/page"}, False, HERE, False),
        ({}, False, ELSEWHERE, False),
        ({}, False, SimpleNamespace(client=HERE.client, headers={"host": "abc.gradio.live"}), False),
        ({}, False, SimpleNamespace(client=HERE.client, headers={**HERE.headers, "x-forwarded-for": "1.2.3.4"}), False),
        ({}, False, SimpleNamespace(client=HERE.client, headers={"host": "["}), False),
        ({}, False, None, False),
        ({"MINIGPT_TRAIN": "0"}, False, HERE, False),
        ({"MINIGPT_TRAIN": "1", "SPACE_ID": "someone/page"}, True, ELSEWHERE, True),
    ],
)
def test_only_people_at_the_machine_train_unless_the_environment_says_so(environment, is_shared, request_, allowed):
    assert may_train(environment, is_shared=is_shared, request=request_) is allowed


def test_the_server_itself_refuses_who_may_not_train(tmp_path, monkeypatch):
    save_random_model(tmp_path / "alone", "abc", n_layer=2, n_head=1, block_size=6)
    served = built(tmp_path).viewer.train

    def train(given, request):
        return served(given, gr.Request(SimpleNamespace(client=request.client, headers=Headers(request.headers))))

    monkeypatch.delenv("SPACE_ID", raising=False)
    assert train(["state"], HERE)["value"]["allowed"]
    assert train(["state"], ELSEWHERE)["value"] == {"allowed": False}
    for act, given in (("start", RUN), ("resume", "cats"), ("stop", None), ("nonsense", None)):
        assert train([act, given], ELSEWHERE)["code"] == "train_off"
    monkeypatch.setenv("SPACE_ID", "someone/page")
    assert train(["start", RUN], HERE)["code"] == "train_off"
    assert [path.name for path in tmp_path.iterdir()] == ["alone"]
