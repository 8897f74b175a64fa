"""The parameters of any of the three models as the same named parts, head by head.

So that an analysis is written once: the chapters' attention-only models are a stack of one layer without LayerNorm,
feed-forward network and residual connection, and a single head without projection has the identity as its projection.
Biases that a model lacks are zeros. Nothing here computes with a text; `minigpt.analysis.forward` does.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from minigpt.model import (
    Block,
    Head,
    LanguageModel,
    MultiHeadAttention,
    MultiHeadAttentionLanguageModel,
    SingleHeadAttentionLanguageModel,
    TransformerLanguageModel,
)


@dataclass(frozen=True, kw_only=True)
class Norm:
    """A LayerNorm: `(x − mean) / √(variance + epsilon) · weight + bias`, over the last axis."""

    weight: Float[Tensor, " n_embd"]
    bias: Float[Tensor, " n_embd"]
    epsilon: float

    def __call__(self, x: Float[Tensor, "*batch n_embd"]) -> Float[Tensor, "*batch n_embd"]:
        """Return the normalised vectors."""
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)

    def deviation(self, x: Float[Tensor, "*batch n_embd"]) -> Float[Tensor, "*batch"]:
        """Return what the vectors are divided by."""
        return (x.var(-1, correction=0) + self.epsilon).sqrt()


@dataclass(frozen=True, kw_only=True)
class ByHead:
    """A linear layer from the residual stream to every head's queries, keys or values."""

    weight: Float[Tensor, "head size n_embd"]
    bias: Float[Tensor, "head size"]

    def __call__(self, x: Float[Tensor, "*batch time n_embd"]) -> Float[Tensor, "*batch head time size"]:
        """Return one vector per head and token."""
        rows = F.linear(x, self.weight.flatten(0, 1), self.bias.flatten())
        return rows.view(*rows.shape[:-1], *self.bias.shape).transpose(-3, -2)


@dataclass(frozen=True, kw_only=True)
class FeedForwardPart:
    """A block's feed-forward network with its LayerNorm: `down(activation(up(norm(x))))`."""

    norm: Norm
    up: Float[Tensor, "hidden n_embd"]
    up_bias: Float[Tensor, " hidden"]
    down: Float[Tensor, "n_embd hidden"]
    down_bias: Float[Tensor, " n_embd"]
    activation: Callable[[Tensor], Tensor]

    def __call__(self, x: Float[Tensor, "*batch n_embd"]) -> Float[Tensor, "*batch n_embd"]:
        """Return what the network adds to the residual stream."""
        hidden = self.activation(F.linear(self.norm(x), self.up, self.up_bias))
        return F.linear(hidden, self.down, self.down_bias)


@dataclass(frozen=True, kw_only=True)
class LayerPart:
    """One layer: what its heads ask, answer and hand over, how that is written back, and the network after it.

    Attributes:
        norm: LayerNorm before the heads; None where the model has none.
        query: From the (normalised) residual stream to queries.
        key: The same to keys.
        value: The same to values.
        out: The rows of the projection that belong to each head: what a head's output adds to the stream.
        out_bias: The projection's bias, which belongs to no head.
        mlp: The feed-forward network; None where the model has none.
    """

    norm: Norm | None
    query: ByHead
    key: ByHead
    value: ByHead
    out: Float[Tensor, "head size n_embd"]
    out_bias: Float[Tensor, " n_embd"]
    mlp: FeedForwardPart | None


@dataclass(frozen=True, kw_only=True)
class Anatomy:
    """A model in parts. The tensors share memory with the model's where that is possible: do not write to them.

    Attributes:
        tokens: Token embedding.
        positions: Position embedding.
        layers: From the first to the last.
        norm: The last LayerNorm; None where the model has none.
        unembed: `lm_head`'s matrix, one row per token.
        unembed_bias: Its bias.
        residual: Whether a layer adds to the stream; if not, its output replaces it.
    """

    tokens: Float[Tensor, "vocab n_embd"]
    positions: Float[Tensor, "block n_embd"]
    layers: tuple[LayerPart, ...]
    norm: Norm | None
    unembed: Float[Tensor, "vocab n_embd"]
    unembed_bias: Float[Tensor, " vocab"]
    residual: bool

    def embed(self, idx: Int[Tensor, " time"]) -> Float[Tensor, "time n_embd"]:
        """Return token embedding + position embedding."""
        return self.tokens[idx] + self.positions[: len(idx)]

    def logits(self, x: Float[Tensor, "*batch n_embd"]) -> Float[Tensor, "*batch vocab"]:
        """Return the logits of the stream after the last layer."""
        return F.linear(x if self.norm is None else self.norm(x), self.unembed, self.unembed_bias)


def anatomy(model: LanguageModel, dtype: torch.dtype | None = None) -> Anatomy:
    """Take a model apart.

    Args:
        model: Any of the three language models, wherever it is; the parts are on the CPU.
        dtype: What to compute in; None for the model's own.
    """
    take = _Taker(dtype)
    blocks = model.blocks if isinstance(model, TransformerLanguageModel) else ()
    if isinstance(model, TransformerLanguageModel):
        layers = [take.block(block) for block in cast(Iterable[Block], blocks)]
    elif isinstance(model, MultiHeadAttentionLanguageModel):
        layers = [take.heads(model.sa_heads, None, None)]
    elif isinstance(model, SingleHeadAttentionLanguageModel):
        layers = [take.single(model.sa_head)]
    else:
        raise TypeError(f"expected one of the three language models, got {type(model).__name__}")
    return Anatomy(
        tokens=take.tensor(model.token_embedding_table.weight),
        positions=take.tensor(model.position_embedding_table.weight),
        layers=tuple(layers),
        norm=take.norm(model.ln_f) if isinstance(model, TransformerLanguageModel) else None,
        unembed=take.tensor(model.lm_head.weight),
        unembed_bias=take.bias(model.lm_head),
        residual=isinstance(model, TransformerLanguageModel),
    )


class _Taker:
    """Copies nothing that already is on the CPU and of the right type."""

    def __init__(self, dtype: torch.dtype | None) -> None:
        self.dtype = dtype

    def tensor(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(device="cpu", dtype=self.dtype or tensor.dtype)

    def bias(self, layer: nn.Linear | nn.LayerNorm) -> Tensor:
        bias = cast(Tensor | None, layer.bias)  # PyTorch's types do not allow it to be missing
        weight = self.tensor(layer.weight)
        return weight.new_zeros(len(weight)) if bias is None else self.tensor(bias)

    def norm(self, layer: nn.LayerNorm) -> Norm:
        return Norm(weight=self.tensor(layer.weight), bias=self.bias(layer), epsilon=layer.eps)

    def block(self, block: Block) -> LayerPart:
        up, activation, down = cast(tuple[nn.Linear, Callable[[Tensor], Tensor], nn.Linear], tuple(block.ffwd.net)[:3])
        mlp = FeedForwardPart(
            norm=self.norm(block.ln2),
            up=self.tensor(up.weight),
            up_bias=self.bias(up),
            down=self.tensor(down.weight),
            down_bias=self.bias(down),
            activation=activation,
        )
        return self.heads(block.sa, self.norm(block.ln1), mlp)

    def heads(self, attention: MultiHeadAttention, norm: Norm | None, mlp: FeedForwardPart | None) -> LayerPart:
        fused = attention.heads
        shape = (fused.n_head, 3, fused.head_size)
        weight = self.tensor(fused.weight).view(*shape, -1)
        bias = weight.new_zeros(shape) if fused.bias is None else self.tensor(fused.bias).view(shape)
        key, query, value = (
            ByHead(weight=weight[:, part].contiguous(), bias=bias[:, part].contiguous()) for part in range(3)
        )
        out = self.tensor(attention.proj.weight).T.reshape(fused.n_head, fused.head_size, -1)
        out_bias = self.bias(attention.proj)
        return LayerPart(norm=norm, query=query, key=key, value=value, out=out, out_bias=out_bias, mlp=mlp)

    def single(self, head: Head) -> LayerPart:
        query, key, value = (
            ByHead(weight=self.tensor(layer.weight)[None], bias=self.bias(layer)[None])
            for layer in (head.query, head.key, head.value)
        )
        width = head.query.out_features
        out = torch.eye(width, dtype=query.weight.dtype)[None]
        return LayerPart(norm=None, query=query, key=key, value=value, out=out, out_bias=out.new_zeros(width), mlp=None)
