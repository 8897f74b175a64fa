"""Opening a file from a stranger: its size is looked at before its content, and nothing of it is run.

What a file may cost is bounded before it is read: its size, and how many values a text in it makes.
"""

import hashlib
import json
import os
import struct
import weakref
import zipfile
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, cast

from minigpt.errors import CheckpointError, MiniGPTError

MOST_BYTES = 4 * 2**30
"""Largest file with weights that is read, in bytes: 4 GiB."""
MOST_TEXT_BYTES = 32 * 2**20
"""Largest JSON, text or safetensors header that is read, in bytes: 32 MiB."""
MOST_PROGRAM_BYTES = 8 * 2**20
"""Longest pickle program that is followed, in bytes: 8 MiB."""
MOST_VALUES = 2_000_000
"""Most values in a JSON text; each takes some ten times the memory of its text."""
READ_AT_ONCE = 2**20
"""Bytes that are read at a time where a file is only looked through."""

DAMAGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
)
"""What reading nonsense can raise; where a file is decoded, all of it means that the file is damaged."""


def damaged(path: Path, reason: object) -> NoReturn:
    """Raise the CheckpointError `file_damaged`."""
    if isinstance(reason, MiniGPTError):
        raise CheckpointError("file_damaged", path=path, reason=reason)
    text = str(reason).strip() or type(reason).__name__
    raise CheckpointError("file_damaged", path=path, reason=text if text.endswith(".") else f"{text}.")


def named(names: Iterable[str], most: int = 40, longest: int = 120) -> str:
    """Return the first names for a message, each cut to `longest` characters, with an ellipsis where there are more."""
    first = list(islice(names, most + 1))
    shown = [name if len(name) <= longest else f"{name[:longest]}…" for name in first[:most]]
    return ", ".join([*shown, "…"] if len(first) > most else shown) or "–"


def check_size(path: Path, most: int, least: int = 1) -> int:
    """Return a file's size in bytes.

    Raises:
        CheckpointError: `checkpoint_missing`, `file_damaged` if it is empty and must not be, `file_too_large` if it has
            more than `most` bytes.
    """
    try:
        size = path.stat().st_size
    except (OSError, ValueError):
        raise CheckpointError("checkpoint_missing", path=path.parent, missing=path.name) from None
    if size < least:
        damaged(path, "it is empty")
    if size > most:
        raise CheckpointError("file_too_large", path=path, size=readable_size(size), most=readable_size(most))
    return size


def readable_size(size: int) -> str:
    """Return a size as people write it, such as `1.5 MB` (10⁶ bytes) or `1.5 kB` (10³ bytes)."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"


class OpenFile:
    """A file, open for as long as anything may be read from it, and read by places.

    It is not mapped into memory: a file that shrinks meanwhile is cut short, where a mapped one would end the program.
    A file that another takes the place of is read on as it was.

    Attributes:
        path: Where it was.
        size: Its size when it was opened, in bytes.
    """

    def __init__(self, path: Path, most: int = MOST_BYTES) -> None:
        """Open a file.

        Raises:
            CheckpointError: As `check_size`, and `file_damaged` if it cannot be opened.
        """
        check_size(path, most)
        try:
            file = path.open("rb", buffering=0)
        except OSError as error:
            damaged(path, error.strerror or error)
        weakref.finalize(self, file.close)
        self.path = path
        self.size = os.fstat(file.fileno()).st_size
        self._file = file

    def fileno(self) -> int:
        """Return the system's number of the file."""
        return self._file.fileno()

    def sha256(self) -> str:
        """Return the SHA-256 of its content, as hexadecimal digits."""
        digest = hashlib.sha256()
        for start in range(0, self.size, READ_AT_ONCE):
            digest.update(self.read(start, min(READ_AT_ONCE, self.size - start)))
        return digest.hexdigest()

    def read(self, start: int, count: int) -> bytearray:
        """Return bytes of the file.

        Raises:
            ValueError: If it ends before.
        """
        if start + count > self.size:
            raise ValueError("it is cut short")
        content = bytearray(count)
        rest = memoryview(content)
        self._file.seek(start)
        while rest:
            arrived = self._file.readinto(rest)
            if not arrived:
                raise ValueError("it is cut short")
            rest = rest[arrived:]
        return content


def read_bytes(path: Path, most: int = MOST_TEXT_BYTES) -> bytes:
    """Return the content of a small file.

    Raises:
        CheckpointError: As `check_size`, and `file_damaged` if it cannot be opened.
    """
    check_size(path, most)
    try:
        return path.read_bytes()
    except OSError as error:
        damaged(path, error.strerror or error)


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        CheckpointError: As `read_bytes`, and `checkpoint_not_json` if there is none.
    """
    return json_object(read_bytes(path), path)


def json_object(text: str | bytes, path: Path) -> dict[str, Any]:
    """Return the JSON object that a text holds.

    Raises:
        CheckpointError: `checkpoint_not_json` if there is none.
    """
    try:
        check_values(text)
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError("checkpoint_not_json", path=path, reason=f"{error}.") from error
    if not isinstance(value, dict):
        raise CheckpointError("checkpoint_not_json", path=path, reason=f"it holds a {type(value).__name__}.")
    return cast(dict[str, Any], value)


def check_values(text: str | bytes | bytearray) -> None:
    """Refuse a JSON text with more values than any model needs, before they are made.

    Raises:
        ValueError: If there may be more than `MOST_VALUES`.
    """
    marks = (",", "[", "{") if isinstance(text, str) else (b",", b"[", b"{")
    if sum(text.count(cast(Any, mark)) for mark in marks) > MOST_VALUES:
        raise ValueError(f"it holds more than {MOST_VALUES:,} values")
