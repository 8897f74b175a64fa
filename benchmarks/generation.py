"""How long generating takes: the chapters' loop, recomputing with fused heads, this engine, and transformers.

    python -m benchmarks.generation                 # all cases on one thread, about ten minutes on a quiet machine
    python -m benchmarks.generation --quick         # a minute: one round, the small cases
    python -m benchmarks.generation --cases S-256 X --rounds 3

One thread. What counts is the thread's own processor time, so that waiting for other programs does not. All ways are
timed in turn, round after round, so that what slows the machine slows all alike, and each round gives its own ratio.
The chapters' loop, the fused model and the engine have the same weights, and before anything is timed their logits are
compared at every step of a text, inside the window and beyond. Every way draws each token from the whole distribution.

`transformers` is `GPT2LMHeadModel.generate(use_cache=True)` of the same shape with random weights. It never slides:
past the window it goes on with a longer one, which is less work and another text.

GPT-2 small is compared with the time that reading its matrices once from memory takes, measured in the same rounds.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from minigpt.engine import Reader
from minigpt.generation import continuations, generate
from minigpt.lean import lean_model
from minigpt.model import TransformerLanguageModel
from minigpt.tokenizer import CharTokenizer
from tests.reference import LoopTransformer

VOCABULARY = 65
CASES = {
    "S-256": ({"n_layer": 4, "n_head": 4, "n_embd": 64, "block_size": 16}, 256, 9.0),
    "S-1000": ({"n_layer": 4, "n_head": 4, "n_embd": 64, "block_size": 16}, 1000, 9.0),
    "M-256": ({"n_layer": 4, "n_head": 4, "n_embd": 128, "block_size": 64}, 256, 4.0),
    "W-256": ({"n_layer": 4, "n_head": 4, "n_embd": 128, "block_size": 256}, 256, 9.0),
    "L-256": ({"n_layer": 6, "n_head": 6, "n_embd": 384, "block_size": 256}, 256, 13.0),
}
"""Sizes, new tokens after a prompt of one, and the speed to reach as a multiple of the chapters' loop."""
QUICK = ("S-256", "M-256", "W-256")
GPT2 = {"vocab_size": 50257, "block_size": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12}
GPT2_TOKENS = 64
TOLERANCE = 1e-5
"""Largest difference between logits that float32 rounding explains."""
COUNT = 8

Way = Callable[[], object]


class Letters:
    """A model with a vocabulary of single characters, as `minigpt.generate` wants it."""

    def __init__(self, model: TransformerLanguageModel) -> None:
        self.model = model
        self.tokenizer = CharTokenizer.from_characters([chr(0x100 + number) for number in range(VOCABULARY)])


def transformers_way(size: dict[str, int], tokens: int, vocabulary: int) -> Way:
    """Return a function that generates with transformers."""
    from transformers import GPT2Config, GPT2LMHeadModel

    positions = max(size["block_size"], tokens + 1)
    shape = {name: size[name] for name in ("n_layer", "n_head", "n_embd")}
    config = GPT2Config(vocab_size=vocabulary, n_positions=positions, bos_token_id=0, eos_token_id=None, **shape)
    model = GPT2LMHeadModel(config).eval()
    start = torch.zeros(1, 1, dtype=torch.long)
    settings = {"do_sample": True, "top_k": 0, "max_new_tokens": tokens, "use_cache": True, "pad_token_id": 0}
    return lambda: model.generate(start, attention_mask=torch.ones_like(start), **settings)


@torch.no_grad()
def recompute(model: TransformerLanguageModel, tokens: int) -> torch.Tensor:
    """Generate as the chapters do, with the fused model."""
    idx = torch.zeros(1, 1, dtype=torch.long)
    for _ in range(tokens):
        logits, _ = model(idx[:, -model.block_size :])
        idx = torch.cat((idx, torch.multinomial(logits[:, -1].softmax(-1), 1)), dim=1)
    return idx


def check(loop: LoopTransformer, fused: TransformerLanguageModel) -> float:
    """Return the largest difference between the loop's logits and the engine's, over a text inside and beyond.

    Raises:
        SystemExit: If they do not compute the same.
    """
    block_size = fused.block_size
    text = np.random.default_rng(1).integers(VOCABULARY, size=(1, block_size + 20))
    reader, apart = Reader(lean_model(fused)), 0.0
    for end in range(1, text.shape[1] + 1):
        logits = reader.read(text[:, end - 1 : end])
        if end % max(1, block_size // 16) == 0 or end > block_size:
            with torch.no_grad():
                expected = loop(torch.from_numpy(text[:, max(0, end - block_size) : end]))[0][:, -1]
            apart = max(apart, float((logits - expected).abs().max()))
    if apart > TOLERANCE:
        raise SystemExit(f"the engine's logits are not the loop's: {apart}")
    return apart


def seconds(way: Way, repeats: int = 1) -> float:
    """Return the processor time of one call."""
    start = time.thread_time()
    for _ in range(repeats):
        way()
    return (time.thread_time() - start) / repeats


def interleaved(ways: dict[str, Way], rounds: int) -> dict[str, list[float]]:
    """Return the times of each way, taken in turn after one round that does not count."""
    for name, way in ways.items():
        if name != "chapters' loop":
            way()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            times[name].append(seconds(way))
    return times


def ratio(slow: list[float], fast: list[float]) -> str:
    """Return how many times as fast, by the least times and by the median of the rounds' own ratios."""
    median = statistics.median(a / b for a, b in zip(slow, fast, strict=True))
    return f"{min(slow) / min(fast):.1f} | {median:.1f}"


def measure(name: str, rounds: int) -> None:
    """Print the rows of one case, and how long eight continuations inside the window take beside one."""
    size, tokens, goal = CASES[name]
    torch.manual_seed(1337)
    loop = LoopTransformer(vocab_size=VOCABULARY, dropout=0.0, **size).eval()
    model = TransformerLanguageModel(vocab_size=VOCABULARY, **size).eval()
    model.load_state_dict(loop.state_dict())
    apart, ckpt, start = check(loop, model), Letters(model), torch.zeros(1, 1, dtype=torch.long)
    ways: dict[str, Way] = {
        "chapters' loop": lambda: loop.generate(start, tokens),
        "fused, recomputing": lambda: recompute(model, tokens),
        "transformers, cache": transformers_way(size, tokens, VOCABULARY),
        "model.generate": lambda: model.generate(start, tokens),
        "minigpt.generate": lambda: list(generate(ckpt, "", max_new_tokens=tokens, seed=1)),
    }
    times = interleaved(ways, rounds)
    base, peer = times["chapters' loop"], times["transformers, cache"]
    for label, own in times.items():
        print(
            f"| {name} | {label} | {tokens / min(own):,.0f} | {ratio(base, own)} | {ratio(peer, own)} | "
            + (f"≥ {goal:g} and ≥ 2 | {apart:.0e} |" if label == "model.generate" else " | |"),
            flush=True,
        )
    inside = size["block_size"] - 1
    settings = {"max_new_tokens": inside, "seed": 1}
    both: dict[str, Way] = {
        "one": lambda: list(generate(ckpt, "", **settings)),
        "eight": lambda: continuations(ckpt, "", COUNT, **settings),
    }
    repeats = max(1, 256 // inside)
    seconds(both["eight"], repeats)
    pairs = [{label: seconds(way, repeats) for label, way in both.items()} for _ in range(max(rounds, 5))]
    costs = ratio([pair["eight"] for pair in pairs], [pair["one"] for pair in pairs])
    print(f"| {name} | {COUNT} continuations inside the window cost, of one | | {costs} | | | ≤ 2 | |", flush=True)


def measure_gpt2(rounds: int) -> None:
    """Print the rows of GPT-2 small's shape: this engine, transformers, and the time to read the matrices."""
    torch.manual_seed(1337)
    model = TransformerLanguageModel(
        **GPT2, activation="gelu_tanh", qkv_bias=True, head_bias=False, tied=True
    ).eval()  # fmt: skip
    start = torch.zeros(1, 1, dtype=torch.long)
    lean = lean_model(model, thorough=True)
    matrices = [part.matrix for layer in lean.layers for part in layer if part is not None] + [lean.lm_head.matrix]
    read = sum(matrix.numel() * matrix.element_size() for matrix in matrices)
    block = torch.randn(read // 4 // 4096, 4096)
    vector, out = torch.randn(block.shape[0]), torch.empty(4096)
    ways: dict[str, Way] = {
        "reading the matrices' bytes once a token, by adding": lambda: block.sum(),
        "the same, by a product with a vector": lambda: torch.mv(block.T, vector, out=out),
        "transformers, cache": transformers_way(GPT2, GPT2_TOKENS, GPT2["vocab_size"]),
        "model.generate": lambda: model.generate(start, GPT2_TOKENS),
    }
    times = interleaved(ways, rounds)
    floors, peer = list(times.values())[:2], times["transformers, cache"]
    floor = min(floors, key=min)
    bandwidth = read / min(floor) / 1e9
    print(f"\nGPT-2 small: {read / 1e6:.0f} MB of matrices a token at {bandwidth:.1f} GB/s\n")
    print("| way | ms a token, least | of the floor, least | median | of transformers' time, least | median | goal |")
    print("|---|---|---|---|---|---|---|")
    for label, own in times.items():
        each = own if own in floors else [one / GPT2_TOKENS for one in own]
        theirs = [one / GPT2_TOKENS for one in peer]
        goal = "≤ 1.3 of the floor, ≤ 1 of transformers" if label == "model.generate" else ""
        print(
            f"| {label} | {1000 * min(each):.1f} | {min(each) / min(floor):.2f} | "
            f"{statistics.median(a / b for a, b in zip(each, floor, strict=True)):.2f} | "
            f"{min(each) / min(theirs):.2f} | "
            f"{statistics.median(a / b for a, b in zip(each, theirs, strict=True)):.2f} | {goal} |",
            flush=True,
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=[*CASES, "X"], default=[*CASES, "X"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one round of the small cases")
    arguments = parser.parse_args()
    cases, rounds = (QUICK, 1) if arguments.quick else (arguments.cases, arguments.rounds)
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, 1 thread, {rounds} rounds\n")
    for name in cases:
        if name != "X":
            print(f"{name}: {', '.join(f'{key} {value}' for key, value in CASES[name][0].items())}")
    print(
        "\n| case | way | tokens/s, best | × the loop, least | median | × transformers, least | median | goal | apart |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in cases:
        if name != "X":
            measure(name, rounds)
    if "X" in cases:
        measure_gpt2(rounds)


if __name__ == "__main__":
    main()
