"""Numbers as pandas tables, for those who have pandas; the package itself does not need it."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, cast

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


def numbers(tensor: Tensor) -> list[Any]:
    """Return the tensor's entries as a flat list of ints or floats, the last axis running fastest."""
    return cast(list[Any], tensor.flatten().tolist())
