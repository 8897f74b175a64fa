"""What the tab "Model" asks: every step of the text through the model, its parameters, and one draw of dropout."""

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from minigpt import wire
from minigpt.analysis.flow import Flow, Stage, dropped_weights, flow, parameter_parts, strongest
from minigpt.config import ModelConfig, is_number
from minigpt.ui.asking import Asked

SIDE = 64
"""Most cells on a side of a small picture."""
LAYERS = (1, 2, 4, 6)
"""Numbers of layers whose parameters are counted beside the model's own."""
LARGEST_SEED = 2**31 - 1


def followed(asked: Asked) -> dict[str, object]:
    """Answer every step from the ids to the logits, with its shape, its numbers in short, and a small picture."""
    asked.check_work(2)
    layer, head = asked.head()
    found = flow(asked.ckpt.model, torch.tensor([asked.ids]), layer, head)
    pictures = {stage.name: _picture(stage.values) for stage in found.stages if stage.values.is_floating_point()}
    pictures |= {f"stream_{point}": _picture(values) for point, values in enumerate(found.stream)}
    config = asked.ckpt.config
    return {
        "layer": layer,
        "head": head,
        "stages": [_described(stage) for stage in found.stages],
        "stream": _stream(found),
        "residual": config.kind == "transformer",
        "head_size": config.head_size,
        "pictures": wire.pictures({name: values.numpy() for name, values in pictures.items()}),
    }


def _picture(values: Tensor) -> Tensor:
    """Return the numbers of the one text on few enough cells."""
    return strongest(values if values.ndim == 2 else values[0], SIDE)


def _described(stage: Stage) -> dict[str, object]:
    """Return everything of a step but its numbers."""
    described: dict[str, object] = {
        "name": stage.name,
        "code": stage.code,
        "axes": list(stage.axes),
        "shape": list(stage.shape),
        "inside": stage.layer is not None,
    }
    return described | (_in_short(stage.values) if stage.values.is_floating_point() else {})


def _in_short(values: Tensor) -> dict[str, object]:
    """Return the smallest and the largest of all numbers, their mean and their standard deviation."""
    return {
        "low": float(values.min()),
        "high": float(values.max()),
        "mean": float(values.mean()),
        "deviation": float(values.std(correction=0)),
    }


def _stream(found: Flow) -> list[dict[str, object]]:
    return [{"shape": list(values.shape), **_in_short(values)} for values in found.stream]


def counted(asked: Asked) -> dict[str, object]:
    """Answer how many parameters each part has, in this model and with other numbers of layers.

    A kind that has exactly one layer is counted as a transformer of the same sizes there.
    """
    config = asked.ckpt.config
    stacked: ModelConfig = replace(config, kind="transformer")
    return {
        "own": parameter_parts(config),
        "layers": {str(count): parameter_parts(replace(stacked, n_layer=count)) for count in LAYERS},
        "n_layer": config.n_layer,
        "kind": config.kind,
        "tied": config.tied,
    }


def _trained_with(asked: Asked) -> float | None:
    """Return the dropout of attention weights that a training used in place of the model's own, where it says so."""
    settings: object = asked.ckpt.training.get("settings")
    said = cast(dict[str, object], settings).get("attention_dropout") if isinstance(settings, dict) else None
    return said if is_number(said) and said != asked.ckpt.config.dropout else None


def dropped(asked: Asked) -> dict[str, object]:
    """Answer the weights of a head beside one draw of what dropout leaves of them.

    Of a longer text the last `SIDE` queries and keys are answered and counted; the sums are of whole rows.
    """
    asked.check_work(2)
    layer, head = asked.head()
    own = asked.ckpt.config.dropout
    dropout = asked.number("dropout", 0.0, 0.95, own)
    seed = asked.index("seed", LARGEST_SEED, 0)
    pattern = flow(asked.ckpt.model, torch.tensor([asked.ids]), layer, head)["pattern"].values[0]
    drawn = dropped_weights(pattern, dropout, seed)
    sums = drawn[-SIDE:].sum(1)
    pattern, drawn = pattern[-SIDE:, -SIDE:], drawn[-SIDE:, -SIDE:]
    cells = int((pattern > 0).sum())
    return {
        "layer": layer,
        "head": head,
        "own": own,
        "trained": _trained_with(asked),
        "dropout": dropout,
        "seed": seed,
        "first": len(asked.ids) - len(pattern),
        "dropped": cells - int((drawn > 0).sum()),
        "cells": cells,
        "sum_low": float(sums.min()),
        "sum_high": float(sums.max()),
        "pictures": wire.pictures({"before": pattern.numpy(), "after": drawn.numpy()}),
    }
