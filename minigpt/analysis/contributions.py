"""How much of what was computed came from where: weights with their values, flow through layers, shares of a logit.

- `contributions`: both of the following, and the weights themselves, from a model and a text.
- `value_weighted`: how long the vector is that a key hands to a query through a head (Kobayashi et al. 2020).
- `logit_weighted`: what each key brought, through each head, to the logit of the token that follows the query.
- `rollout`: attention followed through all layers and residual connections (Abnar & Zuidema 2020).
- `direct_logits`: the sum that one logit is, term by term (*direct logit attribution*; the terms of Elhage et al. 2021,
  "Attention Heads as Independent and Additive"): embeddings, every head and every key in it, every feed-forward
  network, biases.

These are shares of a computation that took place. Whether a part matters is another question, for `sweep`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from minigpt.analysis.anatomy import Anatomy, anatomy
from minigpt.analysis.forward import Layers, forward
from minigpt.analysis.frames import cell_columns, frame, numbers
from minigpt.analysis.window import Window, chosen_token, token_id, window_of
from minigpt.checkpoint import Checkpoint
from minigpt.model import LanguageModel
from minigpt.tokenizer import Text


def value_weighted(
    model: LanguageModel | Anatomy, layers: Layers, row: int = 0
) -> Float[Tensor, "layer head query key"]:
    """Return ‖α · v · W_O‖: the length of what each key hands to each query through each head.

    The norm-based view of Kobayashi et al. 2020 (section 3): α is the attention weight, v the key's value vector with
    its bias, W_O the rows of the projection that belong to the head. Euclidean length, in units of the residual stream;
    at least 0, exactly 0 in the future. A key with a large weight and a short value contributes little.

    Args:
        model: The model that was read with.
        layers: What `forward` kept.
        row: Row of the batch.
    """
    parts = model if isinstance(model, Anatomy) else anatomy(model)
    out = torch.stack([layer.out for layer in parts.layers])
    lengths = (layers.values[row] @ out).square().sum(-1).sqrt()
    return layers.pattern[row] * lengths[:, :, None, :]


def logit_weighted(ckpt: Checkpoint, text: Text) -> Float[Tensor, "layer head query key"]:
    """Return what each key brought, through each head, to the logit of the token that follows the query.

    The per-source terms of direct logit attribution (Elhage et al. 2021, "Attention Heads as Independent and
    Additive"), for all queries at once: α · (v · W_O · d), where α is the attention weight, v the key's value vector
    with its bias, W_O the rows of the projection that belong to the head, and d the row of `lm_head` for the token that
    follows the query (after the last token, for the likeliest one), taken back through the last LayerNorm with the
    divisor that it had in this very pass. Row q is `direct_logits(ckpt, text, position=q).sources`.

    In units of logits, of either sign; exactly 0 in the future. Computed in float64.

    Args:
        ckpt: The model and its tokenizer.
        text: A text or its ids, at least one token long; the last `block_size` tokens are read.

    Raises:
        PromptError: If the text cannot be read.
    """
    window = window_of(ckpt, text)
    with torch.no_grad():
        likeliest = ckpt.model(window.idx[None])[0][0, -1].argmax()
    parts = anatomy(ckpt.model, torch.float64)
    inside = forward(parts, window.idx).inside
    following = torch.cat((window.idx[1:], likeliest[None].cpu()))
    directions = _back_through_norm(parts, inside.residual[0, -1], parts.unembed[following])
    return torch.stack(
        [
            layer_pattern * (values @ (layer.out @ directions.T)).transpose(-1, -2)
            for layer, layer_pattern, values in zip(parts.layers, inside.pattern[0], inside.values[0], strict=True)
        ]
    )


def _back_through_norm(
    parts: Anatomy, stream: Float[Tensor, "*batch n_embd"], direction: Float[Tensor, "*batch n_embd"]
) -> Float[Tensor, "*batch n_embd"]:
    """Return the direction in the stream that is read as `direction` after the last LayerNorm, its divisor held.

    A share is the product of a vector with it: centring, scaling and unembedding in one.
    """
    if parts.norm is None:
        return direction
    direction = direction * parts.norm.weight / parts.norm.deviation(stream)[..., None]
    return direction - direction.mean(-1, keepdim=True)


def rollout(
    pattern: Float[Tensor, "layer head query key"], *, residual: bool = True
) -> Float[Tensor, "layer query key"]:
    """Return attention rollout: how much of each position's vector after each layer goes back to which token.

    Abnar & Zuidema 2020, section 3: a layer's attention is the mean of its heads' weights, mixed half and half with the
    identity for the residual connection; the layers are multiplied up. Rows sum to 1. It knows nothing of values and
    feed-forward networks.

    Args:
        pattern: Attention weights, rows summing to 1.
        residual: Whether the layers add to a residual stream; the chapters' attention-only models do not.
    """
    mixed = pattern.mean(1)
    if residual:
        mixed = (mixed + torch.eye(pattern.shape[-1], dtype=pattern.dtype)) / 2
    layers = [mixed[0]]
    for layer in mixed[1:]:
        layers.append(layer @ layers[-1])
    return torch.stack(layers)


@dataclass(frozen=True, kw_only=True)
class Contributions:
    """Four answers to how much of what a query took came from which key.

    Attributes:
        window: What was read.
        raw: Attention weights, 0 to 1; rows sum to 1.
        value: Length of what each key hands to each query through each head, at least 0, in units of the residual
            stream; see `value_weighted`.
        logit: What each key brought, through each head, to the logit of the token that follows the query, of either
            sign, in float64; see `logit_weighted`.
        rollout: Attention followed through all layers up to this one, 0 to 1; rows sum to 1; see `rollout`.
    """

    window: Window
    raw: Float[Tensor, "layer head query key"]
    value: Float[Tensor, "layer head query key"]
    logit: Float[Tensor, "layer head query key"]
    rollout: Float[Tensor, "layer query key"]

    def to_frame(self) -> Any:  # noqa: ANN401 (a pandas.DataFrame)
        """Return one row per layer, head, query and key up to it; positions are true ones.

        Rollout knows layers only: each head of a layer has the same in its row.
        """
        rolled = self.rollout[:, None].expand_as(self.raw)
        columns = cell_columns(raw=self.raw, value=self.value, logit=self.logit, rollout=rolled)
        for axis in ("query", "key"):
            columns[f"{axis}_token"] = [self.window.tokens[place] for place in columns[axis]]
            columns[axis] = [self.window.start + place for place in columns[axis]]
        return frame(columns)


def contributions(ckpt: Checkpoint, text: Text) -> Contributions:
    """Say how much of what each query took came from which key, in four ways.

    Args:
        ckpt: The model and its tokenizer.
        text: A text or its ids, at least one token long; the last `block_size` tokens are read.

    Raises:
        PromptError: If the text cannot be read.
    """
    window = window_of(ckpt, text)
    parts = anatomy(ckpt.model)
    inside = forward(parts, window.idx).inside
    pattern = inside.pattern[0]
    return Contributions(
        window=window,
        raw=pattern,
        value=value_weighted(parts, inside),
        logit=logit_weighted(ckpt, window.ids),
        rollout=rollout(pattern, residual=parts.residual),
    )


@dataclass(frozen=True, kw_only=True)
class LogitShares:
    """One logit as a sum, with the last LayerNorm frozen: divided by the deviation that it had in this very pass.

    Attributes:
        window: What was read.
        position: True position after which the token stands.
        token_id: The token whose logit it is.
        token: Its text.
        against_id: The token whose logit is subtracted; None if none is.
        logit: What the model itself says, by its own forward pass.
        embedding: Share of the token embedding; 0 in a model without residual connections.
        position_embedding: Share of the position embedding; likewise.
        heads: Share of each head.
        sources: The heads' shares by the token that they came from; summed over keys they are `heads`.
        attention_bias: Share of each projection's bias.
        mlps: Share of each feed-forward network, its biases included.
        norm_bias: Share of the last LayerNorm's bias.
        head_bias: Share of `lm_head`'s bias.
    """

    window: Window
    position: int
    token_id: int
    token: str
    against_id: int | None
    logit: float
    embedding: float
    position_embedding: float
    heads: Float[Tensor, "layer head"]
    sources: Float[Tensor, "layer head key"]
    attention_bias: Float[Tensor, " layer"]
    mlps: Float[Tensor, " layer"]
    norm_bias: float
    head_bias: float

    @property
    def remainder(self) -> float:
        """`logit` minus the sum of all shares: rounding, and nothing else."""
        return self.logit - sum(self.shares().values())

    def shares(self) -> dict[str, float]:
        """Return every term of the sum by its name, in the order of the computation; parts that do not exist are 0."""
        named = {"token embedding": self.embedding, "position embedding": self.position_embedding}
        for layer, heads in enumerate(self.heads):
            named |= {f"L{layer}H{head}": share for head, share in enumerate(numbers(heads))}
            named[f"L{layer} attention bias"] = float(self.attention_bias[layer])
            named[f"L{layer} MLP"] = float(self.mlps[layer])
        return named | {"last LayerNorm bias": self.norm_bias, "lm_head bias": self.head_bias}

    def to_frame(self) -> Any:  # noqa: ANN401 (a pandas.DataFrame)
        """Return one row per term of the sum, and one for the remainder."""
        named = {**self.shares(), "remainder": self.remainder}
        return frame({"part": list(named), "logit": list(named.values())})


def direct_logits(
    ckpt: Checkpoint,
    text: Text,
    *,
    position: int | None = None,
    token: int | str | None = None,
    against: int | str | None = None,
) -> LogitShares:
    """Take one logit apart: what each head and each feed-forward network writes in its direction.

    The last LayerNorm subtracts the mean and divides by the deviation of the whole stream; with that divisor held, it
    is linear, and so is everything above the layers. The parts are computed in float64.

    Args:
        ckpt: The model and its tokenizer.
        text: A text or its ids, at least one token long; the last `block_size` tokens are read.
        position: True position of the token after which the prediction is looked at; None for the last.
        token: The token whose logit it is, an id or its text; None for the one that follows, or after the last the
            likeliest.
        against: A token whose logit is subtracted: the sum then says why the one and not the other.

    Raises:
        PromptError: If the text cannot be read, or there is no such position or token.
    """
    window = window_of(ckpt, text)
    place = window.place(position)
    with torch.no_grad():
        own = ckpt.model(window.idx[None])[0][0, place]
    chosen = chosen_token(ckpt, window, place, token, own)
    other = None if against is None else token_id(ckpt, against)
    parts = anatomy(ckpt.model, torch.float64)
    inside = forward(parts, window.idx).inside
    direction, bias, logit = parts.unembed[chosen], parts.unembed_bias[chosen], own[chosen]
    if other is not None:
        direction, bias, logit = direction - parts.unembed[other], bias - parts.unembed_bias[other], logit - own[other]
    norm_bias = 0.0 if parts.norm is None else float(parts.norm.bias @ direction)
    direction = _back_through_norm(parts, inside.residual[0, -1, place], direction)
    handed = torch.stack([layer.out @ direction for layer in parts.layers])
    values = (inside.values[0] * handed[:, :, None, :]).sum(-1)
    sources = inside.pattern[0, :, :, place] * values
    stream = float(parts.residual)
    return LogitShares(
        window=window,
        position=window.start + place,
        token_id=chosen,
        token=ckpt.tokenizer.piece(chosen),
        against_id=other,
        logit=float(logit),
        embedding=stream * float(parts.tokens[window.ids[place]] @ direction),
        position_embedding=stream * float(parts.positions[place] @ direction),
        heads=sources.sum(-1),
        sources=sources,
        attention_bias=torch.stack([layer.out_bias for layer in parts.layers]) @ direction,
        mlps=inside.mlp[0, :, place] @ direction,
        norm_bias=norm_bias,
        head_bias=float(bias),
    )
