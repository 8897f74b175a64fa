"""The prompt and the examples under it."""

from dataclasses import dataclass

import gradio as gr

from minigpt.ui.language import Translated


@dataclass(frozen=True, kw_only=True)
class PromptPart:
    """The prompt's components.

    Attributes:
        box: What is typed.
        examples: Texts to click.
    """

    box: gr.Textbox
    examples: gr.Dataset


def prompt_part(translated: Translated, examples: list[str]) -> PromptPart:
    """Make the prompt, starting with the first example."""
    box = translated.make(
        gr.Textbox,
        {"label": "prompt.label", "placeholder": "prompt.placeholder"},
        value=examples[0] if examples else "",
        lines=3,
        max_lines=8,
        elem_id="prompt",
    )
    dataset = translated.make(
        gr.Dataset,
        {"label": "prompt.examples"},
        components=[gr.Textbox(visible=False, render=False)],
        samples=samples(examples),
        elem_id="examples",
    )
    return PromptPart(box=box, examples=dataset)


def samples(examples: list[str]) -> list[list[str]]:
    """Return examples as the rows that `gr.Dataset` takes."""
    return [[text] for text in examples]
