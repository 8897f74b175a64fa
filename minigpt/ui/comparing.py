"""What the tab "Compare" asks: a head beside itself or another, on another text, in another model, or changed."""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from minigpt.analysis.ablation import what_if
from minigpt.analysis.compare import compare_traces, head_distances
from minigpt.analysis.patterns import Trace, trace_ids
from minigpt.checkpoint import Checkpoint
from minigpt.errors import wrong_type
from minigpt.ui.asking import Asked, too_much
from minigpt.ui.messages import checked_head, some_ids
from minigpt.ui.what_if import intervention_of

LONGEST_TEXT = 20_000
"""Most characters of the other text."""
MOST_SLOTS = 640
"""Most places on the common axis."""
MOST_CELLS = 2**24
"""Most cells of all heads for which every head's distance is computed."""


def compared(asked: Asked) -> dict[str, object]:
    """Answer the weights of two heads on common axes, and how far every head is from its like.

    Options: `layer` and `head`; `other_layer` and `other_head` (missing: the same); `text` (missing: this one); `model`
    (missing: this one); `change` (missing: none). Where another model has no such head, only its `shape` is answered.
    """
    layer, head = asked.head()
    first, second, other = _both(asked)
    n_layer, n_head = other.config.n_layer, other.config.n_head
    if "other_layer" not in asked.options and (layer >= n_layer or head >= n_head):
        return {"shape": [n_layer, n_head], "slots": None}
    wanted = (asked.options.get(f"other_{name}", own) for name, own in (("layer", layer), ("head", head)))
    other_head = checked_head(n_layer, n_head, *wanted)
    found = compare_traces(first, second, (layer, head), other_head)
    if len(found.slots) > MOST_SLOTS:
        raise too_much(other, len(found.slots))
    comparable = second is not first and first.pattern.shape[:2] == second.pattern.shape[:2]
    affordable = n_layer * n_head * len(found.slots) ** 2 <= MOST_CELLS
    return {
        "shape": [n_layer, n_head],
        "slots": [[slot.mark, slot.first, slot.second, slot.token] for slot in found.slots],
        "other": list(other_head),
        "first": _triangle(found.first),
        "second": _triangle(found.second),
        "distances": head_distances(first, second).numpy() if comparable and affordable else None,
    }


def _both(asked: Asked) -> tuple[Trace, Trace, Checkpoint]:
    """Return what is compared with what, and the model that read the second."""
    model, text = asked.options.get("model"), asked.options.get("text")
    if text is not None and (not isinstance(text, str) or len(text) > LONGEST_TEXT):
        raise wrong_type("text", text, f"a text of at most {LONGEST_TEXT} characters")
    first = trace_ids(asked.ckpt, asked.ids)
    if asked.options.get("change") is not None:
        found = what_if(asked.ckpt, asked.ids, intervention_of(asked))
        # Both from the same pass, so that what did not change differs by nothing at all.
        before, after = (inside.pattern[0] for inside in (found.inside_before, found.inside_after))
        return replace(first, pattern=before), replace(first, pattern=after), asked.ckpt
    own = asked.ckpt if model is None else asked.load(str(model))
    if model is None and text is None:
        return first, first, own
    said = asked.ckpt.tokenizer.decode(asked.ids) if text is None else text
    return first, trace_ids(own, some_ids(own, said)), own


def _triangle(square: Float[Tensor, "1 1 slot slot"]) -> list[Float[ndarray, " key"]]:
    """Return the rows without their future; NaN where one of the two has no such cell."""
    cells = torch.where(square[0, 0].isnan(), torch.nan, square[0, 0].clamp(0, 1)).numpy()
    return [np.round(row[: query + 1], 4) for query, row in enumerate(cells)]
