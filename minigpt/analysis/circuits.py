"""What a head is wired to do, read from its parameters alone: its QK and OV circuits (Elhage et al. 2021).

- QK: which key tokens does a query token prefer? Scores before the softmax.
- OV: if a token is attended to, which next tokens does the head push up or down?

Each circuit sees the token embeddings alone. In a real text the head sees them with positions and with all that earlier
layers added, and LayerNorm divides by another number; so this says what a head of the first layer is inclined to do,
and of later layers only what the embeddings' own part would make them do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from minigpt.analysis.anatomy import LayerPart, anatomy
from minigpt.analysis.frames import cell_columns, frame, numbers
from minigpt.analysis.interventions import check_head
from minigpt.analysis.window import token_id
from minigpt.checkpoint import Checkpoint

MOST_CELLS = 2**20
"""Most cells of a circuit that are kept; of larger ones the strongest of each row."""
_ROWS_AT_ONCE = 2**22


@dataclass(frozen=True, kw_only=True)
class Circuit:
    """A head's QK or OV circuit between tokens.

    QK: rows are query tokens, columns key tokens, values are scores before the softmax (q·k ∕ √D, biases included);
    only differences within a row mean anything. OV: rows are tokens attended to, columns next tokens, values are what
    full attention to the row's token adds to the column's logit, before the last LayerNorm divides by the deviation of
    the whole stream; biases are left out, and the mean of each row is taken off.

    Attributes:
        kind: `"qk"` or `"ov"`.
        layer: The head's layer.
        head: The head.
        row_ids: The tokens of the rows.
        rows: Their texts.
        columns: The texts of all tokens.
        matrix: Every value; None where that would be more than `MOST_CELLS` values.
        top_ids: The tokens with the largest values in each row, largest first.
        top: Those values.
        bottom_ids: The tokens with the smallest values in each row, smallest first.
        bottom: Those values.
    """

    kind: Literal["qk", "ov"]
    layer: int
    head: int
    row_ids: list[int]
    rows: list[str]
    columns: list[str]
    matrix: Float[Tensor, "row vocab"] | None
    top_ids: Int[Tensor, "row choice"]
    top: Float[Tensor, "row choice"]
    bottom_ids: Int[Tensor, "row choice"]
    bottom: Float[Tensor, "row choice"]

    def to_frame(self) -> Any:  # noqa: ANN401 (a pandas.DataFrame)
        """Return the strongest of each row, one row per pair of tokens."""
        count = self.top.shape[1]
        return frame(
            {
                "row": [text for text in self.rows for _ in range(count)],
                "top": [self.columns[index] for index in numbers(self.top_ids)],
                "top_value": numbers(self.top),
                "bottom": [self.columns[index] for index in numbers(self.bottom_ids)],
                "bottom_value": numbers(self.bottom),
            }
        )


def qk_circuit(
    ckpt: Checkpoint, layer: int, head: int, *, rows: Sequence[int | str] | None = None, most: int = 10
) -> Circuit:
    """Return which key tokens each query token prefers in a head, by the token embeddings alone.

    Elhage et al. 2021, "QK Circuit": embeddings through the layer's LayerNorm, the head's queries and keys, and their
    product over √D.

    Args:
        ckpt: The model and its tokenizer.
        layer: The head's layer, from 0.
        head: The head, from 0.
        rows: Query tokens, ids or texts; None for all.
        most: How many of the strongest to list in each row.

    Raises:
        ConfigError: If there is no such head.
    """
    check_head(ckpt.config, layer, head)
    parts = anatomy(ckpt.model)
    part = parts.layers[layer]
    keys = _vectors(part, parts.tokens, "key", head)

    def scores(chosen: Tensor) -> Tensor:
        return _vectors(part, parts.tokens[chosen], "query", head) @ keys.T * keys.shape[-1] ** -0.5

    return _circuit(ckpt, "qk", layer, head, scores, rows, most)


def ov_circuit(
    ckpt: Checkpoint, layer: int, head: int, *, rows: Sequence[int | str] | None = None, most: int = 10
) -> Circuit:
    """Return which next tokens a head pushes when it attends to a token, by the token embeddings alone.

    Elhage et al. 2021, "OV Circuit": embeddings through the layer's LayerNorm, the head's values, its rows of the
    projection, the scale of the last LayerNorm, and `lm_head`.

    Args:
        ckpt: The model and its tokenizer.
        layer: The head's layer, from 0.
        head: The head, from 0.
        rows: Tokens attended to, ids or texts; None for all.
        most: How many of the strongest to list in each row.

    Raises:
        ConfigError: If there is no such head.
    """
    check_head(ckpt.config, layer, head)
    parts = anatomy(ckpt.model)
    part = parts.layers[layer]

    def pushed(chosen: Tensor) -> Tensor:
        x = parts.tokens[chosen] if part.norm is None else part.norm(parts.tokens[chosen])
        written = x @ part.value.weight[head].T @ part.out[head]
        if parts.norm is not None:
            written = (written - written.mean(-1, keepdim=True)) * parts.norm.weight
        logits = written @ parts.unembed.T
        return logits - logits.mean(-1, keepdim=True)

    return _circuit(ckpt, "ov", layer, head, pushed, rows, most)


@dataclass(frozen=True, kw_only=True)
class PositionalQK:
    """Which positions a head prefers, by the position embeddings alone.

    Attributes:
        layer: The head's layer.
        head: The head.
        scores: Before the softmax; only differences within a row mean anything. −∞ in the future.
        pattern: After it: the attention of a text whose tokens had no embeddings. Rows sum to 1.
    """

    layer: int
    head: int
    scores: Float[Tensor, "query key"]
    pattern: Float[Tensor, "query key"]

    def to_frame(self) -> Any:  # noqa: ANN401 (a pandas.DataFrame)
        """Return one row per query position and key position up to it."""
        return frame(cell_columns(score=self.scores, weight=self.pattern))


def positional_qk(ckpt: Checkpoint, layer: int, head: int) -> PositionalQK:
    """Return which positions a head prefers from each position of the window, by the position embeddings alone.

    Args:
        ckpt: The model.
        layer: The head's layer, from 0.
        head: The head, from 0.

    Raises:
        ConfigError: If there is no such head.
    """
    check_head(ckpt.config, layer, head)
    parts = anatomy(ckpt.model)
    part, positions = parts.layers[layer], parts.positions
    query, key = (_vectors(part, positions, name, head) for name in ("query", "key"))
    scores = query @ key.T * key.shape[-1] ** -0.5
    scores = scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), float("-inf"))
    return PositionalQK(layer=layer, head=head, scores=scores, pattern=scores.softmax(-1))


def _vectors(part: LayerPart, embeddings: Tensor, name: Literal["query", "key"], head: int) -> Tensor:
    """Return one head's queries or keys of embeddings that stand alone."""
    x = embeddings if part.norm is None else part.norm(embeddings)
    layer = part.query if name == "query" else part.key
    return x @ layer.weight[head].T + layer.bias[head]


def _circuit(
    ckpt: Checkpoint,
    kind: Literal["qk", "ov"],
    layer: int,
    head: int,
    compute: Callable[[Tensor], Tensor],
    rows: Sequence[int | str] | None,
    most: int,
) -> Circuit:
    """Compute a circuit some rows at a time, and keep all of it or the strongest of each row."""
    vocab = ckpt.config.vocab_size
    ids = list(range(vocab)) if rows is None else [token_id(ckpt, token) for token in rows]
    keep, most = len(ids) * vocab <= MOST_CELLS, min(most, vocab)
    step = max(1, _ROWS_AT_ONCE // vocab)
    blocks: list[Tensor] = []
    top: list[tuple[Tensor, Tensor]] = []
    bottom: list[tuple[Tensor, Tensor]] = []
    for first in range(0, len(ids), step):
        block = compute(torch.tensor(ids[first : first + step]))
        largest, smallest = block.topk(most), block.topk(most, largest=False)
        top.append((largest.indices, largest.values))
        bottom.append((smallest.indices, smallest.values))
        if keep:
            blocks.append(block)
    top_ids, top_values = (torch.cat(tensors) for tensors in zip(*top, strict=True))
    bottom_ids, bottom_values = (torch.cat(tensors) for tensors in zip(*bottom, strict=True))
    piece = ckpt.tokenizer.piece
    return Circuit(
        kind=kind,
        layer=layer,
        head=head,
        row_ids=ids,
        rows=[piece(token) for token in ids],
        columns=[piece(token) for token in range(vocab)],
        matrix=torch.cat(blocks) if keep else None,
        top_ids=top_ids,
        top=top_values,
        bottom_ids=bottom_ids,
        bottom=bottom_values,
    )
