"""Tokenizers of other programs, read from a `tokenizer.json`, or from a `vocab.json` with its `merges.txt`.

Byte-level tokenizers (GPT-2's) cut a text into pieces of its UTF-8 bytes, so a character may be split over tokens. Such
a part is shown as the bytes it is, as in ⟨EA B0⟩, never as a character that is not there.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any, Self, cast

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from minigpt.errors import ConfigError, PromptError
from minigpt.spelling import Change


def _byte_alphabet() -> dict[str, int]:
    """Return the byte that each character of a byte-level vocabulary stands for (GPT-2's `bytes_to_unicode`)."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in shown}
    alphabet |= {chr(256 + index): byte for index, byte in enumerate(b for b in range(256) if b not in shown)}
    return alphabet


BYTES = _byte_alphabet()


MOST_GROWTH = 1000
"""How many times longer a normalizer may make a text; a few small steps one after another could fill any memory."""


def _growth(normalizer: Any) -> int:  # noqa: ANN401 (from JSON)
    """Return how many times longer a normalizer may make a text."""
    if not isinstance(normalizer, dict):
        return 1
    step = cast(dict[str, Any], normalizer)
    match step.get("type"):
        case "Sequence":
            return min(prod(map(_growth, step["normalizers"])), MOST_GROWTH + 1)
        case "Replace":
            return 1 + len(step["content"])
        case "Prepend":
            return 1 + len(step["prepend"])
        case "Lowercase" | "Strip" | "StripAccents" | "BertNormalizer" | "NFC" | "NFD" | "NFKC" | "NFKD" | "Nmt":
            return 1
        case _:
            return 4


def marked_text(content: bytes) -> str:
    """Return the text of UTF-8 bytes, with bytes that make no character as in ⟨EA B0⟩."""
    text = content.decode("utf-8", "surrogateescape")
    shown: list[str] = []
    loose: list[str] = []
    for char in text:
        if 0xDC80 <= ord(char) <= 0xDCFF:
            loose.append(f"{ord(char) - 0xDC00:02X}")
            continue
        shown += [f"⟨{' '.join(loose)}⟩"] * bool(loose) + [char]
        loose = []
    return "".join(shown) + (f"⟨{' '.join(loose)}⟩" if loose else "")


class SubwordTokenizer:
    """A tokenizer of the `tokenizers` library, without truncation, padding or added special tokens."""

    type = "tokenizers"

    def __init__(self, description: str) -> None:
        """Read the content of a `tokenizer.json`.

        Raises:
            ConfigError: `tokenizer_not_usable` if it is none, or its ids leave gaps.
        """
        self._take(_made(lambda: tokenizers.Tokenizer.from_str(description)))

    @classmethod
    def from_vocabulary(cls, vocabulary: Mapping[str, int], merges: Iterable[tuple[str, str]]) -> Self:
        """Make the byte-level tokenizer of a GPT-2's `vocab.json` and `merges.txt`.

        Raises:
            ConfigError: `tokenizer_not_usable` if a merge asks for a piece that the vocabulary lacks.
        """
        pairs = list(merges)
        for one, other in pairs:
            if not {one, other, one + other} <= vocabulary.keys():  # the library would panic
                reason = f"its vocabulary lacks a part of the merge {one!r} {other!r}."
                raise ConfigError("tokenizer_not_usable", reason=reason)
        made = _made(lambda: tokenizers.Tokenizer(models.BPE(vocab=dict(vocabulary), merges=pairs)))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        special = [piece for piece in ("<|endoftext|>",) if piece in vocabulary]
        made.add_special_tokens([AddedToken(piece, special=True) for piece in special])
        return cls(made.to_str())

    def _take(self, tokenizer: tokenizers.Tokenizer) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        if not vocabulary or sorted(vocabulary.values()) != list(range(len(vocabulary))):
            raise ConfigError("tokenizer_not_usable", reason="its ids do not run from 0 without gaps.")
        description = cast(dict[str, Any], json.loads(tokenizer.to_str()))
        if _growth(description.get("normalizer")) > MOST_GROWTH:
            raise ConfigError("tokenizer_not_usable", reason="its normalizer makes texts much longer than they are.")
        self._tokenizer = tokenizer
        ways = json.dumps([description.get("pre_tokenizer"), description.get("decoder")])
        self._byte_level, self._metaspace = "ByteLevel" in ways, "Metaspace" in ways
        self._added = {token_id: token.content for token_id, token in tokenizer.get_added_tokens_decoder().items()}
        self._pieces = {token_id: self._bytes(token_id, piece) for piece, token_id in vocabulary.items()}

    def _bytes(self, token_id: int, piece: str) -> bytes:
        """Return the UTF-8 that one token stands for."""
        if token_id in self._added:
            return self._added[token_id].encode("utf-8", "surrogatepass")
        if self._byte_level and all(char in BYTES for char in piece):
            return bytes(BYTES[char] for char in piece)
        return (piece.replace("▁", " ") if self._metaspace else piece).encode("utf-8", "surrogatepass")

    @property
    def vocab_size(self) -> int:
        """Number of different tokens."""
        return len(self._pieces)

    def encode(self, text: str) -> list[int]:
        """Return the ids of the text.

        Raises:
            PromptError: `unknown_characters`, naming each and how often it occurs, if the vocabulary lacks any;
                `prompt_not_cut` if the library fails, as it does when a pattern takes it too many tries.
        """
        ids = self._ids(text)
        if ids is not None and self._covers(text, ids):
            return ids
        if unknown := self.unknown(text):
            counts = Counter(char for char in text if char in unknown)
            named = ", ".join(f"{char!r} ×{count}" for char, count in list(counts.items())[:12])
            named += ", …" if len(counts) > 12 else ""
            raise PromptError("unknown_characters", characters=named, count=counts.total())
        if ids is None:
            raise PromptError("prompt_not_cut")
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the ids; bytes that make no character are marked, as in ⟨EA B0⟩.

        Raises:
            ValueError: If an id is outside the vocabulary.
        """
        return marked_text(b"".join(self._piece_bytes(token_id) for token_id in ids))

    def piece(self, token_id: int) -> str:
        """Return the text of one token; bytes that make no character by themselves are marked, as in ⟨EA B0⟩.

        Raises:
            ValueError: If the id is outside the vocabulary.
        """
        return marked_text(self._piece_bytes(token_id))

    def _piece_bytes(self, token_id: int) -> bytes:
        try:
            return self._pieces[token_id]
        except KeyError:
            raise ValueError(f"token ids run from 0 to {self.vocab_size - 1}, got {token_id}") from None

    def respelled(self, text: str) -> tuple[str, tuple[Change, ...]]:
        """Return the text as it is: pieces of bytes spell anything, and others bring their own rules."""
        return text, ()

    def unknown(self, text: str) -> list[str]:
        """Return the different characters that the vocabulary lacks, in order of appearance."""
        return [char for char in dict.fromkeys(text) if not self._knows(char)]

    def without_unknown(self, text: str) -> str:
        """Return the text without the characters that the vocabulary lacks."""
        unknown = set(self.unknown(text))
        return "".join(char for char in text if char not in unknown)

    def _knows(self, char: str) -> bool:
        ids = self._ids(char)
        return ids is not None and self._covers(char, ids)

    def _covers(self, text: str, ids: list[int]) -> bool:
        """Return whether no character was dropped or replaced by a token for what is unknown.

        A byte-level vocabulary spells every text byte by byte; one that lacks some of the 256 bytes drops them.
        """
        if self._byte_level:
            spelled = b"".join(self._pieces[token_id] for token_id in ids)
            return spelled in (text.encode(), b" " + text.encode())
        unknown: object = getattr(self._tokenizer.model, "unk_token", None)
        return bool(ids or not text) and all(self._pieces[token_id].decode() != unknown for token_id in ids)

    def _ids(self, text: str) -> list[int] | None:
        """Return the ids; None if the library fails, or the text holds half a surrogate pair, which is no UTF-8."""
        if any(0xD800 <= ord(char) <= 0xDFFF for char in text):
            return None
        try:
            return self._tokenizer.encode(text, add_special_tokens=False).ids
        except BaseException as error:  # a panic in the library is no Exception
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            return None

    def to_dict(self) -> dict[str, Any]:
        """Return the tokenizer as the content of its `tokenizer.json`."""
        return {"type": self.type, "json": self._tokenizer.to_str()}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            ConfigError: If there is no such tokenizer in it.
        """
        text: object = description.get("json")
        if not isinstance(text, str):
            raise ConfigError("tokenizer_not_usable", reason="it has no entry json.")
        return cls(text)

    def single_characters(self) -> list[str] | None:
        """Return the tokens in the order of their ids if the vocabulary is a list of characters, else None."""
        words = isinstance(self._tokenizer.model, models.WordLevel)
        pieces = [self.piece(token_id) for token_id in range(self.vocab_size)]
        return pieces if words and all(len(piece) == 1 for piece in pieces) else None


def _made(make: Callable[[], tokenizers.Tokenizer]) -> tokenizers.Tokenizer:
    """Return what the library makes of a description.

    Raises:
        ConfigError: `tokenizer_not_usable` if it makes nothing of it.
    """
    try:
        return make()
    except BaseException as error:  # a panic in the library is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise ConfigError("tokenizer_not_usable", reason=f"{error}.") from error


def character_tokenizer_json(characters: Iterable[str]) -> str:
    """Return a `tokenizer.json` that cuts a text into single characters, for programs that read nothing else."""
    made = tokenizers.Tokenizer(models.WordLevel({char: index for index, char in enumerate(characters)}))
    made.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    made.decoder = decoders.Fuse()
    return made.to_str()
