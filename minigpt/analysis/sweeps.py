"""Every part taken out once, each by itself, in one batched pass: which heads, networks and cells matter here?

Removing parts one at a time and measuring what the model then says is *ablation*: of heads Michel et al. 2019, section
3.2 ("Ablating one head"), where a head's output becomes zero; *knockout* with the mean in its place Wang et al. 2022,
section 2; of single cells of the pattern Geva et al. 2023, "Attention Knockout". What is measured is the direct and the
indirect effect together: later layers read the changed stream.

All effects are *after − before*: negative where the part had raised the chosen token's probability, and a positive
effect on the loss means that the text got harder to predict without the part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from minigpt.analysis.ablation import kl_bits
from minigpt.analysis.anatomy import anatomy
from minigpt.analysis.edges import hidden_keys
from minigpt.analysis.forward import forward, head_means
from minigpt.analysis.frames import frame, numbers
from minigpt.analysis.interventions import Intervention, Replacement, check_head
from minigpt.analysis.window import Window, chosen_token, reference_ids, text_loss, token_losses, window_of
from minigpt.checkpoint import Checkpoint
from minigpt.tokenizer import Text

Part = TypeVar("Part")

MOST_NUMBERS = 2**26
"""Most numbers of patterns and logits at once; more interventions are run in several passes."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What removing each part does, one entry a part; p is the model as it is, q the model without the part.

    Attributes:
        probability: Change of the chosen token's probability, q(token) − p(token), −1 to 1.
        logit: Change of its logit z minus the mean of all logits, (z_q − mean z_q) − (z_p − mean z_p); a shift of all
            of them means nothing to the softmax.
        kl: Kullback–Leibler divergence of q from p at the chosen position, Σ p · log₂(p ∕ q), in bits, at least 0
            (Kullback & Leibler 1951, section 2, there with natural logarithms).
        loss: Change of the text's mean cross-entropy, −1∕(T−1) · Σ ln p(tokenₜ₊₁ | token₀ … tokenₜ) over its T tokens,
            in nats per token; NaN for a text of one token.
    """

    probability: Float[Tensor, " part"]
    logit: Float[Tensor, " part"]
    kl: Float[Tensor, " part"]
    loss: Float[Tensor, " part"]

    def named(self, name: str) -> Tensor:
        """Return one of the four by its name."""
        return {"probability": self.probability, "logit": self.logit, "kl": self.kl, "loss": self.loss}[name]


EFFECTS = tuple(each.name for each in fields(Effect))
"""Everything that is measured of each part, by name."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The effect of removing each single head and each single feed-forward network.

    Attributes:
        window: What was read.
        position: True position after which the chosen token stands.
        token_id: The chosen token.
        token: Its text.
        probability: Its probability before, 0 to 1.
        loss: The text's mean cross-entropy before, in nats per token.
        n_head: Heads in each layer.
        heads: One entry a head, layer after layer; `head_map` gives them as (layer, head).
        mlps: One entry a layer; none where the model has no feed-forward networks.
    """

    window: Window
    position: int
    token_id: int
    token: str
    probability: float
    loss: float
    n_head: int
    heads: Effect
    mlps: Effect

    def head_map(self, name: str) -> Float[Tensor, "layer head"]:
        """Return the heads' `probability`, `logit`, `kl` or `loss` as layer × head."""
        return self.heads.named(name).view(-1, self.n_head)

    def to_frame(self) -> Any:  # noqa: ANN401 (a pandas.DataFrame)
        """Return one row per removed part."""
        n_layer = len(self.heads.loss) // self.n_head
        names = [f"L{layer}H{head}" for layer in range(n_layer) for head in range(self.n_head)]
        names += [f"L{layer} MLP" for layer in range(len(self.mlps.loss))]
        columns: dict[str, list[Any]] = {"part": names}
        for name in EFFECTS:
            columns[name] = [*numbers(self.heads.named(name)), *numbers(self.mlps.named(name))]
        return frame(columns)


def sweep(
    ckpt: Checkpoint,
    text: Text,
    *,
    position: int | None = None,
    token: int | str | None = None,
    replace: Replacement = "zero",
    reference: Text | None = None,
) -> Sweep:
    """Remove every head and every feed-forward network once, each by itself.

    A head that is removed hands zeros (Michel et al. 2019, section 3.2), or its mean over a reference text (*mean
    ablation*, Wang et al. 2022, section 2), to its rows of the projection; the projection's bias stays. A network that
    is removed adds nothing, not even its bias. Everything after it is computed anew.

    Args:
        ckpt: The model and its tokenizer.
        text: A text or its ids, at least one token long; the last `block_size` tokens are read.
        position: True position of the token after which the prediction is looked at; None for the last.
        token: The token whose probability is looked at, an id or its text; None for the one that follows, or after the
            last the likeliest.
        replace: What takes the place of a head's output; a feed-forward network adds nothing.
        reference: Text over which heads are averaged with `replace="mean"`; None for `text` itself.

    Raises:
        PromptError: If the text cannot be read, or there is no such position or token.
    """
    window = window_of(ckpt, text)
    place = window.place(position)
    n_layer, n_head = ckpt.config.n_layer, ckpt.config.n_head
    interventions = [
        Intervention(heads_off=((layer, head),), replace=replace) for layer in range(n_layer) for head in range(n_head)
    ]
    if ckpt.config.kind == "transformer":
        interventions += [Intervention(mlps_off=(layer,)) for layer in range(n_layer)]
    means = head_means(ckpt.model, reference_ids(ckpt, reference, text)) if replace == "mean" else None
    found = _effects(ckpt, window, place, token, interventions, means)
    heads = n_layer * n_head
    return Sweep(
        window=window,
        position=window.start + place,
        token_id=found.token_id,
        token=ckpt.tokenizer.piece(found.token_id),
        probability=found.probability,
        loss=found.loss,
        n_head=n_head,
        heads=_slice(found.effect, 0, heads),
        mlps=_slice(found.effect, heads, None),
    )


@dataclass(frozen=True, kw_only=True)
class EdgeSweep:
    """The effect of hiding each single key from one query of one head.

    Attributes:
        window: What was read.
        layer: The head's layer.
        head: The head.
        query: True position of the query.
        position: True position after which the chosen token stands.
        token_id: The chosen token.
        token: Its text.
        probability: Its probability before, 0 to 1.
        renormalise: Whether the rest of the row was scaled to sum to 1.
        weight: The query's attention to each key before, 0 to 1.
        keys: One entry a key, from the window's first token to the query.
    """

    window: Window
    layer: int
    head: int
    query: int
    position: int
    token_id: int
    token: str
    probability: float
    renormalise: bool
    weight: Float[Tensor, " key"]
    keys: Effect

    def to_frame(self) -> Any:  # noqa: ANN401 (a pandas.DataFrame)
        """Return one row per key."""
        count = len(self.weight)
        columns: dict[str, list[Any]] = {
            "key": list(range(self.window.start, self.window.start + count)),
            "token": self.window.tokens[:count],
            "weight": numbers(self.weight),
        }
        for name in EFFECTS:
            columns[name] = numbers(self.keys.named(name))
        return frame(columns)


def edge_sweep(
    ckpt: Checkpoint,
    text: Text,
    layer: int,
    head: int,
    *,
    query: int | None = None,
    position: int | None = None,
    token: int | str | None = None,
    renormalise: bool = True,
) -> EdgeSweep:
    """Hide every key once from one query of one head (attention knockout; Geva et al. 2023, section 4).

    Their score of −∞ before the softmax is the same as `renormalise=True`: weight 0, and the rest of the row divided by
    what is left. With `renormalise=False` the rest stays as it was, and the row sums to less than 1.

    Args:
        ckpt: The model and its tokenizer.
        text: A text or its ids, at least one token long; the last `block_size` tokens are read.
        layer: The head's layer, from 0.
        head: The head, from 0.
        query: True position of the query; None for the last.
        position: True position after which the prediction is looked at; None for the query's.
        token: As for `sweep`.
        renormalise: Whether the rest of the row is scaled to sum to 1. The first token's only key cannot be replaced:
            its row is 0 either way.

    Raises:
        PromptError: If the text cannot be read, or there is no such position or token.
        ConfigError: If there is no such head.
    """
    check_head(ckpt.config, layer, head)
    window = window_of(ckpt, text)
    row = window.place(query)
    place = row if position is None else window.place(position)
    start, time = window.start, len(window.ids)
    parts = anatomy(ckpt.model)
    run = forward(parts, window.idx)
    at_place, losses = [run.logits[:, place]], [token_losses(run.logits, window.ids)]
    size = (time - row) * (time * ckpt.config.n_head + ckpt.config.vocab_size)
    for keys in _batches(range(row + 1), max(1, MOST_NUMBERS // size)):
        logits = hidden_keys(parts, run.inside, layer, head, row, keys, renormalise=renormalise)
        at_place.append(logits[:, place - row] if place >= row else run.logits[:, place].expand(len(keys), -1))
        unchanged = losses[0][:, :row].expand(len(keys), -1)
        losses.append(torch.cat((unchanged, token_losses(logits, window.ids[row:])), 1))
    found = _measured(ckpt, window, place, token, torch.cat(at_place), torch.cat(losses).mean(1))
    return EdgeSweep(
        window=window,
        layer=layer,
        head=head,
        query=start + row,
        position=start + place,
        token_id=found.token_id,
        token=ckpt.tokenizer.piece(found.token_id),
        probability=found.probability,
        renormalise=renormalise,
        weight=run.inside.pattern[0, layer, head, row, : row + 1],
        keys=found.effect,
    )


@dataclass(frozen=True, kw_only=True)
class _Found:
    token_id: int
    probability: float
    loss: float
    effect: Effect


def _effects(
    ckpt: Checkpoint,
    window: Window,
    place: int,
    token: int | str | None,
    interventions: Sequence[Intervention],
    means: Tensor | None,
) -> _Found:
    """Return the effect of every intervention on the prediction at one place and on the loss."""
    parts = anatomy(ckpt.model)
    time, vocab = len(window.ids), len(parts.unembed)
    size = time * (time * ckpt.config.n_head + vocab)
    losses: list[Tensor] = []
    rows: list[Tensor] = []
    for batch in _batches(interventions, max(1, MOST_NUMBERS // size)):
        logits = forward(parts, window.idx, batch, start=window.start, means=means, keep=False).logits
        first = 1 if rows else 0
        rows.append(logits[first:, place])
        losses.append(text_loss(logits[first:], window.ids))
    return _measured(ckpt, window, place, token, torch.cat(rows), torch.cat(losses))


def _measured(
    ckpt: Checkpoint,
    window: Window,
    place: int,
    token: int | str | None,
    at_place: Float[Tensor, "run vocab"],
    loss: Float[Tensor, " run"],
) -> _Found:
    """Return what differs from the first row, which is the model as it is."""
    at_place = at_place.double()
    chosen = chosen_token(ckpt, window, place, token, at_place[0])
    logs = at_place.log_softmax(-1)
    probability = logs[:, chosen].exp()
    logit = at_place[:, chosen] - at_place.mean(-1)
    effect = Effect(
        probability=probability[1:] - probability[0],
        logit=logit[1:] - logit[0],
        kl=kl_bits(logs[:1].expand_as(logs[1:]), logs[1:]),
        loss=loss[1:] - loss[0],
    )
    return _Found(token_id=chosen, probability=float(probability[0]), loss=float(loss[0]), effect=effect)


def _batches(parts: Sequence[Part], size: int) -> Iterator[Sequence[Part]]:
    for first in range(0, len(parts), size):
        yield parts[first : first + size]


def _slice(effect: Effect, first: int, last: int | None) -> Effect:
    return Effect(**{name: values[first:last] for name, values in vars(effect).items()})
