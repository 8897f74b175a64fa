"""What the browser tests share: small models to look at, and the viewer as a person finds it on the page."""

import re
from pathlib import Path

import torch
from playwright.sync_api import Locator, Page, expect

from minigpt.checkpoint import save_checkpoint
from minigpt.config import ModelConfig
from minigpt.model import build_model
from minigpt.tokenizer import CharTokenizer

SIGNS = {" ": "␣", "\n": "⏎", "\t": "⇥", "\u200d": "U+200D"}
"""How the page shows the invisible characters of these tests."""
ODD_CHARACTERS = "abcdefghijklmnopqrstuvwxyz </>&\"'$%{}=+#\n\t\u200d가나다라마바사안녕하세요.🙂"


def save_random_model(
    path: Path, characters: str, *, n_layer: int, n_head: int, block_size: int, seed: int = 5, spread: float = 0.45
) -> None:
    """Write a checkpoint with random weights, large enough that its heads differ."""
    generator = torch.Generator().manual_seed(seed)
    tokenizer = CharTokenizer.from_characters(dict.fromkeys(characters))
    config = ModelConfig(
        kind="transformer",
        vocab_size=tokenizer.vocab_size,
        block_size=block_size,
        n_embd=8 * n_head,
        n_head=n_head,
        n_layer=n_layer,
    )
    model = build_model(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread)
    save_checkpoint(path, model, tokenizer)


class Viewer:
    """The viewer on a page."""

    def __init__(self, page: Page):
        self.page = page
        self.root = page.locator(".mg")
        self.prompt = page.locator("#prompt textarea")
        self.strip = page.get_by_role("listbox", name="Text, token by token")
        self.detail = page.get_by_role("heading", name=re.compile("^Layer"))
        self.heatmap = page.get_by_role("img", name=re.compile("^Attention heatmap"))
        self.map = page.get_by_role("application", name=re.compile("^Cells of"))
        self.live = page.locator(".mg-live")
        self.tip = page.get_by_role("tooltip")
        self.notice = page.locator(".mg-notice")

    def opened(self, url: str) -> "Viewer":
        """Open the page and wait for its first picture."""
        self.page.goto(url)
        expect(self.root).to_have_attribute("data-shown", re.compile(r"^\d+:\d+:\d+$"))
        return self

    def at(self, url: str, text: str) -> "Viewer":
        """Show a text with the first head and what tokens attend to, on the page that is open if it is at `url`."""
        if not self.page.url.startswith(f"{url}/"):
            self.opened(url)
        self.type(text)
        self.choose(0, 0)
        self.page.get_by_role("radio", name="attends to").click()
        return self

    def shown(self) -> str:
        """Return which request, layer and head are drawn."""
        return self.root.get_attribute("data-shown") or ""

    def redrawn(self, before: str) -> None:
        """Wait until something else is drawn."""
        expect(self.root).not_to_have_attribute("data-shown", before)

    def type(self, text: str) -> None:
        """Replace the prompt and wait for its picture."""
        before = self.shown()
        self.prompt.fill(text)
        self.redrawn(before)

    def head(self, layer: int, head: int) -> Locator:
        """Return a head's thumbnail."""
        return self.page.get_by_role("button", name=re.compile(rf"^L{layer}H{head}(,|$)"))

    def choose(self, layer: int, head: int) -> None:
        """Click a head and wait for its picture."""
        before = self.shown()
        if before.endswith(f":{layer}:{head}"):
            return
        self.head(layer, head).click()
        self.redrawn(before)

    def token(self, position: int) -> Locator:
        """Return the token of the strip at a true position."""
        return self.strip.get_by_role("option", name=re.compile(rf"\({position}\)$"))

    def tokens(self) -> list[str]:
        """Return the text of every token in the strip."""
        return self.strip.get_by_role("option").all_text_contents()

    def named_tokens(self) -> list[str]:
        """Return what a screen reader hears for every token."""
        return self.strip.get_by_role("option").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")

    def lit(self) -> list[bool]:
        """Tell for every token of the strip whether it has the colour of a weight."""
        return self.strip.get_by_role("option").evaluate_all(
            "all => all.map(one => one.style.getPropertyValue('--weight') !== '')"
        )

    def readout(self) -> dict[int, float]:
        """Return the weights beside the strip by true position."""
        rows = self.page.locator(".mg-top li").evaluate_all(
            "all => all.map(one => [one.querySelector('.mg-place'), one.querySelector('.mg-number')])"
            ".map(pair => pair.map(one => one.textContent))"
        )
        return {int(position): number(weight) for position, weight in rows}

    def labels(self, axis: str) -> list[list[str]]:
        """Return the labels of an axis as they stand on the page: token and true position of each."""
        lines = self.heatmap.locator(f".{axis}tick text").evaluate_all(
            "all => all.map(one => [...one.querySelectorAll('tspan.line')].map(line => line.textContent))"
            if axis == "x"
            else "all => all.map(one => one.textContent.split(/ (.*)/s).slice(0, 2).reverse())"
        )
        return [list(line) for line in lines]

    def weights(self) -> list[list[float | None]]:
        """Return what Plotly draws, None in the future."""
        return self.heatmap.evaluate(
            "plot => plot.data[0].z.map(row => [...row].map(value => Number.isNaN(value) ? null : value))"
        )

    def hover(self, query: int, key: int, length: int) -> None:
        """Put the pointer on a cell, given as indices in the window."""
        area = self.heatmap.locator(".nsewdrag").first
        area.scroll_into_view_if_needed()
        box = area.bounding_box()
        assert box is not None
        x = box["x"] + box["width"] * (key + 0.5) / length
        y = box["y"] + box["height"] * (query + 0.5) / length
        self.page.mouse.move(x - 1, y)
        self.page.mouse.move(x, y)

    def width_needed(self) -> int:
        """Return the width that the page takes, in pixels."""
        return self.page.evaluate("document.documentElement.scrollWidth")


def number(text: str) -> float:
    """Read a weight as the page writes it."""
    return 0.0 if text == "<0.001" else float(text)
