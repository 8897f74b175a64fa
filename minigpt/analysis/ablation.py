"""What if: the model as it is beside the model under an intervention, in what it says, in its loss, in what it writes.

Everything is measured on one text. A part without which nothing changes here may matter on another text, and another
part may have stepped in for it (Wang et al. 2022, section 3.4, on backup heads).
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor

from minigpt.analysis.anatomy import anatomy
from minigpt.analysis.forward import Layers, forward, head_means
from minigpt.analysis.frames import frame, numbers
from minigpt.analysis.interventions import Intervention
from minigpt.analysis.window import reference_ids, text_loss, window_of
from minigpt.checkpoint import Checkpoint
from minigpt.generation import generate
from minigpt.sampling import Sampler, Sampling, SamplingOptions
from minigpt.tokenizer import Text, ids_of


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """What an intervention changes on one text; `before` is the model as it is.

    Attributes:
        intervention: What was changed.
        tokens: The text of each token in the window.
        ids: Their ids.
        start: True position of the first.
        before: Probabilities of the next token after each position, 0 to 1.
        after: The same under the intervention.
        kl: How far the prediction moved: Kullback–Leibler divergence of `after` from `before`, Σ before · log₂(before ∕
            after), in bits, at least 0.
        changed_ids: The tokens whose probability changed most, largest change first.
        changed_before: Their probabilities before.
        changed_after: Their probabilities after.
        loss_before: Mean cross-entropy of the text in nats per token; NaN for a text of one token.
        loss_after: The same under the intervention.
        inside_before: What happened in every layer, a batch of one.
        inside_after: The same under the intervention.
    """

    intervention: Intervention
    tokens: list[str]
    ids: list[int]
    start: int
    before: Float[Tensor, "position vocab"]
    after: Float[Tensor, "position vocab"]
    kl: Float[Tensor, " position"]
    changed_ids: Int[Tensor, "position choice"]
    changed_before: Float[Tensor, "position choice"]
    changed_after: Float[Tensor, "position choice"]
    loss_before: float
    loss_after: float
    inside_before: Layers
    inside_after: Layers

    def to_frame(self) -> Any:  # noqa: ANN401 (a pandas.DataFrame)
        """Return one row per position: position, token, KL in bits, probability of the token that follows."""
        following = torch.tensor([*self.ids[1:], 0])[:, None]
        columns: dict[str, list[Any]] = {
            "position": list(range(self.start, self.start + len(self.ids))),
            "token": self.tokens,
            "kl_bits": numbers(self.kl),
        }
        for name, probability in (("before", self.before), ("after", self.after)):
            columns[f"following_{name}"] = [*numbers(probability.gather(1, following)[:-1]), math.nan]
        return frame(columns)


def what_if(
    ckpt: Checkpoint, text: Text, intervention: Intervention, *, reference: Text | None = None, most: int = 10
) -> WhatIf:
    """Read a text as it is and under an intervention, in one pass.

    Args:
        ckpt: The model and its tokenizer.
        text: A text or its ids, at least one token long; the last `block_size` tokens are read.
        intervention: What to change. Its edges count positions from the start of the text.
        reference: Text over which heads that are replaced by their mean are averaged; None for `text` itself.
        most: How many of the most changed tokens to list at each position.

    Raises:
        PromptError: If the text cannot be read or an edge does not lie in it.
        ConfigError: If the model lacks what the intervention names.
    """
    window = window_of(ckpt, text)
    intervention.check(ckpt.config, window.start + len(window.ids))
    means = _means(ckpt, intervention, reference, text)
    run = forward(ckpt.model, window.idx, [intervention], start=window.start, means=means)
    logs = run.logits.double().log_softmax(-1)
    before, after = logs.exp()
    changed = (after - before).abs().topk(min(most, before.shape[1])).indices
    losses = numbers(text_loss(run.logits, window.ids))
    return WhatIf(
        intervention=intervention,
        tokens=window.tokens,
        ids=window.ids,
        start=window.start,
        before=before,
        after=after,
        kl=kl_bits(logs[0], logs[1]),
        changed_ids=changed,
        changed_before=before.gather(1, changed),
        changed_after=after.gather(1, changed),
        loss_before=losses[0],
        loss_after=losses[1],
        inside_before=_row(run.inside, 0),
        inside_after=_row(run.inside, 1),
    )


def kl_bits(before: Float[Tensor, "*batch vocab"], after: Float[Tensor, "*batch vocab"]) -> Float[Tensor, "*batch"]:
    """Return Σ p · log₂(p ∕ q) in bits, at least 0, of two distributions given as natural logarithms."""
    return ((before.exp() * (before - after)).sum(-1) / math.log(2)).clamp(min=0)


@dataclass(frozen=True, kw_only=True)
class TwoContinuations:
    """The same prompt continued with the same random numbers, as it is and under an intervention.

    Attributes:
        before: The texts of the new tokens of the model as it is.
        after: The same under the intervention.
        before_probability: What the model as it is gave each of its new tokens, 0 to 1, before temperature and the
            other settings.
        after_probability: What the changed model gave each of its own, likewise.
        first_difference: Index of the first new token that differs; None if none does.
    """

    before: list[str]
    after: list[str]
    before_probability: list[float]
    after_probability: list[float]
    first_difference: int | None

    def to_frame(self) -> Any:  # noqa: ANN401 (a pandas.DataFrame)
        """Return one row per new token, counted from 0."""
        return frame(
            {
                "index": list(range(len(self.before))),
                "before": self.before,
                "before_probability": self.before_probability,
                "after": self.after,
                "after_probability": self.after_probability,
            }
        )


def compare_continuations(
    ckpt: Checkpoint,
    text: Text,
    intervention: Intervention,
    *,
    max_new_tokens: int = 60,
    seed: int = 0,
    reference: Text | None = None,
    **options: Unpack[SamplingOptions],
) -> TwoContinuations:
    """Continue a prompt twice from the same seed: with the model as it is, and under an intervention.

    Args:
        ckpt: The model and its tokenizer.
        text: The prompt or its ids; an empty one starts from the token with id 0, as `generate` does.
        intervention: What to change. Its edges count positions from the start of the text; they may lie in what is yet
            to be written.
        max_new_tokens: How many tokens to append.
        seed: 0 to 2⁶³ − 1.
        reference: As for `what_if`.
        **options: `temperature`, `top_k`, `top_p`, `min_p` and `repetition_penalty`, as `generate` takes them.

    Raises:
        PromptError: If a setting is out of its range or the vocabulary lacks a character.
        ConfigError: If the model lacks what the intervention names.
    """
    intervention.check(ckpt.config)
    steps = generate(ckpt, text, max_new_tokens=max_new_tokens, seed=seed, **options)
    before = [(step.token_id, step.model_probability) for step in steps]
    ids = ids_of(ckpt.tokenizer, text) or [0]
    means = None
    if intervention.needs_means():
        means = head_means(ckpt.model, ids if reference is None else reference_ids(ckpt, reference, text))
    after = list(_continue(ckpt, ids, intervention, means, max_new_tokens, Sampler(Sampling(**options), [seed])))
    different = [index for index, (old, new) in enumerate(zip(before, after, strict=True)) if old[0] != new[0]]
    return TwoContinuations(
        before=[ckpt.tokenizer.piece(token_id) for token_id, _ in before],
        after=[ckpt.tokenizer.piece(token_id) for token_id, _ in after],
        before_probability=[probability for _, probability in before],
        after_probability=[probability for _, probability in after],
        first_difference=different[0] if different else None,
    )


def _continue(
    ckpt: Checkpoint,
    ids: list[int],
    intervention: Intervention,
    means: Tensor | None,
    max_new_tokens: int,
    sampler: Sampler,
) -> Generator[tuple[int, float], None, None]:
    """Yield the new tokens under an intervention, and what the changed model gave each, 0 to 1.

    They are drawn with the numbers that `generate` draws with.
    """
    parts = anatomy(ckpt.model)
    block, ids = ckpt.config.block_size, list(ids)
    for _ in range(max_new_tokens):
        start = max(0, len(ids) - block)
        window = torch.tensor(ids[start:])
        run = forward(parts, window, [intervention], start=start, means=means, keep=False)
        drawn = sampler.draw(run.logits[1:, -1], window[None].numpy())
        ids += drawn.ids
        yield ids[-1], math.exp(drawn.log_probabilities[0])


def _means(ckpt: Checkpoint, intervention: Intervention, reference: Text | None, text: Text) -> Tensor | None:
    """Return the heads' means over the reference text if the intervention needs them."""
    return head_means(ckpt.model, reference_ids(ckpt, reference, text)) if intervention.needs_means() else None


def _row(layers: Layers, row: int) -> Layers:
    """Return one row of everything that was kept, as a batch of one."""
    return Layers(**{name: tensor[row : row + 1] for name, tensor in vars(layers).items()})
