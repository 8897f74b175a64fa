"""One forward pass over a text, with every attention weight kept, and how far it can be trusted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor

from minigpt.analysis.window import window_of
from minigpt.checkpoint import Checkpoint
from minigpt.errors import PromptError
from minigpt.lean import lean_model, marks
from minigpt.model import Block, LanguageModel, TransformerLanguageModel, causal_weights

ROWS = 256
"""Rows of logits that are compared at a time; all of a large vocabulary's would take as much memory as the model."""
LARGE = 30_000_000
"""Parameters from which a transformer is run as it is: a lean snapshot would be a second copy of all of them."""
COMPARED = 128
"""Tokens of the window whose logits are compared in a large model, where a second pass takes seconds."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What a model did with a text.

    Positions count from the start of the text. The window is what the model can see: the last `block_size` tokens.

    Attributes:
        text: The whole text, including what lies to the left of the window.
        tokens: The text of each token in the window.
        ids: The ids of the tokens in the window.
        start: The true position of the window's first token; 0 if the whole text fits.
        cropped: The texts of the tokens to the left of the window, which the model did not see.
        cropped_ids: Their ids.
        pattern: Attention weights, 0 to 1; each row (query) sums to 1 over its past, and is exactly 0 in the future.
        logits: The model's unnormalised log-probabilities of the next token after each position.
        logit_difference: Largest absolute difference between `logits` and those of a second forward pass through
            PyTorch's `scaled_dot_product_attention`, at the first `compared` positions of the window.
        compared: How many positions that are: all of them, but in models from `LARGE` parameters at most `COMPARED`.
        row_sum_error: Largest distance of a row's sum from 1.
    """

    text: str
    tokens: list[str]
    ids: list[int]
    start: int
    cropped: list[str]
    cropped_ids: list[int]
    pattern: Float[Tensor, "layer head query key"]
    logits: Float[Tensor, "position vocab"]
    logit_difference: float
    compared: int
    row_sum_error: float


def trace(ckpt: Checkpoint, text: str) -> Trace:
    """Run the model over a text and keep every attention weight.

    Only the last `block_size` tokens are looked at; what lies to their left is listed in `Trace.cropped`.

    Args:
        ckpt: The model and its tokenizer.
        text: At least one token long.

    Raises:
        PromptError: `empty_prompt` if there is no token, `unknown_characters` if the vocabulary lacks any.
    """
    return trace_ids(ckpt, ckpt.tokenizer.encode(text))


def trace_ids(ckpt: Checkpoint, ids: Sequence[int]) -> Trace:
    """Run the model over token ids and keep every attention weight; as `trace`, for a text that is already encoded.

    Raises:
        PromptError: `empty_prompt` if there is no token.
    """
    window = window_of(ckpt, ids)
    cropped_ids = list(ids[: window.start])
    with torch.inference_mode():
        compared = len(window.ids)
        if _is_large(ckpt):
            compared = min(compared, COMPARED)
        logits, pattern = logits_and_pattern(ckpt, window.ids)
        return Trace(
            text=ckpt.tokenizer.decode(ids),
            tokens=window.tokens,
            ids=window.ids,
            start=window.start,
            cropped=[ckpt.tokenizer.piece(token_id) for token_id in cropped_ids],
            cropped_ids=cropped_ids,
            pattern=pattern,
            logits=logits,
            logit_difference=_logit_difference(ckpt, window.ids[:compared], logits[:compared]),
            compared=compared,
            row_sum_error=float((pattern.sum(-1) - 1).abs().max()),
        )


def _is_large(ckpt: Checkpoint) -> bool:
    return isinstance(ckpt.model, TransformerLanguageModel) and ckpt.parameters >= LARGE


def logits_and_pattern(
    ckpt: Checkpoint, window: list[int]
) -> tuple[Float[Tensor, "position vocab"], Float[Tensor, "layer head query key"]]:
    """Run the model over 1 to `block_size` ids: a lean snapshot of it, or where that is large, the model itself."""
    if _is_large(ckpt):
        return _as_it_is(cast(TransformerLanguageModel, ckpt.model), window)
    return lean_model(ckpt.model).forward_with_weights(torch.tensor(window))


def _as_it_is(
    model: TransformerLanguageModel, window: list[int]
) -> tuple[Float[Tensor, "position vocab"], Float[Tensor, "layer head query key"]]:
    """Return logits and weights of the model itself, in one pass that is kept for single heads."""
    config, length = model.config, len(window)
    pattern = torch.empty(config.n_layer, config.n_head, length, length)
    vectors = [model.embed(torch.tensor(window)[None])]
    for layer, block in enumerate(cast(Iterable[Block], model.blocks)):
        after, weights = block(vectors[-1], return_weights=True)
        pattern[layer] = weights[0]
        vectors.append(after)
    _last_pass[model] = _Pass(marks(model), window, vectors)
    return model.lm_head(model.ln_f(vectors[-1][0])), pattern


def _logit_difference(ckpt: Checkpoint, window: list[int], logits: Float[Tensor, "position vocab"]) -> float:
    """Return the largest absolute difference to the logits of a pass through PyTorch's own attention."""
    model = ckpt.model
    if isinstance(model, TransformerLanguageModel):
        # Of a large model only the beginning is compared, and the vectors of the whole text stay kept.
        read = _own_attention if _is_large(ckpt) else _vectors
        vectors = model.ln_f(read(model, window)[-1])
    else:
        vectors, _ = model.middle(model.embed(torch.tensor(window)[None]), return_weights=False)
    parts = zip(torch.split(vectors[0], ROWS), torch.split(logits, ROWS), strict=True)
    return max(float((model.lm_head(rows) - own).abs().max()) for rows, own in parts)


class _Pass(NamedTuple):
    """What was last computed of a text: with which parameters, of which ids, what went into each block and out."""

    marks: list[tuple[int, int]]
    ids: list[int]
    vectors: list[Tensor]


_last_pass: WeakKeyDictionary[LanguageModel, _Pass] = WeakKeyDictionary()


def _vectors(model: TransformerLanguageModel, window: list[int]) -> list[Float[Tensor, "1 time n_embd"]]:
    """Return what goes into each block, and what comes out of the last.

    Those of the last text are kept, one vector for each token and layer, so that one of its heads is there at once.
    """
    now, last = marks(model), _last_pass.get(model)
    if last is not None and last.marks == now and last.ids == window:
        return last.vectors
    vectors = _own_attention(model, window)
    _last_pass[model] = _Pass(now, window, vectors)
    return vectors


def _own_attention(model: TransformerLanguageModel, window: list[int]) -> list[Float[Tensor, "1 time n_embd"]]:
    """Return what goes into each block, and what comes out of the last, by PyTorch's own attention."""
    vectors = [model.embed(torch.tensor(window)[None])]
    for block in cast(Iterable[Block], model.blocks):
        vectors.append(cast(Tensor, block(vectors[-1])))
    return vectors


def head_pattern(ckpt: Checkpoint, ids: Sequence[int], layer: int, head: int) -> Float[Tensor, "query key"]:
    """Return the attention weights of one head, without those of all others.

    Args:
        ckpt: The model and its tokenizer.
        ids: 1 to `block_size` ids.
        layer: From 0.
        head: From 0.

    Raises:
        PromptError: `empty_prompt` if there is no id.
    """
    if not isinstance(ckpt.model, TransformerLanguageModel):
        return trace_ids(ckpt, ids).pattern[layer, head]
    if not ids:
        raise PromptError("empty_prompt")
    with torch.inference_mode():
        block = cast(Block, ckpt.model.blocks[layer])
        keys, queries, _ = block.sa.heads(block.ln1(_vectors(ckpt.model, list(ids))[layer]))
        return causal_weights(queries[:, head : head + 1], keys[:, head : head + 1])[0, 0]
