"""Text to token ids and back.

Everything else in the package knows a tokenizer only through the `Tokenizer` protocol, so a character vocabulary and a
byte-level one are looked at in the same way.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, Self, runtime_checkable

from minigpt.errors import CheckpointError, ConfigError, PromptError
from minigpt.spelling import Change, respelled
from minigpt.subwords import SubwordTokenizer

Text = str | Sequence[int]
"""A text, or the ids of its tokens where it has been read already: a text read twice need not give the same tokens."""


@runtime_checkable
class Tokenizer(Protocol):
    """What the package asks of a tokenizer.

    Attributes:
        type: Which kind it is, as `to_dict` says it too.
    """

    type: str

    @property
    def vocab_size(self) -> int:
        """Number of different tokens; ids run from 0 to `vocab_size - 1`."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the ids of the text.

        Raises:
            PromptError: `unknown_characters`, naming each, if the vocabulary lacks any.
        """
        ...

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the ids."""
        ...

    def piece(self, token_id: int) -> str:
        """Return the text that one token stands for."""
        ...

    def respelled(self, text: str) -> tuple[str, tuple[Change, ...]]:
        """Return the text as it is read: in the vocabulary's own spelling, and what was changed for that."""
        ...

    def unknown(self, text: str) -> list[str]:
        """Return the different characters that the vocabulary lacks in any spelling, in order of appearance."""
        ...

    def without_unknown(self, text: str) -> str:
        """Return the text without the characters that the vocabulary lacks."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return a description that JSON can hold and `tokenizer_from_dict` reads."""
        ...


def ids_of(tokenizer: Tokenizer, text: Text) -> list[int]:
    """Return the ids of a text, or those that are given.

    Raises:
        PromptError: `unknown_characters` if the vocabulary lacks any.
    """
    return tokenizer.encode(text) if isinstance(text, str) else list(text)


class CharTokenizer:
    """One token a character; the vocabulary is the sorted set of the characters of a text.

    Attributes:
        chars: The characters in the order of their ids.
        stoi: Character to id.
        itos: Id to character.
    """

    type = "characters"

    def __init__(self, text: str) -> None:
        """Take the vocabulary from a text.

        Raises:
            ConfigError: If the text is empty.
        """
        self._set_characters(sorted(set(text)))

    @classmethod
    def from_characters(cls, characters: Iterable[str]) -> Self:
        """Make a tokenizer whose ids follow the given order, as a saved vocabulary needs it.

        Raises:
            ConfigError: If there is no character, one comes twice, or an entry is not a single character.
        """
        tokenizer = cls.__new__(cls)
        tokenizer._set_characters(list(characters))
        return tokenizer

    def _set_characters(self, chars: list[str]) -> None:
        if not chars:
            raise ConfigError("no_characters")
        for entry in chars:
            if len(entry) != 1 or "\ud800" <= entry <= "\udfff":  # half a surrogate pair is no character
                raise ConfigError("not_single_characters", entry=repr(entry))
        if repeated := [char for char, count in Counter(chars).items() if count > 1]:
            raise ConfigError("repeated_characters", characters=", ".join(map(repr, repeated)))
        self.chars = chars
        self.stoi = {char: index for index, char in enumerate(chars)}
        self.itos = dict(enumerate(chars))

    @property
    def vocab_size(self) -> int:
        """Number of different characters."""
        return len(self.chars)

    def encode(self, text: str) -> list[int]:
        """Return one id per character; a text with unknown characters is first put into the vocabulary's spelling.

        Raises:
            PromptError: `unknown_characters`, naming each and how often it occurs, if the vocabulary lacks any.
        """
        try:
            return [self.stoi[char] for char in text]
        except KeyError:
            text, _ = self.respelled(text)
            counts = Counter(char for char in text if char not in self.stoi)
            if not counts:
                return [self.stoi[char] for char in text]
            raise PromptError("unknown_characters", characters=describe_counts(counts), count=counts.total()) from None

    def decode(self, ids: Iterable[int]) -> str:
        """Return the characters of the ids, joined.

        Raises:
            ValueError: If an id is outside the vocabulary.
        """
        return "".join(self.piece(token_id) for token_id in ids)

    def piece(self, token_id: int) -> str:
        """Return the character of one id.

        Raises:
            ValueError: If the id is outside the vocabulary.
        """
        try:
            return self.itos[token_id]
        except KeyError:
            raise ValueError(f"token ids run from 0 to {self.vocab_size - 1}, got {token_id}") from None

    def respelled(self, text: str) -> tuple[str, tuple[Change, ...]]:
        """Return the text as it is read: in the vocabulary's own spelling, and what was changed for that."""
        return respelled(text, self.stoi.__contains__)

    def unknown(self, text: str) -> list[str]:
        """Return the different characters that the vocabulary lacks in any spelling, in order of appearance."""
        return [char for char in dict.fromkeys(self.respelled(text)[0]) if char not in self.stoi]

    def without_unknown(self, text: str) -> str:
        """Return the text, in the vocabulary's spelling, without the characters that it lacks."""
        return "".join(char for char in self.respelled(text)[0] if char in self.stoi)

    def to_dict(self) -> dict[str, Any]:
        """Return the vocabulary as one string, each character standing at its id."""
        return {"type": self.type, "characters": "".join(self.chars)}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            ConfigError: If there is no list of single, different characters in it.
        """
        characters: object = description.get("characters")
        if not isinstance(characters, str):
            raise ConfigError("no_characters")
        return cls.from_characters(characters)


def describe_counts(counts: Mapping[str, int], most: int = 12) -> str:
    """Return characters with how often each occurs, as in `'é' ×2, '가' ×1`, with an ellipsis past `most`."""
    shown = [f"{char!r} ×{count}" for char, count in list(counts.items())[:most]]
    return ", ".join(shown) + (", …" if len(counts) > most else "")


def tokenizer_from_dict(description: Mapping[str, Any], path: object) -> Tokenizer:
    """Read a tokenizer's description from a checkpoint.

    Args:
        description: What a tokenizer's `to_dict` wrote.
        path: The file it came from, for the message.

    Raises:
        CheckpointError: If the type is unknown or the vocabulary cannot be used.
    """
    kind: object = description.get("type")
    if kind not in (CharTokenizer.type, SubwordTokenizer.type):
        reason = f"its type is {kind!r}; known are {CharTokenizer.type!r} and {SubwordTokenizer.type!r}."
        raise CheckpointError("tokenizer_unreadable", path=path, reason=reason)
    try:
        return (CharTokenizer if kind == CharTokenizer.type else SubwordTokenizer).from_dict(description)
    except ConfigError as error:
        raise CheckpointError("tokenizer_unreadable", path=path, reason=error) from error
