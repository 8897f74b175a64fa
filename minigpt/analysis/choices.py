"""What could have been said at each step: the model's own distribution, and the one that the token was drawn from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from minigpt.sampling import LIKELIEST, WHOLE_VOCABULARY, penalised, rank, sample_distribution


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Two distributions for each step: before temperature, top-k and top-p, and after.

    Attributes:
        ids: The listed tokens, most likely first, of equal ones the lower id first.
        before: Their probabilities by the model itself, 0 to 1.
        after: The probabilities that they were drawn with, 0 to 1.
        rest: What all tokens that are not listed hold together, before and after; exactly 0 if all are listed.
        sampled_from: How many tokens could be drawn.
        taken_before: Probability of the token that was taken, by the model itself.
        taken_after: The probability that it was drawn with.
        taken_rank: How many tokens the model found likelier; of equal ones those with a lower id.
    """

    ids: Int[Tensor, "step choice"]
    before: Float[Tensor, "step choice"]
    after: Float[Tensor, "step choice"]
    rest: Float[Tensor, "step 2"]
    sampled_from: Int[Tensor, " step"]
    taken_before: Float[Tensor, " step"]
    taken_after: Float[Tensor, " step"]
    taken_rank: Int[Tensor, " step"]


@torch.inference_mode()
def choices(
    logits: Float[Tensor, "step vocab"],
    taken: Sequence[int],
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    windows: Sequence[Sequence[int]] | None = None,
) -> Choices:
    """Describe what each token was chosen from.

    Args:
        logits: The predicting row of each step.
        taken: The token of each step.
        temperature: As for `sample_distribution`, like the other settings.
        top_k: How many of the likeliest tokens could be drawn; None for all.
        top_p: Least share of probability that the drawn-from tokens hold; None for all.
        min_p: Least probability as a share of the likeliest token's; None for all.
        repetition_penalty: What weakens the tokens of the window; 1 for nothing.
        windows: The ids that each step was predicted from; needed with a repetition penalty only.

    Raises:
        ValueError: If there is not one row of logits, and one window, for each token.
        PromptError: If a setting is out of its range.
    """
    if len(taken) != len(logits):
        raise ValueError(f"expected {len(logits)} tokens, one for each row of logits, got {len(taken)}")
    before = logits.double().softmax(-1)
    changed = logits
    if repetition_penalty != 1:
        if windows is None or len(windows) != len(taken):
            raise ValueError(f"a repetition penalty needs the window of each of the {len(taken)} tokens")
        changed = torch.cat(
            [
                torch.from_numpy(penalised(row[None].double().numpy(), np.array([window]), repetition_penalty))
                for row, window in zip(logits, windows, strict=True)
            ]
        )
    after = torch.stack([sample_distribution(row, temperature, top_k, top_p, min_p) for row in changed])
    order = logits.argsort(dim=-1, descending=True, stable=True)
    vocab_size = logits.shape[1]
    ids = order[:, : vocab_size if vocab_size <= WHOLE_VOCABULARY else LIKELIEST]
    unlisted = order[:, ids.shape[1] :]
    both = (before, after)
    column = torch.tensor(taken)[:, None]
    return Choices(
        ids=ids,
        before=before.gather(1, ids),
        after=after.gather(1, ids),
        rest=torch.stack([each.gather(1, unlisted).sum(1) for each in both], 1),
        sampled_from=(after > 0).sum(1),
        taken_before=before.gather(1, column)[:, 0],
        taken_after=after.gather(1, column)[:, 0],
        taken_rank=torch.tensor([rank(row, token_id) for row, token_id in zip(logits, taken, strict=True)]),
    )
