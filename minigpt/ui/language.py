"""The language of the page: the browser's at first, then the one that was chosen, kept in this browser.

Gradio translates what it paints first (`gr.I18n` follows the browser). Whatever changes later is sent as plain words,
so every component that has words is made by `Translated.make`, which remembers what to send.
"""

import string
from collections.abc import Mapping
from typing import Any, TypeVar

import gradio as gr
from gradio.blocks import Block

from minigpt.ui.words import LANGUAGES, WORDS, word

Part = TypeVar("Part", bound=Block)

DEFAULT = "en"

LANGUAGE_OF = f"""
(linked) => {{
  let stored = null;
  try {{ stored = localStorage.getItem('minigpt.language'); }} catch {{ /* no storage: follow the browser */ }}
  const known = {list(LANGUAGES)};
  const chosen = [linked, stored].find((each) => known.includes(each));
  const wanted = [chosen, ...navigator.languages.map((each) => each.slice(0, 2))];
  const language = wanted.find((each) => known.includes(each)) ?? '{DEFAULT}';
  document.documentElement.lang = language;
  if (chosen !== undefined) document.documentElement.dataset.chosenLanguage = chosen;
  return language;
}}
"""
"""JavaScript: a function from the language in a link, or null, to the page's: that one, else the one chosen earlier in
this browser, else the first of the browser's that the page has."""

KEEP_LANGUAGE = """
(language, ...others) => {
  try { localStorage.setItem('minigpt.language', language); } catch { /* no storage: chosen for now only */ }
  document.documentElement.lang = language;
  document.documentElement.dataset.chosenLanguage = language;
  return [language, ...others];
}
"""
"""JavaScript: keep the language that was chosen."""


def first_words(values: Mapping[str, object]) -> gr.I18n:
    """Return the words that Gradio may paint first, their placeholders filled in.

    Words with a placeholder that `values` does not fill are left out: Gradio's translator gives braces its own meaning.
    """
    return gr.I18n(
        **{
            language: {
                key: text.format(**values)
                for key, text in WORDS[language].items()
                if not key.startswith(("viewer.", "error.")) and placeholders(text) <= set(values)
            }
            for language in LANGUAGES
        }
    )


def placeholders(text: str) -> set[str]:
    """Return the names in braces."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


class Translated:
    """The components that have words.

    Attributes:
        components: The components to send words to when the language changes.
    """

    def __init__(self, values: Mapping[str, object]) -> None:
        """Start with no component; `values` fill the placeholders that stand in components' words."""
        self.components: list[Block] = []
        self._values = values
        self._i18n = first_words(values)
        self._keys: list[dict[str, str]] = []

    def make(self, component: type[Part], keys: dict[str, str], **options: Any) -> Part:  # noqa: ANN401
        """Make a component whose words follow the language.

        Args:
            component: Its class.
            keys: Property of the component to key of the words files, as in `{"label": "prompt.label"}`.
            **options: The component's other arguments.
        """
        made = component(**{name: self._i18n(key) for name, key in keys.items()}, **options)
        self.components.append(made)
        self._keys.append(keys)
        return made

    def updates(self, language: str, others: Mapping[Block, Mapping[str, Any]] | None = None) -> list[dict[str, Any]]:
        """Return one update for each of `components`, with its words in a language.

        Args:
            language: One of `LANGUAGES`.
            others: Other properties to set, by component.
        """
        others = others or {}
        return [
            gr.update(
                **{name: word(language, key, **self._values) for name, key in keys.items()},
                **others.get(component, {}),
            )
            for component, keys in zip(self.components, self._keys, strict=True)
        ]


def language_switch() -> gr.Radio:
    """Make the switch between the languages, each under its own name, so that it needs no translation."""
    return gr.Radio(
        [(name, language) for language, name in LANGUAGES.items()],
        value=DEFAULT,
        label="언어 · Language",
        show_label=False,
        container=False,
        elem_id="language",
        min_width=150,
    )
