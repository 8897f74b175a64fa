"""Syllables or jamo for Korean: two models of the same size read the same characters; bits per character decide.

    python -m benchmarks.jamo                # some ten minutes on a quiet machine
    python -m benchmarks.jamo --steps 880    # as long as the shipped model

Both are trained on KoCoNovel with the recipe of the preset `korean-novels`. One reads syllables (NFC), as the shipped
model does; the other their letters (NFD: an initial, a vowel, often a final). The second's vocabulary is small, so its
blocks are wider until it has as many parameters, and its window holds as many characters. In a step both see about the
same number of characters. What a token costs is no measure for both, so the loss over the whole validation split, in
nats, is divided by the syllable-spelled characters it spells, and told in bits.
"""

import argparse
import math
import time
import unicodedata
from dataclasses import dataclass, replace
from typing import Literal

import torch

from minigpt.config import ModelConfig
from minigpt.corpus import load_corpus
from minigpt.model import build_model
from minigpt.presets import PRESETS
from minigpt.recipe import new_model
from minigpt.splits import validation_loss
from minigpt.tokenizer import CharTokenizer
from minigpt.training import train

HELD_OUT = 0.095
"""Share of the characters that is measured: within the last tenth of the tokens, which training leaves alone."""
WIDEST = 256
PRESET = PRESETS["korean-novels"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one model came to.

    Attributes:
        name: How it spells.
        parameters: How many numbers it has.
        tokens: Tokens per syllable-spelled character of the held-out text.
        bits: Bits per such character.
        seconds: Processor time of the training.
    """

    name: str
    parameters: int
    tokens: float
    bits: float
    seconds: float


def sized(vocab_size: int, block_size: int, parameters: int | None) -> ModelConfig:
    """Return the preset's model for a vocabulary, or the widest one that has no more parameters than that."""
    model = {**PRESET.model, "block_size": block_size}
    if parameters is None:
        return ModelConfig(vocab_size=vocab_size, **model)
    widths = range(model["n_embd"], WIDEST, model["n_head"])
    configs = [ModelConfig(vocab_size=vocab_size, **{**model, "n_embd": width}) for width in widths]
    return max((each for each in configs if count(each) <= parameters), key=count)


def count(config: ModelConfig) -> int:
    """Return a model's number of parameters."""
    return sum(parameter.numel() for parameter in build_model(config).parameters())


def outcome(form: Literal["NFC", "NFD"], steps: int, seed: int, parameters: int | None) -> Outcome:
    """Train one model and measure it."""
    whole = unicodedata.normalize("NFC", load_corpus("koconovel").text)
    measured = whole[round(len(whole) * (1 - HELD_OUT)) :]
    text, held_out = unicodedata.normalize(form, whole), unicodedata.normalize(form, measured)
    if len(held_out) > len(text) - int(0.9 * len(text)):
        raise ValueError("what is measured reaches into what is trained on")
    tokenizer = CharTokenizer(text)
    ratio = len(held_out) / len(measured)
    block_size = round(PRESET.model["block_size"] * ratio)
    config = replace(
        PRESET.training, steps=steps, seed=seed, precision="auto", evaluate_every=steps, evaluate_batches=1
    )
    model = new_model(sized(tokenizer.vocab_size, block_size, parameters), config)
    started = time.process_time()
    for record in train(model, tokenizer, text, config):
        if record.step % 100 == 0:
            print(f"  {form} step {record.step} loss {record.loss:.3f}", flush=True)
    spent = time.process_time() - started
    ids = torch.tensor(tokenizer.encode(held_out))
    nats = validation_loss(model, ids) * len(held_out)
    return Outcome(
        name={"NFC": "syllables", "NFD": "jamo"}[form],
        parameters=count(model.config),
        tokens=ratio,
        bits=nats / math.log(2) / len(measured),
        seconds=spent,
    )


def main() -> None:
    """Train both, and compare."""
    parser = argparse.ArgumentParser(description="Syllables or jamo for Korean.")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    syllables = outcome("NFC", options.steps, options.seed, None)
    jamo = outcome("NFD", options.steps, options.seed, syllables.parameters)
    print("| spelling | parameters | tokens per character | bits per character | processor time, s |")
    print("|---|---|---|---|---|")
    for each in (syllables, jamo):
        print(f"| {each.name} | {each.parameters:,} | {each.tokens:.2f} | {each.bits:.3f} | {each.seconds:.0f} |")


if __name__ == "__main__":
    main()
