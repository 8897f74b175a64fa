from types import SimpleNamespace

import numpy as np
import pytest

from minigpt.figures import attention_grid, attention_heatmap, glyph, labelled

AWKWARD = [
    "banana",
    "314159",
    "2024-01",
    "<b>x</b>",
    "<br>",
    "&amp;",
    "$x$",
    "%{y}",
    "</script>",
    "안녕하세요",
    "하",
    "👨‍👩‍👧",
    "שלום",
]


def traced(tokens, n_layer=2, n_head=3, start=0):
    """Random attention over tokens, every row a distribution over its past."""
    n_token = len(tokens)
    scores = np.random.default_rng(7).normal(size=(n_layer, n_head, n_token, n_token)) * 2
    pattern = np.exp(scores) * np.tri(n_token)
    pattern /= pattern.sum(-1, keepdims=True)
    return SimpleNamespace(tokens=tokens, start=start, pattern=pattern.astype(np.float32))


def one_trace(tokens, start=0):
    figure = attention_heatmap(traced(tokens, start=start), layer=1, head=2)
    return figure, figure.data[0]


def as_read(text):
    """What Plotly shows for an escaped text."""
    for character in "&<>$":
        text = text.replace(f"&#{ord(character)};", character)
    return text


def test_banana_keeps_six_rows_and_six_columns():
    figure, heatmap = one_trace(list("banana"))
    assert heatmap.z.shape == (6, 6)
    assert list(heatmap.x) == list(heatmap.y) == [0, 1, 2, 3, 4, 5]
    assert [text.split("<br>")[0] for text in figure.layout.xaxis.ticktext] == list("banana")


def test_axes_are_numbers_at_true_positions_whatever_the_tokens_are():
    figure, heatmap = one_trace(["314159", "2024-01", "7"], start=40)
    assert heatmap.x.dtype.kind == "f"
    assert list(heatmap.x) == list(heatmap.y) == [40, 41, 42]
    assert list(figure.layout.xaxis.tickvals) == list(figure.layout.yaxis.tickvals) == [40, 41, 42]
    assert list(figure.layout.yaxis.ticktext) == ["40 314159", "41 2024-01", "42 7"]


def test_queries_run_downwards():
    figure, _ = one_trace(list("banana"), start=3)
    assert figure.layout.yaxis.range == (8.5, 2.5)
    assert figure.layout.xaxis.range == (2.5, 8.5)


@pytest.mark.parametrize("token", AWKWARD)
def test_every_token_is_read_literally_on_axes_and_in_hover(token):
    figure, heatmap = one_trace([token, "b"])
    column, row = figure.layout.xaxis.ticktext[0].removesuffix("<br>0"), figure.layout.yaxis.ticktext[0]
    assert as_read(row) == f"0 {token if len(token) <= 8 else token[:7] + '…'}"
    assert as_read(column) == (token if len(token) <= 4 else token[:3] + "…")
    assert as_read(heatmap.customdata[1][0]).startswith(f"query 'b' (1) attends to key '{token}' (0): 0.")
    for text in (row, column, heatmap.customdata[1][0]):
        assert not set("<>$") & set(text)
        assert "&amp;" not in text


def test_hover_says_who_attends_to_whom_and_how_much():
    trace = traced(list("with"), start=9)
    trace.pattern[1, 2, 3, 0] = 0.31449
    heatmap = attention_heatmap(trace, layer=1, head=2).data[0]
    assert heatmap.customdata[3][0] == "query 'h' (12) attends to key 'w' (9): 0.314"
    assert heatmap.hovertemplate == "%{customdata}<extra></extra>"


def test_a_long_token_is_short_on_the_axis_and_whole_in_hover():
    figure, heatmap = one_trace(["x" * 80, "y"])
    assert figure.layout.yaxis.ticktext[0] == f"0 {'x' * 7}…"
    assert "x" * 80 in heatmap.customdata[1][0]


def test_the_future_has_no_colour_and_no_weight():
    figure, heatmap = one_trace(list("abcde"))
    future = ~np.tri(5, dtype=bool)
    assert (heatmap.z[future] < 0).all()
    assert (heatmap.z[~future] >= 0).all()
    axis = figure.layout.coloraxis
    assert axis.cmin == pytest.approx(float(heatmap.z[0, 1]))
    assert axis.cmax == 1
    scale = axis.colorscale
    zero = -axis.cmin / (axis.cmax - axis.cmin)
    assert [colour for place, colour in scale if place <= zero][:2] == ["rgba(0,0,0,0)"] * 2
    assert scale[2] == (pytest.approx(zero), "rgb(228,235,245)")
    assert "lies in the future of query 'a' (0)" in heatmap.customdata[0][4]


def test_weights_are_drawn_as_they_are():
    trace = traced(list("abcdef"))
    drawn = attention_heatmap(trace, layer=0, head=1).data[0].z
    past = np.tri(6, dtype=bool)
    assert (drawn[past] == trace.pattern[0, 1][past]).all()


@pytest.mark.parametrize("n_token", [1, 7, 16, 17, 64, 129, 256])
def test_an_axis_has_at_most_sixteen_labels(n_token):
    figure, _ = one_trace(["a"] * n_token, start=11)
    for axis in (figure.layout.xaxis, figure.layout.yaxis):
        assert 1 <= len(axis.tickvals) == len(axis.ticktext) <= 16


def test_labels_stand_at_round_positions():
    assert labelled(0, 5, 16) == [0, 1, 2, 3, 4, 5]
    assert labelled(37, 292, 16) == [40, 60, 80, 100, 120, 140, 160, 180, 200, 220, 240, 260, 280]


def test_a_head_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"head from 0 to 2, got 1 and 3"):
        attention_heatmap(traced(list("ab")), layer=1, head=3)
    with pytest.raises(ValueError, match=r"layer from 0 to 1"):
        attention_heatmap(traced(list("ab")), layer=-1, head=0)


def test_the_grid_shows_every_head_once_under_its_name():
    trace = traced(list("banana"), n_layer=4, n_head=3, start=2)
    figure = attention_grid(trace)
    assert len(figure.data) == 12
    assert [title.text for title in figure.layout.annotations][:4] == ["L0H0", "L0H1", "L0H2", "L1H0"]
    drawn = figure.data[3 * 2 + 1]
    past = np.tri(6, dtype=bool)
    assert (drawn.z[past] == trace.pattern[2, 1][past]).all()
    assert drawn.customdata[5][1].startswith("L2H1 · query 'a' (7) attends to key 'a' (3): 0.")
    assert figure.layout.xaxis.matches is None
    assert {figure.layout[f"xaxis{index}"].matches for index in range(2, 13)} == {"x"}


def test_the_grid_of_a_long_text_shows_the_largest_weight_of_each_block():
    trace = traced(["a"] * 130, n_layer=1, n_head=2)
    trace.pattern[0, 1, 127, 8] = 0.75
    drawn = attention_grid(trace).data[1]
    assert drawn.z.shape == (44, 44)
    assert drawn.z[42, 2] == 0.75
    assert drawn.customdata[42][2] == "L0H1 · query 'a' … 'a' (126–128) attends to key 'a' … 'a' (6–8): at most 0.750"
    assert drawn.customdata[43][0].startswith("L0H1 · query 'a' (129) attends to key 'a' … 'a' (0–2)")
    assert (drawn.z[~np.tri(44, dtype=bool)] < 0).all()


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (" ", "␣"),
        ("\n", "⏎"),
        ("\t", "⇥"),
        ("\r", "␍"),
        ("\u00a0", "⍽"),
        ("", "∅"),
        (" the", "␣the"),
        ("\x07", "␇"),
        ("\u200b", "U+200B"),
        ("\u200d", "U+200D"),
        ("\ufe0f", "U+FE0F"),
        ("\u3164", "U+3164"),
        ("\u0301", "◌\u0301"),
        ("👨‍👩‍👧", "👨‍👩‍👧"),
        ("❤️", "❤️"),
        ("한", "한"),
        ("שלום", "שלום"),
    ],
)
def test_no_token_is_invisible(token, shown):
    assert glyph(token) == shown
