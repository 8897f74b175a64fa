"""Colours: one scale for every eye, other scales and ranges on request, and each of them stated beside the pictures."""

import math
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.ui.alone import attention, message, open_alone, send, show

LEVELS = 256
PROTANOPIA = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
DEUTERANOPIA = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
TRITANOPIA = [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
EYES = {"usual": np.eye(3), "protanopia": PROTANOPIA, "deuteranopia": DEUTERANOPIA, "tritanopia": TRITANOPIA}
"""What each eye sees of linear RGB: Machado, Oliveira and Fernandes, 2009, table 1, severity 1."""
TOKENS = 12


@pytest.fixture
def viewer(page):
    viewer = open_alone(page, None)
    show(viewer, message(attention(2, 3, TOKENS)))
    return viewer


def css(page, theme):
    """Return the 256 colours of the scale as numbers."""
    colours = page.evaluate(
        "async theme => (await import('/viewer/colours.js')).rampOf(theme).css.map(colour => colour.slice(1))", theme
    )
    return np.array([[int(colour[place : place + 2], 16) for place in (0, 2, 4)] for colour in colours])


def lightness(rgb):
    """Return CIE L* of linear RGB."""
    luminance = np.clip(rgb, 0, 1) @ [0.2126, 0.7152, 0.0722]
    return np.where(luminance > 216 / 24389, 116 * np.cbrt(luminance) - 16, luminance * 24389 / 27)


def place(weight, scale, top):
    """Return where a weight lies on a scale, as the legend says: 0 to 1."""
    if scale == "Logarithmic":
        return min(1, max(0, math.log(max(weight, 0.001) / 0.001) / math.log(top / 0.001)))
    return min(1, math.sqrt(weight / top) if scale == "Square root" else weight / top)


def thumbnail(viewer, layer, head):
    """Return the pixels of a head's thumbnail: rows, columns, RGBA."""
    pixels = (
        viewer.head(layer, head)
        .locator("canvas")
        .evaluate("one => [...one.getContext('2d').getImageData(0, 0, one.width, one.height).data]")
    )
    side = math.isqrt(len(pixels) // 4)
    return np.array(pixels).reshape(side, side, 4)


def expect_colours(viewer, pattern, scale, tops):
    """Check every cell of every thumbnail."""
    colours = css(viewer.page, "light")
    for layer, head in np.ndindex(2, 3):
        pixels = thumbnail(viewer, layer, head)
        for query in range(TOKENS):
            for key in range(query + 1):
                read = round(float(pattern[layer, head, query, key]) * 1000) / 1000
                level = min(LEVELS - 1, math.floor(LEVELS * place(read, scale, tops[layer, head])))
                near = colours[max(0, level - 1) : level + 2].tolist()
                assert pixels[query, key, :3].tolist() in near, (layer, head, query, key)
            assert set(pixels[query, query + 1 :, 3].tolist()) <= {0}


def later_half(pattern, first_key=0):
    """Return the largest weight of each head in the later half of the window, to three digits."""
    return np.round(pattern[:, :, TOKENS // 2 :, first_key:].max((2, 3)), 3)


def ticks(page):
    return page.locator(".mg-area-detail .mg-scale-tick").all_text_contents()


def test_lightness_alone_tells_a_larger_weight_from_a_smaller_one_for_every_eye(viewer, subtests):
    for theme in ("light", "dark"):
        channels = css(viewer.page, theme) / 255
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        for eye, seen_by in EYES.items():
            with subtests.test(theme=theme, eye=eye):
                seen = lightness(linear @ np.array(seen_by).T)
                assert abs(seen[-1] - seen[0]) > 70
                assert (np.diff(seen) * np.sign(seen[-1] - seen[0])).min() > -0.1  # eight bits a channel
                assert (np.abs(seen[4:] - seen[:-4]) > 0.4).all()


def test_every_picture_is_coloured_as_the_legend_says(viewer):
    page = viewer.page
    pattern = attention(2, 3, TOKENS)
    ends = css(page, "light")[[0, -1]].tolist()
    for scale in ("Square root", "Linear", "Logarithmic"):
        page.get_by_role("radio", name=scale).click()
        said = f"colours on a {scale.lower().replace(' ', '-')} scale"
        expect(page.locator(".mg-area-detail .mg-scale-caption")).to_contain_text(said)
        expect_colours(viewer, pattern, scale, np.ones((2, 3)))
        stated = [float(text.strip("≤")) for text in ticks(page)]
        at = [
            float(one.evaluate("one => one.style.getPropertyValue('--at')"))
            for one in page.locator(".mg-area-detail .mg-scale-tick").all()
        ]
        assert at == pytest.approx([place(weight, scale, 1) for weight in stated], abs=1e-6)
        colour_at = dict(viewer.heatmap.evaluate("plot => plot.data[0].colorscale"))
        assert [list(bytes.fromhex(colour_at[end][1:])) for end in (0, 1)] == ends


def test_a_range_of_its_own_ends_where_each_head_does_and_says_so(viewer):
    page = viewer.page
    pattern = attention(2, 3, TOKENS)
    page.get_by_label("A range for each head").check()
    tops = later_half(pattern)
    expect_colours(viewer, pattern, "Square root", tops)
    expect(page.get_by_text("Colours: a range of its own for each head")).to_be_visible()
    for layer, head in ((0, 0), (1, 2)):
        viewer.choose(layer, head)
        top = f"{tops[layer, head]:.3f}".rstrip("0")
        assert viewer.heatmap.evaluate("plot => plot.data[0].zmax") == pytest.approx(tops[layer, head])
        expect(page.locator(".mg-area-detail .mg-scale-caption")).to_contain_text(f"0 to {top}; ")
        expect(page.locator(".mg-area-detail .mg-scale-caption")).to_contain_text(
            f"{top} is the largest weight of this head"
        )
        assert ticks(page)[-1] == f"≥{top}"
        assert viewer.head(layer, head).locator(".mg-badge").get_attribute("data-top") == f"0–{top}"


def test_a_masked_first_token_loses_its_colour_and_nothing_else(viewer):
    page = viewer.page
    pattern = attention(2, 3, TOKENS)
    viewer.choose(1, 2)
    viewer.token(9).click()
    weights, readout = viewer.weights(), viewer.readout()
    page.get_by_label("A range for each head").check()
    page.get_by_label("Mask the first token").check()
    assert viewer.weights() == weights
    assert viewer.readout() == readout
    assert viewer.lit() == [0 < position <= 9 for position in range(TOKENS)]
    colours = {tuple(colour) for colour in css(page, "light").tolist()}
    assert not colours & {tuple(pixel[:3]) for pixel in thumbnail(viewer, 1, 2)[:, 0].tolist() if pixel[3] > 0}
    assert viewer.heatmap.evaluate("plot => plot.data[0].zmax") == pytest.approx(later_half(pattern, 1)[1, 2])
    masked = viewer.heatmap.evaluate("plot => plot.layout.shapes.find(shape => shape.name === 'masked')")
    assert (masked["x0"], masked["x1"], masked["y0"], masked["y1"]) == (-0.5, 0.5, -0.5, TOKENS - 0.5)
    expect(page.get_by_text("first token: no colour")).to_be_visible()
    expect(page.get_by_text("first token masked")).to_be_visible()
    viewer.hover(9, 0, TOKENS)
    expect(viewer.tip).to_contain_text(f"{pattern[1, 2, 9, 0]:.3f}")


def test_colours_are_chosen_by_keyboard_and_stay_while_the_text_changes(viewer):
    page = viewer.page
    page.get_by_role("radio", name="Square root").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="Linear")).to_be_focused()
    expect(page.get_by_role("radio", name="Linear")).to_be_checked()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    for _ in range(2):
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
    pattern = attention(2, 3, TOKENS, seed=11)
    show(viewer, message(pattern))
    expect(page.get_by_role("radio", name="Logarithmic")).to_be_checked()
    expect(page.get_by_label("A range for each head")).to_be_checked()
    expect(page.get_by_label("Mask the first token")).to_be_checked()
    assert viewer.heatmap.evaluate("plot => plot.data[0].zmax") == pytest.approx(later_half(pattern, 1)[0, 0])
    assert viewer.heatmap.evaluate("plot => plot.layout.shapes.length") == 3


def test_thirty_six_heads_of_256_tokens_change_their_colours_at_once(viewer):
    send(viewer, message(attention(6, 6, 256)))
    expect(viewer.root).to_have_attribute("data-shown", re.compile(r":0:0$"))
    spent = viewer.page.evaluate(
        """async () => {
          const boxes = [...document.querySelectorAll('.mg-check input')];
          const times = [];
          for (let turn = 0; turn < 8; turn += 1) {
            const start = performance.now();
            boxes[turn % 2].click();
            await new Promise(requestAnimationFrame);
            await new Promise((resolve) => { const { port1, port2 } = new MessageChannel();
              port1.onmessage = resolve; port2.postMessage(null); });
            times.push(performance.now() - start);
          }
          return times;
        }"""
    )
    assert min(spent[2:]) < 300, spent
