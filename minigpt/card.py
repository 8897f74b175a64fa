"""The model card: what a checkpoint is, what it was trained on, how well, and what its heads do, all of it measured.

Every number in a card is measured on the checkpoint as it lies in its folder, after rounding to the stored precision.
"""

import math
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor

from minigpt.analysis.patterns import trace_ids
from minigpt.analysis.scores import SHARES, head_scores
from minigpt.checkpoint import Checkpoint
from minigpt.corpus import Corpus
from minigpt.splits import train_validation_split, validation_loss

WINDOWS = 8
"""Windows of the validation split over which a head's scores are averaged."""
ON_TEXT = {
    "previous": "looks at the token just before",
    "first": "looks at the first token of the window",
    "self": "looks at the token itself",
    "word_start": "looks at the first character of its own word",
    "duplicate": "looks at earlier occurrences of the same token",
}
ON_REPETITION = {
    "same place": "looks at the same place in the first copy",
    "induction": "looks at what followed that place in the first copy",
}


def measured_card(ckpt: Checkpoint, corpus: Corpus) -> tuple[str, dict[str, float]]:
    """Return the card as Markdown, and the losses it states by name, in nats per token.

    Args:
        ckpt: The checkpoint as loaded from its folder, with the summary that training left.
        corpus: What it was trained on.
    """
    train_ids, validation_ids = train_validation_split(torch.tensor(ckpt.tokenizer.encode(corpus.text)))
    losses = {
        "train_loss": validation_loss(ckpt.model, train_ids[: len(validation_ids)]),
        "validation_loss": validation_loss(ckpt.model, validation_ids),
    }
    on_text = text_scores(ckpt, validation_ids)
    on_repetition = repetition_scores(ckpt, validation_ids)
    sections = (
        f"# {ckpt.path.resolve().name}",
        _architecture(ckpt),
        f"## Data and licence\n\n{corpus.title}. Source: {corpus.source}\n\nLicence of the text: {corpus.licence}",
        _training(ckpt, losses),
        _heads(on_text, on_repetition),
        _limits(ckpt),
    )
    return "\n\n".join(sections) + "\n", losses


def text_scores(ckpt: Checkpoint, ids: Tensor) -> dict[str, Float[Tensor, "layer head"]]:
    """Return each head's scores, averaged over the first windows of a text.

    Args:
        ckpt: Model and tokenizer.
        ids: The text.
    """
    block_size = ckpt.config.block_size
    tokens = cast(list[int], ids[: WINDOWS * block_size].tolist())
    scored: list[dict[str, Tensor]] = []
    for start in range(0, len(tokens), block_size):
        trace = trace_ids(ckpt, tokens[start : start + block_size])
        scored.append(head_scores(trace.pattern, trace.tokens))
    return {name: torch.stack([scores[name] for scores in scored]).nanmean(dim=0) for name in SHARES}


def repetition_scores(ckpt: Checkpoint, ids: Tensor) -> dict[str, Float[Tensor, "layer head"]]:
    """Return what each head does in the second copy of a passage that is written twice (Olsson et al. 2022).

    Args:
        ckpt: Model and tokenizer.
        ids: The text that passages of half a window are taken from.

    Returns:
        The share of attention on the same place in the first copy (`"same place"`) and on the place after it
        (`"induction"`), 0 to 1, mean over the second copy (but its last token) and over several passages; NaN if the
        text or the window is too short for a passage.
    """
    half = ckpt.config.block_size // 2
    tokens = cast(list[int], ids[: 2 * WINDOWS * half].tolist())
    queries = torch.arange(half, 2 * half - 1)
    none = torch.full((ckpt.config.n_layer, ckpt.config.n_head), torch.nan)
    same, after = [none], [none]
    for start in range(0, len(tokens) - half + 1, max(1, half)):
        if len(queries):
            pattern = trace_ids(ckpt, 2 * tokens[start : start + half]).pattern
            same.append(pattern[:, :, queries, queries - half].mean(dim=-1))
            after.append(pattern[:, :, queries, queries - half + 1].mean(dim=-1))
    return {"same place": torch.stack(same).nanmean(dim=0), "induction": torch.stack(after).nanmean(dim=0)}


def _architecture(ckpt: Checkpoint) -> str:
    config = ckpt.config
    return (
        f"A {config.kind} language model over {config.vocab_size} characters: {config.n_layer} layers of "
        f"{config.n_head} heads, {config.n_embd} wide, a context of {config.block_size} characters, "
        f"{ckpt.parameters:,} parameters. Open it with `minigpt.load_checkpoint`, or on the page."
    )


def _training(ckpt: Checkpoint, losses: dict[str, float]) -> str:
    training = ckpt.training
    settings: dict[str, Any] = training["settings"]
    preset, command = training.get("preset"), training.get("command")
    lines = ["## Training", ""]
    if command:
        lines += ["```", command, "```", ""]
    lines += [
        f"{training['steps']:,} steps of {settings['batch_size']} windows ({training['tokens']:,} tokens) in "
        f"{training['seconds'] / 60:.0f} minutes on a clock, whatever else the machine did"
        + (f", preset `{preset}`" if preset else "")
        + (
            f"; stopped before its {settings['steps']:,} steps were done"
            if training["steps"] < settings["steps"]
            else ""
        )
        + "; every setting is in `config.json`, the history in `training.jsonl`.",
        "",
        "| loss (nats per character, dropout off, weights as stored) | |",
        "|---|---|",
        f"| whole validation split (the last tenth of the text, windows that do not overlap) | "
        f"**{losses['validation_loss']:.4f}** |",
        f"| the same in bits per character | {losses['validation_loss'] / math.log(2):.4f} |",
        f"| as much of the training split, from its start | {losses['train_loss']:.4f} |",
    ]
    return "\n".join(lines)


def _heads(on_text: dict[str, Tensor], on_repetition: dict[str, Tensor]) -> str:
    """Return the heads that lead each score, with the score."""
    return "\n".join(
        (
            "## What the heads look at",
            "",
            f"Share of attention, 0 to 1: mean over {WINDOWS} windows of the validation split, and, in the last two "
            "rows, over the second copies of passages that are written twice. Attention is not explanation: a head "
            "that looks at something need not use it.",
            "",
            "| score | a head with a high one | highest |",
            "|---|---|---|",
            *(f"| {name} | {does} | {_leading(on_text[name])} |" for name, does in ON_TEXT.items()),
            *(f"| {name} | {does} | {_leading(on_repetition[name])} |" for name, does in ON_REPETITION.items()),
        )
    )


def _leading(scores: Float[Tensor, "layer head"], most: int = 3) -> str:
    """Name the heads with the highest scores."""
    named = {
        f"L{layer}H{head}": float(scores[layer, head])
        for layer in range(scores.shape[0])
        for head in range(scores.shape[1])
        if not scores[layer, head].isnan()
    }
    leading = sorted(named, key=lambda head: -named[head])[:most]
    return ", ".join(f"{head} {named[head]:.2f}" for head in leading) or "–"


def _limits(ckpt: Checkpoint) -> str:
    limits = (
        "## Limits\n\n"
        f"It knows {ckpt.config.vocab_size} characters and nothing else, sees {ckpt.config.block_size} of them at a "
        "time, and has read one text: it imitates the look of that text, not its sense. Its sentences say nothing true "
        "about anybody. It is meant for looking at attention. Where settings were chosen by their validation loss, "
        "that loss flatters a little."
    )
    if ckpt.training["settings"]["repeat_share"]:
        limits += (
            " Some of its training windows repeated themselves (`repeat_share`), so that heads for repetition form; "
            "now and then what it writes repeats itself too."
        )
    return limits
