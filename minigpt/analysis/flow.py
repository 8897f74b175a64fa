"""A text on its way through a model, step by step: every intermediate tensor with its shape and its numbers.

`flow` computes what `model(idx)` computes, the long way and in the order of the model's own code, and keeps what one
layer and one head of it do; `debug_shapes` says the shapes of it as text. What a layer drops in training is shown by
`dropped_weights`, and what all these layers weigh is counted by `parameter_parts`. Knows no page and no picture.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from minigpt.analysis.anatomy import Anatomy, LayerPart, anatomy
from minigpt.config import ModelConfig
from minigpt.model import LanguageModel, drop


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step of the computation.

    Attributes:
        name: What it is, as a key: `"token_embedding"`, `"query"`, `"pattern"` … `"logits"`.
        code: The line of the chapters' code that makes it.
        axes: Its axes by their letters: B texts, T tokens, C = n_embd, D = head_size, V = vocab_size.
        values: The numbers, as they are in eval mode.
        layer: The layer it belongs to; None outside the layers.
    """

    name: str
    code: str
    axes: tuple[str, ...]
    values: Tensor
    layer: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """How long each axis is."""
        return tuple(self.values.shape)


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A forward pass as its steps, opened at one layer and one head.

    Attributes:
        layer: The layer that is opened.
        head: The head of it.
        stages: The embeddings, every step of the opened layer, what follows the last layer, in the order of the
            computation.
        stream: What goes on from layer to layer: first the embeddings, then what each layer hands on.
    """

    layer: int
    head: int
    stages: tuple[Stage, ...]
    stream: Float[Tensor, "point batch time n_embd"]

    def __getitem__(self, name: str) -> Stage:
        """Return the stage of a name.

        Raises:
            KeyError: If this kind of model has no such stage.
        """
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(name)


def flow(model: LanguageModel, idx: Int[Tensor, "batch time"], layer: int = 0, head: int = 0) -> Flow:
    """Read some texts and return every step on the way, those of one layer and head among them.

    Stages that a kind of model lacks (LayerNorm, projection, feed-forward network, residual sum) are not there.

    Args:
        model: Any of the three language models. Dropout is never applied.
        idx: Token ids as for `model(idx)`.
        layer: The layer to open, from 0.
        head: The head of it to follow, from 0.

    Raises:
        ValueError: If `idx` is not (B, T) with 1 to `block_size` tokens, or there is no such layer or head.
        IndexError: If an id is outside the vocabulary.
    """
    config = model.config
    for name, index, length in (("layer", layer, config.n_layer), ("head", head, config.n_head)):
        if not 0 <= index < length:
            raise ValueError(f"{name} must be from 0 to {length - 1}, got {index}")
    with torch.no_grad():
        model.embed(idx)  # refuses what the model refuses
        parts = anatomy(model)
        stages = _embedded(parts, idx.cpu())
        x = stages[-1].values
        stream = [x]
        for index, part in enumerate(parts.layers):
            steps = _layer(parts, part, x, head, single=config.kind == "single-head")
            if index == layer:
                stages += [replace(step, layer=index) for step in steps]
            x = steps[-1].values
            stream.append(x)
        stages += _read_out(parts, x)
    return Flow(layer=layer, head=head, stages=tuple(stages), stream=torch.stack(stream))


def _embedded(parts: Anatomy, idx: Tensor) -> list[Stage]:
    """Return the steps from ids to the first vectors."""
    token, position = parts.tokens[idx], parts.positions[: idx.shape[1]]
    btc = ("B", "T", "C")
    return [
        Stage(name="ids", code="idx", axes=("B", "T"), values=idx),
        Stage(name="token_embedding", code="tok_emb = token_embedding_table(idx)", axes=btc, values=token),
        Stage(
            name="position_embedding",
            code="pos_emb = position_embedding_table(arange(T))",
            axes=("T", "C"),
            values=position,
        ),
        Stage(name="embedding", code="x = tok_emb + pos_emb", axes=btc, values=token + position),
    ]


def _layer(parts: Anatomy, part: LayerPart, x: Tensor, head: int, *, single: bool) -> list[Stage]:
    """Return the steps of one layer; the last one's values are what the layer hands on."""
    btc, btd, btt = ("B", "T", "C"), ("B", "T", "D"), ("B", "T", "T")
    own = "" if single else f"heads[{head}]."
    stages: list[Stage] = []

    def add(name: str, code: str, axes: tuple[str, ...], values: Tensor) -> Tensor:
        stages.append(Stage(name=name, code=code, axes=axes, values=values))
        return values

    normed = x if part.norm is None else add("norm1", "h = ln1(x)", btc, part.norm(x))
    source = "x" if part.norm is None else "h"
    query, key, value = part.query(normed), part.key(normed), part.value(normed)
    for name, letter, tensor in (("query", "q", query), ("key", "k", key), ("value", "v", value)):
        add(name, f"{letter} = {own}{name}({source})", btd, tensor[:, head])
    time, size = query.shape[-2:]
    scores = query @ key.transpose(-2, -1) * size**-0.5
    add("scores", "scores = q @ k.transpose(-2, -1) * head_size**-0.5", btt, scores[:, head])
    future = torch.ones(time, time, dtype=torch.bool).triu_(1)
    pattern = scores.masked_fill(future, float("-inf")).softmax(-1)
    add("pattern", "weights = softmax(scores.masked_fill(tril == 0, -inf))", btt, pattern[:, head])
    outputs = pattern @ value
    add("head_output", "out = weights @ v", btd, outputs[:, head])
    if single:
        return stages
    joined = add("concat", "torch.cat(outs, dim=-1)", btc, outputs.transpose(1, 2).flatten(2))
    projected = add("projection", "sa = proj(cat)", btc, joined @ part.out.flatten(0, 1) + part.out_bias)
    if not parts.residual:
        return stages
    x = add("attention_sum", "x = x + sa", btc, x + projected)
    if part.mlp is not None:
        mlp = part.mlp
        normed = add("norm2", "h = ln2(x)", btc, mlp.norm(x))
        wide = ("B", "T", "4C")
        hidden = add("hidden", "ffwd.net[0](h)", wide, F.linear(normed, mlp.up, mlp.up_bias))
        active = add("activation", "ffwd.net[1](…)", wide, mlp.activation(hidden))
        output = add("feed_forward", "ff = ffwd.net[2](…)", btc, F.linear(active, mlp.down, mlp.down_bias))
        add("layer_output", "x = x + ff", btc, x + output)
    return stages


def _read_out(parts: Anatomy, x: Tensor) -> list[Stage]:
    """Return the steps from the last layer to the logits."""
    logits = Stage(name="logits", code="logits = lm_head(x)", axes=("B", "T", "V"), values=parts.logits(x))
    if parts.norm is None:
        return [logits]
    return [Stage(name="norm_f", code="x = ln_f(x)", axes=("B", "T", "C"), values=parts.norm(x)), logits]


def debug_shapes(model: LanguageModel, idx: Int[Tensor, "batch time"]) -> str:
    """Return the shape of everything between `idx` and the logits, one line a step, to be printed.

    Every head of every layer has the shapes of the first, which is the one that is listed.

    Args:
        model: Any of the three language models.
        idx: Token ids as for `model(idx)`.

    Raises:
        ValueError: If `idx` is not (B, T) with 1 to `block_size` tokens.
        IndexError: If an id is outside the vocabulary.
    """
    rows = [(stage.code, f"({', '.join(stage.axes)})", str(stage.shape)) for stage in flow(model, idx).stages]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return "\n".join(f"{code:<{widths[0]}}  {axes:<{widths[1]}}  {shape}" for code, axes, shape in rows)


def dropped_weights(pattern: Float[Tensor, "query key"], dropout: float, seed: int) -> Float[Tensor, "query key"]:
    """Return one draw of what dropout leaves of attention weights in training; `model.eval()` leaves them all.

    Each weight becomes 0 with probability `dropout`, and what stays is divided by `1 - dropout`, so that the mean over
    many draws is the weight itself (Srivastava et al. 2014, "inverted" as PyTorch has it).

    Args:
        pattern: Attention weights, 0 to 1.
        dropout: Share that is dropped, 0 to below 1; on the CPU it is right to 2⁻¹⁷.
        seed: Where the random numbers start; the same seed gives the same draw.
    """
    return drop(pattern, dropout, torch.Generator().manual_seed(seed))


PARTS = ("token_embedding", "position_embedding", "query_key_value", "projection", "norms", "feed_forward", "lm_head")
"""The parts of a model that have parameters, in the order of the computation."""


def parameter_parts(config: ModelConfig) -> dict[str, int]:
    """Return how many parameters each part of a model has, all layers together, from its settings alone.

    A matrix that `lm_head` shares with the token embedding counts there and not again in `lm_head`. Masks are no
    parameters.

    Args:
        config: The architecture.
    """
    C, L, V = config.n_embd, config.n_layer, config.vocab_size
    bias = C if config.bias else 0
    has_blocks = config.kind == "transformer"
    return {
        "token_embedding": V * C,
        "position_embedding": config.block_size * C,
        "query_key_value": L * 3 * (C * C + (C if config.qkv_bias else 0)),
        "projection": 0 if config.kind == "single-head" else L * (C * C + bias),
        "norms": (2 * L + 1) * (C + bias) if has_blocks else 0,
        "feed_forward": L * (8 * C * C + 5 * bias) if has_blocks else 0,
        "lm_head": (0 if config.tied else V * C) + (V if config.head_bias else 0),
    }


def strongest(values: Float[Tensor, "row column"], side: int) -> Float[Tensor, "picture_row picture_column"]:
    """Return a matrix on at most `side` × `side` cells: each is the number of its block that is furthest from 0.

    A mean would let large numbers of opposite signs cancel. Blocks are ⌈rows / side⌉ × ⌈columns / side⌉ numbers; those
    at the end may be cut short.

    Args:
        values: Any numbers.
        side: Most rows and columns of the result, at least 1.
    """
    rows, columns = values.shape
    high, wide = -(-rows // side), -(-columns // side)
    if high == wide == 1:
        return values
    padded = F.pad(values, (0, -columns % wide, 0, -rows % high))
    blocks = padded.view(padded.shape[0] // high, high, padded.shape[1] // wide, wide)
    most, least = blocks.amax((1, 3)), blocks.amin((1, 3))
    return torch.where(most >= -least, most, least)
