"""The viewer with a host that the test plays: what it does with messages that the app would send only now and then."""

import re
import unicodedata

import pytest
from playwright.sync_api import expect

from minigpt import wire
from minigpt.figures import glyph
from tests.ui.alone import attention, generating, message, open_alone, send, show


@pytest.fixture
def answers():
    """What the host's server was asked for."""
    return []


@pytest.fixture
def viewer(page, answers):
    return open_alone(page, lambda *asked: answers.append(list(asked)) or page.pattern_of(*asked))


def test_an_answer_older_than_what_is_shown_is_dropped(viewer):
    older = message(attention(1, 2, 3))
    newer = message(attention(1, 2, 5))
    show(viewer, newer)
    send(viewer, older)
    send(viewer, wire.notice("any", {"en": "Something to say."}))
    expect(viewer.notice).to_have_text("Something to say.")
    assert len(viewer.tokens()) == 5


def test_the_page_starts_with_the_head_that_says_most_and_keeps_the_choice_while_the_model_stays(viewer):
    send(viewer, message(attention(2, 3, 5), telling=(1, 2)))
    expect(viewer.root).to_have_attribute("data-shown", re.compile(":1:2$"))
    viewer.choose(0, 1)
    viewer.token(2).click()
    before = viewer.shown()
    send(viewer, message(attention(2, 3, 6), telling=(1, 2)))
    viewer.redrawn(before)
    assert viewer.shown().endswith(":0:1")
    expect(viewer.token(2)).to_have_attribute("aria-selected", "true")
    send(viewer, message(attention(2, 3, 6), name="another", telling=(1, 0)))
    expect(viewer.root).to_have_attribute("data-shown", re.compile(":1:0$"))


@pytest.mark.parametrize("native", [True, False], ids=["native base64", "base64 by hand"])
def test_every_weight_reads_back_to_a_twentieth_of_a_percent(viewer, native):
    if not native:
        viewer.page.evaluate("delete Uint8Array.fromBase64")
    pattern = attention(2, 3, 37)
    show(viewer, message(pattern))
    viewer.choose(1, 2)
    for query, row in enumerate(viewer.weights()):
        assert row[: query + 1] == pytest.approx(pattern[1, 2, query, : query + 1].tolist(), abs=0.0005)
        assert row[query + 1 :] == [None] * (36 - query)


def test_a_large_model_sends_thumbnails_and_the_chosen_head_comes_once_on_demand(viewer, answers):
    pattern = attention(2, 3, 70)
    viewer.page.pattern_of = lambda _model, _ids, layer, head: wire.head(layer, head, pattern[layer, head])
    sent = message(pattern, largest=1000)
    assert sent["mode"] == "thumbnails"
    show(viewer, sent)
    viewer.choose(1, 2)
    assert viewer.weights()[69] == pytest.approx(pattern[1, 2, 69].tolist(), abs=0.0005)
    viewer.choose(0, 0)
    viewer.choose(1, 2)
    ids = [position % 26 for position in range(70)]
    assert answers == [["alone", ids, 0, 0], ["alone", ids, 1, 2]]
    first_rows = viewer.page.locator(".mg-head canvas").evaluate_all(
        "all => all.map(one => [...one.getContext('2d').getImageData(0, 0, one.width, 1).data])"
    )
    assert all(row[3] == 255 and set(row[7::4]) == {0} for row in first_rows)


def test_a_head_that_does_not_come_says_why_and_can_be_asked_for_again(viewer):
    pattern = attention(1, 2, 70)
    viewer.page.pattern_of = lambda *_: wire.notice("gone", {"en": "That model is gone."})
    send(viewer, message(pattern, largest=1000))
    expect(viewer.notice).to_have_text("That model is gone.")
    viewer.page.pattern_of = lambda _model, _ids, layer, head: wire.head(layer, head, pattern[layer, head])
    viewer.head(0, 1).click()
    expect(viewer.root).to_have_attribute("data-shown", re.compile(":0:1$"))


def test_labels_stay_few_and_round_and_follow_the_zoom(viewer):
    show(viewer, message(attention(1, 1, 200), start=100))
    whole = [int(position) for _, position in viewer.labels("x")]
    assert whole == list(range(100, 300, 20))
    box = viewer.heatmap.locator(".nsewdrag").first.bounding_box()
    mouse = viewer.page.mouse
    mouse.move(box["x"] + box["width"] * 0.1, box["y"] + box["height"] * 0.6)
    mouse.down()
    mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.8, steps=4)
    mouse.up()
    whole_map = viewer.page.get_by_role("button", name="Whole map")
    expect(whole_map).to_be_visible()
    zoomed = [int(position) for _, position in viewer.labels("x")]
    assert 4 <= len(zoomed) <= 16
    assert 118 <= min(zoomed) < max(zoomed) <= 162
    rows = [int(position) for _, position in viewer.labels("y")]
    assert 218 <= min(rows) < max(rows) <= 262
    viewer.page.get_by_role("button", name="Next head").click()
    expect(whole_map).to_be_visible()
    whole_map.click()
    expect(whole_map).to_be_hidden()
    assert [int(position) for _, position in viewer.labels("x")] == whole


def test_signs_are_the_same_on_the_page_and_in_figures(viewer):
    ranges = [
        range(0x3400),
        range(0xD7B0, 0xD7FF),
        range(0xE000, 0xE003),
        range(0xFB00, 0x10000),
        range(0xE0000, 0xE0080),
    ]
    characters = [chr(code) for each in ranges for code in each if unicodedata.category(chr(code)) != "Cn"]
    tokens = [*characters, "", "the", " a\n", "👩\u200d👧", "✌\ufe0f", "\u200d\u200d", "\u0301e"]
    signs = viewer.page.evaluate(
        "async (tokens) => { const { glyph } = await import('/viewer/glyphs.js'); return tokens.map(glyph); }", tokens
    )
    different = [(token, sign) for token, sign in zip(tokens, signs, strict=True) if sign != glyph(token)]
    assert different == []


def test_generated_tokens_stand_in_the_strip_before_their_pictures_do(viewer):
    show(viewer, message(attention(1, 2, 5)))
    send(viewer, generating([25, 24], 5))
    expect(viewer.strip.get_by_role("option")).to_have_text(list("abcdezy"))
    expect(viewer.page.locator(".mg-pending")).to_have_text(["z", "y"])
    show(viewer, message(attention(1, 2, 7), prompt_length=5))
    expect(viewer.page.locator(".mg-pending")).to_have_count(0)
    send(viewer, message(attention(1, 2, 6)))
    expect(viewer.strip.get_by_role("option")).to_have_text(list("abcdef"))


def test_a_stream_that_continues_another_text_waits_for_its_own_pictures(viewer):
    show(viewer, message(attention(1, 2, 5)))
    send(viewer, generating([25, 24], 3))
    send(viewer, wire.notice("any", {"en": "Later."}))
    expect(viewer.notice).to_have_text("Later.")
    assert viewer.tokens() == list("abcde")


def test_typing_asks_once_after_a_pause_and_generating_takes_over(viewer):
    page = viewer.page
    page.locator("textarea").press_sequentially("quick", delay=20)
    page.wait_for_function("window.triggered.length > 0")
    assert page.evaluate("window.triggered") == ["analyze"]
    page.clock.install()
    page.locator("textarea").press("x")
    page.locator("#generate").click()
    page.clock.run_for(2000)
    assert page.evaluate("window.triggered") == ["analyze"]


def test_twelve_layers_of_twelve_heads_stay_below_three_thousand_elements(viewer):
    send(viewer, message(attention(12, 12, 256), telling=(3, 7)))
    expect(viewer.root).to_have_attribute("data-shown", re.compile(":3:7$"))
    assert viewer.page.locator(".mg *").count() <= 3000
    expect(viewer.head(3, 7)).to_have_attribute("aria-label", "L3H7, previous token 0.90")
    badge = viewer.head(3, 7).locator(".mg-badge").evaluate("one => getComputedStyle(one, '::before').content")
    assert badge == '"prev"'


def test_a_hundred_analyses_leave_nothing_behind(viewer):
    page = viewer.page
    cdp = page.context.new_cdp_session(page)
    cdp.send("Performance.enable")

    def measured():
        for _ in range(3):
            cdp.send("HeapProfiler.collectGarbage")
        metrics = {each["name"]: each["value"] for each in cdp.send("Performance.getMetrics")["metrics"]}
        return metrics["JSEventListeners"], metrics["Nodes"], metrics["JSHeapUsedSize"] / 1e6

    def analyse(times):
        for turn in range(times):
            show(viewer, message(attention(2, 3, 20 + turn % 7, seed=turn)))

    analyse(10)
    listeners, nodes, heap = measured()
    analyse(100)
    listeners_after, nodes_after, heap_after = measured()
    assert listeners_after == listeners
    assert nodes_after <= nodes + 100
    assert heap_after <= heap + 3
