"""The spellings of one text: composed or decomposed letters (NFC, NFD), and the line ends of three systems.

They look the same and are different characters. A Korean 가 is one character or two (ᄀ and ᅡ), depending on the system
it came from; a character vocabulary knows one of the two. Knows no tokenizer: what is known is asked.
"""

import unicodedata
from collections.abc import Callable
from typing import Literal

Change = Literal["newlines", "composed", "decomposed"]
FORMS: tuple[tuple[Literal["NFC", "NFD"], Change], ...] = (("NFC", "composed"), ("NFD", "decomposed"))


def respelled(text: str, knows: Callable[[str], bool]) -> tuple[str, tuple[Change, ...]]:
    r"""Return the text in the spelling that a vocabulary knows, and what was changed for that.

    A text of known characters is left alone, whatever its spelling. Else carriage returns that are unknown become
    newlines (`"\r\n"` becomes one), and then that form of Unicode is taken that leaves the fewest unknown characters;
    on a draw the text stays as it is.

    Args:
        text: Any text.
        knows: Whether the vocabulary has a character.

    Returns:
        The text, and of `"newlines"`, `"composed"` (NFC) and `"decomposed"` (NFD) those that were done, in this order.
    """
    newlines: tuple[Change, ...] = ()
    if "\r" in text and not knows("\r"):
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        newlines = ("newlines",)
    fewest = _unknown(text, knows)
    best = text
    taken: tuple[Change, ...] = ()
    for form, change in FORMS:
        if fewest and (count := _unknown(candidate := unicodedata.normalize(form, text), knows)) < fewest:
            fewest, best = count, candidate
            taken = (change,)
    return best, (*newlines, *taken)


def _unknown(text: str, knows: Callable[[str], bool]) -> int:
    return sum(not knows(char) for char in text)
