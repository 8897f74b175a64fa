"""Keys hidden from one query of one head, each by itself, with as little work as is exact.

Attention is causal and a query that looks elsewhere changes only itself: in its own layer one row, above it the rows
from the query on. Everything else is the model as it is, so it is computed once. `minigpt.analysis.forward` with one
intervention a key says the same, the long way.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from minigpt.analysis.anatomy import Anatomy, LayerPart
from minigpt.analysis.forward import Layers


def hidden_keys(
    parts: Anatomy,
    inside: Layers,
    layer: int,
    head: int,
    query: int,
    keys: Sequence[int],
    *,
    renormalise: bool,
) -> Float[Tensor, "key row vocab"]:
    """Return the logits from a query on, with each of some keys hidden from it by itself.

    Args:
        parts: The model.
        inside: What `forward` kept of the text, the model as it is in row 0.
        layer: The head's layer.
        head: The head.
        query: Index of the query in the window.
        keys: Indices of keys, none after the query.
        renormalise: Whether the rest of the query's row is scaled to sum to 1; without any key left it is 0.
    """
    with torch.no_grad():
        part = parts.layers[layer]
        delta = _changed_head(part, inside, layer, head, query, keys, renormalise)
        row = inside.attention[0, layer, query] + delta
        if parts.residual:
            row = row + inside.residual[0, layer, query]
        x = inside.residual[0, layer + 1, query:].expand(len(keys), -1, -1).clone()
        x[:, 0] = row if part.mlp is None else row + part.mlp(row)
        for index in range(layer + 1, len(parts.layers)):
            x = _later_rows(parts, index, inside, query, x)
        return parts.logits(x)


def _changed_head(
    part: LayerPart, inside: Layers, layer: int, head: int, query: int, keys: Sequence[int], renormalise: bool
) -> Float[Tensor, "key n_embd"]:
    """Return what the head adds to the stream at the query without each key, minus what it adds as it is."""
    seen = slice(query + 1)
    values = inside.values[0, layer, head, seen]
    places = torch.arange(len(keys)), torch.tensor(keys)
    if renormalise:
        stream = inside.residual[0, layer, seen]
        normed = stream if part.norm is None else part.norm(stream)
        asks, answers = part.query(normed)[head, query], part.key(normed)[head]
        scores = (answers @ asks * len(asks) ** -0.5).repeat(len(keys), 1)
        scores[places] = float("-inf")
        weights = scores.softmax(-1).nan_to_num(0.0)
    else:
        weights = inside.pattern[0, layer, head, query, seen].repeat(len(keys), 1)
        weights[places] = 0
    return (weights @ values - inside.heads[0, layer, head, query]) @ part.out[head]


def _later_rows(
    parts: Anatomy, index: int, inside: Layers, query: int, x: Float[Tensor, "key row n_embd"]
) -> Float[Tensor, "key row n_embd"]:
    """Run the rows from the query on through one layer; those before it are the model's own."""
    layer = parts.layers[index]
    before = inside.residual[0, index, :query]
    normed, past = (x, before) if layer.norm is None else (layer.norm(x), layer.norm(before))
    asks, answers = layer.query(normed), layer.key(normed)
    rows, size = asks.shape[-2:]
    future = torch.full((rows, rows), float("-inf"), dtype=x.dtype).triu_(1)
    scores = torch.cat((asks @ layer.key(past).transpose(-2, -1), asks @ answers.transpose(-2, -1)), -1) * size**-0.5
    scores[..., query:] += future
    pattern = scores.softmax(-1)
    heads = pattern[..., :query] @ inside.values[0, index, :, :query] + pattern[..., query:] @ layer.value(normed)
    attention = heads.transpose(1, 2).flatten(2) @ layer.out.flatten(0, 1) + layer.out_bias
    x = x + attention if parts.residual else attention
    return x if layer.mlp is None else x + layer.mlp(x)
