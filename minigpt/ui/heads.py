"""What the tab "Heads" asks: every head's scores, each beside those of an untrained model."""

from minigpt.analysis.head_finder import find_heads, probe_heads, probe_texts
from minigpt.analysis.head_tables import read_table
from minigpt.ui.asking import Asked

SAMPLES = 20
"""Samples of the probe, as `probe_heads` takes them by itself."""


def scored(asked: Asked) -> dict[str, object]:
    """Answer the scores on this text, or on the standard probe; those of a checkpoint that has them at hand at once."""
    ckpt = asked.ckpt
    if asked.one_of("source", ("text", "probe")) == "text":
        asked.check_work(2)
        table = find_heads(ckpt, asked.ids)
    else:
        table = read_table(ckpt)
        if table is None:
            length = len(probe_texts(ckpt.config, 1, 0)[0])
            asked.check_work(-(-2 * SAMPLES * length // len(asked.ids)))
            table = probe_heads(ckpt, samples=SAMPLES)
    return {
        "source": table.source,
        "names": list(table.scores),
        "scores": {name: values.numpy() for name, values in table.scores.items()},
        "untrained": {name: values.numpy() for name, values in table.baseline.items()},
        "counted": dict(table.counted),
    }
