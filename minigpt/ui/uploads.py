"""Models that visitors bring: each belongs to one session, has a key that nobody can guess, and goes with the session.

Files lie in a private folder only while they are read, and nothing is ever written elsewhere. A model that says nothing
about its vocabulary waits there for the text that it was trained on. Knows nothing of the page.
"""

import re
import secrets
import shutil
import tempfile
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from minigpt.analysis.patterns import trace_ids
from minigpt.checkpoint import Checkpoint
from minigpt.config import Activation
from minigpt.errors import CheckpointError
from minigpt.exchange import UPLOAD_BYTES, open_upload, with_activation, with_vocabulary
from minigpt.formats.files import named, readable_size

PREFIX = "mine:"
"""What every key starts with; no folder of a checkpoint is called so."""
KEPT_PER_SESSION = 2
KEPT_IN_ALL = 8
PARAMETERS_IN_ALL = 600_000_000
"""Bounds of what is kept in memory; the model looked at longest ago goes first, the newest stays."""
WAITING_IN_ALL = 4
"""Models that wait for their vocabulary, at most one a session."""
IDLE_SECONDS = 3600
"""Time after which a model that nobody looks at is forgotten."""
COMPARED_TOKENS = 32
"""Tokens over which the logits of a new model are compared with those of PyTorch's own attention."""
LONGEST_NAME = 80


@dataclass(frozen=True, kw_only=True)
class Received:
    """A file as the web server put it down.

    Attributes:
        name: What the visitor calls it; it can be any text.
        path: Where it lies.
    """

    name: str
    path: Path


@dataclass(frozen=True, kw_only=True)
class Mine:
    """A visitor's model.

    Attributes:
        key: What the page calls it in its requests.
        name: What the visitor calls it.
        ckpt: The model; its path is the key.
        logit_difference: Largest absolute difference between its logits and those by `scaled_dot_product_attention`.
    """

    key: str
    name: str
    ckpt: Checkpoint
    logit_difference: float


@dataclass(kw_only=True)
class _Kept:
    session: str
    mine: Mine
    used: float


@dataclass(frozen=True, kw_only=True)
class _Waiting:
    folder: Path
    path: Path
    name: str
    since: float


@dataclass
class Uploads:
    """The models that visitors brought.

    Attributes:
        clock: Seconds that only grow.
    """

    clock: Callable[[], float] = time.monotonic
    _kept: OrderedDict[str, _Kept] = field(default_factory=OrderedDict[str, _Kept])
    _waiting: OrderedDict[str, _Waiting] = field(default_factory=OrderedDict[str, _Waiting])
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _root: str | None = None

    def open(self, session: str, files: Sequence[Received]) -> Mine:
        """Open a file, or the files of a folder, and keep the model for the session; the files are gone afterwards.

        Raises:
            CheckpointError: As `open_upload`. After `no_vocabulary` the files wait for `open_with`.
        """
        self._drop_waiting(session)
        folder = self._private_folder()
        waits = False
        try:
            path, name = _moved(files, folder)
            try:
                ckpt = open_upload(path)
            except CheckpointError as error:
                waits = error.code == "no_vocabulary"
                if waits:
                    self._wait(session, _Waiting(folder=folder, path=path, name=name, since=self.clock()))
                raise
        finally:
            if not waits:
                shutil.rmtree(folder, ignore_errors=True)
        return self._keep(session, name, ckpt)

    def open_with(self, session: str, text: str) -> Mine:
        """Open the model of the session that waits for its vocabulary, with the text that it was trained on.

        Raises:
            CheckpointError: As `with_vocabulary`, and the model goes on waiting; `upload_gone` if none waits.
        """
        self.tidy()
        with self._lock:
            waiting = self._waiting.get(session)
        if waiting is None:
            raise CheckpointError("upload_gone")
        ckpt = with_vocabulary(waiting.path, text)
        self._drop_waiting(session)
        return self._keep(session, waiting.name, ckpt)

    def choose_activation(self, session: str, key: str, activation: Activation) -> Mine:
        """Put a model of the session, whose activation was only assumed, in place of itself with another activation.

        Raises:
            CheckpointError: `upload_gone` if the session has no such model, else as `with_activation`.
        """
        mine = self.find(key)
        if mine not in self.of(session):
            raise CheckpointError("upload_gone")
        ckpt = with_activation(mine.ckpt, activation)
        with self._lock:
            self._kept.pop(key, None)
        return self._keep(session, mine.name, ckpt)

    def is_waiting(self, session: str) -> bool:
        """Return whether a model of the session waits for its vocabulary."""
        with self._lock:
            return session in self._waiting

    def find(self, key: str) -> Mine:
        """Return the model with a key.

        Raises:
            CheckpointError: `upload_gone` if it is not kept any more, or never was.
        """
        self.tidy()
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                raise CheckpointError("upload_gone")
            kept.used = self.clock()
            self._kept.move_to_end(key)
            return kept.mine

    def of(self, session: str) -> list[Mine]:
        """Return the models of a session."""
        with self._lock:
            return [kept.mine for kept in self._kept.values() if kept.session == session]

    def forget(self, session: str) -> None:
        """Forget all that a session brought."""
        self._drop_waiting(session)
        with self._lock:
            for key in [key for key, kept in self._kept.items() if kept.session == session]:
                del self._kept[key]

    def tidy(self) -> None:
        """Forget what nobody has looked at for long."""
        oldest = self.clock() - IDLE_SECONDS
        with self._lock:
            for key in [key for key, kept in self._kept.items() if kept.used < oldest]:
                del self._kept[key]
            for session in [session for session, waiting in self._waiting.items() if waiting.since < oldest]:
                self._drop_waiting(session)

    def _keep(self, session: str, name: str, ckpt: Checkpoint) -> Mine:
        config = ckpt.config
        ids = range(min(COMPARED_TOKENS, config.block_size, config.vocab_size))
        key = PREFIX + secrets.token_urlsafe(16)
        mine = Mine(
            key=key,
            name=name,
            ckpt=replace(ckpt, path=Path(key)),
            logit_difference=trace_ids(ckpt, list(ids)).logit_difference,
        )
        self.tidy()
        with self._lock:
            own = [other.key for other in self.of(session)]
            for dropped in own[: len(own) + 1 - KEPT_PER_SESSION]:
                del self._kept[dropped]
            self._kept[key] = _Kept(session=session, mine=mine, used=self.clock())
            while len(self._kept) > 1 and (len(self._kept) > KEPT_IN_ALL or self._parameters() > PARAMETERS_IN_ALL):
                self._kept.popitem(last=False)
        return mine

    def _parameters(self) -> int:
        return sum(kept.mine.ckpt.parameters for kept in self._kept.values())

    def _wait(self, session: str, waiting: _Waiting) -> None:
        with self._lock:
            self._waiting[session] = waiting
            while len(self._waiting) > WAITING_IN_ALL:
                self._drop_waiting(next(iter(self._waiting)))

    def _drop_waiting(self, session: str) -> None:
        with self._lock:
            waiting = self._waiting.pop(session, None)
        if waiting is not None:
            shutil.rmtree(waiting.folder, ignore_errors=True)

    def _private_folder(self) -> Path:
        """Return a new folder that only this process's user can enter; all of them go when the process ends."""
        with self._lock:
            if self._root is None:
                self._root = tempfile.mkdtemp(prefix="minigpt-")
                weakref.finalize(self, shutil.rmtree, self._root, ignore_errors=True)
        return Path(tempfile.mkdtemp(dir=self._root))


def is_key(name: object) -> bool:
    """Return whether a model's name is the key of a visitor's model."""
    return isinstance(name, str) and name.startswith(PREFIX)


def received(given: object, folder: Path | str) -> list[Received]:
    """Return the files that a request speaks of, which may say anything; those outside a folder are left out.

    Args:
        given: What the page's upload control sent: descriptions of files, one or a list.
        folder: Where the web server puts down what it receives.
    """
    described = cast(list[object], given) if isinstance(given, list) else [given]
    root = Path(folder).resolve()
    found: list[Received] = []
    for each in described:
        if not isinstance(each, dict):
            continue
        entry = cast(dict[str, Any], each)
        path = Path(str(entry.get("path") or root))
        if path.is_file() and path.resolve().is_relative_to(root):
            found.append(Received(name=str(entry.get("orig_name") or path.name), path=path.resolve()))
    return found


def discard(files: Sequence[Received]) -> None:
    """Delete files that were received, and the folders that held nothing else."""
    for file in files:
        with suppress(OSError):
            file.path.unlink(missing_ok=True)
            file.path.parent.rmdir()


def safe_name(name: str) -> str:
    """Return a file's name without its folders and without anything that a file system might take for more."""
    base = re.sub(r"[^\w.\- ()+=]", "_", re.split(r"[\\/]", name)[-1]).strip(" .")
    stem, dot, ending = base.rpartition(".")
    return f"{stem[:LONGEST_NAME]}{dot}{ending[:LONGEST_NAME]}" if base else "file"


def _check_sizes(files: Sequence[Received]) -> None:
    """Refuse more than the page opens, before anything of it is read."""
    size = sum(file.path.stat().st_size for file in files if file.path.is_file())
    if size > UPLOAD_BYTES:
        names, most = named(safe_name(file.name) for file in files), readable_size(UPLOAD_BYTES)
        raise CheckpointError("upload_too_large", names=names, size=readable_size(size), most=most)


def _moved(files: Sequence[Received], folder: Path) -> tuple[Path, str]:
    """Move files into a folder of their own; return the only one, or the folder of several, and the largest's name."""
    inside = folder / "upload"
    inside.mkdir()
    try:
        if not files:
            raise CheckpointError("file_damaged", path="–", reason="it did not arrive.")
        _check_sizes(files)
        for number, file in enumerate(files):
            name = safe_name(file.name)
            target = inside / name
            if target.exists():
                target = inside / f"{number}-{name}"
            try:
                shutil.move(file.path, target)
            except OSError as error:
                reason = f"{error.strerror or error}."
                raise CheckpointError("file_damaged", path=name, reason=reason) from error
    finally:
        discard(files)
    largest = max(inside.iterdir(), key=lambda path: path.stat().st_size)
    return (largest if len(files) == 1 else inside), largest.name
