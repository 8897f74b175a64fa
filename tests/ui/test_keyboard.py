"""Without a mouse and without eyes: keys reach everything, and a live region says what happened."""

import re

import pytest
from playwright.sync_api import expect

from tests.ui.alone import attention, generating, message, open_alone, send, show
from tests.ui.viewing import Viewer

TOKENS = 30
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def pattern():
    return attention(2, 3, TOKENS)


@pytest.fixture
def viewer(page, pattern):
    viewer = open_alone(page, None)
    show(viewer, message(pattern))
    return viewer


def token(position):
    return f"'{LETTERS[position % 26]}' ({position})"


def cell(pattern, query, key):
    """Return what is said about a cell of the first head."""
    return f"query {token(query)} attends to key {token(key)}: {pattern[0, 0, query, key]:.3f}"


def on_the_map(viewer):
    """Reach the map by keys and return the keyboard."""
    viewer.page.get_by_text("What they mean").focus()
    viewer.page.keyboard.press("Tab")
    expect(viewer.map).to_be_focused()
    return viewer.page.keyboard


def test_arrow_keys_move_from_cell_to_cell_and_say_each_weight(viewer, pattern):
    keys = on_the_map(viewer)
    strongest = int(pattern[0, 0, TOKENS - 1].argmax())
    expect(viewer.tip).to_have_text(cell(pattern, TOKENS - 1, strongest))
    steps = (
        ("Home", TOKENS - 1, 0),
        ("ArrowRight", TOKENS - 1, 1),
        ("ArrowUp", TOKENS - 2, 1),
        ("PageUp", TOKENS - 12, 1),
        ("End", TOKENS - 12, TOKENS - 12),
        ("ArrowRight", TOKENS - 12, TOKENS - 12),
        ("ArrowUp", TOKENS - 13, TOKENS - 13),
        ("ArrowLeft", TOKENS - 13, TOKENS - 14),
        ("Control+Home", 0, 0),
        ("ArrowDown", 1, 0),
        ("PageDown", 11, 0),
        ("Control+End", TOKENS - 1, TOKENS - 1),
    )
    for key, query, column in steps:
        keys.press(key)
        expect(viewer.tip).to_have_text(cell(pattern, query, column))
    expect(viewer.live).to_have_text(cell(pattern, TOKENS - 1, TOKENS - 1))
    expect(viewer.token(TOKENS - 1)).to_have_class(re.compile("mg-looking|mg-token"))


def test_a_frame_stands_around_the_cell_that_keys_reached(viewer):
    keys = on_the_map(viewer)
    keys.press("Control+Home")
    for _ in range(7):
        keys.press("ArrowDown")
    keys.press("ArrowRight")
    area = viewer.heatmap.locator(".nsewdrag").first.bounding_box()
    frame = viewer.page.locator(".mg-cell").bounding_box()
    width, height = area["width"] / TOKENS, area["height"] / TOKENS
    assert frame["x"] + frame["width"] / 2 == pytest.approx(area["x"] + 1.5 * width, abs=1.5)
    assert frame["y"] + frame["height"] / 2 == pytest.approx(area["y"] + 7.5 * height, abs=1.5)


def test_enter_on_a_cell_chooses_its_token_and_escape_leaves_the_cell(viewer):
    keys = on_the_map(viewer)
    keys.press("Control+Home")
    keys.press("PageDown")
    keys.press("ArrowRight")
    keys.press("Enter")
    expect(viewer.token(10)).to_have_attribute("aria-selected", "true")
    keys.press("Escape")
    expect(viewer.tip).to_be_hidden()
    expect(viewer.page.locator(".mg-cell")).to_be_hidden()
    expect(viewer.map).to_be_focused()
    viewer.page.get_by_role("radio", name="attended by").click()
    on_the_map(viewer).press("Control+Home")
    viewer.page.keyboard.press("PageDown")
    viewer.page.keyboard.press("Enter")
    expect(viewer.token(0)).to_have_attribute("aria-selected", "true")


def test_the_map_is_zoomed_by_keys_and_follows_the_cell(viewer):
    def rows():
        return [int(position) for _, position in viewer.labels("y")]

    keys = on_the_map(viewer)
    keys.press("Control+Home")
    whole = rows()
    keys.press("+")
    keys.press("+")
    expect(viewer.page.get_by_role("button", name="Whole map")).to_be_visible()
    assert rows() == list(range(8))
    for _ in range(2):
        keys.press("PageDown")
    expect(viewer.page.locator(".mg-cell")).to_be_visible()
    assert 20 in rows()
    keys.press("Escape")
    keys.press("Escape")
    expect(viewer.page.get_by_role("button", name="Whole map")).to_be_hidden()
    assert rows() == whole


def record(page):
    """Keep everything that the live region says from now on in `window.said`."""
    page.evaluate(
        """() => {
          window.said = [];
          const live = document.querySelector('.mg-live');
          const keep = () => window.said.push(live.textContent);
          new MutationObserver(keep).observe(live, { childList: true, subtree: true });
        }"""
    )


def test_keys_held_down_are_said_once(viewer, pattern):
    keys = on_the_map(viewer)
    keys.press("Control+Home")
    expect(viewer.live).to_have_text(cell(pattern, 0, 0))
    record(viewer.page)
    for _ in range(20):
        keys.press("ArrowDown")
    expect(viewer.live).to_have_text(cell(pattern, 20, 0))
    assert len(viewer.page.evaluate("window.said")) <= 5


def test_the_pointer_on_the_map_is_shown_and_not_said(viewer):
    expect(viewer.live).to_contain_text("drawn")
    record(viewer.page)
    viewer.hover(9, 3, TOKENS)
    expect(viewer.tip).to_contain_text(token(9))
    viewer.token(5).click()
    expect(viewer.live).to_contain_text(f"{token(5)} attends to")
    assert [said for said in viewer.page.evaluate("window.said") if "query" in said] == []


def test_what_happens_is_said(viewer):
    expect(viewer.live).to_contain_text(f"{TOKENS} tokens, 2 layers of 3 heads drawn.")
    send(viewer, message(attention(2, 3, 5), telling=(1, 2), name="another"))
    expect(viewer.live).to_contain_text("5 tokens, 2 layers of 3 heads drawn.")
    expect(viewer.live).to_contain_text("Layer 1 · Head 2 (L1H2). Strongest: previous token 0.90.")
    viewer.choose(0, 1)
    expect(viewer.live).to_contain_text("Layer 0 · Head 1 (L0H1). Strongest: nothing that has a name.")
    viewer.token(3).click()
    expect(viewer.live).to_contain_text(f"{token(3)} attends to: ")


def test_generation_is_said_from_start_to_end(viewer):
    send(viewer, generating([1], TOKENS))
    expect(viewer.live).to_contain_text("Generating.")
    send(viewer, message(attention(2, 3, TOKENS + 2), prompt_length=TOKENS))
    send(viewer, generating([1, 2, 3], TOKENS))
    send(viewer, generating([1, 2, 3, 4], TOKENS, done=True))
    expect(viewer.live).to_contain_text("Finished: 4 tokens generated.")
    send(viewer, generating([1, 2], TOKENS))
    expect(viewer.live).to_contain_text("Generating.")
    viewer.page.locator("#stop").click()
    send(viewer, message(attention(2, 3, TOKENS + 2), prompt_length=TOKENS))
    expect(viewer.live).to_contain_text("Stopped after 2 tokens.")
    expect(viewer.live).to_contain_text(f"{TOKENS + 2} tokens")


def test_the_strip_keeps_the_token_that_keys_reach_in_sight(viewer):
    page = viewer.page
    page.set_viewport_size({"width": 390, "height": 300})
    show(viewer, message(attention(1, 1, 400)))
    viewer.strip.focus()
    page.keyboard.press("Home")
    expect(viewer.token(0)).to_be_in_viewport()
    page.keyboard.press("End")
    expect(viewer.token(399)).to_be_in_viewport()


def weights_of(viewer):
    """Return the table's rows: position, token, weight, rank."""
    return viewer.page.locator(".mg-weights tbody tr").evaluate_all(
        "all => all.map(row => [...row.cells].map(one => one.textContent))"
    )


def test_the_chosen_row_stands_in_a_table_with_every_weight_and_its_rank(viewer, pattern):
    page = viewer.page
    viewer.token(11).click()
    page.get_by_role("button", name="Table").press("Enter")
    table = page.get_by_role("table", name="L0H0: 'l' (11) attends to")
    expect(table.get_by_role("columnheader")).to_have_text(["Position", "Token", "Weight", "Rank"])
    row = pattern[0, 0, 11, :12]
    ranks = {key: rank for rank, key in enumerate(sorted(range(12), key=lambda key: -round(float(row[key]), 3)), 1)}
    assert weights_of(viewer) == [[str(key), LETTERS[key], f"{row[key]:.3f}", str(ranks[key])] for key in range(12)]
    page.get_by_role("button", name="Weight").click()
    expect(page.get_by_role("columnheader", name="Weight")).to_have_attribute("aria-sort", "descending")
    assert [int(each[3]) for each in weights_of(viewer)] == list(range(1, 13))
    page.get_by_role("radio", name="attended by").click()
    assert [int(each[3]) for each in weights_of(viewer)] == list(range(1, TOKENS - 10))
    assert {int(each[0]) for each in weights_of(viewer)} == set(range(11, TOKENS))
    page.get_by_role("button", name="Weight").press("Escape")
    expect(page.get_by_role("table", name="L0H0")).to_be_hidden()
    expect(page.get_by_role("button", name="Table")).to_be_focused()
    assert weights_of(viewer) == []


def test_a_table_of_a_thousand_rows_follows_the_selection_quickly(viewer):
    show(viewer, message(attention(1, 1, 1024)))
    viewer.page.get_by_role("button", name="Table").click()
    assert len(weights_of(viewer)) == 1024
    spent = viewer.page.evaluate(
        """async () => {
          const strip = document.querySelector('.mg-tokens');
          const times = [];
          for (let turn = 0; turn < 6; turn += 1) {
            const start = performance.now();
            strip.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }));
            document.body.offsetHeight;
            times.push(performance.now() - start);
          }
          return times;
        }"""
    )
    assert min(spent) < 500, spent


def test_a_link_at_the_top_leads_past_the_controls(page, random_url):
    viewer = Viewer(page).opened(random_url)
    page.keyboard.press("Tab")
    link = page.get_by_role("link", name="Skip to the pictures")
    expect(link).to_be_focused()
    expect(link).to_be_in_viewport()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(viewer.strip.or_(page.get_by_role("radio", name="attends to"))).to_have_count(2)
    assert page.evaluate("document.activeElement.closest('.mg-area-strip') !== null")


FOCUSED = """
() => {
  const one = document.activeElement;
  if (one === null || one === document.body) return null;
  const seen = (each) => {
    const style = getComputedStyle(each);
    return (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none';
  };
  const around = [one, one.closest('label'), one.closest('.wrap'), one.parentElement].filter(Boolean);
  const name = one.getAttribute('aria-label') ?? one.closest('label')?.innerText ?? one.innerText ?? '';
  one.dataset.reached = 'yes';
  return { name: `${one.tagName} ${one.id} ${name}`.trim().slice(0, 60), visible: around.some(seen) };
}
"""
UNREACHED = """
() => [...document.querySelectorAll('a[href], button, input, select, textarea, [tabindex], [role=radio]')]
  .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled && !one.dataset.reached)
  // Moved through with the arrow keys, from a sibling that Tab reaches.
  .filter((one) => one.closest('[role=radiogroup], .mg-grid, fieldset')?.querySelector('[data-reached]') == null)
  .filter((one) => one.tabIndex >= 0 || one.getAttribute('tabindex') === null)
  .map((one) => one.outerHTML.slice(0, 120))
"""


def test_tab_reaches_everything_and_the_focus_is_always_seen(page, random_url):
    viewer = Viewer(page).opened(random_url)
    viewer.type("the cat and the dog")
    page.get_by_role("button", name="Table").click()
    page.get_by_role("link", name="Skip to the pictures").focus()
    unseen, names = [], []
    while (focused := page.evaluate(FOCUSED)) is not None and len(names) < 80:
        names.append(focused["name"])
        if not focused["visible"]:
            unseen.append(focused["name"])
        page.keyboard.press("Tab")
    assert unseen == []
    assert page.evaluate(UNREACHED) == [], names
