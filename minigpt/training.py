"""Train a model on a text: the loop, its schedule, what it saves, and how it goes on after it was ended.

`train` is a generator of progress records; the command line and the page draw from the same one. It writes into its
folder, each file replaced in one piece so that a kill at any moment leaves the previous one whole: the checkpoint
(`model.safetensors`, `config.json`), `training.jsonl` (the history, one record a line) and `training.pt` (everything
that the next step depends on: weights, optimizers, random numbers, running mean), and snapshots where asked for. A run
that goes on from `training.pt` ends, on a CPU, with exactly the numbers of the uninterrupted run.

Several processes that have joined a `torch.distributed` group share every batch out among themselves and average their
gradients, so they train the same model as one process does.

Knows nothing of downloads, presets or the screen. The file is a little long because a run and what it keeps to go on
are one thing.
"""

import copy
import hashlib
import io
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from minigpt.checkpoint import save_checkpoint
from minigpt.config import ModelConfig, TrainingConfig
from minigpt.errors import ConfigError
from minigpt.model import LanguageModel, MultiHeadAttention
from minigpt.recipe import learning_rate_scale, make_optimizers, product_type, repeat_some
from minigpt.snapshots import HISTORY_FILE, save_snapshot, snapshot_steps
from minigpt.splits import estimate_loss, get_batch, train_validation_split
from minigpt.tokenizer import Tokenizer

STATE_FILE = "training.pt"
STATE_VERSION = 1
MAY_CHANGE = ("steps", "evaluate_every", "evaluate_batches", "save_every", "snapshots", "stored_as", "device")


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What is known after a step.

    Attributes:
        step: Optimizer steps taken, 0 to `steps`.
        steps: Steps of the whole run.
        loss: Loss of the step's own batch (dropout on), in nats per token; NaN at step 0.
        learning_rate: AdamW's learning rate in the step.
        tokens_per_second: Speed since the last record that carries an estimate.
        seconds_left: Expected time to the end of the run, at the mean speed so far.
        train_loss: Estimated loss on the training split (dropout off), in nats per token; None between estimates.
        validation_loss: The same on the validation split.
        seconds: Time in steps so far, that before a resume as well.
    """

    step: int
    steps: int
    loss: float
    learning_rate: float
    tokens_per_second: float
    seconds_left: float
    train_loss: float | None = None
    validation_loss: float | None = None
    seconds: float = 0.0


def train(
    model: LanguageModel,
    tokenizer: Tokenizer,
    text: str,
    config: TrainingConfig,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    notes: Mapping[str, Any] | None = None,
) -> Iterator[Progress]:
    """Train the model in place and yield a record after every step, and one before the first.

    When the run has ended the model holds the weights that were saved (their running mean, if there is one). Closing
    the iterator early saves the state at once, where there is one process. PyTorch's global random numbers are seeded.

    Args:
        model: A model from `new_model`, or one to train further. With `resume`, its weights are replaced.
        tokenizer: Turns the text into ids; saved with the model.
        text: The training text; its last tenth is held out for validation.
        config: How to train.
        out: Folder for checkpoint, history and state; None writes nothing.
        resume: Go on from the state in `out`.
        notes: What the checkpoint should say of the training besides, such as the corpus; plain values.

    Raises:
        ConfigError: If there is nothing to resume, or what is there belongs to another run, is damaged, or has taken
            its steps; if there is a run already and it is not to be resumed; if the batch cannot be shared out over
            the processes; while iterating, if the loss is no number any more.
        CorpusError: If a split of the text is shorter than `block_size + 1` tokens.
        PromptError: If the tokenizer does not know a character of the text.
    """
    folder = None if out is None else Path(out)
    if not resume and folder is not None and (folder / STATE_FILE).exists():
        raise ConfigError("run_in_the_way", path=folder)
    run = _Run(model, tokenizer, text, config, folder)
    if resume:
        run.load()
    run.notes |= notes or {}
    return run.steps()


def saved_settings(out: str | Path) -> tuple[ModelConfig, TrainingConfig, dict[str, Any]]:
    """Return architecture, training configuration and notes of the run that can be resumed from a folder.

    Raises:
        ConfigError: If there is none or its state is damaged.
    """
    state = _read_state(Path(out))
    return (
        ModelConfig.from_dict(state["model_config"]),
        TrainingConfig.from_dict(state["training_config"]),
        state["notes"],
    )


class _Run:
    """One training run: what it needs for the next step, and how that is written down and read again."""

    def __init__(
        self, model: LanguageModel, tokenizer: Tokenizer, text: str, config: TrainingConfig, out: Path | None
    ) -> None:
        self.model, self.tokenizer, self.config, self.out = model.to(config.device), tokenizer, config, out
        self.rank, self.processes = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        if config.batch_size % self.processes:
            raise ConfigError("batch_does_not_divide", batch_size=config.batch_size, processes=self.processes)
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()
        ids = torch.tensor(tokenizer.encode(text), device=config.device)
        train_ids, validation_ids = train_validation_split(ids)
        self.splits = {"train": train_ids, "validation": validation_ids}
        for split in self.splits.values():
            get_batch(split, model.block_size, 1)
        if config.attention_dropout is not None:
            for module in model.modules():
                if isinstance(module, MultiHeadAttention):
                    module.dropout.p = config.attention_dropout
        self.optimizers, self.products = make_optimizers(model, config), product_type(config)
        for group in self._groups():
            group["peak"] = group["lr"]
        self.average = None if config.average_decay is None else copy.deepcopy(model).requires_grad_(False)
        self.batches = torch.Generator().manual_seed(config.seed)
        torch.manual_seed(config.seed + self.rank)
        self.step, self.seconds, self.history = 0, 0.0, list[dict[str, Any]]()
        self.notes: dict[str, Any] = {}

    def _groups(self) -> Iterator[dict[str, Any]]:
        for optimizer in self.optimizers:
            yield from optimizer.param_groups

    @property
    def evaluated(self) -> LanguageModel:
        """The model that is evaluated and saved: the running mean of the weights, if there is one."""
        return self.model if self.average is None else self.average

    def steps(self) -> Iterator[Progress]:
        """Take the steps that are left, yielding after each; save on the way, at the end and when closed."""
        saved, snapshots = self.step, snapshot_steps(self.config.steps, self.config.snapshots)
        try:
            if not self.history:
                self._keep(snapshots)
                record = self._record(math.nan, *self._estimate(), 0.0)
                if snapshots:  # so that the run can be looked at from its first step on
                    self.save()
                yield record
            tokens, since = 0, self.seconds
            while self.step < self.config.steps:
                started = time.perf_counter()
                loss = self._take_step()
                self.seconds += time.perf_counter() - started
                self._keep(snapshots)
                tokens += self.config.batch_size * self.model.block_size
                last = self.step == self.config.steps
                due = self.step % self.config.evaluate_every == 0 or self.step in snapshots or last
                losses = self._estimate() if due else (None, None)
                record = self._record(loss, *losses, tokens / (self.seconds - since))
                if losses[0] is not None:
                    tokens, since = 0, self.seconds
                if self.step % self.config.save_every == 0 or self.step in snapshots or last:
                    self.save()
                    saved = self.step
                yield record
        except GeneratorExit:
            if self.step != saved and self.processes == 1:
                self.save()
            raise
        if self.average is not None:
            self.model.load_state_dict(self.average.state_dict())
        self.model.eval()

    def _keep(self, snapshots: list[int]) -> None:
        """Keep a snapshot if one is due at this step; the first process does it for all."""
        if self.out is not None and not self.rank and self.step in snapshots:
            save_snapshot(self.out, self.step, self.evaluated, self.tokenizer)

    def _take_step(self) -> float:
        """Draw this process's share of a batch, and move the weights once down the mean gradient; return the loss."""
        config = self.config
        scale = learning_rate_scale(config, self.step)
        for group in self._groups():
            group["lr"] = group["peak"] * scale
        self.model.train()
        idx, targets = get_batch(self.splits["train"], self.model.block_size, config.batch_size, self.batches)
        if config.repeat_share and self.step >= config.repeat_from:
            idx, targets = repeat_some(idx, targets, round(config.repeat_share * config.batch_size), self.batches)
        share = config.batch_size // self.processes
        own = slice(self.rank * share, (self.rank + 1) * share)
        with torch.autocast(idx.device.type, self.products, enabled=self.products is not None):
            loss: Tensor = self.model(idx[own], targets[own])[1]
        loss.backward()
        loss = self._average_over_processes(loss.detach())
        if config.gradient_clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), config.gradient_clip)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        self.step += 1
        if self.average is not None and config.average_decay is not None:
            keep = min(config.average_decay, (1 + self.step) / (10 + self.step))
            for mean, weight in zip(self.average.parameters(), self.model.parameters(), strict=True):
                mean.lerp_(weight.detach(), 1 - keep)
        if not math.isfinite(value := loss.item()):
            raise ConfigError("training_diverged", step=self.step)
        return value

    def _average_over_processes(self, loss: Tensor) -> Tensor:
        """Give every process the mean of all gradients, and return the mean of all losses."""
        if self.processes == 1:
            return loss
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        flat = torch.cat([loss.view(1), *(gradient.flatten() for gradient in gradients)])
        dist.all_reduce(flat)
        flat /= self.processes
        start = 1
        for gradient in gradients:
            gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
            start += gradient.numel()
        return flat[0]

    def _estimate(self) -> tuple[float, float] | tuple[None, None]:
        if self.rank:
            return None, None
        generator = torch.Generator().manual_seed(self.config.seed + 1)
        losses = estimate_loss(
            self.evaluated, self.splits, self.config.batch_size, self.config.evaluate_batches, generator
        )
        return losses["train"], losses["validation"]

    def _record(
        self, loss: float, train_loss: float | None, validation_loss: float | None, tokens_per_second: float
    ) -> Progress:
        """Make the record of this step, and keep it if it holds an estimate."""
        record = Progress(
            step=self.step,
            steps=self.config.steps,
            loss=loss,
            learning_rate=self.config.learning_rate * learning_rate_scale(self.config, max(0, self.step - 1)),
            tokens_per_second=tokens_per_second,
            seconds_left=self.seconds / self.step * (self.config.steps - self.step) if self.step else math.nan,
            train_loss=train_loss,
            validation_loss=validation_loss,
            seconds=self.seconds,
        )
        if train_loss is not None:
            self.history.append(asdict(record))
        return record

    def save(self) -> None:
        """Write checkpoint, history and state; the first process writes for all."""
        random = [torch.get_rng_state()]
        if self.processes > 1:
            random = [torch.empty_like(random[0]) for _ in range(self.processes)]
            dist.all_gather(random, torch.get_rng_state())
        if self.out is None or self.rank:
            return
        self.out.mkdir(parents=True, exist_ok=True)
        state = {
            "version": STATE_VERSION,
            "step": self.step,
            "seconds": self.seconds,
            "history": self.history,
            "notes": self.notes,
            "fingerprint": self.fingerprint,
            "model_config": self.model.config.to_dict(),
            "training_config": self.config.to_dict(),
            "model": self.model.state_dict(),
            "average": None if self.average is None else self.average.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "batches": self.batches.get_state(),
            "random": random,
            "random_device": torch.cuda.get_rng_state_all() if self.config.device.startswith("cuda") else None,
        }
        buffer = io.BytesIO()
        torch.save(state, buffer)
        replace_file(self.out / STATE_FILE, buffer.getvalue())
        lines = (json.dumps(_finite(record)) + "\n" for record in self.history)
        replace_file(self.out / HISTORY_FILE, "".join(lines).encode())
        save_checkpoint(self.out, self.evaluated, self.tokenizer, training=self.summary(), dtype=self.config.stored_as)

    def summary(self) -> dict[str, Any]:
        """Return what `config.json` says of the training."""
        return {
            "steps": self.step,
            "seconds": round(self.seconds, 1),
            "tokens": self.step * self.config.batch_size * self.model.block_size,
            "text_sha256": self.fingerprint,
            "settings": self.config.to_dict(),
            **self.notes,
        }

    def load(self) -> None:
        """Go back to the saved state.

        Raises:
            ConfigError: If there is none, it cannot be read, or it belongs to another run.
        """
        path = Path() if self.out is None else self.out
        state = _read_state(path)
        self._check_same_run(state)
        try:
            self._restore(state)
        except (RuntimeError, ValueError, LookupError) as error:
            raise ConfigError("state_unreadable", path=path / STATE_FILE, reason=f"{error}.") from error
        if self.step >= self.config.steps:
            raise ConfigError("run_finished", path=path, steps=self.step)

    def _restore(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        peaks = [group["peak"] for group in self._groups()]
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        for group, peak in zip(self._groups(), peaks, strict=True):
            group["peak"] = peak
        self.batches.set_state(state["batches"])
        torch.set_rng_state(state["random"][self.rank])
        if state["random_device"] is not None and self.config.device.startswith("cuda"):
            torch.cuda.set_rng_state_all(state["random_device"])
        self.step, self.seconds = state["step"], state["seconds"]
        self.history, self.notes = state["history"], state["notes"]

    def _check_same_run(self, state: dict[str, Any]) -> None:
        """Raise ConfigError unless the saved state is of this very run, give or take `MAY_CHANGE`."""
        before, now = state["training_config"], self.config.to_dict()
        different = [name for name in now if name not in MAY_CHANGE and before.get(name) != now[name]]
        if state["model_config"] != self.model.config.to_dict():
            different.append("model")
        if state["fingerprint"] != self.fingerprint:
            different.append("corpus")
        if len(state["random"]) != self.processes:
            different.append("processes")
        old = TrainingConfig.from_dict(before)
        if any(
            learning_rate_scale(old, step) != learning_rate_scale(self.config, step) for step in range(state["step"])
        ):
            different.append("steps")
        if different:
            raise ConfigError("resume_differs", names=", ".join(different), path=str(self.out))


def _read_state(folder: Path) -> dict[str, Any]:
    """Read the state in a folder; nothing in the file is run.

    Raises:
        ConfigError: If there is none, or it is damaged or of another version.
    """
    path = folder / STATE_FILE
    if not path.is_file():
        raise ConfigError("nothing_to_resume", path=path)
    try:
        state: object = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError, LookupError, EOFError, UnpicklingError) as error:
        raise ConfigError("state_unreadable", path=path, reason=f"{type(error).__name__}.") from error
    if not isinstance(state, dict) or cast(dict[str, Any], state).get("version") != STATE_VERSION:
        raise ConfigError("state_unreadable", path=path, reason="It is of another kind or version.")
    return cast(dict[str, Any], state)


def _finite(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record with NaN as None: JSON has no NaN."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in record.items()
    }


def replace_file(path: Path, content: bytes) -> None:
    """Write a file in one piece: the old one stays whole until the new one is safely on disk."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
