"""What an experiment keeps to be looked at: for each variant, the attention of one seed's model on one short text.

A picture is a small NPZ file beside the records. It holds the numbers of one forward pass and nothing that needs
unpickling; whatever comes out of a file is checked before it is used. Knows no page.
"""

import json
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from minigpt.analysis.patterns import trace
from minigpt.checkpoint import Checkpoint
from minigpt.config import ModelConfig
from minigpt.errors import ConfigError
from minigpt.experiments import Record, folder_of

MOST_TOKENS = 48
"""Tokens of a picture's text at most."""
MOST_BYTES = 16_000_000
"""Bytes that the arrays of one picture take at most."""
BROKEN_ZIP = (EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What reading an archive can raise besides."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """What one model did with the text of its experiment.

    Attributes:
        config: The model's architecture.
        ids: The text's tokens.
        tokens: The text of each.
        pattern: Attention weights, 0 to 1; each row (query) sums to 1 over its past, and is 0 in the future.
        logit_difference: Largest absolute difference of the logits to those of PyTorch's own attention.
        compared: At how many positions that was measured.
        row_sum_error: Largest distance of a row's sum from 1.
    """

    config: ModelConfig
    ids: list[int]
    tokens: list[str]
    pattern: Float[ndarray, "layer head query key"]
    logit_difference: float
    compared: int
    row_sum_error: float


def picture_path(folder: str | os.PathLike[str], variant: str) -> Path | None:
    """Return where the picture of a variant lies; None if its name is none for a file."""
    name = folder_of(variant)
    plain = name not in ("", ".", "..") and not set(name) & set("/\\:\0")
    return Path(folder) / f"{name}.npz" if plain else None


def save_pictures(folder: str | os.PathLike[str], records: Sequence[Record], models: Mapping[str, Checkpoint]) -> None:
    """Write what each model does with the beginning of its experiment's text.

    Args:
        folder: Where the records lie.
        records: What the runs came to; the text is the first `MOST_TOKENS` characters of their prompt.
        models: The model of one seed of each variant.
    """
    prompts = {record.variant: record.prompt for record in records}
    for variant, ckpt in models.items():
        path = picture_path(folder, variant)
        if path is None or variant not in prompts:
            continue
        traced = trace(ckpt, prompts[variant][:MOST_TOKENS])
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                allow_pickle=False,
                config=np.array(json.dumps(ckpt.config.to_dict())),
                ids=np.array(traced.ids, np.int64),
                tokens=np.array(traced.tokens, np.str_),
                pattern=traced.pattern.numpy(),
                logit_difference=np.array(traced.logit_difference),
                compared=np.array(traced.compared),
                row_sum_error=np.array(traced.row_sum_error),
            )


def read_picture(folder: str | os.PathLike[str], variant: str) -> Picture | None:
    """Return the picture of a variant; None if there is none.

    Raises:
        ConfigError: `experiment_damaged` if it cannot be read, or is none.
    """
    path = picture_path(folder, variant)
    if path is None or not path.is_file():
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
                raise ValueError("too large")
        with np.load(path, allow_pickle=False) as arrays:
            return _checked({name: arrays[name] for name in arrays.files})
    except (OSError, ValueError, LookupError, TypeError, AttributeError, *BROKEN_ZIP) as error:
        raise ConfigError("experiment_damaged", path=path) from error


def _checked(arrays: Mapping[str, ndarray]) -> Picture:
    """Return a picture, its parts fitting together.

    Raises:
        ValueError: If they do not, or a number is none.
        LookupError: If one is missing.
        TypeError: If one is of another kind.
    """
    config = ModelConfig.from_dict(cast(dict[str, Any], json.loads(str(arrays["config"]))))
    ids = [int(each) for each in arrays["ids"]]
    tokens = [str(each) for each in arrays["tokens"]]
    pattern = arrays["pattern"]
    shape = (config.n_layer, config.n_head, len(ids), len(ids))
    if pattern.shape != shape or pattern.dtype != np.float32 or len(tokens) != len(ids) or not ids:
        raise ValueError(f"expected float32 weights of the shape {shape}, got {pattern.dtype} {pattern.shape}")
    checks = [float(arrays["logit_difference"]), float(arrays["row_sum_error"])]
    if not (np.isfinite(checks).all() and np.isfinite(pattern).all() and pattern.min() >= 0 and pattern.max() <= 1.001):
        raise ValueError("expected weights from 0 to 1, and two differences")
    return Picture(
        config=config,
        ids=ids,
        tokens=tokens,
        pattern=np.minimum(pattern, 1),
        logit_difference=checks[0],
        compared=int(arrays["compared"]),
        row_sum_error=checks[1],
    )
