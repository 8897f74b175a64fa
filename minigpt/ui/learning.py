"""What the tab *Training* asks for: how a model was trained, and what it did with a text at one step of its training.

Everything comes from the browser and is checked. What is remembered is what the files of a run say, by their names,
sizes and times, so a run that goes on is read anew.
"""

from pathlib import Path

import numpy as np

from minigpt import wire
from minigpt.analysis.development import Development, head_development
from minigpt.analysis.patterns import trace
from minigpt.analysis.window import text_loss
from minigpt.checkpoint import Checkpoint, load_checkpoint
from minigpt.errors import CheckpointError, wrong_type
from minigpt.generation import generate
from minigpt.snapshots import HISTORY_FILE, list_snapshots, load_snapshots, read_history
from minigpt.ui.examples import examples_for
from minigpt.ui.messages import message_of, read_as
from minigpt.ui.models import Models, Recent, stamp_of

SAMPLE_TOKENS, SAMPLE_TEMPERATURE, SAMPLE_SEED = 80, 0.8, 1
"""How the text of each moment goes on, the same at every step."""
LONGEST_TEXT = 4000
"""Most characters of the text that a moment looks at; the end of it is taken."""
KEPT = 8
"""Runs whose scores are remembered."""


class Runs:
    """The training runs among the models of one folder."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._kept = Recent[Development](KEPT)

    def names(self) -> dict[str, int]:
        """Return the models that have a history, with how many snapshots each has."""
        folder = self._models.folder
        names = [name for name in self._models.names() if (folder / name / HISTORY_FILE).is_file()]
        return {name: len(list_snapshots(folder / name)) for name in names}

    def training(self, name: object) -> wire.TrainingMessage:
        """Describe a run.

        Args:
            name: That of the model that is looked at. Where it has no snapshots the first run that has some is
                described, and where none has any, the first run.

        Raises:
            CheckpointError: `no_runs`, or whatever is wrong with the files.
        """
        runs = self.names()
        if not runs:
            raise CheckpointError("no_runs", folder=self._models.folder)
        if not isinstance(name, str) or not runs.get(name):
            with_snapshots = [each for each, count in runs.items() if count]
            name = (*with_snapshots, *runs)[0]
        return self._described(name, runs)

    def one(self, name: object) -> wire.TrainingMessage:
        """Describe the run of a name, with or without snapshots.

        Raises:
            CheckpointError: `unknown_model`, or whatever is wrong with the files.
        """
        runs = self.names()
        return self._described(self._known(name, runs), runs)

    def moment(self, name: object, step: object, text: object) -> wire.MomentMessage:
        """Look at a text with the model as it was at a step.

        Args:
            name: A run.
            step: One of its snapshots' steps.
            text: What the page shows; where the run cannot read it, a text of its own takes its place.

        Raises:
            CheckpointError: `unknown_model`, `unknown_snapshot`, or whatever is wrong with the files.
            PromptError: `wrong_type` if the text is none.
        """
        known = self._known(name, self.names())
        snapshots = list_snapshots(self._models.folder / known)
        if not isinstance(step, int) or step not in snapshots:
            raise CheckpointError("unknown_snapshot", name=known, step=repr(step)[:20], steps=_listed(snapshots))
        if not isinstance(text, str):
            raise wrong_type("text", text, "a text")
        ckpt = load_checkpoint(snapshots[step])
        text = text[-LONGEST_TEXT:]
        own_text = not text or bool(ckpt.tokenizer.unknown(text))
        if own_text:
            text = examples_for(ckpt.tokenizer)[0]
        traced = trace(ckpt, text)
        return wire.moment(
            step=step,
            analysis=read_as(ckpt, text, message_of(ckpt, traced)),
            own_text=own_text,
            loss=float(text_loss(traced.logits[None], traced.ids)[0]) if len(traced.ids) > 1 else None,
            sample=_sample(ckpt, text),
        )

    def _known(self, name: object, runs: dict[str, int]) -> str:
        if not isinstance(name, str) or name not in runs:
            raise CheckpointError("unknown_model", name=repr(name)[:80], choices=", ".join(runs))
        return name

    def _described(self, name: str, runs: dict[str, int]) -> wire.TrainingMessage:
        path = self._models.folder / name
        records = read_history(path)
        developed = self._development(path)
        names = list(developed.scores)
        curves = [developed.scores[score].numpy() for score in names]
        _, n_layer, n_head = curves[0].shape if curves else (0, 0, 0)
        appeared = [
            [
                [-1 if (step := developed.appeared(score, layer, head)) is None else step for head in range(n_head)]
                for layer in range(n_layer)
            ]
            for score in names
        ]
        return wire.training(
            runs=runs,
            name=name,
            records={
                "step": [record["step"] for record in records],
                "train": [record["train_loss"] for record in records],
                "validation": [record["validation_loss"] for record in records],
                "speed": [record["tokens_per_second"] for record in records],
            },
            steps=developed.steps,
            scores=names,
            curve=np.stack(curves) if curves else np.zeros((0, 0, 0, 0), np.float32),
            appeared=np.array(appeared, np.int32).reshape(len(names), n_layer, n_head),
        )

    def _development(self, path: Path) -> Development:
        """Return the scores of a run's snapshots, from memory where the files are the same."""
        stamps = tuple(stamp_of(folder) for folder in list_snapshots(path).values())
        return self._kept.get(stamps, lambda: head_development(load_snapshots(path)))


def _sample(ckpt: Checkpoint, text: str) -> str:
    steps = generate(ckpt, text, max_new_tokens=SAMPLE_TOKENS, temperature=SAMPLE_TEMPERATURE, seed=SAMPLE_SEED)
    return "".join(step.token for step in steps)


def _listed(snapshots: dict[int, Path]) -> str:
    return ", ".join(map(str, snapshots)) or "–"
