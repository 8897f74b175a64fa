"""Training from the page: one run at a time, in a process of its own, in a folder among the models.

The process is `python -m minigpt train`, which tells of each step through a pipe. When the app ends, nobody reads the
pipe any more, and the run stops, saved; so whatever happens, what can be gone on with lies in the run's folder:

- `text.txt`: the training text;
- `page-run.json`: preset and steps, as they were asked for;
- what training itself writes: the checkpoint, its history, its snapshots, the state to resume from.

A folder with a `page-run.json` whose history is shorter than its steps is a run that was stopped.
"""

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, cast

import minigpt
from minigpt.checkpoint import CONFIG, load_checkpoint
from minigpt.config import is_whole
from minigpt.errors import CheckpointError, ConfigError, MiniGPTError, wrong_type
from minigpt.generation import generate
from minigpt.presets import PRESETS
from minigpt.snapshots import HISTORY_FILE, list_snapshots, read_history
from minigpt.training import STATE_FILE
from minigpt.ui.models import Models, Recent
from minigpt.ui.new_run import MOST_BYTES, MOST_CHARACTERS, MOST_STEPS, OFFERED, NewRun, checked, offered, settings_of

RUN_FILE = "page-run.json"
TEXT_FILE = "text.txt"
MOST_POINTS = 200
"""Most points of the curve of batch losses; each is the mean over a stretch of steps."""
SAMPLE_START, SAMPLE_TOKENS, SAMPLE_TEMPERATURE, SAMPLE_SEED = 16, 160, 0.8, 1
"""Characters of the training text that a sample begins with, and how it goes on, the same at every step."""
LONGEST_REASON = 400
STOPPED = 130
"""Exit status of a run that was asked to stop and is saved."""

Status = Literal["starting", "training", "measuring", "stopping", "stopped", "finished", "failed"]
ENDED: tuple[Status, ...] = ("stopped", "finished", "failed")


@dataclass(kw_only=True)
class _Run:
    """A run: what was asked for, and what its process has told since it was started or gone on with.

    Attributes:
        start: What its text begins with.
        saved: Steps that had been taken when it was started or gone on with.
        last: The record of the last step since.
        losses: Step and loss of its batch, in nats per token, since then.
        estimates: Step, loss on the training split and on the validation split, in nats per token.
    """

    name: str
    preset: str
    steps: int
    start: str
    status: Status = "starting"
    reason: str = ""
    saved: int = 0
    last: dict[str, Any] = field(default_factory=dict[str, Any])
    losses: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    estimates: list[tuple[int, float, float]] = field(default_factory=list[tuple[int, float, float]])
    process: "subprocess.Popen[str] | None" = None
    reader: threading.Thread | None = None

    @property
    def step(self) -> int:
        """Steps taken so far."""
        return self.last.get("step", self.saved)

    def hear(self, record: dict[str, Any]) -> None:
        """Take what is known after a step."""
        self.last = record
        if record["loss"] is not None:
            self.losses.append((record["step"], record["loss"]))
        if record["train_loss"] is not None:
            self.estimates.append((record["step"], record["train_loss"], record["validation_loss"]))
        if self.status != "stopping":
            self.status = "measuring" if record["step"] == self.steps else "training"


class Trainer:
    """The training runs of one folder of models, of which one at a time is under way.

    Args:
        models: Where the runs lie, and appear as models.
        threads: Processor threads of a run; by default all but one, so that the page still answers.
    """

    def __init__(self, models: Models, threads: int | None = None) -> None:
        self.folder = models.folder.resolve()
        self._threads = threads or max(1, (os.cpu_count() or 1) - 1)
        self._lock = threading.RLock()
        self._run: _Run | None = None
        self._samples = Recent[dict[str, Any] | None](1)

    # --- what the page asks for ---------------------------------------------------------------------------------------

    def act(self, act: object, given: object) -> dict[str, Any]:
        """Do what a browser asks for, and return how things stand then.

        Args:
            act: `"state"`, `"start"`, `"stop"` or `"resume"`.
            given: For `"start"` what `checked` reads, for `"resume"` the name of a run.

        Raises:
            MiniGPTError: As `start` and `resume`; `wrong_type` for anything else.
        """
        if act == "start":
            self.start(given)
        elif act == "resume":
            self.resume(given)
        elif act == "stop":
            self.stop()
        elif act != "state":
            raise wrong_type("act", act, "state, start, stop, resume")
        return self.state()

    def start(self, given: object) -> None:
        """Start a run in a new folder.

        Args:
            given: `name`, `preset`, `steps` and `text` by name, from the browser.

        Raises:
            ConfigError: `train_busy` if a run is under way, `train_not_started` if the disk or the system refuses.
            MiniGPTError: As `checked`.
        """
        with self._lock:
            self._check_idle()
            new = checked(given, self.folder)
            folder = self.folder / new.name
            try:
                folder.mkdir(parents=True)
            except OSError as error:
                raise _not_started(new.name, error) from error
            try:
                _write(folder, new)
                self._launch(_Run(name=new.name, preset=new.preset, steps=new.steps, start=new.text[:SAMPLE_START]))
            except OSError as error:
                shutil.rmtree(folder, ignore_errors=True)
                raise _not_started(new.name, error) from error

    def resume(self, name: object) -> None:
        """Go on with a run that was stopped.

        Raises:
            ConfigError: `train_busy`, `train_not_stopped` if there is no such run, `train_not_started`.
            CheckpointError: If its history is damaged.
        """
        with self._lock:
            self._check_idle()
            found = next((run for run in self._stopped() if run.name == name), None)
            if found is None:
                raise ConfigError("train_not_stopped", name=repr(name)[:80])
            try:
                self._launch(found)
            except OSError as error:
                raise _not_started(found.name, error) from error

    def stop(self) -> None:
        """Ask the run to end after its step, saved; nothing happens if none is under way."""
        with self._lock:
            run = self._run
            if run is not None and run.process is not None and run.status not in ENDED:
                run.status = "stopping"
                run.process.terminate()

    def end(self) -> None:
        """Stop, and wait until the run has ended."""
        self.stop()
        if self._run is not None and self._run.reader is not None:
            self._run.reader.join()

    def state(self) -> dict[str, Any]:
        """Return how things stand, as plain values.

        Returns:
            `presets` and `limits`, for the form; `folder`; `run`, the last run of this process, or None; `stopped`, by
            name, step and steps, the runs that can be gone on with.
        """
        with self._lock:
            run = self._run
            under_way = run is not None and run.status not in ENDED
            stopped = [] if under_way else self._stopped()
        return {
            "presets": offered(),
            "limits": {"bytes": MOST_BYTES, "characters": MOST_CHARACTERS, "steps": MOST_STEPS},
            "folder": str(self.folder),
            "run": None if run is None else self._told(run),
            "stopped": [{"name": each.name, "step": each.step, "steps": each.steps} for each in stopped],
        }

    # --- the process --------------------------------------------------------------------------------------------------

    def _check_idle(self) -> None:
        if self._run is not None and self._run.status not in ENDED:
            raise ConfigError("train_busy", name=self._run.name)

    def _launch(self, run: _Run) -> None:
        """Start the process of a run, and the thread that listens to it.

        Raises:
            OSError: If the system refuses.
        """
        package = str(Path(minigpt.__file__).resolve().parents[1])
        paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        complaints = tempfile.TemporaryFile()  # noqa: SIM115 (the thread closes it)
        run.process = subprocess.Popen(  # noqa: S603 (the name is checked, everything else is ours)
            # -P: nothing that lies among the models is imported.
            [sys.executable, "-P", "-m", "minigpt", *self._arguments(run)],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            encoding="utf-8",
        )
        run.status, run.reason = "starting", ""
        run.reader = threading.Thread(target=self._listen, args=(run, run.process, complaints), daemon=True)
        self._run = run
        run.reader.start()

    def _arguments(self, run: _Run) -> list[str]:
        common = ["--corpus", f"{run.name}/{TEXT_FILE}", "--out", run.name, "--threads", str(self._threads)]
        common.append("--records")
        if (self.folder / run.name / STATE_FILE).is_file():
            return ["train", "--resume", *common]
        settings = settings_of(PRESETS[run.preset], run.steps)
        options: list[str] = []
        for name in ("steps", "snapshots", "save_every", "evaluate_batches"):
            options += [f"--{name.replace('_', '-')}", str(getattr(settings, name))]
        return ["train", "--preset", run.preset, *options, *common]

    def _listen(self, run: _Run, process: "subprocess.Popen[str]", complaints: IO[bytes]) -> None:
        """Take what the process tells until it ends, and then say how it ended."""
        with process, complaints:
            for line in cast(IO[str], process.stdout):
                # The last line of a killed process may be half a one.
                with suppress(ValueError, LookupError, TypeError), self._lock:
                    run.hear(json.loads(line))
            code = process.wait()
            complaints.seek(max(0, complaints.seek(0, os.SEEK_END) - LONGEST_REASON))
            said = complaints.read().decode("utf-8", "replace").strip().splitlines()
        with self._lock:
            if code == 0 or run.step >= run.steps:
                run.status = "finished"
            elif run.status == "stopping" or code == STOPPED:
                run.status = "stopped"
            else:
                run.status = "failed"
                run.reason = said[-1].removeprefix("minigpt: ") if said and code == 1 else f"exit status {code}"

    # --- what lies in the folders -------------------------------------------------------------------------------------

    def _stopped(self) -> list[_Run]:
        """Return the runs that were started on the page and have not taken all their steps, the newest first."""
        found: list[tuple[float, _Run]] = []
        for path in self.folder.glob(f"*/{RUN_FILE}"):
            with suppress(
                OSError, ValueError, LookupError, TypeError, AttributeError, CheckpointError
            ):  # not one of ours
                asked: object = json.loads(path.read_text(encoding="utf-8"))
                preset, steps = (cast(dict[str, object], asked).get(name) for name in ("preset", "steps"))
                if preset in OFFERED and is_whole(steps) and (path.parent / TEXT_FILE).is_file():
                    run = _Run(name=path.parent.name, preset=str(preset), steps=steps, start=_start(path.parent))
                    run.saved = _saved_step(path.parent)
                    run.estimates = [
                        (each["step"], each["train_loss"], each["validation_loss"])
                        for each in read_history(path.parent)
                    ]
                    run.status = "stopped"
                    if run.step < run.steps:
                        found.append((path.stat().st_mtime, run))
        return [run for _, run in sorted(found, key=lambda pair: -pair[0])]

    def _told(self, run: _Run) -> dict[str, Any]:
        folder = self.folder / run.name
        is_listed = (folder / CONFIG).is_file() and (folder / HISTORY_FILE).is_file()
        with self._lock:
            estimates = list(zip(*run.estimates, strict=True)) or [(), (), ()]
            told = {
                "name": run.name,
                "preset": run.preset,
                "status": run.status,
                "reason": run.reason,
                "step": run.step,
                "steps": run.steps,
                "tokens_per_second": run.last.get("tokens_per_second"),
                "seconds_left": run.last.get("seconds_left"),
                "losses": thinned(run.losses, MOST_POINTS),
                "estimates": dict(zip(("step", "train", "validation"), estimates, strict=True)),
            }
        return {
            **told,
            "listed": is_listed,
            "snapshots": _saved_snapshots(folder) if is_listed else [],
            "sample": self._sample(run) if is_listed else None,
        }

    def _sample(self, run: _Run) -> dict[str, Any] | None:
        """Return what the newest checkpoint writes, and the step it is of; None if it is just being written."""
        folder = self.folder / run.name

        def made() -> dict[str, Any]:
            ckpt = load_checkpoint(folder)
            steps = generate(
                ckpt, run.start, max_new_tokens=SAMPLE_TOKENS, temperature=SAMPLE_TEMPERATURE, seed=SAMPLE_SEED
            )
            written = "".join(step.token for step in steps)
            return {"step": ckpt.training.get("steps", 0), "start": run.start, "written": written}

        try:
            return self._samples.get((folder, (folder / CONFIG).stat().st_mtime_ns), made)
        except (MiniGPTError, OSError):
            return None


def thinned(points: list[tuple[int, float]], most: int) -> dict[str, list[float]]:
    """Return a curve with few points: each the mean of a stretch of neighbours, at its last step.

    Args:
        points: Step and value.
        most: Largest number of points that are left.
    """
    stretch = max(1, math.ceil(len(points) / most))
    parts = [points[start : start + stretch] for start in range(0, len(points), stretch)]
    return {
        "step": [part[-1][0] for part in parts],
        "loss": [sum(value for _, value in part) / len(part) for part in parts],
    }


def _write(folder: Path, new: NewRun) -> None:
    asked: Mapping[str, object] = {"preset": new.preset, "steps": new.steps}
    (folder / TEXT_FILE).write_bytes(new.text.encode())
    (folder / RUN_FILE).write_text(json.dumps(asked), encoding="utf-8")


def _start(folder: Path) -> str:
    """Return the beginning of a run's text."""
    with (folder / TEXT_FILE).open(encoding="utf-8", newline="") as file:
        return file.read(SAMPLE_START)


def _saved_step(folder: Path) -> int:
    """Return how many steps the checkpoint of a run has seen; 0 if none is saved yet.

    Raises:
        ValueError: If what describes it is damaged.
    """
    if not (folder / CONFIG).is_file():
        return 0
    described: object = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    step: object = cast(dict[str, Any], described)["training"]["steps"] if isinstance(described, dict) else None
    if not is_whole(step):
        raise ValueError(f"{folder / CONFIG} does not say the steps of its training")
    return step


def _saved_snapshots(folder: Path) -> list[int]:
    """Return the steps of a run's snapshots that its history, which is saved a moment later, knows of as well."""
    try:
        saved = _saved_step(folder)
    except (OSError, ValueError, LookupError, TypeError):
        return []
    return [step for step in list_snapshots(folder) if step <= saved]


def _not_started(name: str, error: OSError) -> ConfigError:
    return ConfigError("train_not_started", name=name, reason=f"{error.strerror or error}.")
