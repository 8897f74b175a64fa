"""Two things side by side on the same axes: two prompts, two checkpoints, two heads, before and after an intervention.

The difference is *second − first*. Cells that one of the two does not have are NaN: nothing is made up for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from minigpt.analysis.ablation import what_if
from minigpt.analysis.frames import cell_columns, frame
from minigpt.analysis.interventions import Intervention, check_head
from minigpt.analysis.patterns import Trace, trace
from minigpt.checkpoint import Checkpoint
from minigpt.errors import ConfigError
from minigpt.tokenizer import Text

Mark = Literal["same", "changed", "inserted", "deleted"]


@dataclass(frozen=True, kw_only=True)
class Slot:
    """One place on the common axis.

    Attributes:
        mark: `"same"`; `"changed"` (another token at this place); `"inserted"` (only in the second); `"deleted"` (only
            in the first).
        first: True position in the first; None if it is not there.
        second: True position in the second; None if it is not there.
        token: What to write on the axis: the second's token, or the first's where there is no second.
    """

    mark: Mark
    first: int | None
    second: int | None
    token: str


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two patterns on common axes.

    Attributes:
        slots: The places on both axes.
        names: What the two are, for a title.
        first: Attention weights of the first, 0 to 1; NaN where it has no such cell.
        second: Of the second, likewise.
        difference: Second − first, −1 to 1; NaN where one of them has no such cell.
    """

    slots: list[Slot]
    names: tuple[str, str]
    first: Float[Tensor, "layer head query key"]
    second: Float[Tensor, "layer head query key"]
    difference: Float[Tensor, "layer head query key"]

    @property
    def tokens(self) -> list[str]:
        """The text at each place of the axes."""
        return [slot.token for slot in self.slots]

    def to_frame(self) -> Any:  # noqa: ANN401 (a pandas.DataFrame)
        """Return one row per layer, head, query and key up to it; the last two count places of the common axis.

        A query's and a key's token and mark stand beside them; a weight that one of the two does not have is NaN.
        """
        columns = cell_columns(first=self.first, second=self.second, difference=self.difference)
        for axis in ("query", "key"):
            columns[f"{axis}_token"] = [self.slots[place].token for place in columns[axis]]
            columns[f"{axis}_mark"] = [self.slots[place].mark for place in columns[axis]]
        return frame(columns)


def compare_prompts(ckpt: Checkpoint, first: str, second: str) -> Comparison:
    """Compare what a model attends to in two texts, for instance one and the same after an edit.

    Args:
        ckpt: The model and its tokenizer.
        first: A text.
        second: Another one. Tokens are matched by their longest common runs (Ratcliff & Obershelp, as `difflib` does).

    Raises:
        PromptError: If a text cannot be read.
    """
    return _compared(trace(ckpt, first), trace(ckpt, second), ("first prompt", "second prompt"))


def compare_checkpoints(first: Checkpoint, second: Checkpoint, text: str) -> Comparison:
    """Compare what two models attend to in the same text, head by head.

    Args:
        first: A model and its tokenizer.
        second: Another with as many layers and heads, for instance a later step of the same training.
        text: What both read. Where they split it into other tokens, those that differ are marked.

    Raises:
        ConfigError: `shapes_differ` if they have not the same layers and heads.
        PromptError: If one of them cannot read the text.
    """
    shapes = [(each.config.n_layer, each.config.n_head) for each in (first, second)]
    if shapes[0] != shapes[1]:
        described = [f"{n_layer} × {n_head}" for n_layer, n_head in shapes]
        raise ConfigError("shapes_differ", first=described[0], second=described[1])
    return _compared(trace(first, text), trace(second, text), (first.path.name, second.path.name))


def compare_heads(
    ckpt: Checkpoint,
    text: str,
    first: tuple[int, int],
    second: tuple[int, int],
    *,
    other: Checkpoint | None = None,
) -> Comparison:
    """Compare two heads on the same text; the result has one layer and one head.

    Args:
        ckpt: The model and its tokenizer.
        text: What is read.
        first: `(layer, head)` of the model.
        second: `(layer, head)` of the other model, or of the same.
        other: Another model; None for the same.

    Raises:
        ConfigError: If there is no such head.
        PromptError: If the text cannot be read.
    """
    others = ckpt if other is None else other
    check_head(ckpt.config, *first)
    check_head(others.config, *second)
    traces = trace(ckpt, text), trace(others, text)
    return compare_traces(*traces, first, second)


def compare_intervention(
    ckpt: Checkpoint, text: Text, intervention: Intervention, *, reference: Text | None = None
) -> Comparison:
    """Compare what every head attends to before and after an intervention.

    Args:
        ckpt: The model and its tokenizer.
        text: What is read, or its ids.
        intervention: What to change.
        reference: As for `what_if`.

    Raises:
        PromptError: If the text cannot be read or an edge does not lie in it.
        ConfigError: If the model lacks what the intervention names.
    """
    found = what_if(ckpt, text, intervention, reference=reference)
    before, after = found.inside_before.pattern[0], found.inside_after.pattern[0]
    slots = [
        Slot(mark="same", first=position, second=position, token=token)
        for position, token in enumerate(found.tokens, start=found.start)
    ]
    return Comparison(slots=slots, names=("before", "after"), first=before, second=after, difference=after - before)


def compare_traces(
    first: Trace, second: Trace, first_head: tuple[int, int], second_head: tuple[int, int]
) -> Comparison:
    """Compare a head on one text with a head on another; the result has one layer and one head.

    Args:
        first: A text as a model read it.
        second: The same or another text, by the same or another model.
        first_head: `(layer, head)` of the first model, which must have it.
        second_head: `(layer, head)` of the second model, likewise.
    """
    names = tuple(f"L{layer}H{head}" for layer, head in (first_head, second_head))
    one, other = first.pattern[first_head][None, None], second.pattern[second_head][None, None]
    return _aligned(one, other, align(first, second), (names[0], names[1]), (first, second))


def head_distances(first: Trace, second: Trace) -> Float[Tensor, "layer head"]:
    """Return how far each head's rows are from the same head's rows in another trace, 0 to 1.

    Half the sum of absolute differences over the cells that both have (total variation), averaged over the queries that
    both have.

    Args:
        first: A text as a model read it.
        second: Another text, or by another model with as many layers and heads.
    """
    compared = _compared(first, second, ("first", "second"))
    both = torch.tensor([slot.first is not None and slot.second is not None for slot in compared.slots])
    return compared.difference[:, :, both].abs().nan_to_num(0.0).sum(-1).mean(-1) / 2


def align(first: Trace, second: Trace) -> list[Slot]:
    """Return the common axis of two texts: what is the same, changed, only in the first, only in the second."""
    slots: list[Slot] = []
    matcher = SequenceMatcher(None, first.tokens, second.tokens, autojunk=False)
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        for step in range(max(end - start, other_end - other_start)):
            old = start + step if start + step < end else None
            new = other_start + step if other_start + step < other_end else None
            token = first.tokens[start + step] if new is None else second.tokens[new]
            mark: Mark = "deleted" if new is None else "inserted"
            if old is not None and new is not None:
                mark = "same" if first.tokens[old] == second.tokens[new] else "changed"
            slots.append(
                Slot(
                    mark=mark,
                    first=None if old is None else first.start + old,
                    second=None if new is None else second.start + new,
                    token=token,
                )
            )
    return slots


def _compared(first: Trace, second: Trace, names: tuple[str, str]) -> Comparison:
    return _aligned(first.pattern, second.pattern, align(first, second), names, (first, second))


def _aligned(
    first: Tensor, second: Tensor, slots: Sequence[Slot], names: tuple[str, str], traces: tuple[Trace, Trace]
) -> Comparison:
    """Spread two patterns over the common axis."""
    starts = [each.start for each in traces]
    places = [
        [None if slot.first is None else slot.first - starts[0] for slot in slots],
        [None if slot.second is None else slot.second - starts[1] for slot in slots],
    ]
    old, new = (_spread(pattern, place) for pattern, place in zip((first, second), places, strict=True))
    return Comparison(slots=list(slots), names=names, first=old, second=new, difference=new - old)


def _spread(
    pattern: Float[Tensor, "layer head query key"], places: Sequence[int | None]
) -> Float[Tensor, "layer head slot slot"]:
    here = torch.tensor([slot for slot, place in enumerate(places) if place is not None])
    there = torch.tensor([place for place in places if place is not None])
    spread = torch.full((*pattern.shape[:2], len(places), len(places)), float("nan"), dtype=pattern.dtype)
    spread[:, :, here[:, None], here] = pattern[:, :, there[:, None], there]
    return spread
