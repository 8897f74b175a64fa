"""The two pages that `benchmarks.page` measures, each with one button for another analysis: `SIDE SHAPE PORT`."""

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import gradio as gr
import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from minigpt import wire
from minigpt.analysis.patterns import trace_ids
from minigpt.analysis.scores import SCORES
from minigpt.checkpoint import Checkpoint, load_checkpoint
from minigpt.figures import colour_axis
from minigpt.generation import generate
from minigpt.ui.answers import Answers
from minigpt.ui.models import Models
from minigpt.ui.viewer import viewer_host

CHECKPOINT = Path(__file__).resolve().parents[1] / "checkpoints" / "shakespeare"
DIFFERENT = 3
"""Analyses that take turns, so that no two in a row are equal."""


class Shown(NamedTuple):
    """What one analysis shows: weights (layer, head, query, key), and the tokens."""

    pattern: np.ndarray
    ids: list[int]


def attention(ckpt: Checkpoint, n_layer: int, n_head: int, n_token: int) -> Iterator[Shown]:
    """Yield attention as trained heads have it: of the shipped model, on texts of its own, as many as it takes."""
    heads: list[np.ndarray] = []
    for seed in itertools.count():
        steps = generate(ckpt, "\n", max_new_tokens=n_token - 1, temperature=0.8, seed=seed)
        ids = [*ckpt.tokenizer.encode("\n"), *(step.token_id for step in steps)]
        heads.extend(trace_ids(ckpt, ids).pattern.flatten(0, 1).numpy())
        if len(heads) >= n_layer * n_head:
            pattern = np.stack(heads[: n_layer * n_head]).reshape(n_layer, n_head, n_token, n_token)
            yield Shown(pattern, ids)
            heads.clear()


def analysis(ckpt: Checkpoint, pattern: np.ndarray, ids: list[int]) -> wire.AnalysisMessage:
    """Return the message that the real page sends for this attention."""
    n_layer, n_head, n_token, _ = pattern.shape
    rng = np.random.default_rng(1)
    chances = -np.sort(-rng.dirichlet(np.ones(10), n_token)).astype(np.float32)
    return wire.analysis(
        checkpoint={
            "name": "benchmark",
            "kind": "transformer",
            "n_layer": n_layer,
            "n_head": n_head,
            "n_embd": ckpt.config.n_embd,
            "block_size": n_token,
            "vocab_size": ckpt.config.vocab_size,
            "parameters": 0,
            "tokenizer": "characters",
        },
        tokens={"ids": ids, "start": 0, "cropped": [], "prompt_length": n_token},
        pieces={each: ckpt.tokenizer.piece(each) for each in range(ckpt.config.vocab_size)},
        checks={"logit_difference": 0.0, "compared": n_token, "row_sum_error": 0.0},
        scores={name: rng.random((n_layer, n_head)) for name in SCORES},
        next_id=np.tile(np.arange(10), (n_token, 1)),
        next_probability=chances,
        taken_probability=chances[:, 0],
        taken_rank=np.zeros(n_token, np.int64),
        pattern=pattern,
    )


def byte_of(weights: np.ndarray) -> np.ndarray:
    """Return weights as one byte each, the square root keeping the small ones."""
    return np.round(255 * np.sqrt(weights)).astype(np.uint8)


def grid(pattern: np.ndarray, turn: int) -> go.Figure:
    """Return one figure with a heatmap for every head."""
    n_layer, n_head = pattern.shape[:2]
    figure = make_subplots(n_layer, n_head, horizontal_spacing=0.1 / n_head, vertical_spacing=0.1 / n_layer)
    for layer, head in itertools.product(range(n_layer), range(n_head)):
        heatmap = go.Heatmap(z=byte_of(pattern[layer, head]), coloraxis="coloraxis")
        figure.add_trace(heatmap, row=layer + 1, col=head + 1)
    return plain(figure, turn)


def single(pattern: np.ndarray, turn: int) -> go.Figure:
    """Return one head's figure."""
    return plain(go.Figure(go.Heatmap(z=byte_of(pattern), coloraxis="coloraxis")), turn)


def plain(figure: go.Figure, turn: int) -> go.Figure:
    """Give a figure the page's colours, its size and no labels; `meta` tells the browser which one it is."""
    figure.update_xaxes(showticklabels=False)
    figure.update_yaxes(showticklabels=False, autorange="reversed")
    scale = colour_axis() | {"cmin": 0, "cmax": 255}
    return figure.update_layout(coloraxis=scale, meta=turn, width=1300, height=900)


def viewer_page(ckpt: Checkpoint, shown: list[Shown]) -> gr.Blocks:
    """Return a page with the real viewer."""
    turns = itertools.count(1)
    with gr.Blocks(title="Viewer") as demo:
        button = gr.Button("Next", elem_id="next")
        viewer = viewer_host(Answers(Models()), lambda: True)  # every head has come already

        def bring() -> wire.AnalysisMessage:
            return analysis(ckpt, *shown[next(turns) % len(shown)])

        button.click(bring, outputs=viewer, show_progress="hidden")
        demo.load(bring, outputs=viewer, show_progress="hidden")
    return demo


def plot_page(shown: list[Shown]) -> gr.Blocks:
    """Return a page with the obvious way: one `gr.Plot` for the heads, redrawn for everything."""
    turns: Iterator[int] = itertools.count(1)
    with gr.Blocks(title="gr.Plot") as demo:
        next_button = gr.Button("Next", elem_id="next")
        head_button = gr.Button("Head", elem_id="head")
        plot = gr.Plot(elem_id="plot")

        def bring() -> go.Figure:
            turn = next(turns)
            return grid(shown[turn % len(shown)].pattern, turn)

        def bring_head() -> go.Figure:
            turn = next(turns)
            pattern = shown[turn % len(shown)].pattern
            return single(pattern[turn % pattern.shape[0], turn % pattern.shape[1]], turn)

        next_button.click(bring, outputs=plot, show_progress="hidden")
        head_button.click(bring_head, outputs=plot, show_progress="hidden")
    return demo


def main(side: str, shape: str, port: str) -> None:
    """Serve one page until the process is ended."""
    n_layer, n_head, n_token = (int(size) for size in shape.split("x"))
    ckpt = load_checkpoint(CHECKPOINT)
    shown = list(itertools.islice(attention(ckpt, n_layer, n_head, n_token), DIFFERENT))
    page = viewer_page(ckpt, shown) if side == "viewer" else plot_page(shown)
    page.launch(server_port=int(port), run_history=False, ssr_mode=False, quiet=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
