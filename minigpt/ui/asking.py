"""The further questions below the pictures: what is asked, about which text, and which function answers.

A question is a name, the tokens that the model sees, and options; everything comes from the browser and is checked.
Positions count from the first of these tokens. Answers are plain values with everything in them that is drawn; nothing
is remembered.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from minigpt import wire
from minigpt.checkpoint import Checkpoint
from minigpt.config import is_index, is_number
from minigpt.errors import PromptError, wrong_type
from minigpt.ui.messages import checked_ids, pieces

MOST_WORK = 5 * 10**11
"""Most parameters × tokens × forward passes that one question may take: some seconds."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question about a text.

    Attributes:
        ckpt: The model.
        ids: The tokens that the model sees, at least one.
        options: Whatever else the browser sent.
        load: Returns another model by its name.
    """

    ckpt: Checkpoint
    ids: list[int]
    options: Mapping[str, object]
    load: Callable[[str], Checkpoint]

    @classmethod
    def from_outside(cls, load: Callable[[str], Checkpoint], model: object, ids: object, options: object) -> "Asked":
        """Read what came from the browser.

        Args:
            load: Returns a model by its name.
            model: The name of the one that is asked about.
            ids: The tokens that it sees.
            options: What else is asked.

        Raises:
            PromptError: `empty_prompt` or `tokens_out_of_range`.
        """
        ckpt = load(str(model))
        checked = checked_ids(ckpt, ids, most=ckpt.config.block_size)
        if not checked:
            raise PromptError("empty_prompt")
        given: Mapping[str, object] = cast(Mapping[str, object], options) if isinstance(options, dict) else {}
        return cls(ckpt=ckpt, ids=checked, options=given, load=load)

    def index(self, name: str, length: int, default: int | None = None) -> int:
        """Return an option that is a whole number from 0 to `length - 1`.

        Raises:
            PromptError: `wrong_type`.
        """
        value = self.options.get(name, default)
        if not is_index(value, length):
            raise wrong_type(name, value, f"a whole number from 0 to {length - 1}")
        return value

    def position(self) -> int:
        """Return the index of the chosen token; the last one if none is chosen."""
        return self.index("position", len(self.ids), len(self.ids) - 1)

    def head(self) -> tuple[int, int]:
        """Return the chosen head's layer and place."""
        config = self.ckpt.config
        return self.index("layer", config.n_layer), self.index("head", config.n_head)

    def token(self) -> int | None:
        """Return the id of the token that is asked about; None for the one that follows."""
        if self.options.get("token") is None:
            return None
        return self.index("token", self.ckpt.config.vocab_size)

    def one_of(self, name: str, choices: tuple[str, ...]) -> str:
        """Return an option that is one of a few words; the first if it is missing.

        Raises:
            PromptError: `wrong_type`.
        """
        value = self.options.get(name, choices[0])
        if not isinstance(value, str) or value not in choices:
            raise wrong_type(name, value, ", ".join(choices))
        return value

    def number(self, name: str, low: float, high: float, default: float) -> float:
        """Return an option that is a number.

        Raises:
            PromptError: `wrong_type`.
        """
        value = self.options.get(name, default)
        if not is_number(value) or not low <= value <= high:
            raise wrong_type(name, value, f"a number from {low:g} to {high:g}")
        return value

    def check_work(self, passes: int) -> None:
        """Refuse what would take long.

        Raises:
            PromptError: `too_much_work`.
        """
        if self.ckpt.parameters * len(self.ids) * passes > MOST_WORK:
            raise too_much(self.ckpt, len(self.ids))

    def pieces(self, ids: set[int]) -> dict[int, str]:
        """Return the text of each id."""
        return pieces(self.ckpt, ids)


Answer = Callable[[Asked], Mapping[str, object]]


def answer(questions: Mapping[str, Answer], question: object, asked: Callable[[], Asked]) -> wire.AnswerMessage:
    """Answer a question.

    Args:
        questions: What can be asked.
        question: One of the names.
        asked: Reads what it is about; only called if there is such a question.

    Raises:
        PromptError: If there is no such question, or something else than it needs comes in.
    """
    if not isinstance(question, str) or question not in questions:
        raise wrong_type("question", question, ", ".join(questions))
    return wire.answer(question, questions[question](asked()))


def too_much(ckpt: Checkpoint, tokens: int) -> PromptError:
    """Return the error that an answer would take too long, or too much to send."""
    return PromptError("too_much_work", parameters=f"{ckpt.parameters:,}", tokens=tokens)
