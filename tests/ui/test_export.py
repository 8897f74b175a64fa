"""What is saved from the page: pictures, checked cell by cell, exact numbers, and a page that needs no server."""

import io
import itertools
import json
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from minigpt import load_checkpoint, trace
from minigpt.analysis.patterns import trace_ids
from minigpt.ui import offline
from minigpt.ui.assets import plotly_script
from minigpt.ui.downloads import Wanted, download, file_name
from minigpt.ui.messages import analysis_of
from minigpt.ui.models import Models
from tests.foreign import CHARACTERS, loops, save
from tests.ui.viewing import SIGNS, Viewer, save_random_model

PROMPT = "안녕 </script><b>$x$ a\tb\n🙂"
SVG = "{http://www.w3.org/2000/svg}"
LEVELS = 256


@pytest.fixture(scope="module")
def odd(odd_models):
    return load_checkpoint(odd_models / "odd")


@pytest.fixture
def viewer(kept_page, odd_url):
    viewer = Viewer(kept_page).at(odd_url, PROMPT)
    viewer.choose(2, 1)
    return viewer


def saved(page: Page, panel: str, item: str, folder: Path) -> Path:
    """Choose an item of an export menu and return the file that the browser saved."""
    menu = page.get_by_role("group").filter(has=page.locator(f"summary[aria-label='{panel}']"))
    menu.locator("summary").click()
    with page.expect_download() as download_:
        menu.get_by_role("button", name=item).click()
    path = folder / download_.value.suggested_filename
    download_.value.save_as(path)
    expect(page.get_by_text(path.name)).to_be_visible()
    return path


# --- pictures ---------------------------------------------------------------------------------------------------------


def drawing_in(path: Path) -> ET.Element:
    return ET.parse(path).getroot()  # noqa: S314 (our own)


def cells(group) -> dict[tuple[int, int, int], str]:
    """Return the strokes of a map: the colour of each, by left, top and size of its cells in pixels."""
    strokes = {}
    for path in group.iter(f"{SVG}path"):
        for x, y, width, height in re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)h-\d+z", path.get("d")):
            for left in range(int(x), int(x) + int(width), int(height)):
                strokes[left, int(y), int(height)] = path.get("fill")
    return strokes


def ramp(page: Page) -> list[str]:
    """Return the page's colours by level."""
    script = """async () => {
        const main = performance.getEntriesByType('resource').find(({ name }) => name.endsWith('/main.js')).name;
        const { rampOf } = await import(new URL('colours.js', main).href);
        return rampOf('light').css;
    }"""
    return page.evaluate(script)


def level(weight: float, top: float | None = None) -> int:
    """Return the level of a weight, which travels in thousandths: by its square root, or up to a top by itself."""
    travelled = float(np.float32(round(weight * 1000) / 1000))
    return min(LEVELS - 1, math.floor(LEVELS * (math.sqrt(travelled) if top is None else travelled / top)))


def colour(colours: list[str], weight: float) -> str:
    return colours[level(weight)]


def texts(drawing) -> list[str]:
    return [element.text or "" for element in drawing.iter(f"{SVG}text")]


def test_the_drawing_of_a_head_shows_every_weight_and_every_token(viewer, odd, tmp_path):
    viewer.token(4).click()
    path = saved(viewer.page, "Export this head", "SVG", tmp_path)
    assert path.name == "minigpt-odd-L2H1.svg"
    drawing = drawing_in(path)
    colours, pattern = ramp(viewer.page), trace(odd, PROMPT).pattern[2, 1]
    drawn, length = cells(drawing), len(PROMPT)
    unit = next(iter(drawn))[2]
    assert len(drawn) == length * (length + 1) // 2
    for query, key in itertools.product(range(length), repeat=2):
        expected = colour(colours, pattern[query, key].item()) if key <= query else None
        assert drawn.get((key * unit, query * unit, unit)) == expected, (query, key)
    written = texts(drawing)
    signs = [SIGNS.get(token, token) for token in PROMPT]
    assert written[0] == "Layer 2 · Head 1 (L2H1)"
    assert written[1] == f"odd · {length} tokens in a window of 32"
    assert written[2] == "".join(signs)
    for sign in signs:
        assert written.count(sign) >= 2, sign
    for text in ("key →", "query ↓", "0.25", "framed: what '/' (4) attends to"):
        assert text in written
    assert any("square-root scale" in text for text in written)


@pytest.mark.parametrize("panel", ["Export this head", "Export all heads"])
def test_a_drawing_shows_weights_and_says_so_whatever_the_page_draws(viewer, tmp_path, panel):
    page = viewer.page
    of_weights = saved(page, panel, "SVG", tmp_path).read_bytes()
    views = page.get_by_role("combobox", name="Drawn")
    views.select_option("value")
    expect(viewer.detail).to_contain_text("weights × values")
    assert saved(page, panel, "SVG", tmp_path).read_bytes() == of_weights
    views.select_option("raw")


def test_the_drawing_of_all_heads_shows_every_head(viewer, odd, tmp_path):
    path = saved(viewer.page, "Export all heads", "SVG", tmp_path)
    assert path.name == "minigpt-odd-heads.svg"
    drawing = drawing_in(path)
    groups = {}
    for group in drawing.iter(f"{SVG}g"):
        names = [text.text for text in group.findall(f"{SVG}text") if re.fullmatch(r"L\dH\d", text.text or "")]
        if names:
            groups[names[0]] = cells(group)
    assert list(groups) == [f"L{layer}H{head}" for layer in range(3) for head in range(4)]
    colours, pattern, length = ramp(viewer.page), trace(odd, PROMPT).pattern, len(PROMPT)
    for layer, head in itertools.product(range(3), range(4)):
        drawn = groups[f"L{layer}H{head}"]
        unit = next(iter(drawn))[2]
        for query in range(length):
            row = [drawn[key * unit, query * unit, unit] for key in range(query + 1)]
            assert row == [colour(colours, weight.item()) for weight in pattern[layer, head, query, : query + 1]]


def test_a_drawing_and_a_link_keep_the_scale_its_range_and_the_masked_first_token(open_page, odd_url, odd, tmp_path):
    page = open_page()
    Viewer(page).at(odd_url, PROMPT).choose(2, 1)
    page.get_by_role("radio", name="Linear").click()
    page.get_by_label("A range for each head").check()
    page.get_by_label("Mask the first token").check()
    drawing = drawing_in(saved(page, "Export this head", "SVG", tmp_path))
    colours, drawn, length = ramp(page), cells(drawing), len(PROMPT)
    weights = trace(odd, PROMPT).pattern[2, 1].tolist()
    top = round(max(weight for row in weights[length // 2 :] for weight in row[1:]), 3)
    unit = next(iter(drawn))[2]
    for query in range(length):
        row = [drawn[key * unit, query * unit, unit] for key in range(query + 1)]
        assert row == ["url(#masked)", *(colours[level(weight, top)] for weight in weights[query][1 : query + 1])]
    written = " ".join(texts(drawing))
    assert "linear scale" in written
    assert "first token: no colour" in written
    assert f"≥{top:g}" in written
    all_heads = " ".join(texts(drawing_in(saved(page, "Export all heads", "SVG", tmp_path))))
    assert "a range of its own for each head" in all_heads
    assert f"0–{top:g}" in all_heads
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator(".mg-remarks")).not_to_be_empty()
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_role("radio", name="Linear")).to_be_checked()
    expect(other.get_by_label("A range for each head")).to_be_checked()
    expect(other.get_by_label("Mask the first token")).to_be_checked()


def test_a_picture_has_two_pixels_for_each_unit_of_the_drawing(viewer, tmp_path):
    drawing = drawing_in(saved(viewer.page, "Export this head", "SVG", tmp_path))
    picture = Image.open(saved(viewer.page, "Export this head", "PNG", tmp_path))
    assert picture.size == (2 * int(drawing.get("width")), 2 * int(drawing.get("height")))
    place = next(group.get("transform") for group in drawing.iter(f"{SVG}g") if cells(group))
    left, top = map(int, re.findall(r"\d+", place))
    first = cells(drawing)[0, 0, (unit := next(iter(cells(drawing)))[2])]
    pixel = picture.convert("RGB").getpixel((2 * left + unit, 2 * top + unit))
    assert "#{:02x}{:02x}{:02x}".format(*pixel) == first


def test_a_picture_is_dark_and_korean_where_the_page_is(open_page, odd_url, tmp_path):
    page = open_page(f"{odd_url}/?__theme=dark", language="ko-KR")
    expect(Viewer(page).root).to_have_attribute("data-shown", re.compile(r":\d$"))
    path = saved(page, "모든 헤드 내보내기", "PNG", tmp_path)
    assert Image.open(path).convert("RGB").getpixel((2, 2)) == (0x12, 0x19, 0x26)
    drawing = drawing_in(saved(page, "이 헤드 내보내기", "SVG", tmp_path))
    assert re.fullmatch(r"블록 \d · 헤드 \d \(L\dH\d\)", texts(drawing)[0])


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_numbers_saved_from_the_page_are_those_of_the_forward_pass_with_what_was_generated(viewer, odd, tmp_path):
    page = viewer.page
    page.get_by_label("New tokens").fill("9")
    page.get_by_role("button", name="Generate").click()
    expect(page.locator(".mg-generated")).to_have_count(9)
    expect(page.locator(".mg-pending")).to_have_count(0)
    arrays = np.load(saved(page, "Export all heads", "NPZ", tmp_path), allow_pickle=False)
    traced = trace_ids(odd, [*arrays["cropped_ids"].tolist(), *arrays["ids"].tolist()])
    assert traced.text.startswith(PROMPT)
    assert len(traced.text) == len(PROMPT) + 9
    assert np.array_equal(arrays["pattern"], traced.pattern.numpy())
    assert int(arrays["prompt_length"]) == len(PROMPT)
    read = json.loads(saved(page, "Export all heads", "JSON", tmp_path).read_text(encoding="utf-8"))
    assert read["tokens"] == traced.tokens
    assert np.array_equal(np.float32(read["pattern"][0][3][-1]), traced.pattern[0, 3, -1].numpy())
    lines = saved(page, "Export this head", "CSV", tmp_path).read_text(encoding="utf-8-sig").splitlines()
    weights = np.array(lines[-1].split(",")[-len(traced.ids) :], dtype=np.float32)
    assert np.array_equal(weights, traced.pattern[2, 1, -1].numpy())


def test_what_cannot_be_saved_says_why(viewer):
    page = viewer.page
    answer = {"kind": "notice", "code": "any", "sentences": {"en": "All heads are too much."}, "action": None}
    page.route("**/component_server/", lambda route: route.fulfill(json=answer))
    menu = page.get_by_role("group").filter(has=page.locator("summary[aria-label='Export all heads']"))
    menu.locator("summary").press("Enter")
    menu.get_by_role("button", name="NPZ").press("Enter")
    expect(page.get_by_text("All heads are too much.")).to_be_visible()
    expect(menu.locator("summary")).to_be_focused()
    menu.locator("summary").press("Enter")
    expect(menu.get_by_role("button", name="NPZ")).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu.get_by_role("button", name="NPZ")).to_be_hidden()
    page.unroute("**/component_server/")


def test_a_model_that_is_not_in_the_folder_is_not_named(odd, tmp_path):
    models = Models(tmp_path)
    ids = odd.tokenizer.encode("abc")
    for ending in ("npz", "csv", "json", "html"):
        made = download(models, odd, ids, Wanted(format=ending, layer=1, head=2))
        assert made.name.startswith("minigpt-my-model")
        if ending == "npz":
            assert json.loads(str(np.load(io.BytesIO(made.content))["checkpoint"]))["name"] == "my model"
        else:
            assert b'"odd"' not in made.content.replace(plotly_script().read_bytes(), b"")


def test_a_model_of_ones_own_is_named_in_no_link_and_in_no_file(open_page, odd_url, tmp_path):
    page = open_page()
    viewer = Viewer(page).opened(odd_url)
    chapters = loops()["transformer"]
    brought = save({"model_state_dict": chapters.state_dict(), "chars": list(CHARACTERS)}, tmp_path / "mine.pt")
    before = viewer.shown()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open your own").click()
    chooser.value.set_files(str(brought))
    expect(page.locator("#model input")).to_have_value("mine: mine.pt")
    viewer.type(CHARACTERS[:5])
    viewer.redrawn(before)
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator(".mg-remarks")).to_contain_text("The model is your own")
    assert re.search(r"#text=[\w-]+&length=", page.url)
    assert not re.search("model|mine|layer", page.url)
    for item in ("HTML", "JSON", "SVG"):
        path = saved(page, "Export all heads", item, tmp_path)
        assert path.name.startswith("minigpt-my-model")
        assert not re.search(r"mine(:|%3A)[\w-]{8}", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "part"),
    [("숫자", "숫자"), ("../../etc", "etc"), ("a b/c\\d:e", "a-b-c-d-e"), ("...", "model"), ("x" * 99, "x" * 60)],
)
def test_names_of_files_are_names_everywhere(name, part):
    assert file_name(name) == part


# --- the page without a server ----------------------------------------------------------------------------------------


@pytest.fixture
def offline_page(browser):
    """A page without a network; whatever it asks of one, or complains about, fails the test."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, offline=True, locale="en-US")
    page = context.new_page()
    faults = []
    page.on(
        "request",
        lambda each: faults.append(each.url) if urlsplit(each.url).scheme.startswith(("http", "ws")) else None,
    )
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    yield page
    context.close()
    assert faults == []


def test_the_saved_page_opens_from_the_disk_and_keeps_what_the_viewer_does(viewer, odd, offline_page, tmp_path):
    viewer.token(4).click()
    path = saved(viewer.page, "Export all heads", "HTML", tmp_path)
    assert path.name == "minigpt-odd.html"
    offline_page.goto(path.as_uri())
    alone = Viewer(offline_page)
    expect(alone.root).to_have_attribute("data-shown", re.compile(r":2:1$"))
    expect(alone.token(4)).to_have_attribute("aria-selected", "true")
    assert alone.tokens() == viewer.tokens()
    assert offline_page.title().endswith(f"odd · {' '.join(PROMPT.split())}")

    alone.choose(0, 3)
    pattern = trace(odd, PROMPT).pattern[0, 3]
    alone.hover(9, 2, len(PROMPT))
    expect(alone.tip).to_contain_text("attends to")
    assert float(alone.tip.inner_text().split(": ")[-1].removeprefix("<")) == pytest.approx(
        pattern[9, 2].item(), abs=0.001
    )
    alone.token(7).click()
    assert alone.lit() == [position <= 7 for position in range(len(PROMPT))]
    assert list(alone.readout().values()) == pytest.approx(
        [pattern[7, key].item() for key in alone.readout()], abs=0.001
    )
    offline_page.get_by_role("button", name="한국어").click()
    expect(offline_page.get_by_role("heading", name="블록 0 · 헤드 3")).to_be_visible()
    drawing = drawing_in(saved(offline_page, "이 헤드 내보내기", "SVG", tmp_path))
    assert len(cells(drawing)) == len(PROMPT) * (len(PROMPT) + 1) // 2
    assert saved(offline_page, "모든 헤드 내보내기", "PNG", tmp_path).stat().st_size > 10_000
    expect(offline_page.get_by_text("NPZ")).to_have_count(0)
    expect(offline_page.get_by_role("button", name="링크 복사")).to_have_count(0)


def test_the_saved_page_of_six_layers_six_heads_and_256_tokens_takes_two_megabytes_beside_plotly(tmp_path):
    save_random_model(tmp_path / "large", "abcdefghij", n_layer=6, n_head=6, block_size=256, spread=0.2)
    ckpt = load_checkpoint(tmp_path / "large")
    message = analysis_of(ckpt, [index * index % 10 for index in range(256)], prompt_length=256)
    page = offline.page_of(message, "text", "en")
    assert message["mode"] == "full"
    assert len(page) - plotly_script().stat().st_size <= 2_000_000
