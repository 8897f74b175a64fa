"""What the tab of trainings gets from the server, without a browser."""

from dataclasses import replace

import pytest
import torch

from minigpt import load_checkpoint, wire
from minigpt.analysis.development import head_development
from minigpt.config import ModelConfig, TrainingConfig
from minigpt.generation import generate
from minigpt.recipe import new_model
from minigpt.snapshots import list_snapshots, load_snapshots, read_history
from minigpt.tokenizer import CharTokenizer
from minigpt.training import train
from minigpt.ui.answers import Answers
from minigpt.ui.models import Models
from tests.ui.viewing import save_random_model

TEXT = "the cat sat on the mat; the rat ate the hat.\n" * 30
SETTINGS = TrainingConfig(steps=20, batch_size=2, evaluate_every=5, evaluate_batches=1, snapshots=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    tokenizer = CharTokenizer(TEXT)
    config = ModelConfig(vocab_size=tokenizer.vocab_size, block_size=16, n_embd=12, n_head=3, n_layer=2)
    for name, settings in (("growing", SETTINGS), ("plain", replace(SETTINGS, snapshots=0))):
        list(train(new_model(config, settings), tokenizer, TEXT, settings, out=made / name))
    save_random_model(made / "alone", "abc", n_layer=4, n_head=1, block_size=6)
    return made


@pytest.fixture
def answers(folder):
    return Answers(Models(folder))


def test_a_run_is_told_with_its_losses_and_every_head_at_every_snapshot(answers, folder):
    told = answers.training("growing", exactly=False)
    assert told["runs"] == {"growing": 3, "plain": 0}
    history = read_history(folder / "growing")
    assert told["records"]["step"] == [0, 5, 10, 15, 20]
    assert told["records"]["validation"] == [record["validation_loss"] for record in history]
    assert told["records"]["train"] == [record["train_loss"] for record in history]
    developed = head_development(load_snapshots(folder / "growing"))
    arrays = wire.unpack(told)
    assert told["steps"] == developed.steps == [0, 10, 20]
    assert arrays["curve"].shape == (len(told["scores"]), 3, 2, 3)
    for index, name in enumerate(told["scores"]):
        assert arrays["curve"][index] == pytest.approx(developed.scores[name].numpy(), nan_ok=True)
        for layer in range(2):
            for head in range(3):
                step = developed.appeared(name, layer, head)
                assert arrays["appeared"][index, layer, head] == (-1 if step is None else step)


def test_a_model_without_snapshots_leads_to_one_that_has_some_unless_it_is_meant_itself(answers):
    assert answers.training("alone", exactly=False)["name"] == "growing"
    assert answers.training("plain", exactly=False)["name"] == "growing"
    exactly = answers.training("plain", exactly=True)
    assert (exactly["name"], exactly["steps"], exactly["scores"]) == ("plain", [], [])
    assert len(exactly["records"]["step"]) == 5
    assert answers.training("alone", exactly=True)["code"] == "unknown_model"


def test_a_moment_is_what_the_snapshot_itself_says(answers, folder):
    told = answers.moment("growing", 10, "the rat sat")
    ckpt = load_checkpoint(list_snapshots(folder / "growing")[10])
    assert told["step"] == 10
    assert not told["own_text"]
    ids = torch.tensor([ckpt.tokenizer.encode("the rat sat")])
    with torch.no_grad():
        _, loss, weights = ckpt.model(ids[:, :-1], ids[:, 1:], return_weights=True)
    assert told["loss"] == pytest.approx(float(loss), abs=1e-5)
    assert wire.unpack(told["analysis"])["pattern"][:, :, :-1, :-1] == pytest.approx(weights[:, 0].numpy(), abs=6e-4)
    steps = generate(ckpt, "the rat sat", max_new_tokens=80, temperature=0.8, seed=1)
    assert told["sample"] == "".join(step.token for step in steps)


def test_a_text_that_the_run_cannot_read_gives_way_to_one_of_its_own(answers):
    told = answers.moment("growing", 0, "안녕")
    assert told["own_text"]
    assert told["analysis"]["tokens"]["ids"]
    assert answers.moment("growing", 0, "")["own_text"]
    assert answers.moment("growing", 20, "t")["loss"] is None


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (("plain", 10, "the"), "unknown_snapshot"),
        (("growing", 11, "the"), "unknown_snapshot"),
        (("growing", "10", "the"), "unknown_snapshot"),
        (("growing", True, "the"), "unknown_snapshot"),
        (("../growing", 10, "the"), "unknown_model"),
        ((["growing"], 10, "the"), "unknown_model"),
        (("growing", 10, 7), "wrong_type"),
    ],
)
def test_anything_else_is_refused_with_a_sentence(answers, given, code):
    refused = answers.moment(*given)
    assert (refused["kind"], refused["code"]) == ("notice", code)


def test_without_any_run_the_page_says_how_to_train_one(tmp_path):
    save_random_model(tmp_path / "alone", "abc", n_layer=4, n_head=1, block_size=6)
    assert Answers(Models(tmp_path)).training("alone", exactly=False)["code"] == "no_runs"


def test_a_run_that_goes_on_is_read_anew(tmp_path):
    tokenizer = CharTokenizer(TEXT)
    config = ModelConfig(vocab_size=tokenizer.vocab_size, block_size=16, n_embd=12, n_head=3, n_layer=2)
    settings = replace(SETTINGS, schedule="constant", save_every=10)
    model = new_model(config, settings)
    answers = Answers(Models(tmp_path))
    records = train(model, tokenizer, TEXT, settings, out=tmp_path / "growing")
    while next(records).step < 12:
        pass
    assert answers.training("growing", exactly=True)["steps"] == [0, 10]
    list(records)
    assert answers.training("growing", exactly=True)["steps"] == [0, 10, 20]
