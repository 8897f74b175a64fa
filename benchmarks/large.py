"""Measure a model of GPT-2's small shape on the page: 12 layers × 12 heads, 1,024 tokens, 50,257 different ones.

    python -m benchmarks.large
    python -m benchmarks.large --layers 6 --tokens 512

The weights are random, the vocabulary is made of pairs of bytes, and both lie in a temporary folder. The page runs in a
process of its own and is driven in Chromium.

- load: from calling `load_checkpoint` until the model is there, in a process that has read a small model before.
- analysis: from the change of the prompt until its picture is painted, in seconds, and what of it reaches the browser.
- head: from the click on a head until it is painted at full resolution, in milliseconds.
- longest task: the longest time for which the page answers nothing, in milliseconds.
- memory: the most that the process had, and has at the end, in megabytes.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Page, sync_playwright
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from minigpt import TransformerLanguageModel, save_checkpoint
from minigpt.subwords import BYTES, SubwordTokenizer
from scripts.chromium import FLAGS, find_chromium
from scripts.running_app import ROOT, free_port, wait_until_it_answers

VOCABULARY = 50_257
TEXT = "What light through yonder window breaks? It is the east, and every head of it is looked at. "
OBSERVE = """
window.longest = 0;
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
}).observe({ type: 'longtask', buffered: true });
"""
PAINTED = """
async ([before, act]) => {
  window.longest = 0;
  const start = performance.now();
  new Function(act)();
  const shown = () => document.querySelector('.mg')?.dataset.shown;
  while (shown() === before) await new Promise(requestAnimationFrame);
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  return performance.now() - start;
}
"""
"""Do something, wait until something else is drawn than before, and until the frame after that has been painted."""
TYPE = """
const box = document.querySelector('#prompt textarea');
Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(box, %s);
box.dispatchEvent(new Event('input', { bubbles: true }));
"""
PAINTED_THUMBNAILS = """
[...document.querySelectorAll('.mg-head canvas')].filter((canvas) => {
  const { width, height } = canvas;
  return canvas.getContext('2d').getImageData(0, 0, width, height).data.some((value) => value !== 0);
}).length
"""


def byte_pairs() -> SubwordTokenizer:
    """Return a byte-level vocabulary: every byte, pairs of bytes, the end of a text."""
    single = list(BYTES)
    letters = sorted(single, key=lambda char: not (char.isascii() and char.isalpha()))
    pairs = [(one, other) for one in letters for other in letters][: VOCABULARY - 1 - len(single)]
    pieces = [*single, *(one + other for one, other in pairs), "<|endoftext|>"]
    made = Tokenizer(models.BPE(vocab={piece: index for index, piece in enumerate(pieces)}, merges=pairs))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return SubwordTokenizer(made.to_str())


def save_model(folder: Path, layers: int, heads: int, width: int, window: int) -> SubwordTokenizer:
    """Write the checkpoint, its heads far enough from even that they differ."""
    torch.manual_seed(1)
    options: dict[str, Any] = {"activation": "gelu_tanh", "tied": True, "head_bias": False, "qkv_bias": True}
    tokenizer = byte_pairs()
    model = TransformerLanguageModel(tokenizer.vocab_size, window, width, heads, layers, **options)
    with torch.no_grad():
        model.lm_head.weight.normal_(std=0.02)
        for name, parameter in model.named_parameters():
            if ".sa.heads" in name:
                parameter.normal_(std=0.08)
    save_checkpoint(folder, model, tokenizer)
    return tokenizer


def memory(pid: int) -> tuple[float, float]:
    """Return the most memory that a process had, and what it has, in megabytes (10⁶ bytes)."""
    status = Path(f"/proc/{pid}/status").read_text()
    most, now = (int(re.search(rf"{name}:\s+(\d+)", status)[1]) / 1e3 * 1.024 for name in ("VmHWM", "VmRSS"))
    return most, now


@contextmanager
def serving(checkpoints: Path) -> Iterator[tuple[str, int]]:
    """Serve the page in its own process; yields its address and the number of the process."""
    port = free_port()
    log = ROOT / "test-artifacts" / "benchmark-large.log"
    log.parent.mkdir(exist_ok=True)
    settings = {"MINIGPT_CHECKPOINTS": str(checkpoints), "GRADIO_SERVER_PORT": str(port)}
    settings |= {"GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_ANALYTICS_ENABLED": "False"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "app.py"], cwd=ROOT, env=os.environ | settings, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_it_answers(process, url, log)
            yield url, process.pid
        finally:
            process.terminate()
            process.wait(timeout=60)


def text_of(tokenizer: SubwordTokenizer, tokens: int) -> str:
    """Return a text of that many tokens, or very few less."""
    text = ""
    while len(tokenizer.encode(text)) < tokens:
        text += TEXT
    while len(tokenizer.encode(text)) > tokens:
        text = text[:-1]
    return text


def show(name: str, value: str) -> None:
    """Print one line of the table."""
    sys.stdout.write(f"{name:<44}{value:>22}\n")
    sys.stdout.flush()


def measure_loading(folder: Path) -> None:
    """Print what loading takes, in a process of its own."""
    code = (
        "import sys, time, minigpt\n"
        "from benchmarks.large import memory\n"
        "import os\n"
        "minigpt.load_checkpoint('checkpoints/chapter')\n"
        "before = memory(os.getpid())[0]\n"
        "start = time.perf_counter()\n"
        "ckpt = minigpt.load_checkpoint(sys.argv[1])\n"
        "print(time.perf_counter() - start, memory(os.getpid())[0] - before)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    seconds, taken = map(float, run.stdout.split())
    size = (folder / "model.safetensors").stat().st_size / 1e6
    show("load, s", f"{seconds:.1f}")
    show("load, MB of memory for MB of file", f"{taken:,.0f} / {size:,.0f}")


class Traffic:
    """Bytes that reach the browser."""

    def __init__(self, page: Page) -> None:
        self.received = 0
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.dataReceived", lambda event: self.add(event["dataLength"]))

    def add(self, count: int) -> None:
        """Count what has arrived."""
        self.received += count


def measure_page(page: Page, text: str, heads: list[tuple[int, int]], rounds: int) -> None:
    """Print what one text and some of its heads take."""
    traffic = Traffic(page)
    for turn in range(rounds):
        traffic.received = 0
        before = page.locator(".mg").get_attribute("data-shown")
        seconds = page.evaluate(PAINTED, [before, TYPE % json.dumps(text[: len(text) - turn])]) / 1000
        page.wait_for_timeout(500)
        show(f"analysis {turn + 1}, s", f"{seconds:.2f}")
        show(f"analysis {turn + 1}, kB", f"{traffic.received / 1000:,.0f}")
        show(f"analysis {turn + 1}, longest task in the page, ms", f"{page.evaluate('window.longest'):.0f}")
    show("thumbnails painted", f"{page.evaluate(PAINTED_THUMBNAILS)}")
    times, longest, traffic.received = [], 0.0, 0
    for layer, head in heads:
        before = page.locator(".mg").get_attribute("data-shown")
        click = f"document.querySelector(\".mg-head[aria-label^='L{layer}H{head}']\").click()"
        times.append(page.evaluate(PAINTED, [before, click]))
        page.wait_for_timeout(300)
        longest = max(longest, page.evaluate("window.longest"))
    show("head at full resolution, median (max) ms", f"{statistics.median(times):.0f} ({max(times):.0f})")
    show("head at full resolution, kB", f"{traffic.received / len(heads) / 1000:,.0f}")
    show("head, longest task in the page, ms", f"{longest:.0f}")


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3, help="measured analyses")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        tokenizer = save_model(Path(folder) / "random", given.layers, given.heads, given.width, given.tokens)
        measure_loading(Path(folder) / "random")
        text = text_of(tokenizer, given.tokens)
        show("tokens", f"{len(tokenizer.encode(text)):,}")
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        with serving(Path(folder)) as (url, pid):
            show("memory before, MB", f"{memory(pid)[1]:,.0f}")
            page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            page.set_default_timeout(300_000)
            page.add_init_script(OBSERVE)
            start = time.perf_counter()
            page.goto(url)
            page.locator(".mg[data-shown]").wait_for()
            show("first picture of a short text, s", f"{time.perf_counter() - start:.1f}")
            every = [(layer, head) for layer in range(given.layers) for head in range(given.heads)]
            measure_page(page, text, every[5 :: max(1, len(every) // 8)], given.rounds)
            most, now = memory(pid)
            show("memory, most and at the end, MB", f"{most:,.0f} / {now:,.0f}")
        browser.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
