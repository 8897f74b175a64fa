"""Text, one token at a time: what was drawn, and what the model thought of it.

`generate` yields a `Step` a token. `generate_several` writes several continuations of one prompt side by side, which
read the model's matrices together, and `continuations` collects them with their probabilities. All read the text
through `minigpt.engine`, so inside the window only the new token is computed, and past it the result is still exactly
that of the whole window (what that costs is said there). How a token is drawn stands in `minigpt.sampling`.
"""

import math
import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, Unpack, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from minigpt.config import is_whole
from minigpt.engine import Reader
from minigpt.errors import PromptError
from minigpt.lean import lean_model
from minigpt.model import LanguageModel
from minigpt.sampling import (
    LARGEST_SEED,
    LIKELIEST,
    WHOLE_VOCABULARY,
    Drawn,
    Sampler,
    Sampling,
    SamplingOptions,
    seed_of,
)
from minigpt.tokenizer import Text, Tokenizer, ids_of

MOST_CONTINUATIONS = 8
"""Most continuations at once."""


@runtime_checkable
class Speaker(Protocol):
    """What generating asks of a checkpoint."""

    @property
    def model(self) -> LanguageModel:
        """The model that predicts."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer it was trained with."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Distribution:
    """What a token was drawn from: of a vocabulary of up to 512 tokens all, of a larger one the model's 50 likeliest.

    Attributes:
        ids: The tokens: all in order, or the likeliest first.
        model_probabilities: What the model gave each, 0 to 1.
        probabilities: What each could be drawn with, after the settings of `Sampling`, 0 to 1.
        model_rest: What the model gave all other tokens together.
        rest: What all others together could be drawn with.
        choices: How many tokens of the whole vocabulary could be drawn.
        window: The ids that the model saw; the last is the query that predicted the token.
    """

    ids: Int[np.ndarray, " token"]
    model_probabilities: Float[np.ndarray, " token"]
    probabilities: Float[np.ndarray, " token"]
    model_rest: float
    rest: float
    choices: int
    window: list[int]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One generated token.

    Attributes:
        index: 0 for the first new token.
        token: Its text.
        token_id: Its id.
        probability: What it was drawn with, after the settings of `Sampling`, 0 to 1.
        model_probability: What the model itself gave it, at temperature 1, 0 to 1.
        log_probability: Natural logarithm of `model_probability`, in nats; the surprise in bits is this over −ln 2.
        rank: How many tokens the model found likelier; 0 for the likeliest. Of equal ones the lower id goes first.
        position: Its true position in the whole text, from 0.
        window_start: True position of the first token that the model saw when it predicted this one.
        distribution: What it was drawn from, if that was asked for.
    """

    index: int
    token: str
    token_id: int
    probability: float
    model_probability: float
    log_probability: float
    rank: int
    position: int
    window_start: int
    distribution: Distribution | None = None


@dataclass(frozen=True, kw_only=True)
class Continuation:
    """One of several continuations.

    Attributes:
        text: What was appended.
        steps: Its tokens.
        log_probability: Natural logarithm of what the model itself gives all of it, in nats.
        seed: With this, `generate` writes the same alone.
    """

    text: str
    steps: list[Step]
    log_probability: float
    seed: int


def generate(
    ckpt: Speaker,
    prompt: Text,
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    seed: int | None = None,
    keep_distributions: bool = False,
) -> Generator[Step, None, None]:
    """Continue a prompt, one step a token; closing the generator, or no longer asking it, stops at once.

    The model sees the last `block_size` tokens. It is read as it is when the first token is asked for.

    Args:
        ckpt: A checkpoint, or anything else with a model and a tokenizer.
        prompt: What to continue, a text or its ids. An empty one starts from the token with id 0, at position 0, as the
            chapters do.
        max_new_tokens: How many tokens to append, at least 0.
        temperature: 0 for always the likeliest token; see `minigpt.sampling.Sampling` for this and the next four.
        top_k: How many of the likeliest tokens may be drawn; None for all.
        top_p: Share of probability that the drawn-from tokens must hold; None for all.
        min_p: Least share of the likeliest token's probability that a drawn-from token must have; None for all.
        repetition_penalty: Above 1, tokens that the window already holds become less likely.
        seed: 0 to 2⁶³ − 1, the same text every time; None for another text every time.
        keep_distributions: Whether each step keeps what it was drawn from.

    Raises:
        PromptError: At once, if a setting is out of its range or the vocabulary lacks a character.
    """
    sampling = Sampling(
        temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, repetition_penalty=repetition_penalty
    )
    ids = _ids(ckpt, prompt, max_new_tokens)
    several = _steps(ckpt, ids, max_new_tokens, sampling, [_seed(seed)], keep_distributions=keep_distributions)
    return (steps[0] for steps in several)


def generate_several(
    ckpt: Speaker,
    prompt: Text,
    count: int,
    *,
    max_new_tokens: int,
    seed: int | None = None,
    keep_distributions: bool = False,
    **options: Unpack[SamplingOptions],
) -> Generator[tuple[Step, ...], None, None]:
    """Continue a prompt in several ways side by side, yielding the next step of each.

    Continuation i is what `generate` writes alone with the seed `minigpt.sampling.seed_of(seed, i)`; of the first this
    is `seed`.

    Args:
        ckpt: A checkpoint, or anything else with a model and a tokenizer.
        prompt: What to continue; see `generate` for this and all other arguments.
        count: How many continuations, 1 to 8.
        max_new_tokens: How many tokens to append to each.
        seed: See `generate`.
        keep_distributions: See `generate`.
        **options: `temperature` (0 makes all continuations the same), `top_k`, `top_p`, `min_p` and
            `repetition_penalty`, as `generate` takes them.

    Raises:
        PromptError: At once, if a setting is out of its range or the vocabulary lacks a character.
    """
    sampling = Sampling(**options)
    ids = _ids(ckpt, prompt, max_new_tokens)
    seeds = _seeds(_seed(seed), count)
    return _steps(ckpt, ids, max_new_tokens, sampling, seeds, keep_distributions=keep_distributions)


def continuations(
    ckpt: Speaker,
    prompt: Text,
    count: int,
    *,
    max_new_tokens: int,
    seed: int | None = None,
    keep_distributions: bool = False,
    **options: Unpack[SamplingOptions],
) -> list[Continuation]:
    """Return several continuations of a prompt, with their probabilities.

    Args:
        ckpt: A checkpoint, or anything else with a model and a tokenizer.
        prompt: What to continue; see `generate` for this and all other arguments.
        count: How many continuations, 1 to 8.
        max_new_tokens: How many tokens to append to each.
        seed: See `generate`.
        keep_distributions: See `generate`.
        **options: `temperature` (0 makes all continuations the same), `top_k`, `top_p`, `min_p` and
            `repetition_penalty`, as `generate` takes them.

    Raises:
        PromptError: If a setting is out of its range or the vocabulary lacks a character.
    """
    seed = _seed(seed)
    several = generate_several(
        ckpt,
        prompt,
        count,
        max_new_tokens=max_new_tokens,
        seed=seed,
        keep_distributions=keep_distributions,
        **options,
    )
    columns = list(zip(*several, strict=True)) or [()] * count
    return [
        Continuation(
            text=ckpt.tokenizer.decode([step.token_id for step in steps]),
            steps=list(steps),
            log_probability=math.fsum(step.log_probability for step in steps),
            seed=own_seed,
        )
        for steps, own_seed in zip(columns, _seeds(seed, count), strict=True)
    ]


def _ids(ckpt: Speaker, prompt: Text, max_new_tokens: int) -> list[int]:
    """Return the prompt's ids, after checking the length."""
    if not is_whole(max_new_tokens) or max_new_tokens < 0:
        raise PromptError("length_out_of_range", value=max_new_tokens)
    return ids_of(ckpt.tokenizer, prompt) or [0]


def _seed(seed: int | None) -> int:
    """Return a seed after checking it, or a fresh one."""
    if seed is None:
        return random.SystemRandom().randint(0, LARGEST_SEED)
    if not (is_whole(seed) and 0 <= seed <= LARGEST_SEED):
        raise PromptError("seed_out_of_range", value=seed, most=LARGEST_SEED)
    return seed


def _seeds(seed: int, count: int) -> list[int]:
    """Return the seed of each continuation."""
    if not (is_whole(count) and 1 <= count <= MOST_CONTINUATIONS):
        raise PromptError("continuations_out_of_range", value=count, most=MOST_CONTINUATIONS)
    return [seed_of(seed, continuation) for continuation in range(count)]


def _steps(
    ckpt: Speaker,
    ids: list[int],
    max_new_tokens: int,
    sampling: Sampling,
    seeds: Sequence[int],
    *,
    keep_distributions: bool,
) -> Generator[tuple[Step, ...], None, None]:
    """Yield the next step of each continuation."""
    sampler, piece = Sampler(sampling, seeds), ckpt.tokenizer.piece
    reader, unread = Reader(lean_model(ckpt.model)), np.array([ids])
    for index in range(max_new_tokens):
        logits = reader.read(unread)
        if index == 0 and len(seeds) > 1:
            reader, logits = reader.share(len(seeds)), logits.expand(len(seeds), -1)
        drawn = sampler.draw(logits, reader.window)
        unread = np.array(drawn.ids)[:, None]
        kept = _distributions(logits.numpy(), drawn, reader.window) if keep_distributions else [None] * len(seeds)
        yield tuple(
            Step(
                index=index,
                token=piece(token_id),
                token_id=token_id,
                probability=probability,
                model_probability=math.exp(log_probability),
                log_probability=log_probability,
                rank=rank,
                position=len(ids) + index,
                window_start=reader.start,
                distribution=distribution,
            )
            for token_id, probability, log_probability, rank, distribution in zip(*drawn[:4], kept, strict=True)
        )


def _distributions(
    logits: Float[np.ndarray, "batch vocab"], drawn: Drawn, window: Int[np.ndarray, "batch time"]
) -> list[Distribution]:
    """Return what each token of a batch was drawn from."""
    by_model = np.exp(logits.astype(np.float64) - logits.max(1, keepdims=True))
    by_model /= by_model.sum(1, keepdims=True)
    shares = drawn.shares / drawn.shares.sum(1, keepdims=True)
    whole = logits.shape[1] <= WHOLE_VOCABULARY
    kept: list[Distribution] = []
    for given, model_row, row, seen in zip(logits, by_model, shares, window, strict=True):
        ids = np.arange(len(row)) if whole else np.argsort(-given, kind="stable")[:LIKELIEST]
        kept.append(
            Distribution(
                ids=ids,
                model_probabilities=model_row[ids],
                probabilities=row[ids],
                model_rest=0.0 if whole else max(0.0, 1 - float(model_row[ids].sum())),
                rest=0.0 if whole else max(0.0, 1 - float(row[ids].sum())),
                choices=int(np.count_nonzero(row)),
                window=seen.tolist(),
            )
        )
    return kept
