"""Tokenizers: any text comes back as it was, and what is unknown is named."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigpt.errors import CheckpointError, ConfigError, PromptError
from minigpt.tokenizer import CharTokenizer, Tokenizer, tokenizer_from_dict

texts = st.text(min_size=1)  # without half surrogate pairs, which no vocabulary takes


@given(texts)
def test_any_text_comes_back_as_it_was(text):
    tokenizer = CharTokenizer(text)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert [tokenizer.piece(token_id) for token_id in ids] == list(text)
    assert sorted(set(ids)) == list(range(tokenizer.vocab_size))


@given(texts, texts)
def test_unknown_and_known_characters_together_are_the_text(known, text):
    tokenizer = CharTokenizer(known)
    unknown, kept = tokenizer.unknown(text), tokenizer.without_unknown(text)
    assert tokenizer.decode(tokenizer.encode(kept)) == kept
    assert len(set(unknown)) == len(unknown)
    read, _ = tokenizer.respelled(text)
    assert set(unknown) == set(read) - set(known)
    assert len(kept) + sum(read.count(char) for char in unknown) == len(read)


@given(texts, texts)
def test_another_spelling_never_adds_an_unknown_character_and_says_what_it_changed(known, text):
    tokenizer = CharTokenizer(known)
    read, changes = tokenizer.respelled(text)
    assert (read == text) == (not changes)
    lacking = sum(char not in tokenizer.stoi for char in text)
    assert sum(char not in tokenizer.stoi for char in read) <= lacking
    assert tokenizer.respelled(read) == (read, ())
    if not lacking:
        assert read == text


@pytest.mark.parametrize(
    ("known", "typed", "read", "changes"),
    [
        ("가나 \n", "\u1100\u1161\r\n\u1102\u1161", "가\n나", ("newlines", "composed")),
        ("가나\r", "\u1100\u1161\r", "가\r", ("composed",)),
        ("\u1100\u1161\n", "가\r가", "\u1100\u1161\n\u1100\u1161", ("newlines", "decomposed")),
        ("가\u1100\u1161", "가\u1100\u1161", "가\u1100\u1161", ()),  # both spellings known: nothing is touched
        ("é", "e\u0301", "é", ("composed",)),
    ],
)
def test_a_text_is_read_in_the_spelling_that_the_vocabulary_knows(known, typed, read, changes):
    tokenizer = CharTokenizer(known)
    assert tokenizer.respelled(typed) == (read, changes)
    assert tokenizer.decode(tokenizer.encode(typed)) == read


def test_what_stays_unknown_is_named_in_the_spelling_that_was_tried():
    with pytest.raises(PromptError) as caught:
        CharTokenizer("가").encode("\u1100\u1161\u1102\u1161")
    assert caught.value.details == {"characters": "'나' ×1", "count": 1}


@given(texts)
def test_a_vocabulary_survives_json(text):
    tokenizer = CharTokenizer(text)
    read = tokenizer_from_dict(json.loads(json.dumps(tokenizer.to_dict())), "config.json")
    assert read.encode(text) == tokenizer.encode(text)
    assert read.vocab_size == tokenizer.vocab_size


def test_ids_follow_the_sorted_characters():
    tokenizer = CharTokenizer("banana split")
    assert "".join(tokenizer.chars) == " abilnpst"
    assert tokenizer.stoi["b"] == 2
    assert tokenizer.itos[2] == "b"


def test_a_given_order_is_kept():
    assert CharTokenizer.from_characters("zay").encode("ayz") == [1, 2, 0]


def test_unknown_characters_are_named_and_counted_in_order_of_appearance():
    with pytest.raises(PromptError) as caught:
        CharTokenizer("abc").encode("a\ncéabé{é")
    assert caught.value.code == "unknown_characters"
    assert caught.value.details == {"characters": r"'\n' ×1, 'é' ×3, '{' ×1", "count": 5}


def test_a_long_list_of_unknown_characters_is_cut_short():
    with pytest.raises(PromptError) as caught:
        CharTokenizer("a").encode("bcdefghijklmnop")
    assert caught.value.details["characters"].endswith("'m' ×1, …")
    assert caught.value.details["count"] == 15


@pytest.mark.parametrize("token_id", [-1, 3])
def test_an_id_outside_the_vocabulary_is_refused(token_id):
    with pytest.raises(ValueError, match=f"0 to 2, got {token_id}"):
        CharTokenizer("abc").decode([0, token_id])


@pytest.mark.parametrize(
    ("characters", "code"),
    [([], "no_characters"), (["a", "bc"], "not_single_characters"), ("aba", "repeated_characters")],
)
def test_a_vocabulary_that_is_none_is_refused(characters, code):
    with pytest.raises(ConfigError) as caught:
        CharTokenizer.from_characters(characters)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("description", "named"),
    [
        ({"type": "bytes", "characters": "ab"}, "'bytes'"),
        ({"characters": "ab"}, "None"),
        ({"type": "characters"}, "at least one character"),
        ({"type": "characters", "characters": ["a"]}, "at least one character"),
        ({"type": "characters", "characters": "aab"}, "'a' comes more than once"),
    ],
)
def test_a_description_that_is_none_is_refused_with_its_file(description, named):
    with pytest.raises(CheckpointError) as caught:
        tokenizer_from_dict(description, "mine/config.json")
    assert "mine/config.json" in str(caught.value)
    assert named in str(caught.value)


def test_the_character_tokenizer_is_a_tokenizer():
    assert isinstance(CharTokenizer("a"), Tokenizer)
