"""The viewer's place on the page: one `gr.HTML` that mounts `assets/viewer/main.js` and hands it messages.

Its addresses are relative, so that the page works below a sub-path as well.
"""

import os
from collections.abc import Callable
from typing import Any

import gradio as gr

from minigpt.ui.answers import Answers
from minigpt.ui.assets import FOLDER, plotly_script, served
from minigpt.ui.boundary import Message
from minigpt.ui.downloads import Wanted
from minigpt.ui.new_run import may_train
from minigpt.ui.words import starting_with

_MOUNT = """
const { mount } = await import(new URL('%s', document.baseURI).href);
// Events that the page listens to: 'analyze', 'leave_out', 'branch', 'copy_link', 'open_model'.
mount(element.querySelector('.viewer'), { props, trigger, watch, server });
"""


def viewer_host(answers: Answers, is_shared: Callable[[], bool]) -> gr.HTML:
    """Make the component; its value is the message shown last.

    Args:
        answers: Answers the viewer at once, past the queue, when it asks for one head at full resolution, for another
            window of the text, for what tokens were chosen from, for an analysis as a file, for what the tabs below the
            pictures want to know, for how a model was trained, for what an experiment came to, or for a training run.
            Anyone can call these with anything.
        is_shared: Says whether the page has a public address.
    """

    # The component takes these names as attributes, so they must not be those of others (`head` is one).
    def one_head(given: list[Any]) -> Message:
        model, ids, layer, head = (*given, None, None, None, None)[:4]
        return answers.head(model, ids, layer, head)

    def one_window(given: list[Any]) -> Message:
        model, ids = (*given, None, None)[:2]
        return answers.window(model, ids)

    def some_steps(given: list[Any]) -> Message:
        model, ids, first, sampling = (*given, None, None, None, None)[:4]
        return answers.steps(model, ids, first, sampling)

    def export_file(given: list[Any]) -> Message:
        model, ids, prompt_length, wanted = (*given, None, None, None, None)[:4]
        return answers.file(model, ids, prompt_length, Wanted.from_outside(wanted))

    def ask(given: list[Any]) -> Message:
        model, ids, question, options = (*given, None, None, None, None)[:4]
        return answers.question(model, ids, question, options)

    def training_run(given: list[Any]) -> Message:
        name, exactly = (*given, None, None)[:2]
        return answers.training(name, exactly=exactly is True)

    def training_moment(given: list[Any]) -> Message:
        name, step, text = (*given, None, None, None)[:3]
        return answers.moment(name, step, text)

    def experiment_results(given: list[Any]) -> Message:
        name, against = (*given, None, None)[:2]
        return answers.experiment(name, against)

    def train(given: list[Any], request: gr.Request) -> Message:
        act, values = (*given, None, None)[:2]
        allowed = may_train(os.environ, is_shared=is_shared(), request=request)
        return answers.train(act, values, allowed=allowed)

    functions = [one_head, one_window, some_steps, export_file, ask, training_run, training_moment]
    functions += [experiment_results, train]
    plotly = plotly_script()
    gr.set_static_paths([FOLDER, plotly])
    return gr.HTML(
        value=None,
        html_template='<div class="viewer"></div>',
        head=f'<script src="{served(plotly)}"></script>',
        js_on_load="(async () => {%s})();" % (_MOUNT % served(FOLDER / "main.js")),
        apply_default_css=False,
        elem_id="viewer",
        server_functions=functions,
        words=starting_with("viewer."),
        language="en",
        models=[],
        own_models=[],
        remarks=None,
    )
