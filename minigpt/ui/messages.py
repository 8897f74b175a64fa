"""What the page computes and sends: an analysis of a text, one head of it, or a stream of generated tokens.

Functions without memory of the person: everything they need comes in, everything they know goes out.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from minigpt import wire
from minigpt.analysis.next_tokens import next_tokens
from minigpt.analysis.patterns import Trace, head_pattern, trace, trace_ids
from minigpt.analysis.scores import head_scores
from minigpt.checkpoint import Checkpoint
from minigpt.config import ModelConfig, is_index
from minigpt.engine import Reader
from minigpt.errors import PromptError
from minigpt.generation import LARGEST_SEED, MOST_CONTINUATIONS, generate_several
from minigpt.lean import lean_model

LONGEST = 500
"""Most tokens that one press of Generate appends."""
FRESH = -1
"""The seed that stands for a fresh one."""
SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")
"""The settings that say how tokens are drawn."""
FRESH_SEEDS = 2**31
"""Fresh seeds are drawn below this, so that they are short enough to read out."""
MOST_READ_AGAIN = 4 * 10**9
"""Most tokens times parameters for which the probabilities of a text that a link brings are computed: some seconds."""
PICTURES_EVERY = 8
"""Least number of tokens between two analyses while generating."""
PICTURES_PAUSE = 0.5
"""Least time between two analyses while generating, in seconds."""
PICTURES_SHARE = 0.2
"""Largest share of the time that analyses may take while generating; drawing them takes the browser as long again."""
TEXT_PAUSE = 0.03
"""Least time between two messages with text, in seconds."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are drawn, as `minigpt.generate` wants it.

    Attributes:
        temperature: 0 for always the likeliest; 1 for the model's own distribution.
        top_k: How many of the likeliest tokens may be drawn; None for all.
        top_p: Least share of probability that the drawn-from tokens hold; None for all.
        seed: Where the random numbers start.
        min_p: Least probability that is drawn, as a share of the likeliest token's; None for all.
        repetition_penalty: What weakens the tokens that the window holds already; 1 for nothing.
    """

    temperature: float
    top_k: int | None
    top_p: float | None
    seed: int
    min_p: float | None = None
    repetition_penalty: float = 1.0

    @classmethod
    def from_controls(
        cls,
        *,
        temperature: float | None = None,
        top_k: float | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repetition_penalty: float | None = None,
        seed: float | None = None,
    ) -> "Sampling":
        """Read the controls: empty is the default; top-k 0, top-p 1 and min-p 0 are off; seed empty or -1 is fresh."""
        if seed is None or seed == FRESH:
            seed = random.randrange(FRESH_SEEDS)  # noqa: S311 (no secret)
        return cls(
            temperature=1.0 if temperature is None else temperature,
            top_k=whole("top_k_out_of_range", top_k) if top_k else None,
            top_p=None if top_p is None or top_p == 1 else top_p,
            min_p=min_p or None,
            repetition_penalty=1.0 if repetition_penalty is None else repetition_penalty,
            seed=whole("seed_out_of_range", seed, most=LARGEST_SEED),
        )

    def options(self) -> dict[str, Any]:
        """Return the settings as `minigpt.generate` names them."""
        return asdict(self)

    def info(self, length: int) -> wire.SamplingInfo:
        """Return the settings as they travel, with how many tokens are appended at most."""
        return cast("wire.SamplingInfo", {**self.options(), "length": length})


def whole(code: str, value: float, **details: object) -> int:
    """Return a whole number as an int.

    Raises:
        PromptError: With `code`, if it is none.
    """
    if not float(value).is_integer():
        raise PromptError(code, value=value, **details)
    return int(value)


def length_from_control(value: float | None) -> int:
    """Return how many tokens to append.

    Raises:
        PromptError: `too_many_new_tokens` if the field is empty or holds no whole number from 1 to `LONGEST`.
    """
    if value is None or not float(value).is_integer() or not 1 <= value <= LONGEST:
        raise PromptError("too_many_new_tokens", value="–" if value is None else value, most=LONGEST)
    return int(value)


def count_from_control(value: float | None) -> int:
    """Return how many continuations to write side by side; an empty field is one.

    Raises:
        PromptError: `continuations_out_of_range` if it is no whole number from 1 to `MOST_CONTINUATIONS`.
    """
    if value is None:
        return 1
    if not float(value).is_integer() or not 1 <= value <= MOST_CONTINUATIONS:
        raise PromptError("continuations_out_of_range", value=value, most=MOST_CONTINUATIONS)
    return int(value)


def analysis(ckpt: Checkpoint, text: str) -> wire.AnalysisMessage:
    """Analyse a text.

    Raises:
        PromptError: `empty_prompt` or `unknown_characters`.
    """
    return read_as(ckpt, text, message_of(ckpt, trace(ckpt, text)))


def read_as(ckpt: Checkpoint, text: str, message: wire.AnalysisMessage) -> wire.AnalysisMessage:
    """Return the message, which says as well what was changed in the text that was typed so that the model knows it."""
    _, changes = ckpt.tokenizer.respelled(text)
    return {**message, "respelled": [*changes]} if changes else message


def analysis_of(
    ckpt: Checkpoint, ids: Sequence[int], *, prompt_length: int, largest: int = wire.LARGEST_MESSAGE
) -> wire.AnalysisMessage:
    """Analyse token ids, of which those from `prompt_length` on were generated.

    Above `largest` bytes the message carries thumbnails instead of whole patterns.

    Raises:
        PromptError: `empty_prompt`.
    """
    return message_of(ckpt, trace_ids(ckpt, ids), prompt_length=prompt_length, largest=largest)


def message_of(
    ckpt: Checkpoint, traced: Trace, *, prompt_length: int | None = None, largest: int = wire.LARGEST_MESSAGE
) -> wire.AnalysisMessage:
    """Put a trace into a message, as `analysis_of` does; without a prompt's length nothing was generated."""
    ids = [*traced.cropped_ids, *traced.ids]
    expected = next_tokens(traced.logits, traced.ids)
    scores = head_scores(traced.pattern, traced.tokens)
    next_id = expected.ids.numpy()
    return wire.analysis(
        checkpoint=describe(ckpt),
        tokens={
            "ids": traced.ids,
            "start": traced.start,
            "cropped": traced.cropped_ids,
            "prompt_length": len(ids) if prompt_length is None else prompt_length,
        },
        pieces=pieces(ckpt, {*ids, *next_id.flatten().tolist()}),
        checks={
            "logit_difference": traced.logit_difference,
            "compared": traced.compared,
            "row_sum_error": traced.row_sum_error,
        },
        scores={name: values.numpy() for name, values in scores.items()},
        next_id=next_id,
        next_probability=expected.probability.numpy(),
        taken_probability=expected.taken_probability.numpy(),
        taken_rank=expected.taken_rank.numpy(),
        pattern=traced.pattern.numpy(),
        largest=largest,
    )


def pieces(ckpt: Checkpoint, ids: set[int]) -> dict[int, str]:
    """Return the text of each id."""
    return {token_id: ckpt.tokenizer.piece(token_id) for token_id in sorted(ids)}


def describe(ckpt: Checkpoint) -> wire.CheckpointInfo:
    """Return what the page says about a model."""
    return described(ckpt.path.name, ckpt.config, ckpt.parameters, ckpt.tokenizer.type)


def described(name: str, config: ModelConfig, parameters: int, tokenizer: str) -> wire.CheckpointInfo:
    """Return what the page says about a model of which this is known."""
    return {
        "name": name,
        "kind": config.kind,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "n_embd": config.n_embd,
        "block_size": config.block_size,
        "vocab_size": config.vocab_size,
        "parameters": parameters,
        "tokenizer": tokenizer,
    }


@dataclass
class _Lane:
    """One of the continuations that are written side by side."""

    branch: int
    generated: list[int]
    drawn: list[float] = field(default_factory=list[float])


def continuation(
    ckpt: Checkpoint,
    prompt: str,
    length: int,
    sampling: Sampling,
    clock: Callable[[], float] = time.monotonic,
    *,
    count: int = 1,
    given: Sequence[int] = (),
    branch: int | None = None,
) -> Iterator[wire.GeneratingMessage | wire.AnalysisMessage]:
    """Yield what is generated after a prompt: the text often, the pictures now and then and at the end.

    Args:
        ckpt: The model and its tokenizer.
        prompt: What to continue, at least one token.
        length: How many tokens to append, at least 1, those that are given among them.
        sampling: How to draw them.
        clock: Seconds that only grow.
        count: How many continuations to write side by side. The pictures are those of the first.
        given: What the continuation begins with.
        branch: The number of the continuation; None for a new one.

    Raises:
        PromptError: If the prompt or a setting cannot be used.
    """
    prompt_ids = some_ids(ckpt, prompt)
    lanes = [_Lane(wire.next_request() if branch is None else branch, list(given)) for _ in range(count)]
    generated = lanes[0].generated

    def run() -> wire.RunInfo:
        return {
            "branch": lanes[0].branch,
            "drawn": list(lanes[0].drawn),
            "sampling": sampling.info(length),
            "others": [
                {
                    "branch": lane.branch,
                    "generated": list(lane.generated),
                    "drawn": list(lane.drawn),
                    "pieces": {str(token_id): piece for token_id, piece in pieces(ckpt, set(lane.generated)).items()},
                }
                for lane in lanes[1:]
            ],
        }

    def text(*, done: bool) -> wire.GeneratingMessage:
        return wire.generating(
            checkpoint=ckpt.path.name,
            generated=generated,
            pieces=pieces(ckpt, set(generated)),
            prompt_length=len(prompt_ids),
            done=done,
            run=run(),
        )

    def pictures() -> wire.AnalysisMessage:
        analysed = analysis_of(ckpt, [*prompt_ids, *generated], prompt_length=len(prompt_ids))
        return read_as(ckpt, prompt, {**analysed, "run": run()})

    pictured, next_pictures, next_text = len(generated), clock() + PICTURES_PAUSE, clock()
    for steps in generate_several(
        ckpt,
        [*prompt_ids, *generated],
        count,
        max_new_tokens=max(0, length - len(generated)),
        **sampling.options(),
    ):
        for lane, step in zip(lanes, steps, strict=True):
            lane.generated.append(step.token_id)
            lane.drawn.append(float(f"{step.model_probability:.5g}"))
        now = clock()
        if len(generated) - pictured >= PICTURES_EVERY and now >= next_pictures:
            message = pictures()
            cost = clock() - now
            yield message
            pictured = len(generated)
            next_pictures = clock() + max(PICTURES_PAUSE, cost * (1 / PICTURES_SHARE - 1))
            next_text = clock() + TEXT_PAUSE
        elif now >= next_text:
            yield text(done=False)
            next_text = clock() + TEXT_PAUSE
    yield text(done=True)
    yield pictures()


def run_before(
    ckpt: Checkpoint, ids: Sequence[int], prompt_length: int, sampling: Sampling, length: int
) -> wire.RunInfo | None:
    """Return what is known of a continuation that was generated elsewhere, with its probabilities computed anew.

    Args:
        ckpt: The model.
        ids: The prompt and what was generated after it.
        prompt_length: How many of the ids are the prompt's, at least 1.
        sampling: The settings that it was drawn with.
        length: How many tokens were asked for.

    Returns:
        None where nothing was generated, or so much with so large a model that it would take long.
    """
    generated = ids[prompt_length:]
    if not generated or len(generated) * ckpt.parameters > MOST_READ_AGAIN:
        return None
    reader = Reader(lean_model(ckpt.model))
    unread, drawn = ids[:prompt_length], list[float]()
    for token_id in generated:
        logits = reader.read(np.array([unread]))[0]
        drawn.append(float(f"{float(torch.softmax(logits, -1)[token_id]):.5g}"))
        unread = [token_id]
    return {"branch": wire.next_request(), "drawn": drawn, "sampling": sampling.info(length), "others": []}


def one_head(ckpt: Checkpoint, ids: object, layer: object, head: object) -> wire.HeadMessage:
    """Return one head at full resolution, for an analysis whose message carried thumbnails.

    Args:
        ckpt: The model and its tokenizer.
        ids: The tokens of the window.
        layer: 0 to `n_layer - 1`.
        head: 0 to `n_head - 1`.

    Raises:
        PromptError: `empty_prompt`, `tokens_out_of_range` or `head_out_of_range` if anything else comes in.
    """
    checked = checked_ids(ckpt, ids, most=ckpt.config.block_size)
    layer, head = checked_head(ckpt.config.n_layer, ckpt.config.n_head, layer, head)
    return wire.head(layer, head, head_pattern(ckpt, checked, layer, head).numpy())


def head_of(traced: Trace, layer: object, head: object) -> Float[Tensor, "query key"]:
    """Return one head's weights.

    Raises:
        PromptError: `head_out_of_range`.
    """
    n_layer, n_head = traced.pattern.shape[:2]
    return traced.pattern[checked_head(n_layer, n_head, layer, head)]


def checked_head(n_layer: int, n_head: int, layer: object, head: object) -> tuple[int, int]:
    """Return a head's layer and place that came from outside, after checking that there is such a head.

    Raises:
        PromptError: `head_out_of_range`.
    """
    if is_index(layer, n_layer) and is_index(head, n_head):
        return layer, head
    raise PromptError("head_out_of_range", layer=layer, head=head, last_layer=n_layer - 1, last_head=n_head - 1)


def some_ids(ckpt: Checkpoint, text: str) -> list[int]:
    """Return the ids of a text that has at least one token.

    Raises:
        PromptError: `empty_prompt` or `unknown_characters`.
    """
    if ids := ckpt.tokenizer.encode(text):
        return ids
    raise PromptError("empty_prompt")


def checked_ids(ckpt: Checkpoint, ids: object, *, most: int) -> list[int]:
    """Return ids that came from outside, after checking that they are a list of at most `most` ids of the vocabulary.

    Raises:
        PromptError: `tokens_out_of_range`.
    """
    vocab_size = ckpt.config.vocab_size
    given = cast(list[object], ids) if isinstance(ids, list) else [None]
    checked = [each for each in given if is_index(each, vocab_size)]
    if len(checked) != len(given) or len(given) > most:
        raise PromptError("tokens_out_of_range", most=most, largest=vocab_size - 1)
    return checked
