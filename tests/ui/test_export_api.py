"""`/export` over HTTP: the file of every format holds the exact numbers, and a mistake is answered with a sentence."""

import csv
import json
import re
import sys
import tempfile
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from gradio_client.exceptions import AppError

from minigpt import trace
from minigpt.ui import mcp

TEXT = "the quick brown fox,\njumps over"


@pytest.fixture(scope="module")
def client(connect, random_url):
    return connect(random_url)


@pytest.fixture(scope="module")
def traced(random_checkpoint):
    return trace(random_checkpoint, TEXT)


def export(client, text=TEXT, **options):
    return Path(client.predict(text, **options, api_name="/export"))


def test_an_npz_over_http_equals_the_trace(client, traced):
    path = export(client)
    assert path.name == "minigpt-random.npz"
    arrays = np.load(path, allow_pickle=False)
    assert np.array_equal(arrays["pattern"], traced.pattern.numpy())
    assert (arrays["tokens"].tolist(), int(arrays["start"])) == (traced.tokens, len(TEXT) - 24)


def test_a_csv_over_http_is_the_head_that_was_asked_for(client, traced):
    path = export(client, format="csv", layer=2, head=3)
    assert path.name == "minigpt-random-L2H3.csv"
    rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    for query, row in enumerate(rows[2:]):
        exact = traced.pattern[2, 3, query, : query + 1].numpy()
        assert np.array_equal(np.array(row[2 : query + 3], dtype=np.float32), exact)


def test_a_json_over_http_equals_the_trace(client, traced):
    read = json.loads(export(client, format="json").read_text(encoding="utf-8"))
    assert read["tokens"] == traced.tokens
    assert (read["checkpoint"]["name"], read["checkpoint"]["n_head"]) == ("random", 4)
    last = [np.float32(read["pattern"][1][head][23]) for head in range(4)]
    assert np.array_equal(np.stack(last), traced.pattern[1, :, 23].numpy())


def test_a_page_over_http_names_no_other_host_and_needs_no_file(client):
    page = export(client, format="html", layer=1, head=2, language="ko").read_text(encoding="utf-8")
    assert '<html lang="ko">' in page
    own = page[: page.index("<script>")] + page[page.index("</script>") :]
    assert re.findall(r"""(?:src|href)=["'](?!data:)""", own) == []
    assert json.loads(re.search(r'id="mg-data">\s*(.*?)\s*</script>', own, re.DOTALL)[1])["choice"] == {
        "layer": 1,
        "head": 2,
    }


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"text": ""}, "The prompt is empty"),
        ({"text": "ÅB"}, "has no 'Å' ×1, 'B' ×1"),
        ({"text": 5}, "text is 5; it must be a text"),
        ({"checkpoint": "../random"}, r"no model called \.\./random\. Choose one of"),
        ({"format": "exe"}, "no export format called exe. Choose one of npz, csv, json, html"),
        ({"format": "../../x.npz"}, "no export format called"),
        ({"format": "csv", "layer": 3}, "no head L3H0: layers run from 0 to 2 and heads from 0 to 3"),
        ({"format": "npz", "head": "0"}, "no head L0H0"),
        ({"layer": -1}, "no head L-1H0"),
    ],
)
def test_every_mistake_is_answered_with_the_way_out(client, options, sentence):
    with pytest.raises(AppError, match=sentence):
        export(client, **{"text": TEXT, **options})


def test_files_lie_in_gradios_cache_and_nowhere_else(random_url):
    def post(address, body):
        asked = urllib.request.Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310
        with urllib.request.urlopen(asked, timeout=60) as response:  # noqa: S310
            return json.load(response)

    address = f"{random_url}/gradio_api/call/v2/export"
    event = post(address, {"text": TEXT, "format": "csv"})["event_id"]
    with urllib.request.urlopen(f"{address}/{event}", timeout=60) as response:  # noqa: S310
        *_, last = response.read().decode().strip().splitlines()
    (answer,) = json.loads(last.removeprefix("data: "))
    assert Path(answer["path"]).is_relative_to(Path(tempfile.gettempdir()) / "gradio")
    assert answer["url"].startswith(random_url)
    assert (answer["orig_name"], answer["mime_type"]) == ("minigpt-random-L0H0.csv", "text/csv")


# --- tools over MCP ---------------------------------------------------------------------------------------------------


def test_the_tools_need_a_package_and_the_app_says_which(monkeypatch):
    monkeypatch.setattr(mcp, "find_spec", lambda _name: None)
    assert mcp.mcp_wanted([], {}) is False
    with pytest.raises(SystemExit, match=re.escape(f'{sys.executable} -m pip install "mcp>=1.21,<2"')):
        mcp.mcp_wanted(["--mcp"], {})


@pytest.mark.parametrize(
    ("arguments", "environment", "wanted"),
    [
        ([], {}, False),
        ([], {"MINIGPT_MCP": "0"}, False),
        (["--mcp"], {}, True),
        ([], {"MINIGPT_MCP": "1"}, True),
    ],
)
def test_the_tools_are_offered_only_on_request(monkeypatch, arguments, environment, wanted):
    monkeypatch.setattr(mcp, "find_spec", lambda name: name)
    assert mcp.mcp_wanted(arguments, environment) is wanted
