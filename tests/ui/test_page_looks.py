"""The page for every screen and reader: narrow, wide, dark, Korean."""

import re

from playwright.sync_api import expect

from tests.ui.viewing import Viewer

PROMPT = "the cat and the dog"
FIRST_COLOURS = {"light": "#e4ebf5", "dark": "#1b2740"}
"""What a weight of 0 looks like."""


def test_on_a_phone_everything_stands_in_one_column_and_the_chosen_head_is_one_tap_away(open_page, random_url):
    page = open_page(width=390, height=844, has_touch=True, is_mobile=True)
    viewer = Viewer(page).opened(random_url)
    assert viewer.heatmap.evaluate("plot => plot.layout.dragmode") is False  # a finger on it scrolls the page
    lefts = page.locator(".mg-panel:visible").evaluate_all("all => all.map(one => one.getBoundingClientRect().left)")
    assert len(set(lefts)) == 1
    viewer.head(2, 1).tap()
    page.get_by_role("button", name="Go to the picture of L2H1").tap()
    expect(viewer.detail).to_be_in_viewport()
    expect(viewer.detail).to_have_text("Layer 2 · Head 1 (L2H1)")
    page.get_by_role("button", name="All heads ↑").tap()
    expect(viewer.head(2, 1)).to_be_in_viewport()


def colours(viewer):
    scale = viewer.heatmap.evaluate("plot => plot.data[0].colorscale[0][1]")
    thumbnail = (
        viewer.head(0, 1)
        .locator("canvas")
        .evaluate("one => [...one.getContext('2d').getImageData(0, one.height - 1, 1, 1).data]")
    )
    return scale, thumbnail


def test_dark_mode_follows_the_page_at_once(open_page, random_url):
    page = open_page(dark=True)
    viewer = Viewer(page).opened(f"{random_url}/?__theme=dark")
    dark, dark_thumbnail = colours(viewer)
    assert dark == FIRST_COLOURS["dark"]
    before = page.evaluate("getComputedStyle(document.querySelector('.mg')).color")
    page.evaluate("document.body.classList.remove('dark')")
    expect(viewer.heatmap).to_be_visible()
    page.wait_for_function("document.querySelector('.mg-plot').data[0].colorscale[0][1] === '#e4ebf5'")
    light, light_thumbnail = colours(viewer)
    assert light == FIRST_COLOURS["light"]
    assert light_thumbnail != dark_thumbnail
    assert page.evaluate("getComputedStyle(document.querySelector('.mg')).color") != before


def test_the_language_switch_changes_every_word_of_the_viewer_and_text_keeps_its_contrast(open_page, random_url):
    page = open_page()
    viewer = Viewer(page).opened(random_url)
    viewer.type(PROMPT)
    viewer.choose(1, 2)
    page.get_by_text("한국어", exact=True).click()
    expect(page.get_by_role("heading", name="블록 1 · 헤드 2 (L1H2)")).to_be_visible()
    expect(page.get_by_role("heading", name="모든 헤드")).to_be_visible()
    expect(viewer.root).to_have_attribute("lang", "ko")
    expect(page.locator(".mg")).not_to_have_text(re.compile(r"attend|query|Layer|Checked|tokens"), use_inner_text=True)

    folder = page.evaluate(
        "performance.getEntriesByType('resource').map(one => one.name).find(name => name.endsWith('/colours.js'))"
    )
    worst = page.evaluate(
        """async (address) => {
          const { contrast, rampOf } = await import(address);
          return ['light', 'dark'].map((theme) => {
            const { css, ink } = rampOf(theme);
            return Math.min(...css.map((colour, level) => contrast(colour, ink[level])));
          });
        }""",
        folder,
    )
    assert min(worst) >= 4.5
