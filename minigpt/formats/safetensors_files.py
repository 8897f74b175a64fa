"""Safetensors files: the header is checked against the file before a number is looked at; and how one is written.

The format is eight bytes with the length of the header, the header as JSON (for each tensor its type, shape, and where
its bytes lie), and the bytes.
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

import torch
from torch import Tensor

from minigpt.errors import CheckpointError
from minigpt.formats.files import MOST_TEXT_BYTES, OpenFile, check_values
from minigpt.formats.stored import MOST_DIMENSIONS, PIECE, Storage, Stored

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


class SafetensorsFile(NamedTuple):
    """What a file holds: tensors, none of them read yet, and what its writer noted, texts by name."""

    tensors: dict[str, Stored]
    metadata: dict[str, str]


def looks_like_safetensors(start: bytes) -> bool:
    """Return whether a file that begins with these bytes (9 or more) can be a safetensors file."""
    return len(start) > 8 and start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 2**40


def read_safetensors(file: OpenFile) -> SafetensorsFile:
    """Return the tensors and the metadata of a file.

    Raises:
        CheckpointError: `safetensors_header` if the header does not describe exactly what follows it.
    """
    path = file.path
    length = int.from_bytes(file.read(0, min(8, file.size)), "little")
    if file.size < 8 or length > min(file.size - 8, MOST_TEXT_BYTES):
        _lies(path, f"the header should have {length:,} bytes, the whole file has {file.size:,}.")
    start = 8 + length
    entries = _header(file.read(8, length), path)
    metadata: object = entries.pop("__metadata__", {})
    tensors: dict[str, Stored] = {}
    spans: list[tuple[int, int]] = []
    for name, entry in entries.items():
        dtype, shape, begin, end = _entry(name, entry, path)
        if end > file.size - start:
            _lies(path, f"{name} should end {end:,} bytes after the header, where the file has ended.")
        spans.append((begin, end))
        storage = Storage(dtype, prod(shape), file, partial(int, start + begin))
        strides = [prod(shape[dimension + 1 :]) for dimension in range(len(shape))]
        tensors[name] = Stored(storage, 0, tuple(shape), tuple(strides))
    _check_spans(path, sorted(spans), file.size - start)
    texts = cast(dict[Any, Any], metadata) if isinstance(metadata, dict) else {}
    return SafetensorsFile(tensors, {str(key): text for key, text in texts.items() if isinstance(text, str)})


def _header(text: bytearray, path: Path) -> dict[str, Any]:
    """Return the header, in which no name comes twice."""

    def named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) != len(pairs):
            raise ValueError("a name comes twice")
        return dict(pairs)

    try:
        check_values(text)
        header: object = json.loads(text, object_pairs_hook=named_once)
    except (ValueError, RecursionError) as error:
        _lies(path, f"the header is no JSON: {error}.")
    if not isinstance(header, dict):
        _lies(path, "the header is no JSON object.")
    return cast(dict[str, Any], header)


def _lies(path: Path, reason: str) -> NoReturn:
    raise CheckpointError("safetensors_header", path=path, reason=reason)


def _entry(name: str, entry: Any, path: Path) -> tuple[torch.dtype, list[int], int, int]:  # noqa: ANN401 (from JSON)
    """Return type, shape, begin and end of one tensor."""
    try:
        dtype, shape, (begin, end) = DTYPES[entry["dtype"]], list[Any](entry["shape"]), entry["data_offsets"]
    except (TypeError, ValueError, LookupError):
        _lies(path, f"what it says about {name} cannot be understood.")
    numbers = (*shape, begin, end)
    if len(shape) > MOST_DIMENSIONS or not all(type(number) is int and 0 <= number < 2**48 for number in numbers):
        _lies(path, f"what it says about {name} cannot be understood.")
    if prod(shape) * dtype.itemsize != end - begin:
        _lies(path, f"{name} has the shape {tuple(shape)}, for which its {end - begin:,} bytes are not right.")
    return dtype, shape, begin, end


def _check_spans(path: Path, spans: list[tuple[int, int]], length: int) -> None:
    """Refuse tensors that overlap, and bytes that belong to none."""
    reached = 0
    for begin, end in spans:
        if begin != reached:
            _lies(path, "its tensors overlap or leave gaps.")
        reached = end
    if reached != length:
        _lies(path, f"its tensors end after {reached:,} bytes, the file after {length:,}.")


def pieces_of(tensors: Mapping[str, Tensor], dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    """Yield the numbers of the tensors in order, flat, some at a time, with the name of the tensor."""
    for name, tensor in tensors.items():
        for piece in torch.split(tensor.detach().reshape(-1), PIECE):
            yield name, piece.to(device="cpu", dtype=dtype)


def written_header(
    tensors: Mapping[str, Tensor], dtype: torch.dtype, metadata: Mapping[str, str] | None = None
) -> bytes:
    """Return what a safetensors file begins with, before the numbers that `pieces_of` yields."""
    kind = next(name for name, each in DTYPES.items() if each is dtype)
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.numel() * dtype.itemsize
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
