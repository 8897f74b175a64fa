"""A model of one's own, trained from the page: on one page after another, as a person would."""

import re

import pytest
from playwright.sync_api import expect

from tests.ui.test_access import violations
from tests.ui.viewing import Viewer, save_random_model

TEXT = "ROMEO: the cat sat on the mat; the rat ate the hat.\n" * 40
UNDER_WAY = re.compile(r"^training:[1-9]\d*$")


@pytest.fixture(scope="module")
def url(start_app, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_random_model(folder / "letters", "abcdefghijklmnopqrstuvwxyz ,.;:\nROME", n_layer=2, n_head=1, block_size=9)
    return start_app(folder, MINIGPT_TRAIN="")


def training_tab(page, url):
    Viewer(page).opened(f"{url}/?prompt=the+cat")
    page.get_by_role("tab", name="Training").click()
    panel = page.get_by_role("tabpanel", name="Training")
    own = panel.locator(".mg-own")
    expect(own).to_be_visible()
    if own.get_attribute("open") is None:  # it is open where there is a run already
        page.get_by_text("Train your own").click()
    return panel


def test_a_model_is_trained_left_alone_stopped_finished_and_opened(open_page, url, axe):
    page = open_page()
    panel = training_tab(page, url)
    own = panel.locator(".mg-own")
    field = panel.get_by_label("Text to learn")
    start = panel.get_by_role("button", name="Start training")

    # What cannot work is refused, and what was typed stays.
    field.fill("too short")
    start.click()
    expect(panel.get_by_role("alert")).to_contain_text("The text has 9 characters; these settings need 641")
    expect(field).to_have_value("too short")

    # A long run: its losses, what it writes and its heads are there while it learns.
    field.fill(TEXT)
    expect(panel).to_contain_text(f"{len(TEXT):,} characters, {len(set(TEXT))} different")
    panel.get_by_label("Name of the model").fill("long")
    panel.get_by_role("combobox", name="Settings").select_option("transformer-small")
    steps = panel.get_by_label("Steps")
    expect(steps).to_have_value("3000")
    steps.fill("20000")
    start.click()
    expect(own).to_have_attribute("data-run", UNDER_WAY)
    expect(panel.get_by_role("alert")).to_have_text("")
    expect(panel.get_by_role("heading", name="long: training")).to_be_focused()
    expect(own.get_by_role("img", name=re.compile("^Loss of each batch"))).to_be_visible()
    expect(own.get_by_role("heading", name=re.compile(r"^What it writes after step \d"))).to_be_visible()
    expect(own.locator(".mg-typed")).to_have_text("ROMEO: the cat s")
    expect(panel.locator(".mg-training")).to_have_attribute("data-shown", re.compile(r"^[1-9]\d*:\d:\d$"))
    expect(panel.get_by_role("combobox", name="Training run")).to_have_value("long")

    # The page is closed and opened again: the run has gone on.
    before = own.get_attribute("data-run").partition(":")[2]
    page.close()
    page = open_page()
    panel = training_tab(page, url)
    own = panel.locator(".mg-own")
    expect(own).to_have_attribute("data-run", UNDER_WAY)
    assert int(own.get_attribute("data-run").partition(":")[2]) >= int(before)
    expect(panel.locator(".mg-training")).to_have_attribute("data-shown", re.compile(r"^[1-9]\d*:\d:\d$"))
    assert violations(page, axe) == []

    # It is stopped, and could go on; another with a name that is taken is refused.
    panel.get_by_role("button", name="Stop", exact=True).click()
    expect(own).to_have_attribute("data-run", re.compile("^stopped:"))
    expect(panel.get_by_role("button", name=re.compile(r"^Go on with long \(step \d+ of 20000\)"))).to_be_visible()
    panel.get_by_label("Text to learn").fill(TEXT)
    panel.get_by_label("Name of the model").fill("Long")
    panel.get_by_role("combobox", name="Settings").select_option("transformer-small")
    panel.get_by_label("Steps").fill("30")
    panel.get_by_role("button", name="Start training").click()
    expect(panel.get_by_role("alert")).to_contain_text("There is something called Long among the models already")

    # A short one, to its end; it is opened without a reload.
    panel.get_by_label("Name of the model").fill("short")
    panel.get_by_role("button", name="Start training").click()
    expect(own).to_have_attribute("data-run", "finished:30")
    viewer = Viewer(page)
    shown = viewer.shown()
    panel.get_by_role("button", name="Open this model").click()
    viewer.redrawn(shown)
    expect(page.locator("#model input")).to_have_value("short")
    expect(page.locator(".mg-area-overview").get_by_role("button", name=re.compile("^L1H3"))).to_be_visible()
    expect(viewer.notice).to_be_hidden()

    # The words follow the language, and nothing is wider than a phone.
    page.get_by_text("한국어", exact=True).click()
    panel = page.get_by_role("tabpanel", name="훈련")
    expect(panel.get_by_role("heading", name="short: 끝났습니다")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(page, axe) == []


def test_a_text_comes_from_a_file_that_is_text(open_page, url, tmp_path):
    page = open_page()
    panel = training_tab(page, url)

    def choose(name, content):
        (tmp_path / name).write_bytes(content)
        with page.expect_file_chooser() as chooser:
            panel.get_by_role("button", name="Choose a text file").click()
        chooser.value.set_files(tmp_path / name)

    panel.get_by_label("Text to learn").fill("typed")
    choose("odd.txt", b"\xff\xfe\x00")
    expect(panel).to_contain_text("odd.txt is no UTF-8 text")
    expect(panel.get_by_label("Text to learn")).to_have_value("typed")
    choose("play.txt", "한글과 ab\r\n".encode() * 9)
    expect(panel).to_contain_text("play.txt: 72 characters, 8 different")
    expect(panel.get_by_label("Text to learn")).to_be_hidden()
    panel.get_by_role("button", name="Start training").click()
    expect(panel.get_by_role("alert")).to_contain_text("The text has 63 characters")  # line ends are one character
    panel.get_by_role("button", name="Use the pasted text instead").click()
    expect(panel.get_by_label("Text to learn")).to_have_value("typed")
    expect(panel.get_by_label("Text to learn")).to_be_focused()
