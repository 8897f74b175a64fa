"""What is refused, each by its own sentence; and nothing in a file is ever run."""

import json
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from io import BytesIO

import pytest
import torch
from safetensors.torch import save_file

import minigpt
from minigpt.errors import CheckpointError
from minigpt.formats.files import MOST_BYTES
from minigpt.formats.pickles import Machine, plain_pickle
from minigpt.formats.vocabulary import read_meta_pickle
from tests import foreign
from tests.foreign import BLOCK, CHARACTERS, VOCABULARY, WIDTH
from tests.reference import LoopTransformer

LOOPS = foreign.loops()


def state(kind="transformer"):
    return OrderedDict(LOOPS[kind].state_dict())


def refused(path, text=CHARACTERS):
    with pytest.raises(CheckpointError) as caught:
        minigpt.load_checkpoint(path, text=text)
    assert "Type-check" not in str(caught.value)  # a mistake of ours is no damage of the file
    return caught.value


def saved(tmp_path, value, **options):
    return foreign.save(value, tmp_path / "model.pt", **options)


# --- files that are no models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_cut_short_is_said_to_be_cut_short_or_damaged(tmp_path, share, zipped):
    path = saved(tmp_path, state(), _use_new_zipfile_serialization=zipped)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    error = refused(path)
    assert "is cut short or damaged" in str(error)


def test_one_wrong_byte_among_the_numbers_of_an_archive_is_found(tmp_path):
    path = saved(tmp_path, state())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert "another checksum" in str(refused(path))


@pytest.mark.parametrize("content", [b"hello, I am no model at all", b"\x1f\x8b\x08" + bytes(50), b"{}" * 20])
def test_a_file_of_another_kind_is_named_as_such(tmp_path, content):
    path = tmp_path / "model.pt"
    path.write_bytes(content)
    assert refused(path).code == "file_unrecognized"


def test_an_archive_without_a_model_is_named_as_such(tmp_path):
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("notes.txt", "nothing")
    assert refused(tmp_path / "model.pt").code == "file_unrecognized"


def test_a_file_that_is_not_there_is_named(tmp_path):
    error = refused(tmp_path / "nowhere.pt")
    assert (error.code, error.details["path"]) == ("checkpoint_missing", tmp_path / "nowhere.pt")


# --- code ------------------------------------------------------------------------------------------------------------


class Payload:
    """Unpickling this would create a file."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("beside", [True, False])
def test_a_pickle_with_code_in_it_is_refused_and_never_runs(tmp_path, zipped, beside):
    target = tmp_path / "created"
    value = {"model": state(), "extra": Payload(target)} if beside else Payload(target)
    error = refused(saved(tmp_path, value, _use_new_zipfile_serialization=zipped))
    assert (error.code, error.details["names"]) == ("pickle_code", "posix.mkdir")
    assert "Nothing was run" in str(error)
    assert not target.exists()
    torch.load(tmp_path / "model.pt", weights_only=False)
    assert target.exists()  # so the payload works where it is let


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_meta_pickle_with_code_in_it_never_runs(tmp_path, protocol):
    target, path = tmp_path / "created", tmp_path / "meta.pkl"
    path.write_bytes(pickle.dumps({"stoi": {}, "itos": [Payload(target)]}, protocol=protocol))
    with pytest.raises(CheckpointError) as caught:
        read_meta_pickle(path)
    assert caught.value.code == "pickle_code"
    assert not target.exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_come_out_of_a_pickle_as_unpickling_gives_them(tmp_path, protocol):
    shared = ["가", 7]
    value = {"stoi": {"a": 0, "\n": 2**40, "é": -1}, "chars": [shared, shared, (), (1,), (1, 2, 3, 4)], "none": None}
    value |= {"floats": [1.5, True, False], "bytes": "x" * 300, 5: {"six": []}}
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps(value, protocol=protocol))
    assert read_meta_pickle(tmp_path / "meta.pkl") == value


def test_a_plain_pickle_that_we_write_is_read_by_pickle():
    value = {"vocab_size": 3, "itos": {0: "a", 1: "가"}, "list": ["x", [-5, {}]]}
    assert pickle.loads(plain_pickle(value)) == value  # noqa: S301 (our own bytes)


def test_a_whole_module_is_refused_with_the_way_to_save_its_parameters(tmp_path):
    error = refused(saved(tmp_path, LOOPS["transformer"]))
    assert (error.code, error.details["name"]) == ("whole_module", f"{LoopTransformer.__module__}.LoopTransformer")
    assert "torch.save(model.state_dict(), path)" in str(error)


def test_calls_that_would_take_memory_are_not_made():
    pickled = b"\x80\x02cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R."
    assert Machine().run(BytesIO(pickled)).foreign == ["builtins.bytearray"]


# --- parameters that make no model -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LOOPS)
def test_every_missing_parameter_is_listed_and_nothing_is_made_up(tmp_path, kind):
    for name in [name for name in state(kind) if not name.endswith("tril")]:
        lacking = state(kind)
        del lacking[name]
        error = refused(saved(tmp_path, lacking))
        assert error.code == "parameters_differ"
        assert name in error.details["missing"], name


def test_parameters_left_over_are_listed_as_the_file_names_them(tmp_path):
    more = state() | {"blocks.2.sa.heads.9.gate": torch.ones(3)}
    error = refused(saved(tmp_path, {f"module.{name}": tensor for name, tensor in more.items()}))
    assert error.details["unexpected"] == "module.blocks.2.sa.heads.9.gate"


def test_two_names_for_one_parameter_are_refused(tmp_path):
    twice = state() | {"lm_head.module.weight": torch.ones(1), "module.lm_head.bias": torch.ones(VOCABULARY)}
    assert refused(saved(tmp_path, twice)).code == "parameters_differ"


def test_a_shape_that_disagrees_is_named_with_both_shapes(tmp_path):
    odd = state() | {"blocks.1.ffwd.net.0.weight": torch.ones(4 * WIDTH, WIDTH + 1)}
    error = refused(saved(tmp_path, odd))
    assert f"blocks.1.ffwd.net.0.weight in {tmp_path / 'model.pt'} has the shape (48, 13)" in str(error)
    assert "(48, 12)" in str(error)


def test_a_feed_forward_network_of_another_width_is_named_as_such(tmp_path):
    narrow = state()
    for layer in range(foreign.LAYERS):
        narrow[f"blocks.{layer}.ffwd.net.0.weight"] = torch.ones(2 * WIDTH, WIDTH)
        narrow[f"blocks.{layer}.ffwd.net.0.bias"] = torch.ones(2 * WIDTH)
        narrow[f"blocks.{layer}.ffwd.net.2.weight"] = torch.ones(WIDTH, 2 * WIDTH)
    error = refused(saved(tmp_path, narrow))
    assert error.code == "feed_forward_width"
    assert "24 wide; this program computes only 4 × n_embd = 48" in str(error)


def test_up_to_forty_missing_parameters_are_listed(tmp_path):
    lacking = {name: tensor for name, tensor in state().items() if ".ln" not in name and ".query." not in name}
    error = refused(saved(tmp_path, lacking))
    assert error.details["missing"].count(",") == 2 * 2 * foreign.LAYERS + 3 * foreign.LAYERS - 1


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_named_with_their_parameter(tmp_path, number):
    odd = state()
    odd["blocks.3.ln2.bias"] = torch.full((WIDTH,), number)
    error = refused(saved(tmp_path, odd))
    assert (error.code, error.details["name"]) == ("checkpoint_not_finite", "blocks.3.ln2.bias")


def test_parameters_must_be_floating_point_numbers(tmp_path):
    error = refused(saved(tmp_path, state() | {"ln_f.bias": torch.ones(WIDTH, dtype=torch.int64)}))
    assert (error.code, error.details["got"]) == ("checkpoint_dtype", "int64")


def test_a_mask_that_hides_something_else_is_refused(tmp_path):
    open_eyed = state() | {"blocks.0.sa.heads.1.tril": torch.ones(BLOCK, BLOCK)}
    error = refused(saved(tmp_path, open_eyed))
    assert (error.code, error.details["name"]) == ("mask_differs", "blocks.0.sa.heads.1.tril")


def test_settings_that_disagree_with_the_parameters_are_named(tmp_path):
    error = refused(saved(tmp_path, {"model": state(), "block_size": 99}))
    assert "says block_size = 99, but its parameters have 7" in str(error)


def test_heads_that_do_not_divide_the_embedding_are_refused(tmp_path):
    model = foreign.nanogpt(foreign.gpt2("gelu"))
    model["model_args"]["n_head"] = 5
    error = refused(saved(tmp_path, model))
    assert "n_embd must be divisible by n_head" in str(error)


def test_a_file_that_does_not_show_its_heads_says_what_to_put_beside_it(tmp_path):
    error = refused(saved(tmp_path, foreign.nanogpt(foreign.gpt2("gelu"))["model"]))
    assert error.code == "heads_unknown"
    assert "--heads N" in str(error)
    assert 'config.json beside it with {"n_head": N}' in str(error)


def test_names_that_count_to_a_billion_take_no_memory(tmp_path):
    huge = state() | {"blocks.999999999.ln1.weight": torch.ones(WIDTH)}
    assert refused(saved(tmp_path, huge)).code == "parameters_differ"


def test_parameters_that_share_their_numbers_to_look_larger_are_refused(tmp_path):
    one = torch.ones(4 * WIDTH * WIDTH)
    shared = {name: one[: tensor.numel()].view(tensor.shape) for name, tensor in state().items() if "tril" not in name}
    assert "share the same numbers" in str(refused(saved(tmp_path, shared)))


@pytest.mark.parametrize("zipped", [True, False])
def test_a_tensor_that_repeats_one_number_without_end_is_refused(tmp_path, zipped):
    endless = state() | {"ln_f.weight": torch.ones(1).expand(2**40)}
    path = saved(tmp_path, endless, _use_new_zipfile_serialization=zipped)
    assert "larger than its numbers" in str(refused(path))


# --- other architectures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("model.layers.0.self_attn.q_proj.weight", "Llama or a relative"),
        ("model.decoder.layers.0.self_attn.q_proj.weight", "OPT"),
        ("model.encoder.layers.0.self_attn.k_proj.weight", "BART or a relative"),
        ("distilbert.transformer.layer.0.attention.q_lin.weight", "DistilBERT"),
        ("bert.encoder.layer.0.attention.self.query.weight", "BERT"),
        ("gpt_neox.layers.0.attention.query_key_value.weight", "GPT-NeoX"),
        ("encoder.block.0.layer.0.SelfAttention.q.weight", "T5"),
        ("lstm.weight_ih_l0", "an LSTM or GRU"),
    ],
)
def test_other_architectures_are_named(tmp_path, name, title):
    save_file({name: torch.ones(3, 4)}, tmp_path / "x.safetensors")
    error = refused(tmp_path / "x.safetensors")
    assert (error.code, error.details["name"]) == ("other_architecture", title)


def test_another_architecture_of_transformers_is_named_by_its_config(tmp_path):
    described = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
    (tmp_path / "config.json").write_text(json.dumps(described))
    save_file({"x": torch.ones(3)}, tmp_path / "model.safetensors")
    assert refused(tmp_path).details["name"] == "LlamaForCausalLM"


def test_parameters_of_nothing_known_are_listed(tmp_path):
    assert refused(saved(tmp_path, {"something.else": torch.ones(2)})).details["names"] == "something.else"
    assert refused(saved(tmp_path, {"losses": [1.0]})).details["names"] == "'losses'"
    assert refused(saved(tmp_path, [torch.ones(2)])).code == "unknown_parameters"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("activation_function", "silu"),
        ("scale_attn_by_inverse_layer_idx", True),
        ("n_inner", 5 * WIDTH),
        ("add_cross_attention", True),
    ],
)
def test_settings_of_a_gpt2_that_are_not_computed_here_are_refused(tmp_path, setting, value):
    foreign.gpt2().save_pretrained(tmp_path)
    described = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(described | {setting: value}))
    error = refused(tmp_path)
    assert error.code == "unsupported_setting"
    assert repr(value) in str(error)


# --- vocabularies ----------------------------------------------------------------------------------------------------


def test_without_a_vocabulary_the_way_out_is_the_training_text(tmp_path):
    path = saved(tmp_path, state())
    error = refused(path, text=None)
    assert (error.code, error.details["rows"]) == ("no_vocabulary", VOCABULARY)
    assert "Give the text that the model was trained on" in str(error)
    other = refused(path, text="only these")
    assert (other.code, other.details["characters"]) == ("text_differs", len(set("only these")))


@pytest.mark.parametrize("rows", [50257, 50304])
@pytest.mark.parametrize("text", [None, CHARACTERS])
def test_a_model_of_gpt2s_pieces_is_not_asked_for_a_text_but_for_their_files(tmp_path, rows, text):
    error = refused(saved(tmp_path, foreign.nanogpt(foreign.gpt2("gelu"), padded=rows)), text=text)
    assert error.code == "gpt2_vocabulary"  # for which the page opens no place for a text
    assert "vocab.json and merges.txt" in str(error)


def test_a_vocabulary_that_does_not_match_the_rows_is_refused(tmp_path):
    error = refused(saved(tmp_path, {"model": state(), "chars": CHARACTERS + "z"}))
    assert (error.code, error.details["tokens"], error.details["rows"]) == (
        "vocabulary_mismatch",
        VOCABULARY + 1,
        VOCABULARY,
    )


@pytest.mark.parametrize(
    "vocabulary",
    [
        {"stoi": {"a": 0, "b": 0}},
        {"itos": {0: "a", 2: "b"}},
        {"chars": ["a", "bc"]},
        {"chars": [1, 2]},
        {"stoi": {"a": 0, "b": 1}, "itos": {0: "b", 1: "a"}},
        {"itos": {"one": "a"}},
    ],
)
def test_a_vocabulary_that_is_none_is_refused(tmp_path, vocabulary):
    assert refused(saved(tmp_path, {"model": state(), **vocabulary})).code == "tokenizer_unreadable"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.json", "{}"),
        ("tokenizer.json", "\ud800".encode("utf-8", "surrogatepass")),
        ("meta.json", '{"stoi": 3'),
        ("meta.pkl", pickle.dumps([1, 2])),
        ("meta.pkl", pickle.dumps({"stoi": {"a": 0}})[:-4]),
        ("vocab.json", '{"a": "b"}'),
    ],
)
def test_a_vocabulary_file_that_cannot_be_read_is_named(tmp_path, name, content):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    error = refused(saved(tmp_path, state()), text=None)
    assert error.code in {"tokenizer_unreadable", "checkpoint_not_json", "file_damaged"}
    assert name in str(error)


def test_merges_that_do_not_fit_their_vocabulary_are_refused(tmp_path):
    (tmp_path / "vocab.json").write_text('{"a": 0, "b": 1}')
    for merges in ("a b\n", "a b c\n"):
        (tmp_path / "merges.txt").write_text(merges)
        assert refused(saved(tmp_path, state()), text=None).code == "tokenizer_unreadable"


# --- sizes -----------------------------------------------------------------------------------------------------------


def test_a_file_over_the_limit_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "model.pt"
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)  # a hole: takes no room on the disk
    assert refused(path).code == "file_too_large"


def test_an_archive_that_would_grow_is_refused(tmp_path):
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model/data.pkl", b"\x80\x02}.")
        archive.writestr("model/data/0", bytes(5_000_000))
    error = refused(path)
    assert (error.code, error.details["size"]) == ("zip_bomb", 5_000_004)
    assert error.details["held"] < 10_000


def test_an_archive_whose_parts_overlap_is_refused(tmp_path):
    path = saved(tmp_path, state())
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        content = bytearray(path.read_bytes()[: archive.start_dir])
    largest = max(entries, key=lambda entry: entry.file_size)
    size = 0
    for index in range(len(content) // largest.file_size + 2):
        name = f"archive/data/{index}".encode()
        fields = (0, 0, 0, 0, 0, 0, largest.CRC, largest.file_size, largest.file_size, len(name), 0, 0, 0, 0, 0)
        content += b"PK\x01\x02" + struct.pack("<6H3L5H2L", *fields, largest.header_offset) + name
        size += 46 + len(name)
    end = (0, 0, index + 1, index + 1, size, archive.start_dir, 0)
    path.write_bytes(content + b"PK\x05\x06" + struct.pack("<4H2LH", *end))
    assert refused(path).code == "zip_bomb"


# --- headers that lie ------------------------------------------------------------------------------------------------


def safetensors(header, content=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content


def entry(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    "content",
    [
        (2**39).to_bytes(8, "little") + b"{}",
        safetensors(b"{not json"),
        safetensors({"a": entry([2], 0, 8)}, bytes(7)),
        safetensors({"a": entry([2], 0, 8)}, bytes(9)),
        safetensors({"a": entry([3], 0, 8)}, bytes(8)),
        safetensors({"a": entry([2**60, 2**60], 0, 8)}, bytes(8)),
        safetensors({"a": entry([2], 0, 8), "b": entry([2], 0, 8)}, bytes(8)),
        safetensors({"a": entry([1], 4, 8)}, bytes(8)),
        safetensors({"a": entry([-2], 0, 8)}, bytes(8)),
        safetensors({"a": entry([2], 0, 8, "F33")}, bytes(8)),
        safetensors({"a": [1, 2]}, bytes(8)),
        safetensors({"a": entry([True], 0, 4)}, bytes(4)),
    ],
)
def test_a_safetensors_header_that_lies_is_refused(tmp_path, content):
    (tmp_path / "x.safetensors").write_bytes(content)
    assert refused(tmp_path / "x.safetensors").code == "safetensors_header"
