"""Take the README's pictures of the page with the shipped checkpoints: `python -m scripts.screenshots`."""

from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, expect, sync_playwright

from scripts.chromium import FLAGS, find_chromium
from scripts.running_app import ROOT, running_app


class Picture(NamedTuple):
    """One picture: where it goes and for whom the page is opened."""

    name: str
    language: str
    width: int
    dark: bool


HEAD = "L2H1"
"""The head that is shown large: in the shipped model it looks at the first character of the word."""

PICTURES = (
    Picture("screenshot-en.png", "en-US", 1440, dark=False),
    Picture("screenshot-ko.png", "ko-KR", 1440, dark=False),
    Picture("screenshot-dark.png", "en-US", 1440, dark=True),
    Picture("screenshot-phone.png", "ko-KR", 390, dark=False),
)


def take(browser: Browser, url: str, picture: Picture, folder: Path) -> None:
    """Open the page, wait until it has drawn, and keep what it shows."""
    context = browser.new_context(
        viewport={"width": picture.width, "height": 900},
        locale=picture.language,
        color_scheme="dark" if picture.dark else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(url)
    expect(page.locator("[data-shown]")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name=HEAD).click()
    expect(page.locator(f"[data-shown$=':{HEAD[1]}:{HEAD[3]}']")).to_be_visible(timeout=60_000)
    page.evaluate("document.fonts.ready")
    page.screenshot(path=folder / picture.name, full_page=True)
    context.close()


def main() -> None:
    """Start the app and take every picture."""
    with running_app(ROOT / "checkpoints", ROOT / "test-artifacts" / "screenshots.log") as url, sync_playwright() as it:
        browser = it.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        for picture in PICTURES:
            take(browser, url, picture, ROOT / "assets")
        browser.close()


if __name__ == "__main__":
    main()
