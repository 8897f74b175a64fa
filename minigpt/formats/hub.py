"""Models on the Hugging Face Hub: what one consists of, how large it is, and its files, of harmless kinds only."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from minigpt.errors import CheckpointError
from minigpt.formats.files import MOST_BYTES, readable_size

SCHEME = "hf://"
WANTED = ("config.json", "tokenizer.json", "vocab.json", "merges.txt", "meta.json")
"""Files that are fetched where they are there, besides the parameters; nothing else ever is."""
WHOLE, INDEX, SHARD = "model.safetensors", "model.safetensors.index.json", r"model-\d{5}-of-\d{5}\.safetensors"
"""The parameters: in one file, or an index and the files that it names."""
DEFAULT_ENDPOINT = "https://huggingface.co"


@dataclass(frozen=True, kw_only=True)
class Remote:
    """A model on the Hub, before anything of it is fetched.

    Attributes:
        reference: What was asked for, such as `hf://user/name@revision`.
        name: `user/name`.
        revision: The commit that the reference means now.
        sizes: The files that would be fetched, with their sizes in bytes.
    """

    reference: str
    name: str
    revision: str
    sizes: Mapping[str, int]

    def described(self) -> str:
        """Return one line for people: every file with its size, and all of them together."""
        files = ", ".join(f"{name} {readable_size(size)}" for name, size in self.sizes.items())
        return f"{self.name} at {self.revision[:8]}: {files}; {readable_size(sum(self.sizes.values()))} in all"


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT


def look_up(reference: str, most: int = MOST_BYTES) -> Remote:
    """Return what a model on the Hub consists of. Nothing is fetched yet, and no token of the person's is sent.

    Args:
        reference: `hf://user/name`, or `hf://user/name@revision`.
        most: Most bytes that all files together may have.

    Raises:
        CheckpointError: `hub_name`, `hub_failed`, `hub_nothing`, or `file_too_large`.
    """
    from huggingface_hub import HfApi  # only who asks for the Hub waits for its client

    found = re.fullmatch(r"hf://([\w.-]+/[\w.-]+)(?:@([\w./-]+))?", reference, re.ASCII)
    if found is None or ".." in reference:
        raise CheckpointError("hub_name", reference=reference)
    name, revision = found[1], found[2]
    try:
        info = HfApi(endpoint=_endpoint(), token=False).model_info(name, revision=revision, files_metadata=True)
    except Exception as error:  # the client raises errors of several libraries
        raise CheckpointError("hub_failed", reference=reference, reason=_first_line(error)) from error
    there = {file.rfilename: file.size for file in info.siblings or []}
    shards = sorted(name for name in there if re.fullmatch(SHARD, name, re.ASCII))
    parameters = [WHOLE] if WHOLE in there or not shards else [INDEX, *shards]
    sizes = {name: size for name in (*WANTED, *parameters) if (size := there.get(name)) is not None}
    if not sizes.keys() >= set(parameters):
        raise CheckpointError("hub_nothing", reference=reference)
    if not re.fullmatch(r"[0-9a-f]{40}", info.sha or ""):
        raise CheckpointError("hub_failed", reference=reference, reason="the answer names no commit.")
    total = sum(sizes.values())
    if total > most:
        raise CheckpointError("file_too_large", path=reference, size=readable_size(total), most=readable_size(most))
    return Remote(reference=reference, name=name, revision=cast(str, info.sha), sizes=sizes)


def fetch(remote: Remote) -> Path:
    """Fetch the files of a model into the Hub's cache on this machine, and return their folder.

    Raises:
        CheckpointError: `hub_failed` if one does not come, or is not as large as was said.
    """
    import huggingface_hub

    folder = Path()
    for name, size in remote.sizes.items():
        try:
            download: Any = cast(Any, huggingface_hub).hf_hub_download  # its types are known in part only
            file: str = download(remote.name, name, revision=remote.revision, endpoint=_endpoint(), token=False)
        except Exception as error:  # the client raises errors of several libraries
            raise CheckpointError("hub_failed", reference=remote.reference, reason=_first_line(error)) from error
        folder = Path(file).parent
        if folder.name != remote.revision:
            reason = f"{name} came from another commit than was asked for."
            raise CheckpointError("hub_failed", reference=remote.reference, reason=reason)
        if Path(file).stat().st_size != size:
            reason = f"{name} has another size than the Hub said."
            raise CheckpointError("hub_failed", reference=remote.reference, reason=reason)
    return folder


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{lines[0].rstrip('.') if lines else type(error).__name__}."
