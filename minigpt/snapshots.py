"""What a training run leaves to look at: its history, and snapshots of the model at some of its steps.

A snapshot is a checkpoint of its own, in the folder of the run, `snapshots/step-N/`, with numbers of 16 bits. The steps
are spaced evenly on a logarithmic scale, since most happens early. Knows which steps and where; what a training run is,
it does not know.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from minigpt.checkpoint import CONFIG, Checkpoint, load_checkpoint, save_checkpoint
from minigpt.config import is_number, is_whole
from minigpt.formats.files import damaged
from minigpt.model import LanguageModel
from minigpt.tokenizer import Tokenizer

HISTORY_FILE = "training.jsonl"
FOLDER = "snapshots"
FIRST = 10
"""The first step, after 0, that a snapshot is taken at."""


def snapshot_steps(steps: int, per_decade: int) -> list[int]:
    """Return the steps at which snapshots are taken: 0, then from 10 on as many per tenfold as asked, and the last.

    Each is rounded to one digit and zeros, so two per tenfold are 10, 30, 100, 300, …

    Args:
        steps: Steps of the run.
        per_decade: How many for each tenfold of steps; 0 for no snapshots at all. Where rounding makes two of them
            the same there are fewer, at most nine.
    """
    if not per_decade:
        return []
    taken = {0, steps}
    index = 0
    while (exact := FIRST * 10 ** (index / per_decade)) < steps:
        taken.add(int(float(f"{exact:.0e}")))
        index += 1
    return sorted(step for step in taken if step <= steps)


def save_snapshot(run: str | os.PathLike[str], step: int, model: LanguageModel, tokenizer: Tokenizer) -> None:
    """Write the snapshot of a step; a kill at any moment leaves it whole or not there at all.

    Args:
        run: The folder of the run.
        step: Steps taken so far.
        model: The model after them.
        tokenizer: The tokenizer it is trained with.

    Raises:
        CheckpointError: As `save_checkpoint` does.
    """
    folder = Path(run) / FOLDER / f"step-{step}"
    save_checkpoint(folder, model, tokenizer, training={"steps": step}, dtype="float16")


def list_snapshots(run: str | os.PathLike[str]) -> dict[int, Path]:
    """Return the folders of the snapshots of a run by step, in order; empty if it kept none.

    Args:
        run: The folder of the run.
    """
    found: dict[int, Path] = {}
    folder = Path(run) / FOLDER
    for path in folder.iterdir() if folder.is_dir() else ():
        named = re.fullmatch(r"step-(0|[1-9]\d{0,8})", path.name)
        if named and (path / CONFIG).is_file():
            found[int(named[1])] = path
    return dict(sorted(found.items()))


def load_snapshots(run: str | os.PathLike[str]) -> Iterator[tuple[int, Checkpoint]]:
    """Yield each snapshot of a run with its step, in order, loaded when its turn comes.

    Args:
        run: The folder of the run.

    Raises:
        CheckpointError: While iterating, if a snapshot is damaged.
    """
    for step, path in list_snapshots(run).items():
        yield step, load_checkpoint(path)


def read_history(run: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the records of a run in the order of their steps; empty if it left none.

    Each holds at least `step`, `train_loss` and `validation_loss` (in nats per token), and `tokens_per_second`.

    Args:
        run: The folder of the run.

    Raises:
        CheckpointError: `file_damaged` if a line is no such record.
    """
    path = Path(run) / HISTORY_FILE
    if not path.is_file():
        return []
    records: list[dict[str, Any]] = []
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            record: object = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError(f"line {len(records) + 1} is no record")
            values = cast(dict[str, Any], record)
            numbers = [values.get(name) for name in ("train_loss", "validation_loss", "tokens_per_second")]
            if not is_whole(values.get("step")) or not all(map(is_number, numbers)):
                raise ValueError(f"line {len(records) + 1} lacks a number")
            records.append(values)
    except (OSError, ValueError) as error:
        damaged(path, error)
    return sorted(records, key=lambda record: record["step"])
