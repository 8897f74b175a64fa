"""An experiment as one page that opens without a network: curves, table, samples, and attention side by side."""

import html
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from minigpt.analysis.patterns import trace
from minigpt.checkpoint import Checkpoint
from minigpt.experiments import COLUMNS, Record, Row, table, verdicts
from minigpt.figures import attention_grid
from minigpt.figures_parts import HOVER
from minigpt.presets import Experiment

COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#9d755d", "#e45756")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
STYLE = """
body { max-width: 1200px; margin: 24px auto; padding: 0 16px; font: 16px/1.5 system-ui, sans-serif; color: #141b29; }
table { border-collapse: collapse; } td, th { padding: 4px 14px; border-bottom: 1px solid #dfe5ee; text-align: right; }
td:first-child, th:first-child { text-align: left; } pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 16px; }
"""


def loss_curves(records: Sequence[Record]) -> go.Figure:
    """Draw each variant's validation loss over the steps: the mean over its seeds, and each run as a faint line.

    Args:
        records: What the runs came to.
    """
    figure = go.Figure()
    variants = list(dict.fromkeys(record.variant for record in records))
    for index, variant in enumerate(variants):
        runs = [record for record in records if record.variant == variant]
        line = {"color": COLOURS[index % len(COLOURS)], "dash": DASHES[index % len(DASHES)]}
        for run in runs:
            figure.add_scatter(
                x=[step for step, _, _ in run.history],
                y=[loss for _, _, loss in run.history],
                mode="lines",
                line={**line, "width": 1},
                opacity=0.4,
                showlegend=False,
                customdata=[f"{variant}, seed {run.seed}, step {step}: {loss:.4f}" for step, _, loss in run.history],
                hovertemplate=HOVER,
            )
        steps = [step for step, _, _ in runs[0].history]
        means = [sum(run.history[place][2] for run in runs) / len(runs) for place in range(len(steps))]
        figure.add_scatter(
            x=steps,
            y=means,
            mode="lines+markers",
            name=variant,
            line={**line, "width": 2.5},
            customdata=[f"{variant}, mean, step {step}: {loss:.4f}" for step, loss in zip(steps, means, strict=True)],
            hovertemplate=HOVER,
        )
    figure.update_layout(
        template="plotly_white",
        xaxis_title="step",
        yaxis_title="validation loss, nats per token",
        height=420,
        margin={"t": 20},
    )
    return figure


def report(experiment: Experiment, records: Sequence[Record], models: Mapping[str, Checkpoint]) -> str:
    """Return the page.

    Args:
        experiment: Which it was.
        records: What its runs came to.
        models: The model of one seed of each variant.
    """
    rows = table(experiment, records)
    parts = [
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{html.escape(experiment.name)}</title>",
        f"<style>{STYLE}</style><h1>{html.escape(experiment.name)}</h1><p>{html.escape(experiment.question)}</p>",
        loss_curves(records).to_html(full_html=False, include_plotlyjs=True),
        "<p>Thin lines are single runs, thick ones the mean over the seeds.</p>",
        _table(rows),
        "<ul>" + "".join(f"<li>{html.escape(sentence)}</li>" for sentence in verdicts(rows)) + "</ul>",
        "<h2>What they write</h2><div class='beside'>",
    ]
    for row in rows:
        record = next(record for record in records if record.variant == row.variant)
        parts.append(
            f"<div><h3>{html.escape(row.variant)}</h3><pre>{html.escape(record.prompt + record.sample)}</pre></div>"
        )
    parts.append("</div><h2>What their heads look at</h2><p>Attention is not explanation.</p>")
    for row in rows:
        if row.variant in models:
            prompt = next(record.prompt for record in records if record.variant == row.variant)
            figure = attention_grid(trace(models[row.variant], prompt))
            parts.append(f"<h3>{html.escape(row.variant)}</h3>")
            parts.append(figure.to_html(full_html=False, include_plotlyjs=False))
    return "\n".join(parts) + "</html>\n"


def _table(rows: Sequence[Row]) -> str:
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row.cells())}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
