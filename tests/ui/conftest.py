"""The running app and a Chromium that fails a test on any console error and on any request to another host.

- `app_url`: the page with the shipped checkpoints. `start_app(folder)`: the page with the models of another folder.
- `random_checkpoint`, `random_url`: a small model with random weights, and the page with it.
- `connect(url)`: a program that talks to the app.
- `odd_models`, `odd_url`: a model with a vocabulary of awkward characters and one of digits, and the page with both.
- `page`: one fresh page, 1440 × 900, English, not yet at any address. `open_page(url, …)`: more of them, with another
  size, language or colour scheme. `traffic`: the addresses asked for by the pages of this test so far.
- `kept_page`: such a page that stays open for all tests of a file. Opening costs seconds, so a test that can start from
  what an earlier one left takes this one (`Viewer.at`).
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from gradio_client import Client
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Request,
    ViewportSize,
    WebError,
    expect,
    sync_playwright,
)

from minigpt import load_checkpoint
from minigpt.checkpoint import Checkpoint
from scripts.chromium import FLAGS, find_chromium
from scripts.running_app import ROOT, running_app
from tests.ui.viewing import ODD_CHARACTERS, save_random_model

ARTIFACTS = ROOT / "test-artifacts" / os.environ.get("PYTEST_XDIST_WORKER", "")
PATIENCE_MS = 30_000
SIZE: ViewportSize = {"width": 1440, "height": 900}
LOCAL_SCHEMES = ("data", "blob", "about")
failed_calls = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if report.when == "call":
        item.stash[failed_calls] = report.failed
    return report


@pytest.fixture(scope="session")
def start_app() -> Iterator[Callable[..., str]]:
    """Start the app with a folder of checkpoints and return its address; the same arguments share one process."""
    urls: dict[tuple, str] = {}
    with ExitStack() as stack:

        def start(checkpoints: Path, **environment: str) -> str:
            key = (Path(checkpoints), *sorted(environment.items()))
            if key not in urls:
                log = ARTIFACTS / f"app-{len(urls)}.log"
                urls[key] = stack.enter_context(running_app(Path(checkpoints), log, **environment))
            return urls[key]

        yield start


@pytest.fixture(scope="session")
def axe() -> str:
    """The rules of Deque's axe-core, as its Python package brings them."""
    found = find_spec("axe_playwright_python")
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def app_url(start_app) -> str:
    return start_app(ROOT / "checkpoints")


@pytest.fixture(scope="session")
def random_checkpoint(tmp_path_factory) -> Checkpoint:
    folder = tmp_path_factory.mktemp("models") / "random"
    save_random_model(folder, "abcdefghijklmnopqrstuvwxyz ,.!?\n", n_layer=3, n_head=4, block_size=24)
    return load_checkpoint(folder)


@pytest.fixture(scope="session")
def random_url(start_app, random_checkpoint) -> str:
    return start_app(random_checkpoint.path.parent)


@pytest.fixture(scope="session")
def odd_models(tmp_path_factory) -> Path:
    """Two models: `odd` knows Korean, markup and invisible characters; `숫자` knows digits only."""
    folder = tmp_path_factory.mktemp("models")
    save_random_model(folder / "odd", ODD_CHARACTERS, n_layer=3, n_head=4, block_size=32)
    save_random_model(folder / "숫자", "0123456789", n_layer=2, n_head=1, block_size=12)
    return folder


@pytest.fixture(scope="session")
def odd_url(start_app, odd_models) -> str:
    return start_app(odd_models)


@pytest.fixture(scope="session")
def connect() -> Iterator[Callable[[str], Client]]:
    """Connect a program to the app at an address, until the tests end."""
    with ExitStack() as stack:

        def connected(url: str) -> Client:
            client = Client(url, verbose=False)
            stack.callback(client.close)
            return client

        yield connected


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        yield chromium
        chromium.close()


class Watch:
    """What the pages of one test asked for, and what must not happen in any of them."""

    def __init__(self):
        self.traffic: list[str] = []
        self.faults: list[str] = []

    def end(self) -> None:
        """Fail if anything was seen that must not happen."""
        if self.faults:
            pytest.fail("The page misbehaved:\n" + "\n".join(self.faults), pytrace=False)

    def on_error(self, error: WebError) -> None:
        self.faults.append(f"uncaught: {error.error}")

    def on_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in LOCAL_SCHEMES:
            return
        self.traffic.append(request.url)
        if parts.hostname != "127.0.0.1":
            self.faults.append(f"asked another host: {request.url}")

    def on_console(self, kind: str, text: str, location: dict) -> None:
        if kind == "error":
            self.faults.append(f"console: {text} ({location.get('url')}:{location.get('lineNumber')})")


def observe(context: BrowserContext, watch: Callable[[], Watch]) -> None:
    """Tell what the pages of a context do to the watch of the moment."""
    context.on("request", lambda request: watch().on_request(request))
    context.on("console", lambda message: watch().on_console(message.type, message.text, message.location))
    context.on("weberror", lambda error: watch().on_error(error))


def keep_pictures(node: pytest.Item, pages: list[Page]) -> None:
    """Take a picture of every page of a test that failed."""
    name = re.sub(r"\W+", "-", node.nodeid.removeprefix("tests/ui/")).strip("-")
    for number, page in enumerate(pages):
        if not page.is_closed():
            page.screenshot(path=ARTIFACTS / f"{name}-{number}.png")


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def traffic(watch) -> list[str]:
    return watch.traffic


@pytest.fixture
def open_page(browser, watch, request) -> Iterator[Callable[..., Page]]:
    """Open pages; at the end keep pictures of a failure and fail on what `watch` saw."""
    pages: list[Page] = []

    def open_one(
        url: str | None = None,
        *,
        width: int = 1440,
        height: int = 900,
        language: str = "en-US",
        dark: bool = False,
        **options,
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            locale=language,
            color_scheme="dark" if dark else "light",
            **options,
        )
        observe(context, lambda: watch)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        pages.append(page)
        if url is not None:
            page.goto(url)
        return page

    yield open_one

    if watch.faults or request.node.stash.get(failed_calls, True):
        keep_pictures(request.node, pages)
    for page in pages:
        page.context.close()
    watch.end()


@pytest.fixture
def page(open_page) -> Page:
    return open_page()


class Kept:
    """A page that outlives its tests; `watch` is that of the test of the moment."""

    def __init__(self, browser: Browser):
        context = browser.new_context(viewport=SIZE, locale="en-US", color_scheme="light")
        self.watch = Watch()
        observe(context, lambda: self.watch)
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)


@pytest.fixture(scope="module")
def kept(browser) -> Iterator[Kept]:
    kept = Kept(browser)
    yield kept
    kept.page.context.close()


@pytest.fixture
def kept_page(kept, watch, request) -> Iterator[Page]:
    """The one page of a file, as the test before left it, in its usual size; after a failure it is opened anew."""
    kept.watch = watch
    kept.page.set_viewport_size(SIZE)
    yield kept.page
    if watch.faults or request.node.stash.get(failed_calls, True):
        keep_pictures(request.node, [kept.page])
        kept.page.goto("about:blank")
    watch.end()
