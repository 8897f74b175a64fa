"""ModelConfig: what describes a model is complete, checked as a whole, and survives JSON."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigpt.config import LONGEST_WINDOW, ModelConfig
from minigpt.errors import ConfigError

SIZES = {"vocab_size": 11, "block_size": 7, "n_embd": 15}


@st.composite
def settings(draw):
    kind = draw(st.sampled_from(["transformer", "multi-head", "single-head"]))
    n_head = 1 if kind == "single-head" else draw(st.integers(1, 12))
    return {
        "kind": kind,
        "vocab_size": draw(st.integers(1, 10**6)),
        "block_size": draw(st.integers(1, LONGEST_WINDOW)),
        "n_embd": n_head * draw(st.integers(1, 500)),
        "n_head": n_head,
        "n_layer": draw(st.integers(1, 99)) if kind == "transformer" else 1,
        "dropout": draw(st.floats(0, 1, exclude_max=True)),
        "activation": draw(st.sampled_from(["relu", "gelu", "gelu_tanh"])),
        "qkv_bias": draw(st.booleans()),
        "bias": draw(st.booleans()),
        "head_bias": draw(st.booleans()),
        "tied": draw(st.booleans()),
        "layer_norm_epsilon": draw(st.floats(0, 1, exclude_min=True)),
    }


@given(settings())
def test_a_configuration_survives_json(settings):
    config = ModelConfig(**settings)
    read = ModelConfig.from_dict(json.loads(json.dumps(config.to_dict())))
    assert read == config
    assert read.to_dict() == settings


def test_what_is_left_out_is_what_the_chapters_do():
    config = ModelConfig(**SIZES)
    assert (config.kind, config.n_head, config.n_layer, config.dropout) == ("transformer", 1, 1, 0.0)
    assert (config.activation, config.qkv_bias, config.bias, config.head_bias) == ("relu", False, True, True)
    assert (config.tied, config.layer_norm_epsilon) == (False, 1e-5)


def test_head_size_is_the_share_of_one_head():
    assert ModelConfig(**SIZES, n_head=3).head_size == 5


def test_a_configuration_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ModelConfig(**SIZES).n_embd = 30


@pytest.mark.parametrize(
    ("wrong", "code", "named"),
    [
        ({"kind": "bert"}, "not_a_choice", "'bert'"),
        ({"activation": "swish"}, "not_a_choice", "'swish'"),
        ({"vocab_size": 0}, "not_a_positive_integer", "vocab_size is 0"),
        ({"block_size": 2.0}, "not_a_positive_integer", "block_size is 2.0"),
        ({"n_embd": True}, "not_a_positive_integer", "n_embd is True"),
        ({"n_layer": "4"}, "not_a_positive_integer", "n_layer is '4'"),
        ({"bias": 1}, "not_true_or_false", "bias is 1"),
        ({"dropout": 1.0}, "dropout_out_of_range", "dropout is 1.0"),
        ({"dropout": float("nan")}, "dropout_out_of_range", "nan"),
        ({"dropout": "0.1"}, "dropout_out_of_range", "0.1"),
        ({"layer_norm_epsilon": 0}, "epsilon_out_of_range", "layer_norm_epsilon is 0"),
        ({"n_head": 4}, "heads_do_not_divide", "n_embd must be divisible by n_head"),
        ({"kind": "single-head", "n_head": 3}, "one_only", "n_head; 3"),
        ({"kind": "multi-head", "n_head": 3, "n_layer": 2}, "one_only", "n_layer; 2"),
        ({"n_heads": 3}, "unknown_settings", "n_heads"),
    ],
)
def test_what_cannot_work_is_refused_by_name(wrong, code, named):
    with pytest.raises(ConfigError) as caught:
        ModelConfig.from_dict({**SIZES, **wrong})
    assert caught.value.code == code
    assert named in str(caught.value)


def test_missing_sizes_are_named():
    with pytest.raises(ConfigError, match="lacks block_size, n_embd"):
        ModelConfig.from_dict({"vocab_size": 11})
