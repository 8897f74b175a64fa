"""What the figures of causal evidence are made of: colour scales, cells, bars, axes of tokens, of layers and heads."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Shaped
from numpy import ndarray

from minigpt.figures import MOST_LABELS, label, labelled

DIVERGING = [
    (0.0, "rgb(127,59,8)"),
    (0.25, "rgb(224,130,20)"),
    (0.45, "rgb(253,218,170)"),
    (0.5, "rgb(247,247,247)"),
    (0.55, "rgb(190,210,232)"),
    (0.75, "rgb(67,113,178)"),
    (1.0, "rgb(11,29,90)"),
]
"""Orange below 0, blue above: told apart without colour vision."""
SEQUENTIAL = [(0.0, "rgb(228,235,245)"), (0.35, "rgb(110,163,216)"), (0.7, "rgb(27,74,134)"), (1.0, "rgb(11,29,69)")]
LAYOUT: dict[str, Any] = {"plot_bgcolor": "rgba(0,0,0,0)", "margin": {"l": 80, "r": 20, "t": 90, "b": 40}}
HOVER = "%{customdata}<extra></extra>"
AXIS: dict[str, Any] = {"showgrid": False, "zeroline": False, "tickmode": "array"}


@runtime_checkable
class Read(Protocol):
    """What the figures need of a `Window`."""

    @property
    def tokens(self) -> Sequence[str]:
        """The text of each token."""
        ...

    @property
    def start(self) -> int:
        """True position of the first."""
        ...


def cells(
    values: Float[ndarray, "row column"],
    hover: Sequence[Sequence[str]],
    scale: Sequence[tuple[float, str]],
    low: float,
    high: float,
    title: str,
    x: Shaped[ndarray, " column"] | None = None,
    y: Shaped[ndarray, " row"] | None = None,
) -> go.Heatmap:
    """Return cells at their indices, or at the given places."""
    return go.Heatmap(
        z=values,
        x=np.arange(values.shape[1]) if x is None else x,
        y=np.arange(values.shape[0]) if y is None else y,
        zmin=low,
        zmax=high,
        colorscale=list(scale),
        colorbar={"title": {"text": title, "side": "right"}, "thickness": 14},
        customdata=hover,
        hovertemplate=HOVER,
        hoverongaps=False,
    )


def diverging(values: Float[ndarray, "row column"], hover: Sequence[Sequence[str]], title: str) -> go.Heatmap:
    """Return cells whose colour scale has its middle at 0."""
    most = largest(np.abs(values))
    return cells(values, hover, DIVERGING, -most, most, title)


def bars(places: Shaped[ndarray, " bar"], values: Float[ndarray, " bar"], hover: Sequence[str]) -> go.Bar:
    """Return bars, blue above 0 and orange below."""
    colours = ["rgb(67,113,178)" if value >= 0 else "rgb(224,130,20)" for value in values]
    return go.Bar(x=places, y=values, marker={"color": colours}, customdata=list(hover), hovertemplate=HOVER)


def largest(values: Any) -> float:  # noqa: ANN401 (an array)
    """Return the largest finite value, or 1 where there is none above 0: a colour scale must not be empty."""
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size and finite.max() > 0 else 1.0


def square(figure: go.Figure, tokens: Sequence[str], start: int, title: str) -> go.Figure:
    """Give a figure of queries and keys its axes."""
    token_axis(figure, "x", tokens, start, "key →")
    token_axis(figure, "y", tokens, start, "query ↓")
    figure.update_xaxes(side="top", constrain="domain")
    figure.update_yaxes(autorange="reversed", scaleanchor="x", constrain="domain")
    return figure.update_layout(title=title, width=740, height=740, **LAYOUT)


def token_axis(figure: go.Figure, axis: str, tokens: Sequence[str], start: int, title: str) -> None:
    """Label a numeric axis with some of the tokens and their positions."""
    shown = labelled(start, start + len(tokens) - 1, MOST_LABELS)
    between = "<br>" if axis == "x" else " "
    texts = [f"{label(tokens[place - start], 6)}{between}{place}" for place in shown]
    figure.update_layout({f"{axis}axis": {"title": title, "tickvals": shown, "ticktext": texts, **AXIS}})


def layers_by_heads(figure: go.Figure, n_layer: int, columns: Sequence[str]) -> None:
    """Give a figure of layers and heads its axes."""
    figure.update_xaxes(tickvals=list(range(len(columns))), ticktext=list(columns), **AXIS)
    rows = [f"L{layer}" for layer in range(n_layer)]
    figure.update_yaxes(tickvals=list(range(n_layer)), ticktext=rows, autorange="reversed", **AXIS)
    figure.update_layout(width=70 * len(columns) + 240, height=60 * n_layer + 170, **LAYOUT)


def check_name(name: str, choices: Sequence[str]) -> None:
    """Raise ValueError unless the name is one of the choices."""
    if name not in choices:
        raise ValueError(f"expected one of {', '.join(choices)}, got {name}")
