"""Measure the page: this viewer against `gr.Plot` with a heatmap subplot per head, on the same attention.

    python -m benchmarks.page                       # 4×4×128, 6×6×256 and 12×12×256
    python -m benchmarks.page --shapes 6x6x256 --rounds 9

Each page runs in a process of its own and draws attention that was computed beforehand, so what is measured is the way
from numbers on the server to pixels on the screen: packing or building the figure, transport, decoding, drawing,
painting. The rounds of both pages alternate. `gr.Plot` gets what costs it least: one byte a weight, no labels.

- repaint: from the click on a button that brings another analysis until its picture is painted, in milliseconds.
- head: from the click on a head until it is painted large. `gr.Plot` has no click; a button brings one head's figure.
- kB: bytes that reach the browser for one analysis.
- elements: elements below the component.
- heap: growth of the JavaScript heap over a number of further analyses, after garbage collection, in megabytes.
"""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from scripts.chromium import FLAGS, find_chromium
from scripts.running_app import ROOT, free_port, wait_until_it_answers

SHAPES = ("4x4x128", "6x6x256", "12x12x256")
PATIENCE_MS = 600_000
CLICK = """
async ([button, isDone]) => {
  const done = new Function('before', `return (${isDone})(before)`);
  const before = new Function(`return (${isDone})()`)();
  const start = performance.now();
  document.querySelector(button).click();
  while (!done(before)) await new Promise(requestAnimationFrame);
  await new Promise((resolve) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(null);
  }));
  return performance.now() - start;
}
"""
"""Click, wait until a mark differs from what it was, and until the frame after that has been painted."""
SHOWN = """
(before) => {
  const mark = document.querySelector('.mg')?.dataset.shown;
  return before === undefined ? mark : mark !== before;
}
"""
PLOTTED = """
(before) => {
  const plot = document.querySelector('#plot .js-plotly-plot');
  const mark = plot?._fullLayout?.meta ?? -1;
  if (before === undefined) return mark;
  const drawn = plot?.querySelectorAll('.heatmaplayer image').length ?? 0;
  return mark !== before && drawn === plot._fullData.length;
}
"""


@dataclass
class Figures:
    """What was measured on one page."""

    repaint: list[float] = field(default_factory=list)
    head: list[float] = field(default_factory=list)
    kilobytes: float = 0.0
    elements: int = 0
    heap: float = 0.0
    heap_over: int = 0


class Side:
    """One of the two pages in a browser of its own."""

    def __init__(self, browser: Browser, url: str, *, root: str, is_done: str, head_buttons: list[str]) -> None:
        """Open the page and wait for its first picture."""
        self.root = root
        self.is_done = is_done
        self.head_buttons = head_buttons
        self.figures = Figures()
        self.page: Page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.cdp: CDPSession = self.page.context.new_cdp_session(self.page)
        self.received = 0
        self.cdp.send("Network.enable")
        self.cdp.send("Performance.enable")
        self.cdp.on("Network.dataReceived", self._on_data)
        self.page.goto(url)
        self.page.locator("#next").wait_for()
        self.page.wait_for_function("() => window.Plotly !== undefined || document.querySelector('#plot') !== null")
        if root == "#viewer":
            self.page.locator(".mg[data-shown]").wait_for()
        self.click("#next")

    def _on_data(self, event: dict[str, Any]) -> None:
        self.received += event["dataLength"]

    def click(self, button: str) -> float:
        """Click and return the milliseconds until the answer is painted."""
        self.page.bring_to_front()
        return self.page.evaluate(CLICK, [button, self.is_done])

    def round(self, turn: int) -> None:
        """Measure one new analysis and one change of head."""
        self.received = 0
        self.figures.repaint.append(self.click("#next"))
        self.figures.kilobytes = self.received / 1000
        self.figures.elements = self.page.locator(f"{self.root} *").count()
        self.figures.head.append(self.click(self.head_buttons[turn % len(self.head_buttons)]))

    def grow(self, times: int) -> None:
        """Measure what further analyses leave behind."""
        before = self._heap()
        for _ in range(times):
            self.click("#next")
        self.figures.heap = self._heap() - before
        self.figures.heap_over = times

    def _heap(self) -> float:
        for _ in range(3):
            self.cdp.send("HeapProfiler.collectGarbage")
        metrics = {each["name"]: each["value"] for each in self.cdp.send("Performance.getMetrics")["metrics"]}
        return metrics["JSHeapUsedSize"] / 1e6

    def close(self) -> None:
        """Close the browser's window."""
        self.page.context.close()


@contextmanager
def serving(side: str, shape: str) -> Iterator[str]:
    """Serve one of the two pages in its own process."""
    port = free_port()
    log = ROOT / "test-artifacts" / f"benchmark-{side}.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.pages", side, shape, str(port)],
            cwd=ROOT,
            env=os.environ | {"GRADIO_ANALYTICS_ENABLED": "False"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_it_answers(process, url, log)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=60)


def measure(browser: Browser, shape: str, rounds: int, analyses: int, plot_analyses: int) -> tuple[Figures, Figures]:
    """Measure both pages at one shape."""
    n_layer, n_head = (int(size) for size in shape.split("x")[:2])
    heads = [f".mg-head[aria-label^='L{index // n_head}H{index % n_head}']" for index in range(n_layer * n_head)]
    with serving("viewer", shape) as viewer_url, serving("plot", shape) as plot_url:
        viewer = Side(browser, viewer_url, root="#viewer", is_done=SHOWN, head_buttons=heads[1:9])
        plot = Side(browser, plot_url, root="#plot", is_done=PLOTTED, head_buttons=["#head"])
        for turn in range(rounds):
            viewer.round(turn)
            plot.round(turn)
        viewer.grow(analyses)
        plot.grow(plot_analyses)
        viewer.close()
        plot.close()
    return viewer.figures, plot.figures


def line(name: str, figures: Figures) -> str:
    """Return one line of the table: medians, with minima in brackets."""
    times = [f"{statistics.median(values):7.0f} ({min(values):.0f})" for values in (figures.repaint, figures.head)]
    heap = f"{figures.heap:+.1f} / {figures.heap_over}"
    return f"{name:<22}{times[0]:>16}{times[1]:>14}{figures.kilobytes:>10,.0f}{figures.elements:>11,}{heap:>14}"


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), help="layers x heads x tokens")
    parser.add_argument("--rounds", type=int, default=7, help="measured repaints of each page")
    parser.add_argument("--analyses", type=int, default=100, help="analyses over which the heap is measured")
    parser.add_argument("--plot-analyses", type=int, default=10, help="the same for gr.Plot, which is slow")
    given = parser.parse_args()
    sys.stdout.write(f"{'':<22}{'repaint ms':>16}{'head ms':>14}{'kB':>10}{'elements':>11}{'heap MB':>14}\n")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=[*FLAGS, "--enable-precise-memory-info"]
        )
        for shape in given.shapes:
            viewer, plot = measure(browser, shape, given.rounds, given.analyses, given.plot_analyses)
            ratio = statistics.median(plot.repaint) / statistics.median(viewer.repaint)
            sys.stdout.write(line(f"{shape} this page", viewer) + "\n")
            sys.stdout.write(line(f"{shape} gr.Plot", plot) + f"   repaint {ratio:.1f} times slower\n")
            sys.stdout.flush()
        browser.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
