"""Models from elsewhere and for elsewhere: an upload opened, a foreign model kept as ours, ours written for others."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

import torch

from minigpt.checkpoint import FORMAT_VERSION, Checkpoint, load_checkpoint, save_checkpoint, stored_tensors
from minigpt.config import Activation
from minigpt.errors import CheckpointError
from minigpt.formats.filling import filled_model
from minigpt.formats.safetensors_files import pieces_of, written_header
from minigpt.formats.settings import with_given
from minigpt.formats.writing import Files, gpt2_files, nanogpt_files
from minigpt.model import LanguageModel
from minigpt.tokenizer import Tokenizer

UPLOAD_BYTES = 2 * 2**30
"""Most that the page opens at once, in bytes, all files together: 2 GiB, a GPT-2 small with its optimizer's state."""

ExportFormat = Literal["nanogpt", "gpt2", "safetensors"]
EXPORT_FORMATS: tuple[str, ...] = get_args(ExportFormat)
SINGLE_FILE = "model.safetensors"


def open_upload(path: str | os.PathLike[str]) -> Checkpoint:
    """Open a file, or a folder of files, that a visitor of the page brought. It is only read.

    Args:
        path: Where the upload lies.

    Raises:
        CheckpointError: As `load_checkpoint`, naming the file as the visitor knows it. Of these, `no_vocabulary` can be
            put right by `with_vocabulary`.
    """
    return _opened(Path(path), None)


def with_vocabulary(path: str | os.PathLike[str], text: str) -> Checkpoint:
    """Open an upload that says nothing about its vocabulary, with the characters of the text that it was trained on.

    Args:
        path: Where the upload lies.
        text: The training text; its different characters, sorted, must be as many as the model knows tokens.

    Raises:
        CheckpointError: As `open_upload`, and `text_differs` if the count is another.
    """
    return _opened(Path(path), text)


def _opened(path: Path, text: str | None) -> Checkpoint:
    try:
        return load_checkpoint(path, text=text, most_bytes=UPLOAD_BYTES)
    except CheckpointError as error:
        _raise_with_names_only(error)


def _raise_with_names_only(error: CheckpointError) -> NoReturn:
    """Raise the error again without the folders of the server in it."""
    details = {name: value.name if isinstance(value, Path) else value for name, value in error.details.items()}
    raise CheckpointError(error.code, **details) from None


def with_activation(ckpt: Checkpoint, activation: Activation) -> Checkpoint:
    """Return a model with the same parameters and another non-linearity in its feed-forward networks.

    Args:
        ckpt: A model whose activation is only assumed; it stays as it is.
        activation: The other one.

    Raises:
        CheckpointError: `given_differs` if it is no assumption but what the file says.
    """
    if "activation" not in ckpt.assumed:
        with_given(ckpt.config.to_dict(), {"activation": activation}, ckpt.path)
    tensors = stored_tensors(ckpt.model)
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    config = replace(ckpt.config, activation=activation)
    return replace(ckpt, model=filled_model(config, shapes, tensors.items(), ckpt.path))


def import_checkpoint(
    source: str,
    destination: str | os.PathLike[str],
    *,
    text: str | None = None,
    activation: Activation | None = None,
    n_head: int | None = None,
) -> Checkpoint:
    """Keep a foreign model as a checkpoint folder of ours, and return it as loaded from there.

    Args:
        source: Anything that `load_checkpoint` reads.
        destination: The folder; made if it is not there.
        text: The training text, for a model that says nothing about its vocabulary.
        activation: Its non-linearity, for a model that does not say it.
        n_head: The heads of each layer, for a model that does not say how many.

    Raises:
        CheckpointError: As `load_checkpoint` and `save_checkpoint`.
    """
    ckpt = load_checkpoint(source, text=text, activation=activation, n_head=n_head)
    kept: dict[str, Any] = {"card": _card(ckpt, source), "training": ckpt.training, "assumed": ckpt.assumed}
    save_checkpoint(destination, ckpt.model, ckpt.tokenizer, **kept)
    return load_checkpoint(destination)


def _card(ckpt: Checkpoint, source: str) -> str:
    """Return a model card that says what is known of a foreign model, which is little."""
    config = ckpt.config
    padding = f"\n\n{ckpt.padding} rows of its embedding that no token has were left out." if ckpt.padding else ""
    assumed = f"\n\nIts activation, {config.activation}, is assumed: the file does not say it." if ckpt.assumed else ""
    return ckpt.card or (
        f"# {Path(source).stem}\n\nImported from `{Path(source).name}` (layout: {ckpt.detected}): {config.n_layer} "
        f"layers × {config.n_head} heads, {config.n_embd} wide, a window of {config.block_size} tokens, "
        f"{config.vocab_size} different tokens, {ckpt.parameters:,} parameters.{padding}{assumed}\n\n"
        "## Data, licence, limits\n\nThe file says nothing about them; ask where it comes from.\n"
    )


def export_checkpoint(ckpt: Checkpoint, destination: str | os.PathLike[str], layout: ExportFormat) -> Path:
    """Write a model for another program: whole or not at all, and over nothing.

    Args:
        ckpt: The model and its tokenizer.
        destination: A folder that is not there yet.
        layout: `"nanogpt"` (ckpt.pt, and meta.pkl for a character vocabulary), `"gpt2"` (a folder that transformers
            loads), or `"safetensors"` (one file of ours, its settings and vocabulary in its metadata).

    Returns:
        The folder.

    Raises:
        CheckpointError: `not_exportable` if that format cannot hold this model, `export_in_the_way` if the destination
            is there, `checkpoint_not_saved` if the disk refuses.
    """
    folder = Path(destination)
    if folder.exists():
        raise CheckpointError("export_in_the_way", path=folder)
    ways: Mapping[str, Callable[[LanguageModel, Tokenizer], Files]] = {"nanogpt": nanogpt_files, "gpt2": gpt2_files}
    files = _single_file(ckpt) if layout == "safetensors" else ways[layout](ckpt.model, ckpt.tokenizer)
    staged = folder.with_name(f".{folder.name}.new")
    try:
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)
        for name, content in files.items():
            (staged / name).write_bytes(content)
        staged.rename(folder)
    except OSError as error:
        raise CheckpointError("checkpoint_not_saved", path=folder, reason=f"{error.strerror or error}.") from error
    return folder


def _single_file(ckpt: Checkpoint) -> Files:
    described = {
        "format_version": FORMAT_VERSION,
        "model": ckpt.config.to_dict(),
        "tokenizer": ckpt.tokenizer.to_dict(),
        "training": dict(ckpt.training),
        "assumed": list(ckpt.assumed),
    }
    tensors, metadata = stored_tensors(ckpt.model), {"config": json.dumps(described)}
    parts = [written_header(tensors, torch.float32, metadata)]
    parts += [piece.numpy().tobytes() for _, piece in pieces_of(tensors, torch.float32)]
    return {SINGLE_FILE: b"".join(parts)}
