"""What a link brings to the page: a model, a text with what was generated after it, and the settings.

`assets/viewer/link.js` reads and writes the address; only this module decides what of it the page can use. Everything
in it comes from outside. What cannot be used is left out and told, and the page opens all the same.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from minigpt.checkpoint import Checkpoint
from minigpt.errors import CheckpointError, MiniGPTError, PromptError, wrong_type
from minigpt.generation import generate
from minigpt.ui import messages
from minigpt.ui.assets import FOLDER, served
from minigpt.ui.examples import examples_for
from minigpt.ui.messages import SAMPLING, Sampling
from minigpt.ui.models import Models
from minigpt.ui.words import LANGUAGES, sentences, word

LONGEST_TEXT = 20_000
"""Most characters of a text that comes in a link; `assets/viewer/link.js` writes no longer one."""
SETTINGS = ("length", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "count", "seed")
"""The settings of generation in the order of their controls."""

OPEN = """
async (_, ...others) => {
  const { openedLink } = await import(new URL('%s', document.baseURI).href);
  const { page, language } = await openedLink();
  return [(%s)(language), ...others.slice(0, -1), page];
}
"""
"""JavaScript before the page opens: its language first, what the link holds last. Takes `link.js` and a function."""

COPY = """
(...values) => {
  const names = %s;
  const detail = Object.fromEntries(names.map((name, index) => [name, values[index]]));
  document.dispatchEvent(new CustomEvent('minigpt:copy-link', { detail }));
}
"""
"""JavaScript: hand the values of the page's controls to the viewer, which writes the link. Takes their names."""


def opening(language_of: str) -> str:
    """Return the JavaScript that runs before the page opens.

    Args:
        language_of: JavaScript, a function from the language in the link, or null, to the one of the page.
    """
    return OPEN % (served(FOLDER / "link.js"), language_of)


@dataclass(kw_only=True)
class Opened:
    """What the page opens with.

    Attributes:
        model: The name of a model; None if there is none.
        text: The prompt.
        generated: The ids of what was generated after it.
        settings: The settings that the link has, by the names in `SETTINGS`.
        remarks: What was left out and why, one text for each language; None if nothing was.
        is_link: Whether there was a link at all.
    """

    model: str | None
    text: str
    generated: list[int] = field(default_factory=list[int])
    settings: dict[str, float] = field(default_factory=dict[str, float])
    remarks: dict[str, str] | None = None
    is_link: bool = False

    def drawn_with(self) -> tuple[Sampling, int]:
        """Return the settings that the generated text was drawn with, and how many tokens were asked for."""
        named = {name: self.settings.get(name) for name in SAMPLING}
        length = self.settings.get("length") or len(self.generated)
        return Sampling.from_controls(**named), min(max(1, int(length)), messages.LONGEST)


def opened(models: Models, link: object, model: str | None, text: str) -> Opened:
    """Return what the page opens with.

    Args:
        models: The models that a link may name: those of the folder.
        link: What `link.js` read from the address.
        model: The model that the page opens with otherwise.
        text: The prompt that it opens with otherwise.
    """
    page = Opened(model=model, text=text)
    if not isinstance(link, Mapping) or not link:
        return page
    given = cast(Mapping[str, object], link)
    page.is_link = True
    if given.get("broken"):
        page.remarks = {language: word(language, "link.broken") for language in LANGUAGES}
        return page
    problems: list[MiniGPTError] = []

    def attempt(take: Callable[[], None]) -> bool:
        try:
            take()
        except MiniGPTError as error:
            problems.append(error)
            return False
        return True

    named = attempt(lambda: _take_model(page, models, given.get("model")))
    try:
        ckpt = models.load(page.model)
    except MiniGPTError:  # the analysis says what is wrong with the model
        return page
    if named and page.model != model and ckpt.tokenizer.unknown(page.text):
        page.text = examples_for(ckpt.tokenizer)[0]
    read = attempt(lambda: _take_text(page, ckpt, given.get("text")))
    if named and read and "text" in given:
        attempt(lambda: _take_generated(page, ckpt, given.get("generated")))
    for name in SETTINGS:
        attempt(lambda name=name: _take_setting(page, ckpt, name, given.get(name)))
    if problems:
        said = [sentences(error) for error in problems]
        page.remarks = {
            language: " ".join([word(language, "link.partly"), *(each[language] for each in said)])
            for language in LANGUAGES
        }
    return page


def _take_model(page: Opened, models: Models, name: object) -> None:
    if name is None:
        return
    names = models.names()
    if name not in names:
        raise CheckpointError("unknown_model", name=str(name)[:80], choices=", ".join(names))
    page.model = cast(str, name)


def _take_text(page: Opened, ckpt: Checkpoint, text: object) -> None:
    if text is None:
        return
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise PromptError("text_too_long", most=LONGEST_TEXT)
    messages.some_ids(ckpt, text)
    page.text = text


def _take_generated(page: Opened, ckpt: Checkpoint, ids: object) -> None:
    if ids is not None:
        page.generated = messages.checked_ids(ckpt, ids, most=messages.LONGEST)


def _take_setting(page: Opened, ckpt: Checkpoint, name: str, value: object) -> None:
    """Take one setting, after asking generation itself whether it is one."""
    if value is None:
        return
    try:
        number = float(cast(str, value))
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise wrong_type(name.replace("_", "-"), value, "a number")
    if name == "length":
        messages.length_from_control(number)
    elif name == "count":
        messages.count_from_control(number)
    else:
        sampling = Sampling.from_controls(**{name: number})
        generate(
            ckpt,
            "",
            max_new_tokens=0,
            **sampling.options(),
        ).close()
    page.settings[name] = int(number) if number.is_integer() and name != "temperature" else number
