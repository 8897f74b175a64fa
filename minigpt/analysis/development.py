"""How the heads came to do what they do: every head's scores at each snapshot of a training run.

The scores are those of the standard probe (`minigpt.analysis.head_finder`), so they do not depend on a text, and the
snapshot of step 0 is the untrained model that they stand beside.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from minigpt.analysis.frames import frame, numbers
from minigpt.analysis.head_finder import probe_scores, probe_texts
from minigpt.checkpoint import Checkpoint
from minigpt.lean import lean_model

SAMPLES = 4
"""Sequences of the probe at each snapshot."""


@dataclass(frozen=True, kw_only=True)
class Development:
    """Scores of all heads over the steps of a training run.

    Attributes:
        steps: Steps at which snapshots were taken, ascending.
        scores: By name, as `probe_heads` has them: shares of attention from 0 to 1, `entropy` in bits, `distance` in
            tokens.
    """

    steps: list[int]
    scores: dict[str, Float[Tensor, "step layer head"]]

    def appeared(self, name: str, layer: int, head: int) -> int | None:
        """Return the first step from which on the score stays above the middle between its first and its last value.

        Args:
            name: One of `scores`.
            layer: 0 to `n_layer - 1`.
            head: 0 to `n_head - 1`.

        Returns:
            None where the score did not grow, or is undefined.
        """
        values = [float(value) for value in self.scores[name][:, layer, head]]
        middle = (values[0] + values[-1]) / 2
        if math.isnan(middle) or values[-1] <= values[0]:
            return None
        index = len(values)
        while values[index - 1] > middle:
            index -= 1
        return self.steps[index]

    def to_frame(self) -> Any:  # noqa: ANN401 (a pandas.DataFrame)
        """Return one row per step and head, with a column per score."""
        columns: dict[str, list[Any]] = {"step": [], "head": []}
        if self.scores:
            _, n_layer, n_head = next(iter(self.scores.values())).shape
            names = [f"L{layer}H{head}" for layer in range(n_layer) for head in range(n_head)]
            columns["step"] = [step for step in self.steps for _ in names]
            columns["head"] = names * len(self.steps)
        return frame(columns | {name: numbers(values) for name, values in self.scores.items()})


def head_development(
    snapshots: Iterable[tuple[int, Checkpoint]], *, samples: int = SAMPLES, seed: int = 0
) -> Development:
    """Score every head at each snapshot on the same probe: random tokens, repeated once.

    Args:
        snapshots: Steps, ascending, with the model after each, as `minigpt.load_snapshots` yields them; all of one
            shape.
        samples: Number of sequences.
        seed: Of the sequences.

    Raises:
        PromptError: `probe_too_short` if the window or the vocabulary is too small.
        CheckpointError: If a snapshot is damaged.
    """
    steps: list[int] = []
    scored: list[dict[str, Tensor]] = []
    for step, ckpt in snapshots:
        steps.append(step)
        scored.append(probe_scores(lean_model(ckpt.model), probe_texts(ckpt.config, samples, seed)))
    names = scored[0] if scored else ()
    return Development(steps=steps, scores={name: torch.stack([scores[name] for scores in scored]) for name in names})
