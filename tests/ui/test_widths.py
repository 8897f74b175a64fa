"""From a phone to a projector: nothing overlaps, nothing is cut off, nothing scrolls sideways, in either language."""

import pytest
from playwright.sync_api import expect

from tests.ui.viewing import Viewer

PROMPT = "the cat and the dog"
WIDTHS = (390, 768, 1440, 2560)

OVERLAPS = """
() => {
  const parts = [...document.querySelectorAll(
    '#heading, #model, #language, #model-info, #prompt, #examples, #buttons button, #settings .form > .block,'
    + ' .mg-panel, .mg-trust, #caveat, footer'
  )].filter((one) => one.checkVisibility()).map((one) => ({ one, box: one.getBoundingClientRect() }));
  const name = ({ id, className }) => id || className;
  const found = [];
  parts.forEach(({ one, box }, index) => {
    for (const { one: other, box: its } of parts.slice(index + 1)) {
      if (one.contains(other) || other.contains(one)) continue;
      const across = Math.min(box.right, its.right) - Math.max(box.left, its.left);
      const down = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
      if (across > 1 && down > 1) found.push(`${name(one)} over ${name(other)}: ${across} x ${down}`);
    }
  });
  return found;
}
"""
"""Parts of the page that lie on one another."""

CUT = """
() => [...document.querySelectorAll('#viewer .mg *, #top *, #buttons *, #settings *')].filter((one) => {
  if (!one.checkVisibility({ visibilityProperty: true })) return false;
  if (one.closest('svg, canvas, .mg-hidden, .sr-only, .mg-table, .mg-plot')) return false;
  const texts = [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
  if (!texts || one.matches('input, textarea, option')) return false;
  const style = getComputedStyle(one);
  const box = one.getBoundingClientRect();
  const clipped = style.overflow !== 'visible' && one.scrollWidth > one.clientWidth + 1;
  return clipped || box.right > innerWidth + 1 || box.left < -1;
}).map((one) => `${one.className || one.tagName}: ${one.textContent.slice(0, 60)}`)
"""
"""Text that does not fit where it stands."""

COLLISIONS = """
() => {
  const found = [];
  for (const place of ['.mg-scale-tick', '.mg-header > *', '.mg-colour-controls > *', '.mg-choice button']) {
    const boxes = [...document.querySelectorAll(place)].filter((one) => one.checkVisibility())
      .map((one) => ({ one, box: one.getBoundingClientRect() }));
    boxes.forEach(({ one, box }, index) => {
      for (const { one: other, box: its } of boxes.slice(index + 1)) {
        const across = Math.min(box.right, its.right) - Math.max(box.left, its.left);
        const down = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
        if (across > 1 && down > 2) found.push(`${place}: ${one.textContent} | ${other.textContent}`);
      }
    });
  }
  return found;
}
"""
"""Labels and controls that run into one another."""


@pytest.mark.parametrize("language", ["en-US", "ko-KR"])
def test_nothing_overlaps_or_is_cut_off_at_any_width(open_page, app_url, language, subtests):
    page = open_page(width=WIDTHS[0], language=language)
    viewer = Viewer(page).opened(app_url)
    expect(page.get_by_role("heading", name={"en-US": "All heads", "ko-KR": "모든 헤드"}[language])).to_be_visible()
    page.locator(".mg-check input").first.check()
    page.locator(".mg-check input").last.check()
    sizes = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 1300})
        expect(page.locator(".mg-plot .main-svg").first).to_be_visible()
        page.wait_for_function(
            "(() => { const plot = document.querySelector('.mg-plot');"
            " return plot.querySelector('.main-svg').clientWidth === plot.clientWidth; })()"
        )
        with subtests.test(width=width):
            assert viewer.width_needed() == width
            assert page.evaluate(OVERLAPS) == []
            assert page.evaluate(CUT) == []
            assert page.evaluate(COLLISIONS) == []
            box = page.locator(".mg-plot").first.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            sizes[width] = box["width"]
    assert sizes[2560] > 1.15 * sizes[1440]  # a projector gets larger pictures
