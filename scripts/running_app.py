"""Start the real app in its own process, wait until it answers, end it by its handle."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 180


def free_port() -> int:
    """Return a port on 127.0.0.1 that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(url: str) -> bool:
    """Tell whether the app at `url` serves its configuration."""
    try:
        with urllib.request.urlopen(f"{url}/config", timeout=10) as response:  # noqa: S310
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def running_app(checkpoints: Path, log: Path, **environment: str) -> Iterator[str]:
    """Serve the page with the models of one folder.

    Args:
        checkpoints: A folder with one checkpoint folder per model.
        log: Where the app's output goes.
        **environment: Further environment variables of the app's process.

    Yields:
        The address of the page, without a slash at its end.

    Raises:
        RuntimeError: If the app ended or did not answer within three minutes; the message carries its output.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {
        "MINIGPT_CHECKPOINTS": str(checkpoints),
        "GRADIO_SERVER_NAME": "127.0.0.1",
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_ANALYTICS_ENABLED": "False",
        "PYTHONUNBUFFERED": "1",
    }
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "app.py"],
            cwd=ROOT,
            env=os.environ | settings | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_until_it_answers(process, url, log)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until_it_answers(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    """Return once the app serves its configuration; raise with its output if it ends or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while not answers(url):
        try:
            process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            if time.monotonic() < deadline:
                continue
        ended = process.poll() is not None
        what = f"ended with status {process.returncode}" if ended else f"did not answer within {START_SECONDS} s"
        raise RuntimeError(f"The app {what}. Its output:\n{log.read_text(errors='replace')[-4000:]}")
