"""The tab "Model" in Chromium: one page, walked through from test to test."""

import re

import pytest
import torch
from playwright.sync_api import expect

from minigpt.analysis.flow import debug_shapes, dropped_weights, flow, parameter_parts
from tests.ui.test_access import violations
from tests.ui.viewing import Viewer

PROMPT = "the cat and the cat."


@pytest.fixture
def tab(kept_page, random_url):
    """The tab, open, with the first head of the first layer and the text."""
    Viewer(kept_page).at(random_url, PROMPT)
    panel = kept_page.get_by_role("tabpanel", name="Model")
    if not panel.is_visible():
        kept_page.get_by_role("tab", name="Model").click()
    return panel


@pytest.fixture
def idx(random_checkpoint):
    return torch.tensor([random_checkpoint.tokenizer.encode(PROMPT)])


def box(panel, name):
    return panel.locator(f"[data-stage={name}]")


def test_every_step_has_the_shape_that_is_printed_and_follows_layer_head_and_text(
    tab, kept_page, random_checkpoint, idx
):
    viewer, shown = Viewer(kept_page), tab.locator(".mg-flow")
    expect(shown).to_have_attribute("data-shown", "0:0:20")
    printed = [re.split(r" {2,}", line) for line in debug_shapes(random_checkpoint.model, idx).splitlines()]
    assert tab.locator(".mg-flow-code").all_text_contents() == [code for code, _, _ in printed]
    expected = [f"{axes} = {shape}" for _, axes, shape in printed]
    assert tab.locator(".mg-flow-box .mg-flow-shape").all_text_contents() == expected
    tab.get_by_role("button", name="Open block 2").click()
    expect(shown).to_have_attribute("data-shown", "2:0:20")
    expect(viewer.detail).to_contain_text("L2H0")
    expect(tab.get_by_role("region", name="Steps of block 2")).to_be_focused()
    tab.get_by_role("radio", name="L2H3").click()
    expect(shown).to_have_attribute("data-shown", "2:3:20")
    expect(viewer.head(2, 3)).to_have_attribute("aria-pressed", "true")

    # A cell is read out as it was computed, and a click chooses its token.
    scores = flow(random_checkpoint.model, idx, 2, 3)["scores"].values[0]
    picture = box(tab, "scores").locator("canvas")
    picture.scroll_into_view_if_needed()
    side = picture.bounding_box()["width"]
    picture.hover(position={"x": side * 4.5 / 20, "y": side * 9.5 / 20})
    reading = box(tab, "scores").locator(".mg-flow-reading")
    expect(reading).to_have_text(re.compile(r"^'n' \(9\) → 'c' \(4\): "))
    read = float(reading.inner_text().rsplit(": ")[1].replace("−", "-"))
    assert read == pytest.approx(float(scores[9, 4]), rel=0.01, abs=float(scores.abs().max()) / 15_000)
    picture.click(position={"x": side * 4.5 / 20, "y": side * 9.5 / 20})
    expect(viewer.token(9)).to_have_attribute("aria-selected", "true")

    # So it is with keys, which go on to the other pictures.
    kept_page.keyboard.press("ArrowRight")
    expect(reading).to_have_text(re.compile(r"^'n' \(9\) → 'a' \(5\): "))
    kept_page.keyboard.press("PageDown")
    kept_page.keyboard.press("End")
    reading = box(tab, "pattern").locator(".mg-flow-reading")
    weight = flow(random_checkpoint.model, idx, 2, 3)["pattern"].values[0, 9, 9]
    expect(reading).to_have_text(re.compile(r"^'n' \(9\) → 'n' \(9\): "))
    assert float(reading.inner_text().rsplit(": ")[1]) == pytest.approx(float(weight), rel=0.01, abs=1e-4)
    kept_page.keyboard.press("ArrowUp")
    kept_page.keyboard.press("Enter")
    expect(viewer.token(8)).to_have_attribute("aria-selected", "true")

    viewer.type("the dog")
    expect(shown).to_have_attribute("data-shown", "2:3:7")
    expect(box(tab, "logits").locator(".mg-flow-shape")).to_have_text("(B, T, V) = (1, 7, 32)")


def test_the_parameters_are_counted_and_the_total_is_the_models(tab, random_checkpoint):
    tab.get_by_role("radio", name="parameters").click()
    rows = tab.get_by_role("table", name="Parameters by part").get_by_role("row")
    expect(rows).to_have_count(9)
    parts = parameter_parts(random_checkpoint.config)
    cells = [row.get_by_role("cell").all_text_contents() for row in rows.all()[1:]]
    assert [row[0] for row in cells] == [f"{count:,}" for count in (*parts.values(), random_checkpoint.parameters)]
    assert cells[-1][1] == "100.0 %"


def test_a_draw_of_dropout_stands_beside_the_weights_and_another_differs(tab, random_checkpoint, idx):
    tab.get_by_role("radio", name="dropout").click()
    drawn = tab.locator(".mg-dropped")
    expect(drawn).to_have_attribute("data-shown", "0:0:0.2:0")
    expect(tab).to_contain_text("This model has dropout 0; shown with p =")
    pattern = flow(random_checkpoint.model, idx)["pattern"].values[0]
    for seed, name in ((0, "draw 1"), (1, "draw 2")):
        expect(tab.get_by_role("heading", name=f"L0H0 with dropout 0.2 (train), {name}")).to_be_visible()
        left = int((dropped_weights(pattern, 0.2, seed) == 0).sum() - (pattern == 0).sum())
        expect(tab).to_contain_text(f"{left} of 210 weights are 0 (grey), the rest 1.250 times as large")
        tab.get_by_role("button", name="Another draw").click()
    tab.get_by_label("This model has dropout 0").select_option("0.5")
    expect(drawn).to_have_attribute("data-shown", "0:0:0.5:2")
    tab.get_by_label("Show one draw of dropout").uncheck()
    expect(tab.locator(".mg-dropped canvas:visible")).to_have_count(1)


def test_mistakes_are_answered_in_the_persons_language_and_nothing_is_out_of_reach(tab, kept_page, axe):
    page = kept_page
    tab.get_by_role("radio", name="common mistakes").click()
    tab.get_by_text("n_embd is not divisible by n_head").click()
    said = tab.locator("[data-mistake=heads] .mg-mistake-said")
    expect(said).to_contain_text("ConfigErrorn_embd must be divisible by n_head: 64 cannot be split over 3 heads")
    expect(tab.locator(".mg-mistake")).to_have_count(11)
    page.get_by_text("한국어", exact=True).click()
    panel = page.get_by_role("tabpanel", name="모델")
    expect(panel.locator("[data-mistake=heads] .mg-mistake-said")).to_contain_text("헤드 3개로 똑같이 나눌 수 없습니다")
    panel.get_by_text("마스크를 잊은 헤드").click()
    assert violations(page, axe) == []
    page.set_viewport_size({"width": 390, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    panel.get_by_role("radio", name="한 단계씩").click()
    expect(box(panel, "pattern")).to_contain_text("어텐션 가중치")
    assert violations(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_text("English", exact=True).click()
