"""What else the cells of all heads can show: weights with values, shares of logits, rollout, and what a change did."""

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from minigpt import wire
from minigpt.analysis.anatomy import anatomy
from minigpt.analysis.compare import compare_intervention
from minigpt.analysis.contributions import logit_weighted, rollout, value_weighted
from minigpt.analysis.forward import forward
from minigpt.ui.asking import Asked, too_much
from minigpt.ui.what_if import intervention_of

VIEWS = ("value", "logit", "rollout", "after", "difference")
SIGNED = ("logit", "difference")


def view(asked: Asked) -> wire.ViewMessage:
    """Return all heads drawn in one of the views.

    Raises:
        PromptError: `too_much_work` if all heads at full resolution would be too much, or would take too long.
    """
    config, name = asked.ckpt.config, asked.one_of("view", VIEWS)
    if config.n_layer * config.n_head * len(asked.ids) * (len(asked.ids) + 1) // 2 > wire.LARGEST_MESSAGE:
        raise too_much(asked.ckpt, len(asked.ids))
    cells = _cells(asked, name)
    most = float(np.abs(cells).max()) or 1.0
    if name in SIGNED:
        return wire.view(name, cells, low=-most, top=most)
    return wire.view(name, cells, low=0.0, top=most if name == "value" else 1.0)


def _cells(asked: Asked, name: str) -> Float[ndarray, "layer head query key"]:
    if name in ("after", "difference"):
        found = compare_intervention(asked.ckpt, asked.ids, intervention_of(asked))
        return (found.second if name == "after" else found.difference).numpy()
    if name == "logit":
        asked.check_work(2)
        return logit_weighted(asked.ckpt, asked.ids).numpy()
    parts = anatomy(asked.ckpt.model)
    inside = forward(parts, torch.tensor(asked.ids)).inside
    if name == "value":
        return value_weighted(parts, inside).numpy()
    layers = rollout(inside.pattern[0], residual=parts.residual)
    # One map for a layer: each of its heads shows the same.
    return layers[:, None].expand(-1, asked.ckpt.config.n_head, -1, -1).numpy()
