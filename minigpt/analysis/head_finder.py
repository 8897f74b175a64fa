"""Which head does what: every head's scores, on a text and on the standard probe, beside those of an untrained model.

The scores are those of `minigpt.analysis.scores`, with the start of the query's line beside the start of its word. A
number means little by itself: in a short text even attention spread evenly puts much weight on the first token. So each
stands beside the same score of a model of the same shape with random parameters.

The probe is a random sequence of different tokens, repeated once: nothing in it but the repetition can be predicted
(Olsson et al. 2022, "Argument 4", and the induction scores of TransformerLens). There `duplicate` is the weight on the
same token one repetition earlier, and `induction` that on the token after it (their *prefix matching score*).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from minigpt.analysis.frames import frame, numbers
from minigpt.analysis.scores import LINE_SHARES, SHARES, head_scores, share_masks
from minigpt.analysis.window import window_of
from minigpt.checkpoint import Checkpoint
from minigpt.config import ModelConfig
from minigpt.errors import PromptError
from minigpt.lean import LeanModel, lean_model
from minigpt.model import LanguageModel, build_model
from minigpt.tokenizer import Text

PROBE_SHARES = tuple(name for name in SHARES if name != "word_start")
"""What can be asked about tokens without meaning."""
MOST_REPEATED = 64
"""Longest sequence that the probe repeats, in tokens."""
LEAST_REPEATED = 3
"""Shortest one in which the previous token and the one that induction looks at are not the same."""


@dataclass(frozen=True, kw_only=True)
class HeadTable:
    """Every head's scores, and what they are for an untrained model of the same shape.

    Attributes:
        source: `"text"` or `"probe"`.
        scores: By name, each a share of attention from 0 to 1, or `entropy` in bits, or `distance` in tokens. NaN where
            the text has no query for it.
        baseline: The same of the untrained model.
        counted: How many queries each share was averaged over; a query is left out where two definitions name the same
            key, so that no head is credited twice.
    """

    source: str
    scores: dict[str, Float[Tensor, "layer head"]]
    baseline: dict[str, Float[Tensor, "layer head"]]
    counted: dict[str, int]

    def best(self, name: str, count: int = 1) -> list[tuple[int, int, float]]:
        """Return the heads with the highest score as `(layer, head, score)`, highest first; NaN counts as lowest.

        Args:
            name: One of the scores.
            count: How many heads; fewer if there are fewer.
        """
        values = self.scores[name].nan_to_num(float("-inf"))
        n_head = values.shape[1]
        order = numbers(values.flatten().argsort(descending=True, stable=True)[:count])
        scores = numbers(self.scores[name])
        return [(index // n_head, index % n_head, scores[index]) for index in order]

    def to_frame(self) -> Any:  # noqa: ANN401 (a pandas.DataFrame)
        """Return one row per head, with a column per score and one per untrained score."""
        n_layer, n_head = next(iter(self.scores.values())).shape
        columns: dict[str, list[Any]] = {
            "head": [f"L{layer}H{head}" for layer in range(n_layer) for head in range(n_head)]
        }
        for name, values in self.scores.items():
            columns[name] = numbers(values)
            columns[f"{name}_untrained"] = numbers(self.baseline[name])
        return frame(columns)


def find_heads(ckpt: Checkpoint, text: Text, *, seed: int = 0) -> HeadTable:
    """Score every head on a text.

    Args:
        ckpt: The model and its tokenizer.
        text: A text or its ids, at least one token long; the last `block_size` tokens are read.
        seed: Of the untrained model.

    Raises:
        PromptError: If the text cannot be read.
    """
    window = window_of(ckpt, text)

    def scored(lean: LeanModel) -> dict[str, Tensor]:
        _, pattern = lean.forward_with_weights(window.idx)
        return head_scores(pattern, window.tokens, LINE_SHARES)

    counted = {name: int(mask.any(1).sum()) for name, mask in share_masks(window.tokens, LINE_SHARES).items()}
    return HeadTable(
        source="text",
        scores=scored(lean_model(ckpt.model)),
        baseline=scored(LeanModel(untrained(ckpt.config, seed))),
        counted=counted,
    )


def probe_heads(ckpt: Checkpoint, *, samples: int = 20, seed: int = 0) -> HeadTable:
    """Score every head on the standard probe: random sequences of the model's own tokens, each repeated once.

    The tokens of a sequence all differ. It is as long as half the window and the vocabulary allow, at most
    `MOST_REPEATED`. Scores are means over the samples.

    Args:
        ckpt: The model.
        samples: Number of sequences.
        seed: Of the sequences and of the untrained model.

    Raises:
        PromptError: `probe_too_short` if the window or the vocabulary is too small.
    """
    texts = probe_texts(ckpt.config, samples, seed)

    masks = share_masks(list(map(str, texts[0])), PROBE_SHARES)
    return HeadTable(
        source="probe",
        scores=probe_scores(lean_model(ckpt.model), texts),
        baseline=probe_scores(LeanModel(untrained(ckpt.config, seed)), texts),
        counted={name: samples * int(mask.any(1).sum()) for name, mask in masks.items()},
    )


def probe_scores(lean: LeanModel, texts: Sequence[list[int]]) -> dict[str, Float[Tensor, "layer head"]]:
    """Return every head's scores on the probe's texts, by name: means over the texts."""
    each = [
        head_scores(lean.forward_with_weights(torch.tensor(ids))[1], list(map(str, ids)), PROBE_SHARES) for ids in texts
    ]
    return {name: torch.stack([scores[name] for scores in each]).mean(0) for name in each[0]}


def probe_texts(config: ModelConfig, samples: int, seed: int) -> Sequence[list[int]]:
    """Return the probe's texts as ids: each a sequence of different tokens, twice.

    Raises:
        PromptError: `probe_too_short`.
    """
    length = min(config.block_size // 2, config.vocab_size, MOST_REPEATED)
    if length < LEAST_REPEATED:
        raise PromptError(
            "probe_too_short",
            block_size=config.block_size,
            vocab_size=config.vocab_size,
            needed=2 * LEAST_REPEATED,
            tokens=LEAST_REPEATED,
        )
    generator = torch.Generator().manual_seed(seed)
    drawn = [numbers(torch.randperm(config.vocab_size, generator=generator)[:length]) for _ in range(samples)]
    return [ids * 2 for ids in drawn]


def untrained(config: ModelConfig, seed: int = 0) -> LanguageModel:
    """Return a model of the same shape as PyTorch initialises it, the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build_model(config).eval()
