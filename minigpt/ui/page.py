"""The page: its parts, and which of them asks for what.

What a listener needs comes from the browser with the request; only a model that a visitor brings is kept meanwhile.
The file is long because every listener stands beside the others, with the parts that it reads and writes in one order.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import gradio as gr
from gradio.blocks import Block
from gradio.components import Component
from gradio.themes import Base, Default
from gradio.utils import get_upload_folder

from minigpt.config import Activation
from minigpt.errors import MiniGPTError
from minigpt.exchange import UPLOAD_BYTES
from minigpt.ui.answers import Answers
from minigpt.ui.boundary import Message, notice_of
from minigpt.ui.controls import FIELDS, Controls, controls, running
from minigpt.ui.endpoints import add_endpoints
from minigpt.ui.examples import CANDIDATES, examples_for
from minigpt.ui.experiments import Experiments
from minigpt.ui.export_endpoint import add_export_endpoint
from minigpt.ui.language import KEEP_LANGUAGE, LANGUAGE_OF, Translated, first_words, language_switch
from minigpt.ui.links import COPY, SETTINGS, opened, opening
from minigpt.ui.messages import describe
from minigpt.ui.models import Models
from minigpt.ui.own_model import (
    VocabularyPart,
    activation_asked,
    activation_choice,
    assumed,
    choice,
    detected,
    text_of,
    upload_button,
    vocabulary_part,
)
from minigpt.ui.prompt import PromptPart, prompt_part, samples
from minigpt.ui.uploads import Mine, is_key, received
from minigpt.ui.viewer import viewer_host
from minigpt.ui.words import word

TITLE = "Mini GPT, head by head"
CSS = Path(__file__).with_name("page.css")
CONTINUATIONS = 2
"""Continuations that run at the same time; the others wait in line."""
MOST_WAITING = 64
RECEIVED_BYTES = 2 * UPLOAD_BYTES
"""Largest file that Gradio takes in, which knows only English: above what is opened, so that the page says no."""
SWEEP_SECONDS = 600
"""How often, and after which time, files that were received and never opened are deleted."""
FONTS = ["Pretendard", "Noto Sans KR", "Apple SD Gothic Neo", "Malgun Gothic", "system-ui", "sans-serif"]
MONOSPACE_FONTS = ["ui-monospace", "D2Coding", "Noto Sans Mono", "monospace"]

# A lower triangle of four rows. Inside the page, since a browser would ask for it outside a sub-path.
_ICON = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><rect width='16' height='16' rx='3' fill='#eef2ff'/>"
    "<path d='M2 2h3v3h-3zM5 8h3v3h-3zM11 11h3v3h-3z' fill='#4338ca'/>"
    "<path d='M2 5h6v3h-6zM2 8h3v3h-3zM8 8h3v3h-3zM2 11h9v3h-9z' fill='#a5b4fc'/></svg>"
)

# JavaScript: of what is shown, only the ids that were generated go back to the server.
_GENERATED = """
(shown, ...others) => {
  if (shown?.kind === 'generating') return [shown.generated, ...others];
  if (shown?.kind !== 'analysis') return [[], ...others];
  const { ids, cropped, prompt_length: promptLength } = shown.tokens;
  return [[...cropped, ...ids].slice(promptLength), ...others];
}
"""


def build_app(checkpoints_folder: Path | str | None = None, experiments_folder: Path | str | None = None) -> gr.Blocks:
    """Build the page.

    Args:
        checkpoints_folder: Where the models are, one folder each; by default the folder that the environment variable
            MINIGPT_CHECKPOINTS names, else `checkpoints` beside the package.
        experiments_folder: Where results of experiments are, one folder each; by default the folder that
            MINIGPT_EXPERIMENTS names, else `experiments` and `runs` beside the package.
    """
    return Page(Models(checkpoints_folder), Experiments(experiments_folder)).demo


def launch_options() -> dict[str, Any]:
    """Return how the page wants to be served: what `launch` and `gr.mount_gradio_app` take beside an address.

    Nothing that is typed is kept on the server or in the browser (no run history), and no font comes from the web.
    """
    return {
        "theme": theme(),
        "css_paths": [CSS],
        "head": f'<link rel="icon" href="data:image/svg+xml,{quote(_ICON)}">',
        "i18n": first_words(FIELDS),
        "footer_links": ["api", "gradio"],
        "max_file_size": RECEIVED_BYTES,
        "run_history": False,
        "ssr_mode": False,
    }


def theme() -> Base:
    """Return Gradio's default theme in indigo and slate, with fonts of the system and contrasts of at least 4.5 : 1."""
    return Default(primary_hue="indigo", neutral_hue="slate", font=FONTS, font_mono=MONOSPACE_FONTS).set(
        block_radius="10px",
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_300",
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_300",
        block_title_text_color="*neutral_700",
        block_title_text_color_dark="*neutral_200",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        button_primary_background_fill_dark="*primary_600",
        button_primary_background_fill_hover_dark="*primary_700",
    )


class Page:
    """The components of the page and their listeners.

    Attributes:
        demo: What `launch` serves.
    """

    def __init__(self, models: Models, experiments: Experiments | None = None) -> None:
        self.models = models
        self.answers = Answers(models, experiments)
        self.words = Translated(FIELDS)
        with gr.Blocks(
            title=TITLE, analytics_enabled=False, fill_width=True, delete_cache=(SWEEP_SECONDS, SWEEP_SECONDS)
        ) as self.demo:
            add_endpoints(models)  # first, so that their names are theirs
            add_export_endpoint(models)
            self._lay_out()
            self._listen()
        self.demo.queue(default_concurrency_limit=CONTINUATIONS, max_size=MOST_WAITING)

    def _lay_out(self) -> None:
        names = self.models.names()
        name = names[0] if names else None
        with gr.Row(elem_id="top", equal_height=True):
            self.words.make(gr.Markdown, {"value": "page.heading"}, elem_id="heading")
            with gr.Row(elem_id="choices", equal_height=True):
                self.model = self.words.make(
                    gr.Dropdown, {"label": "model.label"}, choices=names, value=name, elem_id="model", min_width=180
                )
                self.upload = upload_button(self.words)
                self.language = language_switch()
        self.model_info = gr.Markdown(elem_id="model-info")
        self.activation = activation_choice(self.words)
        self.vocabulary: VocabularyPart = vocabulary_part(self.words)
        with gr.Row(elem_id="inputs", equal_height=False):
            with gr.Column(scale=6, min_width=320):
                self.prompt: PromptPart = prompt_part(self.words, self._examples(name))
            with gr.Column(scale=5, min_width=320):
                self.controls: Controls = controls(self.words)
        self.viewer = viewer_host(self.answers, lambda: bool(self.demo.share))
        self.words.make(gr.Markdown, {"value": "page.caveat"}, elem_id="caveat")

    def _listen(self) -> None:
        buttons = [self.controls.generate, self.controls.stop]
        asked: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
        # Past Gradio's queue, in one request instead of two and a fifth faster; `Answers` takes turns itself.
        analysis: dict[str, Any] = {**asked, "queue": False}

        generation = self.controls.generate.click(
            self.generate,
            [self.language, self.model, self.prompt.box, *self.controls.settings],
            [self.viewer, *buttons, self.controls.seed],
            concurrency_id="continuation",
            concurrency_limit=CONTINUATIONS,
            **asked,
        )
        branching = cast(Any, self.viewer).branch(
            self.branch,
            [self.language, self.model, self.prompt.box],
            [self.viewer, *buttons, self.controls.seed],
            concurrency_id="continuation",
            **asked,
        )
        generations: list[Any] = [generation, branching]
        self.controls.stop.click(fn=None, cancels=generations, **asked).then(
            self.stop, [self.viewer, self.model, self.prompt.box], [self.viewer, *buttons], js=_GENERATED, **analysis
        )
        ends: dict[str, Any] = {**analysis, "cancels": generations}
        self.viewer.analyze(
            self.analyze, [self.model, self.prompt.box], [self.viewer, *buttons], trigger_mode="always_last", **ends
        )
        self.viewer.leave_out(
            self.leave_out, [self.model, self.prompt.box], [self.viewer, *buttons, self.prompt.box], **ends
        )
        self.prompt.examples.click(
            self.take_example,
            [self.model, self.prompt.examples],
            [self.viewer, *buttons, self.prompt.box],
            **ends,
        )
        self.model.input(
            self.choose_model,
            [self.language, self.model, self.prompt.box],
            [self.viewer, *buttons, self.prompt.box, self.prompt.examples, self.model_info, self.activation],
            **ends,
        )
        self.language.input(
            self.speak,
            [self.language, self.model],
            [self.viewer, self.model_info, *self.words.components],
            js=KEEP_LANGUAGE,
            **asked,
        )
        cast(Any, self.viewer).open_model(
            self.open_model,
            [self.language, self.prompt.box],
            [
                self.viewer,
                *buttons,
                self.prompt.box,
                self.prompt.examples,
                self.model_info,
                self.activation,
                self.model,
            ],
            **ends,
        )
        self._listen_to_uploads(ends)
        self.viewer.copy_link(
            fn=None,
            inputs=[self.model, self.prompt.box, *self.controls.settings],
            js=COPY % ["model", "text", *SETTINGS],
            **asked,
        )
        self.demo.load(
            self.open,
            [self.language, self.model, self.prompt.box, self.viewer],
            [self.viewer, self.language, self.model_info, *self.words.components],
            js=opening(LANGUAGE_OF),
            **analysis,
        )

    def _listen_to_uploads(self, ends: dict[str, Any]) -> None:
        given = [self.language, self.prompt.box]
        shown = [self.viewer, self.controls.generate, self.controls.stop, self.prompt.box, self.prompt.examples]
        shown += [self.model_info, self.activation]
        outputs = [*shown, self.model, self.vocabulary.panel, self.vocabulary.text]
        options: dict[str, Any] = {
            **ends,
            "queue": True,
            "concurrency_id": "uploads",
            "concurrency_limit": 1,
            "show_progress": "minimal",
            "show_progress_on": self.model_info,
        }
        # Without Gradio's preprocessing, which would leave an empty file behind for each that is received.
        self.upload.upload(self.bring, [self.upload, *given], [*outputs, self.upload], preprocess=False, **options)
        self.vocabulary.file.upload(
            self.bring_text_file,
            [self.vocabulary.file, *given],
            [*outputs, self.vocabulary.file],
            preprocess=False,
            **options,
        )
        self.vocabulary.open.click(self.bring_text, [self.vocabulary.text, *given], outputs, **options)
        self.activation.input(
            self.choose_activation,
            [self.activation, self.model, *given],
            [*shown, self.model],
            **options,
        )
        self.demo.unload(self.leave)

    # --- what the listeners do ---------------------------------------------------------------------------------------

    def analyze(self, model: str | None, text: str) -> tuple[Any, ...]:
        """Show what the heads do with a text; whatever was being generated has been cancelled."""
        return (self.answers.analysis(model, text), *running(False))

    def generate(
        self, language: str, model: str | None, text: str, *settings: float | None
    ) -> Iterator[tuple[Any, ...]]:
        """Stream a continuation of the prompt."""
        named: dict[str, float | None] = dict(zip(SETTINGS, settings, strict=True))
        yield from self._streamed(language, self.answers.continuation(model, text, named))

    def branch(self, language: str, model: str | None, text: str, event: gr.EventData) -> Iterator[tuple[Any, ...]]:
        """Stream another continuation of the prompt, which begins as the viewer says."""
        yield from self._streamed(language, self.answers.branch(model, text, event._data))  # pyright: ignore[reportPrivateUsage]

    def _streamed(self, language: str, messages: Iterator[Message]) -> Iterator[tuple[Any, ...]]:
        started = False
        for message in messages:
            if not started and message["kind"] == "generating":
                started = True
                seed = gr.update(info=word(language, "generation.seed_used", seed=message["seed"]))
                yield (message, *running(True), seed)
            else:
                yield (message, gr.skip(), gr.skip(), gr.skip())
        yield (gr.skip(), *running(False), gr.skip())

    def stop(self, generated: object, model: str | None, text: str) -> tuple[Any, ...]:
        """Show what the heads do with what had been generated when it was stopped."""
        return (self.answers.analysis_so_far(model, text, generated), *running(False))

    def leave_out(self, model: str | None, text: str) -> tuple[Any, ...]:
        """Take the characters that the model does not know out of the prompt."""
        with suppress(MiniGPTError):  # the analysis says what is wrong with the model
            text = self.models.load(model).tokenizer.without_unknown(text)
        return (*self.analyze(model, text), text)

    def take_example(self, model: str | None, example: list[str]) -> tuple[Any, ...]:
        """Make an example the prompt."""
        return (*self.analyze(model, example[0]), example[0])

    def choose_model(self, language: str, model: str | None, text: str) -> tuple[Any, ...]:
        """Look at the prompt with another model; an example that it cannot read gives way to one that it can."""
        examples = self._examples(model)
        # What is typed while the model loads must stay, so a prompt that is kept is not written again.
        prompt = cast(Any, gr.skip())
        if text in CANDIDATES and examples and text not in examples:
            prompt = text = examples[0]
        shown = self.analyze(model, text)
        asked = gr.update(**self._activation_asked(model))
        return (*shown, prompt, gr.update(samples=samples(examples)), self._model_info(language, model), asked)

    def choose_activation(
        self, activation: Activation, model: str, language: str, text: str, request: gr.Request
    ) -> tuple[Any, ...]:
        """Look at the prompt with the same parameters and another activation, which the model's file does not say."""
        session = _session(request)

        def opened() -> Mine:
            return self.models.uploads.choose_activation(session, model, activation)

        return self._show_mine(opened, session, language, text)[:-2]

    def open_model(self, language: str, text: str, event: gr.EventData, request: gr.Request) -> tuple[Any, ...]:
        """Look at the prompt with a model that came after the page was opened, such as one just trained."""
        name = str(event._data)  # pyright: ignore[reportPrivateUsage]
        message, *others = self.choose_model(language, name, text)
        viewer = gr.HTML(value=message, models=self.models.names())
        return (viewer, *others, gr.update(choices=self._choices(language, _session(request)), value=name))

    def bring(self, files: object, language: str, text: str, request: gr.Request) -> tuple[Any, ...]:
        """Open what was uploaded."""
        session = _session(request)

        def opened() -> Mine:
            return self.models.uploads.open(session, received(files, get_upload_folder()))

        return (*self._show_mine(opened, session, language, text), gr.update(value=None))

    def bring_text_file(self, file: object, language: str, text: str, request: gr.Request) -> tuple[Any, ...]:
        """Open the model that waits for its vocabulary, with a training text that was uploaded."""
        session = _session(request)

        def opened() -> Mine:
            return self.models.uploads.open_with(session, text_of(received(file, get_upload_folder())))

        return (*self._show_mine(opened, session, language, text), gr.update(value=None))

    def bring_text(self, training_text: str, language: str, text: str, request: gr.Request) -> tuple[Any, ...]:
        """Open the model that waits for its vocabulary, with a training text that was pasted."""
        session = _session(request)
        return self._show_mine(lambda: self.models.uploads.open_with(session, training_text), session, language, text)

    def _show_mine(self, opened: Callable[[], Mine], session: str, language: str, text: str) -> tuple[Any, ...]:
        """Look at the prompt with a model of the visitor's own, or say why not and leave what is shown."""
        try:
            mine = opened()
        except Exception as error:
            panel = gr.update(visible=self.models.uploads.is_waiting(session))
            same = cast(Any, gr.skip())
            return (notice_of(error), *running(False), same, same, same, same, same, panel, same)
        picker = gr.update(choices=self._choices(language, session), value=mine.key)
        message, *others = self.choose_model(language, mine.key, text)
        # Their keys go to this page alone: whoever has one can look at the model.
        own = [[each.key, each.name] for each in self.models.uploads.of(session)]
        viewer = gr.HTML(value=message, own_models=own)
        return (viewer, *others, picker, gr.update(visible=False), "")

    def leave(self, request: gr.Request) -> None:
        """Forget what a visitor brought who closes the page."""
        self.models.uploads.forget(_session(request))

    def speak(self, language: str, model: str | None, request: gr.Request) -> list[Any]:
        """Say everything in another language."""
        choices = self._choices(language, _session(request))
        asked = self._activation_asked(model)
        words = self.words.updates(language, {self.model: {"choices": choices}, self.activation: asked})
        return [gr.HTML(language=language), self._model_info(language, model), *words]

    def open(self, language: str, model: str | None, text: str, link: object) -> list[Any]:
        """Show the first picture, that of the link if there is one, in the browser's language."""
        page = opened(self.models, link, model, text)
        message = self.answers.analysis_so_far(page.model, page.text, page.generated, page.drawn_with())
        viewer = gr.HTML(value=message, language=language, models=self.models.names(), remarks=page.remarks)
        others: dict[Block, dict[str, Any]] = {self.model: {"choices": self.models.names()}}
        parts: list[Component] = [self.model, self.prompt.box, *self.controls.settings]
        values = [page.model, page.text, *(page.settings.get(name) for name in SETTINGS)]
        for part, value in zip(parts, values, strict=True):
            if page.is_link and value is not None:
                others.setdefault(part, {})["value"] = value
        if page.model != model:
            others[self.prompt.examples] = {"samples": samples(self._examples(page.model))}
        words = self.words.updates(language, others)
        return [viewer, language, self._model_info(language, page.model), *words]

    # --- what is said about a model -----------------------------------------------------------------------------------

    def _examples(self, model: str | None) -> list[str]:
        try:
            return examples_for(self.models.load(model).tokenizer)
        except MiniGPTError:
            return []

    def _model_info(self, language: str, model: str | None) -> str:
        try:
            ckpt = self.models.load(model)
        except MiniGPTError:
            return ""
        info = {**describe(ckpt), "parameters": f"{ckpt.parameters:,}"}
        said = [word(language, "model.info", **info), *assumed(language, ckpt)]
        loss: object = ckpt.training.get("validation_loss")
        if isinstance(loss, float):
            said.append(word(language, "model.loss", loss=f"{loss:.3f}"))
        if model and is_key(model):
            said.append(detected(language, self.models.uploads.find(model)))
        return " · ".join(said)

    def _activation_asked(self, model: str | None) -> dict[str, Any]:
        """Return how the choice of the activation stands: only a visitor's model can be given another."""
        with suppress(MiniGPTError):
            if model and is_key(model):
                return activation_asked(self.models.load(model))
        return {"visible": False}

    def _choices(self, language: str, session: str) -> list[tuple[str, str]]:
        own = [choice(language, mine) for mine in self.models.uploads.of(session)]
        return [*((name, name) for name in self.models.names()), *own]


def _session(request: gr.Request) -> str:
    return request.session_hash or ""
