"""A valid file, changed at random: it loads as the same model, or it is refused. Nothing else ever happens."""

import contextlib
import io
import json
import tracemalloc
import zipfile
from collections import OrderedDict

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save as safetensors_bytes

import minigpt
from minigpt.errors import CheckpointError
from tests import foreign
from tests.foreign import CHARACTERS, HEADS, IDX

LOOPS = foreign.loops()
NANOGPT = foreign.nanogpt(foreign.gpt2("gelu"))
THOROUGH = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


def written(value, *, zipped=True):
    buffer = io.BytesIO()
    torch.save(value, buffer, _use_new_zipfile_serialization=zipped)
    return buffer.getvalue()


STATES = {
    **{kind: ({"model": model.state_dict(), "chars": CHARACTERS}, "model") for kind, model in LOOPS.items()},
    "nanogpt": ({**NANOGPT, "chars": CHARACTERS}, "model"),
}
FILES = {kind: written(value) for kind, (value, _) in STATES.items()}
CONTAINERS = {
    **{("zip", kind): content for kind, content in FILES.items()},
    **{("legacy", kind): written(value, zipped=False) for kind, (value, _) in STATES.items()},
    ("safetensors", "nanogpt"): safetensors_bytes(
        {name: tensor for name, tensor in NANOGPT["model"].items() if name != "lm_head.weight"},
        metadata={"config": json.dumps({"n_head": HEADS, "bias": True, "tied": True, "chars": CHARACTERS})},
    ),
}
LOGITS = {kind: model(IDX)[0].detach() for kind, model in LOOPS.items()}
LOGITS["nanogpt"] = foreign.computed(foreign.gpt2("gelu"))[0]
kinds = st.sampled_from(sorted(FILES))
containers = st.sampled_from(sorted(CONTAINERS))


OBJECTS = 2**21
"""Bytes that Python's own objects may take while a file of these is read."""


@pytest.fixture(scope="module", autouse=True)
def _warm(tmp_path_factory):
    """Read and refuse once what is imported and compiled at the first call."""
    path = tmp_path_factory.mktemp("warm") / "x.pt"
    for content in CONTAINERS.values():
        for share in (1, 2, 3):
            path.write_bytes(content[: len(content) // share])
            with contextlib.suppress(CheckpointError):
                minigpt.load_checkpoint(path)


def opened(path, content):
    """Return the logits of the model in these bytes; None if they are refused in one sentence.

    Either way, what Python takes meanwhile is less than twice the file. Tensors come on top: those of the model, whose
    shapes are compared with the file before; `test_formats_memory` measures all of it.
    """
    path.write_bytes(content)
    tracemalloc.start()
    try:
        ckpt = minigpt.load_checkpoint(path)
    except CheckpointError as error:
        if "Type-check" in str(error):  # a mistake of ours is no damage of the file
            raise
        return None
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2 * len(content) + OBJECTS
    with torch.no_grad():
        return ckpt.model(IDX)[0]


def assert_same(logits, kind):
    assert torch.allclose(logits, LOGITS[kind], rtol=0, atol=1e-5)


def assert_same_or_refused(path, content, kind):
    logits = opened(path, content)
    if logits is not None:
        assert_same(logits, kind)


@THOROUGH
@given(which=containers, share=st.floats(0, 1, exclude_max=True))
def test_a_file_that_is_cut_short_is_refused(tmp_path, which, share):
    content = CONTAINERS[which]
    assert opened(tmp_path / "x.pt", content[: int(share * len(content))]) is None


@THOROUGH
@given(which=containers, flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1))
def test_flipped_bits_are_refused_or_do_not_matter(tmp_path, which, flips):
    content = bytearray(CONTAINERS[which])
    for share, bits in flips:
        content[int(share * len(content))] ^= bits
    logits = opened(tmp_path / "x.pt", bytes(content))
    if logits is not None and which[0] == "zip":  # whose parts have checksums
        assert_same(logits, which[1])


@pytest.mark.parametrize("which", sorted(CONTAINERS))
def test_each_container_opens_unharmed(tmp_path, which):
    assert_same(opened(tmp_path / "x.pt", CONTAINERS[which]), which[1])


def program_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read("archive/data.pkl")


@THOROUGH
@given(kind=kinds, changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=3)), min_size=1))
def test_a_changed_program_with_right_checksums_is_refused_or_makes_a_whole_model(tmp_path, kind, changes):
    program = bytearray(program_of(FILES[kind]))
    for share, new in changes:
        position = int(share * len(program))
        program[position : position + 1] = new
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(FILES[kind])) as before, zipfile.ZipFile(buffer, "w") as after:
        for entry in before.infolist():
            after.writestr(entry.filename, program if entry.filename.endswith("pkl") else before.read(entry))
    logits = opened(tmp_path / "x.pt", buffer.getvalue())
    assert logits is None or bool(logits.isfinite().all())


@THOROUGH
@given(kind=kinds, zipped=st.booleans(), data=st.data())
def test_parameters_dropped_renamed_reshaped_or_wrapped_are_refused_or_do_not_matter(tmp_path, kind, zipped, data):
    value, entry = STATES[kind]
    state = OrderedDict(value[entry])
    for change in data.draw(st.lists(st.sampled_from(["drop", "rename", "reshape", "wrap"]), min_size=1, max_size=3)):
        name = data.draw(st.sampled_from(sorted(state)))
        if change == "drop":
            del state[name]
        elif change == "rename":
            state[data.draw(st.sampled_from([name + "x", name[1:], name.replace("1", "2"), "x." + name]))] = state.pop(
                name
            )
        elif change == "reshape":
            tensor = state[name]
            divisors = [size for size in range(1, tensor.numel() + 1) if tensor.numel() % size == 0]
            state[name] = tensor.reshape(data.draw(st.sampled_from(divisors)), -1)
        else:
            wrappers = data.draw(st.lists(st.sampled_from(["module.", "_orig_mod.", "model."]), max_size=4))
            state = OrderedDict((("".join(wrappers) + key), tensor) for key, tensor in state.items())
    assert_same_or_refused(tmp_path / "x.pt", written({**value, entry: state}, zipped=zipped), kind)


@THOROUGH
@given(
    data=st.data(),
    flips=st.lists(st.tuples(st.integers(0, 600), st.integers(1, 255)), min_size=1, max_size=4),
    cut=st.booleans(),
)
def test_a_changed_safetensors_header_is_refused_or_makes_a_whole_model(tmp_path, data, flips, cut):
    state = {name: tensor for name, tensor in LOOPS["multi-head"].state_dict().items() if "tril" not in name}
    settings = f'{{"n_head": {HEADS}, "chars": "{CHARACTERS[1:]}"}}'.replace('"chars": "', '"chars": "\\n')
    content = bytearray(safetensors_bytes(state, metadata={"config": settings}))
    for position, bits in flips:
        content[position] ^= bits
    if cut:
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    logits = opened(tmp_path / "x.safetensors", bytes(content))
    assert logits is None or bool(logits.isfinite().all())
