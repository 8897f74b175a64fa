"""The page below a sub-path, as behind a proxy or inside another app: every address on it is relative."""

import re
import subprocess
import sys
import time

import pytest
from playwright.sync_api import expect

from scripts.running_app import ROOT, answers, free_port
from tests.ui.viewing import Viewer, save_random_model

SERVER = """
import sys
import fastapi, gradio, uvicorn
from minigpt.ui.page import build_app, launch_options
app = fastapi.FastAPI()
# A browser may ask the host, outside the sub-path, for an icon of its own.
app.get("/favicon.ico", status_code=204)(lambda: None)
gradio.mount_gradio_app(app, build_app(sys.argv[1]), "/lesson/three", **launch_options())
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_random_model(folder / "small", "abcdefgh ", n_layer=2, n_head=3, block_size=11)
    port = free_port()
    url = f"http://127.0.0.1:{port}/lesson/three"
    with subprocess.Popen([sys.executable, "-c", SERVER, str(folder), str(port)], cwd=ROOT) as server:
        try:
            deadline = time.monotonic() + 180
            while not answers(url):
                assert server.poll() is None
                assert time.monotonic() < deadline
                with pytest.raises(subprocess.TimeoutExpired):
                    server.wait(timeout=0.2)
            yield url
        finally:
            server.terminate()


@pytest.mark.parametrize("ending", ["/", ""])
def test_the_page_works_below_a_sub_path(page, traffic, address, ending):
    viewer = Viewer(page).opened(address + ending)
    viewer.prompt.fill("a bad cafe")
    expect(page.get_by_text("10 tokens in a window of 11")).to_be_visible()
    expect(viewer.root).to_have_attribute("data-shown", re.compile(r"^\d+:0:0$"))
    assert [each for each in traffic if "/lesson/three" not in each] == []
