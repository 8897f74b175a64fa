"""The two commands that carry models in and out: `import` and `export`."""

import argparse
import sys
from pathlib import Path

from minigpt.errors import CorpusError

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
    parser.add_argument("--text", type=Path, help="the training text, where the model says nothing of its vocabulary")
    parser.set_defaults(command=_import)


def _import(options: argparse.Namespace, _given: list[str]) -> int:
    from minigpt.exchange import import_checkpoint
    from minigpt.formats.hub import SCHEME, look_up

    text = None if options.text is None else _read_text(options.text)
    if options.source.startswith(SCHEME):
        print(look_up(options.source).described(), file=sys.stderr)
    ckpt = import_checkpoint(options.source, options.destination, text=text)
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
    parser.set_defaults(command=_export)


def _export(options: argparse.Namespace, _given: list[str]) -> int:
    from minigpt.checkpoint import load_checkpoint
    from minigpt.exchange import export_checkpoint

    print(export_checkpoint(load_checkpoint(options.source), options.destination, options.format))
    return 0
