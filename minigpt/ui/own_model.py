"""The controls for a model of one's own: the button that uploads it, and the place for the text it was trained on."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from minigpt.checkpoint import Checkpoint
from minigpt.errors import CheckpointError, CorpusError
from minigpt.formats.files import MOST_TEXT_BYTES, read_bytes
from minigpt.ui.language import Translated
from minigpt.ui.uploads import Mine, Received, discard, safe_name
from minigpt.ui.words import word


@dataclass(frozen=True, kw_only=True)
class VocabularyPart:
    """What appears when a model says nothing about its vocabulary.

    Attributes:
        panel: Holds the others; hidden at first.
        text: The training text, pasted.
        open: Opens the model with it.
        file: The training text as a file.
    """

    panel: gr.Group
    text: gr.Textbox
    open: gr.Button
    file: gr.UploadButton


def upload_button(translated: Translated) -> gr.UploadButton:
    """Make the button that uploads a model: one file, or several that belong together."""
    return translated.make(
        gr.UploadButton,
        {"label": "upload.button"},
        file_count="multiple",
        size="sm",
        min_width=0,
        elem_id="upload",
    )


def vocabulary_part(translated: Translated) -> VocabularyPart:
    """Make the place for the training text."""
    with gr.Group(visible=False, elem_id="vocabulary") as panel:
        text = translated.make(
            gr.Textbox,
            {"label": "vocabulary.text", "placeholder": "vocabulary.placeholder"},
            lines=3,
            max_lines=6,
            elem_id="vocabulary-text",
        )
        with gr.Row(elem_id="vocabulary-buttons"):
            small: dict[str, Any] = {"size": "sm", "min_width": 80}
            take = translated.make(gr.Button, {"value": "vocabulary.open"}, variant="primary", **small)
            file = translated.make(gr.UploadButton, {"label": "vocabulary.file"}, **small)
    return VocabularyPart(panel=panel, text=text, open=take, file=file)


ACTIVATIONS: dict[str, str] = {"relu": "ReLU", "gelu": "GELU", "gelu_tanh": "GELU (tanh)"}
"""What the activations are called, in every language."""


def activation_choice(translated: Translated) -> gr.Radio:
    """Make the choice of the activation, for a model whose file does not say it; hidden at first."""
    return translated.make(
        gr.Radio,
        {"label": "activation.label"},
        choices=[(name, activation) for activation, name in ACTIVATIONS.items()],
        visible=False,
        elem_id="activation",
    )


def activation_asked(ckpt: Checkpoint) -> dict[str, Any]:
    """Return how the choice of the activation stands for a visitor's model."""
    asked = "activation" in ckpt.assumed
    return {"visible": asked, "value": ckpt.config.activation if asked else None}


def assumed(language: str, ckpt: Checkpoint) -> list[str]:
    """Return what is to be said about a model of which something was only assumed; nothing for other models."""
    activation = ACTIVATIONS[ckpt.config.activation]
    return [word(language, "activation.assumed", activation=activation)] if "activation" in ckpt.assumed else []


def text_of(files: list[Received]) -> str:
    """Return the text in the first of the files that were received, and delete them.

    Raises:
        CorpusError: `corpus_not_text`.
        CheckpointError: `file_damaged` if nothing arrived or it is empty, `file_too_large` above `MOST_TEXT_BYTES`.
    """
    if not files:
        raise CheckpointError("file_damaged", path="–", reason="it did not arrive.")
    name = safe_name(files[0].name)
    try:
        return read_bytes(files[0].path, MOST_TEXT_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CorpusError("corpus_not_text", path=name, reason=f"{error}.") from error
    except CheckpointError as error:
        raise CheckpointError(error.code, **{**error.details, "path": name}) from error
    finally:
        discard(files)


def choice(language: str, mine: Mine) -> tuple[str, str]:
    """Return a visitor's model as the picker lists it: its label, and the key that stands for it."""
    return word(language, "upload.mine", name=mine.name), mine.key


def detected(language: str, mine: Mine) -> str:
    """Return what was found in a visitor's file, and how far its logits are from those of PyTorch's own attention."""
    ckpt = mine.ckpt
    return word(
        language,
        "upload.detected",
        layout=_layout(language, ckpt),
        tokenizer=_tokenizer(language, ckpt),
        difference=f"{mine.logit_difference:.1e}",
    )


def _layout(language: str, ckpt: Checkpoint) -> str:
    layout = ckpt.detected
    return word(language, f"upload.layout_{layout}")


def _tokenizer(language: str, ckpt: Checkpoint) -> str:
    kind = ckpt.tokenizer.to_dict()["type"]
    return word(language, f"upload.tokenizer_{kind}")
