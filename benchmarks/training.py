"""How long training takes: nanoGPT's recipe for a CPU beside the preset `quick`, on the same text, at the same size.

    python -m benchmarks.training               # three seeds of each; some minutes on a quiet machine
    python -m benchmarks.training --seeds 1 --threads 1

Both train 4 layers of 4 heads, 128 wide, 64 characters, on tiny Shakespeare, in this package's loop. The recipe is the
one that nanoGPT's README gives for a CPU (AdamW, batch 12, 2,000 steps, cosine to a tenth, its initial weights, tied
embeddings, GELU, no biases). Measured is the time in training steps, on a clock and of the
processor (which says more where other programs are busy), and the loss over the whole validation split at the end. The
preset counts as faster only if its mean loss is at most the recipe's.
"""

import argparse
import math
import statistics
import time
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from minigpt.config import ModelConfig, TrainingConfig
from minigpt.corpus import load_corpus
from minigpt.model import LanguageModel
from minigpt.presets import PRESETS
from minigpt.recipe import new_model
from minigpt.splits import train_validation_split, validation_loss
from minigpt.tokenizer import CharTokenizer
from minigpt.training import train

NANOGPT: dict[str, Any] = {"activation": "gelu", "bias": False, "head_bias": False, "tied": True}
RECIPE_MODEL: dict[str, Any] = {**PRESETS["quick"].model, **NANOGPT}
RECIPE = TrainingConfig(
    steps=2000,
    batch_size=12,
    learning_rate=1e-3,
    betas=(0.9, 0.99),
    weight_decay=0.1,
    schedule="cosine",
    warmup_steps=100,
    final_rate=0.1,
    gradient_clip=1.0,
)


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one training came to: seconds on a clock and of the processor, and the loss in nats per character."""

    clock: float
    processor: float
    loss: float


def initialise(model: LanguageModel) -> None:
    """Give a model nanoGPT's initial weights: spread 0.02, less for what writes into the residual stream."""
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            writes = name.endswith(("proj.weight", "net.2.weight"))
            nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * model.config.n_layer) if writes else 0.02)


def run(text: str, model_config: ModelConfig, config: TrainingConfig, *, recipe: bool) -> Run:
    """Train once, and measure."""
    tokenizer = CharTokenizer(text)
    model = new_model(model_config, config)
    if recipe:
        initialise(model)
    quiet = replace(config, evaluate_every=config.steps, evaluate_batches=1)
    records = train(model, tokenizer, text, quiet)
    next(records)  # the estimate before the first step
    started = time.perf_counter(), time.process_time()
    for record in records:
        if record.step == config.steps - 1:
            break
    spent = time.perf_counter() - started[0], time.process_time() - started[1]
    list(records)
    whole = config.steps / (config.steps - 1)  # the last step was not timed, as an estimate follows it
    _, held_out = train_validation_split(torch.tensor(tokenizer.encode(text)))
    return Run(clock=spent[0] * whole, processor=spent[1] * whole, loss=validation_loss(model, held_out))


def tell(name: str, runs: list[Run]) -> Run:
    """Print what the runs came to, and return their means."""
    for each in runs:
        print(f"  {name:<8} {each.clock:8.1f} s {each.processor:8.1f} s of the processor   loss {each.loss:.4f}")
    means = (statistics.mean(getattr(each, field) for each in runs) for field in ("clock", "processor", "loss"))
    clock, processor, loss = means
    print(f"  {name:<8} {clock:8.1f} s {processor:8.1f} s of the processor   loss {loss:.4f}   mean of {len(runs)}")
    return Run(clock=clock, processor=processor, loss=loss)


def main() -> None:
    """Train both in turns, and compare."""
    parser = argparse.ArgumentParser(description="nanoGPT's recipe for a CPU beside the preset quick.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=RECIPE.steps, help="of the recipe; fewer for a try")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    text = load_corpus("tinyshakespeare").text
    vocab_size = CharTokenizer(text).vocab_size
    quick, recipes, quicks = PRESETS["quick"], list[Run](), list[Run]()
    for seed in range(options.seeds):
        slow = replace(RECIPE, steps=options.steps, seed=seed)
        recipes.append(run(text, ModelConfig(vocab_size=vocab_size, **RECIPE_MODEL), slow, recipe=True))
        steps = max(2, quick.training.steps * options.steps // RECIPE.steps)
        fast = replace(quick.training, steps=steps, seed=seed)
        quicks.append(run(text, quick.model_config(vocab_size), fast, recipe=False))
    recipe, own = tell("recipe", recipes), tell("quick", quicks)
    if own.loss <= recipe.loss:
        ratios = f"{recipe.clock / own.clock:.1f} on a clock, {recipe.processor / own.processor:.1f} of the processor"
        print(f"quick reaches the recipe's loss; the recipe takes this many times as long: {ratios}")
    else:
        print(f"quick does not reach the recipe's loss: {own.loss:.4f} against {recipe.loss:.4f}")


if __name__ == "__main__":
    main()
