"""For all people: axe-core finds nothing, and every word on the page is in the chosen language."""

import re

import pytest
from playwright.sync_api import expect

from tests.ui.viewing import Viewer

PROMPT = "the cat and the dog"
HANGUL = re.compile("[가-힣]")
SWITCH = {"en": "English", "ko": "한국어"}


def speak(page, language):
    page.locator("#language").get_by_text(SWITCH[language], exact=True).click()
    said_in(page, language)


def said_in(page, language):
    expect(page.locator(".mg")).to_have_attribute("lang", language)
    title = {"en": "All heads", "ko": "모든 헤드"}[language]
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    built_with = {"en": "Built with Gradio", "ko": "Gradio로 제작됨"}[language]
    expect(page.get_by_text(built_with)).to_be_visible()


def violations(page, axe):
    """Run every rule of axe-core on the page as it is now; one line for each element that breaks one."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(axe)
    found = page.evaluate("async () => (await axe.run(document, { resultTypes: ['violations'] })).violations")
    return [
        f"{rule['id']} ({rule['impact']}): {node['target']} {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for rule in found
        for node in rule["nodes"]
    ]


LOOKS = {"light": (("en", 1440), ("ko", 390)), "dark": (("ko", 1440), ("en", 390))}
"""Themes with languages and widths, so that each pair of them is looked at."""


@pytest.mark.parametrize("theme", LOOKS)
def test_axe_finds_nothing_in_any_language_on_any_screen(open_page, random_url, axe, theme, subtests):
    page = open_page(dark=theme == "dark")
    viewer = Viewer(page).opened(f"{random_url}/?__theme={theme}")
    viewer.type(PROMPT)
    page.get_by_label("New tokens").fill("8")
    page.get_by_role("button", name="Generate").click()
    expect(page.locator(".mg-generated")).to_have_count(8)
    expect(page.get_by_role("button", name="Generate")).to_be_enabled()
    page.get_by_role("button", name="Table").click()
    page.get_by_text("What they mean").click()
    page.get_by_label("Mask the first token").check()
    page.get_by_label("A range for each head").check()
    for language, width in LOOKS[theme]:
        speak(page, language)
        page.set_viewport_size({"width": width, "height": 900})
        with subtests.test("after generation, with the table", language=language, width=width):
            assert violations(page, axe) == []
    viewer.prompt.fill("Ω%")
    expect(viewer.notice).to_contain_text("Ω")
    with subtests.test("with a notice"):
        assert violations(page, axe) == []


WORDS = """
() => {
  const seen = [document.title, document.documentElement.lang];
  const typed = '#prompt textarea, #examples .gallery, .mg-strip, .mg-chip, .mg-plot svg, .mg-weights tbody';
  const names = '#language, #model input';
  for (const one of document.body.querySelectorAll('*')) {
    if (one.closest(`script, style, template, canvas, ${typed}, ${names}`)) continue;
    if (!one.checkVisibility({ visibilityProperty: true })) continue;
    for (const name of ['aria-label', 'title', 'alt', 'placeholder', 'aria-description', 'aria-roledescription']) {
      const said = one.getAttribute(name);
      if (said) seen.push(`${said} [${name} of ${one.tagName}.${one.className}]`);
    }
    for (const node of one.childNodes) {
      if (node.nodeType === Node.TEXT_NODE && node.textContent.trim()) seen.push(node.textContent.trim());
    }
  }
  return [...new Set(seen)];
}
"""
SAME_IN_KOREAN = re.compile(
    r"\[[\w -]* of .*\]$|\((induction|seed)\)|'.*?' \(\d+\)|L\d+H\d+|\b[LH]\d+\b|\de−\d|Mini GPT|Temperature|top-[kp]|"
    r"Query|Key|PyTorch|Gradio|API|random|English|logits|Enter|Esc|ko\b|GiB"
)
"""What the Korean page leaves as it is: names, signs, words that the book has in English."""


def foreign_to_korean(words):
    return [text for text in words if re.search("[A-Za-z]", SAME_IN_KOREAN.sub("", text))]


def foreign_to_english(words):
    return [text for text in words if HANGUL.search(text)]


@pytest.mark.parametrize("browser_language", ["en-US", "ko-KR"])
def test_no_word_on_the_page_escapes_the_switch(open_page, random_url, browser_language):
    page = open_page(random_url, language=browser_language)
    first, second = ("en", "ko") if browser_language == "en-US" else ("ko", "en")
    foreign = {"en": foreign_to_english, "ko": foreign_to_korean}
    expect(page.locator(".mg")).to_have_attribute("lang", first)
    expect(page.locator("[data-shown]")).to_be_visible()
    page.locator("#prompt textarea").fill("Ωcat")
    expect(page.locator(".mg-notice")).to_contain_text("Ω")
    page.locator("[aria-controls=mg-table]").click()
    page.locator(".mg-about summary").click()
    page.locator(".mg-check input").first.check()
    page.locator(".mg-check input").last.check()
    assert foreign[first](page.evaluate(WORDS)) == []
    speak(page, second)
    expect(page.locator("html")).to_have_attribute("lang", second)
    assert foreign[second](page.evaluate(WORDS)) == []
    page.reload()
    expect(page.locator("[data-shown]")).to_be_visible()
    said_in(page, second)
    assert foreign[second](page.evaluate(WORDS)) == []
