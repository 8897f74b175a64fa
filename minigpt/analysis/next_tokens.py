"""What the model expects after each position, and how it took what really followed."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

ROWS = 256
"""Positions that are described at a time; with a large vocabulary all together take as much memory as the model."""


@dataclass(frozen=True, kw_only=True)
class NextTokens:
    """The model's own distribution after each position (temperature 1, nothing left out).

    Attributes:
        ids: The likeliest tokens, most likely first.
        probability: Their probabilities, 0 to 1.
        taken_probability: Probability of the token that really follows; -1 at the last position, where none does.
        taken_rank: How many tokens were likelier than the one that follows, of equal ones those with a lower id; -1 at
            the last position.
    """

    ids: Int[Tensor, "position choice"]
    probability: Float[Tensor, "position choice"]
    taken_probability: Float[Tensor, " position"]
    taken_rank: Int[Tensor, " position"]


def next_tokens(logits: Float[Tensor, "position vocab"], ids: Sequence[int], most: int = 10) -> NextTokens:
    """Describe what the model expects after each position.

    Args:
        logits: One row for each token of the window.
        ids: The tokens of the window.
        most: How many of the likeliest tokens to list; fewer if the vocabulary is smaller.

    Raises:
        ValueError: If there is not one row of logits for each token.
    """
    if len(ids) != logits.shape[0]:
        raise ValueError(f"expected {logits.shape[0]} tokens, one for each row of logits, got {len(ids)}")
    following = torch.tensor([*ids[1:], 0])[:, None]
    parts = zip(torch.split(logits, ROWS), torch.split(following, ROWS), strict=True)
    described = [_described(rows, taken, min(most, logits.shape[1])) for rows, taken in parts]
    top, top_ids, taken_probability, taken_rank = (torch.cat(column) for column in zip(*described, strict=True))
    taken_probability[-1], taken_rank[-1] = -1, -1
    return NextTokens(ids=top_ids, probability=top, taken_probability=taken_probability, taken_rank=taken_rank)


def _described(
    logits: Float[Tensor, "position vocab"], following: Int[Tensor, "position 1"], most: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the likeliest tokens' probabilities and ids, and probability and rank of the token that follows."""
    probability = logits.softmax(-1)
    top = probability.topk(most)
    taken = logits.gather(1, following)
    earlier = torch.arange(logits.shape[1]) < following
    rank = ((logits > taken) | ((logits == taken) & earlier)).sum(1)
    return top.values, top.indices, probability.gather(1, following)[:, 0], rank
