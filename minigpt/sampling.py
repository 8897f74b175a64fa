"""From logits to the next token: which may be drawn, with which probability, and which was.

Numpy alone: at a character model's 65 numbers an operation here takes a third of the time of one in PyTorch, and at
50,257 sorting does. Everything is computed in float64, so that no temperature, however small, can overflow.

A draw takes one number from 0 to below 1 and the token under it in the cumulated probabilities. Each text draws from a
generator of its own, Python's, so a seed gives the same text on every run, whatever else draws random numbers, and
whatever other texts are written beside it.
"""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from minigpt.config import is_number, is_whole
from minigpt.errors import PromptError

LARGEST_SEED = 2**63 - 1
WHOLE_VOCABULARY = 2048
"""Vocabularies up to this size, those of characters, have their distributions told whole."""
LIKELIEST = 50
"""How many of the likeliest tokens of a larger vocabulary are told."""


class SamplingOptions(TypedDict, total=False):
    """The settings of `Sampling` as keyword arguments."""

    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    repetition_penalty: float


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are drawn. What is left out is off: the model's own distribution.

    In this order: the repetition penalty changes logits, temperature divides them, then top-k, top-p and min-p each
    look at what the one before has left; what remains is scaled to sum to 1. Of equally likely tokens the lower id goes
    first.

    Attributes:
        temperature: Divides the logits: below 1 sharper, above 1 flatter. 0 is greedy: the likeliest token for certain.
        top_k: Keep this many of the likeliest tokens, at least 1; None keeps all.
        top_p: Keep the fewest of the likeliest tokens whose probabilities sum to at least this, above 0 to 1 (nucleus
            sampling, Holtzman et al. 2020, section 3.1); None keeps all.
        min_p: Keep the tokens at least this share as likely as the likeliest one, above 0 to 1 (Nguyen et al. 2024,
            section 3); None keeps all.
        repetition_penalty: Above 1, tokens that the window already holds, prompt or not, become less likely: their
            logit is divided by this if it is positive and multiplied if not (Keskar et al. 2019, section 4.1, who
            divide only; the sign as in transformers, for dividing a negative logit would do the opposite). 1 is off.

    Raises:
        PromptError: If a setting is out of its range.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        """Refuse settings that give no distribution."""
        if not is_number(self.temperature) or self.temperature < 0:
            raise PromptError("temperature_out_of_range", value=self.temperature)
        if self.top_k is not None and not (is_whole(self.top_k) and self.top_k >= 1):
            raise PromptError("top_k_out_of_range", value=self.top_k)
        if self.top_p is not None and not (is_number(self.top_p) and 0 < self.top_p <= 1):
            raise PromptError("top_p_out_of_range", value=self.top_p)
        if self.min_p is not None and not (is_number(self.min_p) and 0 < self.min_p <= 1):
            raise PromptError("min_p_out_of_range", value=self.min_p)
        if not is_number(self.repetition_penalty) or self.repetition_penalty <= 0:
            raise PromptError("repetition_penalty_out_of_range", value=self.repetition_penalty)

    @property
    def leaves_out(self) -> bool:
        """Whether top-k, top-p or min-p may leave out a token."""
        return self.top_k is not None or self.top_p is not None or self.min_p is not None

    @property
    def is_off(self) -> bool:
        """Whether the model's own distribution is drawn from."""
        return self.temperature == 1 and self.repetition_penalty == 1 and not self.leaves_out


class Drawn(NamedTuple):
    """What was drawn for each text of a batch.

    Attributes:
        ids: The tokens.
        probabilities: What each was drawn with, 0 to 1.
        log_probabilities: Natural logarithm of what the model itself gave each.
        ranks: How many tokens the model found likelier than each.
        shares: What each token of the vocabulary could be drawn with, up to a factor in each row.
    """

    ids: list[int]
    probabilities: list[float]
    log_probabilities: list[float]
    ranks: list[int]
    shares: Float[np.ndarray, "batch vocab"]


def sample_distribution(
    logits: Float[Tensor, " vocab"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> Float[Tensor, " vocab"]:
    """Return the probabilities to draw the next token from, in float64; `Sampling` says what the settings do.

    Args:
        logits: The model's unnormalised log-probabilities.
        temperature: 0 or more.
        top_k: At least 1, or None.
        top_p: Above 0 to 1, or None.
        min_p: Above 0 to 1, or None.

    Raises:
        PromptError: If a setting is out of its range.
    """
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    shares = shares_of(logits.detach().double().numpy()[None], sampling)[0]
    return torch.from_numpy(shares / shares.sum())


def shares_of(logits: Float[np.ndarray, "batch vocab"], sampling: Sampling) -> Float[np.ndarray, "batch vocab"]:
    """Return what each token can be drawn with, up to a factor in each row: the likeliest has 1."""
    if sampling.temperature == 0:
        shares = np.zeros_like(logits)
        shares[np.arange(len(logits)), logits.argmax(1)] = 1.0
        return shares
    shares = logits - logits.max(1, keepdims=True)
    if sampling.temperature != 1:
        # A temperature next to 0 sends all but the likeliest to -inf, which is right.
        with np.errstate(over="ignore"):
            shares /= sampling.temperature
    np.exp(shares, out=shares)
    if sampling.top_k is not None and sampling.top_k < shares.shape[1]:
        for row, shares_row in zip(logits, shares, strict=True):
            shares_row[~_likeliest(row, sampling.top_k)] = 0.0
    if sampling.top_p is not None and sampling.top_p < 1:
        for row, shares_row in zip(logits, shares, strict=True):
            shares_row[~_nucleus(row, shares_row, sampling.top_p)] = 0.0
    if sampling.min_p is not None:
        shares[shares < sampling.min_p] = 0.0
    return shares


def _likeliest(logits: Float[np.ndarray, " vocab"], count: int) -> Bool[np.ndarray, " vocab"]:
    """Return which tokens are the `count` likeliest."""
    return _from(logits, np.partition(logits, len(logits) - count)[len(logits) - count], count)


def _nucleus(
    logits: Float[np.ndarray, " vocab"], shares: Float[np.ndarray, " vocab"], top_p: float
) -> Bool[np.ndarray, " vocab"]:
    """Return the fewest of the likeliest tokens that hold `top_p` of all shares."""
    possible = shares > 0
    held = np.sort(shares[possible])[::-1].cumsum()
    count = min(int(np.count_nonzero(held < top_p * held[-1])) + 1, len(held))
    # By their logits, which may still differ where shares are equal by rounding.
    least = np.sort(logits[possible])[-count]
    return _from(np.where(possible, logits, -np.inf), least, count)


def _from(values: Float[np.ndarray, " vocab"], least: float, count: int) -> Bool[np.ndarray, " vocab"]:
    """Return which `count` values are the largest, given the least of them; of equal ones the first."""
    kept = values > least
    if missing := count - int(np.count_nonzero(kept)):
        kept[np.flatnonzero(values == least)[:missing]] = True
    return kept


class Sampler:
    """Draws the tokens of texts that are written side by side, each with random numbers of its own.

    Args:
        sampling: How to draw.
        seeds: One for each text.
    """

    def __init__(self, sampling: Sampling, seeds: Sequence[int]) -> None:
        self._sampling = sampling
        self._numbers = [random.Random(seed).random for seed in seeds]  # noqa: S311 (no secrets)
        self._rows = np.arange(len(seeds))

    def draw(self, logits: Float[Tensor, "batch vocab"], window: Int[np.ndarray, "batch time"]) -> Drawn:
        """Draw a token for each text.

        Args:
            logits: What the model expects after each.
            window: The ids that it has seen.
        """
        sampling, rows = self._sampling, self._rows
        by_model = logits.numpy().astype(np.float64)
        changed = by_model
        if sampling.repetition_penalty != 1:
            changed = penalised(by_model, window, sampling.repetition_penalty)
        shares = shares_of(changed, sampling)
        cumulated = shares.cumsum(1)
        totals = cumulated[:, -1]
        targets = totals * [number() for number in self._numbers]
        ids = _under(targets, cumulated, shares)
        own = by_model[rows, ids]
        if sampling.is_off:
            log_totals = np.log(totals) + by_model.max(1)
        else:
            largest = by_model.max(1)
            log_totals = np.log(np.exp(by_model - largest[:, None]).sum(1)) + largest
        return Drawn(
            ids.tolist(),
            (shares[rows, ids] / totals).tolist(),
            (own - log_totals).tolist(),
            _ranks(by_model, ids).tolist(),
            shares,
        )


def penalised(
    logits: Float[np.ndarray, "batch vocab"], window: Int[np.ndarray, "batch time"], penalty: float
) -> Float[np.ndarray, "batch vocab"]:
    """Return logits in which those of the tokens in each window are changed by the repetition penalty."""
    rows = np.arange(len(logits))[:, None]
    seen = logits[rows, window]
    changed = logits.copy()
    changed[rows, window] = np.where(seen > 0, seen / penalty, seen * penalty)
    return changed


def draw(probabilities: Float[Tensor, " vocab"], number: float) -> int:
    """Return the token under a number from 0 to below 1, in the cumulated probabilities."""
    shares = probabilities.numpy()[None]
    cumulated = shares.cumsum(1)
    return int(_under(number * cumulated[:, -1], cumulated, shares)[0])


def _under(
    targets: Float[np.ndarray, " batch"],
    cumulated: Float[np.ndarray, "batch vocab"],
    shares: Float[np.ndarray, "batch vocab"],
) -> Int[np.ndarray, " batch"]:
    ids = np.count_nonzero(cumulated <= targets[:, None], axis=1)
    # Rounding may put the largest numbers on the very end, where no token is.
    for row in np.flatnonzero(ids == shares.shape[1]):
        ids[row] = np.flatnonzero(shares[row])[-1]
    return ids


def rank(logits: Float[Tensor, " vocab"], token_id: int) -> int:
    """Return how many tokens are likelier; of equal ones the lower id goes first."""
    return int(_ranks(logits.double().numpy()[None], np.array([token_id]))[0])


def _ranks(logits: Float[np.ndarray, "batch vocab"], ids: Int[np.ndarray, " batch"]) -> Int[np.ndarray, " batch"]:
    own = np.take_along_axis(logits, ids[:, None], 1)
    likelier = np.count_nonzero(logits > own, axis=1)
    # Of equal ones those before it.
    equal = np.cumsum(logits == own, axis=1)
    return likelier + np.take_along_axis(equal, ids[:, None], 1)[:, 0] - 1


def seed_of(seed: int, continuation: int) -> int:
    """Return the seed that gives one of several continuations alone; that of the first is the seed itself.

    Args:
        seed: The seed they were drawn with.
        continuation: 0 for the first.
    """
    if continuation == 0:
        return seed
    digest = hashlib.sha256(f"{seed} {continuation}".encode()).digest()
    return int.from_bytes(digest[:8], "big") & LARGEST_SEED
