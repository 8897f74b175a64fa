"""The same models, stripped for looking and generating: what is fast stands here, what is clear stands in `model.py`.

A `LeanModel` is a *snapshot* for inference. It computes what its model computes, up to rounding, with about a third of
the operations. What can be multiplied out once (in float64) is: LayerNorm's scale and shift and attention's 1/√D go
into the matrices that follow them; and whatever writes to the residual stream writes numbers whose mean is 0, which
changes nothing, since all that is ever read from it goes through LayerNorm, and spares its readers the mean. Matrices
lie so that `addmm` reads them in long rows. Queries, keys and values of all layers live in one buffer with ready-made
views, and the softmax of every layer is written into one (layer, head, query, key) tensor.

Training the model further does not reach a snapshot that was taken before; `lean_model(model)` returns one that is up
to date. A snapshot knows a model by its configuration and its parameters alone, under the chapters' names: hooks and
overridden methods are not seen. How a snapshot reads a growing text stands in `minigpt.engine`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from minigpt.config import ModelConfig

PADDING = 16
SPARE = 2**20
"""Most numbers in the queries, keys and values of a workspace that is kept; in larger ones the views cost nothing."""


@runtime_checkable
class Source(Protocol):
    """What a snapshot asks of a model: its configuration, and its parameters under the chapters' names."""

    @property
    def config(self) -> ModelConfig:
        """The architecture."""
        ...

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        """Return the parameters, wherever they are."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return the parameters by name."""
        ...


class Affine(NamedTuple):
    """A linear layer as `torch.addmm(bias, x, matrix)` wants it."""

    bias: Tensor
    matrix: Tensor


class Output(NamedTuple):
    """A linear layer that adds to what is there.

    Attributes:
        bias: Its bias.
        matrix: Its matrix (in, out).
        whole: The matrix with the bias as one more row, and `PADDING` - 1 rows of zeros, so that rows stay aligned:
            `x.addmm_(vectors, whole)` is all, if behind each vector stand a 1 and zeros.
    """

    bias: Tensor
    matrix: Tensor
    whole: Tensor


class Layer(NamedTuple):
    """One layer: from normalised vectors to queries, keys and values; from the heads on; up and down again."""

    qkv: Affine
    proj: Output | None
    up: Affine | None
    down: Output | None


class FirstLayer(NamedTuple):
    """What the first layer makes of every token at every position, at row `position * vocab_size + token`.

    Attributes:
        vectors: Token embedding + position embedding.
        qkv: Their queries, keys and values.
    """

    vectors: Tensor
    qkv: Tensor


class Workspace:
    """Room for the numbers of one pass over a text, and the views that each layer has of it.

    Making a view costs as much as multiplying small matrices, so a small workspace is kept for the next text of that
    length.

    Args:
        lean: The model that works in it.
        time: How many tokens the text has.
    """

    def __init__(self, lean: "LeanModel", time: int) -> None:
        config, tokens = lean.config, lean.tokens
        n_head, size, width = config.n_head, config.head_size, config.n_embd
        kept = tokens.new_empty(len(lean.layers), time, 3, n_head, size)
        self.size = kept.numel()
        self.positions = lean.positions[:time]
        self.received = kept.flatten(2).unbind(0)
        self.queries = kept[:, :, 0].transpose(1, 2).unbind(0)
        self.keys = kept[:, :, 1].permute(0, 2, 3, 1).unbind(0)
        self.values = kept[:, :, 2].transpose(1, 2).unbind(0)
        future = torch.full((time, time), float("-inf"), dtype=tokens.dtype).triu_(1)
        self.future = future.expand(n_head, time, time)
        self.by_head = tokens.new_empty(n_head, time, size)
        self.by_head_turned = self.by_head.transpose(0, 1)
        self.gathered, self.gathered_whole = with_one(tokens, time, width)
        self.gathered_by_head = self.gathered.unflatten(1, (n_head, size))
        self.hidden, self.hidden_whole = with_one(tokens, time, 4 * width)


def with_one(like: Tensor, rows: int, width: int) -> tuple[Tensor, Tensor]:
    """Return room for vectors, and the same with a 1 and zeros behind each, as `Output.whole` wants them."""
    whole = like.new_zeros(rows, width + PADDING)
    whole[:, width] = 1
    return whole[:, :width], whole


class LeanModel:
    """An inference-only snapshot of a model. Threads may share it.

    Args:
        model: Any of the three language models, wherever it is. Its parameters are copied to the CPU; float64 stays
            float64, everything else becomes float32.

    Attributes:
        config: The architecture.
        layers: The layers' matrices, first to last.
        lm_head: From the last vectors to logits.
        tokens: The token embedding, one row a token.
        positions: The position embedding, one row a position.
        activate: The non-linearity, in place.
    """

    def __init__(self, model: Source) -> None:
        self.config = model.config
        self._marks = [(parameter, _mark(parameter), _sum(parameter)) for parameter in model.parameters()]
        parts = _Parts(model.config, model.state_dict())
        self.tokens, self.positions = parts.embedding("token"), parts.embedding("position")
        self.layers = [parts.layer(index) for index in range(model.config.n_layer)]
        self.lm_head = parts.linear("lm_head", norm="ln_f" if parts.blocks else None)
        # Blocks normalise and add to what was there; the attention-only models do neither.
        self.blocks = parts.blocks
        self.activate: Callable[[Tensor], Tensor] = (
            torch.relu_
            if model.config.activation == "relu"
            else partial(torch.ops.aten.gelu_, approximate="tanh" if model.config.activation == "gelu_tanh" else "none")
        )
        self._spare: dict[int, Workspace] = {}
        self._first_layer: FirstLayer | None = None

    def first_layer(self, most: int) -> FirstLayer | None:
        """Return what the first layer makes of every token at every position.

        Args:
            most: Most numbers in it. If there were more, the answer is None.
        """
        config = self.config
        if config.vocab_size * config.block_size * 4 * config.n_embd > most:
            return None
        if self._first_layer is None:
            vectors = (self.positions[:, None] + self.tokens).flatten(0, 1)
            epsilon = config.layer_norm_epsilon
            normed = torch.layer_norm(vectors, (config.n_embd,), eps=epsilon) if self.blocks else vectors
            qkv = self.layers[0].qkv
            self._first_layer = FirstLayer(vectors, torch.addmm(qkv.bias, normed, qkv.matrix))
        return self._first_layer

    def is_current(self, *, thorough: bool = False) -> bool:
        """Return whether no parameter of the model was changed or moved since the snapshot was taken.

        Args:
            thorough: Whether to add up the parameters as well, since a change through `.data` leaves no other trace.
        """
        return all(
            _mark(parameter) == mark and (not thorough or _sum(parameter) == total)
            for parameter, mark, total in self._marks
        )

    @torch.inference_mode()
    def forward_with_weights(
        self, idx: Int[Tensor, " time"]
    ) -> tuple[Float[Tensor, "time vocab"], Float[Tensor, "layer head time time"]]:
        """Return the logits at every position and all attention weights of one text.

        Both are inference tensors: clone them before changing them in place or giving them to autograd.

        Args:
            idx: 1 to `block_size` token ids.

        Raises:
            ValueError: If there are none or more.
        """
        time = len(idx)
        if not 1 <= time <= self.config.block_size:
            raise ValueError(f"expected 1 to block_size = {self.config.block_size} tokens, got {time}")
        # Taken out of the dict while in use, so that another thread makes its own.
        space = self._spare.pop(time, None) or Workspace(self, time)
        weights = self.tokens.new_empty(len(self.layers), self.config.n_head, time, time)
        logits = self.logits(self._run(idx, space, weights.unbind(0)))
        if space.size <= SPARE:
            self._spare = {time: space}
        return logits, weights

    def _run(
        self, idx: Int[Tensor, " time"], space: Workspace, weights: Sequence[Tensor]
    ) -> Float[Tensor, "time n_embd"]:
        """Run a text through all layers and write each layer's (head, query, key) weights."""
        width, epsilon = (self.config.n_embd,), self.config.layer_norm_epsilon
        x = torch.embedding(self.tokens, idx).add_(space.positions)
        for index, (qkv, proj, up, down) in enumerate(self.layers):
            normed = torch.layer_norm(x, width, eps=epsilon) if self.blocks else x
            torch.addmm(qkv.bias, normed, qkv.matrix, out=space.received[index])
            scores = torch.baddbmm(space.future, space.queries[index], space.keys[index], out=weights[index])
            torch.softmax(scores, -1, out=scores)
            torch.bmm(scores, space.values[index], out=space.by_head)
            space.gathered_by_head.copy_(space.by_head_turned)
            if up is not None and down is not None and proj is not None:
                x.addmm_(space.gathered_whole, proj.whole)
                normed = torch.layer_norm(x, width, eps=epsilon)
                self.activate(torch.addmm(up.bias, normed, up.matrix, out=space.hidden))
                x.addmm_(space.hidden_whole, down.whole)
            else:
                x = space.gathered if proj is None else torch.addmm(proj.bias, space.gathered, proj.matrix)
        return x

    def logits(self, x: Float[Tensor, "out n_embd"]) -> Float[Tensor, "out vocab"]:
        """Return the logits of the tokens that follow what came out of the last layer."""
        if self.blocks:
            x = torch.layer_norm(x, (self.config.n_embd,), eps=self.config.layer_norm_epsilon)
        return torch.addmm(self.lm_head.bias, x, self.lm_head.matrix)


_snapshots: WeakKeyDictionary[Any, LeanModel] = WeakKeyDictionary()


def lean_model(model: Source, *, thorough: bool = False) -> LeanModel:
    """Return a snapshot of the model as it is now: the last one taken, or a new one if a parameter changed since.

    Args:
        model: Any of the three language models.
        thorough: Whether to find changes through `.data`, too, for the time it takes to read all parameters once.
    """
    lean = _snapshots.get(model)
    if lean is None or not lean.is_current(thorough=thorough):
        lean = _snapshots[model] = LeanModel(model)
    return lean


def marks(model: Source) -> list[tuple[int, int]]:
    """Return what changes whenever a parameter is changed in place or moved, except through `.data`."""
    return [_mark(parameter) for parameter in model.parameters()]


def _mark(parameter: nn.Parameter) -> tuple[int, int]:
    """Return a number that grows whenever the parameter is changed in place, and where it lies."""
    version = 0 if parameter.is_inference() else parameter._version  # pyright: ignore[reportPrivateUsage]
    return version, parameter.data_ptr()


def _sum(parameter: nn.Parameter) -> float:
    return float(parameter.detach().sum())


class _Parts:
    """The parameters of a model, by the chapters' names, multiplied out in float64.

    Args:
        config: The architecture.
        state: The parameters by name.
    """

    def __init__(self, config: ModelConfig, state: Mapping[str, Tensor]) -> None:
        self.blocks = config.kind == "transformer"
        self._config, self._state = config, state
        whole = state["token_embedding_table.weight"].dtype == torch.float64
        self._dtype = torch.float64 if whole else torch.float32

    def embedding(self, name: str) -> Float[Tensor, "row n_embd"]:
        table = self._double(f"{name}_embedding_table.weight")
        return (table - table.mean(1, keepdim=True) if self.blocks else table).to(self._dtype)

    def layer(self, index: int) -> Layer:
        if self._config.kind == "single-head":
            return Layer(self._qkv(["sa_head"], None), None, None, None)
        heads = range(self._config.n_head)
        if self._config.kind == "multi-head":
            return Layer(
                self._qkv([f"sa_heads.heads.{head}" for head in heads], None), self.output("sa_heads.proj"), None, None
            )
        block = f"blocks.{index}."
        return Layer(
            self._qkv([f"{block}sa.heads.{head}" for head in heads], f"{block}ln1"),
            self.output(f"{block}sa.proj"),
            self.linear(f"{block}ffwd.net.0", norm=f"{block}ln2"),
            self.output(f"{block}ffwd.net.2"),
        )

    def linear(self, name: str, *, norm: str | None) -> Affine:
        return self._affine(self._double(f"{name}.weight"), self._bias(name), norm)

    def output(self, name: str) -> Output:
        """Take each column's mean out, where what is written is read through LayerNorm."""
        weight = self._double(f"{name}.weight")
        bias = self._bias(name)
        bias = weight.new_zeros(len(weight)) if bias is None else bias
        whole = torch.cat((weight, bias[:, None], weight.new_zeros(len(weight), PADDING - 1)), dim=1)
        whole = self._in_long_rows(whole - whole.mean(0) if self.blocks else whole)
        inputs = weight.shape[1]
        return Output(whole[inputs].clone(), whole[:inputs], whole)

    def _qkv(self, heads: Sequence[str], norm: str | None) -> Affine:
        """Return all heads' projections, the rows in the order query, key, value, and by head inside each."""
        names = [f"{head}.{part}" for part in ("query", "key", "value") for head in heads]
        weight = torch.cat([self._double(f"{name}.weight") for name in names])
        biases = [bias for name in names if (bias := self._bias(name)) is not None]
        bias = torch.cat(biases) if biases else weight.new_zeros(len(weight))
        scale = torch.ones_like(bias)
        scale[: len(scale) // 3] = self._config.head_size**-0.5
        return self._affine(weight * scale[:, None], bias * scale, norm)

    def _affine(self, weight: Float[Tensor, "out in"], bias: Float[Tensor, " out"] | None, norm: str | None) -> Affine:
        """Fold in the scale and shift of the LayerNorm before."""
        bias = weight.new_zeros(len(weight)) if bias is None else bias
        if norm is not None:
            shift = self._bias(norm)
            bias = bias if shift is None else bias + weight @ shift
            weight = weight * self._double(f"{norm}.weight")
        return Affine(bias.to(self._dtype), self._in_long_rows(weight))

    def _in_long_rows(self, weight: Float[Tensor, "out in"]) -> Float[Tensor, "in out"]:
        """Turn a matrix so that `addmm` can read it; what lies side by side stays the longer side.

        One vector against a matrix is then as fast as memory.
        """
        matrix = weight.to(self._dtype).T
        return matrix.contiguous() if weight.shape[0] >= weight.shape[1] else matrix

    def _bias(self, name: str) -> Float[Tensor, " out"] | None:
        return self._double(f"{name}.bias") if f"{name}.bias" in self._state else None

    def _double(self, name: str) -> Tensor:
        return self._state[name].detach().to("cpu", torch.float64)
