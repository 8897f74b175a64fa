"""Numbers as pandas tables, for those who have pandas; the package itself does not need it."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, cast

import torch
from torch import Tensor

from minigpt.errors import MiniGPTError


def frame(columns: Mapping[str, Sequence[Any]]) -> Any:  # noqa: ANN401 (pandas is not imported for a type)
    """Return a `pandas.DataFrame` of equally long columns.

    Raises:
        MiniGPTError: `pandas_missing` where pandas is not installed.
    """
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise MiniGPTError("pandas_missing") from None
    return pandas.DataFrame(dict(columns))


def cell_columns(**patterns: Tensor) -> dict[str, list[Any]]:
    """Return columns with one row for each cell that is not in the future: its indices, and its value in each pattern.

    Args:
        **patterns: By column name, all of one shape, whose last axes are query and key, and those before them layer and
            head where there are any.
    """
    shape = next(iter(patterns.values())).shape
    past = torch.ones(shape, dtype=torch.bool).tril()
    axes = ("layer", "head", "query", "key")[-len(shape) :]
    columns = {axis: numbers(index) for axis, index in zip(axes, past.nonzero(as_tuple=True), strict=True)}
    return columns | {name: numbers(pattern[past]) for name, pattern in patterns.items()}


def numbers(tensor: Tensor) -> list[Any]:
    """Return the tensor's entries as a flat list of ints or floats, the last axis running fastest."""
    return cast(list[Any], tensor.flatten().tolist())
