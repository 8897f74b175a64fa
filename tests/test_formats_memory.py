"""Loading takes the memory of the model and little more, whichever container its file is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tests import foreign

ROOT = Path(__file__).parent.parent
WIDTH, LAYERS, WINDOW, VOCABULARY = 600, 2, 300, 12_000
SLACK = 30_000_000
"""Bytes that a process may need besides, for modules and pieces that it reads."""

MEASURE = """
import json, pathlib, resource, sys
import torch
import minigpt
torch.set_num_threads(1)
def peak():
    status = pathlib.Path("/proc/self/status")  # Linux adds to ru_maxrss what the parent had
    if status.exists():
        return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
warm, path, action, destination = sys.argv[1:]
ckpt = minigpt.load_checkpoint(warm)  # what Python and PyTorch import when they first read a model
minigpt.save_checkpoint(destination + "-warm", ckpt.model, ckpt.tokenizer)
before = peak()
ckpt = minigpt.load_checkpoint(path)
if action == "save":
    minigpt.save_checkpoint(destination, ckpt.model, ckpt.tokenizer)
print(json.dumps([peak() - before, sum(float(parameter.double().sum()) for parameter in ckpt.model.parameters())]))
"""


def gpt2_state(width, layers, window, vocabulary):
    """Return the parameters of a GPT-2 as Hugging Face names and lays them out."""
    draw = torch.Generator().manual_seed(2)
    shapes = {"wte.weight": (vocabulary, width), "wpe.weight": (window, width), "ln_f.weight": (width,)}
    for layer in range(layers):
        inside = {"attn.c_attn": (width, 3 * width), "attn.c_proj": (width, width)}
        inside |= {"mlp.c_fc": (width, 4 * width), "mlp.c_proj": (4 * width, width)}
        for name, shape in inside.items():
            shapes |= {f"h.{layer}.{name}.weight": shape, f"h.{layer}.{name}.bias": shape[1:]}
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"h.{layer}.{norm}.{each}": (width,) for each in ("weight", "bias")}
    shapes["ln_f.bias"] = (width,)
    return {name: torch.randn(shape, generator=draw) for name, shape in shapes.items()}


def write(folder, kind, width, layers, window, vocabulary):
    """Write such a model with a vocabulary, and return its parameters and the bytes of their file."""
    folder.mkdir()
    state = gpt2_state(width, layers, window, vocabulary)
    if kind == "safetensors":
        path = folder / "model.safetensors"
        save_file(state, path)
    else:
        path = foreign.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=kind == "zip")
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_head": 12}))
    (folder / "vocab.json").write_text(json.dumps({chr(0x4E00 + index): index for index in range(vocabulary)}))
    return state, path.stat().st_size


def measured(*arguments):
    """Return the bytes that loading took, and the sum of all numbers of the model."""
    command = [sys.executable, "-c", MEASURE, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)


@pytest.mark.parametrize("kind", ["safetensors", "zip", "legacy"])
def test_loading_takes_the_memory_of_the_model_once(tmp_path, kind):
    state, size = write(tmp_path / "large", kind, WIDTH, LAYERS, WINDOW, VOCABULARY)
    write(tmp_path / "small", kind, 12, 1, 3, 5)
    total = sum(float(tensor.double().sum()) for tensor in state.values())
    del state
    assert size > 60_000_000
    taken, loaded = measured(tmp_path / "small", tmp_path / "large", "load", tmp_path / "unused")
    assert 0.9 * size < taken < 1.1 * size + SLACK
    assert loaded == pytest.approx(total)


def test_keeping_a_foreign_model_as_our_own_takes_no_more(tmp_path):
    _, size = write(tmp_path / "large", "zip", WIDTH, LAYERS, WINDOW, VOCABULARY)
    write(tmp_path / "small", "zip", 12, 1, 3, 5)
    taken, total = measured(tmp_path / "small", tmp_path / "large", "save", tmp_path / "ours")
    assert taken < 1.1 * size + SLACK
    taken, loaded = measured(tmp_path / "small", tmp_path / "ours", "load", tmp_path / "unused")
    assert taken < 1.1 * size + SLACK
    assert loaded == pytest.approx(total)
