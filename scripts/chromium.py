"""Find a Chromium for the browser tests and the page benchmark, or install one.

`python -m scripts.chromium` takes, in this order: a Chromium or Chrome that is there already; on Debian and its
relatives, as root, the distribution's package (and a font for Korean); otherwise the build that Playwright downloads.
The headless one is preferred: it draws no window of its own and opens a page in two thirds of the processor time.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Whatever a page asks of another host fails here, and the tests see that it asked.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def find_chromium() -> str | None:
    """Return the path of an installed Chromium or Chrome, or None where only Playwright's own build can help."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    return next((place for place in PLACES if Path(place).exists()), None)


def has_korean_font() -> bool:
    """Tell whether Korean can be looked at in a picture of the page."""
    fonts = shutil.which("fc-list")
    listed = subprocess.run([fonts, ":lang=ko"], capture_output=True).stdout if fonts else b""  # noqa: S603
    return bool(listed.strip())


def is_packaged(package: str) -> bool:
    """Tell whether the distribution's lists, as fetched last, know a package."""
    cache = shutil.which("apt-cache")
    return cache is not None and subprocess.run([cache, "show", package], capture_output=True).returncode == 0  # noqa: S603


def install_with_apt() -> None:
    """Install what is missing from the distribution where this is Debian and we are root; else do nothing."""
    apt = shutil.which("apt-get")
    needs_browser, needs_font = find_chromium() is None, not has_korean_font()
    if apt is None or os.geteuid() != 0 or not (needs_browser or needs_font):
        return

    def call(*arguments: str) -> None:
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run([apt, *arguments], env=environment, stdin=subprocess.DEVNULL)  # noqa: S603

    call("update", "-q")
    packages = ["fontconfig", "fonts-noto-cjk"] if needs_font else []
    if needs_browser:
        packages.append(NAMES[0] if is_packaged(NAMES[0]) else "chromium")
    call("install", "-q", "-y", "--no-install-recommends", *packages)


def install_with_playwright() -> bool:
    """Download the build that this version of Playwright was made for; an existing one is kept."""
    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    return subprocess.run(command, stdin=subprocess.DEVNULL).returncode == 0  # noqa: S603


def main() -> int:
    """Install a Chromium if there is none; return the exit status."""
    install_with_apt()
    if find_chromium() is None and not install_with_playwright():
        sys.stderr.write(
            "The browser tests need Chromium and none could be installed. "
            "Install Chromium or Google Chrome with your system's package manager and run the command again.\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
