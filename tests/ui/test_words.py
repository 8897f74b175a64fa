"""The page's words: one file per language, the same keys and placeholders in each."""

import re
import string
from pathlib import Path

import pytest

from minigpt.errors import SENTENCES, CheckpointError, ConfigError, MiniGPTError
from minigpt.ui.words import LANGUAGES, WORDS, sentences, starting_with, word
from minigpt.ui.words.reasons import REASONS

ROOT = Path(__file__).resolve().parents[2]
HANGUL = re.compile("[가-힣]")
SAME_IN_EVERY_LANGUAGE = ("Temperature", "top-k", "top-p", "min-p", "Query", "Key")


def placeholders(text):
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)


def test_every_language_of_the_switch_has_words():
    assert set(LANGUAGES) == set(WORDS) == {"en", "ko"}


def test_both_languages_have_the_same_keys():
    assert set(WORDS["en"]) == set(WORDS["ko"])


def test_both_languages_fill_the_same_placeholders():
    different = [key for key, text in WORDS["en"].items() if placeholders(text) != placeholders(WORDS["ko"][key])]
    assert different == []


def test_every_error_has_a_sentence_in_every_language():
    assert {f"error.{code}" for code in SENTENCES} <= set(WORDS["ko"])
    assert all(WORDS["en"][f"error.{code}"] == sentence for code, sentence in SENTENCES.items())


def test_every_korean_text_is_korean_and_no_english_one_is():
    def foreign(text):
        rest = re.sub("|".join(["{.*?}", *SAME_IN_EVERY_LANGUAGE]), "", text)
        return re.search("[A-Za-z]", rest) and not HANGUL.search(rest)

    assert [key for key, text in WORDS["ko"].items() if foreign(text)] == []
    assert [key for key, text in WORDS["en"].items() if HANGUL.search(text)] == []


def test_no_word_is_left_over():
    sources = [*(ROOT / "minigpt" / "ui").glob("*.py"), *(ROOT / "assets" / "viewer").glob("*.js")]
    strings = set()
    for path in sources:
        code = path.read_text(encoding="utf-8")
        # Whole keys, and keys put together: f"generation.{name}_info", `score_${name}`.
        strings |= {re.sub(r"\$?\{\w+\}", "{}", text) for text in re.findall(r"""['"`]([\w.${}]+)['"`]""", code)}
    patterns = [re.compile(re.escape(text).replace(r"\{\}", r"\w+")) for text in strings if re.search("[a-z]", text)]

    def is_used(key):
        return any(pattern.fullmatch(key) or pattern.fullmatch(key.removeprefix("viewer.")) for pattern in patterns)

    assert [key for key in WORDS["en"] if not key.startswith("error.") and not is_used(key)] == []


def test_an_error_is_told_in_every_language_with_its_details():
    error = MiniGPTError("unknown_model", name="<b>mine</b>", choices="a, b")
    told = sentences(error)
    assert told["en"] == str(error) == "There is no model called <b>mine</b>. Choose one of a, b."
    assert told["ko"].startswith("<b>mine</b>")
    assert "a, b" in told["ko"]


def test_causes_inside_an_error_are_told_in_korean_and_what_a_library_says_is_quoted():
    def korean(reason):
        return sentences(CheckpointError("file_damaged", path="b.pt", reason=reason))["ko"]

    assert "zip 파일의 끝이 없습니다." in korean("File is not a zip file.")
    assert "archive/data/3의 체크섬이 다릅니다." in korean("archive/data/3 has another checksum.")
    assert "ln_f.bias: 중간에 잘렸습니다." in korean("ln_f.bias: it is cut short.")
    assert "원래 메시지(영어)는 “some library's words”입니다." in korean("some library's words.")
    header = korean("the header is no JSON: Expecting value: line 2 column 7 (char 9).")
    assert "헤더가 JSON이 아닙니다. 2번째 줄 7번째 글자에서 JSON이 깨졌습니다." in header
    inner = ConfigError("heads_do_not_divide", n_embd=10, n_head=3)
    told = sentences(CheckpointError("checkpoint_config", path="b.pt", reason=inner))
    assert told["ko"].endswith(sentences(inner)["ko"])
    assert told["en"].endswith(str(inner))


def test_every_cause_that_is_translated_is_one_that_the_package_or_python_gives():
    ours = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "minigpt").rglob("*.py") if path.parent.name != "words"
    )
    ours = re.sub(r"\{[^{}]*\}", "{}", ours)
    foreign = r"^[A-Z'].*(file|directory|denied|system|exists|device)|column|codec"
    left_over = [each for each in REASONS if each not in ours and not re.search(foreign, each)]
    assert left_over == ["the pickle in it {}"]  # all that is wrong with a pickle, in one


def test_an_unknown_language_reads_english():
    assert word("fr", "prompt.label") == WORDS["en"]["prompt.label"]


def test_the_viewer_gets_its_words_and_no_others():
    for language, words in starting_with("viewer.").items():
        assert words
        assert all(key.startswith("viewer.") and text == WORDS[language][key] for key, text in words.items())


@pytest.mark.parametrize("language", ["en", "ko"])
def test_gradio_is_given_no_braces_to_interpret(language):
    from minigpt.ui.controls import FIELDS
    from minigpt.ui.language import first_words

    first = first_words(FIELDS).translations_dict[language]
    assert "generation.length_info" in first
    assert [key for key, text in first.items() if "{" in text] == []
