"""Files that `torch.save` wrote: the zip archives of today and the pickles of before 1.6, read without unpickling.

Both hold a pickle that describes tensors, and their numbers beside it. The pickle is followed by `pickles.Machine`; the
numbers are looked at where they lie. In a zip archive every part has a checksum, and it is compared.
"""

import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import torch

from minigpt.errors import CheckpointError
from minigpt.formats.files import DAMAGE, MOST_PROGRAM_BYTES, READ_AT_ONCE, OpenFile, damaged
from minigpt.formats.pickles import LONGEST_NAME, Content, Machine, Named, Unmade, made_dict, made_set
from minigpt.formats.stored import Storage, Stored

ZIP_MAGIC, LEGACY_MAGIC = b"PK", 0x1950A86A20F9469CFC6C
STORAGES: Mapping[str, torch.dtype] = {
    "torch.FloatStorage": torch.float32,
    "torch.HalfStorage": torch.float16,
    "torch.BFloat16Storage": torch.bfloat16,
    "torch.DoubleStorage": torch.float64,
    "torch.LongStorage": torch.int64,
    "torch.IntStorage": torch.int32,
    "torch.ShortStorage": torch.int16,
    "torch.CharStorage": torch.int8,
    "torch.ByteStorage": torch.uint8,
    "torch.BoolStorage": torch.bool,
}
MENTIONED = frozenset({*STORAGES, *(str(dtype) for dtype in STORAGES.values())})
"""Names that a file may mention without being code: storages and number types."""
LOCAL_HEADER = 30
"""Bytes of a zip entry's own header before its name."""
MOST_LISTED_BYTES = 4 * 2**20
"""Longest list of parts that an archive may have at its end, in bytes: 4 MiB, some 40,000 parts."""


def read_torch_file(file: OpenFile) -> Any:  # noqa: ANN401 (whatever was saved)
    """Return what was saved as plain values, tensors as `Stored`.

    Raises:
        CheckpointError: `file_damaged`, `zip_bomb`, `whole_module` if a module instead of its parameters was saved, or
            `pickle_code` if the pickle asks for anything but tensors and plain values.
    """
    path = file.path
    try:
        saved = _read_zip(file) if file.read(0, min(2, file.size)).startswith(ZIP_MAGIC) else _read_legacy(file)
    except DAMAGE as error:
        damaged(path, error)
    if any(name.startswith("torch.nn.modules.") for name in saved.foreign):
        raise CheckpointError("whole_module", path=path, name=_whole(saved))
    if saved.foreign:
        raise CheckpointError("pickle_code", path=path, names=", ".join(saved.foreign[:8]))
    return saved.value


def _whole(saved: Content) -> str:
    """Return the name of the class whose object was saved."""
    values = [saved.value, *(cast(dict[Any, Any], saved.value).values() if isinstance(saved.value, dict) else ())]
    return next((value.made_by for value in values if isinstance(value, Unmade)), saved.foreign[0])


def _machine(storage: Callable[[Any], Storage]) -> Machine:
    calls: dict[str, Callable[..., Any]] = {
        "torch._utils._rebuild_tensor_v2": _rebuilt,
        "torch._utils._rebuild_parameter": _parameter,
        "collections.OrderedDict": made_dict,
        "torch.Size": tuple,
        "torch.device": _device,
        "builtins.set": made_set,
        "__builtin__.set": made_set,
    }
    return Machine(calls, MENTIONED, storage)


def _rebuilt(storage: object, offset: Any, size: object, stride: object, *_: object) -> Stored:  # noqa: ANN401
    """Return a tensor as the program describes it; `Stored.check` looks at its numbers."""
    if not isinstance(storage, Storage):
        raise TypeError("a tensor in it has no numbers")
    sizes, strides = (cast(tuple[Any, ...], each) if isinstance(each, tuple) else None for each in (size, stride))
    numbers = (offset, *(sizes or ()), *(strides or ()))
    if sizes is None or strides is None or len(sizes) != len(strides) or any(type(each) is not int for each in numbers):
        raise ValueError("a tensor in it has an impossible shape")
    return Stored(storage, offset, sizes, strides)


def _parameter(data: object, *_: object) -> object:
    return data


def _device(*name: object) -> str:
    return ":".join(map(key_of, name))


def _described(persistent: Any) -> tuple[torch.dtype, str, int]:  # noqa: ANN401 (whatever the program says)
    """Return type, key and count of a storage that a pickle refers to."""
    word, kind, key, _, count = persistent[:5]
    if word != "storage" or not isinstance(kind, Named) or type(count) is not int or not 0 <= count < 2**48:
        raise ValueError("the pickle in it refers to what is no storage")
    return STORAGES[str(kind)], key_of(key), count


def key_of(key: object) -> str:
    """Return the key of a storage, a number or a short text."""
    if not ((type(key) is int and 0 <= key < 2**64) or (isinstance(key, str) and len(key) <= LONGEST_NAME)):
        raise TypeError("a storage in it has no key")
    return str(key)


# --- zip archives -----------------------------------------------------------------------------------------------------


def _read_zip(file: OpenFile) -> Content:
    path = file.path
    with _Listing(os.dup(file.fileno())) as listing, zipfile.ZipFile(cast(Any, listing)) as archive:
        listed = archive.infolist()
    entries = {entry.filename: entry for entry in listed}
    if len(entries) != len(listed):
        raise ValueError("two parts of the archive have the same name")
    _check_entries(path, listed, file.size)
    described = [name for name in entries if name.count("/") == 1 and name.endswith("/data.pkl")]
    if len(described) != 1:
        raise CheckpointError("file_unrecognized", path=path)
    folder = described[0].removesuffix("data.pkl")
    compared: dict[str, int] = {}

    def place(name: str, size: int) -> int:
        if name not in compared:
            compared[name] = _compared(file, entries[name])
        if entries[name].file_size < size:
            raise ValueError(f"{name} is cut short")
        return compared[name]

    storages: dict[tuple[torch.dtype, str, int], Storage] = {}

    def storage(persistent: object) -> Storage:
        dtype, key, count = described_as = _described(persistent)
        if described_as not in storages:
            where = partial(place, f"{folder}data/{key}", count * dtype.itemsize)
            storages[described_as] = Storage(dtype, count, file, where)
        return storages[described_as]

    if f"{folder}byteorder" in entries and file.read(place(f"{folder}byteorder", 3), 3).startswith(b"big"):
        raise ValueError("its numbers are stored big end first")
    size = entries[described[0]].file_size
    if size > MOST_PROGRAM_BYTES:
        raise ValueError("the pickle in it is too long")
    return _machine(storage).run(BytesIO(file.read(place(described[0], size), size)))


class _Listing:
    """A file as `zipfile` wants it, from which no more than a list of parts is read."""

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "rb", buffering=0)
        self.seek, self.tell = self._file.seek, self._file.tell

    def __enter__(self) -> "_Listing":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, count: int = -1) -> bytes:
        left = max(0, os.fstat(self._file.fileno()).st_size - self._file.tell())
        count = left if count < 0 else min(count, left)
        if count > MOST_LISTED_BYTES:
            raise ValueError("its list of parts is too long")
        return self._file.read(count)


def _check_entries(path: Path, listed: list[zipfile.ZipInfo], length: int) -> None:
    """Refuse an archive that would grow when it is read: packed parts, or parts that overlap."""
    total = sum(entry.file_size for entry in listed)
    if any(entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size for entry in listed):
        raise CheckpointError("zip_bomb", path=path, size=total, held=length)
    if total + LOCAL_HEADER * len(listed) > length:
        raise CheckpointError("zip_bomb", path=path, size=total, held=length)


def _compared(file: OpenFile, entry: zipfile.ZipInfo) -> int:
    """Return where an entry's bytes begin, after comparing them with their checksum."""
    header = file.read(entry.header_offset, LOCAL_HEADER)
    if not header.startswith(b"PK\x03\x04"):
        raise ValueError(f"{entry.filename} does not begin where the archive says")
    start = entry.header_offset + LOCAL_HEADER + sum(struct.unpack("<HH", header[26:30]))
    checksum, end = 0, start + entry.file_size
    for first in range(start, end, READ_AT_ONCE):
        checksum = zlib.crc32(file.read(first, min(READ_AT_ONCE, end - first)), checksum)
    if checksum != entry.CRC:
        raise ValueError(f"{entry.filename} has another checksum")
    return start


# --- pickles of before 1.6 --------------------------------------------------------------------------------------------


def _read_legacy(file: OpenFile) -> Content:
    """Read magic number, version, machine, the pickle, the keys of the storages; find where each storage begins."""
    programs = BytesIO(file.read(0, min(file.size, MOST_PROGRAM_BYTES)))
    if Machine().run(programs).value != LEGACY_MAGIC:
        raise ValueError("it is a pickle, but none that torch.save wrote")
    Machine().run(programs)
    Machine().run(programs)
    places: dict[str, int] = {}
    storages: dict[str, Storage] = {}

    def storage(persistent: Any) -> Storage:  # noqa: ANN401 (whatever the program says)
        dtype, key, count = _described(persistent)
        if len(persistent) > 5 and persistent[5] is not None:
            raise ValueError("it holds a view of a storage, as PyTorch 0.x wrote it")
        known = storages.setdefault(key, Storage(dtype, count, file, partial(places.__getitem__, key)))
        if (known.dtype, known.numbers) != (dtype, count):
            raise ValueError("it describes a storage in two ways")
        return known

    saved = _machine(storage).run(programs)
    if saved.foreign:
        return saved
    keys: object = Machine().run(programs).value
    start = programs.tell()
    for key in map(key_of, cast(list[object], keys)):
        held = int.from_bytes(file.read(start, 8), "little")
        start += 8
        size = storages[key].numbers * storages[key].dtype.itemsize
        if start + size > file.size or held != storages[key].numbers:
            raise ValueError("its numbers are cut short")
        places[key] = start
        start += size
    if storages.keys() - places.keys():
        raise ValueError("its numbers are cut short")
    return saved
