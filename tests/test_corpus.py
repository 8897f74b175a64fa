"""Corpora arrive whole or not at all; splits, batches and losses count every token as they say."""

import hashlib
import http.server
import json
import math
import threading
import unicodedata
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt import corpus as module
from minigpt.config import ModelConfig
from minigpt.corpus import (
    CORPORA,
    SourceFile,
    cache_folder,
    fetch,
    load_corpus,
    read_novels,
)
from minigpt.errors import CorpusError
from minigpt.model import build_model
from minigpt.splits import estimate_loss, get_batch, train_validation_split, validation_loss

CONTENT = bytes(range(256)) * 1500  # several chunks
PATH = "data/plays/input.txt"


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves one content, with or without ranges; can hang up after some bytes."""

    def __init__(self, state, *arguments):
        self.state = state
        super().__init__(*arguments)

    def do_GET(self):
        state = self.state
        wanted = self.headers.get("Range")
        state.requests.append((self.path, wanted))
        if self.path != f"/{PATH}":
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and state.ranges else 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(state.content) - start))
        self.end_headers()
        self.wfile.write(state.content[start : start + state.cut_after])

    def log_message(self, *_):
        """Keep the test's output clean."""


@pytest.fixture
def server():
    state = SimpleNamespace(content=CONTENT, requests=[], ranges=True, cut_after=len(CONTENT))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, state)) as httpd:
        state.address = f"http://127.0.0.1:{httpd.server_port}/"
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        httpd.shutdown()
        thread.join()


@pytest.fixture
def source():
    return SourceFile(path=PATH, size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_download_is_kept_as_it_came_and_never_fetched_twice(server, source, tmp_path):
    seen = []
    assert fetch(server.address, source, tmp_path, seen.append) == CONTENT
    assert sum(seen) == len(CONTENT)
    assert files_in(tmp_path) == [PATH]
    assert fetch(server.address, source, tmp_path) == CONTENT
    assert len(server.requests) == 1


def test_with_the_cache_no_connection_is_needed_and_without_it_a_sentence_says_so(server, source, tmp_path):
    fetch(server.address, source, tmp_path)
    nobody = "http://127.0.0.1:9/"
    assert fetch(nobody, source, tmp_path) == CONTENT
    with pytest.raises(CorpusError, match="could not be fetched: Connection refused") as caught:
        fetch(nobody, source, tmp_path / "other")
    assert caught.value.code == "download_failed"
    assert nobody + PATH in str(caught.value)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_cut_download_leaves_no_file_and_goes_on_where_it_stopped(server, source, tmp_path, ranges):
    server.cut_after, server.ranges = 100_001, ranges
    with pytest.raises(CorpusError) as caught:
        fetch(server.address, source, tmp_path)
    assert caught.value.code == "download_failed"
    assert files_in(tmp_path) == [f"{PATH}.partial"]
    server.cut_after = len(CONTENT)
    seen = []
    assert fetch(server.address, source, tmp_path, seen.append) == CONTENT
    assert server.requests[-1] == (f"/{PATH}", "bytes=100001-")
    assert sum(seen) == len(CONTENT) - (100_001 if ranges else 0)
    assert files_in(tmp_path) == [PATH]


@pytest.mark.parametrize("content", [CONTENT[:-1] + b"x", CONTENT + b"and more", CONTENT * 5])
def test_something_else_than_expected_is_thrown_away(server, source, tmp_path, content):
    server.content = content
    server.cut_after = len(content)
    with pytest.raises(CorpusError) as caught:
        fetch(server.address, source, tmp_path)
    assert caught.value.code == "download_wrong_hash"
    assert source.sha256 in str(caught.value)
    assert files_in(tmp_path) == []


def test_a_partial_file_of_something_else_does_not_stand_in_the_way_for_ever(server, source, tmp_path):
    partial_file = tmp_path / f"{PATH}.partial"
    partial_file.parent.mkdir(parents=True)
    partial_file.write_bytes(b"?" * 1000)
    with pytest.raises(CorpusError):
        fetch(server.address, source, tmp_path)
    assert fetch(server.address, source, tmp_path) == CONTENT


def test_a_damaged_cache_is_fetched_again(server, source, tmp_path):
    fetch(server.address, source, tmp_path)
    (tmp_path / PATH).write_bytes(CONTENT[:-7])
    assert fetch(server.address, source, tmp_path) == CONTENT
    assert (tmp_path / PATH).read_bytes() == CONTENT


def test_a_missing_page_and_a_folder_that_cannot_be_written_are_named(server, source, tmp_path):
    with pytest.raises(CorpusError, match="Not Found"):
        fetch(server.address + "elsewhere/", source, tmp_path)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CorpusError) as caught:
        fetch(server.address, source, tmp_path / "file")
    assert caught.value.code == "cache_not_writable"
    assert "MINIGPT_CACHE" in str(caught.value)


def test_a_named_corpus_comes_through_the_cache_that_the_environment_names(server, source, tmp_path, monkeypatch):
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    known = replace(
        CORPORA["tinyshakespeare"], name="plays", address=server.address, files=(source,), read=lambda parts: str(parts)
    )
    monkeypatch.setitem(module.CORPORA, "plays", known)
    corpus = load_corpus("plays")
    assert corpus.text == str([CONTENT])
    assert (corpus.name, corpus.source, corpus.licence) == ("plays", server.address, known.licence)
    assert files_in(tmp_path) == [f"plays/{PATH}"]


def test_the_known_corpora_lie_at_fixed_commits_and_name_their_licence():
    assert set(CORPORA) == {"tinyshakespeare", "koconovel"}
    assert len(CORPORA["koconovel"].files) == 50
    assert "CC BY-SA 4.0" in CORPORA["koconovel"].licence
    for corpus in CORPORA.values():
        assert corpus.address.startswith("https://")
        assert len(corpus.address.rstrip("/").rpartition("/")[2]) == 40
        assert len({file.path for file in corpus.files}) == len(corpus.files)
        for file in corpus.files:
            assert len(bytes.fromhex(file.sha256)) == 32
            assert file.size > 1000


def test_novels_are_joined_in_the_order_of_their_parts_composed_and_without_carriage_returns():
    def lines(novel, **parts):
        return "\n".join(
            json.dumps({"doc_id": f"{novel}_{part.lstrip('p')}", "text": text}, ensure_ascii=False)
            for part, text in parts.items()
        ).encode()

    first = lines(3, p10="끝", p2="둘\r\n셋", p1=unicodedata.normalize("NFD", "하나"))
    second = lines(4, p0="가\r나") + b"\n"
    assert read_novels([first, second]) == "하나\n둘\n셋\n끝\n\n가나\n"


def test_any_utf8_text_file_is_a_corpus(tmp_path):
    path = tmp_path / "story.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "옛날\r\n옛적에 🙂".encode())
    corpus = load_corpus(str(path))
    assert (corpus.name, corpus.text) == ("story", "옛날\r\n옛적에 🙂")


def test_what_is_no_text_or_not_there_is_said(tmp_path):
    path = tmp_path / "story.txt"
    path.write_bytes("옛날".encode("cp949"))
    with pytest.raises(CorpusError, match=r"is no UTF-8 text: byte 0 is 0xbf\."):
        load_corpus(str(path))
    with pytest.raises(CorpusError, match="Known are tinyshakespeare, koconovel"):
        load_corpus("tinyshakespear")


@given(st.integers(2, 400), st.integers(1, 9), st.integers(1, 5), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_splits_and_batches_hold_every_window_and_nothing_beyond(tokens, block_size, batch_size, seed):
    ids = torch.arange(tokens)
    train, validation = train_validation_split(ids)
    assert torch.equal(torch.cat((train, validation)), ids)
    assert len(train) == int(0.9 * tokens)
    generator = torch.Generator().manual_seed(seed)
    if len(train) <= block_size:
        with pytest.raises(CorpusError, match="at least"):
            get_batch(train, block_size, batch_size, generator)
        return
    idx, targets = get_batch(train, block_size, batch_size, generator)
    assert idx.shape == targets.shape == (batch_size, block_size)
    assert torch.equal(targets, idx + 1)
    assert torch.equal(idx, idx[:, :1] + torch.arange(block_size))
    assert int(idx.min()) >= 0
    assert int(targets.max()) < len(train)


def test_the_first_and_the_last_window_are_drawn_too():
    ids = torch.arange(5)
    starts = {int(get_batch(ids, 3, 1, torch.Generator().manual_seed(seed))[0][0, 0]) for seed in range(50)}
    assert starts == {0, 1}


@pytest.fixture
def model():
    torch.manual_seed(2)
    return build_model(ModelConfig(vocab_size=11, block_size=7, n_embd=12, n_head=3, n_layer=2, dropout=0.5)).train()


@pytest.mark.parametrize("tokens", [2, 7, 8, 9, 57, 100])
def test_validation_loss_predicts_every_token_but_the_first_once(model, tokens):
    ids = torch.randint(11, (tokens,), generator=torch.Generator().manual_seed(tokens))
    model.eval()
    losses = []
    for target in range(1, tokens):
        start = (target - 1) // 7 * 7
        logits, _ = model(ids[start:target][None])
        losses.append(float(torch.nn.functional.cross_entropy(logits[0, -1], ids[target]).detach()))
    model.train()
    for batch_size in (1, 3, 64):
        assert validation_loss(model, ids, batch_size) == pytest.approx(math.fsum(losses) / len(losses), abs=1e-5)
    assert model.training


def test_validation_loss_needs_something_to_predict(model):
    with pytest.raises(CorpusError):
        validation_loss(model, torch.tensor([3]))


def test_estimates_are_made_without_dropout_and_leave_the_mode_alone(model):
    splits = {"train": torch.arange(88) % 11, "validation": torch.zeros(9, dtype=torch.long)}

    def estimated():
        return estimate_loss(model, splits, 3, 5, torch.Generator().manual_seed(4))

    first = estimated()
    assert first == estimated()
    assert set(first) == {"train", "validation"}
    assert model.training
    constant = torch.zeros(1, 7, dtype=torch.long)
    assert first["validation"] == pytest.approx(float(model.eval()(constant, constant)[1].detach()), abs=1e-6)
    estimated()
    assert not model.training
