"""The tabs below the pictures, in a browser: one page, walked through from test to test."""

import re

import pytest
import torch
from playwright.sync_api import expect

from minigpt.analysis.ablation import what_if
from minigpt.analysis.circuits import ov_circuit
from minigpt.analysis.compare import compare_heads, compare_prompts
from minigpt.analysis.contributions import direct_logits, logit_weighted, rollout, value_weighted
from minigpt.analysis.forward import forward
from minigpt.analysis.head_finder import find_heads, probe_heads
from minigpt.analysis.interventions import Intervention
from minigpt.analysis.lens import logit_lens
from minigpt.analysis.sweeps import edge_sweep, sweep
from tests.ui.conftest import PATIENCE_MS, Watch, observe
from tests.ui.test_access import violations
from tests.ui.viewing import SIGNS, Viewer

PROMPT = "the cat and the cat."
HOLD_QUESTIONS = """() => {
    const send = window.fetch;
    const held = new Promise((letGo) => { window.letGo = () => { window.fetch = send; letGo(); }; });
    window.fetch = (...of) => `${of[0]?.url ?? of[0]}`.includes('component_server')
        ? held.then(() => send(...of)) : send(...of);
}"""


@pytest.fixture(scope="module")
def watched(browser):
    """One page for all tests of this file, and what it asked for."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, locale="en-US")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    watch = Watch()
    observe(context, lambda: watch)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    yield page, watch
    context.close()
    watch.end()


@pytest.fixture(scope="module")
def page(watched):
    return watched[0]


@pytest.fixture(scope="module")
def viewer(page, random_url):
    opened = Viewer(page).opened(random_url)
    opened.type(PROMPT)
    return opened


def asked(watch):
    return [address for address in watch.traffic if "component_server" in address]


def tab(page, name):
    return page.get_by_role("tab", name=name)


def signed(change):
    text = f"{abs(change):.3f}"
    return "0.000" if float(text) == 0 else f"{'−' if change < 0 else '+'}{text}"


@pytest.mark.usefixtures("viewer")
def test_nothing_is_asked_before_a_tab_is_opened_and_keys_move_along_the_tabs(watched):
    page, watch = watched
    expect(page.get_by_role("tabpanel")).to_have_count(0)
    assert asked(watch) == []
    first, last = page.get_by_role("tab").first, page.get_by_role("tab").last
    first.focus()
    page.keyboard.press("ArrowLeft")
    expect(last).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(first).to_be_focused()
    assert asked(watch) == []
    expect(page.locator("[role=tab][aria-selected=true]")).to_have_count(0)
    tab(page, "What if").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("tabpanel", name="What if")).to_be_visible()
    expect(page.get_by_text("Nothing is changed yet")).to_be_visible()
    assert asked(watch) == []


def test_a_head_that_is_off_shows_what_it_changes(viewer, page, random_checkpoint):
    page.locator(".mg-parts").get_by_role("button", name="Change L1H2").click()
    expected = what_if(random_checkpoint, PROMPT, Intervention(heads_off=((1, 2),)))
    loss = page.locator(".mg-loss")
    expect(loss).to_contain_text(f"{expected.loss_before:.4f} → {expected.loss_after:.4f}")
    bars = page.locator(".mg-effects-panel .mg-bars-bar")
    expect(bars).to_have_count(len(PROMPT))
    expect(bars.nth(7)).to_have_attribute("title", f"after '␣' (7): {float(expected.kl[7]):.3f} bits")
    bars.nth(6).click()
    expect(page.get_by_text("Next token after 't' (6), largest change first")).to_be_visible()
    expect(viewer.token(6)).to_have_attribute("aria-selected", "true")
    rows = page.locator(".mg-effects tbody tr").evaluate_all(
        "all => all.map(one => [...one.querySelectorAll('.mg-chip, .mg-number')].map(part => part.textContent))"
    )
    changes = [abs(float(row[3].replace("−", "-"))) for row in rows]
    assert changes == sorted(changes, reverse=True)
    for text, before, after, change in rows:
        token = random_checkpoint.tokenizer.encode({"␣": " ", "⏎": "\n"}.get(text, text))[0]
        chances = [float(expected.before[6, token]), float(expected.after[6, token])]
        assert [float(before.replace("<", "")), float(after.replace("<", ""))] == pytest.approx(chances, abs=0.001)
        assert change == signed(chances[1] - chances[0])


def test_scale_and_layer_and_key_change_it_too_and_reset_restores(viewer, page, random_checkpoint):
    page.get_by_role("radio", name="scaled").click()
    page.get_by_role("slider", name="Factor of the chosen heads' output").fill("1.5")
    page.get_by_role("button", name="Feed-forward network of layer 0").click()
    viewer.choose(2, 1)
    page.get_by_label("Key at position").fill("3")
    page.get_by_role("button", name="Hide or show").click()
    expect(page.get_by_text("L2H1: 't' (6) does not see '␣' (3)")).to_be_visible()
    change = Intervention(head_scales=((1, 2, 1.5),), mlps_off=(0,), edges_off=((2, 1, 6, 3),))
    expected = what_if(random_checkpoint, PROMPT, change)
    expect(page.locator(".mg-loss")).to_contain_text(f"{expected.loss_before:.4f} → {expected.loss_after:.4f}")


def test_the_continuations_mark_their_first_difference(page):
    page.get_by_role("button", name="Continue the prompt twice").click()
    sides = page.locator(".mg-side .mg-text")
    expect(sides.last.locator("span")).to_have_count(40)
    before, after = (side.locator("span").all_text_contents() for side in sides.all())
    assert len(before) == 40
    first = next(index for index, (old, new) in enumerate(zip(before, after, strict=True)) if old != new)
    expect(page.get_by_text(f"First difference: token {first + 1}.")).to_be_visible()
    marked = page.locator(".mg-first-difference").all_text_contents()
    assert marked == [before[first], after[first]]


def test_the_change_travels_in_the_link(viewer, page):
    loss = page.locator(".mg-loss").inner_text()
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Link copied.")).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    assert "whatif=scale-150.h1-2.m0.e2-1-6-3" in link
    page.goto("about:blank")
    viewer.opened(link)
    expect(page.get_by_role("tabpanel", name="What if")).to_be_visible()
    expect(page.locator(".mg-loss")).to_have_text(loss)
    page.get_by_role("button", name="Reset").click()
    expect(page.get_by_text("Nothing is changed yet")).to_be_visible()
    expect(page.locator(".mg-parts [aria-pressed=true]")).to_have_count(0)


def test_the_sweep_names_the_head_that_matters_and_a_click_chooses_it(viewer, page, random_checkpoint):
    page.get_by_role("button", name="Remove each part once").click()
    cells = page.locator(".mg-effect-map .mg-effect")
    expect(cells).to_have_count(3 * 5)
    expected = sweep(random_checkpoint, PROMPT, position=6)
    values = expected.head_map("probability")
    assert cells.first.inner_text() == signed(float(values[0, 0]))
    assert cells.nth(14).inner_text() == signed(float(expected.mlps.probability[2]))
    page.get_by_role("radio", name="loss", exact=True).click()
    expect(cells.first).to_have_text(signed(float(expected.head_map("loss")[0, 0])))
    page.get_by_role("button", name=re.compile("^without L0H3: ")).click()
    expect(viewer.detail).to_contain_text("L0H3")


def test_each_key_hidden_once(page, random_checkpoint):
    page.get_by_role("radio", name="probability", exact=True).click()
    page.get_by_role("button", name="Hide each key once").click()
    expected = edge_sweep(random_checkpoint, PROMPT, 0, 3, query=6)
    bars = page.locator(".mg-sweeps .mg-bars-bar")
    expect(bars).to_have_count(7)
    change = signed(float(expected.keys.probability[2]))
    expect(bars.nth(2)).to_have_attribute(
        "title", f"without key 'e' (2), weight {float(expected.weight[2]):.3f}: {change}"
    )
    bars.nth(2).click()
    expect(page.get_by_text("L0H3: 't' (6) does not see 'e' (2)")).to_be_visible()


def test_both_sweeps_measure_the_token_that_was_picked(viewer, page, random_checkpoint):
    tokens = page.get_by_role("combobox", name="Probability of the token")
    tokens.select_option(index=3)
    token = int(tokens.input_value())
    expected = sweep(random_checkpoint, PROMPT, position=6, token=token)
    piece = SIGNS.get(expected.token, expected.token)
    parts, keys = (page.locator(".mg-sweeps > .mg-swept").nth(place) for place in (0, 1))
    expect(parts.get_by_role("status")).to_contain_text(f"'{piece}' after position 6 has probability")
    cells = page.locator(".mg-effect-map .mg-effect")
    expect(cells.nth(5 + 2)).to_have_text(signed(float(expected.head_map("probability")[1, 2])))
    page.get_by_role("button", name="Hide each key once").click()
    by_key = edge_sweep(random_checkpoint, PROMPT, 0, 3, query=6, position=6, token=token)
    expect(keys.get_by_role("status")).to_contain_text(f"'{piece}' has probability")
    change = signed(float(by_key.keys.probability[3]))
    expect(keys.locator(".mg-bars-bar").nth(3)).to_have_attribute("title", re.compile(re.escape(f": {change}") + "$"))
    viewer.token(5).click()
    expect(tokens).to_have_value("")
    viewer.token(6).click()


def test_another_text_is_asked_anew(viewer, page, random_checkpoint):
    viewer.type("the dog sat.")
    expected = what_if(random_checkpoint, "the dog sat.", Intervention(edges_off=((0, 3, 6, 2),)))
    expect(page.locator(".mg-loss")).to_contain_text(f"{expected.loss_before:.4f} → {expected.loss_after:.4f}")
    expect(page.locator(".mg-effects-panel .mg-bars-bar")).to_have_count(12)


def test_heads_are_sorted_by_a_score_and_a_row_chooses_its_head(viewer, page, random_checkpoint):
    viewer.type(PROMPT)
    tab(page, "Heads").click()
    rows = page.locator(".mg-head-table tbody tr")
    expect(rows).to_have_count(12)
    expected = find_heads(random_checkpoint, PROMPT)
    page.get_by_role("button", name="previous token").click()
    ranked = expected.best("previous", 12)
    expect(rows.first.get_by_role("button")).to_have_text(f"L{ranked[0][0]}H{ranked[0][1]}")
    expect(page.get_by_role("columnheader", name="previous token")).to_have_attribute("aria-sort", "descending")
    assert [row.locator("button").inner_text() for row in rows.all()] == [
        f"L{layer}H{head}" for layer, head, _ in ranked
    ]
    layer, head, score = ranked[3]
    untrained = float(expected.baseline["previous"][layer, head])
    expect(rows.nth(3).get_by_role("cell").first).to_have_text(f"{score:.2f} {untrained:.2f}")
    rows.nth(3).get_by_role("button").click()
    expect(viewer.detail).to_contain_text(f"L{layer}H{head}")
    expect(rows.nth(3).get_by_role("button")).to_be_focused()


def test_a_score_becomes_the_badge_of_every_thumbnail(viewer, page, random_checkpoint):
    page.get_by_label("On every thumbnail").select_option("entropy")
    expected = find_heads(random_checkpoint, PROMPT).scores["entropy"]
    named = f"L2H3, entropy (bits) {float(expected[2, 3]):.2f}"
    expect(viewer.head(2, 3)).to_have_attribute("aria-label", named)
    page.get_by_role("radio", name="standard probe").click()
    page.get_by_label("On every thumbnail").select_option("induction")
    expected = probe_heads(random_checkpoint).scores["induction"]
    expect(viewer.head(1, 0)).to_have_attribute("aria-label", f"L1H0, induction {float(expected[1, 0]):.2f}")
    page.get_by_label("On every thumbnail").select_option("")
    expect(viewer.head(1, 0)).not_to_have_attribute("aria-label", re.compile("induction"))


def test_the_scatter_draws_the_scores_that_are_asked_for(page, random_checkpoint):
    page.get_by_role("combobox", name="Across").select_option("entropy")
    page.get_by_role("combobox", name="Up").select_option("distance")
    chart = page.get_by_role("img", name="Every head by two scores: entropy (bits) across, distance (tokens) up")
    expected = probe_heads(random_checkpoint)
    drawn = chart.evaluate("plot => plot.data.map(({ x, y }) => [[...x], [...y]])")
    for trace, scores in zip(drawn, (expected.scores, expected.baseline), strict=True):
        assert trace[0] == pytest.approx(scores["entropy"].flatten().tolist(), rel=1e-3)
        assert trace[1] == pytest.approx(scores["distance"].flatten().tolist(), rel=1e-3)


def drawn(viewer, view):
    """Wait until a view is drawn, and return what Plotly draws of the chosen head."""
    expect(viewer.detail).to_contain_text(f"· {view}")
    return viewer.weights()


def test_the_cells_of_all_heads_can_show_weights_with_their_values(viewer, page, random_checkpoint):
    viewer.choose(2, 1)
    views = page.get_by_role("combobox", name="Drawn")
    views.select_option("value")
    shown = drawn(viewer, "weights × values")
    expect(page.get_by_role("heading", name="All heads · weights × values")).to_be_visible()
    inside = forward(random_checkpoint.model, torch.tensor(random_checkpoint.tokenizer.encode(PROMPT))).inside
    expected = value_weighted(random_checkpoint.model, inside)
    most = float(expected.max())
    for query in (0, 5, 19):
        assert shown[query][: query + 1] == pytest.approx(expected[2, 1, query, : query + 1].tolist(), abs=most / 1900)
    expect(page.get_by_text("‖αvW_O‖")).to_contain_text(f"0 to {round(most, 3):g}")
    viewer.hover(19, 3, len(PROMPT))
    expect(viewer.tip).to_have_text(re.compile(r"query '\.' \(19\), key '␣' \(3\), weights × values: \d"))


def test_shares_of_the_next_logit_and_rollout_are_drawn(viewer, page, random_checkpoint):
    views = page.get_by_role("combobox", name="Drawn")
    views.select_option("logit")
    shown = drawn(viewer, "brought to the next logit")
    expected = logit_weighted(random_checkpoint, PROMPT)
    most = float(expected.abs().max())
    for query in (0, 5, 19):
        assert shown[query][: query + 1] == pytest.approx(expected[2, 1, query, : query + 1].tolist(), abs=most / 900)
    ends = viewer.heatmap.evaluate("plot => [plot.data[0].zmin, plot.data[0].zmax]")
    assert ends == pytest.approx([-most, most], rel=1e-3)
    # Around 0, the scale is the one that was chosen for all pictures; so is a range for each head.
    stops = viewer.heatmap.evaluate("plot => plot.data[0].colorscale.map(([place]) => place)")
    assert stops[16:20] == pytest.approx([0.5 + (place / 16) ** 2 / 2 for place in range(4)])
    page.get_by_label("A range for each head").check()
    reached = float(expected[2, 1, 10:].abs().max())
    page.wait_for_function("most => document.querySelector('.js-plotly-plot').data[0].zmax < most * 0.99", arg=most)
    ends = viewer.heatmap.evaluate("plot => [plot.data[0].zmin, plot.data[0].zmax]")
    assert ends == pytest.approx([-reached, reached], abs=most / 900)
    page.get_by_label("A range for each head").uncheck()
    expect(page.get_by_text("what a key brought through this head to the logit")).to_be_visible()
    for query, token in ((6, "␣"), (19, direct_logits(random_checkpoint, PROMPT).token)):
        viewer.hover(query, 3, len(PROMPT))
        expect(viewer.tip).to_contain_text(f"brought to the logit of '{SIGNS.get(token, token)}': ")
    views.select_option("rollout")
    shown = drawn(viewer, "rollout through layers")
    inside = forward(random_checkpoint.model, torch.tensor(random_checkpoint.tokenizer.encode(PROMPT))).inside
    flow = rollout(inside.pattern[0])[2]
    for query in (0, 5, 19):
        assert shown[query][: query + 1] == pytest.approx(flow[query, : query + 1].tolist(), abs=1 / 1900)


def test_what_a_change_does_to_the_weights_is_drawn_around_zero(viewer, page, random_checkpoint):
    tab(page, "What if").click()
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("radio", name="off (zero)").click()
    page.get_by_role("button", name="Change L0H2").click()
    page.get_by_role("combobox", name="Drawn").select_option("difference")
    shown = drawn(viewer, "change of the weights")
    found = what_if(random_checkpoint, PROMPT, Intervention(heads_off=((0, 2),)))
    expected = found.inside_after.pattern[0] - found.inside_before.pattern[0]
    most = float(expected.abs().max())
    for query in (3, 19):
        assert shown[query][: query + 1] == pytest.approx(expected[2, 1, query, : query + 1].tolist(), abs=most / 900)
    ends = viewer.heatmap.evaluate("plot => [plot.data[0].zmin, plot.data[0].zmax]")
    assert ends == pytest.approx([-most, most], rel=1e-3)
    page.get_by_role("button", name="Reset").click()
    expect(viewer.detail).not_to_contain_text("change of the weights")
    expect(page.get_by_role("combobox", name="Drawn")).to_have_value("raw")
    expect(page.get_by_role("heading", name="All heads", exact=True)).to_be_visible()


def test_heads_are_replaced_by_their_mean_and_the_page_says_over_what(viewer, page, random_checkpoint):
    viewer.token(6).click()
    over_text = page.get_by_text("hands over its mean output over this text")
    expect(over_text).to_be_hidden()
    page.get_by_role("radio", name="mean over the text").click()
    page.get_by_role("button", name="Change L0H2").click()
    expected = what_if(random_checkpoint, PROMPT, Intervention(heads_off=((0, 2),), replace="mean"))
    expect(page.locator(".mg-loss")).to_contain_text(f"{expected.loss_before:.4f} → {expected.loss_after:.4f}")
    expect(over_text).to_be_visible()
    expect(page.get_by_text("For the continuations the mean is taken over the prompt alone.")).to_be_visible()
    means = sweep(random_checkpoint, PROMPT, position=6, replace="mean").head_map("probability")
    cells = page.locator(".mg-effect-map .mg-effect")
    expect(cells.nth(5 + 3)).to_have_text(signed(float(means[1, 3])))
    expect(page.get_by_text("heads are replaced by their mean over this text")).to_be_visible()


def test_a_logit_is_shown_as_the_sum_of_its_terms_and_a_bar_chooses_its_head(viewer, page, random_checkpoint):
    tab(page, "Inside").click()
    viewer.token(6).click()
    expected = direct_logits(random_checkpoint, PROMPT, position=6)
    said = page.get_by_text(re.compile(r"^The logit of "))
    expect(said).to_contain_text(f"after 't' (6) is {expected.logit:.4f}: the sum of all bars")
    chart = page.get_by_role("img", name=re.compile("^The terms of the logit of"))
    bars = chart.evaluate(
        "plot => Object.fromEntries(plot.data[0].x.map((x, i) => [plot.layout.xaxis.ticktext[i], plot.data[0].y[i]]))"
    )
    assert sum(bars.values()) == pytest.approx(expected.logit, abs=1e-3)
    assert bars["L2H3"] == pytest.approx(float(expected.heads[2, 3]), rel=1e-3)
    name = max((name for name in bars if "H" in name), key=lambda each: abs(bars[each]))
    chart.scroll_into_view_if_needed()
    box = chart.locator(".point").nth(list(bars).index(name)).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(viewer.detail).to_contain_text(name)
    token = SIGNS.get(expected.token, expected.token)
    brought = f"What {name} brought for '{token}' from each token, {signed(bars[name])} in all"
    expect(page.get_by_role("heading", name=brought)).to_be_visible()


def test_the_lens_says_what_each_layer_would_say(viewer, page, random_checkpoint):
    page.get_by_role("radio", name="logit lens").click()
    expected = logit_lens(random_checkpoint, PROMPT)
    chart = page.get_by_role("img", name="Logit lens, colour: probability of the final token")
    drawn_values = chart.evaluate("plot => plot.data[0].z")
    assert drawn_values[1] == pytest.approx(expected.final_probability[1].tolist(), rel=1e-3)
    chart.scroll_into_view_if_needed()
    box = chart.locator(".nsewdrag").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 9.5 / len(PROMPT), box["y"] + box["height"] / 2)
    expect(viewer.token(9)).to_have_attribute("aria-selected", "true")
    read = page.locator(".mg-lens-reading .mg-number").all_text_contents()
    assert read == [f"{float(chance):.3f}" for chance in expected.top_probability[:, 9]]


def test_the_circuits_of_the_chosen_head_are_drawn_with_their_caveat(viewer, page, random_checkpoint):
    page.get_by_role("radio", name="circuits of the head").click()
    page.get_by_role("radio", name="pushes (OV)").click()
    viewer.choose(0, 1)
    expected = ov_circuit(random_checkpoint, 0, 1)
    chart = page.get_by_role("img", name="L0H1: which next tokens it pushes when it attends to a token")
    expect(page.get_by_text("Embeddings alone")).to_be_visible()
    for row, values in zip(chart.evaluate("plot => plot.data[0].z"), expected.matrix.tolist(), strict=True):
        assert row == pytest.approx(values, rel=1e-3, abs=1e-5)
    page.get_by_role("radio", name="positions").click()
    expect(page.get_by_role("img", name="L0H1: which positions it prefers")).to_be_visible()


def test_a_picture_keeps_its_title_while_another_is_waited_for(viewer, page):
    page.evaluate(HOLD_QUESTIONS)
    viewer.choose(0, 2)
    waiting = page.locator(".mg-circuits.mg-waits")
    expect(waiting.get_by_role("img", name="L0H1: which positions it prefers")).to_be_visible()
    expect(page.get_by_role("heading", name="L0H1: which positions it prefers")).to_be_visible()
    page.evaluate("() => window.letGo()")
    expect(page.get_by_role("heading", name="L0H2: which positions it prefers")).to_be_visible()
    expect(waiting).to_have_count(0)
    viewer.choose(0, 1)


def test_another_token_is_asked_about_what_follows_it_even_while_the_sum_was_out_of_sight(viewer, page):
    parts = {name: page.get_by_role("radio", name=name) for name in ("one logit as a sum", "logit lens")}
    parts["one logit as a sum"].click()
    tokens = page.get_by_role("combobox", name="Token")
    tokens.select_option(index=2)
    parts["logit lens"].click()
    viewer.token(4).click()
    parts["one logit as a sum"].click()
    expect(tokens).to_have_value("")
    expect(page.get_by_text(re.compile(r"^The logit of .* after .* \(4\) is "))).to_be_visible()


def test_what_of_a_large_circuit_is_drawn_is_said(page):
    script = """async (given) => {
        const main = performance.getEntriesByType('resource').find(({ name }) => name.endsWith('/main.js')).name;
        const { partDrawn } = await import(new URL('circuits.js', main).href);
        const analysis = { ids: [1, 2, 2, 3, 9], checkpoint: { block_size: 300, vocab_size: 500 } };
        return given.map((value) => partDrawn({ analysis }, value, (key, values) => [key, values]));
    }"""
    positions = [{"kind": "position", "pattern": [[0]] * count} for count in (256, 300)]
    tokens = [{"kind": "ov", "rows": [1, 2, 3], "matrix": matrix} for matrix in (None, [[0]])]
    assert page.evaluate(script, [*positions, *tokens, None]) == [
        [["circuit_position_first", {"count": 256, "all": 300}]],
        [],
        [["circuit_rows_of_text", {"vocab": 500, "rows": 3, "distinct": 4}]],
        [],
        [],
    ]


def test_an_edited_text_is_compared_and_a_cell_is_marked_in_all_three_maps(page, random_checkpoint):
    other = "the cat sat and the cat."
    tab(page, "Compare").click()
    page.get_by_label("The other text").fill(other)
    page.get_by_role("button", name="Compare", exact=True).click()
    expected = compare_prompts(random_checkpoint, PROMPT, other)
    maps = page.locator(".mg-compared .mg-chart")
    expect(maps.last).to_have_attribute("aria-label", "Difference: blue more, orange less")
    drawn_difference = maps.last.evaluate("plot => plot.data[0].z")
    row = [cell for cell in drawn_difference[-1] if cell is not None]
    values = [cell for cell in expected.difference[0, 1, -1].tolist() if cell == cell]
    assert row == pytest.approx(values, abs=2e-4)
    inserted = page.locator(".mg-aligned ins").all_text_contents()
    assert "".join(inserted).replace("␣", " ") == "".join(
        slot.token for slot in expected.slots if slot.mark == "inserted"
    )
    area = maps.first.locator(".nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    count = len(expected.slots)
    for shift in (0, 1):  # a pointer that comes from elsewhere moves twice
        page.mouse.move(box["x"] + box["width"] * 1.5 / count + shift, box["y"] + box["height"] * 2.5 / count)
    weights = (float(expected.first[0, 1, 2, 1]), float(expected.second[0, 1, 2, 1]))
    expect(page.locator(".mg-reading")).to_contain_text(
        f"query 'e' (2), key 'h' (1): {weights[0]:.3f} → {weights[1]:.3f}"
    )
    marked = maps.evaluate_all("all => all.map(({ layout: { shapes: [{ x0, y0 }] } }) => [x0, y0])")
    assert marked == [[0.5, 1.5]] * 3


def test_positions_are_true_where_the_window_cuts_the_text(viewer, page, random_checkpoint):
    long = "the cat sat. " + PROMPT
    start = len(long) - random_checkpoint.config.block_size
    viewer.type(long)
    page.get_by_role("textbox", name="The other text").fill(long)
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator(".mg-compared .mg-chart").last).to_have_attribute("aria-label", re.compile("^Difference"))
    expect(page.locator(".mg-waits")).to_have_count(0)
    cells = page.locator(".mg-changes li").all_text_contents()
    places = {int(place) for cell in cells for place in re.findall(r"\((\d+)\)", cell)}
    assert places
    assert min(places) >= start
    assert not any("→" in place for cell in cells for place in re.findall(r"\([^)]*\)", cell))
    viewer.type(PROMPT)


def maps_of(page, *titles):
    """Wait for the maps with these titles, and return what Plotly draws in the last rows of the first two."""
    headings = page.locator(".mg-compared h3")
    expect(headings).to_have_text([*titles, "Difference: blue more, orange less"])
    maps = page.locator(".mg-compared .mg-chart").evaluate_all("all => all.map(plot => plot.data[0].z.at(-1))")
    return maps[:2]


def test_a_head_is_compared_with_another_and_with_itself_after_the_change(page, random_checkpoint):
    page.get_by_role("radio", name="another head").click()
    page.get_by_role("combobox", name="The other head").select_option(label="L2H3")
    expected = compare_heads(random_checkpoint, PROMPT, (0, 1), (2, 3))
    first, second = maps_of(page, "L0H1, the chosen head", "L2H3, the other head")
    assert first == pytest.approx(expected.first[0, 0, -1].tolist(), abs=1e-4)
    assert second == pytest.approx(expected.second[0, 0, -1].tolist(), abs=1e-4)
    page.get_by_role("button", name=re.compile("^L2H1(,|$)")).click()
    page.get_by_role("radio", name="the changed model").click()
    change = Intervention(heads_off=((0, 2),), replace="mean")
    found = what_if(random_checkpoint, PROMPT, change)
    before, after = maps_of(page, "L2H1, before", "L2H1, after")
    assert before == pytest.approx(found.inside_before.pattern[0, 2, 1, -1].tolist(), abs=1e-4)
    assert after == pytest.approx(found.inside_after.pattern[0, 2, 1, -1].tolist(), abs=1e-4)
    assert before != pytest.approx(after, abs=1e-3)


@pytest.mark.parametrize("name", ["Heads", "What if", "Compare", "Inside"])
def test_every_tab_fits_a_phone_and_axe_finds_nothing(viewer, page, axe, name):
    page.set_viewport_size({"width": 390, "height": 900})
    tab(page, name).click()
    panel = page.get_by_role("tabpanel", name=name)
    expect(panel).not_to_have_attribute("aria-busy", "true")
    expect(panel.get_by_text("One moment")).to_have_count(0)
    expect(panel.locator(".mg-waits")).to_have_count(0)
    assert viewer.width_needed() <= 390
    clipped = panel.evaluate(
        "panel => [...panel.querySelectorAll('.mg-bars, .mg-scroll')]"
        ".filter(one => one.checkVisibility() && !one.matches('.mg-head-scroll'))"
        ".filter(one => one.scrollHeight > one.clientHeight + 1).map(one => one.className)"
    )
    assert clipped == []
    assert violations(page, axe) == []
