"""The settings of a model as other programs note them: found, renamed, and their values understood."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from minigpt.errors import CheckpointError
from minigpt.formats.names import (
    ACTIVATION_SWITCHES,
    ACTIVATIONS,
    MINGPT_HEADS,
    REFUSED_GPT2_SETTINGS,
    SETTINGS,
    SETTINGS_INSIDE,
)

NUMBERS = ("vocab_size", "block_size", "n_embd", "n_head", "n_layer")
LARGEST = 2**31
"""Numbers in settings are smaller."""
SWITCHES = ("bias", "qkv_bias", "head_bias", "tied")


def stated_settings(saved: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return what a saved dict, or a config.json, says about its model, under the names of `ModelConfig`.

    What stands outside counts before what stands in an entry such as `model_args`.

    Raises:
        CheckpointError: `unsupported_setting` if it asks for a non-linearity that this program has not.
    """
    places = [saved, *(saved.get(name) for name in SETTINGS_INSIDE)]
    stated: dict[str, Any] = {}
    for place in places:
        if isinstance(place, dict):
            for name, value in _stated_here(cast(dict[str, Any], place), path).items():
                stated.setdefault(name, value)
    return stated


def _stated_here(place: Mapping[str, Any], path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, spellings in SETTINGS.items():
        value = next((place[spelling] for spelling in spellings if spelling in place), None)
        if type(value) is int and abs(value) >= LARGEST:
            allowed = f"below {LARGEST:,}"
            raise CheckpointError("unsupported_setting", path=path, name=name, value="huge", allowed=allowed)
        if (name in NUMBERS and type(value) is int) or (name in SWITCHES and isinstance(value, bool)):
            found[name] = value
        elif name == "activation" and isinstance(value, str):
            found[name] = understood_activation(value, path)
        elif name in ("layer_norm_epsilon", "dropout") and isinstance(value, int | float):
            found[name] = float(value)
    if "activation" not in found:
        switch = next((name for name in ACTIVATION_SWITCHES if isinstance(place.get(name), bool)), None)
        if switch is not None:
            found["activation"] = ACTIVATION_SWITCHES[switch][0 if place[switch] else 1]
    model_type = place.get("model_type")
    if "n_head" not in found and isinstance(model_type, str) and model_type in MINGPT_HEADS and len(place) < 12:
        found["n_head"] = MINGPT_HEADS[model_type]
    return found


def with_given(stated: Mapping[str, Any], given: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return what a file says about its model, and what a person says where the file does not.

    Raises:
        CheckpointError: `given_differs` if the two contradict each other.
    """
    for name, value in given.items():
        if stated.get(name, value) != value:
            raise CheckpointError("given_differs", path=path, name=name, given=value, found=stated[name])
    return {**stated, **given}


def understood_activation(name: str, path: Path) -> str:
    """Return a non-linearity as `ModelConfig` spells it; `nn.GELU()`, `F.gelu` and the like are understood.

    Raises:
        CheckpointError: `unsupported_setting` if this program has not got it.
    """
    key, _, arguments = name.lower().strip().removesuffix(")").partition("(")
    key = key.rpartition(".")[2].strip()
    if key == "gelu" and "tanh" in arguments:
        key = "gelu_tanh"
    if key not in ACTIVATIONS:
        raise CheckpointError(
            "unsupported_setting", path=path, name="activation", value=repr(name), allowed=", ".join(ACTIVATIONS)
        )
    return ACTIVATIONS[key]


def check_gpt2_config(described: Mapping[str, Any], path: Path) -> None:
    """Refuse a Hugging Face config.json of another architecture, or with settings that change what is computed.

    Raises:
        CheckpointError: `other_architecture` or `unsupported_setting`.
    """
    model_type: object = described.get("model_type")
    if model_type != "gpt2":
        names: object = described.get("architectures")
        named = ", ".join(map(str, cast(list[Any], names))) if isinstance(names, list) else str(model_type)
        raise CheckpointError("other_architecture", path=path, name=named)
    for name, allowed in REFUSED_GPT2_SETTINGS.items():
        value = described.get(name, allowed[0])
        if value not in allowed:
            listed = ", ".join(map(repr, allowed))
            raise CheckpointError("unsupported_setting", path=path, name=name, value=repr(value), allowed=listed)
    inner, width = described.get("n_inner"), described.get("n_embd")
    if inner is not None and isinstance(width, int) and abs(width) < LARGEST and inner != 4 * width:
        raise CheckpointError(
            "unsupported_setting", path=path, name="n_inner", value=repr(inner), allowed=repr(4 * width)
        )
