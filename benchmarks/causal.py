"""How long causal evidence takes: the sweep over every head and network, and everything on, on two threads.

    python -m benchmarks.causal                 # about half a minute on a quiet machine
    python -m benchmarks.causal --size 6x6x128 --rounds 9

A random model, as the time does not depend on what was learned. The sweep is timed beside the obvious way, one forward
pass for each removed part, and both must agree first. Where
other programs are busy, wall-clock time says little; the processor time of one thread says more.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from minigpt.analysis.ablation import what_if
from minigpt.analysis.contributions import direct_logits, rollout, value_weighted
from minigpt.analysis.forward import forward
from minigpt.analysis.head_finder import find_heads
from minigpt.analysis.interventions import Intervention
from minigpt.analysis.lens import logit_lens
from minigpt.analysis.sweeps import edge_sweep, sweep
from minigpt.checkpoint import Checkpoint
from minigpt.config import ModelConfig
from minigpt.model import build_model
from minigpt.tokenizer import CharTokenizer

CHARACTERS = [chr(code) for code in range(32, 97)]
SIZES = {
    "4x4x128": {"n_layer": 4, "n_head": 4, "n_embd": 128, "block_size": 128},
    "6x6x128": {"n_layer": 6, "n_head": 6, "n_embd": 384, "block_size": 128},
    "6x6x256": {"n_layer": 6, "n_head": 6, "n_embd": 384, "block_size": 256},
}
"""Layers × heads × tokens."""
TOLERANCE = 1e-4
"""Largest difference of probabilities that float32 rounding explains."""


def model_and_text(size: dict[str, int]) -> tuple[Checkpoint, str]:
    """Return a random model and a text that fills its window."""
    torch.manual_seed(1337)
    config = ModelConfig(vocab_size=len(CHARACTERS), **size)
    ckpt = Checkpoint(model=build_model(config).eval(), tokenizer=CharTokenizer.from_characters(CHARACTERS))
    ids = torch.randint(len(CHARACTERS), (size["block_size"],)).tolist()
    return ckpt, ckpt.tokenizer.decode(ids)


def one_by_one(ckpt: Checkpoint, text: str) -> list[float]:
    """Return the likeliest token's change of probability without each head and each network, one pass for each."""
    idx = torch.tensor(ckpt.tokenizer.encode(text))
    config, layers = ckpt.config, range(ckpt.config.n_layer)
    changes = [Intervention(heads_off=((layer, head),)) for layer in layers for head in range(config.n_head)]
    changes += [Intervention(mlps_off=(layer,)) for layer in layers]
    before = forward(ckpt.model, idx, keep=False).logits[0, -1].softmax(-1)
    chosen = int(before.argmax())
    passes = (forward(ckpt.model, idx, [change], keep=False).logits[1, -1] for change in changes)
    return [float(logits.softmax(-1)[chosen] - before[chosen]) for logits in passes]


def everything(ckpt: Checkpoint, text: str) -> None:
    """Compute all that one text and one chosen head can be asked, but the sweeps."""
    run = forward(ckpt.model, torch.tensor(ckpt.tokenizer.encode(text)))
    value_weighted(ckpt.model, run.inside)
    rollout(run.inside.pattern[0])
    find_heads(ckpt, text)
    direct_logits(ckpt, text)
    logit_lens(ckpt, text)
    what_if(ckpt, text, Intervention(heads_off=((1, 2),)))


def milliseconds(way: Callable[[Checkpoint, str], object], ckpt: Checkpoint, text: str, rounds: int) -> str:
    """Return the least and the median wall-clock time of a call, and the least processor time of all its threads."""
    walls: list[float] = []
    busy: list[float] = []
    for _ in range(rounds):
        wall, used = time.perf_counter(), time.process_time()
        way(ckpt, text)
        walls.append(1000 * (time.perf_counter() - wall))
        busy.append(1000 * (time.process_time() - used))
    return f"{min(walls):.0f} | {statistics.median(walls):.0f} | {min(busy):.0f}"


WAYS: dict[str, Callable[[Checkpoint, str], object]] = {
    "sweep of all heads and networks": sweep,
    "the same, one pass for each": one_by_one,
    "edge sweep of the last query": lambda ckpt, text: edge_sweep(ckpt, text, 1, 2),
    "everything but the sweeps": everything,
}


def main() -> None:
    """Print a table.

    Raises:
        SystemExit: If the sweep and the obvious way do not agree.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--size", choices=SIZES, help="one size only")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"torch {torch.__version__}, {arguments.threads} threads, {arguments.rounds} rounds\n")
    print("| model | what | ms, least | ms, median | processor ms, least |\n|---|---|---|---|---|")
    for name in [arguments.size] if arguments.size else SIZES:
        ckpt, text = model_and_text(SIZES[name])
        found = sweep(ckpt, text)
        effects = torch.cat((found.heads.probability, found.mlps.probability))
        apart = float((effects - torch.tensor(one_by_one(ckpt, text))).abs().max())
        if apart > TOLERANCE:
            raise SystemExit(f"{name}: the sweep is {apart} away from one pass for each part")
        for what, way in WAYS.items():
            print(f"| {name} | {what} | {milliseconds(way, ckpt, text, arguments.rounds)} |", flush=True)


if __name__ == "__main__":
    main()
