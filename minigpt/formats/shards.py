"""A model in several files, as Hugging Face writes a large one: an index says which file holds which parameter."""

from pathlib import Path
from typing import Any, cast

from minigpt.errors import CheckpointError
from minigpt.formats.containers import Held, held
from minigpt.formats.files import MOST_BYTES, check_size, damaged, named, read_json, readable_size
from minigpt.formats.stored import Stored

INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
"""Names of an index."""
MOST_SHARDS = 64


def index_of(path: Path) -> Path:
    """Return the index beside a file that is one of several, or the file itself."""
    for name in INDEXES:
        index = path.with_name(name)
        if path.name != name and index.is_file() and path.name in _files(index).values():
            return index
    return path


def held_in_shards(index: Path, most: int = MOST_BYTES) -> Held:
    """Return what the files of an index hold together.

    Args:
        index: The index.
        most: Most bytes that all files together may have.

    Raises:
        CheckpointError: `checkpoint_missing` if a file is not there, `file_too_large`, `file_damaged` if the files do
            not hold exactly what the index says; and as `held`.
    """
    files = _files(index)
    names = list(dict.fromkeys(files.values()))
    total = sum(check_size(index.with_name(name), most) for name in names)
    if total > most:
        raise CheckpointError("file_too_large", path=index, size=readable_size(total), most=readable_size(most))
    tensors: dict[str, Stored] = {}
    metadata = None
    for name in names:
        part = held(index.with_name(name), most)
        expected = {parameter for parameter, file in files.items() if file == name}
        if part.tensors.keys() != expected:
            others = named(sorted(part.tensors.keys() ^ expected))
            damaged(index, f"{name} holds other parameters than it says: {others}")
        tensors |= part.tensors
        metadata = None if part.metadata is None else dict[str, str]()
    return Held(tensors, {}, metadata)


def _files(index: Path) -> dict[str, str]:
    """Return the file that holds each parameter.

    Raises:
        CheckpointError: `file_damaged` if the index does not say so, or names a file that is not beside it.
    """
    entries: object = read_json(index).get("weight_map")
    if not isinstance(entries, dict) or not entries:
        damaged(index, "it has no weight_map")
    files = cast(dict[str, Any], entries)
    names = set(map(str, files.values()))
    if len(names) > MOST_SHARDS:
        damaged(index, f"it names more than {MOST_SHARDS} files")
    for name in names:
        if Path(name).name != name or name in ("", ".", "..") or "\\" in name:
            damaged(index, f"it names {name[:80]!r}, which is no file beside it")
    if not all(isinstance(name, str) for name in files.values()):
        damaged(index, "it names what is no file")
    return files
