"""Which parts matter, as Plotly figures: effects of removing them, two continuations, the terms of a logit.

Arrays and strings in, figures out, as in `minigpt.figures`; nothing here knows a model. What can be positive and
negative has a diverging colour scale with its middle at 0 and both ends equally far from it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import plotly.graph_objects as go

from minigpt.figures import label
from minigpt.figures_parts import (
    AXIS,
    LAYOUT,
    SEQUENTIAL,
    Read,
    bars,
    cells,
    check_name,
    diverging,
    layers_by_heads,
    token_axis,
)

EFFECTS = {
    "probability": "change of probability",
    "logit": "change of centred logit",
    "kl": "KL divergence, bits",
    "loss": "change of loss, nats per token",
}


@runtime_checkable
class Swept(Protocol):
    """What the figures need of a `Sweep`."""

    @property
    def token(self) -> str:
        """The chosen token."""
        ...

    @property
    def position(self) -> int:
        """Where it is predicted."""
        ...

    @property
    def mlps(self) -> Any:  # noqa: ANN401 (an `Effect`)
        """The effects of the feed-forward networks."""
        ...

    def head_map(self, name: str) -> Any:  # noqa: ANN401 (a tensor or an array)
        """One effect of every head (layer, head)."""
        ...


def sweep_map(sweep: Swept, effect: str = "probability") -> go.Figure:
    """Draw what removing each head, and each feed-forward network in the last column, does.

    Args:
        sweep: What `sweep` returned.
        effect: `"probability"`, `"logit"`, `"kl"` or `"loss"`.

    Raises:
        ValueError: If there is no such effect.
    """
    check_name(effect, list(EFFECTS))
    heads = np.asarray(sweep.head_map(effect))
    mlps = np.asarray(sweep.mlps.named(effect))
    columns = [f"H{head}" for head in range(heads.shape[1])]
    values = heads
    if len(mlps):
        values = np.column_stack((heads, mlps))
        columns.append("MLP")
    hover = [
        [
            f"without L{layer}{'' if name[0] == 'H' else ' '}{name}: {value:+.4f}"
            for name, value in zip(columns, row, strict=True)
        ]
        for layer, row in enumerate(values)
    ]
    figure = go.Figure(diverging(values, hover, EFFECTS[effect]))
    layers_by_heads(figure, len(values), columns)
    what = "" if effect == "loss" else f" of '{label(sweep.token)}' after position {sweep.position}"
    return figure.update_layout(title=f"{EFFECTS[effect].capitalize()}{what}, each part removed by itself")


@runtime_checkable
class SweptEdges(Protocol):
    """What the figures need of an `EdgeSweep`."""

    @property
    def window(self) -> Read:
        """What was read."""
        ...

    @property
    def layer(self) -> int:
        """The head's layer."""
        ...

    @property
    def head(self) -> int:
        """The head."""
        ...

    @property
    def query(self) -> int:
        """True position of the query."""
        ...

    @property
    def weight(self) -> Any:  # noqa: ANN401 (a tensor or an array)
        """Attention to each key."""
        ...

    @property
    def keys(self) -> Any:  # noqa: ANN401 (an `Effect`)
        """The effects of hiding each key."""
        ...


def edge_bars(edges: SweptEdges, effect: str = "probability") -> go.Figure:
    """Draw what hiding each key from one query does; the attention weight is in the hover text.

    Args:
        edges: What `edge_sweep` returned.
        effect: `"probability"`, `"logit"`, `"kl"` or `"loss"`.

    Raises:
        ValueError: If there is no such effect.
    """
    check_name(effect, list(EFFECTS))
    values, weights = np.asarray(edges.keys.named(effect)), np.asarray(edges.weight)
    tokens, start = edges.window.tokens, edges.window.start
    hover = [
        f"without key '{label(tokens[key])}' ({start + key}), weight {weight:.3f}: {value:+.4f}"
        for key, (weight, value) in enumerate(zip(weights, values, strict=True))
    ]
    figure = go.Figure(bars(start + np.arange(len(values)), values, hover))
    token_axis(figure, "x", tokens[: len(values)], start, "key →")
    name = f"L{edges.layer}H{edges.head}"
    query = f"'{label(tokens[edges.query - start])}' ({edges.query})"
    figure.update_layout(title=f"{name}: each key hidden from query {query}", width=900, height=420, **LAYOUT)
    return figure.update_yaxes(title=EFFECTS[effect])


@runtime_checkable
class Changed(Protocol):
    """What the figures need of a `WhatIf`."""

    @property
    def tokens(self) -> Sequence[str]:
        """The text of each token."""
        ...

    @property
    def start(self) -> int:
        """True position of the first."""
        ...

    @property
    def kl(self) -> Any:  # noqa: ANN401 (a tensor or an array)
        """KL divergence at each position, in bits."""
        ...

    @property
    def loss_before(self) -> float:
        """In nats per token."""
        ...

    @property
    def loss_after(self) -> float:
        """In nats per token."""
        ...


def kl_bars(found: Changed) -> go.Figure:
    """Draw how far an intervention moved the prediction after each position, in bits.

    Args:
        found: What `what_if` returned.
    """
    values = np.asarray(found.kl)
    hover = [
        f"after '{label(token)}' ({position}): {value:.4f} bits"
        for position, (token, value) in enumerate(zip(found.tokens, values, strict=True), start=found.start)
    ]
    figure = go.Figure(bars(found.start + np.arange(len(values)), values, hover))
    token_axis(figure, "x", found.tokens, found.start, "position →")
    title = f"Loss {found.loss_before:.4f} → {found.loss_after:.4f} nats per token"
    figure.update_layout(title=title, width=900, height=420, **LAYOUT)
    return figure.update_yaxes(title="KL divergence, bits")


@runtime_checkable
class Continued(Protocol):
    """What the figures need of `TwoContinuations`."""

    @property
    def before(self) -> Sequence[str]:
        """The new tokens of the model as it is."""
        ...

    @property
    def after(self) -> Sequence[str]:
        """Those under an intervention."""
        ...

    @property
    def before_probability(self) -> Sequence[float]:
        """What the model gave each."""
        ...

    @property
    def after_probability(self) -> Sequence[float]:
        """What the changed model gave each."""
        ...

    @property
    def first_difference(self) -> int | None:
        """Where they part."""
        ...


def continuation_map(two: Continued) -> go.Figure:
    """Draw two continuations below each other: a cell per new token with the token in it, its colour its probability.

    A line stands where they part.

    Args:
        two: What `compare_continuations` returned.
    """
    rows = ("as it is", two.before, two.before_probability), ("changed", two.after, two.after_probability)
    hover = [
        [
            f"{name}, new token {place} '{label(token)}': {value:.3f}"
            for place, (token, value) in enumerate(zip(tokens, values, strict=True))
        ]
        for name, tokens, values in rows
    ]
    values = np.array([values for *_, values in rows], dtype=float).reshape(2, -1)
    drawn = cells(values, hover, SEQUENTIAL, 0.0, 1.0, "probability")
    drawn.text = [[label(token, 4) for token in tokens] for _, tokens, _ in rows]
    drawn.texttemplate = "%{text}"
    figure = go.Figure(drawn)
    figure.update_xaxes(title="new token →", showgrid=False, zeroline=False)
    figure.update_yaxes(tickvals=[0, 1], ticktext=[name for name, *_ in rows], autorange="reversed", **AXIS)
    parting = "Both continuations are the same"
    if two.first_difference is not None:
        figure.add_vline(x=two.first_difference - 0.5, line={"color": "rgb(224,130,20)", "width": 3})
        parting = f"The same random numbers; they part at new token {two.first_difference}"
    return figure.update_layout(title=parting, width=max(480, 26 * len(two.before) + 200), height=260, **LAYOUT)


@runtime_checkable
class SummedUp(Protocol):
    """What the figures need of `LogitShares`."""

    @property
    def token(self) -> str:
        """The token whose logit it is."""
        ...

    @property
    def position(self) -> int:
        """True position after which it stands."""
        ...

    @property
    def logit(self) -> float:
        """The logit."""
        ...

    @property
    def remainder(self) -> float:
        """What the sum lacks."""
        ...

    def shares(self) -> Mapping[str, float]:
        """Every term of the sum."""
        ...


def logit_bars(shares: SummedUp) -> go.Figure:
    """Draw the terms that one logit is the sum of; the title says what they sum to and what is left.

    Args:
        shares: What `direct_logits` returned.
    """
    terms = shares.shares()
    names, values = list(terms), np.array(list(terms.values()))
    places = np.arange(len(names))
    figure = go.Figure(bars(places, values, [f"{name}: {value:+.4f}" for name, value in terms.items()]))
    figure.update_xaxes(tickvals=places, ticktext=names, **AXIS)
    title = f"Logit of '{label(shares.token)}' after position {shares.position}: {shares.logit:.4f}"
    figure.update_layout(title=f"{title}, remainder {shares.remainder:.0e}", width=1000, height=460, **LAYOUT)
    return figure.update_yaxes(title="share of the logit")
