"""The command line: train a model, let it write, and read what its heads look at.

Exit status: 0 done; 1 something a person can change, said in one sentence on the error stream; 2 wrong usage; 130
stopped by the person. Results go to the output stream, everything else to the error stream.

Imports what needs PyTorch only inside the commands, so that `--help` is quick.
"""

import argparse
import json
import math
import os
import shlex
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, cast, get_args, get_origin, get_type_hints

from minigpt.cli_compare import add_compare
from minigpt.cli_files import add_export, add_import
from minigpt.cli_models import add_generate, add_heads, add_trace
from minigpt.config import ModelConfig, TrainingConfig
from minigpt.errors import ConfigError, MiniGPTError
from minigpt.presets import PRESETS

if TYPE_CHECKING:
    from minigpt.corpus import Corpus

STOPPED = 130
DEFAULT_PRESET = "chapter"
DEFAULT_CORPUS = "tinyshakespeare"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    Args:
        arguments: What follows the program's name; the process's own arguments if None.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = build_parser().parse_args(given)
    try:
        return options.command(options, given)
    except MiniGPTError as error:
        print(f"minigpt: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return STOPPED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each stores its function as `command`."""
    parser = argparse.ArgumentParser(prog="minigpt", description="Train a small GPT and watch it pay attention.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_train(commands.add_parser("train", help="train a model on a text", formatter_class=_KeepLines))
    add_compare(commands.add_parser("compare", help="repeat an experiment of the chapters"))
    add_generate(commands.add_parser("generate", help="continue a prompt"))
    add_trace(commands.add_parser("trace", help="print or save what the heads look at"))
    add_heads(commands.add_parser("heads", help="score every head on the standard probe"))
    add_import(commands.add_parser("import", help="keep a model of another program as a checkpoint"))
    add_export(commands.add_parser("export", help="write a model for another program"))
    return parser


class _KeepLines(argparse.RawDescriptionHelpFormatter):
    """Help that keeps the line breaks of the description."""


# --- train ------------------------------------------------------------------------------------------------------------


def _add_train(parser: argparse.ArgumentParser) -> None:
    presets = "\n".join(f"  {preset.name}: {preset.purpose}" for preset in PRESETS.values())
    parser.description = (
        "Train a model on a text; the last tenth of the text is held out to measure it.\n\n"
        f"Presets:\n{presets}\n\nEvery setting below overrides the preset's."
    )
    parser.add_argument("--preset", choices=list(PRESETS), help=f"named settings (default: {DEFAULT_PRESET})")
    parser.add_argument("--corpus", help=f"name of a corpus, or a UTF-8 text file (default: {DEFAULT_CORPUS})")
    parser.add_argument("--out", type=Path, help="folder for the checkpoint (default: runs/PRESET)")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out, with its own settings")
    parser.add_argument("--threads", type=_positive, help="processor threads of a process (default: PyTorch's choice)")
    parser.add_argument("--processes", type=_positive, default=1, help="processes that share every batch (default: 1)")
    parser.add_argument(
        "--records",
        action="store_true",
        help="write what is known after each step to the output stream, as a line of JSON; the run stops, saved, when "
        "nobody reads it any more",
    )
    _add_settings(parser.add_argument_group("model"), ModelConfig, leave_out=("vocab_size",))
    _add_settings(parser.add_argument_group("training"), TrainingConfig)
    parser.set_defaults(command=_train)


def _add_settings(group: Any, config: type[Any], leave_out: tuple[str, ...] = ()) -> None:  # noqa: ANN401 (private type)
    """Add an option for each field of a configuration; its help is the field's line in the class's docstring."""
    types, documented = get_type_hints(config), _documented(config)
    for name in (field.name for field in fields(config) if field.name not in leave_out):
        kind = types[name]
        how: dict[str, Any] = {"type": kind}
        if get_origin(kind) is Literal:
            how = {"choices": get_args(kind)}
        elif kind is bool:
            how = {"action": argparse.BooleanOptionalAction}
        elif get_origin(kind) is tuple:
            how = {"type": float, "nargs": 2}
        elif type(None) in get_args(kind):
            how = {"type": _number_or_none}
        flags = dict.fromkeys((f"--{name.replace('_', '-')}", f"--{name}"))
        group.add_argument(*flags, dest=name, default=argparse.SUPPRESS, help=documented[name], **how)


def _documented(config: type[Any]) -> dict[str, str]:
    """Return what the docstring's section `Attributes` says of each field."""
    described: dict[str, str] = {}
    name = ""
    for line in (config.__doc__ or "").partition("Attributes:\n")[2].splitlines():
        if line.startswith(" " * 8) and not line.startswith(" " * 9):
            name, _, described[name.strip()] = line.strip().partition(": ")
        elif line.strip():
            described[name] += f" {line.strip()}"
    return {name: text.replace("`", "").replace("%", "%%") for name, text in described.items()}


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def _number_or_none(text: str) -> float | None:
    return None if text.lower() == "none" else float(text)


def _train(options: argparse.Namespace, given: list[str]) -> int:
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # on a busy machine, threads that spin cost more than half
    joined = "RANK" in os.environ
    if options.processes > 1 and not joined:
        _, _, training, _, _ = _plan(options, given)
        if training.batch_size % options.processes:
            raise ConfigError("batch_does_not_divide", batch_size=training.batch_size, processes=options.processes)
        return _train_in_processes(options, given)
    if joined:
        import torch.distributed as dist

        dist.init_process_group()
    return _train_here(options, given)


def _plan(
    options: argparse.Namespace, given: list[str]
) -> tuple["Corpus", Mapping[str, Any], TrainingConfig, dict[str, Any], Path]:
    """Return corpus, the model's settings, the training configuration, notes, and the folder of the run.

    A run that is resumed brings its own; otherwise they are the preset's. Options on the command line override either.
    """
    from minigpt.corpus import load_corpus
    from minigpt.training import saved_settings

    preset = PRESETS[options.preset or DEFAULT_PRESET]
    out: Path = options.out or Path("runs") / preset.name
    notes = {
        "corpus": DEFAULT_CORPUS,
        "preset": preset.name,
        "command": shlex.join(["python", "-m", "minigpt", *given]),
    }
    model, training = dict(preset.model), preset.training
    if options.resume:
        saved, training, notes = saved_settings(out)
        model = {name: value for name, value in saved.to_dict().items() if name != "vocab_size"}
    notes["corpus"] = options.corpus or notes["corpus"]
    chosen = vars(options)
    model |= {field.name: chosen[field.name] for field in fields(ModelConfig) if field.name in chosen}
    changes = {field.name: chosen[field.name] for field in fields(TrainingConfig) if field.name in chosen}
    if "betas" in changes:
        changes["betas"] = tuple(changes["betas"])
    training = replace(training, **changes)
    with _bytes_bar() as bar:
        corpus = load_corpus(notes["corpus"], bar.update)
    return corpus, model, training, notes, out


def _bytes_bar() -> Any:  # noqa: ANN401 (tqdm ships no types)
    from tqdm import tqdm

    return tqdm(desc="download", unit="B", unit_scale=True, leave=False, delay=1)


def _train_here(options: argparse.Namespace, given: list[str]) -> int:
    """Train in this process: alone, or as one of several that have joined."""
    import torch
    import torch.distributed as dist

    from minigpt.recipe import new_model
    from minigpt.tokenizer import CharTokenizer
    from minigpt.training import train

    if options.threads:
        torch.set_num_threads(options.threads)
    first = not dist.is_initialized() or dist.get_rank() == 0
    corpus, settings, training, notes, out = _plan(options, given)
    _check_device(training.device)
    tokenizer = CharTokenizer(corpus.text)
    model = new_model(ModelConfig(vocab_size=tokenizer.vocab_size, **settings), training)
    if first:
        count = sum(parameter.numel() for parameter in model.parameters())
        _say(f"{corpus.name}: {len(corpus.text):,} characters, {tokenizer.vocab_size} different")
        _say(f"{model.config.kind}: {count:,} parameters; {training.steps:,} steps; writing to {out}")
    records = train(model, tokenizer, corpus.text, training, out=out, resume=options.resume, notes=notes)
    finished = _watch(records, training.steps, shown=first, told=first and options.records)
    if not finished:
        _say(f"stopped; go on with: python -m minigpt train --resume --out {shlex.quote(str(out))}")
        return STOPPED
    if first:
        _say(_finish(out, corpus, training))
    return 0


def _watch(records: Any, steps: int, *, shown: bool, told: bool) -> bool:  # noqa: ANN401 (a generator that is closed)
    """Draw the progress, and return whether the run came to its end rather than being asked to stop.

    Args:
        records: The run; whatever happens, it is closed, and with it saved.
        steps: Its steps.
        shown: Whether to draw at all.
        told: Whether to write each record to the output stream as well.
    """
    from tqdm import tqdm

    asked: list[int] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with tqdm(total=steps, unit="step", disable=not shown, dynamic_ncols=True) as bar:
            for record in records:
                bar.update(record.step - bar.n)
                if told:
                    print(_line(record), flush=True)
                if record.step:
                    speed = f"{record.tokens_per_second:,.0f} tokens/s"
                    bar.set_postfix_str(f"loss {record.loss:.3f}, {speed}", refresh=False)
                if record.train_loss is not None:
                    losses = f"train {record.train_loss:.4f}, validation {record.validation_loss:.4f}"
                    bar.write(f"step {record.step:>5}: {losses}", file=sys.stderr)
                if asked and record.step < steps:
                    return False
    finally:
        records.close()
        for number, handler in before.items():
            signal.signal(number, handler)
    return True


def _line(record: Any) -> str:  # noqa: ANN401 (a dataclass of a module with PyTorch)
    """Return a record as a line of JSON, which has no NaN."""
    values: dict[str, Any] = asdict(record)
    return json.dumps(
        {name: value if value is None or math.isfinite(value) else None for name, value in values.items()}
    )


def _finish(out: Path, corpus: "Corpus", training: TrainingConfig) -> str:
    """Measure the checkpoint as it lies in its folder, write its card, and return a sentence for people."""
    from minigpt.card import measured_card
    from minigpt.checkpoint import load_checkpoint, save_checkpoint

    ckpt = load_checkpoint(out)
    card, measured = measured_card(ckpt, corpus)
    summary = {**ckpt.training, **measured}
    save_checkpoint(out, ckpt.model, ckpt.tokenizer, card=card, training=summary, dtype=training.stored_as)
    return f"loss over the whole validation split, as saved in {out}: {measured['validation_loss']:.4f} nats per token"


def _check_device(device: str) -> None:
    """Raise ConfigError unless PyTorch can compute on the device."""
    import torch

    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError("device_missing", device=device) from error


def _train_in_processes(options: argparse.Namespace, given: list[str]) -> int:
    """Start the processes, wait for them, and pass on what the first one to fail had to say."""
    import torch.multiprocessing as mp
    from torch.multiprocessing.spawn import ProcessExitedException

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        sentence = Path(folder) / "sentence"
        try:
            cast(Any, mp).spawn(_process, (options.processes, port, given, sentence), nprocs=options.processes)
        except ProcessExitedException as error:
            if sentence.is_file():
                print(f"minigpt: {sentence.read_text(encoding='utf-8')}", file=sys.stderr)
                return 1
            if error.exit_code == STOPPED:
                return STOPPED
            raise ConfigError("process_lost", status=error.exit_code) from error
    return 0


def _process(rank: int, processes: int, port: int, given: list[str], sentence: Path) -> None:
    """Be one of several processes: join the others and train."""
    place = {"RANK": rank, "WORLD_SIZE": processes, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in place.items()})
    options = build_parser().parse_args(given)
    options.threads = options.threads or max(1, (os.cpu_count() or 1) // processes)
    try:
        status = _train(options, given)
    except MiniGPTError as error:
        sentence.write_text(str(error), encoding="utf-8")
        status = 1
    sys.exit(status)


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr)
