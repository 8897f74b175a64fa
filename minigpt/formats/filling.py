"""A model whose every parameter comes from a file. Nothing of it was ever drawn at random.

The model is built without drawing its first numbers, so that its memory is not touched yet, compared with what the file
holds, and then each parameter is put in its place as it comes. So loading takes the memory of the model, and no model
comes out in which one is missing. (PyTorch's `meta` device would do as well, but takes seconds and 70 MB to import.)
"""

from collections.abc import Callable, Iterable, Mapping, Set
from math import prod
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from minigpt.config import ModelConfig
from minigpt.errors import CheckpointError
from minigpt.formats.files import named
from minigpt.model import FusedHeads, LanguageModel, build_model

LM_HEAD = "lm_head.weight"
DRAWING = ("kaiming_uniform_", "uniform_", "normal_", "ones_", "zeros_", "fill_")
"""What the layers of a model call to set their first numbers."""
SQUARES = {"transformer": 12, "multi-head": 4, "single-head": 3}
"""Matrices of n_embd × n_embd numbers that a layer holds, in all."""


def filled_model(
    config: ModelConfig, shapes: Mapping[str, tuple[int, ...]], tensors: Iterable[tuple[str, Tensor]], path: Path
) -> LanguageModel:
    """Return a model in eval mode whose every parameter comes from the tensors.

    Args:
        config: The architecture.
        shapes: The shape of each parameter that will come, under the chapters' names; a tied `lm_head` does not come.
        tensors: The parameters, in any order, finite and float32. They become the model's own.
        path: Where they come from, for messages.

    Raises:
        CheckpointError: `checkpoint_keys` or `checkpoint_shape` before the first tensor is asked for; whatever asking
            raises.
    """
    _check_sizes(config, shapes, path)
    with _Undrawn():
        model = build_model(config)
    expected = {name: tuple(tensor.shape) for name, tensor in model.tensors_by_name().items()}
    if config.tied:
        del expected[LM_HEAD]
    _check_names(expected.keys(), shapes.keys(), path)
    for name, shape in shapes.items():
        _check_shape(name, shape, expected[name], path)
    _put(model, tensors)
    return model.eval()


def _put(model: LanguageModel, tensors: Iterable[tuple[str, Tensor]]) -> None:
    """Give a model that has no memory yet its parameters, and the masks that belong to it."""
    places: dict[str, Tensor] = {}
    for name, heads in cast(Iterable[tuple[str, nn.Module]], model.named_modules()):
        if isinstance(heads, FusedHeads):
            places |= heads.by_head(f"{name}.")
    for name, tensor in tensors:
        if name in places:
            places[name].copy_(tensor)
        else:
            owner, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(owner), attribute, nn.Parameter(tensor.contiguous()))
    if model.config.tied:
        model.lm_head.weight = model.token_embedding_table.weight


class _Undrawn(TorchFunctionMode):
    """In this context, layers leave their parameters as memory happens to be."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401 (torch's signature)
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 (torch's signature)
        """Do what was asked for, unless it draws or fills."""
        named = kwargs or {}
        if func.__name__ in DRAWING:
            return args[0] if args else named["tensor"]
        return func(*args, **named)


def _check_sizes(config: ModelConfig, shapes: Mapping[str, tuple[int, ...]], path: Path) -> None:
    """Refuse a configuration that the file cannot fill, before even the names of its parameters are made."""
    for name, rows in (("token", config.vocab_size), ("position", config.block_size)):
        key = f"{name}_embedding_table.weight"
        if key not in shapes:
            _check_names({key}, set(), path)
        _check_shape(key, shapes[key], (rows, config.n_embd), path)
    if config.n_layer * config.n_head > len(shapes):
        last = f"blocks.{config.n_layer - 1}.ln1.weight"
        last_head = f"blocks.0.sa.heads.{config.n_head - 1}.key.weight"
        _check_names({last, last_head} - shapes.keys() or {"…"}, set(), path)
    needed, held = SQUARES[config.kind] * config.n_layer * config.n_embd**2, sum(map(prod, shapes.values()))
    if held < needed:
        reason = f"it needs more than {needed:,} numbers, and {path.name} holds {held:,}."
        raise CheckpointError("checkpoint_config", path=path, reason=reason)


def _check_names(expected: Set[str], got: Set[str], path: Path) -> None:
    if expected != got:
        missing, unexpected = named(sorted(expected - got)), named(sorted(got - expected))
        raise CheckpointError("checkpoint_keys", path=path, missing=missing, unexpected=unexpected)


def _check_shape(name: str, got: tuple[int, ...], expected: tuple[int, ...], path: Path) -> None:
    if got != expected:
        raise CheckpointError("checkpoint_shape", name=name, path=path, got=got, expected=expected)
