"""Measure what a visitor sees of a running generation and of a replay: updates a second in a real browser.

    python -m benchmarks.stream                 # the shipped models
    python -m benchmarks.stream --tokens 120

- text: changes of the text on the page, a second, from the first new token to the last; each is counted in the frame
  that paints it. Pictures follow meanwhile at their own pace.
- tokens: generated tokens a second over the same time.
- step: milliseconds from the key that moves the slider by one step inside the window until its picture is painted.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from benchmarks.page import PATIENCE_MS
from scripts.chromium import FLAGS, find_chromium
from scripts.running_app import ROOT, running_app

PROMPT_LENGTH = 7

WATCH = """
(end) => new Promise((resolve) => {
  const times = [], counts = [];
  let last = 0;
  const look = () => {
    const token = [...document.querySelectorAll('.mg-generated')].at(-1)?.getAttribute('aria-label') ?? '';
    const count = Number(/[(]([0-9]+)[)]$/.exec(token)?.[1] ?? 0);
    if (count !== last) { times.push(performance.now()); counts.push(last = count); }
    const busy = document.querySelector('#generate').disabled || document.querySelector('.mg-pending') !== null;
    if (count === end && !busy) resolve([times, counts]);
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  document.querySelector('#generate').click();
})
"""
STEP = """
async () => {
  const root = document.querySelector('.mg'), slider = document.querySelector('.mg-slider');
  const before = root.dataset.step, start = performance.now();
  slider.value = Number(slider.value) - 1;
  slider.dispatchEvent(new Event('input'));
  while (root.dataset.step === before) await new Promise(requestAnimationFrame);
  await new Promise((resolve) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(null);
  }));
  return performance.now() - start;
}
"""


def measure(browser: Browser, url: str, model: str, tokens: int) -> tuple[float, float, list[float]]:
    """Return updates and tokens a second, and the milliseconds of some steps."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(url)
    page.locator(".mg[data-shown]").wait_for()
    if page.locator("#model input").input_value() != model:
        before = page.locator(".mg").get_attribute("data-shown")
        page.locator("#model input").click()
        page.get_by_role("option", name=model).click()
        page.wait_for_function("before => document.querySelector('.mg').dataset.shown !== before", arg=before)
    before = page.locator(".mg").get_attribute("data-shown")
    # A short beginning that the model can read, whatever its language.
    prompt = page.locator("#prompt textarea").input_value()[:PROMPT_LENGTH]
    page.locator("#prompt textarea").fill(prompt)
    page.wait_for_function("before => document.querySelector('.mg').dataset.shown !== before", arg=before)
    page.locator("#length input").fill(str(tokens))
    times, counts = page.evaluate(WATCH, len(prompt) + tokens - 1)
    seconds = (times[-1] - times[0]) / 1000
    page.evaluate(STEP)  # the first one asks the server
    steps = [page.evaluate(STEP) for _ in range(12)]
    page.context.close()
    return (len(times) - 1) / seconds, (counts[-1] - counts[0]) / seconds, steps


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=240, help="new tokens, 1 to 500")
    parser.add_argument("--checkpoints", type=Path, default=ROOT / "checkpoints", help="a folder of models")
    given = parser.parse_args()
    models = sorted(path.parent.name for path in given.checkpoints.glob("*/config.json"))
    sys.stdout.write(f"{'':<22}{'text /s':>10}{'tokens /s':>12}{'step ms':>16}\n")
    with tempfile.TemporaryDirectory() as logs, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        with running_app(given.checkpoints, Path(logs) / "app.log") as url:
            for model in models:
                text, tokens, steps = measure(browser, url, model, given.tokens)
                step = f"{statistics.median(steps):.0f} ({min(steps):.0f})"
                sys.stdout.write(f"{model:<22}{text:>10.1f}{tokens:>12.1f}{step:>16}\n")
                sys.stdout.flush()
        browser.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
