"""One forward pass with everything in it laid open, and changed where asked; many changes in one batched pass.

It computes what `model(idx)` computes, the long way, in the order of the model's own code: embeddings, and in each
layer patterns, heads, projection, feed-forward network. Row 0 of every result is the model as it is; row i is the model
under the i-th intervention.

A change in layer l leaves everything below l as it is, so a changed row is computed from l on only: until then it is
row 0, and it joins the batch in its first changed layer, after that layer's heads were computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from minigpt.analysis.anatomy import Anatomy, LayerPart, anatomy
from minigpt.analysis.interventions import Intervention
from minigpt.model import LanguageModel, check_length


@dataclass(frozen=True, kw_only=True)
class Layers:
    """What happened in every layer; L layers, H heads of D numbers, T tokens, C = n_embd.

    Attributes:
        pattern: Attention weights, 0 to 1, after cells were knocked out.
        values: What each key hands over.
        heads: What each head puts out *before* the projection, after it was changed.
        attention: What attention adds to the residual stream: all heads through the projection, and its bias.
        mlp: What the feed-forward network adds; zeros where the model has none.
        residual: The residual stream: first the embeddings, then after each layer.
    """

    pattern: Float[Tensor, "run layer head query key"]
    values: Float[Tensor, "run layer head key size"]
    heads: Float[Tensor, "run layer head query size"]
    attention: Float[Tensor, "run layer query n_embd"]
    mlp: Float[Tensor, "run layer query n_embd"]
    residual: Float[Tensor, "run point query n_embd"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """The result of a forward pass: the logits, and everything before them if it was kept."""

    logits: Float[Tensor, "run query vocab"]
    layers: Layers | None

    @property
    def inside(self) -> Layers:
        """What happened in every layer.

        Raises:
            ValueError: If it was not kept.
        """
        if self.layers is None:
            raise ValueError("expected a forward pass with keep=True")
        return self.layers


def forward(
    model: LanguageModel | Anatomy,
    idx: Int[Tensor, " time"],
    interventions: Sequence[Intervention] = (),
    *,
    start: int = 0,
    means: Float[Tensor, "layer head size"] | None = None,
    keep: bool = True,
) -> Run:
    """Read one text, as it is and under each intervention.

    Args:
        model: Any of the three language models, or one already taken apart. Dropout is never applied.
        idx: 1 to `block_size` token ids.
        interventions: Each is one more row of the result. They are not checked; see `Intervention.check`.
        start: True position of the first token, from which the positions of edges count.
        means: Each head's mean output, for interventions that replace by it; see `head_means`.
        keep: Whether to keep what happened in every layer, and not the logits alone.

    Raises:
        ValueError: If there are too many tokens, or `means` are needed and missing.
    """
    with torch.no_grad():
        parts = model if isinstance(model, Anatomy) else anatomy(model)
        check_length(len(idx), len(parts.positions))
        if means is None and any(each.needs_means() for each in interventions):
            raise ValueError("expected the heads' means, as an intervention replaces heads by them")
        rows = _Rows(parts, interventions, start, means)
        x = parts.embed(idx)[None]
        kept: list[tuple[Tensor, ...]] = []
        points = [rows.spread(x)] if keep else []
        for index, layer in enumerate(parts.layers):
            x, inside = rows.read(index, layer, x, keep)
            if keep:
                kept.append(inside)
                points.append(rows.spread(x))
        logits = rows.spread(parts.logits(x))
        if not keep:
            return Run(logits=logits, layers=None)
        pattern, values, heads, attention, mlp = (torch.stack(tensors, dim=1) for tensors in zip(*kept, strict=True))
        residual = torch.stack(points, dim=1)
        layers = Layers(pattern=pattern, values=values, heads=heads, attention=attention, mlp=mlp, residual=residual)
        return Run(logits=logits, layers=layers)


def head_means(model: LanguageModel | Anatomy, ids: Sequence[int]) -> Float[Tensor, "layer head size"]:
    """Return each head's mean output before the projection, over all tokens of a reference text.

    A text longer than the window is read in windows one after another.

    Args:
        model: Any of the three language models, or one already taken apart.
        ids: The text, at least one token.
    """
    parts = model if isinstance(model, Anatomy) else anatomy(model)
    block = len(parts.positions)
    sums = [
        forward(parts, torch.tensor(ids[first : first + block])).inside.heads[0].sum(2)
        for first in range(0, len(ids), block)
    ]
    return torch.stack(sums).sum(0) / len(ids)


class _Rows:
    """The rows of the batch: row 0, and those under an intervention that have been changed so far.

    Args:
        parts: The model.
        interventions: One a row, from row 1 on.
        start: True position of the first token.
        means: The heads' means, if needed.
    """

    def __init__(self, parts: Anatomy, interventions: Sequence[Intervention], start: int, means: Tensor | None) -> None:
        self.parts, self.start, self.means = parts, start, means
        self.interventions = interventions
        self.first = [min(each.layers(), default=len(parts.layers)) for each in interventions]
        self.active = [0]

    def spread(self, tensor: Float[Tensor, "active ..."]) -> Float[Tensor, "run ..."]:
        """Return a tensor of the active rows for all rows: those not changed yet are row 0."""
        places = {row: place for place, row in enumerate(self.active)}
        lookup = [places.get(row, 0) for row in range(len(self.interventions) + 1)]
        return tensor if lookup == list(range(len(tensor))) else tensor[lookup]

    def read(self, index: int, layer: LayerPart, x: Tensor, keep: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run the rows through one layer; return the stream after it, and pattern, values, heads, attention, mlp."""
        normed = x if layer.norm is None else layer.norm(x)
        query, key, values = layer.query(normed), layer.key(normed), layer.value(normed)
        time, size = query.shape[-2:]
        future = torch.full((time, time), float("-inf"), dtype=x.dtype).triu_(1)
        scores = query @ key.transpose(-2, -1) * size**-0.5 + future
        pattern = scores.softmax(-1)
        heads = pattern @ values

        joining = [row for row, first in enumerate(self.first, start=1) if first == index]
        source = [*range(len(self.active)), *[0] * len(joining)]
        self.active += joining
        if joining:
            x, heads = x[source], heads[source]
        edited = pattern[source] if keep else None
        self._cut_edges(index, heads, scores, pattern, values, source, edited)
        self._change_heads(index, heads)
        attention = heads.transpose(1, 2).flatten(2) @ layer.out.flatten(0, 1) + layer.out_bias
        self._switch_off(attention, [index in each.attention_off for each in self._changes()])
        x = x + attention if self.parts.residual else attention
        if layer.mlp is None:
            mlp = torch.zeros_like(x) if keep else x
        else:
            mlp = layer.mlp(x)
            self._switch_off(mlp, [index in each.mlps_off for each in self._changes()])
            x = x + mlp
        if edited is None:
            return x, ()
        return x, tuple(self.spread(tensor) for tensor in (edited, values[source], heads, attention, mlp))

    def _changes(self) -> list[Intervention]:
        """Return the intervention of every active row but row 0."""
        return [self.interventions[row - 1] for row in self.active[1:]]

    def _cut_edges(
        self,
        index: int,
        heads: Float[Tensor, "active head query size"],
        scores: Float[Tensor, "before head query key"],
        pattern: Float[Tensor, "before head query key"],
        values: Float[Tensor, "before head key size"],
        source: list[int],
        edited: Float[Tensor, "active head query key"] | None,
    ) -> None:
        """Compute the rows of attention anew in which a key is knocked out."""
        for place, change in enumerate(self._changes(), start=1):
            cut: dict[tuple[int, int], list[int]] = {}
            for layer, head, query, key in change.edges_off:
                query, key = query - self.start, key - self.start
                if layer == index and key >= 0 and query < scores.shape[-1]:
                    cut.setdefault((head, query), []).append(key)
            for (head, query), keys in cut.items():
                if change.renormalise:
                    left = scores[source[place], head, query].clone()
                    left[keys] = float("-inf")
                    # The softmax of nothing is no number; nothing is attended to.
                    weights = left.softmax(-1).nan_to_num(0.0)
                else:
                    weights = pattern[source[place], head, query].clone()
                    weights[keys] = 0
                heads[place, head, query] = weights @ values[source[place], head]
                if edited is not None:
                    edited[place, head, query] = weights

    def _change_heads(self, index: int, heads: Float[Tensor, "active head query size"]) -> None:
        """Scale heads and replace those that are off, where they stand before the projection."""
        for place, change in enumerate(self._changes(), start=1):
            for layer, head, factor in change.head_scales:
                if layer == index:
                    heads[place, head] *= factor
            for layer, head in change.heads_off:
                if layer == index:
                    means = self.means if change.replace == "mean" else None
                    heads[place, head] = 0 if means is None else means[layer, head].to(heads.dtype)

    @staticmethod
    def _switch_off(output: Float[Tensor, "active query n_embd"], off: list[bool]) -> None:
        """Set the output to 0 in the rows in which it is off."""
        if places := [place for place, is_off in enumerate(off, start=1) if is_off]:
            output[places] = 0
