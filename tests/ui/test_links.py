"""A link brings the page back as it was, wherever it is opened; what it cannot bring is named, and the page opens."""

import random
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Page, expect

from minigpt.errors import MiniGPTError
from minigpt.ui.links import opened
from minigpt.ui.models import Models
from minigpt.ui.words import WORDS, word
from tests.ui.viewing import Viewer

PROMPT = "안녕 <b>&'\"\n</script> 🙂"
COPYING = {"permissions": ["clipboard-read", "clipboard-write"]}
SAFE = re.compile(r"http://127\.0\.0\.1:\d+/#[\w.&=%-]+1")
"""What a chat leaves alone: no brackets, no quotes, no blanks, no sign of punctuation at the end."""


def copied(page: Page) -> str:
    """Press the button and return what is in the clipboard then."""
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator(".mg-remarks")).to_contain_text("Link copied")
    return page.evaluate("navigator.clipboard.readText()")


def drawn(page: Page, layer: int, head: int) -> Viewer:
    viewer = Viewer(page)
    expect(viewer.root).to_have_attribute("data-shown", re.compile(rf":{layer}:{head}$"))
    return viewer


def remark(page: Page):
    return page.locator(".mg-remarks")


def test_a_link_brings_back_text_continuation_settings_and_choice(open_page, odd_url):
    page = open_page(**COPYING)
    viewer = Viewer(page).opened(odd_url)
    viewer.type(PROMPT)
    for label, value in (("Temperature", "1.3"), ("top-k", "7"), ("top-p", "0.9"), ("New tokens", "19")):
        page.get_by_label(label, exact=True).fill(value)
    page.get_by_role("button", name="Generate").click()
    expect(page.locator(".mg-generated")).to_have_count(19)
    expect(page.locator(".mg-pending")).to_have_count(0)
    viewer.choose(2, 1)
    viewer.token(len(PROMPT) + 4).click()
    page.get_by_role("radio", name="attended by").click()
    link = copied(page)
    assert SAFE.fullmatch(link)
    assert "lang=" not in link

    other = open_page(link, language="ko-KR")
    again = drawn(other, 2, 1)
    expect(again.prompt).to_have_value(PROMPT)
    expect(other.get_by_role("button", name="링크 복사")).to_be_visible()
    expect(other.get_by_role("radio", name="보고 있는 토큰")).to_be_checked()
    expect(other.locator(".mg-strip").get_by_role("option", selected=True)).to_have_attribute(
        "aria-label", re.compile(rf"\({len(PROMPT) + 4}\)$")
    )
    tokens = page.locator(".mg-strip").get_by_role("option").all_text_contents()
    assert other.locator(".mg-strip").get_by_role("option").all_text_contents() == tokens
    plot = "() => document.querySelector('.mg-plot').data[0].z.map(row => [...row])"
    assert str(other.evaluate(plot)) == str(page.evaluate(plot))
    expect(remark(other)).to_be_empty()

    before = again.shown()
    other.get_by_role("button", name="생성").click()
    again.redrawn(before)
    expect(other.get_by_role("button", name="생성")).to_be_enabled()
    expect(other.locator(".mg-pending")).to_have_count(0)
    expect(other.locator(".mg-strip").get_by_role("option")).to_have_text(tokens)

    step = str(len(PROMPT) + 9)
    page.get_by_role("slider", name="Generated token").fill(step)
    expect(viewer.root).to_have_attribute("data-step", step)
    other.goto(copied(page))
    expect(again.root).to_have_attribute("data-step", step)


def test_a_model_comes_by_name_also_in_a_link_written_by_hand(open_page, odd_url):
    page = open_page(f"{odd_url}/?__theme=light&model=숫자&prompt=31415&layer=1&head=0&token=2&lang=ko")
    viewer = drawn(page, 1, 0)
    expect(page.locator(".mg-strip").get_by_role("option")).to_have_text(list("31415"))
    expect(page.get_by_role("heading", name="블록 1 · 헤드 0")).to_be_visible()
    expect(page.locator("#model input")).to_have_value("숫자")
    expect(page.locator("#model-info")).to_contain_text("2 × 1")
    expect(page.locator(".mg-strip").get_by_role("option", selected=True)).to_have_attribute("aria-label", "'4' (2)")
    expect(viewer.prompt).to_have_value("31415")
    expect(page.locator("#examples")).to_contain_text("0123456789")


def test_a_language_travels_only_if_it_was_chosen_and_secrets_of_the_address_never_do(open_page, odd_url):
    page = open_page(**COPYING)
    Viewer(page).opened(f"{odd_url}/?__sign=secret-of-the-host")
    assert not re.search("lang=|secret", copied(page))
    page.get_by_text("한국어").click()
    page.get_by_role("button", name="링크 복사").click()
    expect(remark(page)).to_contain_text("링크를 복사했습니다")
    link = page.evaluate("navigator.clipboard.readText()")
    assert "lang=ko" in link
    other = open_page(link)
    expect(other.get_by_role("button", name="링크 복사")).to_be_visible()
    expect(other.locator("html")).to_have_attribute("lang", "ko")


def test_a_long_text_travels_compressed(open_page, odd_url):
    numbers = random.Random(4)
    text = "".join(numbers.choice(["안녕하세요 ", "the dog & ", "가나다 ", "<b>\n"]) for _ in range(900))
    page = open_page(**COPYING)
    viewer = Viewer(page).opened(odd_url)
    viewer.type(text)
    link = copied(page)
    assert SAFE.fullmatch(link)
    assert len(link) < len(text) / 3
    other = open_page(link)
    Viewer(other).root.and_(other.locator("[data-shown]")).wait_for()
    expect(Viewer(other).prompt).to_have_value(text)


def test_nonsense_opens_the_page_and_says_so(open_page, odd_url):
    page = open_page(f"{odd_url}/?prompt=abc&layer=99&head=-1&token=7&direction=up")
    viewer = Viewer(page)
    for ending, said in (
        ("", "head or token in this link is not in this picture"),
        ("#text=%%%&v=1", "cannot be read"),
        (
            "#model=mine:0123456789abcdef&prompt=abc",
            "no model called mine:0123456789abcdef. Choose one of odd, 숫자",
        ),
        ("#prompt=ABCÅ", "has no 'A' ×1, 'B' ×1, 'C' ×1, 'Å' ×1"),
    ):
        if ending:
            page.evaluate("ending => { location.hash = ending; }", ending)
        expect(remark(page)).to_contain_text(said)
        expect(viewer.root).to_have_attribute("data-shown", re.compile(r":\d+:\d+$"))
        expect(viewer.notice).to_be_empty()
        page.get_by_role("button", name="Close").click()
        expect(remark(page)).to_be_empty()


def test_another_link_pasted_into_the_page_opens_and_every_broken_one_is_told_from_it(open_page, odd_url):
    page = open_page(f"{odd_url}/#prompt=abc")
    expect(page.locator(".mg-strip").get_by_role("option")).to_have_count(3)
    page.goto(f"{odd_url}/#prompt=fedcb&layer=2&head=2")
    expect(page.locator(".mg-strip").get_by_role("option")).to_have_text(list("fedcb"))
    drawn(page, 2, 2)
    read = """async (addresses) => {
        const main = performance.getEntriesByType('resource').find(({ name }) => name.endsWith('/main.js')).name;
        const { readLink } = await import(new URL('link.js', main).href);
        const { pack } = await import(new URL('compact.js', main).href);
        const bomb = await pack(new Uint8Array(50_000_000));
        const links = [];
        for (const [hash, search] of [...addresses, [`#text=${bomb}&v=1`, '']]) {
            links.push((await readLink({ hash, search })).page);
        }
        return links;
    }"""
    broken = [
        ["#qwertyuiop", ""],
        ["#=&=", ""],
        ["#prompt=abc&v=2", ""],
        ["#text=S0xKTgEA", ""],  # cut before its end
        ["#text=S0xK&v=1", ""],
        ["#text=7cEBAQAAAIIg_6_uCE&v=1", ""],
        ["#text=S0xKTgEA&generated=a2hoAAA&v=1", ""],
        ["#text=____&v=1", ""],
        [f"#prompt={'a' * 100_000}", ""],
    ]
    fine = [
        ["", ""],
        ["", "?__theme=dark&__sign=a"],
        ["#text=S0xKTgEA&v=1", ""],
        ["#prompt=100%25&v=1", ""],
        ["#layer=2", "?prompt=other"],
    ]
    *answers, bomb = page.evaluate(read, [*broken, *fine])
    assert [answer == {"broken": True} for answer in answers] == [True] * len(broken) + [False] * len(fine)
    assert bomb == {"broken": True}
    assert answers[-len(fine) :] == [{}, {}, {"text": "abcd"}, {"text": "100%"}, {}]


def test_nonsense_is_answered_in_the_persons_language(open_page, odd_url):
    page = open_page(f"{odd_url}/#prompt=ABC&model=none", language="ko-KR")
    expect(remark(page)).to_contain_text("none(이)라는 모델은 없습니다")
    expect(remark(page)).to_contain_text(word("ko", "link.partly"))


def test_a_denied_clipboard_leaves_a_way(open_page, odd_url):
    page = open_page()
    page.add_init_script("navigator.clipboard.writeText = () => Promise.reject(new DOMException('denied'));")
    viewer = Viewer(page).opened(odd_url)
    page.get_by_role("button", name="Copy link").click()
    expect(remark(page)).to_contain_text("Link copied")  # the older way
    viewer.prompt.fill("")
    viewer.prompt.press("Control+v")
    expect(viewer.prompt).to_have_value(SAFE)
    page.evaluate("document.execCommand = () => false")
    page.get_by_role("button", name="Copy link").click()
    expect(remark(page)).to_contain_text("Copy the link yourself")
    field = page.get_by_label("Link to this page")
    expect(field).to_have_value(SAFE)
    expect(field).to_be_focused()
    assert field.evaluate("one => one.selectionEnd - one.selectionStart === one.value.length")


@pytest.fixture
def parent(odd_url):
    """The address of another site, which shows the page in a frame as a Space does."""
    head = '<!doctype html><title>Host</title><link rel="icon" href="data:,">'
    page = f'{head}<iframe src="{odd_url}/#prompt=abcde" width="1200" height="900"></iframe>'

    class Parent(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Parent) as server:
        Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_inside_a_frame_the_link_is_that_of_the_page_itself(open_page, odd_url, parent):
    page = open_page(parent)
    inside = page.frame_locator("iframe")
    expect(inside.locator(".mg-strip").get_by_role("option")).to_have_text(list("abcde"))
    inside.get_by_role("button", name="Copy link").click()
    expect(inside.locator(".mg-remarks")).to_contain_text(re.compile("Link copied|Copy the link yourself"))
    expect(page).to_have_url(parent)
    address = page.frames[1].url
    assert SAFE.fullmatch(address)
    assert address.startswith(odd_url)


# --- what the page takes of a link ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(odd_models):
    return Models(odd_models)


def test_a_link_is_left_out_in_parts_not_in_whole(models):
    link = {"model": "숫자", "text": "12a", "temperature": "0.5", "top_k": "-3", "seed": "4", "length": "1000"}
    page = opened(models, link, "odd", "abc")
    assert (page.model, page.text) == ("숫자", "0123456789")
    assert page.settings == {"temperature": 0.5, "seed": 4}
    for language in WORDS:
        assert page.remarks[language].startswith(WORDS[language]["link.partly"])
    for part in ("'a' ×1", "top-k is -3", "new tokens is 1000"):
        assert part in page.remarks["en"]


@pytest.mark.parametrize("generated", ["abc", [99], [True], [-1], {"a": 1}, [0] * 501, 7])
def test_generated_tokens_of_a_link_are_checked(models, generated):
    page = opened(models, {"text": "abc", "generated": generated}, "odd", "abc")
    assert page.generated == []
    assert "The tokens must be a list" in page.remarks["en"]


@pytest.mark.parametrize("link", [None, [], {}, "nonsense", 7, {"model": {"a": 1}}, {"text": 7}, {"seed": [1]}])
def test_no_link_makes_the_page_fail(models, link):
    try:
        page = opened(models, link, "odd", "abc")
    except MiniGPTError as error:
        pytest.fail(f"{error} was not caught")
    assert (page.model, page.text) == ("odd", "abc")


def test_a_text_longer_than_a_link_may_hold_is_refused(models):
    assert opened(models, {"text": "a" * 20_000}, "odd", "abc").remarks is None
    assert "at most 20000 characters" in opened(models, {"text": "a" * 20_001}, "odd", "abc").remarks["en"]
