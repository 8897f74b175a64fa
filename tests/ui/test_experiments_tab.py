"""The tab of experiments in Chromium: one page, walked through."""

import re

import pytest
from playwright.sync_api import expect

from tests.ui.results import made_records, save_results, write_records
from tests.ui.test_access import violations
from tests.ui.viewing import Viewer, save_random_model


@pytest.fixture(scope="module")
def url(start_app, tmp_path_factory):
    models = tmp_path_factory.mktemp("models")  # a tall grid of heads, unlike those of the experiment
    save_random_model(models / "tall", "abcdefgh ,.", n_layer=4, n_head=2, block_size=10)
    folder = tmp_path_factory.mktemp("experiments")
    save_results(folder / "blocks", tmp_path_factory.mktemp("models"))
    write_records(folder / "one-seed", [each for each in made_records() if each.seed == 12], "my-own")
    (folder / "torn").mkdir()
    (folder / "torn" / "records.json").write_text("{")
    return start_app(models, MINIGPT_EXPERIMENTS=str(folder))


def test_an_experiment_is_told_with_what_its_numbers_support(kept_page, url):
    page = kept_page
    viewer = Viewer(page).opened(url)
    areas = "getComputedStyle(document.querySelector('.mg-body')).gridTemplateAreas"
    before = page.evaluate(areas), viewer.shown()
    page.get_by_role("tab", name="Experiments").click()
    panel = page.get_by_role("tabpanel", name="Experiments")
    expect(panel.get_by_role("heading", name="How many blocks?")).to_be_visible()
    rows = panel.get_by_role("region", name="Validation loss of each variant").get_by_role("row")
    expect(rows).to_have_count(4)
    expect(rows.nth(2)).to_have_text(re.compile(r"n_layer 2\s*2\.2033 ± 0\.1050\s*−0\.3967 ± 0\.0143\s*901\s*2\.5"))
    sentences = panel.locator(".mg-verdicts li")
    expect(sentences).to_have_text(
        [
            re.compile(r"^n_layer 2 has a lower loss than n_layer 1: −0\.3967 nats, with 95 % between −0\.4110"),
            re.compile(r"^n_layer 4 and n_layer 1 are not told apart: .*The interval holds 0; with 3 seeds"),
        ]
    )
    # Another variant to compare with: every difference anew.
    panel.get_by_role("combobox", name="Compared with").select_option("n_layer 2")
    expect(sentences.first).to_have_text(re.compile(r"^n_layer 1 has a higher loss than n_layer 2: \+0\.3967"))

    # Nine runs as dots, three seeds as lines; three means with their bands.
    runs = panel.get_by_role("img", name=re.compile("^A dot is one run"))
    expect(runs.locator(".scatterlayer .points path")).to_have_count(9)
    expect(runs.locator(".scatterlayer .lines path")).to_have_count(6)
    way = panel.get_by_role("img", name=re.compile("^Validation loss while training"))
    expect(way.locator(".legendtext")).to_have_text(["n_layer 1", "n_layer 2", "n_layer 4"])
    expect(way.locator(".scatterlayer .fills path.js-fill")).to_have_count(3)

    # Side by side, each with a head of its own; text is only text.
    sides = panel.locator(".mg-side")
    expect(sides).to_have_count(3)
    expect(sides.nth(1).locator(".mg-sample")).to_have_text("the <b> sat on n_layer 2 with <i>11</i>")
    expect(sides.nth(1)).to_have_attribute("data-shown", "0:0")
    sides.nth(1).get_by_role("button", name=re.compile("^L1H2")).click()
    expect(sides.nth(1)).to_have_attribute("data-shown", "1:2")
    expect(sides.nth(0)).to_have_attribute("data-shown", "0:0")
    expect(sides.nth(2)).to_contain_text("No attention was kept for this variant.")
    # The page's own pictures are where and what they were.
    assert (page.evaluate(areas), viewer.shown()) == before


def test_results_that_cannot_be_read_are_a_sentence_and_leave_the_page_as_it_is(kept_page, url):
    page = kept_page
    if page.locator(".mg-experiments").count() == 0:
        Viewer(page).opened(f"{url}/?tab=experiments")
    panel = page.get_by_role("tabpanel", name="Experiments")
    names = panel.get_by_role("combobox", name="Results")
    names.select_option("one-seed")
    expect(panel.locator(".mg-verdicts li").first).to_contain_text("with a single seed, which says nothing")
    expect(panel.get_by_role("heading", name="my-own")).to_be_visible()
    names.select_option("torn")
    expect(panel.get_by_role("status").first).to_contain_text(re.compile(r"torn/records\.json cannot be read"))
    expect(names).to_have_value("one-seed")
    names.select_option("blocks")
    expect(panel.get_by_role("heading", name="How many blocks?")).to_be_visible()
    expect(panel.get_by_role("status").first).to_be_empty()


def test_it_speaks_korean_fits_a_phone_and_is_open_to_all(kept_page, url, axe):
    page = kept_page
    if page.locator(".mg-experiments").count() == 0:
        Viewer(page).opened(f"{url}/?tab=experiments")
    page.get_by_text("한국어", exact=True).click()
    panel = page.get_by_role("tabpanel", name="실험")
    expect(panel.get_by_role("heading", name="블록은 몇 개가 좋을까요?")).to_be_visible()
    expect(panel.locator(".mg-verdicts li").first).to_contain_text("손실이 n_layer 1보다 작습니다")
    expect(panel.locator(".mg-side").nth(2)).to_contain_text("이 변형은 어텐션을 남겨 두지 않았습니다.")
    page.set_viewport_size({"width": 390, "height": 900})
    expect(panel.locator(".mg-side").first).to_be_visible()
    assert Viewer(page).width_needed() <= 390
    assert violations(page, axe) == []
