"""Errors: one sentence a code, filled with exactly the details that are given."""

import ast
from pathlib import Path
from string import Formatter

import pytest

from minigpt import errors
from minigpt.errors import CheckpointError, ConfigError, CorpusError, MiniGPTError, PromptError

PACKAGE = Path(errors.__file__).parent
SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent.name != "words"]


def placeholders(sentence):
    return {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}


def raised():
    """Yield where, code and detail names of every error that is made with a literal code."""
    names = {"MiniGPTError", *(cls.__name__ for cls in MiniGPTError.__subclasses__())}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                code = node.args[0]
                if isinstance(code, ast.Constant):
                    yield f"{path.name}:{node.lineno}", code.value, {keyword.arg for keyword in node.keywords}


def test_an_error_says_its_sentence_and_keeps_code_and_details():
    error = PromptError("unknown_characters", characters="'é' ×2", count=2)
    assert "has no 'é' ×2." in str(error)
    assert error.code == "unknown_characters"
    assert error.details == {"characters": "'é' ×2", "count": 2}


def test_braces_in_a_detail_stay_what_they_are():
    assert "{count}" in str(PromptError("unknown_characters", characters="'{count}'", count=1))


def test_a_sentence_without_its_details_is_refused():
    with pytest.raises(KeyError):
        PromptError("unknown_characters", count=2)


def test_every_error_that_the_package_makes_fills_its_sentence():
    seen = list(raised())
    assert len(seen) > 30
    for where, code, details in seen:
        assert code in errors.SENTENCES, where
        # None stands for details that are passed on as they came
        assert None in details or details == placeholders(errors.SENTENCES[code]), where


def test_no_sentence_is_left_without_a_use():
    strings = {
        node.value
        for path in SOURCES
        if path.name != "errors.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set(errors.SENTENCES) - strings - {code for _, code, _ in raised()} == set()


@pytest.mark.parametrize("cls", [PromptError, CheckpointError, ConfigError, CorpusError])
def test_every_kind_is_caught_as_a_minigpt_error(cls):
    with pytest.raises(MiniGPTError):
        raise cls("empty_prompt")


def test_a_wrong_setting_is_also_a_value_error():
    assert issubclass(ConfigError, ValueError)
