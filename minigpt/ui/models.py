"""The models that the page offers: the checkpoints of one folder, loaded when they are first looked at, and uploads."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Generic, TypeVar

from minigpt.checkpoint import Checkpoint, list_checkpoints, load_checkpoint
from minigpt.errors import CheckpointError
from minigpt.ui.uploads import Uploads, is_key

FOLDER_VARIABLE = "MINIGPT_CHECKPOINTS"
"""The environment variable that names the folder of checkpoints."""
KEPT = 3
"""Models kept in memory; the one looked at longest ago goes first."""

Stamp = tuple[str, tuple[tuple[str, int, int], ...]]
Value = TypeVar("Value")


def stamp_of(path: Path) -> Stamp:
    """Return what changes whenever a file of a folder is written anew: the names, sizes and times of all of them."""
    files = sorted(entry for entry in path.iterdir() if entry.is_file())
    return str(path), tuple((entry.name, (status := entry.stat()).st_size, status.st_mtime_ns) for entry in files)


class Recent(Generic[Value]):
    """What was made of some files, for as long as they stay the same.

    Args:
        most: How many values are kept; the one looked at longest ago goes first.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, stamp: Hashable, make: Callable[[], Value]) -> Value:
        """Return what is kept under a stamp, or make it; one at a time."""
        with self._lock:
            if stamp not in self._kept:
                self._kept[stamp] = make()
            self._kept.move_to_end(stamp)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return self._kept[stamp]


class Models:
    """The checkpoints of a folder, by the names of their folders.

    Loaded models are kept by the names, sizes and times of their files, so a checkpoint that was written anew is loaded
    anew, and nothing is remembered about who asked.

    Attributes:
        folder: Where the checkpoints are.
        uploads: The models that visitors brought, which only their keys lead to.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        """Take the folder given, else the one in MINIGPT_CHECKPOINTS, else `checkpoints` beside the package."""
        beside = Path(__file__).resolve().parents[2] / "checkpoints"
        self.folder = Path(folder or os.environ.get(FOLDER_VARIABLE) or beside)
        self.uploads = Uploads()
        self._kept = Recent[Checkpoint](KEPT)

    def names(self) -> list[str]:
        """Return the names of the checkpoints that are there now, in alphabetical order, the larger model's first."""
        return [path.name for path in list_checkpoints(self.folder)]

    def load(self, name: str | None) -> Checkpoint:
        """Return a checkpoint, from memory where its files have not changed.

        Args:
            name: One of `names()`, or the key of an upload; empty for the first.

        Raises:
            CheckpointError: `no_models`, `unknown_model` or `upload_gone`, or whatever is wrong with the files.
        """
        if name and is_key(name):
            return self.uploads.find(name).ckpt
        names = self.names()
        if not names:
            raise CheckpointError("no_models", folder=self.folder)
        name = name or names[0]
        if name not in names:
            raise CheckpointError("unknown_model", name=name, choices=", ".join(names))
        return self._kept.get(stamp_of(self.folder / name), lambda: load_checkpoint(self.folder / name))
