"""What the tab *Experiments* asks for: the results of an experiment, with every number computed from its records.

Results are the folders that `python -m minigpt compare` wrote. Nothing is remembered, so a run that goes on is read
anew.
"""

import os
from pathlib import Path

import numpy as np
import torch

from minigpt import wire
from minigpt.analysis.scores import head_scores
from minigpt.errors import ConfigError, MiniGPTError
from minigpt.experiment_pictures import Picture, read_picture
from minigpt.experiments import BATCHES, RECORDS_FILE, Record, Row, Saved, read_saved, table
from minigpt.presets import Experiment
from minigpt.ui.messages import described

FOLDER_VARIABLE = "MINIGPT_EXPERIMENTS"
"""The environment variable that names the folder of results."""


class Experiments:
    """The results of experiments in some folders, by the names of their own folders.

    Attributes:
        folders: Where they are looked for; of two results of one name, those in the first folder count.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        """Take the folder given, else that in MINIGPT_EXPERIMENTS, else `experiments` and `runs` beside the package."""
        beside = Path(__file__).resolve().parents[2]
        given = folder or os.environ.get(FOLDER_VARIABLE)
        self.folders = [Path(given)] if given else [beside / "experiments", beside / "runs"]

    def found(self) -> dict[str, Path]:
        """Return the folders of results that are there now, by name; folder by folder in alphabetical order."""
        found: dict[str, Path] = {}
        for folder in self.folders:
            for path in sorted(folder.glob(f"*/{RECORDS_FILE}")):
                found.setdefault(path.parent.name, path.parent)
        return found

    def results(self, name: object, against: object) -> wire.ExperimentMessage:
        """Say what an experiment came to.

        Args:
            name: One of `found()`; None for the first that can be read.
            against: The variant that the others are compared with; the first one for anything that is none.

        Raises:
            ConfigError: `no_experiments`, `unknown_experiment` or `experiment_damaged`.
        """
        found = self.found()
        if not found:
            raise ConfigError("no_experiments", folder=self.folders[0])
        if name is None:
            name = next((each for each, path in found.items() if _is_readable(path)), next(iter(found)))
        if not isinstance(name, str) or name not in found:
            raise ConfigError("unknown_experiment", name=repr(name)[:80], choices=", ".join(found))
        saved = read_saved(found[name])
        variants = Experiment(name=saved.experiment, question="", variants={each: {} for each in saved.variants})
        rows = table(variants, saved.records, against if isinstance(against, str) else None)
        return wire.experiment(
            names=list(found),
            name=name,
            of=(saved.experiment, saved.preset, saved.steps, saved.characters),
            batches=BATCHES,
            seeds=rows[0].seeds if rows else [],
            against=rows[0].against if rows else "",
            rows=[_row(row) for row in rows],
            curves=[_curve(record) for record in saved.records],
            sides=_sides(found[name], saved),
        )


def _is_readable(path: Path) -> bool:
    try:
        return bool(read_saved(path).records)
    except MiniGPTError:
        return False


def _row(row: Row) -> wire.ExperimentRow:
    alone = len(row.losses) < 2
    return {
        "variant": row.variant,
        "parameters": row.parameters,
        "losses": row.losses,
        "mean": row.mean,
        "spread": None if alone else row.spread,
        "difference": row.difference,
        "margin": None if alone else row.margin,
        "told_apart": row.told_apart,
        "seconds": row.seconds,
    }


def _curve(record: Record) -> wire.ExperimentCurve:
    return {
        "variant": record.variant,
        "seed": record.seed,
        "steps": [step for step, _, _ in record.history],
        "losses": [loss for _, _, loss in record.history],
    }


def _sides(folder: Path, saved: Saved) -> list[wire.ExperimentSide]:
    """Return what the first seed of each variant left to look at."""
    firsts = {record.variant: record for record in sorted(saved.records, key=lambda record: -record.seed)}
    sides: list[wire.ExperimentSide] = []
    for variant in saved.variants:
        record = firsts[variant]
        picture = read_picture(folder, variant)
        sides.append(
            {
                "variant": variant,
                "seed": record.seed,
                "prompt": record.prompt,
                "sample": record.sample,
                "analysis": None if picture is None else _analysis(picture, record),
            }
        )
    return sides


def _analysis(picture: Picture, record: Record) -> wire.AnalysisMessage:
    """Return a picture as the viewer draws it; what the model expected next was not kept, so nothing is said of it."""
    tokens = len(picture.ids)
    scores = head_scores(torch.from_numpy(picture.pattern), picture.tokens)
    return wire.analysis(
        checkpoint=described(record.variant, picture.config, record.parameters, "characters"),
        tokens={"ids": picture.ids, "start": 0, "cropped": [], "prompt_length": tokens},
        pieces=dict(zip(picture.ids, picture.tokens, strict=True)),
        checks={
            "logit_difference": picture.logit_difference,
            "compared": picture.compared,
            "row_sum_error": picture.row_sum_error,
        },
        scores={name: values.numpy() for name, values in scores.items()},
        next_id=np.zeros((tokens, 0), np.int32),
        next_probability=np.zeros((tokens, 0), np.float32),
        taken_probability=np.full(tokens, -1, np.float32),
        taken_rank=np.full(tokens, -1, np.int32),
        pattern=picture.pattern,
    )
