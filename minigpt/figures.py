"""Attention as Plotly figures, for notebooks: the chosen head large, or all heads side by side.

Arrays and strings in, figures out; nothing here knows a model. Labels are exact for any text: axes are numeric (Plotly
would merge repeated tokens of a category axis, and read digits as numbers or dates), tokens stand only in tick labels
and hover texts, with whatever Plotly would interpret escaped and whatever cannot be seen replaced by a visible sign.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import count, product
from typing import Any, Protocol, runtime_checkable

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

MOST_LABELS = 16
"""Labels on an axis; more of them dominate the time that a redraw takes."""
MOST_GRID_LABELS = 6
"""Labels on an axis of the grid, where every head has two."""
GRID_SIDE = 64
"""Most cells on one side of a head in the grid; longer texts are shown as the largest weight of each block."""
GLYPHS = {" ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "\u007f": "␡"}
EMPTY = "∅"

# One hue, lightness changing in one direction: readable without colour vision and in grey. As in the viewer.
_ANCHORS = ((228, 235, 245), (179, 204, 232), (110, 163, 216), (51, 119, 186), (27, 74, 134), (11, 29, 69))
_STOPS = 24
_FUTURE = -0.01
"""The value of cells in the future: below every weight, where the colour scale is transparent."""
_INVISIBLE = {"Cc", "Cf", "Zs", "Zl", "Zp", "Cs", "Co"}
# Unicode's Default_Ignorable_Code_Point beyond those categories.
_IGNORABLE = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2065, 0x2065),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0xE0000, 0xE0FFF),
)
_JOINERS = ((0x200C, 0x200D), (0xFE00, 0xFE0F), (0xE0020, 0xE007F))


@runtime_checkable
class Traced(Protocol):
    """What the figures need of a `Trace`."""

    @property
    def tokens(self) -> list[str]:
        """The text of each token in the window."""
        ...

    @property
    def start(self) -> int:
        """The true position of the window's first token."""
        ...

    @property
    def pattern(self) -> Any:  # noqa: ANN401 (a tensor or an array)
        """Attention weights (layer, head, query, key)."""
        ...


def check_head(shape: Sequence[int], layer: int, head: int) -> None:
    """Raise ValueError if an array (layer, head, …) of this shape holds no such head."""
    n_layer, n_head = shape[:2]
    if not (0 <= layer < n_layer and 0 <= head < n_head):
        raise ValueError(
            f"expected a layer from 0 to {n_layer - 1} and a head from 0 to {n_head - 1}, got {layer} and {head}"
        )


def attention_heatmap(trace: Traced, layer: int, head: int) -> go.Figure:
    """Draw the attention of one head: queries downwards, keys to the right, colours from 0 to 1.

    Hovering over a cell reads as `query 'w' (12) attends to key 'h' (9): 0.314`; the numbers in brackets are true
    positions in the text. The future stays empty.

    Args:
        trace: What `minigpt.trace` returned.
        layer: From 0.
        head: From 0.

    Raises:
        ValueError: If there is no such head.
    """
    pattern = np.asarray(trace.pattern)
    check_head(pattern.shape, layer, head)
    figure = go.Figure(_heatmap(pattern[layer, head], trace.tokens, trace.start, prefix=""))
    figure.update_layout(
        title={"text": f"Layer {layer} · Head {head} (L{layer}H{head})"},
        coloraxis=colour_axis(),
        width=720,
        height=720,
        **_BACKGROUND,
    )
    limits = [trace.start - 0.5, trace.start + len(trace.tokens) - 0.5]
    shown = labelled(trace.start, trace.start + len(trace.tokens) - 1, MOST_LABELS)
    texts = [trace.tokens[position - trace.start] for position in shown]
    figure.update_xaxes(
        title="key →",
        side="top",
        range=limits,
        tickvals=shown,
        ticktext=[f"{label(text, 4)}<br>{position}" for text, position in zip(texts, shown, strict=True)],
        **_AXIS,
    )
    figure.update_yaxes(
        title="query ↓",
        range=limits[::-1],
        tickvals=shown,
        ticktext=[f"{position} {label(text, 8)}" for text, position in zip(texts, shown, strict=True)],
        scaleanchor="x",
        **_AXIS,
    )
    return figure


def attention_grid(trace: Traced) -> go.Figure:
    """Draw all heads side by side, a row for each layer; zooming into one zooms into all.

    Texts longer than 64 tokens are shown in blocks, each with the largest weight in it, and the hover text says so.

    Args:
        trace: What `minigpt.trace` returned.
    """
    pattern = np.asarray(trace.pattern)
    n_layer, n_head, n_token, _ = pattern.shape
    heads = list(product(range(n_layer), range(n_head)))
    figure = go.Figure().set_subplots(
        rows=n_layer,
        cols=n_head,
        subplot_titles=[f"L{layer}H{head}" for layer, head in heads],
        horizontal_spacing=0.1 / n_head,
        vertical_spacing=0.25 / n_layer,
    )
    for layer, head in heads:
        trace_of_head = _heatmap(pattern[layer, head], trace.tokens, trace.start, prefix=f"L{layer}H{head} · ")
        figure.add_trace(trace_of_head, row=layer + 1, col=head + 1)
    figure.update_layout(coloraxis=colour_axis(), width=150 * n_head + 120, height=165 * n_layer + 90, **_BACKGROUND)
    limits = [trace.start - 0.5, trace.start + n_token - 0.5]
    shown = labelled(trace.start, trace.start + n_token - 1, MOST_GRID_LABELS)
    labels = [label(trace.tokens[position - trace.start], 4) for position in shown]
    axis: dict[str, Any] = {"tickvals": shown, "ticktext": labels, "tickfont": {"size": 9}, **_AXIS}
    figure.update_xaxes(range=limits, matches="x", **axis)
    figure.update_yaxes(range=limits[::-1], matches="y", **axis)
    figure.update_layout(xaxis={"matches": None}, yaxis={"matches": None})
    return figure


_AXIS: dict[str, Any] = {"constrain": "domain", "showgrid": False, "zeroline": False, "tickmode": "array"}
_BACKGROUND: dict[str, Any] = {"plot_bgcolor": "rgba(0,0,0,0)", "margin": {"l": 70, "r": 20, "t": 90, "b": 20}}


def _heatmap(weights: Float[ndarray, "query key"], tokens: Sequence[str], start: int, *, prefix: str) -> go.Heatmap:
    block = 1 if not prefix else -(-len(tokens) // GRID_SIDE)
    side = -(-len(tokens) // block)
    padding = side * block - len(tokens)
    pooled = np.pad(weights, ((0, padding), (0, padding))).reshape(side, block, side, block).max(axis=(1, 3))
    z = np.where(np.tri(side, dtype=bool), pooled, _FUTURE).astype(np.float32)
    centres = start + np.arange(side) * block + (block - 1) / 2
    names = [
        _name(tokens, start, first * block, min((first + 1) * block, len(tokens)) - 1, prefix) for first in range(side)
    ]
    at_most = "" if block == 1 else "at most "
    hover = [
        [
            f"{prefix}query {names[query]} attends to key {names[key]}: {at_most}{pooled[query, key]:.3f}"
            if key <= query
            else f"{prefix}key {names[key]} lies in the future of query {names[query]}"
            for key in range(side)
        ]
        for query in range(side)
    ]
    return go.Heatmap(
        z=z, x=centres, y=centres, coloraxis="coloraxis", customdata=hover, hovertemplate="%{customdata}<extra></extra>"
    )


def _name(tokens: Sequence[str], start: int, first: int, last: int, prefix: str) -> str:
    """Return a token with its true position, or the first and last of a block; shorter where many are on one figure."""
    most = 12 if prefix else None
    if first == last:
        return f"'{label(tokens[first], most)}' ({start + first})"
    return f"'{label(tokens[first], most)}' … '{label(tokens[last], most)}' ({start + first}–{start + last})"


def colour_axis() -> dict[str, Any]:
    """Return the colour scale of every figure: weights from 0 to 1, coloured by their square root, nothing below 0."""
    floor = -_FUTURE / (1 - _FUTURE)
    stops: list[tuple[float, str]] = [(0.0, "rgba(0,0,0,0)"), (floor, "rgba(0,0,0,0)")]
    for stop in range(_STOPS + 1):
        shade = stop / _STOPS
        stops.append((floor + (1 - floor) * shade**2, _blend(shade)))
    return {
        "cmin": _FUTURE,
        "cmax": 1,
        "colorscale": stops,
        "colorbar": {"title": {"text": "weight"}, "tickvals": [0, 0.25, 0.5, 0.75, 1], "thickness": 14},
    }


def _blend(shade: float) -> str:
    place = shade * (len(_ANCHORS) - 1)
    left = min(int(place), len(_ANCHORS) - 2)
    mixed = (
        round(low + (high - low) * (place - left)) for low, high in zip(_ANCHORS[left], _ANCHORS[left + 1], strict=True)
    )
    return f"rgb({','.join(map(str, mixed))})"


def labelled(first: int, last: int, most: int) -> list[int]:
    """Return round positions from `first` to `last`, at most `most` of them, a step of 1, 2, 5, 10, 20, … apart."""
    for step in _round_steps():
        shown = list(range(-(-first // step) * step, last + 1, step))
        if len(shown) <= most:
            return shown
    return []


def _round_steps() -> Iterator[int]:
    for power in count():
        yield from (10**power, 2 * 10**power, 5 * 10**power)


def glyph(token: str) -> str:
    """Return a token as it is shown: nothing in it is invisible, and it never runs into its neighbours.

    Blank, newline, tab and the like become ␣ ⏎ ⇥, an empty token ∅, other invisible characters their code point.
    Joiners and variation selectors stay inside a longer token (they shape what stands before them).
    """
    if not token:
        return EMPTY
    shown = ""
    for character in token:
        shapes = bool(shown) and _lies_in(character, _JOINERS)
        shown += _sign(character) if _is_invisible(character) and not shapes else character
    return f"◌{shown}" if unicodedata.category(shown[0]).startswith("M") else shown


def label(token: str, most: int | None = None) -> str:
    """Return a token's glyphs, cut to `most` characters if given, with what Plotly would interpret escaped."""
    shown = glyph(token)
    return escape(shown if most is None or len(shown) <= most else f"{shown[: most - 1]}…")


def escape(text: str) -> str:
    """Return text that Plotly shows as it is: it reads a few tags, entities and formulas in every label."""
    return "".join(f"&#{ord(character)};" if character in "&<>$" else character for character in text)


def _sign(character: str) -> str:
    if character in GLYPHS:
        return GLYPHS[character]
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else f"U+{code:04X}"


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) in _INVISIBLE or _lies_in(character, _IGNORABLE)


def _lies_in(character: str, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= ord(character) <= last for first, last in ranges)
