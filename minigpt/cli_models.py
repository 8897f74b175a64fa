"""The commands `generate`, `trace` and `heads`: let a model write, and read what its heads look at.

Imports what needs PyTorch only inside the commands, so that `--help` is quick.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from minigpt.cli_files import add_unsaid, opened
from minigpt.config import ModelConfig
from minigpt.errors import PromptError

if TYPE_CHECKING:
    from minigpt.analysis.patterns import Trace

DEFAULT_CHECKPOINT = "checkpoints/shakespeare"


# --- generate ---------------------------------------------------------------------------------------------------------


def add_generate(parser: argparse.ArgumentParser) -> None:
    """Give a parser the options of `generate`, and its function."""
    parser.description = "Continue a prompt; the text appears while it is written."
    parser.add_argument("prompt", nargs="?", default="", help="what to continue (default: nothing)")
    parser.add_argument(
        "--checkpoint", default=DEFAULT_CHECKPOINT, help="anything that import reads (default: %(default)s)"
    )
    parser.add_argument("--length", type=int, default=300, help="number of new tokens (default: %(default)s)")
    parser.add_argument("--temperature", type=float, default=1.0, help="0 for always the likeliest (default: 1)")
    parser.add_argument("--top-k", type=int, help="draw only from this many of the likeliest tokens")
    parser.add_argument("--top-p", type=float, help="draw only from the likeliest tokens that sum to this probability")
    parser.add_argument(
        "--min-p", type=float, help="draw only from tokens at least this share as likely as the likeliest"
    )
    parser.add_argument(
        "--repetition-penalty",
        type=float,
        default=1.0,
        help="above 1, tokens that the model still sees become less likely (default: 1, off)",
    )
    parser.add_argument("--seed", type=int, help="a number for the same text every time")
    parser.add_argument(
        "--continuations",
        type=int,
        default=1,
        metavar="N",
        help="write up to 8 continuations at once; each is printed at the end under its log-probability and seed",
    )
    add_unsaid(parser)
    parser.set_defaults(command=_generate)


def _generate(options: argparse.Namespace, _given: list[str]) -> int:
    from minigpt.generation import continuations, generate

    ckpt = opened(options.checkpoint, options)
    settings: dict[str, Any] = {
        "max_new_tokens": options.length,
        "temperature": options.temperature,
        "top_k": options.top_k,
        "top_p": options.top_p,
        "min_p": options.min_p,
        "repetition_penalty": options.repetition_penalty,
        "seed": options.seed,
    }
    if options.continuations != 1:
        for number, each in enumerate(continuations(ckpt, options.prompt, options.continuations, **settings), start=1):
            print(f"--- {number}: log-probability {each.log_probability:.2f} nats, alone with --seed {each.seed}")
            print(options.prompt + each.text)
        return 0
    steps = generate(ckpt, options.prompt, **settings)
    print(options.prompt, end="")
    for step in steps:
        print(step.token, end="", flush=True)
    print()
    return 0


# --- trace ------------------------------------------------------------------------------------------------------------


def add_trace(parser: argparse.ArgumentParser) -> None:
    """Give a parser the options of `trace`, and its function."""
    parser.description = (
        "Run a model over a text. Prints each head's scores; with --head, one head's attention weights as a table "
        "(query down, key across, 0 to 1); with --out, writes everything as an .npz file."
    )
    parser.add_argument("text", help="the text; only its last block_size tokens are seen")
    parser.add_argument(
        "--checkpoint", default=DEFAULT_CHECKPOINT, help="anything that import reads (default: %(default)s)"
    )
    parser.add_argument("--head", metavar="L0H0", help="layer and head, counted from 0")
    parser.add_argument("--out", type=Path, metavar="FILE.npz", help="write pattern, logits, ids, tokens and start")
    add_unsaid(parser)
    parser.set_defaults(command=_trace)


def _trace(options: argparse.Namespace, _given: list[str]) -> int:
    """Print or write what the heads look at."""
    from minigpt.analysis.patterns import trace

    ckpt = opened(options.checkpoint, options)
    head = None if options.head is None else _head(options.head, ckpt.config)
    result = trace(ckpt, options.text)
    if options.out is not None:
        _write_npz(options.out, result)
    elif head is None:
        _print_scores(result)
    else:
        _print_head(result, *head)
    return 0


def _head(name: str, config: ModelConfig) -> tuple[int, int]:
    """Read a head's name, such as L1H2."""
    layer, _, head = name.upper().removeprefix("L").partition("H")
    if not (layer.isdecimal() and head.isdecimal() and int(layer) < config.n_layer and int(head) < config.n_head):
        raise PromptError("no_such_head", name=name, last=f"L{config.n_layer - 1}H{config.n_head - 1}")
    return int(layer), int(head)


def _write_npz(path: Path, result: "Trace") -> None:
    """Write the exact numbers: pattern (layer, head, query, key), logits, ids, tokens, true position of the first."""
    import numpy as np

    from minigpt.exports import arrays_of

    try:
        with path.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, logits=result.logits.numpy(), **arrays_of(result))
    except OSError as error:
        raise PromptError("file_not_written", path=path, reason=f"{error.strerror or error}.") from error


def _print_scores(result: "Trace") -> None:
    """Print a line for each head: its scores on this text, separated by tabs."""
    from minigpt.analysis.scores import head_scores

    scores = head_scores(result.pattern, result.tokens)
    print("head", *scores, sep="\t")
    layers, heads = result.pattern.shape[:2]
    for layer in range(layers):
        for head in range(heads):
            print(f"L{layer}H{head}", *(f"{score[layer, head]:.3f}" for score in scores.values()), sep="\t")


def _print_head(result: "Trace", layer: int, head: int) -> None:
    """Print a head's weights, one query a line, separated by tabs; the future is left empty."""
    from minigpt.figures import glyph

    names = [f"{result.start + index} {glyph(token)}" for index, token in enumerate(result.tokens)]
    print(f"L{layer}H{head}", *names, sep="\t")
    rows = cast(list[list[float]], result.pattern[layer, head].tolist())
    for query, row in enumerate(rows):
        print(names[query], *(f"{weight:.3f}" for weight in row[: query + 1]), sep="\t")


# --- heads ------------------------------------------------------------------------------------------------------------


def add_heads(parser: argparse.ArgumentParser) -> None:
    """Give a parser the options of `heads`, and its function."""
    parser.description = (
        "Score every head on the standard probe (random tokens, repeated once), each score beside that of an "
        "untrained model in brackets. With --save, keep the table as heads.json in the checkpoint's folder, where the "
        "page finds it."
    )
    parser.add_argument("checkpoint", nargs="?", default=DEFAULT_CHECKPOINT, help="default: %(default)s")
    parser.add_argument("--save", action="store_true", help="keep the table beside the model")
    add_unsaid(parser)
    parser.set_defaults(command=_heads)


def _heads(options: argparse.Namespace, _given: list[str]) -> int:
    """Print every head's scores, or keep them."""
    from minigpt.analysis.head_finder import probe_heads
    from minigpt.analysis.head_tables import write_table

    ckpt = opened(options.checkpoint, options)
    if options.save:
        print(write_table(ckpt))
        return 0
    table = probe_heads(ckpt)
    print("head", *table.scores, sep="\t")
    for layer in range(ckpt.config.n_layer):
        for head in range(ckpt.config.n_head):
            pairs = ((table.scores[name][layer, head], table.baseline[name][layer, head]) for name in table.scores)
            print(f"L{layer}H{head}", *(f"{score:.3f} ({untrained:.3f})" for score, untrained in pairs), sep="\t")
    return 0
