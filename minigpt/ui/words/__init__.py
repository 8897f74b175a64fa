"""Every word of the page, one file per language, with the same keys and placeholders in each.

Keys are dotted: `control.*` and `example.*` for the Gradio parts, `viewer.*` for what the viewer writes, `error.*` for the
sentences of errors (the code of a `MiniGPTError` follows the dot).
"""

from minigpt.errors import MiniGPTError
from minigpt.ui.words import en, ko
from minigpt.ui.words.reasons import NAMES, reason_in_korean

LANGUAGES: dict[str, str] = {"ko": "한국어", "en": "English"}
"""Language codes in the order of the switch, each with its own name."""

WORDS: dict[str, dict[str, str]] = {"en": en.WORDS, "ko": ko.WORDS}


def word(language: str, key: str, **values: object) -> str:
    """Return the words of a key in a language, its placeholders filled in; English for a language that is not known."""
    return WORDS.get(language, en.WORDS)[key].format(**values)


def starting_with(prefix: str) -> dict[str, dict[str, str]]:
    """Return, for each language, the words whose key starts with `prefix`."""
    return {
        language: {key: text for key, text in words.items() if key.startswith(prefix)}
        for language, words in WORDS.items()
    }


def sentences(error: MiniGPTError) -> dict[str, str]:
    """Return what an error says, in every language, and so the errors and causes inside it."""
    return {language: _sentence(language, error) for language in WORDS}


def _sentence(language: str, error: MiniGPTError) -> str:
    details = {name: _detail(language, name, value) for name, value in error.details.items()}
    return WORDS[language][f"error.{error.code}"].format(**details)


def _detail(language: str, name: str, value: object) -> object:
    if isinstance(value, MiniGPTError):
        return _sentence(language, value)
    if language == "ko" and name == "reason":
        return reason_in_korean(str(value))
    return NAMES.get(value, value) if language == "ko" and isinstance(value, str) else value
