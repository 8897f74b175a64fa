"""The viewer without the app: a page whose server is the test, and messages with attention that nobody computed."""

import json

import numpy as np
from playwright.sync_api import Page, expect

from minigpt import wire
from minigpt.analysis.scores import SCORES
from minigpt.ui.viewer import FOLDER, plotly_script
from minigpt.ui.words import starting_with
from tests.ui.viewing import Viewer

ADDRESS = "http://127.0.0.1:9"
"""Nothing listens there: every request is answered by the test."""
HTML = """
<!doctype html><html lang="en"><head><title>Viewer</title><link rel="icon" href="data:,"></head>
<body class="THEME">
<div id="prompt"><textarea></textarea></div><button id="generate">Generate</button><button id="stop">Stop</button>
<div id="viewer"></div>
<script src="/plotly.min.js"></script>
<script type="module">
  import { mount } from '/viewer/main.js';
  const watchers = {};
  const props = { value: null, words: WORDS, language: 'en' };
  window.triggered = [];
  window.send = (message) => { props.value = message; watchers.value(); };
  mount(document.querySelector('#viewer'), {
    props,
    trigger: (name) => window.triggered.push(name),
    watch: (name, callback) => { watchers[name] = callback; },
    server: { one_head: (...asked) => window.answer(asked) },
  }).then(() => { document.body.dataset.ready = 'yes'; });
</script></body></html>
"""


def softmax(scores):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def attention(n_layer, n_head, n_token, seed=3):
    """Return random causal attention: some heads sharp, some flat."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_layer, n_head, n_token, n_token)) * np.linspace(0.2, 4, n_head)[:, None, None]
    scores[..., ~np.tril(np.ones((n_token, n_token), bool))] = -np.inf
    return softmax(scores).astype(np.float32)


def message(pattern, *, start=0, name="alone", telling=None, prompt_length=None, largest=wire.LARGEST_MESSAGE):
    """Return an analysis of `a b c d …` with the given attention."""
    n_layer, n_head, n_token, _ = pattern.shape
    rng = np.random.default_rng(8)
    chances = -np.sort(-rng.dirichlet(np.ones(7), n_token)).astype(np.float32)
    end = start + n_token
    scores = {score: np.zeros((n_layer, n_head)) for score in SCORES}
    if telling is not None:
        scores["previous"][telling] = 0.9
    return wire.analysis(
        checkpoint={
            "name": name,
            "kind": "transformer",
            "n_layer": n_layer,
            "n_head": n_head,
            "n_embd": 8 * n_head,
            "block_size": n_token,
            "vocab_size": 26,
            "parameters": 1234,
            "tokenizer": "characters",
        },
        tokens={
            "ids": [position % 26 for position in range(start, end)],
            "start": start,
            "cropped": [position % 26 for position in range(start)],
            "prompt_length": end if prompt_length is None else prompt_length,
        },
        pieces={index: chr(ord("a") + index) for index in range(26)},
        checks={"logit_difference": 1e-6, "compared": n_token, "row_sum_error": 2e-7},
        scores=scores,
        next_id=np.tile(np.arange(7, dtype=np.int64), (n_token, 1)),
        next_probability=chances,
        taken_probability=np.append(chances[1:, 0], 0).astype(np.float32),
        taken_rank=np.append(np.zeros(n_token - 1, np.int64), -1),
        pattern=pattern,
        largest=largest,
    )


def generating(generated, prompt_length, *, done=False):
    return wire.generating(
        checkpoint="alone",
        generated=generated,
        pieces={token: chr(ord("a") + token) for token in generated},
        prompt_length=prompt_length,
        done=done,
        run={
            "branch": 1,
            "drawn": [0.5] * len(generated),
            "sampling": {"temperature": 1, "top_k": None, "top_p": None, "seed": 1, "length": 9},
        },
    )


def open_alone(page: Page, answer, *, theme: str = "") -> Viewer:
    """Open a page with nothing but the viewer; `answer(model, ids, layer, head)` plays the server."""
    html = HTML.replace("WORDS", json.dumps(starting_with("viewer."))).replace("THEME", theme)

    def serve(route, request):
        path = request.url.removeprefix(ADDRESS)
        if path == "/":
            route.fulfill(body=html, content_type="text/html")
        elif path == "/plotly.min.js":
            route.fulfill(path=plotly_script())
        else:
            route.fulfill(path=FOLDER / path.removeprefix("/viewer/"))

    page.route(f"{ADDRESS}/**", serve)
    page.expose_function("answer", lambda asked: answer(*asked))
    page.goto(ADDRESS)
    page.locator("body[data-ready]").wait_for()
    return Viewer(page)


def send(viewer, sent):
    viewer.page.evaluate("message => window.send(message)", sent)


def show(viewer, sent):
    """Send an analysis and wait until it is drawn."""
    send(viewer, sent)
    expect(viewer.root).to_have_attribute("data-shown", f"{sent['request']}:0:0")
