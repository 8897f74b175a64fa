"""How long a forward pass with all attention weights takes: separate heads, the fused model, the lean snapshot.

    python -m benchmarks.model                      # S, M and L on one thread, about a minute on a quiet machine
    python -m benchmarks.model --sizes S --rounds 200

One text, one thread, no gradient. What counts is the thread's own processor time, so that waiting for other programs
does not. The three are timed in turn, round after round, so that what slows the machine slows all alike, and each round
gives its own ratio to the separate heads. Before anything is timed, their logits and weights are compared.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from minigpt.lean import LeanModel
from minigpt.model import TransformerLanguageModel
from tests.reference import LoopTransformer, scattered

VOCABULARY = 65
SIZES = {
    "S": {"n_layer": 4, "n_head": 4, "n_embd": 64, "block_size": 16},
    "M": {"n_layer": 4, "n_head": 4, "n_embd": 128, "block_size": 64},
    "L": {"n_layer": 6, "n_head": 6, "n_embd": 384, "block_size": 256},
}
CALLS = {"S": 20, "M": 10, "L": 1}
"""Passes timed together in one round, so that a round lasts long enough to be timed well."""
TOLERANCE = 1e-4
"""Largest difference between logits of a few tens that float32 rounding explains."""


def contenders(size: dict[str, int]) -> dict[str, Callable[[], tuple[torch.Tensor, torch.Tensor]]]:
    """Return one function per way, each giving logits (T, V) and weights (L, H, T, T) of the same text."""
    torch.manual_seed(1337)
    loop = scattered(LoopTransformer(vocab_size=VOCABULARY, dropout=0.0, **size), spread=0.1).eval()
    fused = TransformerLanguageModel(vocab_size=VOCABULARY, **size).eval()
    fused.load_state_dict(loop.state_dict())
    lean = LeanModel(fused)
    idx = torch.randint(VOCABULARY, (1, size["block_size"]))

    def separate_heads() -> tuple[torch.Tensor, torch.Tensor]:
        logits, weights = loop(idx)
        return logits[0], weights[:, 0]

    def fused_heads() -> tuple[torch.Tensor, torch.Tensor]:
        logits, _, weights = fused(idx, return_weights=True)
        return logits[0], weights[:, 0]

    return {
        "separate heads": separate_heads,
        "fused": fused_heads,
        "lean": lambda: lean.forward_with_weights(idx[0]),
    }


def differences(ways: dict[str, Callable[[], tuple[torch.Tensor, torch.Tensor]]]) -> dict[str, float]:
    """Return each way's largest difference to the first, over logits and weights."""
    results = {name: way() for name, way in ways.items()}
    reference = next(iter(results.values()))
    return {
        name: max(float((got - expected).abs().max()) for got, expected in zip(result, reference, strict=True))
        for name, result in results.items()
    }


def seconds(way: Callable[[], object], calls: int) -> float:
    """Return how long one call took, of several timed together."""
    start = time.thread_time()
    for _ in range(calls):
        way()
    return (time.thread_time() - start) / calls


def measure(name: str, rounds: int) -> list[str]:
    """Return the table's rows for one size.

    Raises:
        SystemExit: If the ways do not compute the same.
    """
    ways = contenders(SIZES[name])
    apart = differences(ways)
    if max(apart.values()) > TOLERANCE:
        raise SystemExit(f"{name}: the ways do not agree: {apart}")
    for way in ways.values():
        seconds(way, CALLS[name])
    times = [{label: seconds(way, CALLS[name]) for label, way in ways.items()} for _ in range(rounds)]
    rows: list[str] = []
    for label in ways:
        own = [each[label] for each in times]
        ratios = [each["separate heads"] / each[label] for each in times]
        least = min(each["separate heads"] for each in times) / min(own)
        milliseconds = f"{1000 * min(own):.2f} | {1000 * statistics.median(own):.2f}"
        ratio = f"{least:.1f} | {statistics.median(ratios):.1f}"
        rows.append(f"| {name} | {label} | {milliseconds} | {ratio} | {apart[label]:.0e} |")
    return rows


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=60)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, 1 thread, {arguments.rounds} rounds\n")
    for name in arguments.sizes:
        print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in SIZES[name].items()))
    print("\n| size | way | ms, least | ms, median | times as fast, least | median | largest difference |")
    print("|---|---|---|---|---|---|---|")
    with torch.inference_mode():
        for name in arguments.sizes:
            print("\n".join(measure(name, arguments.rounds)), flush=True)


if __name__ == "__main__":
    main()
