"""Files made to end the program, to fill its memory or to keep it busy: each is refused in one sentence."""

import json
import pickle
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import minigpt
from minigpt.errors import LONGEST_DETAIL, CheckpointError
from minigpt.formats import pickles
from minigpt.formats.pickles import Machine
from minigpt.formats.vocabulary import read_meta_pickle
from tests import foreign
from tests.foreign import CHARACTERS, VOCABULARY

LOOPS = foreign.loops()
MARK, STOP, TUPLE1, EMPTY_SET, MEMOIZE, DUP = b"(", b".", b"\x85", b"\x8f", b"\x94", b"2"
MEGABYTE = 2**20


def refused(path, text=CHARACTERS):
    with pytest.raises(CheckpointError) as caught:
        minigpt.load_checkpoint(path, text=text)
    assert "Type-check" not in str(caught.value)
    str(caught.value).encode()  # what is said can be shown
    assert len(str(caught.value)) < 3 * LONGEST_DETAIL
    return caught.value


def text(content):
    return b"X" + len(content).to_bytes(4, "little") + content


def named(name):
    return b"c" + "\n".join(name.rsplit(".", 1)).encode() + b"\n"


def get(index):
    return b"j" + index.to_bytes(4, "little")


def growing(levels):
    """Return a program that leaves one list on the stack, which holds 10 times itself, that often."""
    program = b"]" + MEMOIZE
    for level in range(levels):
        program += b"](" + get(level) * 10 + b"e" + MEMOIZE
    return program


DEEP = 100_000
"""Levels at which Python's hash of a tuple of tuples ends the program."""

PROGRAMS = {
    "a key of tuples in each other": b"\x80\x04})" + TUPLE1 * DEEP + b"K\x01s" + STOP,
    "the same in a set": b"\x80\x04" + EMPTY_SET + b"()" + TUPLE1 * DEEP + b"\x90" + STOP,
    "a name that is a list of lists": b"\x80\x04" + growing(12) + b"\x8c\x01x\x93" + STOP,
    "a number of ten million digits as a key": b"".join(
        [b"\x80\x02}\x8b", (4 * MEGABYTE).to_bytes(4, "little"), b"\x7f" * 4 * MEGABYTE, b"K\x01s", STOP]
    ),
    "a text that is said to be longer than the file": b"\x80\x04}\x8d" + (2**40).to_bytes(8, "little") + b"a" + STOP,
    "more marks than are set": b"\x80\x04}tttt" + STOP,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_meta_pickle_made_to_harm_is_refused(tmp_path, name):
    path = tmp_path / "meta.pkl"
    path.write_bytes(PROGRAMS[name])
    with pytest.raises(CheckpointError) as caught:
        read_meta_pickle(path)
    assert caught.value.code in ("file_damaged", "pickle_code")


@pytest.mark.parametrize("program", [EMPTY_SET * 3000, (MEMOIZE + DUP) * 3000])
def test_a_program_that_makes_more_than_any_model_needs_is_stopped(program, monkeypatch):
    monkeypatch.setattr(pickles, "MOST_OBJECTS", 2000)
    monkeypatch.setattr(pickles, "MOST_OPERATIONS", 4000)
    with pytest.raises(ValueError, match=r"too many objects|too long"):
        Machine().run(BytesIO(b"\x80\x04N" + program + STOP))


def legacy(program):
    """Return a file of torch.save of before 1.6 with another program in it."""
    return b"".join(pickle.dumps(value, 2) for value in (0x1950A86A20F9469CFC6C, 1001, {})) + program


CALLS = {
    "a device whose name is a list of lists": growing(12) + named("torch.device") + get(12) + TUPLE1 + b"R" + STOP,
    "the same list made a set a million times": named("builtins.set")
    + MEMOIZE
    + b"]("
    + b"K\x01" * 3000
    + b"e"
    + TUPLE1
    + MEMOIZE
    + b"R"
    + (get(0) + get(1) + b"R") * 2000
    + STOP,
    "a shape of a hundred thousand dimensions": named("torch._utils._rebuild_tensor_v2") + b"(Q" + STOP,
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_are_allowed_do_not_make_much_of_little(tmp_path, name):
    path = tmp_path / "model.pt"
    path.write_bytes(legacy(b"\x80\x04" + CALLS[name]))
    assert refused(path).code == "file_damaged"


# --- settings and names ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [10**5000, -(10**5000), 2**31], ids=["huge", "far below 0", "large"])
@pytest.mark.parametrize("name", ["n_head", "block_size", "layer_norm_epsilon", "n_layer"])
def test_settings_that_are_huge_numbers_are_refused(tmp_path, name, value):
    saved = foreign.nanogpt(foreign.gpt2("gelu"))
    saved["model_args"][name] = value
    assert refused(foreign.save(saved, tmp_path / "x.pt")).code == "unsupported_setting"


@pytest.mark.parametrize(
    "value", ["Infinity", "-Infinity", "NaN", "1e999", "1" + "0" * 4000, '"x"', "[]", "{}", "true"]
)
@pytest.mark.parametrize("name", ["layer_norm_epsilon", "n_head", "n_positions", "tie_word_embeddings", "n_inner"])
def test_absurd_values_in_a_config_are_refused_or_without_effect(tmp_path, name, value):
    foreign.gpt2().save_pretrained(tmp_path)
    foreign.write_character_tokenizer(tmp_path)
    described = json.loads((tmp_path / "config.json").read_text()) | {name: "HERE"}
    (tmp_path / "config.json").write_text(json.dumps(described).replace('"HERE"', value))
    try:
        ckpt = minigpt.load_checkpoint(tmp_path)
    except CheckpointError as error:
        str(error).encode()
        return
    with torch.no_grad():
        assert bool(ckpt.model(foreign.IDX)[0].isfinite().all())


@pytest.mark.parametrize("name", ["\ud800" * 3, "x" * 100_000, "\x1b[31m\x00"])
def test_names_that_cannot_be_shown_are_said_all_the_same(tmp_path, name):
    state = dict(LOOPS["transformer"].state_dict()) | {name: torch.ones(2)}
    assert refused(foreign.save(state, tmp_path / "x.pt")).code == "parameters_differ"


def test_half_a_character_is_no_vocabulary(tmp_path):
    saved = {"model": LOOPS["multi-head"].state_dict(), "chars": [*CHARACTERS[:-1], "\ud800"]}
    assert refused(foreign.save(saved, tmp_path / "x.pt")).code == "tokenizer_unreadable"


def test_layers_that_only_their_last_name_claims_take_no_memory(tmp_path):
    minigpt.save_checkpoint(tmp_path, minigpt.TransformerLanguageModel(3, 5, 4, 2, 1), minigpt.CharTokenizer("abc"))
    described = json.loads((tmp_path / "config.json").read_text())
    described["model"]["n_layer"] = 10**9
    del described["weights"]
    (tmp_path / "config.json").write_text(json.dumps(described))
    state = {"token_embedding_table.weight": torch.ones(3, 4), "position_embedding_table.weight": torch.ones(5, 4)}
    save_file(state | {"blocks.999999999.ln1.weight": torch.ones(4)}, tmp_path / "model.safetensors")
    assert refused(tmp_path).code == "checkpoint_keys"


def test_a_width_that_the_file_cannot_fill_takes_no_memory(tmp_path):
    settings = {"vocab_size": 1, "block_size": 1, "n_embd": 10**6, "n_head": 1, "kind": "single-head"}
    described = {"format_version": 1, "model": settings, "tokenizer": {"type": "characters", "characters": "a"}}
    (tmp_path / "config.json").write_text(json.dumps(described))
    names = ("token_embedding_table.weight", "position_embedding_table.weight")
    save_file({name: torch.ones(1, 10**6) for name in names}, tmp_path / "model.safetensors")
    assert "it needs more than 3,000,000,000,000 numbers" in str(refused(tmp_path))


@pytest.mark.parametrize("of", ["config.json", "meta.json"])
def test_json_of_millions_of_values_is_refused_before_they_are_made(tmp_path, of):
    foreign.gpt2().save_pretrained(tmp_path)
    (tmp_path / of).write_text('{"a": [' + "{}," * 3_000_000 + "{}]}")
    assert "more than 2,000,000 values" in str(refused(tmp_path, text=None))


# --- safetensors and shards -------------------------------------------------------------------------------------------


def header(entries, content):
    return len(entries).to_bytes(8, "little") + entries + content


def test_a_name_that_comes_twice_in_a_header_is_refused(tmp_path):
    entry = b'"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    (tmp_path / "x.safetensors").write_bytes(header(b"{" + entry + b"," + entry + b"}", bytes(4)))
    assert "a name comes twice" in str(refused(tmp_path / "x.safetensors"))


def test_a_shape_of_a_hundred_thousand_dimensions_is_refused(tmp_path):
    shape = b"[" + b"1," * 100_000 + b"1]"
    entry = b'{"a":{"dtype":"F32","shape":' + shape + b',"data_offsets":[0,4]}}'
    (tmp_path / "x.safetensors").write_bytes(header(entry, bytes(4)))
    assert refused(tmp_path / "x.safetensors").code == "safetensors_header"


def test_a_number_beyond_float32_is_refused_and_not_made_infinite(tmp_path):
    state = {name: tensor.double() for name, tensor in LOOPS["multi-head"].state_dict().items()}
    state["lm_head.bias"] = torch.full((VOCABULARY,), 1e300, dtype=torch.float64)
    error = refused(foreign.save(state, tmp_path / "x.pt"))
    assert (error.code, error.details["name"]) == ("checkpoint_not_finite", "lm_head.bias")


@pytest.mark.parametrize(
    "files",
    [
        {"a": "../secret.safetensors"},
        {"a": "/etc/passwd"},
        {"a": ".."},
        {"a": "..\\secret.safetensors"},
        {"a": 5},
        {"a": ["model.safetensors"]},
        {},
        [],
        {f"a{index}": f"{index}.safetensors" for index in range(100)},
    ],
)
def test_an_index_that_leads_elsewhere_is_refused(tmp_path, files):
    folder = tmp_path / "model"
    folder.mkdir()
    save_file({"a": torch.ones(1)}, tmp_path / "secret.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    assert refused(folder / "model.safetensors.index.json").code == "file_damaged"


def test_shards_that_are_missing_or_hold_something_else_are_named(tmp_path):
    model = foreign.gpt2()
    model.save_pretrained(tmp_path, max_shard_size="9KB")
    first, second = sorted(tmp_path.glob("model-*.safetensors"))[:2]
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    assert "other parameters than it says" in str(refused(tmp_path))
    first.unlink()
    error = refused(tmp_path)
    assert (error.code, error.details["missing"]) == ("checkpoint_missing", first.name)
    first.write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        minigpt.load_checkpoint(tmp_path, text=CHARACTERS, most_bytes=len(content))
    assert caught.value.code == "file_too_large"


def test_a_file_that_shrinks_while_it_is_read_ends_no_process(tmp_path):
    path = foreign.save(LOOPS["transformer"].state_dict(), tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    code = """
import os, sys, minigpt
from minigpt.formats import filling
put = filling._put
def shrinking(model, tensors):
    os.truncate(sys.argv[1], 2000)
    put(model, tensors)
filling._put = shrinking
try:
    minigpt.load_checkpoint(sys.argv[1], text=sys.argv[2])
except minigpt.CheckpointError as error:
    print(error.code)
"""
    command = [sys.executable, "-c", code, str(path), CHARACTERS]
    run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    assert run.stdout.strip() == "file_damaged"
