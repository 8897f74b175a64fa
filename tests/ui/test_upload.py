"""A model of one's own: opened from a file, kept for one session, refused with a sentence."""

import copy
import json
import os
import re
import time

import pytest
import torch
from gradio_client import Client
from playwright.sync_api import expect

from tests.foreign import CHARACTERS, LAYERS, loops, save
from tests.ui.viewing import Viewer, save_random_model

TRAINING_TEXT = "bad cab! hedge a bag" + CHARACTERS


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """The folders that uploads may lie in: Gradio's, and the one for private folders."""
    made = {name: tmp_path_factory.mktemp(name) for name in ("received", "private", "models")}
    save_random_model(made["models"] / "letters", "abcdefgh \n!", n_layer=2, n_head=1, block_size=9)
    return made


@pytest.fixture(scope="module")
def url(start_app, places):
    url = start_app(places["models"], GRADIO_TEMP_DIR=str(places["received"]), TMPDIR=str(places["private"]))
    client = Client(url, verbose=False)
    client.predict("a bad cab", api_name="/analyze")  # the first analysis of a process takes longest
    client.close()
    return url


@pytest.fixture(scope="module")
def chapters():
    return loops()["transformer"]


@pytest.fixture(scope="module")
def with_characters(tmp_path_factory, chapters):
    path = tmp_path_factory.mktemp("brought") / "my model.pt"
    return save({"model_state_dict": chapters.state_dict(), "chars": list(CHARACTERS)}, path)


@pytest.fixture(scope="module")
def without_characters(tmp_path_factory, chapters):
    return save(chapters.state_dict(), tmp_path_factory.mktemp("brought") / "bare.pt")


@pytest.fixture
def viewer(page, url):
    return Viewer(page).opened(url)


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def bring(page, *paths, button="Open your own"):
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name=button).click()
    chooser.value.set_files([str(path) for path in paths])


def models_of(page):
    page.locator("#model input").click()
    options = page.locator("[role=option]:not(.mg *)")
    options.first.wait_for()
    names = options.all_text_contents()
    page.keyboard.press("Escape")
    return [name.strip("✓ \n") for name in names]


def choose_model(page, name):
    page.locator("#model input").click()
    page.locator(f"[role=option][aria-label='{name}']").click()


def info(page):
    return page.locator("#model-info")


def test_a_file_of_the_chapters_opens_shows_its_heads_and_what_it_is_and_generates(
    page, viewer, with_characters, chapters, places
):
    before = viewer.shown()
    bring(page, with_characters)
    viewer.redrawn(before)
    expect(page.locator("#model input")).to_have_value("mine: my model.pt")
    expect(viewer.head(LAYERS - 1, 2)).to_be_visible()
    expect(info(page)).to_contain_text(
        re.compile(r"4 × 3 · window 7 tokens · vocabulary 11 · [\d,]+ parameters · .* · found: the chapters'")
    )
    found = re.search(r"tokenizer: characters · .* by at most (\S+)$", info(page).inner_text())
    assert 0 <= float(found[1]) < 1e-5
    assert files_in(places["received"]) == files_in(places["private"]) == []

    viewer.type("dad")
    viewer.choose(2, 1)
    with torch.no_grad():
        weights = chapters(torch.tensor([[CHARACTERS.index(each) for each in "dad"]]))[1][2, 0, 1]
    for query, row in enumerate(viewer.weights()):
        assert row[: query + 1] == pytest.approx(weights[query, : query + 1].tolist(), abs=0.0005)

    # It generates, makes way for another model, and comes back.
    page.locator("#length input").fill("5")
    before = viewer.shown()
    page.get_by_role("button", name="Generate").click()
    viewer.redrawn(before)
    expect(page.get_by_role("button", name="Stop")).to_be_disabled()
    for name, layers in (("letters", 2), ("mine: my model.pt", LAYERS)):
        page.locator("#model input").click()
        page.get_by_role("option", name=name).click()
        expect(page.get_by_role("button", name=re.compile(r"^L\d+H0(,|$)"))).to_have_count(layers)
    page.get_by_text("한국어").click()
    expect(page.locator("#model input")).to_have_value("내 모델: my model.pt")
    expect(info(page)).to_contain_text("알아낸 형식: 책의 state_dict")


def test_a_model_of_ones_own_is_compared_and_another_session_does_not_see_it(
    page, viewer, open_page, url, with_characters, chapters
):
    bring(page, with_characters)
    expect(page.locator("#model input")).to_have_value("mine: my model.pt")
    choose_model(page, "letters")
    expect(page.get_by_role("button", name=re.compile(r"^L\d+H0(,|$)"))).to_have_count(2)
    viewer.type("bad cab")
    page.get_by_role("tab", name="Compare").click()
    page.get_by_role("radio", name="another model").click()
    models, heads = (page.get_by_role("combobox", name=name) for name in ("The other model", "The other head"))
    models.select_option(label="mine: my model.pt")
    expect(page.get_by_role("heading", name="L0H0 of mine: my model.pt")).to_be_visible()
    heads.select_option(label="L3H2")
    expect(page.get_by_role("heading", name="L3H2 of mine: my model.pt")).to_be_visible()
    with torch.no_grad():
        weights = chapters(torch.tensor([[CHARACTERS.index(each) for each in "bad cab"]]))[1][3, 0, 2]
    second = page.locator(".mg-compared .mg-chart").nth(1).evaluate("plot => plot.data[0].z")
    assert second[6] == pytest.approx(weights[6].tolist(), abs=1e-4)

    # The other way round, the public model lacks the head.
    choose_model(page, "mine: my model.pt")
    viewer.choose(3, 2)
    models.select_option(label="letters")
    expect(page.get_by_text("letters has no L3H2 (layers × heads: 2 × 1). Choose one of its heads.")).to_be_visible()
    heads.select_option(label="L1H0")
    expect(page.get_by_role("heading", name="L1H0 of letters")).to_be_visible()

    other = Viewer(open_page(url)).opened(url)
    other.page.get_by_role("tab", name="Compare").click()
    other.page.get_by_role("radio", name="another model").click()
    assert other.page.get_by_role("combobox", name="The other model").locator("option").all_text_contents() == ["–"]


class Payload:
    """What would make a file if anything of it were run."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_file_with_code_is_refused_unrun_and_what_was_open_and_typed_stays(page, viewer, tmp_path, places):
    viewer.type("a bad cab")
    shown, weights = viewer.shown(), viewer.weights()
    bring(page, save({"model": Payload(tmp_path / "ran")}, tmp_path / "evil.pt"))
    expect(viewer.notice).to_contain_text(re.compile(r"^evil\.pt holds more than parameters .*mkdir.* Nothing was run"))
    assert (viewer.shown(), viewer.weights()) == (shown, weights)
    expect(viewer.prompt).to_have_value("a bad cab")
    expect(page.locator("#model input")).to_have_value("letters")
    page.get_by_text("한국어").click()
    expect(viewer.notice).to_contain_text("아무것도 실행하지 않았습니다")
    assert not (tmp_path / "ran").exists()
    assert files_in(places["received"]) == files_in(places["private"]) == []
    viewer.type("a cab")


def test_without_a_vocabulary_the_training_text_is_asked_for_and_opens_the_model(
    page, viewer, without_characters, tmp_path, places
):
    text = page.get_by_label("The text that the model was trained on")
    expect(text).to_have_count(0)
    bring(page, without_characters)
    expect(viewer.notice).to_contain_text("bare.pt says nothing about its vocabulary of 11 tokens")
    text.fill("abc")
    page.get_by_role("button", name="Open with this text").click()
    expect(viewer.notice).to_contain_text("This text has 3 different characters")
    expect(text).to_have_value("abc")
    before = viewer.shown()
    text.fill(TRAINING_TEXT)
    page.get_by_role("button", name="Open with this text").click()
    viewer.redrawn(before)
    expect(page.locator("#model input")).to_have_value("mine: bare.pt")
    expect(text).to_have_count(0)
    expect(info(page)).to_contain_text("vocabulary 11")
    assert files_in(places["private"]) == []

    # The text can be a file.
    bring(page, without_characters)
    (tmp_path / "text.txt").write_text(TRAINING_TEXT)
    before = viewer.shown()
    bring(page, tmp_path / "text.txt", button="Take the text from a file")
    viewer.redrawn(before)
    expect(page.locator("#model input")).to_have_value("mine: bare.pt")
    expect(text).to_have_count(0)
    assert files_in(places["received"]) == files_in(places["private"]) == []

    # Weights and vocabulary can be brought together.
    (tmp_path / "meta.json").write_text(json.dumps({"itos": dict(enumerate(CHARACTERS))}))
    before = viewer.shown()
    bring(page, without_characters, tmp_path / "meta.json")
    viewer.redrawn(before)
    expect(page.locator("#model input")).to_have_value("mine: bare.pt")


def test_what_one_visitor_brings_no_other_sees_and_it_is_forgotten_when_the_page_closes(
    open_page, url, with_characters, without_characters, places
):
    mine, other = Viewer(open_page()).opened(url), Viewer(open_page()).opened(url)
    before = mine.shown()
    bring(mine.page, with_characters)
    mine.redrawn(before)
    bring(mine.page, without_characters)
    expect(mine.notice).to_contain_text("bare.pt")
    assert models_of(mine.page) == ["letters", "mine: my model.pt"]
    other.page.reload()
    other.opened(url)
    assert models_of(other.page) == ["letters"]
    other.type("a cab")
    assert [path.name for path in files_in(places["private"])] == ["bare.pt"]
    mine.page.close()
    deadline = time.monotonic() + 30
    while files_in(places["private"]) and time.monotonic() < deadline:
        other.page.wait_for_timeout(100)
    assert files_in(places["private"]) == []


def test_an_activation_that_the_file_does_not_say_is_said_to_be_assumed_and_can_be_chosen(
    page, viewer, with_characters, chapters
):
    choice = page.get_by_role("radiogroup", name=re.compile("^Activation")).or_(page.locator("#activation"))
    expect(choice).to_have_count(0)
    before = viewer.shown()
    bring(page, with_characters)
    viewer.redrawn(before)
    expect(info(page)).to_contain_text("activation: ReLU, assumed; the file does not say")
    expect(page.get_by_role("radio", name="ReLU")).to_be_checked()
    viewer.type("dad")
    viewer.choose(2, 1)
    relu = viewer.weights()
    before = viewer.shown()
    page.get_by_role("radio", name="GELU", exact=True).check()
    viewer.redrawn(before)
    expect(info(page)).to_contain_text("activation: GELU, assumed")
    viewer.choose(2, 1)
    with torch.no_grad():
        model = copy.deepcopy(chapters)
        for block in model.blocks:
            block.ffwd.net[1] = torch.nn.GELU()
        weights = model(torch.tensor([[CHARACTERS.index(each) for each in "dad"]]))[1][2, 0, 1]
    assert viewer.weights() != relu
    for query, row in enumerate(viewer.weights()):
        assert row[: query + 1] == pytest.approx(weights[query, : query + 1].tolist(), abs=0.0005)
    assert models_of(page) == ["letters", "mine: my model.pt"]
    page.get_by_text("한국어").click()
    expect(info(page)).to_contain_text("활성화 함수: GELU(으)로 가정")
    expect(page.get_by_role("radio", name="GELU", exact=True)).to_be_checked()
    page.locator("#model input").click()
    page.get_by_role("option", name="letters").click()
    expect(page.get_by_role("radio", name="GELU", exact=True)).to_have_count(0)


def test_only_the_two_newest_are_kept(page, viewer, with_characters, tmp_path):
    for name in ("one.pt", "two.pt", "three.pt"):
        before = viewer.shown()
        (tmp_path / name).write_bytes(with_characters.read_bytes())
        bring(page, tmp_path / name)
        viewer.redrawn(before)
    assert models_of(page) == ["letters", "mine: two.pt", "mine: three.pt"]


def test_the_bar_fits_a_phone_and_the_keyboard_reaches_the_button(open_page, url):
    viewer = Viewer(open_page(width=390, height=844)).opened(url)
    button = viewer.page.locator("#upload")
    for language in ("English", "한국어"):
        viewer.page.get_by_text(language, exact=True).click()
        expect(button).to_contain_text({"English": "Open your own", "한국어": "열기"}[language])
        assert viewer.width_needed() == 390
        box = button.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    asked = []
    viewer.page.on("filechooser", lambda chooser: asked.append(chooser))
    viewer.page.locator("#model input").focus()
    viewer.page.keyboard.press("Tab")
    expect(button).to_be_focused()
    button.press("Enter")
    viewer.page.wait_for_function("() => document.activeElement !== null")
    assert len(asked) == 1
