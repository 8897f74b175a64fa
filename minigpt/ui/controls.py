"""Generate, Stop, and how tokens are drawn."""

from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component

from minigpt.exchange import UPLOAD_BYTES
from minigpt.generation import MOST_CONTINUATIONS
from minigpt.ui.language import Translated
from minigpt.ui.links import SETTINGS
from minigpt.ui.messages import FRESH, LONGEST

VALUES = {
    "temperature": (0.8, 0.1),
    "top_k": (0, 1),
    "top_p": (1, 0.05),
    "length": (120, 10),
    "seed": (FRESH, 1),
    "min_p": (0, 0.05),
    "repetition_penalty": (1, 0.1),
    "count": (1, 1),
}
"""What each setting is at first, and its step, in the order in which they stand on the page. `length` is how many
tokens to append, `count` how many continuations are written side by side; `messages.Sampling` knows the others."""
ALWAYS_SHOWN = 5
"""How many of them are shown without opening the rest."""


@dataclass(frozen=True, kw_only=True)
class Controls:
    """The components of generation.

    Attributes:
        generate: Starts from the prompt.
        stop: Ends what is running.
        numbers: The settings by name.
    """

    generate: gr.Button
    stop: gr.Button
    numbers: dict[str, gr.Number]

    @property
    def seed(self) -> gr.Number:
        """The setting that says which seed was used last."""
        return self.numbers["seed"]

    @property
    def settings(self) -> list[Component]:
        """The settings in the order of `minigpt.ui.links.SETTINGS`, which holds their names."""
        return [self.numbers[name] for name in SETTINGS]


def controls(translated: Translated) -> Controls:
    """Make the controls."""
    with gr.Row(elem_id="buttons"):
        generate = translated.make(
            gr.Button, {"value": "generation.generate"}, variant="primary", elem_id="generate", min_width=80
        )
        stop = translated.make(
            gr.Button,
            {"value": "generation.stop"},
            variant="secondary",
            interactive=False,
            elem_id="stop",
            min_width=80,
        )
    names = list(VALUES)
    with gr.Row(elem_id="settings"):
        numbers = {name: _number(translated, name) for name in names[:ALWAYS_SHOWN]}
    with (
        translated.make(gr.Accordion, {"label": "generation.more"}, open=False, elem_id="more"),
        gr.Row(elem_id="more-settings"),
    ):
        numbers |= {name: _number(translated, name) for name in names[ALWAYS_SHOWN:]}
    return Controls(generate=generate, stop=stop, numbers=numbers)


def _number(translated: Translated, name: str) -> gr.Number:
    value, step = VALUES[name]
    keys = {"label": f"generation.{name}", "info": f"generation.{name}_info"}
    # No minimum and maximum: Gradio would refuse in English only; the page says itself what is allowed.
    return translated.make(gr.Number, keys, value=value, step=step, min_width=80, elem_id=name.replace("_", "-"))


def running(is_running: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the updates of Generate and Stop while something runs, or does not."""
    return gr.update(interactive=not is_running), gr.update(interactive=is_running)


FIELDS = {"most": LONGEST, "continuations": MOST_CONTINUATIONS, "upload": f"{UPLOAD_BYTES >> 30} GiB"}
"""What stands in the placeholders of the controls' words."""
