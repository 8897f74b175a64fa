"""Reading a foreign model: which format a file has, by its content, and everything that belongs to it."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from torch import Tensor

from minigpt.config import ModelConfig
from minigpt.errors import CheckpointError, ConfigError
from minigpt.formats.containers import Held, held
from minigpt.formats.files import MOST_BYTES, json_object, read_json
from minigpt.formats.settings import check_gpt2_config, stated_settings, with_given
from minigpt.formats.shards import INDEXES, held_in_shards, index_of
from minigpt.formats.stored import Stored, read_parameter
from minigpt.formats.translation import Translated, translate
from minigpt.formats.vocabulary import vocabulary_beside, vocabulary_inside
from minigpt.tokenizer import CharTokenizer, Tokenizer, tokenizer_from_dict

CONFIG = "config.json"
OUR_VERSION = 1
"""Version of our own format."""
WEIGHTS = ("model.safetensors", "pytorch_model.bin", "ckpt.pt", "model.pt")
"""Names of weights in a folder, the first that is there counts; else the only file with one of the endings."""
ENDINGS = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
PADDED_TO = 64
"""nanoGPT rounds the rows of its embedding up to a multiple of this, for speed; no text has those tokens."""

GPT2_TOKENS = 50257
"""Tokens of GPT-2's byte-pair vocabulary, which nanoGPT uses unless told otherwise."""


@dataclass(frozen=True)
class OurParameters:
    """The parameters of a file of our own, under the chapters' names already."""

    stored: Mapping[str, Stored]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each parameter."""
        return {name: stored.size for name, stored in self.stored.items()}

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Read the parameters as float32, one at a time.

        Raises:
            CheckpointError: As `read_parameter`, and `checkpoint_dtype`.
        """
        for name, stored in self.stored.items():
            if not stored.dtype.is_floating_point:
                got = str(stored.dtype).removeprefix("torch.")
                raise CheckpointError("checkpoint_dtype", name=name, path=stored.storage.file.path, got=got)
            yield name, read_parameter(name, stored)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A foreign model, ready to be built.

    Attributes:
        layout: `chapters`, `nanogpt`, `mingpt`, `gpt2`, or `minigpt` for a single file of our own.
        config: The architecture.
        parameters: Every parameter, still in its file.
        tokenizer: Text to ids; knows as many tokens as the model.
        path: The file that the weights came from.
        padding: Rows of the embedding that no token has, and that were left out.
        training: A summary of the training, as plain values, where the file has one.
        assumed: Settings that nothing states, and that are as the layout usually has them.
    """

    layout: str
    config: ModelConfig
    parameters: "Translated | OurParameters"
    tokenizer: Tokenizer
    path: Path
    padding: int
    training: Mapping[str, Any]
    assumed: tuple[str, ...]


class Given(NamedTuple):
    """What a person says about a model that says too little itself: the training text, and settings."""

    text: str | None = None
    settings: Mapping[str, Any] = {}


NOTHING = Given()


def read_foreign(path: Path, given: Given = NOTHING, *, most: int = MOST_BYTES) -> Found:
    """Read a model from a file of any known format, or from a folder with one.

    Args:
        path: A file that `torch.save` wrote, a safetensors file, or a folder with one and what belongs to it:
            config.json, tokenizer.json, vocab.json with merges.txt, meta.json or meta.pkl.
        given: The text that the model was trained on, where its vocabulary is nowhere else (its sorted characters), and
            settings under the names of `ModelConfig` that nothing else says.
        most: Largest file with weights that is read, in bytes.

    Raises:
        CheckpointError: If anything is missing, damaged, unknown or does not fit together; the sentence says what.
    """
    weights = _weights(path) if path.is_dir() else index_of(path)
    described = _described(weights)
    if described is not None and "model_type" in described and not isinstance(described["model_type"], str):
        described = None
    hugging_face = described is not None and "model_type" in described and "model" not in described
    if described is not None and hugging_face:
        check_gpt2_config(described, weights.parent / CONFIG)
        described = {"tie_word_embeddings": True, "activation_function": "gelu_new", **described}
    content = held_in_shards(weights, most) if weights.name in INDEXES else held(weights, most)
    if content.metadata is not None:
        return _from_safetensors(weights, content, described, given)
    stated = stated_settings(content.around, weights)
    if described is not None:
        stated = {**stated_settings(described, weights.parent / CONFIG), **stated}
    tokenizer = vocabulary_inside(content.around, weights)
    return _found(weights, content.tensors, stated, tokenizer, given, hugging_face=hugging_face)


def _weights(folder: Path) -> Path:
    """Return the file of a folder that holds the weights."""
    for name in (*WEIGHTS, *INDEXES):
        if (folder / name).is_file():
            return folder / name
    files = [path for path in sorted(folder.iterdir()) if path.suffix in ENDINGS and path.is_file()]
    if len(files) != 1:
        raise CheckpointError("checkpoint_missing", path=folder, missing=WEIGHTS[0])
    return files[0]


def _described(weights: Path) -> dict[str, Any] | None:
    """Return the config.json beside the weights, or the .json file of the same name; None if there is neither."""
    for path in (weights.with_suffix(".json"), weights.parent / CONFIG):
        if path.is_file() and path != weights:
            return read_json(path)
    return None


def _from_safetensors(weights: Path, content: Held, described: dict[str, Any] | None, given: Given) -> Found:
    """Return the model of a safetensors file, whose metadata may hold a config.json as text."""
    if content.metadata and "config" in content.metadata:
        described = json_object(content.metadata["config"], weights)
    described = described or {}
    tokenizer: Tokenizer | None = None
    if isinstance(described.get("tokenizer"), dict):
        tokenizer = tokenizer_from_dict(described["tokenizer"], weights)
    if "format_version" in described and isinstance(described.get("model"), dict):
        return _ours(weights, content.tensors, described, tokenizer, given)
    hugging_face = "model_type" in described
    stated = {**stated_settings(content.metadata or {}, weights), **stated_settings(described, weights)}
    tokenizer = tokenizer or vocabulary_inside(described, weights)
    return _found(weights, content.tensors, stated, tokenizer, given, hugging_face=hugging_face)


def assumed_in(described: Mapping[str, Any]) -> tuple[str, ...]:
    """Return which settings a config of ours says were only assumed."""
    assumed: object = described.get("assumed")
    names = cast(list[Any], assumed) if isinstance(assumed, list) else []
    return tuple(name for name in ("activation",) if name in names)


def _ours(
    weights: Path,
    tensors: Mapping[str, Stored],
    described: Mapping[str, Any],
    tokenizer: Tokenizer | None,
    given: Given,
) -> Found:
    """Return a model whose config is our own: nothing is left to be guessed."""
    version: object = described["format_version"]
    if version != OUR_VERSION:
        raise CheckpointError("checkpoint_version", path=weights, version=repr(version), known=OUR_VERSION)
    try:
        config = ModelConfig.from_dict(described["model"])
    except ConfigError as error:
        raise CheckpointError("checkpoint_config", path=weights, reason=error) from error
    with_given(config.to_dict(), given.settings, weights)
    if tokenizer is None:
        raise CheckpointError("checkpoint_incomplete", path=weights, name="tokenizer")
    training: object = described.get("training")
    return Found(
        layout="minigpt",
        config=config,
        parameters=OurParameters(tensors),
        tokenizer=tokenizer,
        path=weights,
        padding=0,
        training=cast(dict[str, Any], training) if isinstance(training, dict) else {},
        assumed=assumed_in(described),
    )


def _found(
    weights: Path,
    tensors: Mapping[str, Stored],
    stated: dict[str, Any],
    tokenizer: Tokenizer | None,
    given: Given,
    *,
    hugging_face: bool,
) -> Found:
    translated = _translated(weights, tensors, stated, given.settings, hugging_face=hugging_face)
    rows = translated.config.vocab_size
    tokenizer = tokenizer or vocabulary_beside(weights.parent)
    if tokenizer is None:
        tokenizer = _from_text(given.text, rows, weights)
    tokens = tokenizer.vocab_size
    padding = rows - tokens
    if not _fits(tokens, rows):
        raise CheckpointError("vocabulary_mismatch", path=weights, tokens=tokens, rows=rows)
    if padding:
        translated = translated.with_tokens(tokens)
    return Found(
        layout=translated.layout.name,
        config=translated.config,
        parameters=translated,
        tokenizer=tokenizer,
        path=weights,
        padding=padding,
        training={},
        assumed=translated.assumed,
    )


def _translated(
    weights: Path,
    tensors: Mapping[str, Stored],
    stated: Mapping[str, Any],
    given: Mapping[str, Any],
    *,
    hugging_face: bool,
) -> Translated:
    """Return the parameters, with an error of its own where a person and not the file says what they contradict."""
    try:
        return translate(tensors, with_given(stated, given, weights), weights, hugging_face=hugging_face)
    except CheckpointError as error:
        name = str(error.details.get("name"))
        if error.code != "stated_differs" or name not in given:
            raise
        found = error.details["found"]
        raise CheckpointError("given_differs", path=weights, name=name, given=given[name], found=found) from None


def _fits(tokens: int, rows: int) -> bool:
    """Return whether an embedding with so many rows is that of so many tokens, padded as nanoGPT does it or not."""
    return rows == tokens or (rows % PADDED_TO == 0 and 0 < rows - tokens < PADDED_TO)


def _from_text(text: str | None, rows: int, path: Path) -> Tokenizer:
    """Return the tokenizer of the characters of a text.

    Raises:
        CheckpointError: `gpt2_vocabulary` if the model has as many rows as GPT-2's pieces need, which no text shows;
            `no_vocabulary` without a text; `text_differs` if its characters are not as many as the rows, padded or not.
    """
    characters = sorted(set(text or ""))
    fits = text is not None and _fits(len(characters), rows)
    if not fits and _fits(GPT2_TOKENS, rows):
        raise CheckpointError("gpt2_vocabulary", path=path, rows=rows)
    if text is None:
        raise CheckpointError("no_vocabulary", path=path, rows=rows)
    if not fits:
        raise CheckpointError("text_differs", path=path, characters=len(characters), rows=rows)
    return CharTokenizer.from_characters(characters)


def is_foreign(path: Path) -> bool:
    """Return whether a path leads to a model of another program, or to a single file, rather than to our own folder.

    A folder without anything readable in it counts as ours, so that what is missing there gets said.
    """
    if path.is_file():
        return not (path.name == WEIGHTS[0] and not is_foreign(path.parent))
    if not path.is_dir():
        return False
    described: dict[str, Any] = {}
    if (path / CONFIG).is_file():
        with suppress(CheckpointError):
            described = read_json(path / CONFIG)
        if "format_version" in described:
            return False
        if (path / WEIGHTS[0]).is_file():
            return isinstance(described.get("model_type"), str) or _only_settings(described, path / CONFIG)
    with suppress(OSError):
        return any(file.suffix in ENDINGS and file.is_file() for file in path.iterdir())
    return False


def _only_settings(described: Mapping[str, Any], path: Path) -> bool:
    """Return whether a config.json is a few settings that a person put beside weights, and not one of ours in part."""
    if described.keys() & {"model", "tokenizer", "weights"}:
        return False
    return bool(stated_settings(described, path))
