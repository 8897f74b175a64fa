"""What the tab "What if" asks: the model beside itself under a change, and every part taken away once.

The change comes from the browser as the fields of an `Intervention`; nothing in it is trusted.
"""

from collections.abc import Mapping
from typing import Any, cast

import torch

from minigpt.analysis.ablation import compare_continuations, what_if
from minigpt.analysis.frames import numbers
from minigpt.analysis.interventions import Intervention, Replacement
from minigpt.analysis.sweeps import EFFECTS, Effect, edge_sweep, sweep
from minigpt.config import is_index, is_number
from minigpt.errors import wrong_type
from minigpt.ui.asking import MOST_WORK, Asked
from minigpt.ui.messages import Sampling
from minigpt.ui.steps import sampling_of

LISTED = 10
"""Tokens listed after each position: those whose probability changed most."""
EVEN = 1e-6
"""Changes of probability that differ by less than this count as even; of those the likelier token is listed."""
MOST_CHANGES = 1024
"""Most changes of one kind."""
MOST_NEW_TOKENS = 60
"""Most tokens that the two continuations have."""
REPLACEMENTS: tuple[Replacement, ...] = ("zero", "mean")


def intervention_of(asked: Asked) -> Intervention:
    """Read the option `change`.

    Raises:
        PromptError: `wrong_type` if it is no change.
    """
    given = asked.options.get("change")
    fields = cast(Mapping[str, object], given if isinstance(given, dict) else {})
    replace, renormalise = fields.get("replace"), fields.get("renormalise")
    if replace not in REPLACEMENTS or not isinstance(renormalise, bool):
        raise wrong_type("change", dict(fields), "an object with replace (zero or mean) and renormalise")
    return Intervention(
        heads_off=_rows(fields, "heads_off", 2),
        replace=replace,
        head_scales=_rows(fields, "head_scales", 3),
        attention_off=tuple(layer for (layer,) in _rows(fields, "attention_off", 1)),
        mlps_off=tuple(layer for (layer,) in _rows(fields, "mlps_off", 1)),
        edges_off=_rows(fields, "edges_off", 4),
        renormalise=renormalise,
    )


def _rows(fields: Mapping[str, object], name: str, width: int) -> tuple[Any, ...]:
    """Return a list of rows of whole numbers; the third number of a scale may have a fraction."""
    given = fields.get(name, [])
    rows = cast(list[object], given if isinstance(given, list) else [None])
    if len(rows) > MOST_CHANGES:
        raise wrong_type(name, len(rows), f"at most {MOST_CHANGES} rows")
    for row in rows:
        entries = cast(list[object], row if isinstance(row, list) else [])
        whole = entries[:2] if name == "head_scales" else entries
        if len(entries) != width or not all(is_index(each, 2**31) for each in whole) or not is_number(entries[-1]):
            raise wrong_type(name, entries, f"rows of {width} numbers")
    return tuple(tuple(cast(list[float], row)) for row in rows)


def changed(asked: Asked) -> dict[str, object]:
    """Answer what a change does to every prediction and to the loss.

    `ids`, `before` and `after` list for each position the tokens whose probability changed most, and both
    probabilities; where nothing changed, as before the query of a hidden key, the likeliest. `following` has both
    probabilities of the token that really follows, whether it is listed or not.
    """
    asked.check_work(2)
    found = what_if(asked.ckpt, asked.ids, intervention_of(asked), most=1)
    both = torch.stack((found.before, found.after))
    order = (found.after - found.before).abs() + EVEN * both.max(0).values
    listed = order.topk(min(LISTED, both.shape[-1])).indices
    before, after = (each.gather(1, listed).numpy() for each in both)
    following = torch.tensor([*found.ids[1:], 0])[None, :, None].expand(2, -1, 1)
    return {
        "kl": found.kl.numpy(),
        "loss": [found.loss_before, found.loss_after],
        "ids": listed.tolist(),
        "before": before,
        "after": after,
        "following": both.gather(2, following)[:, :-1, 0].T.numpy(),
        "pieces": asked.pieces(set(numbers(listed))),
    }


def continued(asked: Asked) -> dict[str, object]:
    """Answer how the text goes on with the same random numbers, as it is and under a change."""
    given = asked.options.get("sampling")
    sampling = Sampling.from_controls(seed=0) if given is None else sampling_of(given)
    affordable = MOST_WORK // (10 * asked.ckpt.parameters * min(len(asked.ids) + 40, asked.ckpt.config.block_size))
    length = max(1, min(asked.index("length", MOST_NEW_TOKENS + 1, 40), affordable))
    found = compare_continuations(
        asked.ckpt, asked.ids, intervention_of(asked), max_new_tokens=length, **sampling.options()
    )
    return {
        "before": found.before,
        "after": found.after,
        "difference": found.first_difference,
        "sampling": dict(sampling.info(length)),
    }


def swept(asked: Asked) -> dict[str, object]:
    """Answer what removing each head, and each feed-forward network, does by itself."""
    config = asked.ckpt.config
    asked.check_work(config.n_layer * (config.n_head + 1))
    replace = cast(Replacement, asked.one_of("replace", REPLACEMENTS))
    found = sweep(asked.ckpt, asked.ids, position=asked.position(), token=asked.token(), replace=replace)
    return {
        "position": found.position,
        "token": found.token,
        "probability": found.probability,
        "loss": found.loss,
        "heads": {name: found.head_map(name).numpy() for name in EFFECTS},
        "mlps": _effects(found.mlps),
    }


def edges_swept(asked: Asked) -> dict[str, object]:
    """Answer what hiding each single key from the chosen query of the chosen head does."""
    query = asked.index("query", len(asked.ids))
    layer, head = asked.head()
    asked.check_work(1 + min(query + 1, len(asked.ids) - query))
    found = edge_sweep(
        asked.ckpt,
        asked.ids,
        layer,
        head,
        query=query,
        position=asked.position(),
        token=asked.token(),
        renormalise=asked.one_of("rest", ("renormalise", "keep")) == "renormalise",
    )
    return {
        "query": query,
        "position": found.position,
        "token": found.token,
        "probability": found.probability,
        "weight": found.weight.numpy(),
        "keys": _effects(found.keys),
    }


def _effects(effect: Effect) -> dict[str, object]:
    return {name: effect.named(name).numpy() for name in EFFECTS}
