"""The models, from one attention head to the whole transformer, with the chapters' names, signatures and shapes.

`Head` is written out the long way, one step a line. `MultiHeadAttention` computes the same for all heads at once: one
matrix holds every head's key, query and value (`FusedHeads`), yet `state_dict` knows them one by one, as
`heads.2.key.weight`. So a file saved from a list of separate heads loads, what is saved here loads there, and the same
seed draws the same initial numbers. The file is long because a forward pass should be read in one place.

Weights returned by `return_weights=True` are those after the softmax and *before* dropout: every row sums to 1, and
what lies in the future is exactly 0. B texts, T tokens, C = n_embd, H heads of D = C / H, V = vocab_size.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from minigpt.config import Activation, ModelConfig, Options
from minigpt.engine import append
from minigpt.lean import lean_model

Ids = Int[Tensor, "batch time"]
Vectors = Float[Tensor, "batch time n_embd"]
Weights = Float[Tensor, "batch head time time"]
Logits = Float[Tensor, "batch time vocab"]
Loss = Float[Tensor, ""]


class Head(nn.Module):
    """One causal self-attention head: every token asks (query), answers (key) and hands something over (value).

    Args:
        n_embd: Width of what comes in.
        head_size: Width of key, query, value, and of what goes out.
        block_size: Most tokens that can be looked at.
        dropout: Share of attention weights dropped in training, 0 to below 1.
        qkv_bias: Whether the three layers have a bias.
    """

    tril: Tensor

    def __init__(
        self, n_embd: int, head_size: int, block_size: int, dropout: float = 0.0, *, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=qkv_bias)
        self.query = nn.Linear(n_embd, head_size, bias=qkv_bias)
        self.value = nn.Linear(n_embd, head_size, bias=qkv_bias)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Vectors, return_weights: bool = False
    ) -> (
        Float[Tensor, "batch time head_size"]
        | tuple[Float[Tensor, "batch time head_size"], Float[Tensor, "batch time time"]]
    ):
        """Return `out`, or `(out, weights)`: how much each query (row) took from each key (column) up to itself.

        Raises:
            ValueError: If there are more than `block_size` tokens.
        """
        T = x.shape[1]
        check_length(T, len(self.tril))
        k, q, v = self.key(x), self.query(x), self.value(x)
        scores = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        scores = scores.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        weights = scores.softmax(dim=-1)
        out = self.dropout(weights) @ v
        return (out, weights) if return_weights else out


class FusedHeads(nn.Module):
    """The key, query and value layers of all heads as one matrix, which `state_dict` shows as separate heads.

    The rows of `weight` (3C, C) are those of `0.key`, `0.query`, `0.value`, `1.key` and so on, each D rows.
    """

    weight: nn.Parameter
    bias: nn.Parameter | None

    def __init__(self, n_embd: int, n_head: int, block_size: int, *, qkv_bias: bool = False) -> None:
        super().__init__()
        self.n_head, self.head_size, self.block_size = n_head, n_embd // n_head, block_size
        drawn = nn.Linear(n_embd, 3 * n_embd, bias=qkv_bias)
        self.register_parameter("weight", nn.Parameter(drawn.weight))
        self.register_parameter("bias", nn.Parameter(drawn.bias) if qkv_bias else None)

    def forward(self, x: Vectors) -> tuple[Tensor, Tensor, Tensor]:
        """Return key, query and value, each (B, H, T, D).

        Raises:
            ValueError: If there are more than `block_size` tokens.
        """
        B, T, _ = x.shape
        check_length(T, self.block_size)
        rows = F.linear(x, self.weight, self.bias).view(B, T, self.n_head, 3, self.head_size)
        k, q, v = rows.permute(3, 0, 2, 1, 4)
        return k, q, v

    def by_head(self, prefix: str) -> dict[str, Tensor]:
        """Return what separate heads would hold under its name, but for masks: rows of the fused parameters.

        They are views without a history: writing to them writes to the parameters.
        """
        every = (pair for head in range(self.n_head) for pair in self._rows(head))
        return {f"{prefix}{name}": tensor.detach() for name, tensor in every}

    def _rows(self, head: int) -> Iterator[tuple[str, Tensor]]:
        """Yield the parameters of one head, as views."""
        for row, layer in enumerate(("key", "query", "value"), start=3 * head):
            rows = slice(row * self.head_size, (row + 1) * self.head_size)
            yield f"{head}.{layer}.weight", self.weight[rows]
            if self.bias is not None:
                yield f"{head}.{layer}.bias", self.bias[rows]

    def _separate(self, prefix: str) -> dict[str, Tensor]:
        """Return what separate heads would hold under its name: masks, and views of rows of the fused parameters."""
        tril = torch.ones(self.block_size, self.block_size, dtype=self.weight.dtype, device=self.weight.device).tril_()
        separate: dict[str, Tensor] = {}
        for head in range(self.n_head):
            separate[f"{prefix}{head}.tril"] = tril
            separate |= {f"{prefix}{name}": tensor for name, tensor in self._rows(head)}
        return separate

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Write the separate heads."""
        for name, tensor in self._separate(prefix).items():
            destination[name] = tensor if keep_vars else tensor.detach()

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: Mapping[str, Any],  # noqa: ARG002 (torch's signature)
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Read separate heads into the fused parameters. A mask may be missing, but not be another one."""
        separate = self._separate(prefix)
        missing_keys += [name for name in separate if name not in state_dict and not name.endswith(".tril")]
        for name in separate.keys() & state_dict.keys():
            own, given = separate[name].detach(), state_dict[name]
            if given.shape != own.shape:
                error_msgs.append(f"{name} has the shape {tuple(given.shape)}, expected {tuple(own.shape)}.")
            elif not name.endswith(".tril"):
                own.copy_(given)
            elif not torch.equal(given.to(own), own):
                error_msgs.append(f"{name} is not the lower triangle of ones, so it masks something else.")
        if strict:
            unexpected_keys += [name for name in state_dict if name.startswith(prefix) and name not in separate]


class MultiHeadAttention(nn.Module):
    """Several heads side by side, their outputs concatenated and mixed by a projection.

    Args:
        n_embd: Width of what comes in and goes out.
        n_head: Number of heads, each `n_embd / n_head` wide.
        block_size: Most tokens that can be looked at.
        dropout: Share dropped in training of the attention weights and of the output, 0 to below 1.
        qkv_bias: Whether keys, queries and values have a bias.
        bias: Whether the projection has one.

    Raises:
        ValueError: If `n_embd` is not divisible by `n_head`.
    """

    def __init__(
        self,
        n_embd: int,
        n_head: int,
        block_size: int,
        dropout: float = 0.0,
        *,
        qkv_bias: bool = False,
        bias: bool = True,
    ) -> None:
        if n_embd % n_head:
            raise ValueError("n_embd must be divisible by n_head")
        super().__init__()
        self.heads = FusedHeads(n_embd, n_head, block_size, qkv_bias=qkv_bias)
        self.proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Vectors, return_weights: bool = False) -> Vectors | tuple[Vectors, Weights]:
        """Return `out`, or `(out, weights)`: how much each query took from each key, in every head."""
        k, q, v = self.heads(x)
        dropout = self.dropout.p if self.training else 0.0
        weights = causal_weights(q, k) if return_weights else None
        if weights is not None:
            out = drop(weights, dropout) @ v
        elif dropout > 0:
            out = attend_with_dropout(q, k, v, dropout)
        else:
            out = attend(q, k, v)
        out = self.dropout(self.proj(out.transpose(1, 2).flatten(2)))
        return out if weights is None else (out, weights)


def check_length(time: int, block_size: int) -> None:
    """Raise ValueError if there are more tokens than the model can look at."""
    if time > block_size:
        raise ValueError(
            f"at most block_size = {block_size} tokens, got {time}; crop the text with idx[:, -block_size:]"
        )


def causal_weights(
    q: Float[Tensor, "batch head query size"], k: Float[Tensor, "batch head key size"]
) -> Float[Tensor, "batch head query key"]:
    """Return softmax(q·k / √D) over each query's past, exactly 0 beyond it. The last query is the last key's token."""
    B, H, Q, D = q.shape
    K = k.shape[2]
    future = torch.full((Q, K), float("-inf"), dtype=q.dtype, device=q.device).triu_(1 + K - Q)
    scores = torch.baddbmm(future, q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2), alpha=D**-0.5)
    return scores.softmax(dim=-1).view(B, H, Q, K)


def attend(
    q: Float[Tensor, "batch head time size"],
    k: Float[Tensor, "batch head time size"],
    v: Float[Tensor, "batch head time size"],
) -> Float[Tensor, "batch head time size"]:
    """Return what each query takes from its past, by PyTorch's fused attention.

    On a CPU its backward pass in bfloat16 takes four times as long as in float32, so there it gets float32.
    """
    if q.dtype == torch.bfloat16 and q.device.type == "cpu":
        with torch.autocast("cpu", enabled=False):
            return F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attend_with_dropout(
    q: Float[Tensor, "batch head time size"],
    k: Float[Tensor, "batch head time size"],
    v: Float[Tensor, "batch head time size"],
    dropout: float,
    rows: int = 64,
) -> Float[Tensor, "batch head time size"]:
    """Return the heads' outputs with a share of the attention weights dropped, `rows` queries at a time.

    A slice of queries leaves out the keys that lie in the future of them all: 3/8 of the square at 256 tokens. With
    the cheap draw of `drop` it takes a third of the time of whole squares and `torch.dropout`, and no longer than
    `scaled_dot_product_attention` without any dropout.
    """
    outs: list[Tensor] = []
    for start in range(0, q.shape[2], rows):
        end = start + rows
        weights = causal_weights(q[:, :, start:end], k[:, :, :end])
        outs.append(drop(weights, dropout) @ v[:, :, :end])
    return torch.cat(outs, dim=2)


def drop(
    weights: Float[Tensor, "*shape"], dropout: float, generator: torch.Generator | None = None
) -> Float[Tensor, "*shape"]:
    """Set a share of the weights to 0 and scale up the rest, so that the mean stays.

    On the CPU four weights share one 64-bit random number, which takes a seventh of the time of `torch.dropout`'s draw;
    the share is then right to 2⁻¹⁷, and the scale fits the share as it is. A generator, where one is given, is used on
    the CPU alone.
    """
    if dropout == 0 or weights.device.type != "cpu":
        return F.dropout(weights, dropout)
    dropped = round(dropout * 2**16)
    numbers = torch.empty(-(-weights.numel() // 4), dtype=torch.int64).random_(-(2**63), None, generator=generator)
    bits = numbers.view(torch.int16)[: weights.numel()].view(weights.shape)
    return weights * (bits >= dropped - 2**15) * (2**16 / (2**16 - dropped))


class FeedForward(nn.Module):
    """Each token thinks by itself: four times wider, a non-linearity, and back.

    Args:
        n_embd: Width of what comes in and goes out.
        dropout: Share of the output dropped in training, 0 to below 1.
        activation: `"relu"`, `"gelu"` or `"gelu_tanh"`.
        bias: Whether the layers have a bias.
    """

    def __init__(
        self, n_embd: int, dropout: float = 0.0, *, activation: Activation = "relu", bias: bool = True
    ) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd, bias=bias),
            nn.ReLU() if activation == "relu" else nn.GELU("tanh" if activation == "gelu_tanh" else "none"),
            nn.Linear(4 * n_embd, n_embd, bias=bias),
            nn.Dropout(dropout),
        )

    def forward(self, x: Vectors) -> Vectors:
        """Return one new vector per token."""
        return self.net(x)


class Block(nn.Module):
    """A transformer block: the tokens communicate, then each computes, both added to what was there.

    LayerNorm comes before each (pre-LN): `x + sa(ln1(x))`, then `x + ffwd(ln2(x))`. The arguments are those of
    `MultiHeadAttention` and `FeedForward`; `layer_norm_epsilon` is added to the variance.

    Raises:
        ValueError: If `n_embd` is not divisible by `n_head`.
    """

    def __init__(
        self,
        n_embd: int,
        n_head: int,
        block_size: int,
        dropout: float = 0.0,
        *,
        activation: Activation = "relu",
        qkv_bias: bool = False,
        bias: bool = True,
        layer_norm_epsilon: float = 1e-5,
    ) -> None:
        super().__init__()
        self.sa = MultiHeadAttention(n_embd, n_head, block_size, dropout, qkv_bias=qkv_bias, bias=bias)
        self.ffwd = FeedForward(n_embd, dropout, activation=activation, bias=bias)
        self.ln1 = nn.LayerNorm(n_embd, eps=layer_norm_epsilon, bias=bias)
        self.ln2 = nn.LayerNorm(n_embd, eps=layer_norm_epsilon, bias=bias)

    def forward(self, x: Vectors, return_weights: bool = False) -> Vectors | tuple[Vectors, Weights]:
        """Return the tokens' vectors after this block, or `(vectors, weights)`."""
        gathered = self.sa(self.ln1(x), return_weights)
        weights = None
        if return_weights:
            gathered, weights = gathered
        x = x + gathered
        x = x + self.ffwd(self.ln2(x))
        return x if weights is None else (x, weights)


class LanguageModel(nn.Module, ABC):
    """What the three models share: embeddings below, `lm_head` above, the loss, and sampling.

    Attributes:
        config: The architecture, enough for `build_model`.
        block_size: Most tokens the model can look at.
    """

    lm_head: nn.Linear

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.block_size = config.block_size
        self.token_embedding_table = nn.Embedding(config.vocab_size, config.n_embd)
        self.position_embedding_table = nn.Embedding(config.block_size, config.n_embd)

    def _add_lm_head(self) -> None:
        self.lm_head = nn.Linear(self.config.n_embd, self.config.vocab_size, bias=self.config.head_bias)
        if self.config.tied:
            self.token_embedding_table.weight = self.lm_head.weight

    def tensors_by_name(self) -> dict[str, Tensor]:
        """Return all parameters under the names of `state_dict`, without masks: views without a history."""
        tensors: dict[str, Tensor] = {}
        for name, parameter in self.named_parameters(remove_duplicate=False):
            owner, _, attribute = name.rpartition(".")
            heads = self.get_submodule(owner)
            if not isinstance(heads, FusedHeads):
                tensors[name] = parameter.detach()
            elif attribute == "weight":
                tensors |= heads.by_head(f"{owner}.")
        return tensors

    def embed(self, idx: Ids) -> Vectors:
        """Return token embedding + position embedding.

        Raises:
            ValueError: If `idx` is not (B, T) with 1 to `block_size` tokens.
            IndexError: If an id is outside the vocabulary.
        """
        if idx.ndim != 2 or not 1 <= idx.shape[1] <= self.block_size:
            raise ValueError(
                f"idx must be (batch, time) with 1 to block_size = {self.block_size} tokens, got {tuple(idx.shape)}; "
                "crop a longer text with idx[:, -block_size:]"
            )
        try:
            tokens = self.token_embedding_table(idx)
        except IndexError:
            most, low, high = self.config.vocab_size - 1, int(idx.min()), int(idx.max())
            raise IndexError(f"token ids must run from 0 to vocab_size - 1 = {most}, got {low} to {high}") from None
        return tokens + self.position_embedding_table.weight[: idx.shape[1]]

    @abstractmethod
    def middle(self, x: Vectors, return_weights: bool) -> tuple[Vectors, list[Weights]]:
        """Return what comes out between embeddings and `lm_head`, and each layer's weights if asked (else none)."""

    def forward(
        self, idx: Ids, targets: Ids | None = None, return_weights: bool = False
    ) -> tuple[Logits, Loss | None] | tuple[Logits, Loss | None, Float[Tensor, "layer batch head time time"]]:
        """Predict the next token at every position.

        Args:
            idx: Token ids, at most `block_size` of them in a row.
            targets: The token that really follows each; without them the loss is None.
            return_weights: Whether to return the attention weights of every layer and head as well.

        Returns:
            `(logits, loss)` or `(logits, loss, weights)`. Logits are (B, T, V) with targets and without; the loss is
            the mean cross-entropy in nats per token; weights are (n_layer, B, n_head, T, T).

        Raises:
            ValueError: If `idx` is not (B, T) with 1 to `block_size` tokens, or `targets` has another shape.
            IndexError: If an id is outside the vocabulary.
        """
        if targets is not None and targets.shape != idx.shape:
            raise ValueError(
                f"targets must have the shape of idx, {tuple(idx.shape)}, got {tuple(targets.shape)}; they are the "
                "same windows one token later"
            )
        x, weights = self.middle(self.embed(idx), return_weights)
        logits = self.lm_head(x)
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return (logits, loss, torch.stack(weights)) if return_weights else (logits, loss)

    def generate(self, idx: Ids, max_new_tokens: int) -> Int[Tensor, "batch longer"]:
        """Append tokens, each drawn from the model's own distribution after the last `block_size` tokens.

        The same as drawing with `torch.multinomial` from `self(idx[:, -block_size:])[0][:, -1].softmax(-1)` again and
        again, with the same tokens for the same `torch.manual_seed`, but read by `minigpt.engine`: on the processor,
        from the parameters alone (hooks are not called), without dropout and without gradient.

        Args:
            idx: What to continue, at least one token in each row.
            max_new_tokens: How many tokens to append.

        Raises:
            ValueError: If `idx` is not (B, T) with at least one token.
            IndexError: If an id is outside the vocabulary.
        """
        self.embed(idx[:, -self.block_size :])
        return append(lean_model(self, thorough=True), idx, max_new_tokens)


class SingleHeadAttentionLanguageModel(LanguageModel):
    """Embeddings, one attention head as wide as the embedding, `lm_head`."""

    def __init__(
        self, vocab_size: int, block_size: int, n_embd: int, dropout: float = 0.0, **options: Unpack[Options]
    ) -> None:
        sizes: dict[str, Any] = {"vocab_size": vocab_size, "block_size": block_size, "n_embd": n_embd}
        super().__init__(ModelConfig(kind="single-head", **sizes, dropout=dropout, **options))
        self.sa_head = Head(n_embd, n_embd, block_size, dropout, qkv_bias=self.config.qkv_bias)
        self._add_lm_head()

    def middle(self, x: Vectors, return_weights: bool) -> tuple[Vectors, list[Weights]]:
        """Return the head's output, and its weights as those of a layer of one head."""
        if not return_weights:
            return self.sa_head(x), []
        x, weights = self.sa_head(x, return_weights=True)
        return x, [weights[:, None]]


class MultiHeadAttentionLanguageModel(LanguageModel):
    """Embeddings, one layer of several heads, `lm_head`: no feed-forward network, LayerNorm or residual connection."""

    def __init__(
        self,
        vocab_size: int,
        block_size: int,
        n_embd: int,
        n_head: int,
        dropout: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        sizes: dict[str, Any] = {"vocab_size": vocab_size, "block_size": block_size, "n_embd": n_embd, "n_head": n_head}
        super().__init__(ModelConfig(kind="multi-head", **sizes, dropout=dropout, **options))
        qkv_bias, bias = self.config.qkv_bias, self.config.bias
        self.sa_heads = MultiHeadAttention(n_embd, n_head, block_size, dropout, qkv_bias=qkv_bias, bias=bias)
        self._add_lm_head()

    def middle(self, x: Vectors, return_weights: bool) -> tuple[Vectors, list[Weights]]:
        """Return the layer's output, and its weights."""
        if not return_weights:
            return self.sa_heads(x), []
        x, weights = self.sa_heads(x, return_weights=True)
        return x, [weights]


class TransformerLanguageModel(LanguageModel):
    """The Mini GPT: embeddings, a stack of transformer blocks, a last LayerNorm, `lm_head`."""

    def __init__(
        self,
        vocab_size: int,
        block_size: int,
        n_embd: int,
        n_head: int,
        n_layer: int,
        dropout: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        sizes: dict[str, Any] = {"vocab_size": vocab_size, "block_size": block_size, "n_embd": n_embd, "n_head": n_head}
        config = ModelConfig(**sizes, n_layer=n_layer, dropout=dropout, **options)
        super().__init__(config)
        inside: dict[str, Any] = {
            "activation": config.activation,
            "qkv_bias": config.qkv_bias,
            "bias": config.bias,
            "layer_norm_epsilon": config.layer_norm_epsilon,
        }
        self.blocks = nn.Sequential(*(Block(n_embd, n_head, block_size, dropout, **inside) for _ in range(n_layer)))
        self.ln_f = nn.LayerNorm(n_embd, eps=config.layer_norm_epsilon, bias=config.bias)
        self._add_lm_head()

    def middle(self, x: Vectors, return_weights: bool) -> tuple[Vectors, list[Weights]]:
        """Return the stack's output after `ln_f`, and each block's weights."""
        layers: list[Tensor] = []
        for block in self.blocks:
            x = block(x, return_weights)
            if return_weights:
                x, weights = x
                layers.append(weights)
        return self.ln_f(x), layers


def build_model(config: ModelConfig) -> LanguageModel:
    """Return a model of this architecture, randomly initialised as PyTorch does by default."""
    settings = config.to_dict()
    kind = settings.pop("kind")
    if kind == "transformer":
        return TransformerLanguageModel(**settings)
    del settings["n_layer"]
    if kind == "multi-head":
        return MultiHeadAttentionLanguageModel(**settings)
    del settings["n_head"]
    return SingleHeadAttentionLanguageModel(**settings)
