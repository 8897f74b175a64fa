"""The probe's scores beside a checkpoint, so that nobody has to wait for them: `heads.json` in its folder.

The file names the weights that it was made from by their checksum; with other weights it says nothing.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from minigpt.analysis.frames import numbers
from minigpt.analysis.head_finder import PROBE_SHARES, HeadTable, probe_heads
from minigpt.checkpoint import Checkpoint
from minigpt.errors import CheckpointError

FILE = "heads.json"
FORMAT = {"format": "minigpt-heads", "version": 1}
MOST_BYTES = 2_000_000
SCORES = (*PROBE_SHARES, "entropy", "distance")


def write_table(ckpt: Checkpoint) -> Path:
    """Score a saved checkpoint on the standard probe and keep the table in its folder; return the file.

    Raises:
        PromptError: `probe_too_short`.
        CheckpointError: `checkpoint_missing` if it is no folder of this program, `checkpoint_not_saved` if the
            file cannot be written.
    """
    if ckpt.checksum is None:
        raise CheckpointError("checkpoint_missing", path=ckpt.path, missing="config.json")
    table = probe_heads(ckpt)
    kept = {
        **FORMAT,
        "weights": ckpt.checksum,
        "scores": _plain(table.scores),
        "untrained": _plain(table.baseline),
        "counted": table.counted,
    }
    path = ckpt.path / FILE
    try:
        path.write_text(json.dumps(kept, separators=(",", ":"), allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise CheckpointError("checkpoint_not_saved", path=path, reason=f"{error.strerror or error}.") from error
    return path


def read_table(ckpt: Checkpoint) -> HeadTable | None:
    """Return the table beside a checkpoint; None if there is none, or it is not one of these very weights."""
    path = ckpt.path / FILE
    if ckpt.checksum is None or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return None
    try:
        kept: object = json.loads(path.read_bytes())
        if not isinstance(kept, dict):
            return None
        fields = cast(Mapping[str, Any], kept)
        if fields["weights"] != ckpt.checksum or any(fields[name] != value for name, value in FORMAT.items()):
            return None
        shape = ckpt.config.n_layer, ckpt.config.n_head
        scores, baseline = (_tensors(fields[name], shape) for name in ("scores", "untrained"))
        counted = {name: int(fields["counted"][name]) for name in PROBE_SHARES}
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return HeadTable(source="probe", scores=scores, baseline=baseline, counted=counted)


def _plain(scores: Mapping[str, Tensor]) -> dict[str, list[list[float | None]]]:
    return {
        name: [[float(f"{value:.6g}") if math.isfinite(value) else None for value in numbers(row)] for row in values]
        for name, values in scores.items()
    }


def _tensors(kept: Mapping[str, Any], shape: tuple[int, int]) -> dict[str, Tensor]:
    """Return the scores that were kept.

    Raises:
        ValueError: If one has another shape.
    """
    found: dict[str, Tensor] = {}
    for name in SCORES:
        rows = [[math.nan if value is None else float(value) for value in row] for row in kept[name]]
        found[name] = torch.tensor(rows)
        if found[name].shape != shape:
            raise ValueError(f"expected {shape} values for {name}, got {tuple(found[name].shape)}")
    return found
