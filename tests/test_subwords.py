"""Tokenizers of other programs: pieces are the text they stand for, and no character is garbled or lost in silence."""

import json

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, trainers
from transformers.models.gpt2.tokenization_gpt2 import GPT2Tokenizer

from minigpt.errors import ConfigError, PromptError
from minigpt.subwords import BYTES, SubwordTokenizer, character_tokenizer_json, marked_text
from minigpt.tokenizer import Tokenizer, tokenizer_from_dict

TEXT = "the cat sat on the mat, the cat ate the rat\n" * 3


def trained(alphabet):
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=290, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator([TEXT], trainer)
    return SubwordTokenizer(made.to_str())


WHOLE, NARROW = trained(pre_tokenizers.ByteLevel.alphabet()), trained([])


@given(st.text())
def test_any_text_comes_back_as_it_was(text):
    assert WHOLE.decode(WHOLE.encode(text)) == text


def test_every_byte_has_one_character_in_the_alphabet():
    assert sorted(BYTES.values()) == list(range(256))
    assert set(BYTES) == set(pre_tokenizers.ByteLevel.alphabet())


def test_pieces_are_the_text_they_stand_for():
    ids = WHOLE.encode("the cat sat")
    assert [WHOLE.piece(token_id) for token_id in ids] == ["the", " cat", " sat"]


def test_a_character_split_over_tokens_is_marked_by_its_bytes():
    pieces = [WHOLE.piece(token_id) for token_id in WHOLE.encode("가!")]
    assert pieces == ["⟨EA⟩", "⟨B0⟩", "⟨80⟩", "!"]
    assert WHOLE.decode(WHOLE.encode("가")[:2]) == "⟨EA B0⟩"


@given(st.binary())
def test_no_bytes_are_shown_as_a_character_that_is_not_there(content):
    shown = marked_text(content)
    assert "\ufffd" not in shown or "\ufffd".encode() in content
    assert shown.encode().decode() == shown


def test_characters_that_a_narrow_vocabulary_drops_are_named():
    with pytest.raises(PromptError) as caught:
        NARROW.encode("the zebra é saw z\ud800")
    assert caught.value.code == "unknown_characters"
    assert caught.value.details == {"characters": r"'z' ×2, 'b' ×1, 'é' ×1, 'w' ×1, '\ud800' ×1", "count": 6}
    assert NARROW.unknown("the zé") == ["z", "é"]
    assert NARROW.without_unknown("the zé") == "the "
    assert NARROW.encode(TEXT)


def test_the_vocabulary_survives_json():
    read = tokenizer_from_dict(json.loads(json.dumps(WHOLE.to_dict())), "config.json")
    assert isinstance(read, Tokenizer)
    assert read.encode(TEXT) == WHOLE.encode(TEXT)
    assert read.vocab_size == WHOLE.vocab_size


def test_vocabulary_and_merges_cut_as_the_gpt2_of_transformers_does():
    described = json.loads(WHOLE.to_dict()["json"])["model"]
    vocabulary = {**described["vocab"], "<|endoftext|>": len(described["vocab"])}
    merges = [tuple(pair) for pair in described["merges"]]
    ours = SubwordTokenizer.from_vocabulary(vocabulary, merges)
    theirs = GPT2Tokenizer(vocab=vocabulary, merges=merges)
    for text in (TEXT, " 가나 — x", "the<|endoftext|>cat", "  spaces   "):
        assert ours.encode(text) == theirs.encode(text)
    assert ours.piece(ours.vocab_size - 1) == "<|endoftext|>"


def test_single_characters_are_recognised_in_a_tokenizer_json():
    characters = ["a", "\n", " ", "가"]
    read = SubwordTokenizer(character_tokenizer_json(characters))
    assert read.single_characters() == characters
    assert read.encode("가\na") == [3, 1, 0]
    assert WHOLE.single_characters() is None


@pytest.mark.parametrize("text", ["", "{}", "[", '{"model": {"type": "BPE"}}'])
def test_what_is_no_tokenizer_is_refused(text):
    with pytest.raises(ConfigError) as caught:
        SubwordTokenizer(text)
    assert caught.value.code == "tokenizer_not_usable"


def test_ids_with_gaps_are_refused():
    with pytest.raises(ConfigError, match="without gaps"):
        SubwordTokenizer.from_vocabulary({"a": 0, "b": 2}, [])


@pytest.mark.parametrize("token_id", [-1, 290])
def test_an_id_outside_the_vocabulary_is_refused(token_id):
    with pytest.raises(ValueError, match="got"):
        WHOLE.piece(token_id)


# --- tokenizers that mean harm ----------------------------------------------------------------------------------------


def described(**parts):
    """Return a tokenizer.json of two words with some parts exchanged."""
    model = models.WordLevel({"a": 0, "b": 1})
    return json.dumps({**json.loads(tokenizers.Tokenizer(model).to_str()), **parts})


def split_by(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$"])
def test_a_pattern_that_would_try_for_ever_ends_in_a_sentence(pattern):
    read = SubwordTokenizer(described(pre_tokenizer=split_by(pattern)))
    with pytest.raises(PromptError) as caught:
        read.encode("a" * 60 + "b")
    assert caught.value.code in ("prompt_not_cut", "unknown_characters")


def replaced(content, times):
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": content}
    return {"type": "Sequence", "normalizers": [step] * times}


def test_a_normalizer_that_would_fill_the_memory_is_refused():
    with pytest.raises(ConfigError, match="longer than they are"):
        SubwordTokenizer(described(normalizer=replaced("aaaaaaaaaa", 12)))
    inner = {"type": "Sequence", "normalizers": [replaced("aa", 5), {"type": "ByteLevel"}, replaced("aa", 5)]}
    with pytest.raises(ConfigError, match="longer than they are"):
        SubwordTokenizer(described(normalizer=inner))
    assert SubwordTokenizer(described(normalizer=replaced("b", 1))).encode("a") == [1]
