"""A text that grows, read by a lean model: the logits after its last token with as little work as is exact.

This is the one engine behind `model.generate`, `minigpt.generate`, the command line and the page. What it must equal is
the plain form: `model(idx[:, -block_size:])[0][:, -1]`. It computes no logits but the last position's, keeps no weights
and tracks no gradient. What it costs, with C = n_embd, T tokens in the window and n_layer layers:

*Inside the window* keys and values are kept, and a new token costs one row: 12·C² products a layer and 2·T·C for
attention. Of a small model that is little beside the 1 to 5 µs that starting an operation takes, so there the fewest
operations win: one text's row goes through `addmv`, and LayerNorm is one `numpy.dot` and one `numpy.multiply`, since a
lean model's residual stream has mean 0. Of a large model it is the time to read every matrix once from memory. Several
texts read each matrix together.

*Beyond it* the window slides: every token stands at a new position, and what deeper layers know of a token that fell
out lives on in those who attended to it. No key or value that was kept may be used; the window is computed anew, except

- in the first layer, where normalised vectors, queries, keys and values depend on nothing but a token and its position:
  a table holds them for all V·T pairs where that is at most `LARGEST_TABLE` numbers, and a look-up replaces embedding,
  LayerNorm and a T × C × 3C product;
- in the last, where only one query is asked. Instead of all keys, `q·(x·Wₖ)` is computed as `(q·Wₖᵀ)·x`, and instead
  of all values, `Σ a·(x·Wᵥ)` as `(Σ a·x)·Wᵥ`: no T × C × C product is left in that layer at all.

So of n_layer·12·T·C² products (n_layer − 1)·12·T·C² − 3·T·C² are left; a model of one layer costs T·C. A model whose
window is full and whose matrices are large is bound by these products and nothing else.

The file is long because its ways to the same logits should be read beside each other.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from minigpt.lean import Affine, Layer, LeanModel, Output, with_one

LARGEST_TABLE = 2**22
"""Most numbers in the first layer's table: 16 MiB in float32."""
SMALL_PRODUCT = 2**19
"""Up to this many products all keys and values of the last layer take less time than the operations that spare them."""

Ids = Int[np.ndarray, "batch new"]


def append(lean: LeanModel, idx: Int[Tensor, "batch time"], max_new_tokens: int) -> Int[Tensor, "batch longer"]:
    """Return texts with tokens appended, each drawn from the model's own distribution as `torch.multinomial` draws.

    That is the token whose probability, divided by exponential noise, is the largest: the same noise from PyTorch's
    generator and the same token, in half the time.
    """
    batch, time = idx.shape
    # Made outside of inference mode, so that the answer may go into a forward pass with gradients.
    text = torch.cat((idx.cpu(), torch.empty(batch, max_new_tokens, dtype=idx.dtype)), dim=1)
    ids, reader = text.numpy(), Reader(lean, batch)
    unread = ids[:, :time]
    noise = lean.tokens.new_empty(batch, lean.config.vocab_size)
    with torch.inference_mode():
        for end in range(time, time + max_new_tokens):
            shares = torch.softmax(reader.read_inside(unread), -1).numpy()
            ids[:, end] = (shares / noise.exponential_().numpy()).argmax(1)
            unread = ids[:, end : end + 1]
    return text.to(idx.device)


class Reader:
    """One or several texts of equal length that grow together.

    Args:
        lean: The snapshot to read with.
        batch: How many texts.

    Attributes:
        start: True position of the window's first token.
    """

    def __init__(self, lean: LeanModel, batch: int = 1) -> None:
        config = lean.config
        self.start = 0
        self._lean = lean
        self._batch, self._length, self._kept = batch, 0, 0
        # Twice as long as the window, so that sliding moves the ids only once in block_size tokens.
        self._ids, self._first = np.empty((batch, 2 * config.block_size), np.int64), 0
        self._one = _OneText(lean) if batch == 1 and lean.blocks else None
        # Of several texts each head's keys and values lie together, which reads twice as fast.
        shape = (config.n_layer, 2, batch, config.n_head, config.block_size, config.head_size)
        self._cache = lean.tokens.new_empty(shape if self._one is None else (0,))
        self._full: _FullWindow | _FullWindows | None = None

    @property
    def window(self) -> Int[np.ndarray, "batch time"]:
        """The ids in the window, the last `block_size` of each text; valid until more is read."""
        return self._ids[:, self._first : self._first + self._length]

    @torch.inference_mode()
    def read(self, ids: Ids) -> Float[Tensor, "batch vocab"]:
        """Append tokens to each text and return the logits of the token that follows, valid until more is read.

        Args:
            ids: At least one token for each text.
        """
        return self.read_inside(ids)

    def read_inside(self, ids: Ids) -> Float[Tensor, "batch vocab"]:
        """Do what `read` does, where inference mode is on already."""
        before = self._length
        self._append(ids)
        if self._kept == before > 0 and ids.shape[1] == 1 and self._length > before:
            self._kept = self._length
            return self._next(ids[:, 0])
        if self._length < self._lean.config.block_size:
            self._kept = self._length
            return self._fill(self.window)
        # A full window slides with the next token, so nothing of this one is kept.
        self._kept = 0
        if self._full is None:
            lean = self._lean
            self._full = _FullWindows(lean, self._batch) if self._one is None else _FullWindow(lean, self._one)
        return self._full.read(self.window)

    def share(self, batch: int) -> "Reader":
        """Return a reader of several texts, at least 2, that all begin with this one's only text."""
        shared = Reader(self._lean, batch)
        shared.start, shared._length, shared._kept, shared._first = self.start, self._length, self._kept, self._first
        shared._ids[:] = self._ids
        kept = self._cache[:, :, :, :, : self._kept] if self._one is None else self._one.kept(self._kept)
        shared._cache[:, :, :, :, : self._kept] = kept
        return shared

    def _append(self, ids: Ids) -> None:
        size = self._lean.config.block_size
        self.start += max(0, self._length + ids.shape[1] - size)
        ids = ids[:, -size:]
        new = ids.shape[1]
        end = self._first + self._length
        if end + new > self._ids.shape[1]:
            stays = min(self._length, size - new)
            self._ids[:, :stays] = self._ids[:, end - stays : end].copy()
            self._first, self._length, end = 0, stays, stays
        self._ids[:, end : end + new] = ids
        self._length += new
        if (excess := self._length - size) > 0:
            self._first += excess
            self._length = size

    def _fill(self, ids: Ids) -> Float[Tensor, "batch vocab"]:
        """Read the first tokens and keep their keys and values."""
        lean, config = self._lean, self._lean.config
        batch, time = ids.shape
        last = len(lean.layers) - 1
        x = torch.embedding(lean.tokens, torch.from_numpy(ids)).add_(lean.positions[:time]).flatten(0, 1)
        for index, layer in enumerate(lean.layers):
            qkv = torch.addmm(layer.qkv.bias, _normalise(lean, x), layer.qkv.matrix)
            qkv = qkv.view(batch, time, 3, config.n_head, config.head_size)
            if self._one is None:
                self._cache[index, :, :, :, :time] = qkv[:, :, 1:].permute(2, 0, 3, 1, 4)
            else:
                self._one.cache[index, :time] = qkv[0]
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            if index == last:
                q, x = q[:, :, -1:], x.view(batch, time, -1)[:, -1]
            gathered = scaled_dot_product_attention(q, k, v, is_causal=index != last, scale=1.0)
            x = _think(lean, layer, x, gathered.transpose(1, 2).reshape(len(x), config.n_embd))
        return lean.logits(x)

    def _next(self, ids: Int[np.ndarray, " batch"]) -> Float[Tensor, "batch vocab"]:
        """Read one token of each text, whose keys and values before it are kept."""
        if self._one is not None:
            return self._one.read(int(ids[0]), self._length - 1)
        lean, config, end = self._lean, self._lean.config, self._length
        kept = self._cache.flatten(2, 3)
        news = self._cache[:, :, :, :, end - 1].unbind(0)
        keys, values = kept[:, 0, :, :end].transpose(2, 3).unbind(0), kept[:, 1, :, :end].unbind(0)
        x = torch.embedding(lean.tokens, torch.from_numpy(ids)).add_(lean.positions[end - 1])
        for layer, new, k, v in zip(lean.layers, news, keys, values, strict=True):
            qkv = torch.addmm(layer.qkv.bias, _normalise(lean, x), layer.qkv.matrix)
            qkv = qkv.view(len(x), 3, config.n_head, config.head_size)
            new.copy_(qkv[:, 1:].transpose(0, 1))
            q = qkv[:, 0].reshape(-1, 1, config.head_size)
            gathered = torch.bmm(torch.softmax(torch.bmm(q, k), -1), v)
            x = _think(lean, layer, x, gathered.view(len(x), config.n_embd))
        return lean.logits(x)


def _normalise(lean: LeanModel, x: Float[Tensor, "row n_embd"]) -> Float[Tensor, "row n_embd"]:
    return torch.layer_norm(x, (x.shape[1],), eps=lean.config.layer_norm_epsilon) if lean.blocks else x


def _think(
    lean: LeanModel, layer: Layer, x: Float[Tensor, "row n_embd"], gathered: Float[Tensor, "row n_embd"]
) -> Float[Tensor, "row n_embd"]:
    """Return what a layer makes of what its heads have gathered. Writes into x."""
    _, proj, up, down = layer
    if proj is None:
        return gathered
    if up is None or down is None:
        return torch.addmm(proj.bias, gathered, proj.matrix)
    x = x.addmm_(gathered, proj.matrix).add_(proj.bias)
    hidden = lean.activate(torch.addmm(up.bias, _normalise(lean, x), up.matrix))
    return x.addmm_(hidden, down.matrix).add_(down.bias)


class _FullWindows:
    """The full windows of several texts, computed anew.

    Args:
        lean: The model.
        batch: How many texts.
    """

    def __init__(self, lean: LeanModel, batch: int) -> None:
        config, tokens = lean.config, lean.tokens
        time, width, n_head, size = config.block_size, config.n_embd, config.n_head, config.head_size
        self._lean = lean
        self._first = _FirstLayer(lean, batch)
        self._last = _LastQuery(lean)
        self._qkv = tokens.new_empty(batch * time, 3 * width)
        self._views = self._qkv.view(batch, time, 3, n_head, size).permute(2, 0, 3, 1, 4).unbind(0)

    def read(self, window: Ids) -> Float[Tensor, "batch vocab"]:
        """Return the logits of the token that follows each window."""
        lean, (q, k, v) = self._lean, self._views
        batch, time = window.shape
        x = self._first.vectors(window)
        for index, layer in enumerate(lean.layers[:-1]):
            if index > 0 or not self._first.qkv(self._qkv):
                torch.addmm(layer.qkv.bias, _normalise(lean, x), layer.qkv.matrix, out=self._qkv)
            gathered = scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
            x = _think(lean, layer, x, gathered.transpose(1, 2).reshape(x.shape))
        gathered = self._last.gather(_normalise(lean, x).view(batch, time, -1))
        return lean.logits(_think(lean, lean.layers[-1], x.view(batch, time, -1)[:, -1], gathered.flatten(1)))


class _FirstLayer:
    """What the first layer makes of a window's tokens: vectors, and where a table holds them, queries, keys and values.

    Args:
        lean: The model.
        batch: How many texts.
    """

    def __init__(self, lean: LeanModel, batch: int) -> None:
        config = lean.config
        self._lean = lean
        table = lean.first_layer(LARGEST_TABLE) if config.n_layer > 1 else None
        self._table = None if table is None else (table.vectors.numpy(), table.qkv.numpy())
        self._offsets = np.arange(config.block_size) * config.vocab_size
        self._index = np.empty((batch, config.block_size), np.int64)
        self._rows = self._index.reshape(-1)
        self._vectors = lean.tokens.new_empty(batch * config.block_size, config.n_embd)
        self._vectors_array = self._vectors.numpy()

    def vectors(self, window: Ids) -> Float[Tensor, "row n_embd"]:
        """Return token embedding + position embedding, in the same room each time."""
        if self._table is None:
            embedded = torch.embedding(self._lean.tokens, torch.from_numpy(window))
            torch.add(embedded, self._lean.positions, out=self._vectors.view(embedded.shape))
        else:
            np.add(window, self._offsets, out=self._index)
            # Nothing is to be clipped, but only so does numpy write without a copy.
            np.take(self._table[0], self._rows, 0, out=self._vectors_array, mode="clip")
        return self._vectors

    def qkv(self, out: Float[Tensor, "row three_n_embd"]) -> bool:
        """Write the queries, keys and values of what `vectors` returned, and return whether a table holds them."""
        if self._table is None:
            return False
        np.take(self._table[1], self._rows, 0, out=out.numpy(), mode="clip")
        return True


class _LastQuery:
    """The last layer's attention for the last token alone, without any key or value.

    Args:
        lean: The model.
    """

    def __init__(self, lean: LeanModel) -> None:
        width, n_head, size = lean.config.n_embd, lean.config.n_head, lean.config.head_size
        matrix, bias = lean.layers[-1].qkv.matrix, lean.layers[-1].qkv.bias
        self._heads = (n_head, size)
        self._ask, self._ask_bias = matrix[:, :width], bias[:width]
        self._keys_back = matrix[:, width : 2 * width].view(width, n_head, size).permute(1, 2, 0)
        self._values = matrix[:, 2 * width :].view(width, n_head, size).transpose(0, 1)
        self._value_bias = bias[2 * width :].view(n_head, 1, size)

    def gather(self, rows: Float[Tensor, "batch time n_embd"]) -> Float[Tensor, "batch head size"]:
        """Return what the heads gather from normalised vectors."""
        q = torch.addmm(self._ask_bias, rows[:, -1], self._ask).view(len(rows), *self._heads).transpose(0, 1)
        asked = torch.bmm(q, self._keys_back).transpose(0, 1)
        weights = torch.softmax(torch.bmm(asked, rows.transpose(1, 2)), -1)
        mixed = torch.bmm(weights, rows).transpose(0, 1)
        return torch.baddbmm(self._value_bias, mixed, self._values).transpose(0, 1)


class _BlockLayer(NamedTuple):
    """The parts of a block's layer, all there."""

    qkv: Affine
    proj: Output
    up: Affine
    down: Output


def _block_layer(layer: Layer) -> _BlockLayer:
    qkv, proj, up, down = layer
    if proj is None or up is None or down is None:
        raise TypeError("expected a layer of a block")
    return _BlockLayer(qkv, proj, up, down)


class _OneText:
    """One token of one text through the blocks, as vectors.

    Every buffer stands ready, as a tensor and as an array over the same memory, and where a layer adds to x there is a
    1 behind its vector, which stands for the bias.

    Args:
        lean: A model with blocks.

    Attributes:
        cache: The text's queries, keys and values (layer, time, 3, head, size).
        gathered: What the heads have gathered (head, 1, size).
        x: The vector that the layers add to.
    """

    def __init__(self, lean: LeanModel) -> None:
        config = lean.config
        n_head, size, width = config.n_head, config.head_size, config.n_embd
        self.cache = cache = lean.tokens.new_empty(config.n_layer, config.block_size, 3, n_head, size)
        self._activate, self._epsilon = lean.activate, config.layer_norm_epsilon
        self._rows = cache.flatten(2)
        self._queries = cache[:, :, 0].unsqueeze(3)
        self._keys, self._values = cache[:, :, 1].permute(0, 2, 3, 1), cache[:, :, 2].transpose(1, 2)
        gathered, self._gathered = (part[0] for part in with_one(cache, 1, width))
        self.gathered = gathered.view(n_head, 1, size)
        self._hidden, self._hidden_whole = (part[0] for part in with_one(cache, 1, 4 * width))
        self.x, self._normed = cache.new_empty(width), cache.new_empty(width)
        self._x_array, self._normed_array = self.x.numpy(), self._normed.numpy()
        self._logits = cache.new_empty(1, config.vocab_size)
        self._tokens, self._positions = lean.tokens.numpy(), lean.positions.numpy()
        layers = [_block_layer(layer) for layer in lean.layers]
        self._qkv = [(layer.qkv.bias, layer.qkv.matrix.T) for layer in layers]
        self._rest = [(layer.proj.whole.T, layer.up.bias, layer.up.matrix.T, layer.down.whole.T) for layer in layers]
        self._lm_head_bias, self._lm_head = lean.lm_head.bias, lean.lm_head.matrix.T

    def read(self, token: int, position: int) -> Float[Tensor, "1 vocab"]:
        """Read a token and return the logits of the next."""
        normed, gathered = self._normed, self.gathered
        rows, queries = self._rows[:, position].unbind(0), self._queries[:, position].unbind(0)
        keys = self._keys[..., : position + 1].unbind(0)
        values = self._values[:, :, : position + 1].unbind(0)
        np.add(self._tokens[token], self._positions[position], out=self._x_array)
        for index, (bias, matrix) in enumerate(self._qkv):
            self._normalise()
            torch.addmv(bias, matrix, normed, out=rows[index])
            weights = torch.softmax(torch.bmm(queries[index], keys[index]), -1)
            torch.bmm(weights, values[index], out=gathered)
            self.think(index)
        return self.logits()

    def kept(self, time: int) -> Float[Tensor, "layer 2 1 head time size"]:
        """Return the keys and values of the first tokens."""
        return self.cache[:, :time, 1:].permute(0, 2, 3, 1, 4).unsqueeze(2)

    def think(self, index: int) -> None:
        """Add to x what layer `index` makes of what its heads have gathered."""
        x = self.x
        proj, up_bias, up, down = self._rest[index]
        x.addmv_(proj, self._gathered)
        self._normalise()
        self._activate(torch.addmv(up_bias, up, self._normed, out=self._hidden))
        x.addmv_(down, self._hidden_whole)

    def logits(self) -> Float[Tensor, "1 vocab"]:
        """Return the logits that follow from x."""
        self._normalise()
        torch.addmv(self._lm_head_bias, self._lm_head, self._normed, out=self._logits[0])
        return self._logits

    def _normalise(self) -> None:
        """LayerNorm of x, whose mean is 0."""
        x = self._x_array
        variance = float(np.dot(x, x)) / len(x)
        np.multiply(x, 1 / math.sqrt(variance + self._epsilon), out=self._normed_array)


class _FullWindow:
    """The full window of one text, computed anew.

    Args:
        lean: A model with blocks.
        one: Where the last token goes its own way.
    """

    def __init__(self, lean: LeanModel, one: _OneText) -> None:
        config, tokens = lean.config, lean.tokens
        time, width, n_head, size = config.block_size, config.n_embd, config.n_head, config.head_size
        self._lean, self._one = lean, one
        self._first = _FirstLayer(lean, 1)
        self._layers = [_block_layer(layer) for layer in lean.layers]
        self._last = _LastQuery(lean) if 2 * time * width * width > SMALL_PRODUCT else None
        self._qkv = tokens.new_empty(time, 3 * width)
        q, k, v = self._qkv.view(time, 3, n_head, size).transpose(0, 1).unbind(0)
        self._q, self._k, self._v = q.transpose(0, 1), k.permute(1, 2, 0), v.transpose(0, 1)
        self._last_q = self._q[:, -1:]
        self._future = torch.full((time, time), float("-inf"), dtype=tokens.dtype).triu_(1).expand(n_head, time, time)
        self._by_head = tokens.new_empty(n_head, time, size)
        self._by_head_turned = self._by_head.transpose(0, 1)
        gathered, self._gathered_whole = with_one(tokens, time, width)
        self._gathered = gathered.unflatten(1, (n_head, size))
        self._hidden, self._hidden_whole = with_one(tokens, time, 4 * width)

    def read(self, window: Ids) -> Float[Tensor, "1 vocab"]:
        """Return the logits of the token that follows the window."""
        activate, width, epsilon = self._lean.activate, (self._qkv.shape[1] // 3,), self._lean.config.layer_norm_epsilon
        qkv_room, q, k, v, by_head, hidden_room = self._qkv, self._q, self._k, self._v, self._by_head, self._hidden
        x = self._first.vectors(window)
        looked_up = self._first.qkv(qkv_room)
        last = len(self._layers) - 1
        for index, (qkv, proj, up, down) in enumerate(self._layers):
            if index > 0 or not looked_up:
                normed = torch.layer_norm(x, width, eps=epsilon)
                if index == last and self._last is not None:
                    self._one.gathered.copy_(self._last.gather(normed[None]).view(self._one.gathered.shape))
                    break
                torch.addmm(qkv.bias, normed, qkv.matrix, out=qkv_room)
            if index == last:
                torch.bmm(torch.softmax(torch.bmm(self._last_q, k), -1), v, out=self._one.gathered)
                break
            torch.bmm(torch.softmax(torch.baddbmm(self._future, q, k), -1), v, out=by_head)
            self._gathered.copy_(self._by_head_turned)
            x.addmm_(self._gathered_whole, proj.whole)
            torch.addmm(up.bias, torch.layer_norm(x, width, eps=epsilon), up.matrix, out=hidden_room)
            activate(hidden_room)
            x.addmm_(self._hidden_whole, down.whole)
        self._one.x.copy_(x[-1])
        self._one.think(last)
        return self._one.logits()
