"""The tab of trainings in Chromium: one page, walked through once."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from minigpt.config import ModelConfig, TrainingConfig
from minigpt.recipe import new_model
from minigpt.snapshots import list_snapshots
from minigpt.tokenizer import CharTokenizer
from minigpt.training import train
from tests.ui.test_access import violations
from tests.ui.viewing import Viewer

TEXT = "ROMEO: the cat sat on the mat; the rat ate the hat.\n" * 30
SETTINGS = TrainingConfig(steps=20, batch_size=2, evaluate_every=5, evaluate_batches=1, snapshots=3)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    tokenizer = CharTokenizer(TEXT)
    config = ModelConfig(vocab_size=tokenizer.vocab_size, block_size=16, n_embd=12, n_head=3, n_layer=2)
    for name, settings in (("growing", SETTINGS), ("plain", replace(SETTINGS, snapshots=0))):
        list(train(new_model(config, settings), tokenizer, TEXT, settings, out=folder / name))
    return folder


def test_a_model_is_watched_while_it_learns(runs, start_app, page, axe):
    viewer = Viewer(page).opened(f"{start_app(runs)}/?model=growing&prompt=the+cat")
    page.get_by_role("tab", name="Training").click()
    panel = page.get_by_role("tabpanel", name="Training")
    tab = panel.locator(".mg-training")
    slider = panel.get_by_role("slider", name="Snapshot")
    shown = re.compile(r"^20:\d:\d$")
    expect(tab).to_have_attribute("data-shown", shown)  # at first the last snapshot
    expect(slider).to_have_attribute("aria-valuetext", "step 20")
    expect(panel.locator(".mg-sample .mg-typed")).to_have_text("the cat")

    # The slider goes through the snapshots, each with its own pictures and text.
    written = panel.locator(".mg-written").text_content()
    slider.press("Home")
    expect(tab).to_have_attribute("data-shown", re.compile("^0:"))
    expect(panel.locator(".mg-said")).to_contain_text(
        re.compile(r"^Step 0: loss on this text \d\.\d\d, on the training")
    )
    expect(panel.locator(".mg-written")).not_to_have_text(written)
    expect(panel.get_by_role("button", name="Previous snapshot")).to_be_disabled()
    panel.get_by_role("button", name="Next snapshot").click()
    expect(tab).to_have_attribute("data-shown", re.compile("^10:"))

    # Another head is drawn at once, and its curve is the one that is told.
    panel.get_by_role("button", name=re.compile("^L1H2")).click()
    expect(tab).to_have_attribute("data-shown", "10:1:2")
    expect(panel.locator(".mg-appeared")).to_have_text(re.compile(r"^L1H2, induction: 0\.\d\d in the end"))
    panel.get_by_role("radio", name="previous token").click()
    expect(panel.locator(".mg-appeared")).to_have_text(re.compile(r"^L1H2, previous token: 0\.\d\d in the end"))

    # A click in a curve of the scores leads to that step.
    curves = panel.get_by_role("img", name=re.compile("^L1H2, previous token"))
    points = curves.locator(".scatterlayer .trace").last.locator(".points path")
    expect(points).to_have_count(len(list_snapshots(runs / "growing")))
    points.nth(0).scroll_into_view_if_needed()
    box = points.nth(0).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(tab).to_have_attribute("data-shown", re.compile("^0:"))

    # The replay shows every snapshot and ends on the last.
    panel.get_by_role("button", name="Play all snapshots").click()
    expect(tab).to_have_attribute("data-shown", re.compile("^20:"))
    expect(panel.get_by_role("button", name="Play all snapshots")).to_be_visible()

    # Losses, their gap and the speed are told apart.
    panel.get_by_role("radio", name="gap").click()
    expect(panel.get_by_role("img", name=re.compile("^Validation loss minus training loss"))).to_be_visible()

    # The tab follows the text of the page, and says where the run cannot read it.
    viewer.type("the rat")
    expect(panel.locator(".mg-sample .mg-typed")).to_have_text("the rat")
    viewer.type("ROMEO: the cat sat on the mat")
    expect(panel.locator(".mg-sample .mg-typed")).to_have_text("ROMEO: the cat sat on the mat")

    # A run without snapshots shows its losses alone and says how to keep some.
    panel.get_by_role("combobox", name="Training run").select_option("plain")
    expect(panel).to_contain_text("This run kept no snapshots")
    expect(slider).to_be_hidden()

    # The words follow the language of the page.
    panel.get_by_role("combobox", name="Training run").select_option("growing")
    expect(slider).to_be_visible()
    page.get_by_text("한국어", exact=True).click()
    panel = page.get_by_role("tabpanel", name="훈련")
    expect(panel.locator(".mg-said")).to_contain_text("스텝: 이 글의 손실")

    # Nothing of it is out of reach, and nothing is wider than a phone.
    assert violations(page, axe) == []
    page.set_viewport_size({"width": 390, "height": 900})
    expect(panel.locator(".mg-runchart:visible").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
