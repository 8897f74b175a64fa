"""A tensor in a file: its type, its shape and its place. Its numbers are read when they are asked for, piece by piece.

So a model of n bytes is read with the memory of that model and one piece more, whatever else its file holds.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from minigpt.errors import CheckpointError
from minigpt.formats.files import OpenFile, damaged

PIECE = 2**18
"""Most numbers that are read at a time."""
MOST_DIMENSIONS = 8
"""Most dimensions of a tensor; parameters have up to two, masks four."""


class Storage(NamedTuple):
    """Where numbers of one type lie.

    Attributes:
        dtype: Their type.
        numbers: How many there are.
        file: The file that holds them.
        place: Returns the position of the first byte; may look at all of them first, to compare a checksum.
    """

    dtype: torch.dtype
    numbers: int
    file: OpenFile
    place: Callable[[], int]


class Stored(NamedTuple):
    """A tensor in a file: its storage and its place there, counted in numbers. Nothing of it is in memory."""

    storage: Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def dtype(self) -> torch.dtype:
        """Type of its numbers."""
        return self.storage.dtype

    @property
    def nbytes(self) -> int:
        """Bytes that its numbers take in the file."""
        return prod(self.size) * self.dtype.itemsize

    def check(self) -> None:
        """Refuse what cannot be read.

        Raises:
            ValueError: If it does not lie within its storage, or a number would stand for several.
        """
        numbers = (*self.size, *self.stride, self.offset)
        if len(self.size) > MOST_DIMENSIONS or not all(type(each) is int and 0 <= each < 2**48 for each in numbers):
            raise ValueError("a tensor in it has an impossible shape")
        if prod(self.size) and max(prod(self.size), self.offset + self._reach()) > self.storage.numbers:
            raise ValueError("a tensor in it is larger than its numbers")

    def _reach(self) -> int:
        """Return how many numbers lie from its first to its last."""
        return 1 + sum((size - 1) * stride for size, stride in zip(self.size, self.stride, strict=True))

    def rows(self, count: int) -> "Stored":
        """Return its first rows."""
        return self._replace(size=(count, *self.size[1:]))

    def pieces(self) -> Iterator[Tensor]:
        """Yield its numbers in order, flat, some at a time.

        Raises:
            ValueError: If the file is cut short, or has another checksum than it says.
        """
        count, bytes_each = prod(self.size), self.dtype.itemsize
        if not count:
            return
        start = self.storage.place() + self.offset * bytes_each
        if not self._in_order():
            content = self.storage.file.read(start, self._reach() * bytes_each)
            yield torch.frombuffer(content, dtype=self.dtype).as_strided(self.size, self.stride).flatten()
            return
        for first in range(0, count, PIECE):
            numbers = min(PIECE, count - first)
            content = self.storage.file.read(start + first * bytes_each, numbers * bytes_each)
            yield torch.frombuffer(content, dtype=self.dtype)

    def _in_order(self) -> bool:
        """Return whether its numbers lie one after another."""
        following = 1
        for size, stride in zip(reversed(self.size), reversed(self.stride), strict=True):
            if size != 1 and stride != following:
                return False
            following *= size
        return True

    def read(self, dtype: torch.dtype | None = None) -> Tensor:
        """Return the tensor.

        Args:
            dtype: The type to turn its numbers into; None for their own.

        Raises:
            ValueError: As `pieces`.
        """
        tensor = torch.empty(self.size, dtype=dtype or self.dtype)
        flat, first = tensor.view(-1), 0
        for piece in self.pieces():
            flat[first : first + len(piece)] = piece
            first += len(piece)
        return tensor

    def same_numbers(self, other: "Stored") -> bool:
        """Return whether another tensor has the same type, shape and numbers.

        Raises:
            ValueError: As `pieces`.
        """
        if (self.dtype, self.size) != (other.dtype, other.size):
            return False
        if self.storage is other.storage and self[1:] == other[1:]:
            return True
        both = zip(self.pieces(), other.pieces(), strict=False)
        return all(len(one) == len(two) and torch.equal(one, two) for one, two in both)


@contextmanager
def reading(name: str, stored: Stored) -> Generator[None, None, None]:
    """Raise the CheckpointError `file_damaged` if a tensor cannot be read."""
    try:
        yield
    except (ValueError, RuntimeError, LookupError, TypeError, OSError) as error:
        damaged(stored.storage.file.path, f"{name}: {error}")


def read_parameter(name: str, stored: Stored) -> Tensor:
    """Return a parameter as float32.

    Raises:
        CheckpointError: `file_damaged`, or `checkpoint_not_finite` if it holds NaN or what is no finite float32.
    """
    with reading(name, stored):
        tensor = stored.read(torch.float32)
    if not all(bool(piece.isfinite().all()) for piece in torch.split(tensor.view(-1), PIECE)):
        raise CheckpointError("checkpoint_not_finite", name=name, path=stored.storage.file.path)
    return tensor
