"""Foreign models: found out by their content, and computing what the program that saved them computes, to 1e-5."""

import json

import pytest
import torch
from safetensors.torch import save_file

import minigpt
from minigpt.errors import CheckpointError, ConfigError
from minigpt.exchange import with_activation
from minigpt.tokenizer import CharTokenizer
from tests import foreign
from tests.foreign import ACTIVATIONS, BLOCK, CHARACTERS, HEADS, IDX, LAYERS, VOCABULARY, WIDTH

LOOPS = foreign.loops()
EVERY_BIAS = {"bias": True, "qkv_bias": True, "head_bias": False}


def assert_computes(ckpt, logits, weights):
    """The same logits and the same attention weights, from a model in eval mode that knows CHARACTERS."""
    with torch.no_grad():
        own, _, own_weights = ckpt.model(IDX, return_weights=True)
    assert torch.allclose(own, logits, rtol=0, atol=1e-5)
    assert torch.allclose(own_weights, weights, rtol=0, atol=1e-5)
    assert not ckpt.model.training
    assert ckpt.tokenizer.decode(range(VOCABULARY)) == CHARACTERS


def loop_computed(kind):
    with torch.no_grad():
        return LOOPS[kind](IDX)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kind", LOOPS)
def test_a_state_dict_of_the_chapters_opens_with_the_text_it_was_trained_on(tmp_path, kind, zipped):
    path = foreign.save(LOOPS[kind].state_dict(), tmp_path / "mine.pt", _use_new_zipfile_serialization=zipped)
    ckpt = minigpt.load_checkpoint(path, text=CHARACTERS * 2)
    assert_computes(ckpt, *loop_computed(kind))
    assert (ckpt.detected, ckpt.config.kind, ckpt.config.block_size) == ("chapters", kind, BLOCK)
    assert (ckpt.config.n_head, ckpt.config.n_layer) == {
        "single-head": (1, 1),
        "multi-head": (HEADS, 1),
        "transformer": (HEADS, LAYERS),
    }[kind]


STOI = {char: index for index, char in enumerate(CHARACTERS)}


@pytest.mark.parametrize(
    ("entry", "vocabulary"),
    [
        ("model", {"chars": list(CHARACTERS)}),
        ("model_state_dict", {"stoi": STOI, "itos": dict(enumerate(CHARACTERS))}),
        ("state_dict", {"vocab": CHARACTERS}),
        ("model", {"itos": list(CHARACTERS)}),
        ("model", {"tokenizer": {"stoi": STOI}}),
        ("model", {"chars": set(CHARACTERS)}),
    ],
)
def test_a_dict_with_settings_and_vocabulary_in_the_usual_spellings_opens_alone(tmp_path, entry, vocabulary):
    settings = {"config": {"context_length": BLOCK, "d_model": WIDTH, "num_heads": HEADS, "dropout": 0.2}}
    saved = {entry: LOOPS["transformer"].state_dict(), **settings, **vocabulary, "epoch": 3}
    ckpt = minigpt.load_checkpoint(foreign.save(saved, tmp_path / "x.bin"))
    assert_computes(ckpt, *loop_computed("transformer"))


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module.model."])
def test_wrappers_around_names_are_taken_off_in_any_order(tmp_path, prefix):
    for kind, model in LOOPS.items():
        state = {prefix + name: tensor for name, tensor in model.state_dict().items()}
        ckpt = minigpt.load_checkpoint(foreign.save(state, tmp_path / f"{kind}.pt"), text=CHARACTERS)
        assert_computes(ckpt, *loop_computed(kind))


def test_other_spellings_of_the_chapters_names_open(tmp_path):
    respelled = {
        name.replace("token_embedding_table", "token_embedding")
        .replace("position_embedding_table", "pos_emb")
        .replace(".sa.", ".attn.")
        .replace("ffwd.net", "ff")
        .replace("ln1", "ln_1"): tensor
        for name, tensor in LOOPS["transformer"].state_dict().items()
        if not name.endswith("tril")
    }
    ckpt = minigpt.load_checkpoint(foreign.save(respelled, tmp_path / "x.pt"), text=CHARACTERS)
    assert_computes(ckpt, *loop_computed("transformer"))


def test_half_precision_and_parameters_in_place_of_tensors_open(tmp_path):
    state = {name: torch.nn.Parameter(tensor.half()) for name, tensor in LOOPS["multi-head"].state_dict().items()}
    ckpt = minigpt.load_checkpoint(foreign.save(state, tmp_path / "x.pt"), text=CHARACTERS)
    assert ckpt.model.lm_head.weight.dtype == torch.float32
    assert torch.equal(ckpt.model.lm_head.weight.half(), state["lm_head.weight"])


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh"])
@pytest.mark.parametrize("tied", [True, False])
def test_the_options_of_our_own_models_come_back_from_a_state_dict(tmp_path, activation, tied):
    options = {"activation": activation, "tied": tied, "bias": False, "head_bias": False, "qkv_bias": True}
    torch.manual_seed(6)
    model = minigpt.TransformerLanguageModel(VOCABULARY, BLOCK, WIDTH, HEADS, LAYERS, **options).eval()
    saved = {"model": model.state_dict(), "activation": activation, "chars": CHARACTERS}
    ckpt = minigpt.load_checkpoint(foreign.save(saved, tmp_path / "x.pt"))
    assert {name: getattr(ckpt.config, name) for name in options} == options
    with torch.no_grad():
        logits, _, weights = model(IDX, return_weights=True)
    assert_computes(ckpt, logits, weights)


def gelu_loop():
    """The chapters' transformer with GELU: its parameters look like those of one with ReLU."""
    model = foreign.loops()["transformer"]
    for block in model.blocks:
        block.ffwd.net[1] = torch.nn.GELU()
    return model


@pytest.mark.parametrize(
    "said",
    [
        {"use_gelu": True},
        {"activation": "gelu"},
        {"hyper_parameters": {"act_fn": "nn.GELU()"}},
        {"cfg": {"nonlinearity": "torch.nn.functional.gelu"}},
        {"args": {"use_relu": False}},
        {"config": {"mlp_activation": "GELU(approximate='none')"}},
    ],
)
def test_the_activation_is_read_in_its_usual_spellings(tmp_path, said):
    model = gelu_loop()
    saved = {"model": model.state_dict(), "chars": CHARACTERS, **said}
    ckpt = minigpt.load_checkpoint(foreign.save(saved, tmp_path / "x.pt"))
    assert (ckpt.config.activation, ckpt.assumed) == ("gelu", ())
    with torch.no_grad():
        assert_computes(ckpt, *model(IDX))


def test_an_activation_that_nothing_states_is_marked_as_assumed_and_can_be_given(tmp_path):
    model = gelu_loop()
    path = foreign.save(model.state_dict(), tmp_path / "x.pt")
    ckpt = minigpt.load_checkpoint(path, text=CHARACTERS)
    assert (ckpt.config.activation, ckpt.assumed) == ("relu", ("activation",))
    given = minigpt.load_checkpoint(path, text=CHARACTERS, activation="gelu")
    assert given.assumed == ()
    other = with_activation(ckpt, "gelu")
    with torch.no_grad():
        for each in (given, other):
            assert_computes(each, *model(IDX))
        assert torch.allclose(ckpt.model(IDX)[0], LOOPS["transformer"](IDX)[0], atol=1e-5)  # left as it was
    assert other.assumed == ("activation",)
    (tmp_path / "config.json").write_text(json.dumps({"activation": "gelu"}))
    assert minigpt.load_checkpoint(path, text=CHARACTERS).config.activation == "gelu"
    state = {name: tensor for name, tensor in model.state_dict().items() if "tril" not in name}
    (tmp_path / "safe").mkdir()
    save_file(state, tmp_path / "safe" / "model.safetensors")
    (tmp_path / "safe" / "config.json").write_text(json.dumps({"activation": "gelu", "chars": CHARACTERS}))
    assert minigpt.load_checkpoint(tmp_path / "safe").config.activation == "gelu"


def test_only_models_with_a_feed_forward_network_have_an_activation_to_assume(tmp_path):
    path = foreign.save(LOOPS["multi-head"].state_dict(), tmp_path / "x.pt")
    assert minigpt.load_checkpoint(path, text=CHARACTERS).assumed == ()


def test_heads_that_a_file_does_not_show_can_be_given(tmp_path):
    model = foreign.gpt2("gelu")
    path = foreign.save(foreign.nanogpt(model)["model"], tmp_path / "ckpt.pt")
    assert_computes(minigpt.load_checkpoint(path, text=CHARACTERS, n_head=HEADS), *foreign.computed(model))


def test_what_is_given_must_not_contradict_the_file(tmp_path):
    model = minigpt.TransformerLanguageModel(VOCABULARY, BLOCK, WIDTH, HEADS, LAYERS)
    minigpt.save_checkpoint(tmp_path / "ours", model, CharTokenizer(CHARACTERS))
    path = foreign.save({"model": LOOPS["transformer"].state_dict(), "act": "relu"}, tmp_path / "x.pt")
    for given, said in (({"activation": "gelu"}, "its activation is relu"), ({"n_head": 2}, "its n_head is 3")):
        for source in (path, tmp_path / "ours"):
            with pytest.raises(CheckpointError, match=said) as caught:
                minigpt.load_checkpoint(source, text=CHARACTERS, **given)
            assert caught.value.code == "given_differs"
    with pytest.raises(ConfigError, match="n_head is 0"):
        minigpt.load_checkpoint(path, text=CHARACTERS, n_head=0)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("prefix", ["", "_orig_mod.", "module._orig_mod."])
def test_nanogpt_opens_with_its_meta_pickle(tmp_path, bias, prefix):
    model = foreign.gpt2("gelu")
    foreign.save(foreign.nanogpt(model, bias=bias, prefix=prefix), tmp_path / "ckpt.pt")
    foreign.write_meta(tmp_path)
    ckpt = minigpt.load_checkpoint(tmp_path)
    assert ckpt.detected == "nanogpt"
    assert (ckpt.config.tied, ckpt.config.bias, ckpt.config.qkv_bias) == (True, bias, bias)
    assert ckpt.config.activation == "gelu"
    assert_computes(ckpt, *foreign.computed(model))


def test_nanogpts_buffers_of_masks_are_compared_and_left_out(tmp_path):
    model = foreign.gpt2("gelu")
    saved = foreign.nanogpt(model)
    for layer in range(LAYERS):
        saved["model"][f"transformer.h.{layer}.attn.bias"] = torch.ones(BLOCK, BLOCK).tril().view(1, 1, BLOCK, BLOCK)
    saved["meta"] = {"chars": CHARACTERS}
    assert_computes(minigpt.load_checkpoint(foreign.save(saved, tmp_path / "x.pt")), *foreign.computed(model))


def test_rows_that_pad_nanogpts_vocabulary_are_left_out(tmp_path):
    model = foreign.gpt2("gelu")
    path = foreign.save(foreign.nanogpt(model, padded=64), tmp_path / "ckpt.pt")
    (tmp_path / "meta.json").write_text(json.dumps({"itos": dict(enumerate(CHARACTERS))}))
    ckpt = minigpt.load_checkpoint(path)
    assert ckpt.padding == 64 - VOCABULARY
    assert_computes(ckpt, *foreign.computed(model))


def test_rows_that_pad_a_vocabulary_are_left_out_with_the_training_text_as_well(tmp_path):
    model = foreign.gpt2("gelu")
    path = foreign.save(foreign.nanogpt(model, padded=64), tmp_path / "ckpt.pt")
    ckpt = minigpt.load_checkpoint(path, text=CHARACTERS * 2)
    assert ckpt.padding == 64 - VOCABULARY
    assert_computes(ckpt, *foreign.computed(model))


def test_mingpt_opens_with_the_heads_that_its_config_says(tmp_path):
    model = foreign.gpt2("gelu_new", tied=False)
    foreign.save(foreign.nanogpt(model)["model"], tmp_path / "model.pt")
    (tmp_path / "config.json").write_text(json.dumps({"model": {"model_type": "gpt-nano", "n_layer": None}}))
    foreign.write_character_tokenizer(tmp_path)
    ckpt = minigpt.load_checkpoint(tmp_path / "model.pt")
    assert (ckpt.detected, ckpt.config.n_head, ckpt.config.activation) == ("mingpt", 3, "gelu_tanh")
    assert_computes(ckpt, *foreign.computed(model))


def test_the_first_mingpt_opens(tmp_path):
    model = foreign.gpt2("gelu", tied=False)
    saved = {"state_dict": foreign.old_mingpt(model), "n_head": HEADS, "stoi": STOI}
    ckpt = minigpt.load_checkpoint(foreign.save(saved, tmp_path / "x.pt"))
    assert (ckpt.detected, ckpt.config.tied) == ("mingpt", False)
    assert_computes(ckpt, *foreign.computed(model))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("format", ["safetensors", "bin"])
def test_a_gpt2_folder_of_transformers_opens(tmp_path, activation, tied, format):
    model = foreign.gpt2(activation, tied=tied, epsilon=1e-3)
    model.save_pretrained(tmp_path)
    if format == "bin":
        (tmp_path / "model.safetensors").unlink()
        foreign.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    foreign.write_character_tokenizer(tmp_path)
    ckpt = minigpt.load_checkpoint(tmp_path)
    assert (ckpt.detected, ckpt.config.activation, ckpt.config.tied) == ("gpt2", ACTIVATIONS[activation], tied)
    assert ckpt.config.layer_norm_epsilon == 1e-3
    assert {name: getattr(ckpt.config, name) for name in EVERY_BIAS} == EVERY_BIAS
    assert_computes(ckpt, *foreign.computed(model))


def test_a_gpt2_without_prefix_and_head_opens_as_the_oldest_on_the_hub_are(tmp_path):
    model = foreign.gpt2()
    model.save_pretrained(tmp_path)
    state = {f"h.{layer}.attn.bias": torch.ones(1, 1, BLOCK, BLOCK).tril() for layer in range(LAYERS)}
    state |= {f"h.{layer}.attn.masked_bias": torch.tensor(-1e4) for layer in range(LAYERS)}
    state |= {name: tensor.contiguous() for name, tensor in model.transformer.state_dict().items()}
    save_file(state, tmp_path / "model.safetensors")
    foreign.write_character_tokenizer(tmp_path)
    assert_computes(minigpt.load_checkpoint(tmp_path), *foreign.computed(model))


def test_one_safetensors_file_opens_with_its_settings_in_its_metadata_or_beside_it(tmp_path):
    state = {name: tensor for name, tensor in LOOPS["transformer"].state_dict().items() if "tril" not in name}
    settings = json.dumps({"n_head": HEADS, "chars": CHARACTERS})
    save_file(state, tmp_path / "inside.safetensors", metadata={"config": settings})
    save_file(state, tmp_path / "outside.safetensors")
    (tmp_path / "outside.json").write_text(settings)
    for name in ("inside", "outside"):
        ckpt = minigpt.load_checkpoint(tmp_path / f"{name}.safetensors")
        assert_computes(ckpt, *loop_computed("transformer"))


def test_our_own_weights_open_by_their_file_as_by_their_folder(tmp_path):
    model = minigpt.MultiHeadAttentionLanguageModel(VOCABULARY, BLOCK, WIDTH, HEADS).eval()
    minigpt.save_checkpoint(tmp_path, model, CharTokenizer(CHARACTERS))
    with torch.no_grad():
        logits, _, weights = model(IDX, return_weights=True)
    ckpt = minigpt.load_checkpoint(tmp_path / "model.safetensors")
    assert ckpt.detected == "minigpt"
    assert_computes(ckpt, logits, weights)


def test_the_name_of_a_file_says_nothing(tmp_path):
    path = foreign.save(LOOPS["transformer"].state_dict(), tmp_path / "notes.safetensors")
    assert_computes(minigpt.load_checkpoint(path, text=CHARACTERS), *loop_computed("transformer"))


def in_shards(folder, state, *, zipped=None):
    """Write parameters over three files with an index, as transformers writes large models."""
    kind, base = ("safetensors", "model") if zipped is None else ("bin", "pytorch_model")
    files = {name: f"{base}-{index % 3 + 1:05d}-of-00003.{kind}" for index, name in enumerate(state)}
    for file in set(files.values()):
        part = {name: tensor.contiguous() for name, tensor in state.items() if files[name] == file}
        if zipped is None:
            save_file(part, folder / file)
        else:
            foreign.save(part, folder / file, _use_new_zipfile_serialization=zipped)
    index = folder / f"{base}.{kind}.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": files}))
    return index


@pytest.mark.parametrize("zipped", [None, True, False])
def test_a_gpt2_over_several_files_opens_by_its_folder_and_by_any_of_them(tmp_path, zipped):
    model = foreign.gpt2()
    model.config.save_pretrained(tmp_path)
    index = in_shards(tmp_path, model.transformer.state_dict(), zipped=zipped)
    foreign.write_character_tokenizer(tmp_path)
    shard = next(path for path in tmp_path.iterdir() if "00002-of" in path.name)
    for path in (tmp_path, index, shard):
        ckpt = minigpt.load_checkpoint(path)
        assert ckpt.detected == "gpt2"
        assert_computes(ckpt, *foreign.computed(model))


def test_transformers_own_shards_open(tmp_path):
    model = foreign.gpt2(tied=False)
    model.save_pretrained(tmp_path, max_shard_size="9KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    foreign.write_character_tokenizer(tmp_path)
    assert_computes(minigpt.load_checkpoint(tmp_path), *foreign.computed(model))
