"""The parts of the page without a browser: what its listeners answer."""

import asyncio
import gc
import itertools
import logging
import shutil
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import gradio as gr
import numpy as np
import pytest
import torch

from minigpt import wire
from minigpt.analysis.patterns import trace
from minigpt.errors import CheckpointError, PromptError
from minigpt.generation import generate, generate_several
from minigpt.tokenizer import CharTokenizer
from minigpt.ui import messages
from minigpt.ui.answers import Answers
from minigpt.ui.boundary import notice_of, or_last_notice
from minigpt.ui.examples import CANDIDATES, examples_for
from minigpt.ui.messages import SAMPLING, Sampling, continuation
from minigpt.ui.models import KEPT, Models
from minigpt.ui.page import Page, launch_options
from tests.ui.viewing import save_random_model

ENGLISH = "".join(sorted(set("".join(text for text in CANDIDATES if text.isascii()))))
SETTINGS = Sampling(temperature=1.0, top_k=None, top_p=None, seed=3)
IDLE = ({"__type__": "update", "interactive": True}, {"__type__": "update", "interactive": False})
RUNNING = ({"__type__": "update", "interactive": False}, {"__type__": "update", "interactive": True})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    save_random_model(made / "english", ENGLISH, n_layer=3, n_head=2, block_size=19)
    save_random_model(made / "digits", "0123456789", n_layer=1, n_head=1, block_size=6)
    return made


def built(folder):
    """Build the page inside an event loop: without one Gradio makes its own and leaves it open.

    The loop runs in a thread of its own, because Playwright keeps one running in this one.
    """

    async def build():
        return Page(Models(folder))

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, build()).result()


@pytest.fixture(scope="module")
def page(folder):
    return built(folder)


@pytest.fixture(scope="module")
def english(folder):
    return Models(folder).load("english")


# --- models -----------------------------------------------------------------------------------------------------------


def test_the_largest_model_comes_first_and_is_the_one_without_a_name(folder):
    models = Models(folder)
    assert models.names() == ["english", "digits"]
    assert models.load("").path.name == models.load(None).path.name == "english"


def test_a_model_is_loaded_once_until_its_files_change(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    models = Models(tmp_path / "copy")
    first = models.load("digits")
    assert models.load("digits") is first
    save_random_model(tmp_path / "copy" / "digits", "0123456789", n_layer=1, n_head=1, block_size=6, seed=8)
    second = models.load("digits")
    assert second is not first
    assert not torch.equal(second.model.lm_head.weight, first.model.lm_head.weight)


def test_few_models_are_kept(folder, tmp_path):
    for index in range(KEPT + 2):
        shutil.copytree(folder / "digits", tmp_path / f"model-{index}")
    models = Models(tmp_path)
    oldest = models.load("model-0")
    for index in range(1, KEPT + 1):
        models.load(f"model-{index}")
    assert models.load("model-0") is not oldest
    newest = models.load(f"model-{KEPT}")
    assert models.load(f"model-{KEPT}") is newest


def test_the_folder_can_be_named_by_the_environment(folder, monkeypatch):
    monkeypatch.setenv("MINIGPT_CHECKPOINTS", str(folder))
    assert Models().names() == ["english", "digits"]


@pytest.mark.parametrize(("name", "code"), [("other", "unknown_model"), ("../models/digits", "unknown_model")])
def test_only_models_of_the_folder_are_loaded(folder, name, code):
    with pytest.raises(CheckpointError) as refused:
        Models(folder).load(name)
    assert refused.value.code == code


def test_a_folder_without_models_gives_a_page_that_says_so(tmp_path):
    page = built(tmp_path / "none")
    message, *_ = page.analyze(None, "a text")
    assert (message["kind"], message["code"]) == ("notice", "no_models")
    assert str(tmp_path / "none") in message["sentences"]["ko"]


def test_examples_are_texts_that_the_model_can_read(english):
    examples = examples_for(english.tokenizer)
    assert 1 <= len(examples) <= 4
    assert not any(english.tokenizer.unknown(text) for text in examples)
    assert examples_for(CharTokenizer("0123456789")) == ["0123456789"]
    korean = examples_for(CharTokenizer("".join(CANDIDATES)))
    assert korean


# --- messages ---------------------------------------------------------------------------------------------------------


def test_an_analysis_message_carries_the_models_numbers(english):
    text = "the cat and the dog and the cat"
    message = messages.analysis(english, text)
    traced = trace(english, text)
    arrays = wire.unpack(message)
    assert np.abs(arrays["pattern"] - traced.pattern.numpy()).max() <= 0.000501
    assert message["tokens"] == {
        "ids": traced.ids,
        "start": 12,
        "cropped": traced.cropped_ids,
        "prompt_length": 31,
    }
    assert message["checks"]["logit_difference"] == traced.logit_difference
    assert message["scores"][0] == "previous"
    assert arrays["head_score"].shape == (8, 3, 2)
    assert arrays["next_probability"].shape == (19, 10)
    assert arrays["taken_rank"][-1] == -1
    assert set(map(int, message["pieces"])) >= {*traced.ids, *traced.cropped_ids, *arrays["next_id"].ravel().tolist()}


def ticking(step):
    """A clock that goes on by `step` seconds whenever somebody looks."""
    return itertools.count(0, step).__next__


def test_a_continuation_streams_text_and_ends_with_its_pictures(english):
    told = list(continuation(english, "the cat", 30, SETTINGS, ticking(0.01)))
    steps = list(generate(english, "the cat", max_new_tokens=30, seed=3))
    *_, last_text, last = told
    assert last_text["kind"] == "generating"
    assert last_text["done"]
    assert last_text["generated"] == [step.token_id for step in steps]
    assert last_text["seed"] == 3
    assert last["kind"] == "analysis"
    assert last["tokens"]["cropped"] + last["tokens"]["ids"] == english.tokenizer.encode("the cat") + [
        step.token_id for step in steps
    ]
    assert last["tokens"]["prompt_length"] == last_text["prompt_length"] == 7
    texts = [message for message in told if message["kind"] == "generating"]
    assert [message["done"] for message in texts] == [False] * (len(texts) - 1) + [True]
    for earlier, later in itertools.pairwise(texts):
        assert later["generated"][: len(earlier["generated"])] == earlier["generated"]
    requests = [message["request"] for message in told]
    assert requests == sorted(set(requests))


class Clock:
    """A clock that stands still but for what is said to take time."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def drawn_at(english, monkeypatch, *, token, picture):
    """Return after how many tokens pictures came, where a token and a picture take so many seconds each."""
    clock = Clock()
    analysis_of = messages.analysis_of

    def slow_tokens(*args, **kwargs):
        for step in generate_several(*args, **kwargs):
            clock.now += token
            yield step

    def slow_pictures(*args, **kwargs):
        clock.now += picture
        return analysis_of(*args, **kwargs)

    monkeypatch.setattr(messages, "generate_several", slow_tokens)
    monkeypatch.setattr(messages, "analysis_of", slow_pictures)
    told = list(continuation(english, "the cat", 40, SETTINGS, clock))
    places = [message["tokens"] for message in told[:-1] if message["kind"] == "analysis"]
    return [len(each["cropped"]) + len(each["ids"]) - 7 for each in places]


def test_pictures_follow_every_eight_tokens_where_there_is_time(english, monkeypatch):
    assert drawn_at(english, monkeypatch, token=1.0, picture=0.01) == [8, 16, 24, 32, 40]


def test_pictures_come_no_faster_than_people_see(english, monkeypatch):
    assert drawn_at(english, monkeypatch, token=0.051, picture=0.001) == [10, 20, 30, 40]


def test_slow_pictures_do_not_hold_up_the_text(english, monkeypatch):
    # 0.3125 s each, at most a fifth of the time: 1.25 s, ten tokens, lie between two.
    assert drawn_at(english, monkeypatch, token=0.125, picture=0.3125) == [8, 18, 28, 38]


def test_every_token_is_told_when_there_is_time(english):
    told = list(continuation(english, "the cat", 7, SETTINGS, ticking(1.0)))
    assert [len(message["generated"]) for message in told[:-1]] == [1, 2, 3, 4, 5, 6, 7, 7]


def test_closing_a_continuation_ends_the_generation(english, monkeypatch):
    ended = []

    def watched(*args, **kwargs):
        try:
            yield from generate_several(*args, **kwargs)
        finally:
            ended.append(True)

    monkeypatch.setattr(messages, "generate_several", watched)
    running = continuation(english, "the cat", 500, SETTINGS, ticking(1.0))
    next(running)
    running.close()
    assert ended == [True]


@pytest.mark.parametrize(
    ("controls", "expected"),
    [
        ((0.7, 0, 1, 0, 1, 4), (0.7, None, None, None, 1, 4)),
        ((0.7, 5, 0.9, 0.2, 1.3, 4), (0.7, 5, 0.9, 0.2, 1.3, 4)),
        ((None, None, None, None, None, 4), (1.0, None, None, None, 1.0, 4)),
        ((0, 3.0, 1.0, 0.0, 2, 4.0), (0, 3, None, None, 2, 4)),
    ],
)
def test_controls_say_how_tokens_are_drawn(controls, expected):
    sampling = Sampling.from_controls(**dict(zip(SAMPLING, controls, strict=True)))
    assert tuple(sampling.options()[name] for name in SAMPLING) == expected


@pytest.mark.parametrize("seed", [None, -1])
def test_an_empty_seed_is_a_fresh_one(seed):
    seeds = {Sampling.from_controls(seed=seed).seed for _ in range(8)}
    assert len(seeds) > 1
    assert all(0 <= each < 2**31 for each in seeds)


@pytest.mark.parametrize("length", [None, 0, 501, 2.5])
def test_a_length_that_is_none_is_refused(length):
    with pytest.raises(PromptError) as refused:
        messages.length_from_control(length)
    assert refused.value.code == "too_many_new_tokens"


# --- the error boundary -----------------------------------------------------------------------------------------------


def test_the_page_says_what_was_changed_in_a_text_so_that_the_model_knows_it(tmp_path):
    save_random_model(tmp_path / "korean", "가나다라 \n", n_layer=1, n_head=2, block_size=9)
    answers = Answers(Models(tmp_path))
    typed = "\u1100\u1161\r\n\u1102\u1161"
    analysed = answers.analysis("korean", typed)
    assert analysed["respelled"] == ["newlines", "composed"]
    assert [analysed["pieces"][str(token_id)] for token_id in analysed["tokens"]["ids"]] == ["가", "\n", "나"]
    assert "respelled" not in answers.analysis("korean", "가\n나")
    *_, last = answers.continuation("korean", typed, {"length": 3, "seed": 5})
    assert last["respelled"] == ["newlines", "composed"]
    ids = last["tokens"]["ids"][3:]
    assert answers.analysis_so_far("korean", typed, ids)["respelled"] == ["newlines", "composed"]


def test_unknown_characters_offer_to_leave_them_out(folder):
    message = Answers(Models(folder)).analysis("digits", "1 + 1")
    assert (message["kind"], message["code"], message["action"]) == ("notice", "unknown_characters", "leave_out")
    assert "'+' ×1" in message["sentences"]["en"]
    assert "'+' ×1" in message["sentences"]["ko"]


def test_a_defect_is_logged_with_its_traceback_and_told_without_its_inside(caplog):
    with caplog.at_level(logging.ERROR, "minigpt"):
        try:
            raise ZeroDivisionError("the secret inside")
        except ZeroDivisionError as error:
            message = notice_of(error)
    assert message["code"] == "unexpected"
    assert message["action"] is None
    assert not any("secret" in sentence for sentence in message["sentences"].values())
    assert "the secret inside" in caplog.text
    assert "Traceback" in caplog.text


def test_a_stream_that_fails_ends_with_a_notice_after_what_it_had_told():
    @or_last_notice
    def failing():
        yield wire.notice("first", {})
        raise PromptError("empty_prompt")

    assert [message["code"] for message in failing()] == ["first", "empty_prompt"]


# --- listeners --------------------------------------------------------------------------------------------------------


def test_generate_runs_and_comes_to_rest(page):
    told = list(page.generate("en", "english", "the cat", 12, 0.8, 0, 1, 0, 1, 1, 6))
    first, *between, rest = told
    assert first[0]["kind"] == "generating"
    assert first[1:3] == RUNNING
    assert first[3]["info"] == "last: 6"
    assert all(update == {"__type__": "update"} for outputs in between for update in outputs[1:])
    assert between[-1][0]["kind"] == "analysis"
    assert rest[0] == {"__type__": "update"}
    assert rest[1:3] == IDLE


def test_generate_comes_to_rest_after_a_mistake_too(page):
    told = list(page.generate("ko", "english", "the cat", 12, -1, 0, 1, 0, 1, 1, 6))
    assert [outputs[0].get("code") for outputs in told] == ["temperature_out_of_range", None]
    assert told[-1][1:3] == IDLE


def test_stop_shows_what_had_been_generated(page, english):
    generated = english.tokenizer.encode(" and")
    message, *buttons = page.stop(generated, "english", "the cat")
    assert message["tokens"]["ids"] == english.tokenizer.encode("the cat and")
    assert message["tokens"]["prompt_length"] == 7
    assert tuple(buttons) == IDLE


@pytest.mark.parametrize("generated", [None, "ab", [99_999], [0] * 501, {"a": 1}])
def test_what_the_browser_says_was_generated_is_checked(page, generated):
    assert page.stop(generated, "english", "the cat")[0]["code"] == "tokens_out_of_range"


def test_leave_out_keeps_the_rest_of_the_text(page):
    message, *_, text = page.leave_out("digits", "1 + 1 = 2")
    assert text == "112"
    assert message["tokens"]["ids"] == [1, 1, 2]


def test_another_model_keeps_what_was_typed_and_replaces_what_was_not(page):
    message, *_, typed, _, _, _ = page.choose_model("en", "digits", "my own text")
    assert (typed, message["code"]) == (gr.skip(), "unknown_characters")
    message, *_, example, examples, info, _ = page.choose_model("en", "digits", CANDIDATES[0])
    assert example == "0123456789"
    assert message["kind"] == "analysis"
    assert examples["samples"] == [["0123456789"]]
    assert info == "Layers × heads 1 × 1 · window 6 tokens · vocabulary 10 · 1,082 parameters"


def test_every_language_words_every_component(page):
    english, korean = page.words.updates("en"), page.words.updates("ko")
    assert len(english) == len(korean) == len(page.words.components) > 8
    assert all(one != other for one, other in zip(english, korean, strict=True) if "top-" not in str(one))


def test_only_the_three_endpoints_are_public(page):
    dependencies = page.demo.get_config_file()["dependencies"]
    public = {each["api_name"] for each in dependencies if each["api_visibility"] != "private"}
    assert public == {"analyze", "generate", "export"}


def test_nothing_is_kept_of_what_people_type():
    assert launch_options()["run_history"] is False


def test_repeated_analyses_leave_nothing_behind(folder):
    answers = Answers(Models(folder))

    def look(times):
        for index in range(times):
            answers.analysis("english", "the cat and the dog"[index % 5 :])
            list(answers.continuation("english", "the", {"length": 9, "count": 2, "seed": index}))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        look(6)
        sizes = [look(8) for _ in range(4)]
    finally:
        tracemalloc.stop()
    # A leak grows in every round; other threads of this process, whose memory is counted too, do not.
    assert min(after - before for before, after in itertools.pairwise(sizes)) < 50_000
