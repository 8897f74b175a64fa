"""The examples run as they stand and find what they say."""

import importlib
import re
from pathlib import Path

import plotly.graph_objects
import pytest

from tests.documents import ROOT, tracked_files

NAMES = sorted(
    name.removesuffix(".py").replace("/", ".")
    for name in tracked_files()
    if name.startswith("examples/") and not name.endswith("__init__.py")
)


@pytest.fixture
def shown(monkeypatch):
    figures = []
    monkeypatch.setattr(plotly.graph_objects.Figure, "show", lambda figure: figures.append(figure))
    monkeypatch.chdir(ROOT)
    return figures


def test_every_example_is_run_here():
    source = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in NAMES if f'import_module("{name}").main()' not in source] == []


def test_the_induction_head_is_found(shown, capsys):
    importlib.import_module("examples.find_the_induction_head").main()
    said = re.search(r"induction: L\dH\d has ([\d.]+); untrained, it would have ([\d.]+)", capsys.readouterr().out)
    assert float(said[1]) > 5 * float(said[2])
    assert len(shown) == 2


def test_without_it_the_name_is_not_remembered(shown, capsys):
    importlib.import_module("examples.break_the_induction_head").main()
    said = capsys.readouterr().out
    before, after = map(float, re.search(r"Without 1 of them: 'b' ([\d.]+) → ([\d.]+)", said).groups())
    assert after < before / 10
    assert re.search(r"they part at token \d+", said)
    assert len(shown) == 4
    assert "they part at new token" in shown[3].layout.title.text


def test_the_head_that_looks_back_appears_before_the_one_that_is_built_on_it(shown, capsys):
    importlib.import_module("examples.watch_it_in_training").main()
    said = re.findall(r"(\w+): L(\d)H\d appeared at step (\d+), ([\d.]+) → ([\d.]+)\n  0 ", capsys.readouterr().out)
    assert [name for name, *_ in said] == ["previous", "induction"]
    (_, below, first, *_), (_, above, second, *_) = said
    assert int(below) < int(above)
    assert 0 < int(first) < int(second)
    for *_, untrained, trained in said:
        assert float(trained) > 10 * float(untrained)
    assert [figure.layout.yaxis.title.text.split(",")[0] for figure in shown] == ["previous", "induction"]
    assert f"from step {second} on" in shown[1].layout.annotations[0].text


def test_a_logit_is_taken_apart_without_remainder(shown, capsys):
    importlib.import_module("examples.take_a_logit_apart").main()
    said = capsys.readouterr().out
    assert abs(float(re.search(r"remainder (\S+)", said)[1])) < 1e-4
    assert "after L4: 's', 0.00 bits from the end" in said
    assert len(shown) == 2
