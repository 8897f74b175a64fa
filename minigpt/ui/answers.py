"""What the page's listeners ask for: messages in answer to the name of a model and a text.

Every answer is a message for the viewer, also when something is wrong: then it is a notice.
"""

import threading
from collections.abc import Iterator, Mapping

from minigpt import wire
from minigpt.config import is_index
from minigpt.errors import ConfigError
from minigpt.ui import messages, steps
from minigpt.ui.asking import Asked, answer
from minigpt.ui.boundary import Message, or_last_notice, or_notice
from minigpt.ui.downloads import Wanted, download
from minigpt.ui.experiments import Experiments
from minigpt.ui.learning import Runs
from minigpt.ui.messages import SAMPLING, Sampling
from minigpt.ui.models import Models
from minigpt.ui.questions import QUESTIONS
from minigpt.ui.trainer import Trainer
from minigpt.ui.views import view

AT_ONCE = 2
"""Analyses that run at the same time; the others wait for their turn."""
LONGEST_TEXT = 100_000
"""Most tokens of a text that is exported."""


class Answers:
    """Answers about the models of one folder, and about experiments."""

    def __init__(self, models: Models, experiments: Experiments | None = None) -> None:
        self.models = models
        self.runs = Runs(models)
        self.experiments = experiments or Experiments()
        self.trainer = Trainer(models)
        self._turns = threading.BoundedSemaphore(AT_ONCE)

    @or_notice
    def analysis(self, model: str | None, text: str) -> Message:
        """Analyse a text."""
        with self._turns:
            return messages.analysis(self.models.load(model), text)

    @or_notice
    def analysis_so_far(
        self, model: str | None, text: str, generated: object, drawn_with: tuple[Sampling, int] | None = None
    ) -> Message:
        """Analyse a prompt with what has been generated after it, whose ids come from the browser.

        Args:
            model: The name of the model.
            text: The prompt.
            generated: The ids.
            drawn_with: For what comes from a link: the settings, and how many tokens were asked for.
        """
        with self._turns:
            ckpt = self.models.load(model)
            ids = ckpt.tokenizer.encode(text)
            appended = messages.checked_ids(ckpt, generated, most=messages.LONGEST)
            message = messages.analysis_of(ckpt, [*ids, *appended], prompt_length=len(ids))
            message = messages.read_as(ckpt, text, message)
            run = drawn_with and messages.run_before(ckpt, [*ids, *appended], len(ids), *drawn_with)
            return {**message, "run": run} if run else message

    @or_notice
    def head(self, model: object, ids: object, layer: object, head: object) -> Message:
        """Return one head at full resolution; everything comes from the browser."""
        with self._turns:
            return messages.one_head(self.models.load(str(model)), ids, layer, head)

    @or_notice
    def window(self, model: object, ids: object) -> Message:
        """Analyse one window; everything comes from the browser."""
        with self._turns:
            return steps.window(self.models.load(str(model)), ids)

    @or_notice
    def steps(self, model: object, ids: object, first: object, sampling: object) -> Message:
        """Say what some tokens were chosen from; everything comes from the browser."""
        with self._turns:
            return steps.steps(self.models.load(str(model)), ids, first, sampling)

    @or_notice
    def question(self, model: object, ids: object, question: object, options: object) -> Message:
        """Answer a further question; everything comes from the browser."""
        with self._turns:

            def asked() -> Asked:
                return Asked.from_outside(self.models.load, model, ids, options)

            return view(asked()) if question == "view" else answer(QUESTIONS, question, asked)

    @or_notice
    def training(self, name: object, *, exactly: bool) -> Message:
        """Describe how a model was trained; where not exactly that one is meant, rather one with snapshots."""
        with self._turns:
            return self.runs.one(name) if exactly else self.runs.training(name)

    @or_notice
    def moment(self, name: object, step: object, text: object) -> Message:
        """Say what a model did with a text at a step of its training; everything comes from the browser."""
        with self._turns:
            return self.runs.moment(name, step, text)

    @or_notice
    def experiment(self, name: object, against: object) -> Message:
        """Say what an experiment came to; everything comes from the browser."""
        with self._turns:
            return self.experiments.results(name, against)

    @or_notice
    def train(self, act: object, given: object, *, allowed: bool) -> Message:
        """Start, stop or resume a training run, or say how it stands; everything comes from the browser.

        Args:
            act: See `Trainer.act` for this and the next.
            given: What it is about.
            allowed: Whether who asks may train here; else the answer is that, or a notice.
        """
        if not allowed and act == "state":
            return wire.answer("train", {"allowed": False})
        if not allowed:
            raise ConfigError("train_off")
        return wire.answer("train", {"allowed": True, **self.trainer.act(act, given)})

    @or_last_notice
    def branch(self, model: str | None, text: str, asked: object) -> Iterator[Message]:
        """Yield another continuation of a text, which begins with tokens that the browser names."""
        ckpt = self.models.load(model)
        number, given, sampling, length = steps.branch_of(ckpt, asked)
        yield from messages.continuation(ckpt, text, length, sampling, given=given, branch=number)

    @or_notice
    def file(self, model: object, ids: object, prompt_length: object, wanted: Wanted) -> Message:
        """Return an analysis as a file; everything comes from the browser."""
        with self._turns:
            ckpt = self.models.load(str(model))
            checked = messages.checked_ids(ckpt, ids, most=LONGEST_TEXT)
            generated_from = prompt_length if is_index(prompt_length, len(checked)) else None
            made = download(self.models, ckpt, checked, wanted, prompt_length=generated_from)
            return wire.file(made.name, made.media_type, made.content)

    @or_last_notice
    def continuation(
        self,
        model: str | None,
        text: str,
        settings: Mapping[str, float | None],
    ) -> Iterator[Message]:
        """Yield what is generated after a text, with settings as the controls hold them."""
        sampling = Sampling.from_controls(**{name: settings.get(name) for name in SAMPLING})
        count = messages.count_from_control(settings.get("count"))
        length = messages.length_from_control(settings.get("length"))
        yield from messages.continuation(self.models.load(model), text, length, sampling, count=count)
