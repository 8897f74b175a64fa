"""From a file's parameters to a model's: which layout they have, whether they are complete, and the chapters' names.

The sizes are read off the shapes; what a file says about itself must agree with them. Every parameter that the layout
asks for must be there with its shape, and nothing else may be, so that no number of a model is made up or left out.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from minigpt.config import ModelConfig
from minigpt.errors import CheckpointError, ConfigError
from minigpt.formats.files import damaged
from minigpt.formats.names import (
    GPT2,
    LAYOUTS,
    MINGPT,
    NANOGPT,
    OLD_MINGPT,
    Layout,
    Row,
    in_chapters_spelling,
    other_architecture,
    unwrapped,
)
from minigpt.formats.stored import Stored, read_parameter, reading

BY_TOKEN = ("token_embedding_table.weight", "lm_head.weight", "lm_head.bias")
"""The parameters that have one row for each token."""


@dataclass(frozen=True, kw_only=True)
class Translated:
    """A model's parameters under the chapters' names, still in their file.

    Attributes:
        layout: Where they come from.
        config: The architecture.
        parameters: Row of the layout's table, name in the file and tensor of each; no masks, and no tied `lm_head`.
        assumed: Settings that the parameters do not show and that nothing states, so that they are the layout's usual.
    """

    layout: Layout
    config: ModelConfig
    parameters: tuple[tuple[Row, str, Stored], ...]
    assumed: tuple[str, ...] = ()

    def with_tokens(self, count: int) -> "Translated":
        """Return the same model with the first rows of its vocabulary only."""
        parameters = tuple(
            (row, name, each.rows(count) if row.target in BY_TOKEN else each) for row, name, each in self.parameters
        )
        return replace(self, config=replace(self.config, vocab_size=count), parameters=parameters)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each parameter."""
        return {
            name: tuple(part.shape)
            for row, _, stored in self.parameters
            for name, part in self._renamed(row, torch.empty(()).expand(stored.size)).items()
        }

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Read the parameters as float32, one of the file's at a time.

        Raises:
            CheckpointError: As `read_parameter`.
        """
        for row, name, stored in self.parameters:
            yield from self._renamed(row, read_parameter(name, stored)).items()

    def _renamed(self, row: Row, tensor: Tensor) -> dict[str, Tensor]:
        return _renamed(self.layout, row, tensor, self.config.n_head)


class _Source(NamedTuple):
    """A file's parameters under names without wrappers, and the names that they have in the file."""

    path: Path
    tensors: dict[str, Stored]
    called: dict[str, str]

    def shape(self, name: str, dimensions: int) -> tuple[int, ...] | None:
        tensor = self.tensors.get(name)
        return tensor.size if tensor is not None and len(tensor.size) == dimensions else None

    def same(self, one: Stored, other: Stored | None) -> bool:
        with reading("lm_head", one):
            return other is not None and one.same_numbers(other)


def translate(
    given: Mapping[str, Stored], stated: Mapping[str, Any], path: Path, *, hugging_face: bool = False
) -> Translated:
    """Return the parameters of a file under the chapters' names, with the architecture that they make.

    Args:
        given: The tensors by the names that they have in the file.
        stated: What the file says about its model, under the names of `ModelConfig`; may be empty.
        path: The file, for messages.
        hugging_face: Whether a Hugging Face config.json lies beside it; then `lm_head` may be left out.

    Raises:
        CheckpointError: If the layout is unknown, or anything is missing, left over, misshapen, no floating-point
            number, or other than the file says. Whether the numbers are finite is not looked at.
    """
    layout, source = _recognised(given, path)
    sizes = _sizes(layout, source, stated)
    layout = _member_of_family(layout, source, stated, sizes["C"])
    rows = _spelled_out(layout, sizes)
    config = _config(layout, source, rows, sizes, stated, hugging_face=hugging_face)
    _check(source, rows, config, sizes)
    wanted = [row for row, _ in rows if row.source in source.tensors and row.when != "may"]
    if config.tied:
        wanted = [row for row in wanted if row.target != "lm_head.weight"]
    parameters = tuple((row, source.called[row.source], source.tensors[row.source]) for row in wanted)
    files = {each.storage.file: each.storage.file.size for each in given.values()}
    if sum(each.nbytes for _, _, each in parameters) > sum(files.values()):
        damaged(path, "several parameters share the same numbers")
    # Only a transformer has the feed-forward networks that the activation belongs to.
    assumed = ("activation",) if layout.kind == "transformer" and "activation" not in stated else ()
    return Translated(layout=layout, config=config, parameters=parameters, assumed=assumed)


def _recognised(given: Mapping[str, Stored], path: Path) -> tuple[Layout, _Source]:
    """Return the layout whose sign one of the names bears, and the tensors under names without wrappers."""
    called: dict[str, str] = {}
    bare = {name: unwrapped(name) for name in given}
    layouts = [each for each in LAYOUTS if any(re.search(each.sign, name) for name in bare.values())]
    if not any(each is NANOGPT or each is OLD_MINGPT for each in layouts):
        bare = {name: in_chapters_spelling(short) for name, short in bare.items()}
        layouts = [each for each in LAYOUTS if any(re.search(each.sign, name) for name in bare.values())]
    if len(layouts) != 1:
        other = other_architecture(list(given))
        if other is not None:
            raise CheckpointError("other_architecture", path=path, name=other)
        raise CheckpointError("unknown_parameters", path=path, names=_listed(set(given)))
    for name, short in bare.items():
        if short in called:
            raise CheckpointError(
                "parameters_differ", path=path, missing="–", unexpected=_listed({name, called[short]})
            )
        called[short] = name
    for name, stored in given.items():
        with reading(name, stored):
            stored.check()
    return layouts[0], _Source(path, {short: given[name] for short, name in called.items()}, called)


def _sizes(layout: Layout, source: _Source, stated: Mapping[str, Any]) -> dict[str, int]:
    """Return V, T, C, D, and the numbers of layers (L) and heads (H), read off names and shapes."""
    shapes = {row.target: source.shape(row.source, len(row.shape.split())) for row in layout.rows if row.target}
    tokens, positions = shapes["token_embedding_table.weight"], shapes["position_embedding_table.weight"]
    if tokens is None or positions is None:
        rows = [row.source for row in layout.rows if "embedding_table" in row.target]
        lacking = {name for name, shape in zip(rows, (tokens, positions), strict=True) if shape is None}
        raise CheckpointError("parameters_differ", path=source.path, missing=_listed(lacking), unexpected="–")
    layers, heads = _counted(layout, source, "layer"), _counted(layout, source, "head")
    _check_counts(layout, source, layers, heads)
    if layout.kind == "transformer" and not any("{head}" in row.source for row in layout.rows):
        if "n_head" not in stated:
            raise CheckpointError("heads_unknown", path=source.path, n_embd=tokens[1])
        heads = stated["n_head"]
    sizes = {"V": tokens[0], "T": positions[-2], "C": tokens[1], "L": layers, "H": heads}
    names = {"V": "vocab_size", "T": "block_size", "C": "n_embd", "L": "n_layer", "H": "n_head"}
    for letter, name in names.items():
        if name in stated and stated[name] != sizes[letter]:
            raise CheckpointError(
                "stated_differs", path=source.path, name=name, stated=stated[name], found=sizes[letter]
            )
    if sizes["H"] < 1 or sizes["C"] < 1 or sizes["C"] % sizes["H"]:
        reason = ConfigError("heads_do_not_divide", n_embd=sizes["C"], n_head=sizes["H"])
        raise CheckpointError("checkpoint_config", path=source.path, reason=reason)
    return sizes | {"D": sizes["C"] // sizes["H"]}


def _counted(layout: Layout, source: _Source, what: str) -> int:
    """Return how many layers or heads the names count, 1 if they count none.

    Raises:
        CheckpointError: `parameters_differ` if they leave a number out.
    """
    patterns = {_pattern(row.source, what) for row in layout.rows if f"{{{what}}}" in row.source}
    numbers = {
        int(found[1]) for name in source.tensors for pattern in patterns if (found := re.fullmatch(pattern, name))
    }
    if not patterns or not numbers:
        return 1
    if max(numbers) >= len(numbers):
        lacking = next(number for number in range(len(numbers)) if number not in numbers)
        missing = next(row.source for row in layout.rows if f"{{{what}}}" in row.source)
        missing = missing.replace(f"{{{what}}}", str(lacking))
        raise CheckpointError("parameters_differ", path=source.path, missing=missing, unexpected="–")
    return len(numbers)


def _check_counts(layout: Layout, source: _Source, layers: int, heads: int) -> None:
    """Refuse names that count more layers times heads than there are parameters, before a table of them is made."""
    row = next((row.source for row in layout.rows if "{head}" in row.source), None)
    if row is not None and layers * heads > len(source.tensors):
        every = (row.format(layer=layer, head=head) for layer in range(layers) for head in range(heads))
        missing = next(name for name in every if name not in source.tensors)
        raise CheckpointError("parameters_differ", path=source.path, missing=f"{missing}, …", unexpected="–")


def _pattern(name: str, what: str) -> str:
    escaped = re.escape(name).replace(re.escape(f"{{{what}}}"), r"(\d{1,9})")
    return re.sub(r"\\\{\w+\\\}", r"\\d{1,9}", escaped)


def _member_of_family(layout: Layout, source: _Source, stated: Mapping[str, Any], n_embd: int) -> Layout:
    """Tell nanoGPT, minGPT and GPT-2 apart, whose names are the same: by how matrices lie, then by the tied head."""
    if layout is not NANOGPT:
        return layout
    mixed = source.shape("h.0.attn.c_attn.weight", 2)
    if mixed == (n_embd, 3 * n_embd):
        return GPT2
    tokens, head = source.tensors["wte.weight"], source.tensors.get("lm_head.weight")
    untied = head is not None and not source.same(tokens, head)
    return MINGPT if untied and "bias" not in stated else NANOGPT


def _spelled_out(layout: Layout, sizes: Mapping[str, int]) -> list[tuple[Row, tuple[int, ...]]]:
    """Return the table for these sizes: a row for every layer and head, with its shape in the file."""
    spelled: list[tuple[Row, tuple[int, ...]]] = []
    for row in layout.rows:
        shape = tuple(_dimension(letter, sizes) for letter in row.shape.split())
        if row.source in layout.transposed:
            shape = shape[::-1]
        layers = range(sizes["L"]) if "{layer}" in row.source else range(1)
        heads = range(sizes["H"]) if "{head}" in row.source else range(1)
        for layer in layers:
            for head in heads:
                source, target = (name.format(layer=layer, head=head) for name in (row.source, row.target))
                spelled.append((row._replace(source=source, target=target), shape))
    return spelled


def _dimension(letter: str, sizes: Mapping[str, int]) -> int:
    return int(letter) if letter.isdecimal() else int(letter[:-1] or 1) * sizes[letter[-1]]


def _config(
    layout: Layout,
    source: _Source,
    rows: list[tuple[Row, tuple[int, ...]]],
    sizes: Mapping[str, int],
    stated: Mapping[str, Any],
    *,
    hugging_face: bool,
) -> ModelConfig:
    """Return the architecture: sizes from shapes, biases from names, the rest from what is stated."""
    there = {when: any(row.when == when and row.source in source.tensors for row, _ in rows) for when in SWITCHED}
    head = source.tensors.get(next(row.source for row, _ in rows if row.when == "untied"))
    tokens = source.tensors[next(row.source for row, _ in rows if row.target == "token_embedding_table.weight")]
    tied = source.same(tokens, head)
    if head is None:
        tied = stated.get("tied", hugging_face)
    elif "tied" in stated and stated["tied"] and not tied and hugging_face:
        raise CheckpointError("stated_differs", path=source.path, name="tied", stated=True, found=False)
    # The chapters' lm_head and the layers below it have biases together. A file that has only the one or only the other
    # has lost some, unless it says otherwise or its head is tied.
    chapters = any(row.when == "head_bias" for row, _ in rows)
    bias = there["bias"] or (there["head_bias"] and stated.get("bias", True))
    head_bias = there["head_bias"] or (chapters and stated.get("head_bias", there["bias"] and not tied))
    if layout.kind == "single-head":
        bias, head_bias = True, there["head_bias"] or stated.get("head_bias", not tied)
    if not chapters:
        bias = stated.get("bias", there["bias"])
    settings = {
        "kind": layout.kind,
        **{"vocab_size": sizes["V"], "block_size": sizes["T"], "n_embd": sizes["C"]},
        **{"n_head": sizes["H"], "n_layer": sizes["L"]},
        "activation": stated.get("activation", layout.activation),
        "bias": bias,
        "qkv_bias": there["qkv_bias"],
        "head_bias": head_bias,
        "tied": tied,
        "layer_norm_epsilon": stated.get("layer_norm_epsilon", 1e-5),
    }
    try:
        return ModelConfig.from_dict(settings)
    except ConfigError as error:
        raise CheckpointError("checkpoint_config", path=source.path, reason=error) from error


SWITCHED = ("bias", "qkv_bias", "head_bias")


def _check(
    source: _Source,
    rows: list[tuple[Row, tuple[int, ...]]],
    config: ModelConfig,
    sizes: Mapping[str, int],
) -> None:
    """Refuse parameters that are missing, left over, misshapen, no floating-point numbers, or not finite."""
    switches = {
        "always": True,
        "may": False,
        "untied": not config.tied,
        **{name: getattr(config, name) for name in SWITCHED},
    }
    known = {row.source: (row, shape) for row, shape in rows}
    masks: set[Stored] = set()
    missing = {row.source for row, _ in rows if switches[row.when] and row.source not in source.tensors}
    unexpected = {source.called[name] for name in source.tensors.keys() - known.keys()}
    if missing or unexpected:
        listed = {"missing": _listed(missing), "unexpected": _listed(unexpected)}
        raise CheckpointError("parameters_differ", path=source.path, **listed)
    for name, tensor in source.tensors.items():
        row, shape = known[name]
        called = source.called[name]
        if tensor.size != shape and row.shape in ("4C C", "4C") and tensor.size[1:] == shape[1:]:
            found = {"found": tensor.size[0], "expected": shape[0]}
            raise CheckpointError("feed_forward_width", name=called, path=source.path, **found)
        if tensor.size != shape:
            raise CheckpointError("parameter_shape", name=called, path=source.path, got=tensor.size, expected=shape)
        if row.when == "may":
            if tensor not in masks:  # one that many heads share is compared once
                _check_mask(called, tensor, sizes["T"], source.path)
            masks.add(tensor)
            continue
        if not tensor.dtype.is_floating_point:
            got = str(tensor.dtype).removeprefix("torch.")
            raise CheckpointError("checkpoint_dtype", name=called, path=source.path, got=got)


def _check_mask(name: str, mask: Stored, block_size: int, path: Path) -> None:
    """Refuse a mask that is not the lower triangle of ones; a single number only fills what is masked."""
    if not mask.size:
        return
    first = 0
    with reading(name, mask):
        for piece in mask.pieces():
            cell = torch.arange(first, first + len(piece))
            if not torch.equal(piece == 1, cell % block_size <= cell // block_size):
                raise CheckpointError("mask_differs", name=name, path=path)
            first += len(piece)


def _renamed(layout: Layout, row: Row, tensor: Tensor, n_head: int) -> dict[str, Tensor]:
    """Return the parameters under the chapters' names that one parameter of the file becomes."""
    pattern = re.sub(r"\d+", "{layer}", row.source, count=1)
    if pattern in layout.transposed:
        tensor = tensor.T
    how = layout.spread.get(pattern)
    if how is None:
        return {row.target: tensor.reshape(tensor.shape[-2:]) if tensor.ndim == 3 else tensor}
    found = re.search(r"\d+", row.source)
    layer, parameter = found[0] if found else "0", row.source.rpartition(".")[2]
    kinds = ("query", "key", "value") if how == "qkv" else (how,)
    return {
        f"blocks.{layer}.sa.heads.{head}.{kind}.{parameter}": part
        for kind, rows in zip(kinds, tensor.chunk(len(kinds)), strict=True)
        for head, part in enumerate(rows.chunk(n_head))
    }


def _listed(names: set[str], most: int = 40) -> str:
    shown = ", ".join(sorted(names)[:most]) or "–"
    return f"{shown}, … ({len(names)})" if len(names) > most else shown
