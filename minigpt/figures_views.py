"""What else can stand on the axes of a heatmap, as Plotly figures: lens, circuits, contributions, differences.

Arrays and strings in, figures out, as in `minigpt.figures`; nothing here knows a model. What can be positive and
negative has a diverging colour scale with its middle at 0 and both ends equally far from it; what is missing is empty.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import plotly.graph_objects as go

from minigpt.figures import check_head, escape, glyph, label
from minigpt.figures_parts import (
    AXIS,
    LAYOUT,
    SEQUENTIAL,
    Read,
    cells,
    check_name,
    diverging,
    largest,
    square,
    token_axis,
)


@runtime_checkable
class Lensed(Protocol):
    """What the figures need of a `Lens`."""

    @property
    def window(self) -> Read:
        """What was read."""
        ...

    @property
    def top_tokens(self) -> Sequence[Sequence[str]]:
        """The likeliest token at each point and position."""
        ...

    @property
    def top_probability(self) -> Any:  # noqa: ANN401 (a tensor or an array)
        """Its probability."""
        ...

    @property
    def final_probability(self) -> Any:  # noqa: ANN401 (a tensor or an array)
        """The probability of what the model says in the end."""
        ...

    @property
    def kl(self) -> Any:  # noqa: ANN401 (a tensor or an array)
        """KL divergence to the end, in bits."""
        ...


def lens_map(lens: Lensed, show: str = "final_probability") -> go.Figure:
    """Draw what the model would say after each layer: a cell per point and position, its likeliest token written in it.

    Args:
        lens: What `logit_lens` returned.
        show: What the colour means: `"final_probability"`, `"top_probability"` or `"kl"`.

    Raises:
        ValueError: If it is none of these.
    """
    titles = {
        "final_probability": "probability of what it says in the end",
        "top_probability": "probability of its likeliest token",
        "kl": "KL divergence to the end, bits",
    }
    check_name(show, list(titles))
    said, final, kl = (np.asarray(each) for each in (lens.top_probability, lens.final_probability, lens.kl))
    values = kl if show == "kl" else said if show == "top_probability" else final
    tokens, start = lens.window.tokens, lens.window.start
    points, time = len(lens.top_tokens), len(tokens)
    names = ["embeddings", *(f"after L{layer}" for layer in range(points - 1))]
    hover = [
        [
            f"{names[point]}, after '{label(tokens[place])}' ({start + place}): "
            f"says '{label(lens.top_tokens[point][place])}' {said[point, place]:.3f}; "
            f"final token {final[point, place]:.3f}, {kl[point, place]:.2f} bits from the end"
            for place in range(time)
        ]
        for point in range(points)
    ]
    most = largest(values) if show == "kl" else 1.0
    drawn = cells(values, hover, SEQUENTIAL, 0.0, most, titles[show], x=start + np.arange(time))
    drawn.text = [[label(token, 4) for token in row] for row in lens.top_tokens]
    drawn.texttemplate = "%{text}"
    figure = go.Figure(drawn)
    token_axis(figure, "x", tokens, start, "position →")
    figure.update_yaxes(tickvals=list(range(points)), ticktext=names, autorange="reversed", **AXIS)
    return figure.update_layout(width=max(480, 34 * time + 200), height=60 * points + 160, **LAYOUT)


@runtime_checkable
class Wired(Protocol):
    """What the figures need of a `Circuit`."""

    @property
    def kind(self) -> str:
        """`"qk"` or `"ov"`."""
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
    def rows(self) -> Sequence[str]:
        """The texts of the rows' tokens."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """The texts of all tokens."""
        ...

    @property
    def matrix(self) -> Any:  # noqa: ANN401 (a tensor or an array, or None)
        """Every value."""
        ...


def circuit_map(circuit: Wired) -> go.Figure:
    """Draw a QK or OV circuit between tokens; of QK each row is drawn around its mean, as only differences count.

    Args:
        circuit: What `qk_circuit` or `ov_circuit` returned.

    Raises:
        ValueError: If the vocabulary is so large that only the strongest values were kept.
    """
    if circuit.matrix is None:
        raise ValueError("expected a circuit whose matrix was kept; ask for fewer rows")
    values = np.asarray(circuit.matrix)
    if circuit.kind == "qk":
        values = values - values.mean(1, keepdims=True)
    verb = "prefers key" if circuit.kind == "qk" else "pushes"
    hover = [
        [f"'{label(row)}' {verb} '{label(column)}': {values[i, j]:+.3f}" for j, column in enumerate(circuit.columns)]
        for i, row in enumerate(circuit.rows)
    ]
    figure = go.Figure(diverging(values, hover, "score" if circuit.kind == "qk" else "logit"))
    axes = ("query token ↓", "key token →") if circuit.kind == "qk" else ("attended token ↓", "next token →")
    for axis, texts, title in (("y", circuit.rows, axes[0]), ("x", circuit.columns, axes[1])):
        # A token of its own for every label that fits: there is no order to read off between two labels.
        shown = list(range(0, len(texts), -(-len(texts) // 70)))
        ticks = {"tickvals": shown, "ticktext": [label(texts[index], 6) for index in shown], "tickfont": {"size": 9}}
        figure.update_layout({f"{axis}axis": {"title": title, **ticks, **AXIS}})
    figure.update_yaxes(autorange="reversed")
    title = f"{circuit.kind.upper()} circuit of L{circuit.layer}H{circuit.head}, from the token embeddings alone"
    return figure.update_layout(title=title, width=900, height=860, **LAYOUT)


@runtime_checkable
class Positioned(Protocol):
    """What the figures need of a `PositionalQK`."""

    @property
    def layer(self) -> int:
        """The head's layer."""
        ...

    @property
    def head(self) -> int:
        """The head."""
        ...

    @property
    def pattern(self) -> Any:  # noqa: ANN401 (a tensor or an array)
        """Weights (query, key)."""
        ...


def positional_map(positional: Positioned) -> go.Figure:
    """Draw which positions a head prefers by the position embeddings alone.

    Args:
        positional: What `positional_qk` returned.
    """
    pattern = np.asarray(positional.pattern)
    values = np.where(np.tri(len(pattern), dtype=bool), pattern, np.nan)
    hover = [
        [
            f"position {query} attends to {key}: {values[query, key]:.3f}" if key <= query else ""
            for key in range(len(values))
        ]
        for query in range(len(values))
    ]
    figure = go.Figure(cells(values, hover, SEQUENTIAL, 0.0, 1.0, "weight"))
    figure.update_xaxes(title="key position →", showgrid=False, zeroline=False, side="top")
    figure.update_yaxes(title="query position ↓", showgrid=False, zeroline=False, autorange="reversed", scaleanchor="x")
    title = f"L{positional.layer}H{positional.head}, from the position embeddings alone"
    return figure.update_layout(title=title, width=720, height=720, **LAYOUT)


@runtime_checkable
class Contributed(Protocol):
    """What the figures need of `Contributions`."""

    @property
    def window(self) -> Read:
        """What was read."""
        ...

    @property
    def raw(self) -> Any:  # noqa: ANN401 (a tensor or an array)
        """Attention weights (layer, head, query, key)."""
        ...

    @property
    def value(self) -> Any:  # noqa: ANN401 (a tensor or an array)
        """Lengths of what is handed over (layer, head, query, key)."""
        ...

    @property
    def logit(self) -> Any:  # noqa: ANN401 (a tensor or an array)
        """What was brought to the logit of the token that follows (layer, head, query, key)."""
        ...

    @property
    def rollout(self) -> Any:  # noqa: ANN401 (a tensor or an array)
        """Attention followed through the layers (layer, query, key)."""
        ...


def contribution_map(found: Contributed, layer: int = 0, head: int = 0, *, show: str = "value") -> go.Figure:
    """Draw where one head took its part from: by weight, by what was handed over, or through all layers.

    Args:
        found: What `contributions` returned.
        layer: From 0.
        head: From 0; rollout is the same for all heads of a layer.
        show: `"raw"` for attention weights, `"value"` for weights with their values, `"logit"` for what was brought to
            the logit of the token that follows (blue for it, orange against it), `"rollout"` for attention followed up
            to this layer.

    Raises:
        ValueError: If there is no such head, or `show` is none of these.
    """
    units = {"raw": "weight", "value": "length", "logit": "logit", "rollout": "share"}
    check_name(show, list(units))
    shape = np.asarray(found.raw).shape
    check_head(shape, layer, head)
    by_head = {"raw": found.raw, "value": found.value, "logit": found.logit}
    values = np.asarray(found.rollout[layer] if show == "rollout" else by_head[show][layer, head])
    tokens, start = found.window.tokens, found.window.start
    drawn = np.where(np.tri(len(tokens), dtype=bool), values, np.nan)
    hover = [
        [
            f"query '{label(tokens[query])}' ({start + query}), key '{label(tokens[key])}' ({start + key}): "
            f"{drawn[query, key]:.4g}"
            if key <= query
            else ""
            for key in range(len(tokens))
        ]
        for query in range(len(tokens))
    ]
    places = start + np.arange(len(tokens))
    most = largest(drawn) if show == "value" else 1.0
    if show == "logit":
        trace = diverging(drawn, hover, units[show]).update(x=places, y=places)
    else:
        trace = cells(drawn, hover, SEQUENTIAL, 0.0, most, units[show], x=places, y=places)
    titles = {
        "raw": f"L{layer}H{head}: attention weights",
        "value": f"L{layer}H{head}: length of what each key hands over",
        "logit": f"L{layer}H{head}: what each key brought to the logit of the token that follows",
        "rollout": f"Attention followed through layers 0 to {layer}",
    }
    return square(go.Figure(trace), tokens, start, titles[show])


@runtime_checkable
class Compared(Protocol):
    """What the figures need of a `Comparison`."""

    @property
    def slots(self) -> Sequence[Any]:
        """The places on both axes, each with `mark`, `first`, `second`, `token`."""
        ...

    @property
    def names(self) -> tuple[str, str]:
        """What the two are."""
        ...

    @property
    def first(self) -> Any:  # noqa: ANN401 (a tensor or an array)
        """The first's weights (layer, head, query, key)."""
        ...

    @property
    def second(self) -> Any:  # noqa: ANN401 (a tensor or an array)
        """The second's."""
        ...

    @property
    def difference(self) -> Any:  # noqa: ANN401 (a tensor or an array)
        """Second − first."""
        ...


_MARKS = {"same": "", "changed": "≠", "inserted": "+", "deleted": "−"}


def difference_map(comparison: Compared, layer: int = 0, head: int = 0) -> go.Figure:
    """Draw the second's attention minus the first's for one head, on the common axes.

    Blue: the second attends more; orange: the first. Tokens that only one of them has carry a + or −, and the cells
    that it alone has are empty.

    Args:
        comparison: What one of the `compare_…` functions returned.
        layer: From 0.
        head: From 0.

    Raises:
        ValueError: If there is no such head.
    """
    difference = np.asarray(comparison.difference)
    check_head(difference.shape, layer, head)
    n_layer, n_head = difference.shape[:2]
    slots, past = comparison.slots, np.tri(len(comparison.slots), dtype=bool)
    values = np.where(past, difference[layer, head], np.nan)
    first, second = (np.asarray(each)[layer, head] for each in (comparison.first, comparison.second))
    names = [f"'{label(slot.token)}' ({_places(slot)})" for slot in slots]
    hover = [
        [
            f"query {names[query]}, key {names[key]}: {_change(first[query, key], second[query, key])}"
            if key <= query
            else ""
            for key in range(len(slots))
        ]
        for query in range(len(slots))
    ]
    figure = go.Figure(diverging(values, hover, "second − first"))
    title = f"{escape(comparison.names[1])} − {escape(comparison.names[0])}"
    if (n_layer, n_head) != (1, 1):
        title = f"L{layer}H{head}: {title}"
    return square(figure, [_MARKS[slot.mark] + glyph(slot.token) for slot in slots], 0, title)


def _places(slot: Any) -> str:  # noqa: ANN401 (a `Slot`)
    """Return the true positions of a slot: one number if they agree."""
    if slot.first == slot.second:
        return str(slot.first)
    return " → ".join("–" if place is None else str(place) for place in (slot.first, slot.second))


def _change(first: Any, second: Any) -> str:  # noqa: ANN401 (numbers of an array)
    """Return two weights as `0.120 → 0.340`; a cell that is not there says so."""
    return " → ".join("not there" if np.isnan(value) else f"{value:.3f}" for value in (first, second))
