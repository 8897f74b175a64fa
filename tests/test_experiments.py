"""The chapters' experiments: seeds repeat, runs go on, and the tables are what the records say."""

import json
import math
import statistics
from dataclasses import replace

import numpy as np
import pytest
import torch

import minigpt.experiment_report
import minigpt.experiments
from minigpt import load_checkpoint, trace
from minigpt.cli import main
from minigpt.errors import ConfigError
from minigpt.experiment_pictures import read_picture
from minigpt.experiment_report import loss_curves, report
from minigpt.experiments import (
    STUDENT,
    Record,
    markdown,
    read_records,
    read_saved,
    run_experiment,
    table,
    verdicts,
)
from minigpt.presets import EXPERIMENTS, PRESETS, Experiment, smaller
from tests.documents import READMES, ROOT, read, tracked_files

TEXT = "<b>the cat</b> sat on the mat; the rat ate the hat.\n" * 40
TINY = Experiment(
    name="tiny",
    question="one block <or> two",
    preset="transformer-small",
    variants={"n_layer 1": {"n_layer": 1, "n_embd": 8}, "n_layer 2": {"n_layer": 2, "n_embd": 8}},
)


def record(variant, seed, loss):
    history = [(0, 4.0, 4.1), (10, loss + 0.1, loss)]
    return Record(
        variant=variant, seed=seed, parameters=7, loss=loss, history=history, seconds=1.0, prompt="the", sample=" cat"
    )


def made(first, second):
    losses = {"n_layer 1": first, "n_layer 2": second}
    return [record(name, seed, loss) for name, values in losses.items() for seed, loss in enumerate(values)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("compare")
    return out, list(run_experiment(TINY, TEXT, out=out, steps=4, seeds=3))


def test_every_variant_is_trained_with_every_seed_and_leaves_one_model(finished):
    out, told = finished
    assert [(count, total) for count, total, _ in told] == [(count, 6) for count in range(7)]
    records = read_records(out)
    assert records == [each for _, _, each in told if each is not None]
    first = PRESETS["transformer-small"].training.seed
    assert {(each.variant, each.seed) for each in records} == {
        (name, first + index) for name in TINY.variants for index in range(3)
    }
    for each in records:
        assert [step for step, _, _ in each.history] == [0, 1, 2, 3, 4]
        assert len(each.sample) == 300
        assert each.prompt == TEXT[: len(each.prompt)]
    assert load_checkpoint(out / "n_layer-2").config.n_layer == 2
    assert load_checkpoint(out / "n_layer-1").config.n_layer == 1


def test_a_run_that_was_cut_goes_on_and_ends_with_the_same_records(finished, tmp_path):
    out, _ = finished
    cut = run_experiment(TINY, TEXT, out=tmp_path, steps=4, seeds=3)
    for count, _, _ in cut:
        if count == 2:
            break
    cut.close()
    told = list(run_experiment(TINY, TEXT, out=tmp_path, steps=4, seeds=3))
    assert [count for count, _, _ in told] == [2, 3, 4, 5, 6]

    def timeless(folder):
        return [replace(each, seconds=0.0) for each in read_records(folder)]

    assert timeless(tmp_path) == timeless(out)
    torch.testing.assert_close(
        load_checkpoint(tmp_path / "n_layer-1").model.state_dict(),
        load_checkpoint(out / "n_layer-1").model.state_dict(),
    )


@pytest.mark.parametrize("change", [{"steps": 5}, {"text": TEXT + "more"}, {"experiment": replace(TINY, name="other")}])
def test_records_of_something_else_are_never_mixed_in(finished, change):
    given = {"experiment": TINY, "text": TEXT, "steps": 4, **change}
    with pytest.raises(ConfigError) as caught:
        next(run_experiment(given["experiment"], given["text"], out=finished[0], steps=given["steps"], seeds=3))
    assert caught.value.code == "compare_differs"


@pytest.mark.parametrize("content", ["{", "[]", '{"of": {}, "records": [{}]}'])
def test_damaged_records_are_refused(tmp_path, content):
    (tmp_path / "records.json").write_text(content)
    with pytest.raises(ConfigError, match=r"records\.json"):
        read_records(tmp_path)
    assert read_records(tmp_path / "nothing") == []


def test_the_table_is_what_the_records_say(finished):
    out, _ = finished
    saved = json.loads((out / "records.json").read_text())["records"]
    for row in table(TINY, read_records(out)):
        losses = [each["loss"] for each in saved if each["variant"] == row.variant]
        others = [each["loss"] for each in saved if each["variant"] == "n_layer 1"]
        differences = [one - other for one, other in zip(losses, others, strict=True)]
        assert row.losses == losses
        assert row.mean == pytest.approx(statistics.mean(losses))
        assert row.spread == pytest.approx(statistics.stdev(losses))
        assert row.difference == pytest.approx(statistics.mean(differences))
        assert row.margin == pytest.approx(4.303 * statistics.stdev(differences) / math.sqrt(3), rel=1e-3)


@pytest.mark.parametrize("count", STUDENT)
def test_the_interval_holds_95_percent_of_students_distribution(count):
    freedom = count - 1
    scale = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))
    places = np.linspace(0, STUDENT[count], 200_001)
    density = scale * (1 + places**2 / freedom) ** (-(freedom + 1) / 2)
    assert 2 * np.trapezoid(density, places) == pytest.approx(0.95, abs=5e-5)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ([1.5, 1.7, 1.6], "n_layer 2 against n_layer 1: -0.5000 ± 0.0000 nats (95 %, 3 seeds): better."),
        ([2.51, 2.69, 2.61], "n_layer 2 against n_layer 1: +0.5033 ± 0.0287 nats (95 %, 3 seeds): worse."),
        ([1.6, 2.6, 2.0], "do not tell them apart."),
    ],
)
def test_what_the_numbers_support_is_a_difference_beyond_its_interval(second, said):
    (sentence,) = verdicts(table(TINY, made([2.0, 2.2, 2.1], second)))
    assert sentence.endswith(said)


def test_one_seed_says_nothing():
    (sentence,) = verdicts(table(TINY, made([2.0], [1.0])))
    assert sentence.endswith("with one seed, which says nothing.")


def test_only_seeds_that_all_variants_have_are_compared():
    rows = table(TINY, made([2.0, 2.2, 9.9], [1.5, 1.7]))
    assert [row.losses for row in rows] == [[2.0, 2.2], [1.5, 1.7]]
    assert table(TINY, []) == []


def test_the_page_holds_every_number_and_shows_text_as_text(finished):
    out, _ = finished
    records = read_records(out)
    models = {name: load_checkpoint(out / name.replace(" ", "-")) for name in TINY.variants}
    page = report(TINY, records, models)
    assert "<b>the cat" not in page.partition("</script>")[2].partition("What they write")[2].partition("<h2>")[0]
    assert "&lt;b&gt;the cat" in page
    assert "one block &lt;or&gt; two" in page
    for row in table(TINY, records):
        assert f"<td>{row.mean:.4f}</td>" in page
    assert page.count("plotly-graph-div") >= 3
    figure = loss_curves(records)
    means = [trace for trace in figure.data if trace.name]
    assert [trace.name for trace in means] == list(TINY.variants)
    losses = [each.history[-1][2] for each in records if each.variant == "n_layer 2"]
    assert means[1].y[-1] == pytest.approx(sum(losses) / 3)


def test_the_chapters_experiments_change_one_thing_and_build():
    assert list(EXPERIMENTS) == ["single-vs-multi", "n-layer", "activation", "dropout", "n-head"]
    for experiment in EXPERIMENTS.values():
        shared = PRESETS[experiment.preset].model_config(65)
        for changes in experiment.variants.values():
            changed = replace(shared, **changes).to_dict()
            assert {name for name, value in shared.to_dict().items() if changed[name] != value} <= set(changes)


def test_the_command_writes_table_and_page_and_refuses_in_a_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "activation", replace(TINY, name="activation"))
    text = tmp_path / "text.txt"
    text.write_text(TEXT, encoding="utf-8")
    command = ["compare", "activation", "--corpus", str(text), "--steps", "2", "--out", str(tmp_path / "out")]
    assert main([*command, "--seeds", "2"]) == 0
    printed = capsys.readouterr().out
    assert printed == (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert printed == markdown(EXPERIMENTS["activation"], table(TINY, read_records(tmp_path / "out")))
    assert "n_layer 2 against n_layer 1" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    kept = load_checkpoint(tmp_path / "out" / "n_layer-2")
    picture = read_picture(tmp_path / "out", "n_layer 2")
    traced = trace(kept, read_records(tmp_path / "out")[0].prompt)
    assert picture.config == kept.config
    assert (picture.ids, picture.tokens) == (traced.ids, traced.tokens)
    np.testing.assert_array_equal(picture.pattern, traced.pattern.numpy())
    assert main([*command, "--seeds", "11"]) == 1
    assert "seeds" in capsys.readouterr().err
    assert main([*command, "--seeds", "2", "--steps", "3"]) == 1
    assert "another experiment" in capsys.readouterr().err


def test_the_small_experiments_change_the_setting_and_nothing_else(tmp_path, monkeypatch):
    assert smaller(EXPERIMENTS["single-vs-multi"]) is EXPERIMENTS["single-vs-multi"]
    assert smaller(EXPERIMENTS["dropout"]) == replace(EXPERIMENTS["dropout"], preset="transformer-small")
    given = []
    monkeypatch.setattr(
        minigpt.experiments, "run_experiment", lambda experiment, *_, **__: given.append(experiment) or ()
    )
    text = tmp_path / "text.txt"
    text.write_text(TEXT, encoding="utf-8")
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(minigpt.experiment_report, "report", lambda *_: "")
    for options in ([], ["--small"]):
        assert main(["compare", "n-head", "--corpus", str(text), "--out", str(tmp_path / "out"), *options]) == 0
    assert [experiment.preset for experiment in given] == ["chapter", "transformer-small"]


@pytest.mark.parametrize("against", ["n_layer 1", "n_layer 2", None, "another"])
def test_differences_are_to_the_variant_that_is_asked_for(against):
    rows = table(TINY, made([2.0, 2.2, 2.1], [1.5, 1.8, 1.6]), against)
    reference = against if against == "n_layer 2" else "n_layer 1"
    assert [row.against for row in rows] == [reference] * 2
    expected = {"n_layer 1": [0, -7 / 15], "n_layer 2": [7 / 15, 0]}[reference]
    assert [row.difference for row in rows] == pytest.approx(expected)
    assert len(verdicts(rows)) == 1
    assert f"against {reference}" in verdicts(rows)[0]


# --- the results that come along --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_shipped_results_are_what_their_records_say(name):
    folder = ROOT / "experiments" / name
    saved, experiment = read_saved(folder), smaller(EXPERIMENTS[name])
    assert (saved.experiment, saved.preset, saved.steps) == (name, experiment.preset, 1000)
    assert saved.variants == list(experiment.variants)
    rows = table(experiment, saved.records)
    assert all(len(row.losses) >= 3 for row in rows)
    assert (folder / "table.md").read_text(encoding="utf-8") == markdown(experiment, rows)
    for variant, changes in experiment.variants.items():
        picture = read_picture(folder, variant)
        assert picture.config == replace(PRESETS[experiment.preset].model_config(65), **changes)
        assert "".join(picture.tokens) == saved.records[0].prompt
    assert (
        sum((ROOT / each).stat().st_size for each in tracked_files() if each.startswith(f"experiments/{name}/")) < 1e6
    )


def test_the_same_model_with_the_same_seed_came_to_the_same_in_every_experiment():
    same = {"n-layer": "n_layer 2", "activation": "relu", "dropout": "dropout 0.1", "n-head": "n_head 4"}
    runs = [
        {each.seed: (each.loss, each.history, each.sample) for each in saved.records if each.variant == variant}
        for name, variant in same.items()
        for saved in [read_saved(ROOT / "experiments" / name)]
    ]
    shared = set.intersection(*map(set, runs))
    assert len(shared) >= 3
    for seed in shared:
        assert all(run[seed] == runs[0][seed] for run in runs)


@pytest.mark.parametrize("readme", READMES)
def test_the_readme_tells_the_shipped_results_as_their_records_do(readme):
    told = read(readme)
    for name, experiment in EXPERIMENTS.items():
        for row in table(experiment, read_saved(ROOT / "experiments" / name).records):
            first = row.variant == row.against
            difference = "–" if first else f"{row.difference:+.3f} ± {row.margin:.3f}".replace("-", "−")
            cells = (row.variant, f"{row.parameters:,}", f"{row.mean:.3f} ± {row.spread:.3f}", difference)
            assert f"| {' | '.join(cells)} |" in told
