"""Labels are exact for any text: on both axes, in the read-out of a cell, in the strip."""

import unicodedata

import pytest
from playwright.sync_api import expect

from minigpt import load_checkpoint, trace
from tests.ui.viewing import SIGNS, Viewer, number, save_random_model

TEXTS = {
    "repeated letters": "banana",
    "digits": "314159",
    "a date": "2024-01",
    "a tag": "<b>x</b>",
    "a line break tag": "<br>",
    "an entity": "&amp;",
    "a formula": "$x$",
    "a placeholder": "%{y}",
    "the end of a script": "</script>",
    "a space": " ",
    "a newline": "\n",
    "a tab": "\t",
    "syllables": "안녕하세요",
    "decomposed syllables": unicodedata.normalize("NFD", "안녕"),
    "joined emoji": "👩\u200d👩\u200d👧",
    "right to left": "שלום",
    "mixed directions": "ab שלום 12",
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels") / "any-text"
    save_random_model(folder, "".join(TEXTS.values()), n_layer=1, n_head=2, block_size=12)
    return load_checkpoint(folder)


@pytest.fixture(scope="module")
def url(checkpoint, start_app):
    return start_app(checkpoint.path.parent)


def test_every_token_is_shown_literally_or_as_a_visible_sign(page, url, checkpoint, subtests):
    viewer = Viewer(page).opened(url)
    viewer.choose(0, 0)
    for name, text in TEXTS.items():
        with subtests.test(name):
            shows_every_token(viewer, checkpoint, text)


def shows_every_token(viewer, checkpoint, text):
    viewer.type(text)
    tokens = [SIGNS.get(character, character) for character in text]
    last = len(tokens) - 1

    expect(viewer.strip.get_by_role("option")).to_have_text(tokens)
    assert viewer.tokens() == tokens
    assert viewer.labels("x") == [[token, str(position)] for position, token in enumerate(tokens)]
    assert viewer.labels("y") == [[token, str(position)] for position, token in enumerate(tokens)]
    assert len(viewer.weights()) == len(tokens)

    viewer.hover(last, 0, len(tokens))
    said = f"query '{tokens[last]}' ({last}) attends to key '{tokens[0]}' (0): "
    expect(viewer.tip).to_contain_text(said)
    weight = trace(checkpoint, text).pattern[0, 0, last, 0].item()
    assert number(viewer.tip.text_content().removeprefix(said)) == pytest.approx(weight, abs=0.001)
