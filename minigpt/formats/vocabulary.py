"""The vocabulary that belongs to a foreign model: inside its file, or in a file beside it."""

from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from minigpt.errors import CheckpointError, ConfigError
from minigpt.formats.files import DAMAGE, damaged, read_bytes, read_json
from minigpt.formats.names import VOCABULARY_INSIDE
from minigpt.formats.pickles import Machine
from minigpt.subwords import SubwordTokenizer
from minigpt.tokenizer import CharTokenizer, Tokenizer

META_PICKLE, META_JSON, TOKENIZER, VOCABULARY, MERGES = (
    *("meta.pkl", "meta.json", "tokenizer.json", "vocab.json", "merges.txt"),
)

LISTS = ("chars", "characters", "stoi", "char_to_idx", "char2idx", "itos", "idx_to_char", "idx2char", "vocab")
"""Entries that list characters, as a list, as a text, or with their ids."""


def read_meta_pickle(path: Path) -> dict[str, Any]:
    """Return what a nanoGPT `meta.pkl` holds, which may be plain values as `Machine` makes them.

    Raises:
        CheckpointError: `pickle_code` if it asks for anything else, `file_damaged` if it makes no sense.
    """
    content = read_bytes(path)
    try:
        value, foreign = Machine().run(BytesIO(content))
    except DAMAGE as error:
        damaged(path, error)
    if foreign:
        raise CheckpointError("pickle_code", path=path, names=", ".join(foreign[:8]))
    if not isinstance(value, dict):
        damaged(path, f"it holds a {type(value).__name__}, not a dict")
    return cast(dict[str, Any], value)


def vocabulary_beside(folder: Path) -> Tokenizer | None:
    """Return the tokenizer that the files of a folder describe, None if there is none.

    Raises:
        CheckpointError: If there is one that cannot be read.
    """
    if (folder / TOKENIZER).is_file():
        return _tokenizer_json(folder / TOKENIZER)
    if (folder / VOCABULARY).is_file() and (folder / MERGES).is_file():
        return _bpe(folder / VOCABULARY, folder / MERGES)
    for name in (META_JSON, META_PICKLE, VOCABULARY):
        path = folder / name
        if path.is_file():
            saved = read_meta_pickle(path) if name == META_PICKLE else read_json(path)
            return vocabulary_inside(saved, path) or _characters(saved, path)
    return None


def _tokenizer_json(path: Path) -> Tokenizer:
    content = read_bytes(path)
    try:
        tokenizer = SubwordTokenizer(content.decode())
    except (ConfigError, UnicodeDecodeError) as error:
        raise CheckpointError("tokenizer_unreadable", path=path, reason=error) from error
    characters = tokenizer.single_characters()
    return tokenizer if characters is None else CharTokenizer.from_characters(characters)


def _bpe(vocabulary: Path, merges: Path) -> Tokenizer:
    pieces = read_json(vocabulary)
    try:
        lines = read_bytes(merges).decode().split("\n")
        pairs = [tuple(line.split(" ")) for line in lines if line.strip() and not line.startswith("#version")]
        if not all(len(pair) == 2 for pair in pairs):
            raise ConfigError("tokenizer_not_usable", reason="a line of it is no pair of pieces.")
        if not all(type(token_id) is int and 0 <= token_id < 2**31 for token_id in pieces.values()):
            raise ConfigError("tokenizer_not_usable", reason="an id of its vocabulary is no number.")
        return SubwordTokenizer.from_vocabulary(pieces, cast(list[tuple[str, str]], pairs))
    except (ConfigError, UnicodeDecodeError) as error:
        raise CheckpointError("tokenizer_unreadable", path=merges, reason=error) from error


def vocabulary_inside(saved: Mapping[str, Any], path: Path) -> Tokenizer | None:
    """Return the tokenizer that a saved dict describes, None if it describes none.

    Understood are `chars` (a list, string or set of characters), `stoi` and `itos`, and `vocab` (either kind), beside
    the parameters or in an entry such as `meta`.

    Raises:
        CheckpointError: `tokenizer_unreadable` if they contradict each other or make no list of different characters.
    """
    places = [saved, *(saved.get(name) for name in VOCABULARY_INSIDE)]
    for place in places:
        if isinstance(place, dict):
            found = _lists(cast(dict[str, Any], place), path)
            if any(each != found[0] for each in found):
                raise CheckpointError("tokenizer_unreadable", path=path, reason="its lists contradict each other.")
            if found:
                return _char_tokenizer(found[0], path)
    return None


def _characters(saved: Mapping[str, Any], path: Path) -> Tokenizer:
    """Return the tokenizer of a dict from characters to ids, or from ids to characters."""
    return _char_tokenizer(_listed(saved, path), path)


def _lists(place: Mapping[str, Any], path: Path) -> list[list[str]]:
    """Return what each entry says that lists characters; `vocab`, which may mean other things, only alone."""
    found = {name: place[name] for name in LISTS if isinstance(place.get(name), dict | list | tuple | str | set)}
    if "vocab" in found and len(found) > 1:
        del found["vocab"]
    return [_listed(entry, path) for entry in found.values()]


def _listed(entry: Any, path: Path) -> list[str]:  # noqa: ANN401 (from a file)
    """Return the characters in the order of their ids."""
    if isinstance(entry, dict):
        pairs = [
            (key, value) if isinstance(key, str) and type(value) is int else (value, key)
            for key, value in cast(dict[Any, Any], entry).items()
        ]
        by_id = {_number(token_id, path): char for char, token_id in pairs}
        if len(by_id) != len(pairs) or sorted(by_id) != list(range(len(by_id))):
            raise CheckpointError("tokenizer_unreadable", path=path, reason="its ids do not run from 0 without gaps.")
        entry = [by_id[token_id] for token_id in range(len(by_id))]
    values = list(cast(Iterable[Any], entry))
    if not all(isinstance(value, str) for value in values):
        raise CheckpointError("tokenizer_unreadable", path=path, reason="it holds what is no character.")
    return sorted(values) if isinstance(entry, set) else values


def _number(token_id: object, path: Path) -> int:
    """Return an id, which JSON turns into text where it is a key."""
    if type(token_id) is int:
        return token_id
    if isinstance(token_id, str) and token_id.isascii() and token_id.isdecimal() and len(token_id) < 10:
        return int(token_id)
    raise CheckpointError("tokenizer_unreadable", path=path, reason=f"{token_id!r} is no id.")


def _char_tokenizer(characters: list[str], path: Path) -> Tokenizer:
    try:
        return CharTokenizer.from_characters(characters)
    except ConfigError as error:
        raise CheckpointError("tokenizer_unreadable", path=path, reason=error) from error
