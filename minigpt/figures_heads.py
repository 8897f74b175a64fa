"""Which head does what, as Plotly figures: scores of heads, on a text or a probe, and over the steps of a training run.

Arrays and strings in, figures out, as in `minigpt.figures`; nothing here knows a model.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import plotly.graph_objects as go

from minigpt.figures_parts import AXIS, HOVER, LAYOUT, SEQUENTIAL, cells, check_name, largest, layers_by_heads

UNITS = {"entropy": "bits", "distance": "tokens"}
LINEAR = 10
"""The axis of steps is linear below about this step, and logarithmic above it: step 0 has a place on it."""


@runtime_checkable
class ScoredHeads(Protocol):
    """What the figures need of a `HeadTable`."""

    @property
    def scores(self) -> Mapping[str, Any]:
        """Each (layer, head)."""
        ...

    @property
    def baseline(self) -> Mapping[str, Any]:
        """The same of an untrained model."""
        ...


def head_scatter(table: ScoredHeads, x: str, y: str) -> go.Figure:
    """Draw every head by two of its scores, beside the heads of the untrained model.

    Args:
        table: What `find_heads` or `probe_heads` returned.
        x: A score.
        y: Another.

    Raises:
        ValueError: If there is no such score.
    """
    for name in (x, y):
        check_name(name, list(table.scores))
    figure = go.Figure()
    for scores, title, colour, symbol in (
        (table.baseline, "untrained", "rgb(224,130,20)", "circle-open"),
        (table.scores, "this model", "rgb(51,119,186)", "circle"),
    ):
        across, up = (np.asarray(scores[name]) for name in (x, y))
        names = _head_names(*across.shape)
        figure.add_scatter(
            x=across.ravel(),
            y=up.ravel(),
            mode="markers+text" if title == "this model" else "markers",
            text=names,
            textposition="top center",
            name=title,
            marker={"color": colour, "size": 10, "symbol": symbol},
            customdata=[
                f"{name}, {title}: {x} {first:.3f}, {y} {second:.3f}"
                for name, first, second in zip(names, across.ravel(), up.ravel(), strict=True)
            ],
            hovertemplate=HOVER,
        )
    figure.update_layout(width=720, height=560, xaxis_title=_score_title(x), yaxis_title=_score_title(y), **LAYOUT)
    return figure


def score_map(table: ScoredHeads, name: str) -> go.Figure:
    """Draw one score of every head as layer × head; the untrained model's is in the hover text.

    Args:
        table: What `find_heads` or `probe_heads` returned.
        name: One of its scores.

    Raises:
        ValueError: If there is no such score.
    """
    check_name(name, list(table.scores))
    values, baseline = np.asarray(table.scores[name]), np.asarray(table.baseline[name])
    hover = [
        [
            f"L{layer}H{head}: {values[layer, head]:.3f} (untrained {baseline[layer, head]:.3f})"
            for head in range(values.shape[1])
        ]
        for layer in range(values.shape[0])
    ]
    most = 1.0 if name not in UNITS else largest(values)
    figure = go.Figure(cells(values, hover, SEQUENTIAL, 0.0, most, _score_title(name)))
    layers_by_heads(figure, values.shape[0], [f"H{head}" for head in range(values.shape[1])])
    return figure.update_layout(title=f"{_score_title(name)} of every head")


@runtime_checkable
class Developed(Protocol):
    """What the figures need of a `Development`."""

    @property
    def steps(self) -> Sequence[int]:
        """Steps at which the heads were scored, ascending."""
        ...

    @property
    def scores(self) -> Mapping[str, Any]:
        """Each (step, layer, head)."""
        ...

    def appeared(self, name: str, layer: int, head: int) -> int | None:
        """Return the step from which on a head has the score; None if it never came to have it."""
        ...


def development_curves(development: Developed, score: str = "induction") -> go.Figure:
    """Draw one score of every head over the steps of a training run, the head that has most of it in the end on top.

    A dotted line stands at the step where that head appeared, as `Development.appeared` defines it. Steps lie at
    log₁₀(step + `LINEAR`), so that step 0 has a place.

    Args:
        development: What `head_development` returned.
        score: One of its scores.

    Raises:
        ValueError: If there is no such score, or no step.
    """
    if not development.steps:
        raise ValueError("expected the scores of at least one snapshot, got none")
    check_name(score, list(development.scores))
    values = np.asarray(development.scores[score])
    n_layer, n_head = values.shape[1:]
    last, names = np.nan_to_num(values[-1].ravel(), nan=-np.inf).tolist(), _head_names(n_layer, n_head)
    order = sorted(range(len(names)), key=last.__getitem__)
    figure = go.Figure()
    for index in order:
        strongest = index == order[-1]
        figure.add_scatter(
            x=_step_places(development.steps),
            y=values.reshape(len(values), -1)[:, index],
            mode="lines+markers+text" if strongest else "lines+markers",
            name=names[index],
            text=[*[""] * (len(values) - 1), names[index]] if strongest else None,
            textposition="top center",
            showlegend=False,
            line={"color": "rgb(27,74,134)" if strongest else "rgb(150,160,175)", "width": 3 if strongest else 1},
            customdata=[
                f"{names[index]}, step {step:,}: {score} {value:.3f}"
                for step, value in zip(development.steps, values.reshape(len(values), -1)[:, index], strict=True)
            ],
            hovertemplate=HOVER,
        )
    _mark_appearance(figure, names[order[-1]], development.appeared(score, *divmod(order[-1], n_head)))
    texts = [f"{step:,}" for step in development.steps]
    figure.update_xaxes(title="step", tickvals=_step_places(development.steps), ticktext=texts, **AXIS)
    figure.update_yaxes(title=_score_title(score), range=None if score in UNITS else (0, 1), zeroline=False)
    title = f"{_score_title(score)} of every head while the model learns"
    return figure.update_layout(title=title, width=820, height=480, **LAYOUT)


def _mark_appearance(figure: go.Figure, name: str, step: int | None) -> None:
    if step is not None:
        said = f"{name} from step {step:,} on"
        figure.add_vline(
            x=_step_places([step])[0], line={"dash": "dot", "width": 1}, annotation={"text": said, "xanchor": "right"}
        )


def _step_places(steps: Sequence[int]) -> list[float]:
    return [float(place) for place in np.log10(np.asarray(steps) + LINEAR)]


def _head_names(n_layer: int, n_head: int) -> list[str]:
    return [f"L{layer}H{head}" for layer in range(n_layer) for head in range(n_head)]


def _score_title(name: str) -> str:
    return f"{name}, {UNITS[name]}" if name in UNITS else f"{name}, share of attention"
