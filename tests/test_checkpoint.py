"""Checkpoints come back as they were, or are refused with a sentence; a kill while saving loses nothing."""

import contextlib
import hashlib
import json
import multiprocessing
import os
import pickle
import random
import signal
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from minigpt import checkpoint as module
from minigpt.checkpoint import Checkpoint, list_checkpoints, load_checkpoint, save_checkpoint
from minigpt.config import ModelConfig
from minigpt.errors import CheckpointError
from minigpt.model import TransformerLanguageModel, build_model
from minigpt.tokenizer import CharTokenizer
from tests.reference import scattered
from tests.test_model import CONFIGS

TOKENIZER = CharTokenizer("\nhelo wrdé안")
V = TOKENIZER.vocab_size
IDX = torch.tensor([[3, 1, 4, 1, 5]])


def transformer(**options):
    return scattered(TransformerLanguageModel(V, 7, 15, 3, 2, **options)).eval()


@pytest.fixture
def saved(tmp_path):
    """Save a checkpoint and return its folder."""
    save_checkpoint(tmp_path / "mine", transformer(), TOKENIZER, card="# A card\n", training={"steps": 5})
    return tmp_path / "mine"


def rewrite(folder, change_tensors=None, change_config=None):
    """Change the files of a checkpoint as a person or another program might, the checksum kept right."""
    tensors, config = load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())
    (change_tensors or (lambda _: None))(tensors)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")
    config["weights"]["sha256"] = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    (change_config or (lambda _: None))(config)
    (folder / "config.json").write_text(json.dumps(config))


def refused(folder, code, *named):
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(folder)
    assert caught.value.code == code, caught.value
    for text in named:
        assert text in str(caught.value)


# --- there and back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGS)
def test_every_kind_of_model_comes_back_exactly(config, tmp_path):
    model = scattered(build_model(config)).train()
    tokenizer = CharTokenizer.from_characters("kbanjcoilem"[: config.vocab_size])
    save_checkpoint(tmp_path / "it", model, tokenizer, card="# Mine: é\n", training={"loss": 1.25, "steps": [1, 2]})
    ckpt = load_checkpoint(tmp_path / "it")
    assert ckpt.config == config
    assert not ckpt.model.training
    assert torch.equal(ckpt.model(IDX)[0], model.eval()(IDX)[0])
    assert ckpt.tokenizer.encode("ban") == tokenizer.encode("ban")
    assert (ckpt.card, ckpt.training, ckpt.path) == ("# Mine: é\n", {"loss": 1.25, "steps": [1, 2]}, tmp_path / "it")
    assert ckpt.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert sorted(path.name for path in ckpt.path.iterdir()) == ["README.md", "config.json", "model.safetensors"]


@given(st.text(min_size=1), st.text(), st.dictionaries(st.text(), st.integers() | st.text()))
def test_any_vocabulary_card_and_summary_come_back(tmp_path_factory, text, card, training):
    tokenizer = CharTokenizer(text)
    folder = tmp_path_factory.mktemp("any")
    model = build_model(ModelConfig(kind="single-head", vocab_size=tokenizer.vocab_size, block_size=2, n_embd=3))
    save_checkpoint(folder, model, tokenizer, card=card, training=training)
    ckpt = load_checkpoint(folder)
    assert ckpt.tokenizer.decode(ckpt.tokenizer.encode(text)) == text
    assert ckpt.card == card
    assert ckpt.training == training


def test_the_file_holds_the_chapters_names_without_masks(saved):
    names = set(load_file(saved / "model.safetensors"))
    assert names == {name for name in transformer().state_dict() if not name.endswith("tril")}
    assert "blocks.1.sa.heads.2.value.weight" in names


def test_float16_halves_the_file_and_rounds(tmp_path):
    model = transformer()
    for dtype in ("float32", "float16"):
        save_checkpoint(tmp_path / dtype, model, TOKENIZER, dtype=dtype)
    sizes = [(tmp_path / dtype / "model.safetensors").stat().st_size for dtype in ("float32", "float16")]
    assert sizes[0] > 1.6 * sizes[1]
    ckpt = load_checkpoint(tmp_path / "float16")
    assert ckpt.model.lm_head.weight.dtype == torch.float32
    assert torch.equal(ckpt.model.lm_head.weight, model.lm_head.weight.half().float())


def test_a_card_stays_until_there_is_another(saved):
    save_checkpoint(saved, transformer(), TOKENIZER)
    assert load_checkpoint(saved).card == "# A card\n"
    save_checkpoint(saved, transformer(), TOKENIZER, card="# Another\n")
    assert load_checkpoint(saved).card == "# Another\n"


def test_loading_draws_no_random_numbers(saved):
    state = torch.get_rng_state()
    load_checkpoint(saved)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model = transformer()
    for name in ("one", "two"):
        save_checkpoint(tmp_path / name, model, TOKENIZER)
    for file in ("config.json", "model.safetensors"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_checkpoints_are_listed_largest_first(tmp_path):
    for name, width in (("b", 6), ("a", 6), ("c", 12)):
        save_checkpoint(tmp_path / name, scattered(TransformerLanguageModel(V, 7, width, 3, 1)), TOKENIZER)
    (tmp_path / "empty").mkdir()
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "config.json").write_text("{}")
    assert [path.name for path in list_checkpoints(tmp_path)] == ["c", "a", "b"]
    assert list_checkpoints(tmp_path / "nowhere") == []


def test_a_checkpoint_in_memory_needs_no_folder():
    ckpt = Checkpoint(model=transformer(), tokenizer=TOKENIZER)
    assert ckpt.config.n_layer == 2
    assert ckpt.card == ""


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_what_is_not_there_is_named(saved, tmp_path):
    refused(tmp_path / "nowhere", "checkpoint_missing", "nowhere", "config.json")
    (saved / "model.safetensors").unlink()
    refused(saved, "checkpoint_missing", "model.safetensors")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"not json", b"\xff\xfe\x00", b"[" * 100_000, b"[1]", b'"text"', b"NaN"]
)
def test_a_config_that_is_no_json_object_is_refused(saved, content):
    (saved / "config.json").write_bytes(content)
    refused(saved, "checkpoint_not_json", "config.json")


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        (lambda c: c.pop("format_version"), "checkpoint_incomplete", "format_version"),
        (lambda c: c.update(format_version=2), "checkpoint_version", "version 2"),
        (lambda c: c.pop("model"), "checkpoint_incomplete", "model"),
        (lambda c: c.update(model=[1]), "checkpoint_incomplete", "model"),
        (lambda c: c["model"].pop("n_embd"), "checkpoint_config", "lacks n_embd"),
        (lambda c: c["model"].update(n_head=4), "checkpoint_config", "n_embd must be divisible by n_head"),
        (lambda c: c["model"].update(n_embd="15"), "checkpoint_config", "n_embd is '15'"),
        (lambda c: c["model"].update(heads=3), "checkpoint_config", "heads"),
        (lambda c: c.pop("tokenizer"), "checkpoint_incomplete", "tokenizer"),
        (lambda c: c["tokenizer"].update(type="bytes"), "tokenizer_unreadable", "'bytes'"),
        (lambda c: c["tokenizer"].update(characters="aa"), "tokenizer_unreadable", "'a'"),
        (lambda c: c["tokenizer"].update(characters="ab"), "vocabulary_mismatch", "2 tokens"),
        (lambda c: c["model"].update(n_head=5), "checkpoint_keys", "blocks.0.sa.heads.3.key.weight"),
        (lambda c: c["model"].update(n_layer=1), "checkpoint_keys", "Left over: blocks.1.ffwd"),
        (lambda c: c["model"].update(n_layer=10**12), "checkpoint_keys", "blocks.999999999999"),
        (lambda c: c["model"].update(block_size=8), "checkpoint_shape", "(8, 15)"),
        (lambda c: c["model"].update(block_size=8193), "checkpoint_config", "block_size is 8193; it must be 1 … 8,192"),
        (lambda c: c["model"].update(n_embd=30, n_head=3), "checkpoint_shape", "token_embedding_table.weight"),
        (lambda c: c["model"].update(kind="multi-head", n_layer=1), "checkpoint_keys", "sa_heads.heads.0.key.weight"),
        (lambda c: c["model"].update(qkv_bias=True), "checkpoint_keys", "blocks.0.sa.heads.0.key.bias"),
        (lambda c: c["weights"].update(sha256="0" * 64), "checkpoint_checksum", "model.safetensors"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(saved, change, code, named):
    rewrite(saved, change_config=change)
    refused(saved, code, named)


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        (lambda t: t.pop("blocks.1.ln2.bias"), "checkpoint_keys", "Missing: blocks.1.ln2.bias. Left over: –"),
        (lambda t: t.pop("token_embedding_table.weight"), "checkpoint_keys", "token_embedding_table.weight"),
        (lambda t: t.pop("blocks.0.sa.heads.2.query.weight"), "checkpoint_keys", "blocks.0.sa.heads.2.query.weight"),
        (lambda t: t.update(extra=torch.ones(2)), "checkpoint_keys", "Left over: extra"),
        (lambda t: t.update({"ln_f.weight": torch.ones(16)}), "checkpoint_shape", "ln_f.weight"),
        (lambda t: t.update({"ln_f.weight": torch.ones(15, dtype=torch.int32)}), "checkpoint_dtype", "int32"),
        (lambda t: t["lm_head.bias"].fill_(float("nan")), "checkpoint_not_finite", "lm_head.bias"),
        (lambda t: t["blocks.1.sa.heads.2.value.weight"][3, 4].fill_(float("inf")), "checkpoint_not_finite", "heads.2"),
    ],
)
def test_weights_that_do_not_fit_are_refused_by_name(saved, change, code, named):
    rewrite(saved, change_tensors=change)
    refused(saved, code, named)


TINY = ModelConfig(kind="single-head", vocab_size=V, block_size=2, n_embd=3)


def damage(path, data):
    """Cut a file short, or change one byte."""
    content = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans(), label="cut short"):
        del content[position:]
    else:
        content[position] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)


@given(st.data())
def test_damage_anywhere_in_the_weights_is_noticed(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    save_checkpoint(folder, build_model(TINY), TOKENIZER)
    damage(folder / "model.safetensors", data)
    refused(folder, "checkpoint_checksum")


@given(st.data())
def test_damage_that_no_checksum_tells_is_refused_or_loads_whole(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    save_checkpoint(folder, build_model(TINY), TOKENIZER)
    damage(folder / "model.safetensors", data)
    config = json.loads((folder / "config.json").read_text())
    del config["weights"]
    (folder / "config.json").write_text(json.dumps(config))
    with contextlib.suppress(CheckpointError):
        assert load_checkpoint(folder).config == TINY


def test_a_pickle_is_refused_and_not_run(saved, tmp_path):
    class Payload:
        def __reduce__(self):
            return Path.touch, (tmp_path / "executed",)

    (saved / "model.safetensors").write_bytes(pickle.dumps(Payload()))
    rewritten = json.loads((saved / "config.json").read_text())
    del rewritten["weights"]
    (saved / "config.json").write_text(json.dumps(rewritten))
    refused(saved, "safetensors_header", "model.safetensors")
    assert not (tmp_path / "executed").exists()


def test_what_would_not_load_is_not_saved_over_what_does(saved):
    before = {path.name: path.read_bytes() for path in saved.iterdir()}
    diverged = transformer()
    with torch.no_grad():
        diverged.ln_f.bias[3] = float("nan")
    large = transformer()
    with torch.no_grad():
        large.lm_head.weight[0, 0] = 1e5  # beyond float16
    for model, tokenizer, dtype, code in (
        (diverged, TOKENIZER, "float32", "checkpoint_not_finite"),
        (large, TOKENIZER, "float16", "checkpoint_not_finite"),
        (transformer(), CharTokenizer("abc"), "float32", "vocabulary_mismatch"),
    ):
        with pytest.raises(CheckpointError) as caught:
            save_checkpoint(saved, model, tokenizer, dtype=dtype)
        assert caught.value.code == code
    assert {path.name: path.read_bytes() for path in saved.iterdir()} == before


def test_a_disk_that_refuses_is_named(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(CheckpointError) as caught:
        save_checkpoint(tmp_path / "file" / "mine", transformer(), TOKENIZER)
    assert caught.value.code == "checkpoint_not_saved"
    assert "file" in str(caught.value)


# --- interruptions ----------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Stand-in for a kill: nothing in the package may catch it and tidy up."""


def numbered(number):
    """Return a model whose every parameter is one number, so that a mix of two would show."""
    model = TransformerLanguageModel(V, 7, 15, 3, 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(number)
    return model


def number_of(folder):
    ckpt = load_checkpoint(folder)
    numbers = {value for parameter in ckpt.model.parameters() for value in parameter.unique().tolist()}
    assert len(numbers) == 1
    assert numbers == {float(ckpt.training["number"])}
    return ckpt.training["number"]


def save_number(folder, number):
    save_checkpoint(folder, numbered(number), TOKENIZER, card=f"# {number}\n", training={"number": number})


def test_a_stop_before_any_step_of_a_save_leaves_one_whole(tmp_path, monkeypatch):
    """Stop at the first, second, third … operation on the disk, again and again on the same folder."""
    calls = stop_at = 0

    def stopping(function):
        def wrapped(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls == stop_at:
                raise Killed
            return function(*args, **kwargs)

        return wrapped

    save_number(tmp_path / "it", 1)
    for owner, name in ((Path, "open"), (Path, "replace"), (os, "fsync")):
        monkeypatch.setattr(owner, name, stopping(getattr(owner, name)))
    outcomes, last = [], 1
    for number in range(2, 40):
        # two stopped saves in a row: what the first left behind must not harm the second
        for step in (number // 2, number - number // 2):
            calls, stop_at = 0, step
            with contextlib.suppress(Killed):
                save_number(tmp_path / "it", number)
            stop_at = 0
            found = number_of(tmp_path / "it")
            assert found in (last, number)
            last = found
            outcomes.append(found == number)
    assert any(outcomes)
    assert not all(outcomes)
    assert outcomes[-1]


def _save_forever(folder, started):
    torch.set_num_threads(1)
    number = 2
    while True:
        started.send(number)
        save_number(folder, number)
        number += 1


def test_a_kill_at_a_random_moment_leaves_one_whole(tmp_path):
    save_number(tmp_path / "it", 1)
    moments = random.Random(8)
    context = multiprocessing.get_context("fork")
    for _ in range(6):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_save_forever, args=(tmp_path / "it", sender))
        process.start()
        begun = [receiver.recv() for _ in range(moments.randint(2, 4))][-1]
        process.join(moments.uniform(0, 0.02))
        process.kill()
        process.join()
        while receiver.poll():
            begun = receiver.recv()
        assert process.exitcode == -signal.SIGKILL
        assert number_of(tmp_path / "it") in (begun - 1, begun)


def test_a_reader_meets_no_mix_while_another_process_saves(tmp_path):
    save_number(tmp_path / "it", 1)
    context = multiprocessing.get_context("fork")
    _, sender = context.Pipe(duplex=False)
    process = context.Process(target=_save_forever, args=(tmp_path / "it", sender))
    process.start()
    found = []
    try:
        while len(found) < 25 or len(set(found)) < 5:
            found.append(number_of(tmp_path / "it"))
    finally:
        process.kill()
        process.join()
    assert found == sorted(found)


def test_the_staged_weights_of_a_killed_save_are_found_and_put_in_place_by_the_next(saved, monkeypatch):
    replace = Path.replace

    def killed_at_the_end(self, target):
        if target.name == "model.safetensors":
            raise Killed
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed_at_the_end)
        with pytest.raises(Killed):
            save_number(saved, 9)
    assert (saved / "model.safetensors.new").exists()
    assert number_of(saved) == 9
    assert module.list_checkpoints(saved.parent) == [saved]
    save_number(saved, 10)
    assert number_of(saved) == 10
    assert not list(saved.glob("*.new"))
