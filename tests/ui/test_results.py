"""What the tab of experiments gets from the server, without a browser: numbers of the records, or a sentence."""

import io
import json
import statistics
from dataclasses import replace

import numpy as np
import pytest

from minigpt import load_checkpoint, trace, wire
from minigpt.experiment_pictures import read_picture
from minigpt.ui.answers import Answers
from minigpt.ui.experiments import Experiments
from minigpt.ui.models import Models
from minigpt.ui.words import LANGUAGES
from tests.ui.results import LOSSES, PROMPT, made_records, save_results, write_records


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, models):
    made = tmp_path_factory.mktemp("experiments")
    save_results(made / "mine", models)
    return made


def asking(folder):
    """Return a function that asks for results as the browser gets them."""
    answers = Answers(Models(folder), Experiments(folder))
    return lambda name=None, against=None: json.loads(json.dumps(answers.experiment(name, against), allow_nan=False))


@pytest.fixture(scope="module")
def ask(folder):
    return asking(folder)


def test_the_table_is_computed_from_the_saved_losses(ask):
    told = ask("mine")
    assert (told["kind"], told["names"], told["name"]) == ("experiment", ["mine"], "mine")
    assert (told["experiment"], told["preset"], told["steps"], told["characters"]) == (
        "n-layer",
        "transformer-small",
        40,
        1234,
    )
    assert (told["seeds"], told["against"]) == ([11, 12, 13], "n_layer 1")
    assert [row["variant"] for row in told["rows"]] == list(LOSSES)
    for row in told["rows"]:
        losses = LOSSES[row["variant"]]
        differences = [loss - other for loss, other in zip(losses, LOSSES["n_layer 1"], strict=True)]
        assert row["losses"] == losses
        assert row["mean"] == pytest.approx(statistics.mean(losses))
        assert row["spread"] == pytest.approx(statistics.stdev(losses))
        assert row["difference"] == pytest.approx(statistics.mean(differences))
        assert row["margin"] == pytest.approx(4.303 * statistics.stdev(differences) / 3**0.5, rel=1e-3)
        assert row["seconds"] == pytest.approx(2.5)
    assert [row["told_apart"] for row in told["rows"]] == [False, True, False]


def test_any_variant_can_be_the_one_that_the_others_are_compared_with(ask):
    told = ask("mine", "n_layer 2")
    assert told["against"] == "n_layer 2"
    assert [row["difference"] for row in told["rows"]] == pytest.approx([0.39667, 0, 0.38], abs=1e-4)
    assert [row["told_apart"] for row in told["rows"]] == [True, False, False]
    assert ask("mine", "n_layer 7")["against"] == ask("mine", ["n_layer 2"])["against"] == "n_layer 1"


def test_curves_and_samples_are_those_of_the_records(ask):
    told = ask("mine")
    records = made_records()
    assert [(each["variant"], each["seed"], each["losses"]) for each in told["curves"]] == [
        (each.variant, each.seed, [loss for _, _, loss in each.history]) for each in records
    ]
    assert [(each["variant"], each["seed"], each["prompt"], each["sample"]) for each in told["sides"]] == [
        (each.variant, each.seed, PROMPT, each.sample) for each in records if each.seed == 11
    ]


def test_the_pictures_are_forward_passes_of_the_kept_models(ask, models):
    first, second, third = (side["analysis"] for side in ask("mine")["sides"])
    assert third is None
    for count, message in ((1, first), (2, second)):
        traced = trace(load_checkpoint(models / str(count)), PROMPT)
        arrays = wire.unpack(message)
        assert message["tokens"]["ids"] == traced.ids
        assert [message["pieces"][str(each)] for each in traced.ids] == list(PROMPT)
        assert arrays["pattern"].shape == (count, 3, len(PROMPT), len(PROMPT))
        assert arrays["pattern"] == pytest.approx(traced.pattern.numpy(), abs=6e-4)
        assert message["checks"]["logit_difference"] == pytest.approx(traced.logit_difference)


def test_only_seeds_that_every_variant_has_are_compared(tmp_path):
    records = [each for each in made_records() if (each.variant, each.seed) != ("n_layer 4", 13)]
    write_records(tmp_path / "half", records)
    told = asking(tmp_path)("half")
    assert told["seeds"] == [11, 12]
    assert [row["losses"] for row in told["rows"]] == [losses[:2] for losses in LOSSES.values()]
    write_records(tmp_path / "begun", [replace(records[0], seed=1), replace(records[3], seed=2)])
    begun = asking(tmp_path)("begun")
    assert (begun["rows"], begun["seeds"], begun["against"]) == ([], [], "")


def test_a_single_seed_has_neither_spread_nor_interval(tmp_path):
    write_records(tmp_path / "one", [each for each in made_records() if each.seed == 12])
    rows = asking(tmp_path)("one")["rows"]
    assert [(row["spread"], row["margin"], row["told_apart"]) for row in rows] == [(None, None, False)] * 3


def test_the_first_results_that_can_be_read_open_by_themselves(tmp_path, models):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "records.json").write_text("{")
    (tmp_path / "b").mkdir()  # no results at all
    save_results(tmp_path / "c", models)
    told = asking(tmp_path)()
    assert (told["names"], told["name"]) == (["a", "c"], "c")


def refused(message):
    assert message["kind"] == "notice"
    assert set(message["sentences"]) == set(LANGUAGES)
    return message["code"], message["sentences"]["en"]


def test_without_results_the_page_says_how_to_make_some(tmp_path):
    code, sentence = refused(asking(tmp_path)())
    assert code == "no_experiments"
    assert "python -m minigpt compare" in sentence


@pytest.mark.parametrize("name", ["other", "../mine", 7, ["mine"]])
def test_other_names_are_refused(ask, name):
    assert refused(ask(name))[0] == "unknown_experiment"


GOOD = {"experiment": "n-layer", "preset": "chapter", "steps": 4, "characters": 9}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[" * 100_000,
        "[1]",
        "null",
        json.dumps({"of": GOOD, "records": [{"variant": "a"}]}),
        json.dumps({"of": GOOD, "records": {"variant": 1}}),
        json.dumps({"of": {**GOOD, "steps": "4"}, "records": []}),
        json.dumps({"of": [], "records": []}),
    ],
)
def test_records_that_are_none_end_in_a_sentence(tmp_path, content):
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "records.json").write_text(content)
    code, sentence = refused(asking(tmp_path)("odd"))
    assert code == "experiment_damaged"
    assert "records.json" in sentence


@pytest.mark.parametrize(
    "change",
    [
        {"loss": "low"},
        {"loss": float("nan")},
        {"seed": 1.5},
        {"history": [[0, 1]]},
        {"history": 3},
        {"sample": None},
        {"extra": 1},
    ],
)
def test_one_odd_value_in_a_record_ends_in_a_sentence(tmp_path, change):
    write_records(tmp_path / "odd", made_records())
    path = tmp_path / "odd" / "records.json"
    content = json.loads(path.read_text())
    content["records"][4].update(change)
    path.write_text(json.dumps(content))
    assert refused(asking(tmp_path)("odd"))[0] == "experiment_damaged"


def picture_with(folder, **changes):
    with np.load(folder / "n_layer-1.npz") as kept:
        arrays = {**kept, **changes}
    made = io.BytesIO()
    np.savez_compressed(made, **{name: each for name, each in arrays.items() if each is not None})
    return made.getvalue()


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"PK no archive",
        lambda folder: (folder / "n_layer-1.npz").read_bytes()[:900],
        lambda folder: picture_with(folder, pattern=None),
        lambda folder: picture_with(folder, pattern=np.zeros((1, 3, 4, 4), np.float32)),
        lambda folder: picture_with(folder, pattern=np.full((1, 3, 11, 11), np.nan, np.float32)),
        lambda folder: picture_with(folder, config=np.array("[]")),
        lambda folder: picture_with(folder, tokens=np.array([object()], object)),  # would have to be unpickled
        lambda folder: picture_with(folder, logit_difference=np.array(np.inf)),
        lambda folder: picture_with(folder, filler=np.zeros(20_000_000, np.uint8)),
    ],
)
def test_a_picture_that_is_none_ends_in_a_sentence(folder, tmp_path, damage):
    write_records(tmp_path / "odd", made_records())
    (tmp_path / "odd" / "n_layer-1.npz").write_bytes(damage(folder / "mine"))
    code, sentence = refused(asking(tmp_path)("odd"))
    assert code == "experiment_damaged"
    assert "n_layer-1.npz" in sentence


@pytest.mark.parametrize("variant", ["..", "a/b", "a\\b", "", "a\0b"])
def test_a_variants_name_leads_nowhere_else(tmp_path, variant):
    assert read_picture(tmp_path, variant) is None


def test_the_folder_is_the_given_one_or_that_of_the_environment(tmp_path, monkeypatch):
    write_records(tmp_path / "named" / "mine", made_records())
    monkeypatch.setenv("MINIGPT_EXPERIMENTS", str(tmp_path / "named"))
    assert list(Experiments().found()) == ["mine"]
    assert Experiments(tmp_path / "other").found() == {}
    monkeypatch.delenv("MINIGPT_EXPERIMENTS")
    assert [folder.name for folder in Experiments().folders] == ["experiments", "runs"]
