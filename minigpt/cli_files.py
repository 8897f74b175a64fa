"""The two commands that carry models in and out: `import` and `export`."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from minigpt.config import Activation
from minigpt.errors import CorpusError

if TYPE_CHECKING:
    from minigpt.checkpoint import Checkpoint

FORMATS = ("nanogpt", "gpt2", "safetensors")


def add_import(parser: argparse.ArgumentParser) -> None:
    """Describe `import`."""
    parser.description = (
        "Keep a model of another program as a checkpoint folder. SRC: a file of torch.save with the parameters of one "
        "of the chapters' models, of nanoGPT or of minGPT; a .safetensors file; a GPT-2 folder of Hugging Face; or "
        "hf://user/name, hf://user/name@revision. What it is shows its content. Nothing in it is ever run."
    )
    parser.add_argument("source", metavar="SRC", help="what to read")
    parser.add_argument("destination", metavar="DEST", help="the folder to write")
    add_unsaid(parser)
    parser.set_defaults(command=_import)


def add_unsaid(parser: argparse.ArgumentParser) -> None:
    """Give a parser the options that tell what a foreign model does not say itself."""
    group = parser.add_argument_group("a model of another program", "where its file does not say it itself")
    group.add_argument("--text", dest="training_text", type=Path, metavar="FILE", help="the text it was trained on")
    group.add_argument("--activation", choices=get_args(Activation), help="the non-linearity of its networks")
    group.add_argument("--heads", dest="n_head", type=int, metavar="N", help="the heads of each layer")


def unsaid(options: argparse.Namespace) -> dict[str, Any]:
    """Return what the options of `add_unsaid` tell, as keyword arguments of `load_checkpoint`.

    Raises:
        CorpusError: If the text cannot be read.
    """
    text = None if options.training_text is None else _read_text(options.training_text)
    return {"text": text, "activation": options.activation, "n_head": options.n_head}


def opened(path: str, options: argparse.Namespace) -> "Checkpoint":
    """Return the checkpoint that a command is about; what was only assumed of it goes to the error stream.

    Raises:
        CheckpointError: As `load_checkpoint`.
    """
    from minigpt.checkpoint import load_checkpoint

    told = unsaid(options)
    _say_size(path)
    ckpt = load_checkpoint(path, **told)
    _say_assumed(ckpt)
    return ckpt


def _say_size(source: str) -> None:
    """Say what of a model on the Hub is about to be fetched; nothing of any other."""
    from minigpt.formats.hub import SCHEME, look_up

    if source.startswith(SCHEME):
        print(look_up(source).described(), file=sys.stderr)


def _say_assumed(ckpt: "Checkpoint") -> None:
    if "activation" in ckpt.assumed:
        others = " or ".join(each for each in get_args(Activation) if each != ckpt.config.activation)
        print(
            f"activation: {ckpt.config.activation}, assumed; the file does not say. If the model was trained with "
            f"another, give it from the original file: --activation {others}",
            file=sys.stderr,
        )


def _import(options: argparse.Namespace, _given: list[str]) -> int:
    from minigpt.exchange import import_checkpoint

    told = unsaid(options)
    _say_size(options.source)
    ckpt = import_checkpoint(options.source, options.destination, **told)
    _say_assumed(ckpt)
    config = ckpt.config
    sizes = f"{config.n_layer} layers × {config.n_head} heads, window of {config.block_size} tokens"
    print(f"{options.destination}: {ckpt.parameters:,} parameters, {sizes}, {config.vocab_size} tokens")
    return 0


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise CorpusError("corpus_unreadable", path=path, reason=f"{error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise CorpusError("corpus_not_text", path=path, reason=f"{error}.") from error


def add_export(parser: argparse.ArgumentParser) -> None:
    """Describe `export`."""
    parser.description = (
        "Write a model for another program into a new folder: nanogpt (ckpt.pt, and meta.pkl for a character "
        "vocabulary), gpt2 (a folder that transformers loads), or safetensors (one file with everything in it). Where "
        "that program cannot hold the model, the message says why."
    )
    parser.add_argument("source", metavar="SRC", help="a checkpoint of any kind that import reads")
    parser.add_argument("destination", metavar="DEST", help="the folder to write; it must not be there yet")
    parser.add_argument("--format", choices=FORMATS, required=True, help="which program it is for")
    add_unsaid(parser)
    parser.set_defaults(command=_export)


def _export(options: argparse.Namespace, _given: list[str]) -> int:
    from minigpt.exchange import export_checkpoint

    print(export_checkpoint(opened(options.source, options), options.destination, options.format))
    return 0
