"""What a training run takes of a text: its two splits, random batches of one, and the loss over some of it or all.

Knows token ids; knows nothing of files and of optimizers.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor

from minigpt.errors import CorpusError
from minigpt.model import LanguageModel


def train_validation_split(ids: Int[Tensor, " tokens"]) -> tuple[Int[Tensor, " train"], Int[Tensor, " validation"]]:
    """Cut the last tenth off for validation, as the chapters do.

    Args:
        ids: The whole text as token ids.
    """
    cut = int(0.9 * len(ids))
    return ids[:cut], ids[cut:]


def get_batch(
    ids: Int[Tensor, " tokens"], block_size: int, batch_size: int, generator: torch.Generator | None = None
) -> tuple[Int[Tensor, "batch time"], Int[Tensor, "batch time"]]:
    """Draw random windows of the text, and the same windows one token later.

    Args:
        ids: A split of the text as token ids, at least `block_size + 1` of them.
        block_size: Tokens in a window.
        batch_size: Number of windows; they may overlap.
        generator: Where the randomness comes from (on the CPU); PyTorch's global generator if None.

    Raises:
        CorpusError: If the split is too short for one window and the token after it.
    """
    if len(ids) <= block_size:
        raise CorpusError("text_too_short", tokens=len(ids), needed=block_size + 1)
    starts = torch.randint(len(ids) - block_size, (batch_size, 1), generator=generator).to(ids.device)
    windows = starts + torch.arange(block_size, device=ids.device)
    return ids[windows], ids[windows + 1]


@torch.no_grad()
def estimate_loss(
    model: LanguageModel,
    splits: dict[str, Int[Tensor, " _"]],
    batch_size: int,
    batches: int,
    generator: torch.Generator | None = None,
) -> dict[str, float]:
    """Return the mean loss over some random batches of each split, with dropout off.

    Args:
        model: Left in the mode it was in.
        splits: Token ids by name, such as `{"train": …, "validation": …}`.
        batch_size: Windows in a batch.
        batches: Number of batches for each split.
        generator: Where the randomness comes from.

    Returns:
        Mean cross-entropy by name, in nats per token.
    """
    training = model.training
    model.eval()
    try:
        return {
            name: sum(float(model(*get_batch(ids, model.block_size, batch_size, generator))[1]) for _ in range(batches))
            / batches
            for name, ids in splits.items()
        }
    finally:
        model.train(training)


@torch.no_grad()
def validation_loss(model: LanguageModel, ids: Int[Tensor, " tokens"], batch_size: int = 32) -> float:
    """Return the mean loss over the whole of a split, every token but the first predicted exactly once.

    The split is cut into windows of `block_size` tokens that do not overlap; the last may be shorter. Each token is
    thus predicted from what lies before it in its own window.

    Args:
        model: Left in the mode it was in.
        ids: The split as token ids.
        batch_size: Windows computed at a time; does not change the result but for rounding.

    Returns:
        Mean cross-entropy in nats per token.

    Raises:
        CorpusError: If there are fewer than two tokens.
    """
    if len(ids) < 2:
        raise CorpusError("text_too_short", tokens=len(ids), needed=2)
    training = model.training
    model.eval()
    try:
        total = sum(
            float(model(idx, targets)[1]) * targets.numel()
            for idx, targets in _windows(ids, model.block_size, batch_size)
        )
    finally:
        model.train(training)
    return total / (len(ids) - 1)


def _windows(
    ids: Int[Tensor, " tokens"], block_size: int, batch_size: int
) -> Iterator[tuple[Int[Tensor, "batch time"], Int[Tensor, "batch time"]]]:
    """Yield every token of a split but the last as input once, with what follows it."""
    whole = (len(ids) - 1) // block_size * block_size
    inputs, targets = ids[:whole].view(-1, block_size), ids[1 : whole + 1].view(-1, block_size)
    for start in range(0, len(inputs), batch_size):
        yield inputs[start : start + batch_size], targets[start : start + batch_size]
    if whole < len(ids) - 1:
        yield ids[whole:-1][None], ids[whole + 1 :][None]
