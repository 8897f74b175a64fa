"""What the time slider asks for: the forward pass that predicted a token, and what the token was chosen from.

Functions without memory of the person, as in `messages`: everything comes from the browser and is checked.
"""

from collections.abc import Mapping
from typing import cast

import torch

from minigpt import wire
from minigpt.analysis.choices import choices
from minigpt.analysis.patterns import logits_and_pattern
from minigpt.analysis.scores import growing_head_scores
from minigpt.checkpoint import Checkpoint
from minigpt.config import is_index, is_number
from minigpt.errors import wrong_type
from minigpt.ui.messages import (
    LONGEST,
    SAMPLING,
    Sampling,
    analysis_of,
    checked_ids,
    length_from_control,
    pieces,
)

AT_ONCE = 64
"""Most steps that one answer describes."""


def window(ckpt: Checkpoint, ids: object) -> wire.AnalysisMessage:
    """Analyse the tokens of one window; its positions count from the window's first token.

    Raises:
        PromptError: `empty_prompt` or `tokens_out_of_range`.
    """
    checked = checked_ids(ckpt, ids, most=ckpt.config.block_size)
    return analysis_of(ckpt, checked, prompt_length=len(checked))


def steps(ckpt: Checkpoint, ids: object, first: object, sampling: object) -> wire.StepsMessage:
    """Say for some tokens of a text what each was chosen from, and what the heads did with the tokens before it.

    Args:
        ckpt: The model and its tokenizer.
        ids: The tokens of a window, and the one that follows it.
        first: The index of the first token to describe, from 1; those after it are described as well, at most
            `AT_ONCE` in all.
        sampling: The settings that the tokens were drawn with, as a `generating` message names them.

    Raises:
        PromptError: If anything else comes in.
    """
    settings = sampling_of(sampling)
    given = checked_ids(ckpt, ids, most=ckpt.config.block_size + 1)
    if not is_index(first, len(given)) or first == 0:
        raise wrong_type("first", first, "the index of a later token")
    seen, taken = given[:-1], given[first : first + AT_ONCE]
    with torch.inference_mode():
        logits, pattern = logits_and_pattern(ckpt, seen)
    rows = slice(first - 1, first - 1 + len(taken))
    described = choices(
        logits[rows],
        taken,
        temperature=settings.temperature,
        top_k=settings.top_k,
        top_p=settings.top_p,
        min_p=settings.min_p,
        repetition_penalty=settings.repetition_penalty,
        windows=[seen[: first + row] for row in range(len(taken))],
    )
    scores = growing_head_scores(pattern, [ckpt.tokenizer.piece(token_id) for token_id in seen])
    return wire.steps(
        pieces=pieces(ckpt, {*taken, *described.ids.flatten().tolist()}),
        choice_id=described.ids.numpy(),
        choice_before=described.before.numpy(),
        choice_after=described.after.numpy(),
        choice_rest=described.rest.numpy(),
        sampled_from=described.sampled_from.numpy(),
        taken_before=described.taken_before.numpy(),
        taken_after=described.taken_after.numpy(),
        taken_rank=described.taken_rank.numpy(),
        scores={name: values[rows].numpy() for name, values in scores.items()},
    )


def branch_of(ckpt: Checkpoint, asked: object) -> tuple[int, list[int], Sampling, int]:
    """Read what the browser wants to continue: the branch's number, its first tokens, the settings, and its length.

    Raises:
        PromptError: If anything else comes in.
    """
    named = _mapping("branch", asked)
    number = named.get("branch")
    if not is_index(number, 2**53):
        raise wrong_type("branch", number, "a whole number")
    given = checked_ids(ckpt, named.get("given"), most=LONGEST)
    sampling = _mapping("sampling", named.get("sampling"))
    length = sampling.get("length")
    return number, given, sampling_of(sampling), length_from_control(length if is_number(length) else None)


def sampling_of(given: object) -> Sampling:
    """Read the settings that a `generating` message named, as they come back from the browser.

    Raises:
        PromptError: `wrong_type` if they are something else, or that a setting is out of its range.
    """
    named = _mapping("sampling", given)
    numbers: dict[str, float | None] = {}
    for name in SAMPLING:
        value = named.get(name)
        if value is not None and not is_number(value):
            raise wrong_type(name, value, "a number")
        numbers[name] = value
    return Sampling.from_controls(**numbers)


def _mapping(name: str, given: object) -> Mapping[str, object]:
    if not isinstance(given, dict):
        raise wrong_type(name, given, "an object")
    return cast(Mapping[str, object], given)
