"""The main job in a real browser: type, look, choose, generate, stop."""

import re

import pytest
from playwright.sync_api import expect

from minigpt import generate, trace
from tests.ui.viewing import SIGNS, Viewer

PROMPT = "the cat and the dog"
BLOCK_SIZE = 24
"""Of the random model; prompts of these tests fit unless they say otherwise."""
STOPS_EARLY = """() => {
    const stop = [...document.querySelectorAll('button')].find((one) => one.textContent.includes('Stop'));
    const observer = new MutationObserver(() => {
        if (document.querySelector('.mg-generated') !== null && !stop.disabled) {
            observer.disconnect();
            stop.click();
        }
    });
    observer.observe(document.body, { attributes: true, childList: true, subtree: true });
}"""


@pytest.fixture
def page(kept_page):
    return kept_page


@pytest.fixture
def viewer(page, random_url):
    return Viewer(page).at(random_url, PROMPT)


def test_the_page_opens_on_a_trained_model_with_every_head_drawn_and_what_is_stopped_stays(open_page, app_url):
    page = open_page()
    viewer = Viewer(page).opened(app_url)
    names = page.get_by_role("button", name=re.compile(r"^L\d+H\d+(,|$)"))
    assert names.count() >= 16
    expect(viewer.heatmap).to_be_visible()
    assert len(viewer.tokens()) > 20
    painted = page.locator(".mg-head canvas").evaluate_all(
        "all => all.map(one => one.getContext('2d').getImageData(0, one.height - 1, 1, 1).data[3])"
    )
    assert set(painted) == {255}
    expect(page.get_by_text("Checked on this text")).to_be_visible()

    prompt = viewer.prompt.input_value()
    page.get_by_label("New tokens").fill("500")
    # At once, in the page: on a busy machine the last token can be there before a pointer from outside is.
    page.evaluate(STOPS_EARLY)
    page.get_by_role("button", name="Generate").click()
    expect(page.locator(".mg-generated").first).to_be_attached()
    expect(page.get_by_role("button", name="Generate")).to_be_enabled()
    expect(page.locator(".mg-pending")).to_have_count(0)
    last = viewer.named_tokens()[-1]
    assert len(prompt) <= int(re.findall(r"\((\d+)\)$", last)[0]) < len(prompt) + 499
    expect(viewer.prompt).to_have_value(prompt)


def test_typing_redraws_by_itself(viewer):
    viewer.type("a bad cab")
    assert viewer.tokens() == [SIGNS.get(character, character) for character in "a bad cab"]
    assert [len([value for value in row if value is not None]) for row in viewer.weights()] == list(range(1, 10))


def test_the_heatmap_shows_the_weights_of_the_forward_pass_and_an_empty_future(viewer, random_checkpoint):
    viewer.choose(2, 1)
    drawn, true = viewer.weights(), trace(random_checkpoint, PROMPT).pattern[2, 1]
    for query, row in enumerate(drawn):
        assert row[: query + 1] == pytest.approx(true[query, : query + 1].tolist(), abs=0.0005)
        assert all(value is None for value in row[query + 1 :])


def test_choosing_a_head_a_token_or_a_direction_asks_the_server_nothing(viewer, page, traffic):
    before = viewer.weights()
    asked = len(traffic)
    viewer.choose(1, 3)
    expect(viewer.detail).to_have_text("Layer 1 · Head 3 (L1H3)")
    assert viewer.weights() != before
    viewer.token(5).click()
    page.get_by_role("radio", name="attended by").click()
    page.get_by_role("button", name="Next head").click()
    expect(viewer.detail).to_have_text("Layer 2 · Head 0 (L2H0)")
    assert traffic[asked:] == []


def test_a_clicked_token_lights_up_what_it_attends_to_with_the_numbers_of_its_row(viewer, random_checkpoint):
    viewer.choose(0, 2)
    viewer.token(7).click()
    expect(viewer.page.get_by_text(f"'{SIGNS[' ']}' (7) attends to", exact=True)).to_be_visible()
    assert viewer.lit() == [position <= 7 for position in range(len(PROMPT))]
    row = trace(random_checkpoint, PROMPT).pattern[0, 2, 7]
    readout = viewer.readout()
    assert {key for key in row.topk(6).indices.tolist() if row[key] > 0.001} <= set(readout)
    assert list(readout.values()) == pytest.approx([row[key].item() for key in readout], abs=0.001)


def test_attended_by_shows_the_column_of_the_token(viewer, random_checkpoint):
    viewer.choose(1, 1)
    viewer.token(4).click()
    viewer.page.get_by_role("radio", name="attended by").click()
    assert viewer.lit() == [position >= 4 for position in range(len(PROMPT))]
    column = trace(random_checkpoint, PROMPT).pattern[1, 1, :, 4]
    readout = viewer.readout()
    assert {query for query in column.topk(6).indices.tolist() if column[query] > 0.001} <= set(readout)
    assert list(readout.values()) == pytest.approx([column[query].item() for query in readout], abs=0.001)


def test_clicking_a_cell_chooses_its_query(viewer, page):
    viewer.hover(9, 3, len(PROMPT))
    expect(viewer.tip).to_be_visible()
    page.mouse.down()
    page.mouse.up()
    expect(viewer.token(9)).to_have_attribute("aria-selected", "true")
    frame = viewer.heatmap.evaluate("plot => plot.layout.shapes[0]")
    assert (frame["x0"], frame["x1"], frame["y0"], frame["y1"]) == (-0.5, 9.5, 8.5, 9.5)


def test_arrow_keys_move_through_heads_and_tokens(viewer, page):
    viewer.head(0, 0).focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "End"):
        page.keyboard.press(key)
    expect(viewer.detail).to_have_text("Layer 0 · Head 3 (L0H3)")
    expect(viewer.head(0, 3)).to_be_focused()
    viewer.strip.focus()
    for key in ("Home", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(viewer.token(2)).to_have_attribute("aria-selected", "true")


def test_the_next_token_panel_names_what_followed_and_its_rank(viewer, page, random_checkpoint):
    viewer.token(3).click()
    traced = trace(random_checkpoint, PROMPT)
    chances = traced.logits[3].softmax(-1)
    followed = traced.ids[4]
    rank = int((chances > chances[followed]).sum()) + 1
    expected = (
        f"'{PROMPT[4]}' (4) follows: {chances[followed]:.3f}, rank {rank} of {random_checkpoint.tokenizer.vocab_size}"
    )
    expect(page.get_by_text(expected)).to_be_visible()
    likeliest = page.get_by_role("row").nth(1)
    best = random_checkpoint.tokenizer.piece(int(chances.argmax()))
    expect(likeliest).to_contain_text(SIGNS.get(best, best))
    expect(likeliest).to_contain_text(f"{chances.max():.3f}")


def test_a_continuation_streams_in_and_the_pictures_cover_it(viewer, page, random_checkpoint):
    before = viewer.shown()
    page.get_by_label("New tokens").fill("20")
    page.get_by_label("Seed").fill("7")
    page.get_by_role("button", name="Generate").click()
    viewer.redrawn(before)
    expect(page.get_by_role("button", name="Generate")).to_be_enabled()
    text = "".join(
        step.token for step in generate(random_checkpoint, PROMPT, max_new_tokens=20, temperature=0.8, seed=7)
    )
    window = [SIGNS.get(character, character) for character in (PROMPT + text)[-BLOCK_SIZE:]]
    expect(viewer.strip.get_by_role("option")).to_have_text(window)
    expect(page.locator(".mg-pending")).to_have_count(0)
    expect(page.locator(".mg-generated")).to_have_count(20)
    assert len(viewer.weights()) == BLOCK_SIZE


def test_unknown_characters_are_named_and_left_out_with_one_click(viewer, page):
    before = viewer.tokens()
    viewer.prompt.fill("the Ωcat% and")
    expect(viewer.notice).to_contain_text("Ω")
    expect(viewer.notice).to_contain_text("%")
    expect(viewer.prompt).to_have_value("the Ωcat% and")
    assert viewer.tokens() == before
    page.get_by_role("button", name="Leave them out").click()
    expect(viewer.prompt).to_have_value("the cat and")
    expect(viewer.notice).to_be_empty()
    expect(viewer.strip.get_by_role("option")).to_have_count(len("the cat and"))


def test_an_empty_prompt_shows_a_hint_and_typing_goes_on(viewer):
    viewer.prompt.fill("")
    expect(viewer.notice).not_to_be_empty()
    expect(viewer.heatmap).to_be_visible()
    viewer.type("ab")
    expect(viewer.notice).to_be_empty()
    assert viewer.tokens() == ["a", "b"]


def test_a_prompt_longer_than_the_window_is_cropped_in_sight_with_true_positions(viewer, page, random_checkpoint):
    text = "the quick brown fox jumps over the lazy dog."
    viewer.choose(0, 0)
    viewer.type(text)
    start = len(text) - BLOCK_SIZE
    assert viewer.named_tokens()[0] == f"'{text[start]}' ({start})"
    expect(page.locator(".mg-outside")).to_have_text(text[:start].replace(" ", SIGNS[" "]))
    expect(page.get_by_text(f"outside the window ({start})")).to_be_visible()
    assert {int(position) for _, position in viewer.labels("x")} <= set(range(start, len(text)))
    viewer.hover(10, 2, BLOCK_SIZE)
    weight = trace(random_checkpoint, text).pattern[0, 0, 10, 2].item()
    query, key = start + 10, start + 2
    said = f"query '{SIGNS.get(text[query], text[query])}' ({query}) attends to key '{text[key]}' ({key}): "
    expect(viewer.tip).to_contain_text(said)
    assert float(viewer.tip.inner_text().removeprefix(said).removeprefix("<")) == pytest.approx(weight, abs=0.001)


def test_the_last_thing_typed_is_what_stays(viewer):
    viewer.prompt.press_sequentially(" zz", delay=30)
    expect(viewer.strip.get_by_role("option")).to_have_count(len(PROMPT) + 3)
    viewer.prompt.fill("abc")
    viewer.prompt.fill("abcd")
    viewer.prompt.fill("dcb")
    expect(viewer.strip.get_by_role("option")).to_have_text(["d", "c", "b"])


def test_what_arrives_while_the_viewer_is_hidden_is_drawn_when_it_is_shown(viewer, page):
    before = viewer.shown()
    page.evaluate("document.querySelector('#viewer').style.display = 'none'")
    viewer.prompt.fill("hidden")
    expect(page.locator("[role=option]")).to_have_count(6)
    assert viewer.shown() == before
    page.set_viewport_size({"width": 1100, "height": 900})
    page.evaluate("document.querySelector('#viewer').style.display = ''")
    viewer.redrawn(before)
    assert len(viewer.weights()) == 6
    width = viewer.heatmap.evaluate("plot => plot.clientWidth")
    assert viewer.heatmap.locator(".main-svg").first.evaluate("svg => svg.clientWidth") == width


def test_another_browser_tab_in_front_changes_nothing(viewer, page, random_url):
    viewer.choose(2, 2)
    other = page.context.new_page()
    other.goto(f"{random_url}/config")
    other.bring_to_front()
    page.bring_to_front()
    expect(viewer.detail).to_have_text("Layer 2 · Head 2 (L2H2)")
    viewer.type("still here")
    assert viewer.shown().endswith(":2:2")
    other.close()
