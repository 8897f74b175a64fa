"""Models carried in and out: uploads, `import`, `export`, and the Hub, played by a server on this machine."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, get_args

import huggingface_hub.constants
import pytest
import torch
from transformers import AutoTokenizer, GPT2LMHeadModel

import minigpt
from minigpt import cli_files
from minigpt.cli import main
from minigpt.errors import CheckpointError
from minigpt.exchange import (
    ExportFormat,
    export_checkpoint,
    import_checkpoint,
    open_upload,
    with_vocabulary,
)
from minigpt.formats.hub import look_up
from minigpt.tokenizer import CharTokenizer
from tests import foreign
from tests.foreign import BLOCK, CHARACTERS, HEADS, IDX, LAYERS, VOCABULARY, WIDTH
from tests.reference import scattered

NANOGPT_OPTIONS = {"activation": "gelu", "tied": True, "qkv_bias": True, "head_bias": False}


def our_checkpoint(**options):
    torch.manual_seed(8)
    model = minigpt.TransformerLanguageModel(VOCABULARY, BLOCK, WIDTH, HEADS, LAYERS, 0.1, **options)
    return minigpt.Checkpoint(model=scattered(model, 0.2).eval(), tokenizer=CharTokenizer.from_characters(CHARACTERS))


def logits(ckpt):
    with torch.no_grad():
        return ckpt.model(IDX)[0]


# --- uploads ---------------------------------------------------------------------------------------------------------


def test_an_upload_without_a_vocabulary_opens_with_the_training_text(tmp_path):
    model = foreign.loops()["multi-head"]
    path = foreign.save(model.state_dict(), tmp_path / "mine.pt")
    with pytest.raises(CheckpointError) as caught:
        open_upload(path)
    assert caught.value.code == "no_vocabulary"
    assert str(caught.value).startswith("mine.pt says nothing")
    assert str(tmp_path) not in str(caught.value)
    with pytest.raises(CheckpointError, match="has 3 different characters"):
        with_vocabulary(path, "abc")
    assert torch.allclose(logits(with_vocabulary(path, CHARACTERS)), model(IDX)[0], atol=1e-5)
    assert sorted(tmp_path.iterdir()) == [path]


# --- export and back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh"])
@pytest.mark.parametrize("tied", [True, False])
def test_transformers_loads_an_exported_gpt2_with_equal_logits(tmp_path, activation, tied):
    ckpt = our_checkpoint(activation=activation, tied=tied, head_bias=not tied, bias=tied)
    folder = export_checkpoint(ckpt, tmp_path / "out", "gpt2")
    model = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()
    assert torch.allclose(foreign.computed(model)[0], logits(ckpt), rtol=0, atol=1e-5)
    assert AutoTokenizer.from_pretrained(folder)("bad\nc")["input_ids"] == ckpt.tokenizer.encode("bad\nc")
    back = minigpt.load_checkpoint(folder)
    assert back.detected == "gpt2"
    assert isinstance(back.tokenizer, CharTokenizer)
    assert torch.allclose(logits(back), logits(ckpt), rtol=0, atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
def test_an_exported_nanogpt_checkpoint_is_what_nanogpt_saves(tmp_path, bias):
    ckpt = our_checkpoint(**{**NANOGPT_OPTIONS, "bias": bias, "qkv_bias": bias})
    folder = export_checkpoint(ckpt, tmp_path / "out", "nanogpt")
    saved = torch.load(folder / "ckpt.pt", weights_only=True)
    like = foreign.nanogpt(foreign.gpt2("gelu"), bias=bias)
    shapes = [{name: tensor.shape for name, tensor in each["model"].items()} for each in (saved, like)]
    assert shapes[0] == shapes[1]
    assert saved["model_args"] == like["model_args"] | {"dropout": 0.1}
    back = minigpt.load_checkpoint(folder)
    assert (back.detected, back.tokenizer.decode(range(VOCABULARY))) == ("nanogpt", CHARACTERS)
    assert torch.allclose(logits(back), logits(ckpt), rtol=0, atol=1e-6)


def test_one_file_of_ours_holds_everything(tmp_path):
    for options in ({}, {"tied": True}):
        ckpt = our_checkpoint(**options)
        folder = export_checkpoint(ckpt, tmp_path / str(len(options)), "safetensors")
        path = (folder / "model.safetensors").rename(tmp_path / f"any{len(options)}.name")
        back = minigpt.load_checkpoint(path)
        assert (back.detected, back.config) == ("minigpt", ckpt.config)
        assert torch.equal(logits(back), logits(ckpt))


@pytest.mark.parametrize(
    ("layout", "options", "named"),
    [
        ("nanogpt", NANOGPT_OPTIONS | {"activation": "relu"}, "activation is relu, and there it is gelu"),
        ("nanogpt", NANOGPT_OPTIONS | {"tied": False}, "tied is False, and there it is True"),
        ("nanogpt", NANOGPT_OPTIONS | {"layer_norm_epsilon": 1e-3}, "layer_norm_epsilon is 0.001"),
    ],
)
def test_what_a_format_cannot_hold_is_said(tmp_path, layout, options, named):
    with pytest.raises(CheckpointError, match=named):
        export_checkpoint(our_checkpoint(**options), tmp_path / "out", layout)
    assert list(tmp_path.iterdir()) == []


def test_a_head_bias_that_nothing_else_can_say_is_not_lost_in_silence(tmp_path):
    model = minigpt.TransformerLanguageModel(WIDTH + 9, BLOCK, WIDTH, HEADS, LAYERS)
    ckpt = minigpt.Checkpoint(model=scattered(model), tokenizer=CharTokenizer("abcdefghijklmnopqrstu"))
    with pytest.raises(CheckpointError, match="head_bias is True"):
        export_checkpoint(ckpt, tmp_path / "out", "gpt2")


def test_an_export_goes_over_nothing(tmp_path):
    with pytest.raises(CheckpointError) as caught:
        export_checkpoint(our_checkpoint(), tmp_path, "safetensors")
    assert caught.value.code == "export_in_the_way"


# --- the command line ------------------------------------------------------------------------------------------------


def test_import_and_export_carry_a_model_there_and_back(tmp_path, capsys):
    path = foreign.save(foreign.loops()["transformer"].state_dict(), tmp_path / "mine.pt")
    text = tmp_path / "text.txt"
    text.write_text(CHARACTERS * 3)
    assert main(["import", str(path), str(tmp_path / "kept")]) == 1
    assert "Give the text" in capsys.readouterr().err
    assert main(["import", str(path), str(tmp_path / "kept"), "--text", str(text)]) == 0
    assert f"{LAYERS} layers × {HEADS} heads" in capsys.readouterr().out
    assert "(layout: chapters)" in (tmp_path / "kept" / "README.md").read_text()
    assert main(["export", str(tmp_path / "kept"), str(tmp_path / "hf"), "--format", "gpt2"]) == 0
    assert main(["trace", "bad", "--checkpoint", str(tmp_path / "hf")]) == 0
    assert f"L{LAYERS - 1}H{HEADS - 1}" in capsys.readouterr().out


def test_the_command_line_knows_every_export_format():
    assert get_args(ExportFormat) == cli_files.FORMATS


# --- the Hub ---------------------------------------------------------------------------------------------------------

REVISION = "0123456789abcdef0123456789abcdef01234567"


def test_what_was_assumed_is_said_when_imported_and_kept(tmp_path, capsys):
    path = foreign.save(foreign.loops()["transformer"].state_dict(), tmp_path / "mine.pt")
    (tmp_path / "text.txt").write_text(CHARACTERS)
    told = ["--text", str(tmp_path / "text.txt")]
    assert main(["import", str(path), str(tmp_path / "kept"), *told]) == 0
    assert "activation: relu, assumed; the file does not say" in capsys.readouterr().err
    assert minigpt.load_checkpoint(tmp_path / "kept").assumed == ("activation",)
    assert "activation, relu, is assumed" in (tmp_path / "kept" / "README.md").read_text()
    assert main(["import", str(path), str(tmp_path / "other"), *told, "--activation", "gelu"]) == 0
    assert capsys.readouterr().err == ""
    kept = minigpt.load_checkpoint(tmp_path / "other")
    assert (kept.config.activation, kept.assumed) == ("gelu", ())


@pytest.mark.parametrize("command", ["generate", "trace", "heads", "export"])
def test_every_command_that_opens_a_model_can_be_told_what_its_file_does_not_say(command, tmp_path, capsys):
    path = foreign.save(foreign.nanogpt(foreign.gpt2("gelu"))["model"], tmp_path / "ckpt.pt")
    (tmp_path / "text.txt").write_text(CHARACTERS)
    arguments = {
        "generate": ["generate", "bad", "--checkpoint", str(path), "--length", "2"],
        "trace": ["trace", "bad", "--checkpoint", str(path)],
        "heads": ["heads", str(path)],
        "export": ["export", str(path), str(tmp_path / "out"), "--format", "gpt2"],
    }[command]
    assert main(arguments) == 1
    assert "--heads N" in capsys.readouterr().err
    status = main([*arguments, "--heads", str(HEADS), "--activation", "gelu", "--text", str(tmp_path / "text.txt")])
    assert status == 0, capsys.readouterr().err


class Hub(BaseHTTPRequestHandler):
    """Answers as the Hub does for one model, and writes down what was asked for."""

    files: ClassVar[dict[str, bytes]]
    asked: ClassVar[list[str]]
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(body=True)

    def do_HEAD(self):
        self.answer(body=False)

    def answer(self, *, body):
        path = self.path.partition("?")[0]
        self.asked.append(path)
        if path in ("/api/models/user/tiny", "/api/models/user/tiny/revision/v1"):
            listed = [{"rfilename": name, "size": len(content)} for name, content in self.files.items()]
            described = {"id": "user/tiny", "sha": REVISION, "siblings": listed}
            self.reply(200, json.dumps(described).encode(), "application/json", body=body)
        elif path.startswith(start := f"/user/tiny/resolve/{REVISION}/") and path.removeprefix(start) in self.files:
            self.reply(200, self.files[path.removeprefix(start)], "application/octet-stream", body=body)
        else:
            self.reply(404, b"{}", "application/json", body=body)

    def reply(self, status, content, kind, *, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", REVISION)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format, *args):
        pass


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The server, with a GPT-2 that also has files that must not be fetched."""
    model = foreign.gpt2()
    model.save_pretrained(tmp_path / "source")
    foreign.write_character_tokenizer(tmp_path / "source")
    Hub.files = {path.name: path.read_bytes() for path in (tmp_path / "source").iterdir()}
    Hub.files |= {"pytorch_model.bin": b"never", "run.py": b"never", "weights.pkl": b"never"}
    Hub.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    yield model
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_model_on_the_hub_is_sized_first_and_fetched_in_harmless_files_only(hub, tmp_path, capsys):
    remote = look_up("hf://user/tiny@v1")
    assert remote.revision == REVISION
    assert set(remote.sizes) == {"config.json", "model.safetensors", "vocab.json"}
    assert not any("resolve" in path for path in Hub.asked)
    assert main(["import", "hf://user/tiny@v1", str(tmp_path / "kept")]) == 0
    assert f"model.safetensors {remote.sizes['model.safetensors'] / 1000:.1f} kB" in capsys.readouterr().err
    fetched = {path.rpartition("/")[2] for path in Hub.asked if "resolve" in path}
    assert fetched == set(remote.sizes)
    assert torch.allclose(logits(minigpt.load_checkpoint(tmp_path / "kept")), foreign.computed(hub)[0], atol=1e-5)


def test_a_model_on_the_hub_opens_like_a_path(hub, tmp_path, capsys):
    ckpt = minigpt.load_checkpoint("hf://user/tiny")
    assert ckpt.detected == "gpt2"
    assert torch.allclose(logits(ckpt), foreign.computed(hub)[0], rtol=0, atol=1e-5)
    out = tmp_path / "tiny"
    assert main(["export", "hf://user/tiny", str(out), "--format", "gpt2"]) == 0
    assert look_up("hf://user/tiny").described() in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ("hf://user", "hub_name"),
        ("hf://user/../tiny", "hub_name"),
        ("hf://user/tiny@v 1", "hub_name"),
        ("hf://user/other", "hub_failed"),
        ("hf://user/tiny@v2", "hub_failed"),
    ],
)
@pytest.mark.usefixtures("hub")
def test_what_the_hub_has_not_is_said(reference, code):
    with pytest.raises(CheckpointError) as caught:
        minigpt.load_checkpoint(reference)
    assert caught.value.code == code
    assert reference in str(caught.value)


@pytest.mark.usefixtures("hub")
def test_a_model_without_safetensors_or_over_the_limit_is_not_fetched():
    with pytest.raises(CheckpointError) as caught:
        look_up("hf://user/tiny", most=1000)
    assert caught.value.code == "file_too_large"
    del Hub.files["model.safetensors"]
    with pytest.raises(CheckpointError) as caught:
        minigpt.load_checkpoint("hf://user/tiny")
    assert caught.value.code == "hub_nothing"
    assert not any("resolve" in path for path in Hub.asked)


def test_import_keeps_what_it_loads(tmp_path):
    ckpt = our_checkpoint()
    folder = export_checkpoint(ckpt, tmp_path / "out", "safetensors")
    kept = import_checkpoint(str(folder / "model.safetensors"), tmp_path / "kept")
    assert kept.config == ckpt.config
    assert torch.equal(logits(kept), logits(ckpt))


def test_a_model_in_several_files_is_fetched_from_the_hub(hub, tmp_path):
    hub.save_pretrained(tmp_path / "shards", max_shard_size="9KB")
    del Hub.files["model.safetensors"]
    Hub.files |= {path.name: path.read_bytes() for path in (tmp_path / "shards").iterdir()}
    Hub.files["model-00009-of-00009.bin"] = b"never"
    remote = look_up("hf://user/tiny")
    assert sum(name.endswith(".safetensors") for name in remote.sizes) > 1
    assert "model-00009-of-00009.bin" not in remote.sizes
    assert torch.allclose(logits(minigpt.load_checkpoint("hf://user/tiny")), foreign.computed(hub)[0], atol=1e-5)


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("commit", ["../../../elsewhere", "", "main"])
def test_an_answer_that_leads_elsewhere_is_not_followed(commit, monkeypatch, tmp_path):
    monkeypatch.setattr("tests.test_exchange.REVISION", commit)
    with pytest.raises(CheckpointError) as caught:
        minigpt.load_checkpoint("hf://user/tiny")
    assert caught.value.code == "hub_failed"
    assert not any("resolve" in path for path in Hub.asked)
    assert not (tmp_path / "elsewhere").exists()
