"""What is kept of the models that visitors bring: for whom, how many, how long."""

import pytest
import torch

from minigpt.errors import CheckpointError, CorpusError
from minigpt.exchange import UPLOAD_BYTES
from minigpt.ui import uploads
from minigpt.ui.answers import Answers
from minigpt.ui.models import Models
from minigpt.ui.own_model import text_of
from minigpt.ui.page import launch_options
from minigpt.ui.uploads import Received, Uploads, received, safe_name
from tests.foreign import CHARACTERS, loops, save

torch.set_num_threads(1)


class Clock:
    def __init__(self):
        self.now = 5.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def kept(clock, tmp_path, monkeypatch):
    monkeypatch.setattr(uploads.tempfile, "tempdir", str(tmp_path))
    return Uploads(clock=clock)


@pytest.fixture(scope="module")
def model():
    return loops()["multi-head"].state_dict()


@pytest.fixture
def arrive(tmp_path, model):
    """Put a file down as the web server does."""
    counter = iter(range(100))

    def arrived(name="model.pt", *, chars=CHARACTERS, content=None):
        folder = tmp_path / "received" / f"hash{next(counter)}"
        folder.mkdir(parents=True)
        path = folder / "file"
        if content is None:
            save({"model": model, "chars": list(chars)} if chars else model, path)
        else:
            path.write_bytes(content)
        return Received(name=name, path=path)

    return arrived


def test_more_than_the_page_opens_is_refused_before_it_is_read_all_files_together(kept, arrive, monkeypatch, tmp_path):
    files = [arrive("model.pt", content=b"x" * 70), arrive("meta.json", content=b"{}" * 20)]
    monkeypatch.setattr(uploads, "UPLOAD_BYTES", 109)
    monkeypatch.setattr(uploads, "open_upload", None)
    with pytest.raises(
        CheckpointError, match=r"^model\.pt, meta\.json has 0\.1 kB in all; the page opens at most 0\.1 kB"
    ):
        kept.open("a", files)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert launch_options()["max_file_size"] > UPLOAD_BYTES  # so that this sentence is said, and not Gradio's


def code_of(call, *given):
    with pytest.raises(CheckpointError) as refused:
        call(*given)
    return refused.value.code


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_model_is_found_by_its_key_alone_and_its_files_are_gone(kept, arrive, tmp_path):
    mine = kept.open("a", [arrive("mine.pt")])
    assert (mine.name, mine.ckpt.detected, mine.ckpt.path.name) == ("mine.pt", "chapters", mine.key)
    assert 0 <= mine.logit_difference < 1e-5
    assert kept.find(mine.key) is mine
    assert (kept.of("a"), kept.of("b")) == ([mine], [])
    assert files_in(tmp_path) == []
    assert not list((tmp_path / "received").iterdir())
    assert code_of(kept.find, "mine:mine.pt") == "upload_gone"


def test_two_uploads_of_the_same_file_have_different_keys(kept, arrive):
    keys = {kept.open(session, [arrive()]).key for session in "abc"}
    assert len(keys) == 3
    assert all(len(key) > 20 for key in keys)


def test_the_page_answers_about_an_upload_as_about_its_own_models_and_never_lists_it(arrive, tmp_path):
    models = Models(tmp_path / "none")
    mine = models.uploads.open("a", [arrive()])
    answers = Answers(models)
    assert answers.analysis(mine.key, "bad")["checkpoint"]["name"] == mine.key
    assert answers.head(mine.key, [3, 4, 5], 0, 2)["kind"] == "head"
    assert models.names() == []
    assert answers.head("mine:guessed", [3, 4, 5], 0, 2)["code"] == "upload_gone"


def test_a_session_keeps_two_and_all_sessions_a_bounded_number(kept, arrive, monkeypatch):
    monkeypatch.setattr(uploads, "KEPT_IN_ALL", 3)
    first, *newer = [kept.open("a", [arrive()]) for _ in range(3)]
    assert kept.of("a") == newer
    assert code_of(kept.find, first.key) == "upload_gone"
    others = [kept.open(session, [arrive()]) for session in "bc"]
    assert code_of(kept.find, newer[0].key) == "upload_gone"
    assert [kept.find(mine.key) for mine in (newer[1], *others)] == [newer[1], *others]


def test_large_models_push_out_others_but_never_themselves(kept, arrive, monkeypatch):
    monkeypatch.setattr(uploads, "PARAMETERS_IN_ALL", 10)
    first, second = [kept.open(session, [arrive()]) for session in "ab"]
    assert code_of(kept.find, first.key) == "upload_gone"
    assert kept.find(second.key) is second


def test_what_nobody_looks_at_for_an_hour_is_forgotten(kept, clock, arrive, tmp_path):
    looked_at, left = kept.open("a", [arrive()]), kept.open("b", [arrive()])
    assert code_of(kept.open, "c", [arrive(chars=None)]) == "no_vocabulary"
    clock.now += uploads.IDLE_SECONDS - 1
    kept.find(looked_at.key)
    clock.now += 2
    assert kept.find(looked_at.key) is looked_at
    assert code_of(kept.find, left.key) == "upload_gone"
    assert files_in(tmp_path) == []
    assert code_of(kept.open_with, "c", CHARACTERS) == "upload_gone"


def test_a_session_that_ends_takes_everything_along(kept, arrive, tmp_path):
    gone, stays = kept.open("a", [arrive()]), kept.open("b", [arrive()])
    assert code_of(kept.open, "a", [arrive(chars=None)]) == "no_vocabulary"
    assert len(files_in(tmp_path)) == 1
    kept.forget("a")
    assert files_in(tmp_path) == []
    assert code_of(kept.find, gone.key) == "upload_gone"
    assert kept.find(stays.key) is stays


def test_a_model_waits_for_its_vocabulary_in_its_own_session_only(kept, arrive, tmp_path):
    assert code_of(kept.open, "a", [arrive(chars=None)]) == "no_vocabulary"
    assert code_of(kept.open_with, "b", CHARACTERS) == "upload_gone"
    assert code_of(kept.open_with, "a", "too few") == "text_differs"
    assert kept.is_waiting("a")
    mine = kept.open_with("a", CHARACTERS * 3)
    assert mine.ckpt.tokenizer.chars == sorted(CHARACTERS)
    assert not kept.is_waiting("a")
    assert files_in(tmp_path) == []


def test_few_models_wait(kept, arrive, tmp_path):
    for session in "abcdef":
        code_of(kept.open, session, [arrive(chars=None)])
    code_of(kept.open, "f", [arrive(chars=None)])
    assert [kept.is_waiting(session) for session in "abcdef"] == [False, False, True, True, True, True]
    assert len(files_in(tmp_path)) == uploads.WAITING_IN_ALL


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\models\\m.pt", "m.pt"),
        ("..", "file"),
        ("", "file"),
        (".hidden", "hidden"),
        ("나의 모델 (2).pt", "나의 모델 (2).pt"),
        ("a\0b\n<c>.pt", "a_b__c_.pt"),
        ("x" * 500 + ".safetensors", "x" * 80 + ".safetensors"),
    ],
)
def test_names_stay_inside_their_folder(name, safe):
    assert safe_name(name) == safe


def test_files_of_the_same_name_do_not_meet(kept, arrive):
    files = [arrive("m.pt"), arrive("card.md", content=b"one"), arrive("x/card.md", content=b"other")]
    assert kept.open("a", files).name == "m.pt"


def test_a_refused_upload_leaves_nothing_and_names_no_folder(kept, arrive, tmp_path):
    with pytest.raises(CheckpointError) as refused:
        kept.open("a", [arrive("junk.pt", content=b"junk")])
    assert str(refused.value).startswith("junk.pt ")
    assert str(tmp_path) not in str(refused.value)
    assert code_of(kept.open, "a", []) == "file_damaged"
    missing = arrive()
    missing.path.unlink()
    assert code_of(kept.open, "a", [missing]) == "file_damaged"
    assert files_in(tmp_path) == []


def test_only_files_that_the_server_received_are_touched(tmp_path):
    inside, outside = tmp_path / "received" / "one", tmp_path / "secret"
    inside.parent.mkdir()
    for path in (inside, outside):
        path.write_text("text")
    (inside.parent / "link").symlink_to(outside)
    given = [
        {"path": str(inside), "orig_name": "mine.txt"},
        {"path": str(outside)},
        {"path": f"{inside.parent}/../secret"},
        {"path": str(inside.parent / "link")},
        {"path": None},
        "nonsense",
        None,
    ]
    found = received(given, inside.parent)
    assert found == [Received(name="mine.txt", path=inside)]
    assert received(given[0], inside.parent) == found
    assert text_of(found) == "text"
    assert not inside.exists()
    assert outside.exists()


def test_a_training_text_that_is_none_is_told_by_its_name(arrive):
    with pytest.raises(CorpusError) as refused:
        text_of([arrive("folder/text.txt", content=b"\xff\xfe")])
    assert str(refused.value).startswith("text.txt is no UTF-8 text")
    assert code_of(text_of, [arrive("empty.txt", content=b"")]) == "file_damaged"
    assert code_of(text_of, []) == "file_damaged"
