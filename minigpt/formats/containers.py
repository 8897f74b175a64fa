"""What one file holds, whichever container it is: parameters, and what stands around them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from minigpt.errors import CheckpointError
from minigpt.formats.files import MOST_BYTES, OpenFile, named
from minigpt.formats.names import WEIGHTS_INSIDE
from minigpt.formats.safetensors_files import looks_like_safetensors, read_safetensors
from minigpt.formats.stored import Stored
from minigpt.formats.torch_files import ZIP_MAGIC, read_torch_file


class Held(NamedTuple):
    """What a file holds.

    Attributes:
        tensors: The parameters, by their names in the file; none is read yet.
        around: What else a file of `torch.save` holds, by name.
        metadata: Texts by name in a safetensors file; None for a file of `torch.save`.
    """

    tensors: dict[str, Stored]
    around: Mapping[str, Any]
    metadata: Mapping[str, str] | None


def held(path: Path, most: int = MOST_BYTES) -> Held:
    """Return what a file holds; its first bytes say which container it is.

    Raises:
        CheckpointError: `file_unrecognized`, or as `OpenFile`, `read_safetensors` and `read_torch_file`.
    """
    file = OpenFile(path, most)
    start = bytes(file.read(0, min(16, file.size)))
    if looks_like_safetensors(start):
        tensors, metadata = read_safetensors(file)
        return Held(tensors, {}, metadata)
    if start[:2] != ZIP_MAGIC and start[:1] != b"\x80":
        raise CheckpointError("file_unrecognized", path=path)
    saved = read_torch_file(file)
    if not isinstance(saved, dict):
        raise CheckpointError("unknown_parameters", path=path, names=f"{type(saved).__name__}")
    tensors, around = _parameters(cast(dict[Any, Any], saved), path)
    return Held(tensors, around, None)


def _parameters(saved: dict[Any, Any], path: Path) -> tuple[dict[str, Stored], dict[str, Any]]:
    """Return the parameters in what was saved, and the rest."""
    around = {key: value for key, value in saved.items() if isinstance(key, str)}
    inside: Any = saved
    for _ in range(3):
        found = next((inside[name] for name in WEIGHTS_INSIDE if isinstance(inside.get(name), dict)), None)
        if found is None:
            break
        inside = found
    tensors = {key: value for key, value in inside.items() if isinstance(key, str) and isinstance(value, Stored)}
    if not tensors:
        raise CheckpointError("unknown_parameters", path=path, names=named(map(repr, around)))
    odd = [repr(key) for key, value in inside.items() if not isinstance(value, Stored)]
    if inside is not saved and odd:
        raise CheckpointError("parameters_differ", path=path, missing="–", unexpected=named(odd))
    return tensors, around
