"""Checkpoints: a folder with a model's weights, what they are, and a card for people.

| file | holds |
|---|---|
| `config.json` | format version, architecture, tokenizer, a summary of the training, the SHA-256 of the weights |
| `model.safetensors` | the parameters under the chapters' names, without the `tril` masks |
| `README.md` | the model card: data and licence, recipe, loss, limits |

Nothing in it is ever unpickled or run. A model that comes out has every parameter from the file, or there is an error:
missing, left-over, misshapen and non-finite parameters are refused, and so are weights with another checksum.

Saving stages `model.safetensors.new`, then replaces `config.json`, then renames the weights. The one step in the middle
decides: until then the old pair is there, from then on the new one, because loading takes the weights whose checksum
`config.json` names, under either name. So a kill at any moment leaves a whole checkpoint, and a reader meets no mix.
"""

import hashlib
import json
import os
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor

from minigpt.config import Activation, ModelConfig, check_choice, check_positive_integer
from minigpt.errors import CheckpointError, ConfigError, MiniGPTError
from minigpt.formats.files import DAMAGE, MOST_BYTES, MOST_TEXT_BYTES, OpenFile, check_size, damaged, json_object
from minigpt.formats.filling import filled_model
from minigpt.formats.hub import SCHEME, fetch, look_up
from minigpt.formats.reading import OUR_VERSION, Given, OurParameters, assumed_in, is_foreign, read_foreign
from minigpt.formats.safetensors_files import pieces_of, read_safetensors, written_header
from minigpt.formats.settings import with_given
from minigpt.model import LanguageModel
from minigpt.tokenizer import Tokenizer, tokenizer_from_dict

FORMAT_VERSION = OUR_VERSION
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
STAGED = ".new"
"""What is added to the name of a file that is still being written."""
TRIES = 3
"""How often loading starts over when another process saves meanwhile."""
DTYPES = {"float32": torch.float32, "float16": torch.float16}


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A model with all that is needed to use it.

    Attributes:
        model: The model, in eval mode.
        tokenizer: Text to ids and back; knows as many tokens as the model.
        card: The model card as Markdown; empty if there is none.
        path: The folder it came from.
        training: The summary that training left, as plain values; empty if none.
        detected: What was found there: `minigpt` (our own), `chapters`, `nanogpt`, `mingpt` or `gpt2`.
        padding: Rows of the embedding that no token has, and that were left out; 0 but for padded nanoGPT models.
        assumed: Settings that a foreign file did not state and its parameters do not show, such as `("activation",)`:
            they are as models of that layout usually have them.
        checksum: SHA-256 of the weights' file, as `config.json` names it; None where nothing does.
    """

    model: LanguageModel
    tokenizer: Tokenizer
    card: str = ""
    path: Path = Path("unsaved")
    training: Mapping[str, Any] = field(default_factory=dict[str, Any])
    detected: str = "minigpt"
    padding: int = 0
    assumed: tuple[str, ...] = ()
    checksum: str | None = None

    @property
    def config(self) -> ModelConfig:
        """The architecture of the model."""
        return self.model.config

    @cached_property
    def parameters(self) -> int:
        """The number of parameters, a matrix that two layers share counted once."""
        return sum(parameter.numel() for parameter in self.model.parameters())


class _ReplacedMeanwhileError(Exception):
    """Another process saved to the folder while it was being read."""


def save_checkpoint(
    path: str | os.PathLike[str],
    model: LanguageModel,
    tokenizer: Tokenizer,
    *,
    card: str | None = None,
    training: Mapping[str, Any] | None = None,
    dtype: Literal["float32", "float16"] = "float32",
    assumed: Sequence[str] = (),
) -> None:
    """Write a checkpoint folder so that a kill at any moment leaves the previous checkpoint or the new one whole.

    Args:
        path: The folder; made if it is not there. Other files in it are left alone.
        model: Any of the three language models.
        tokenizer: The tokenizer it was trained with.
        card: The model card as Markdown; None leaves the card that is there.
        training: A summary of the training, plain values that JSON can hold.
        dtype: How numbers are stored; `"float16"` halves the file and rounds to about 3 digits.
        assumed: As in `Checkpoint`.

    Raises:
        CheckpointError: `vocabulary_mismatch` or `checkpoint_not_finite` before anything is written;
            `checkpoint_not_saved` if the disk refuses.
    """
    folder = Path(path)
    _check_vocabulary(tokenizer, model.config, folder)
    tensors = stored_tensors(model)
    _check_finite(tensors, DTYPES[dtype], folder)
    digest = hashlib.sha256()
    for content in _weights_content(tensors, DTYPES[dtype]):
        digest.update(content)
    config: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "model": model.config.to_dict(),
        "tokenizer": tokenizer.to_dict(),
        "training": dict(training or {}),
        **({"assumed": list(assumed)} if assumed else {}),
        "weights": {"sha256": digest.hexdigest(), "dtype": dtype},
    }
    described = json.dumps(config, indent=2, allow_nan=False).encode()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _finish_interrupted_save(folder)
        staged = _stage(folder / WEIGHTS, _weights_content(tensors, DTYPES[dtype]))
        _stage(folder / CONFIG, [described]).replace(folder / CONFIG)
        _sync_folder(folder)
        staged.replace(folder / WEIGHTS)
        if card is not None:
            _stage(folder / CARD, [card.encode()]).replace(folder / CARD)
        _sync_folder(folder)
    except OSError as error:
        raise CheckpointError("checkpoint_not_saved", path=folder, reason=f"{error.strerror or error}.") from error


def load_checkpoint(
    path: str | os.PathLike[str],
    *,
    text: str | None = None,
    activation: Activation | None = None,
    n_head: int | None = None,
    most_bytes: int = MOST_BYTES,
) -> Checkpoint:
    """Read a checkpoint into a model in eval mode, in float32, on the CPU. What it is shows its content, not its name.

    Args:
        path: A folder that `save_checkpoint` wrote; a file of `torch.save` with the parameters of one of the chapters'
            models, of nanoGPT or of minGPT; a safetensors file; a GPT-2 folder of Hugging Face; or `hf://user/name`,
            `hf://user/name@revision` for such a model on the Hub.
        text: The text that a foreign model was trained on, where nothing else says what its vocabulary is.
        activation: The non-linearity that a foreign model was trained with, where nothing says it; None takes what
            models of its layout usually have, and notes that in `Checkpoint.assumed`.
        n_head: The heads of each layer, where neither the parameters' names nor anything else says them.
        most_bytes: Largest foreign file that is read, in bytes.

    Raises:
        CheckpointError: If anything is missing, damaged, or does not fit together; the sentence says what.
            `given_differs` if `activation` or `n_head` is other than the file says.
        ConfigError: If `activation` or `n_head` can be those of no model.
    """
    settings = {name: value for name, value in (("activation", activation), ("n_head", n_head)) if value is not None}
    if activation is not None:
        check_choice("activation", activation, get_args(Activation))
    if n_head is not None:
        check_positive_integer("n_head", n_head)
    if isinstance(path, str) and path.startswith(SCHEME):
        path = fetch(look_up(path, most_bytes))
    folder = Path(path)
    if is_foreign(folder):
        return _foreign(folder, Given(text, settings), most_bytes)
    ckpt = _ours(folder.parent if folder.is_file() else folder)
    with_given(ckpt.config.to_dict(), settings, folder)
    return ckpt


@contextmanager
def _read_from(path: Path) -> Generator[None, None, None]:
    """Raise the CheckpointError `file_damaged` for nonsense in a file that nobody thought of."""
    try:
        yield
    except MiniGPTError:
        raise
    except DAMAGE as error:
        damaged(path, error)


def _foreign(path: Path, given: Given, most: int) -> Checkpoint:
    """Return the checkpoint of a model of another program, or of a single file."""
    with _read_from(path):
        found = read_foreign(path, given, most=most)
    return Checkpoint(
        model=filled_model(found.config, found.parameters.shapes(), found.parameters.tensors(), found.path),
        tokenizer=found.tokenizer,
        path=found.path,
        training=found.training,
        detected=found.layout,
        padding=found.padding,
        assumed=found.assumed,
    )


def _ours(folder: Path) -> Checkpoint:
    """Return the checkpoint in a folder of ours."""
    for _ in range(TRIES):
        with _read_from(folder / CONFIG):
            described = _read_config(folder)
            config = _model_config(described, folder / CONFIG)
            tokenizer = tokenizer_from_dict(_entry(described, "tokenizer", folder / CONFIG), folder / CONFIG)
        _check_vocabulary(tokenizer, config, folder)
        with suppress(_ReplacedMeanwhileError), _read_from(folder / WEIGHTS):
            parameters = _read_weights(folder, _checksum(described))
            break
    else:
        raise CheckpointError("checkpoint_checksum", path=folder / WEIGHTS)
    model = filled_model(config, parameters.shapes(), parameters.tensors(), folder / WEIGHTS)
    training: object = described.get("training")
    return Checkpoint(
        model=model,
        tokenizer=tokenizer,
        card=_read_card(folder / CARD),
        path=folder,
        training=cast(dict[str, Any], training) if isinstance(training, dict) else {},
        assumed=assumed_in(described),
        checksum=_checksum(described),
    )


def _read_card(path: Path) -> str:
    """Return the card; an empty text if there is none, or one too long for a card."""
    if not path.is_file() or path.stat().st_size > MOST_TEXT_BYTES:
        return ""
    return path.read_bytes().decode("utf-8", "replace")


def list_checkpoints(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the checkpoint folders directly inside a folder, largest first; none if there is no such folder."""
    found = [path.parent for path in Path(folder).glob(f"*/{CONFIG}") if _weights_files(path.parent)]
    return sorted(found, key=lambda path: (-_weights_files(path)[0].stat().st_size, path.name))


def _weights_files(folder: Path) -> list[Path]:
    return [path for path in (folder / WEIGHTS, folder / (WEIGHTS + STAGED)) if path.is_file()]


# --- writing ----------------------------------------------------------------------------------------------------------


def stored_tensors(model: LanguageModel) -> dict[str, Tensor]:
    """Return the parameters that a file holds: under the chapters' names, without masks, a tied matrix once."""
    left_out = {"lm_head.weight"} if model.config.tied else set[str]()
    return {name: tensor for name, tensor in model.tensors_by_name().items() if name not in left_out}


def _weights_content(tensors: Mapping[str, Tensor], dtype: torch.dtype) -> Iterator[bytes]:
    """Yield the content of `model.safetensors`, some at a time."""
    yield written_header(tensors, dtype)
    for _, piece in pieces_of(tensors, dtype):
        yield piece.numpy().tobytes()


def _check_finite(tensors: Mapping[str, Tensor], dtype: torch.dtype, path: Path) -> None:
    for name, piece in pieces_of(tensors, dtype):
        if not bool(piece.isfinite().all()):
            raise CheckpointError("checkpoint_not_finite", name=name, path=path)


def _finish_interrupted_save(folder: Path) -> None:
    """Rename weights that an earlier save had decided on but was killed before renaming."""
    staged = folder / (WEIGHTS + STAGED)
    with suppress(CheckpointError, FileNotFoundError):
        if _sha256(staged) == _checksum(_read_config(folder)):
            staged.replace(folder / WEIGHTS)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stage(path: Path, content: Iterable[bytes]) -> Path:
    """Write a file beside its place and wait until it is on the disk."""
    staged = path.with_name(path.name + STAGED)
    with staged.open("wb") as file:
        for part in content:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    return staged


def _sync_folder(folder: Path) -> None:
    """Wait until renames in the folder are on the disk, where the system lets a folder be opened."""
    with suppress(PermissionError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# --- reading ----------------------------------------------------------------------------------------------------------


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        content = path.read_bytes() if check_size(path, MOST_TEXT_BYTES, least=0) else b""
    except FileNotFoundError:
        raise CheckpointError("checkpoint_missing", path=folder, missing=CONFIG) from None
    except OSError as error:
        raise CheckpointError("checkpoint_not_json", path=path, reason=f"{error.strerror or error}.") from error
    described = json_object(content, path)
    version: object = described.get("format_version")
    if version is None:
        raise CheckpointError("checkpoint_incomplete", path=path, name="format_version")
    if version != FORMAT_VERSION:
        raise CheckpointError("checkpoint_version", path=path, version=repr(version), known=FORMAT_VERSION)
    return described


def _entry(described: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    entry: object = described.get(name)
    if not isinstance(entry, dict):
        raise CheckpointError("checkpoint_incomplete", path=path, name=name)
    return cast(dict[str, Any], entry)


def _model_config(described: Mapping[str, Any], path: Path) -> ModelConfig:
    try:
        return ModelConfig.from_dict(_entry(described, "model", path))
    except ConfigError as error:
        raise CheckpointError("checkpoint_config", path=path, reason=error) from error


def _checksum(described: Mapping[str, Any]) -> str | None:
    """Return the checksum of the weights, or None where the file was written by hand without one."""
    weights: object = described.get("weights")
    checksum: object = cast(dict[str, Any], weights).get("sha256") if isinstance(weights, dict) else None
    return checksum if isinstance(checksum, str) else None


def _read_weights(folder: Path, checksum: str | None) -> OurParameters:
    """Return the parameters of the weights that the checksum names; without one, those in `model.safetensors`.

    Raises:
        _ReplacedMeanwhileError: If no file has that checksum, by damage or by a save at the same time.
        CheckpointError: If there is no file, or it is no safetensors file.
    """
    files = _weights_files(folder)
    if not files:
        raise CheckpointError("checkpoint_missing", path=folder, missing=WEIGHTS)
    for path in files:
        try:
            file = OpenFile(path, most=sys.maxsize)
        except CheckpointError:
            if checksum is None:
                raise
            continue
        if checksum is None or file.sha256() == checksum:
            return OurParameters(read_safetensors(file).tensors)
    raise _ReplacedMeanwhileError


def _check_vocabulary(tokenizer: Tokenizer, config: ModelConfig, path: Path) -> None:
    if tokenizer.vocab_size != config.vocab_size:
        raise CheckpointError("vocabulary_mismatch", path=path, tokens=tokenizer.vocab_size, rows=config.vocab_size)
