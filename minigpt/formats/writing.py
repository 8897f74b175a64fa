"""Our models as other programs read them: a `ckpt.pt` of nanoGPT, a GPT-2 folder of Hugging Face.

What those cannot say is refused; what they can say in another way is said so: a missing bias is a bias of zeros, and
the bias of `lm_head` moves into the last LayerNorm's where the vocabulary is no larger than the embedding is wide.
"""

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any, cast

import torch
from safetensors.torch import save as safetensors_bytes
from torch import Tensor

from minigpt.config import Activation, ModelConfig
from minigpt.errors import CheckpointError
from minigpt.formats.names import GPT2, NANOGPT, Layout
from minigpt.formats.pickles import plain_pickle
from minigpt.model import LanguageModel
from minigpt.subwords import SubwordTokenizer, character_tokenizer_json
from minigpt.tokenizer import CharTokenizer, Tokenizer

Files = dict[str, bytes]

GPT2_ACTIVATIONS: Mapping[Activation, str] = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new"}


def nanogpt_files(model: LanguageModel, tokenizer: Tokenizer) -> Files:
    """Return `ckpt.pt`, and the vocabulary as `meta.pkl` or `tokenizer.json`, by name.

    Raises:
        CheckpointError: `not_exportable`, naming what nanoGPT has not.
    """
    config = model.config
    needed = {"kind": "transformer", "activation": "gelu", "tied": True, "layer_norm_epsilon": 1e-5}
    _check_exportable("nanogpt", config, needed)
    biases = config.bias or config.qkv_bias or config.head_bias
    tensors = _foreign_tensors(model, NANOGPT, biases=biases)
    saved: dict[str, Any] = {
        "model": {name if name.startswith("lm_head") else f"transformer.{name}": value for name, value in tensors},
        "model_args": {
            **{"n_layer": config.n_layer, "n_head": config.n_head, "n_embd": config.n_embd},
            **{"block_size": config.block_size, "vocab_size": config.vocab_size},
            **{"bias": biases, "dropout": config.dropout},
        },
        "iter_num": 0,
        "best_val_loss": 1e9,
        "config": {},
    }
    buffer = BytesIO()
    torch.save(saved, buffer)
    files: Files = {"ckpt.pt": buffer.getvalue()}
    if isinstance(tokenizer, CharTokenizer):
        meta = {"vocab_size": tokenizer.vocab_size, "itos": tokenizer.itos, "stoi": tokenizer.stoi}
        files["meta.pkl"] = plain_pickle(meta)
    else:
        files["tokenizer.json"] = tokenizer_json(tokenizer)
    return files


def gpt2_files(model: LanguageModel, tokenizer: Tokenizer) -> Files:
    """Return the files of a folder that `transformers` loads as a GPT-2, by name.

    Raises:
        CheckpointError: `not_exportable`, naming what a GPT-2 has not.
    """
    config = model.config
    _check_exportable("gpt2", config, {"kind": "transformer"})
    tensors = {
        name if name.startswith("lm_head") else f"transformer.{name}": tensor
        for name, tensor in _foreign_tensors(model, GPT2, biases=True)
        if not (config.tied and name == "lm_head.weight")
    }
    described: dict[str, Any] = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "activation_function": GPT2_ACTIVATIONS[config.activation],
        **{"vocab_size": config.vocab_size, "n_positions": config.block_size, "n_embd": config.n_embd},
        **{"n_head": config.n_head, "n_layer": config.n_layer, "n_inner": None},
        **dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), config.dropout),
        "layer_norm_epsilon": config.layer_norm_epsilon,
        "tie_word_embeddings": config.tied,
        **{"bos_token_id": None, "eos_token_id": None},
    }
    return {
        "config.json": json.dumps(described, indent=2).encode(),
        "model.safetensors": safetensors_bytes(tensors, metadata={"format": "pt"}),
        "tokenizer.json": tokenizer_json(tokenizer),
        "tokenizer_config.json": json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}).encode(),
    }


def tokenizer_json(tokenizer: Tokenizer) -> bytes:
    """Return the content of a `tokenizer.json`."""
    if isinstance(tokenizer, SubwordTokenizer):
        return tokenizer.to_dict()["json"].encode()
    pieces = [tokenizer.piece(token_id) for token_id in range(tokenizer.vocab_size)]
    return character_tokenizer_json(pieces).encode()


def _check_exportable(layout: str, config: ModelConfig, needed: Mapping[str, object]) -> None:
    for name, value in needed.items():
        if getattr(config, name) != value:
            raise CheckpointError("not_exportable", layout=layout, name=name, value=getattr(config, name), needed=value)


def _foreign_tensors(model: LanguageModel, layout: Layout, *, biases: bool) -> list[tuple[str, Tensor]]:
    """Return the parameters under the names of a layout, zeros for biases that the model has not."""
    config = model.config
    state = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    if config.head_bias:
        state["ln_f.bias"] = _with_head_bias(state, layout.name)
    named: list[tuple[str, Tensor]] = []
    for row in layout.rows:
        if row.when == "may" or (row.when in ("bias", "qkv_bias") and not biases):
            continue
        sizes = {"C": config.n_embd, "3C": 3 * config.n_embd, "4C": 4 * config.n_embd}
        for layer in range(config.n_layer if "{layer}" in row.source else 1):
            target = row.target.format(layer=layer)
            if row.source in layout.spread:
                tensor = _gathered(state, layer, config.n_head, row.source.rpartition(".")[2])
            else:
                tensor = state.get(target)
            if tensor is None:
                tensor = torch.zeros(sizes[row.shape])
            tensor = tensor.T.contiguous() if row.source in layout.transposed else tensor.clone()
            named.append((row.source.format(layer=layer), tensor))
    if config.tied:
        tied = dict(named)["wte.weight"]
        named = [(name, tied if name == "lm_head.weight" else tensor) for name, tensor in named]
    return named


def _gathered(state: Mapping[str, Tensor], layer: int, n_head: int, parameter: str) -> Tensor | None:
    """Return the queries of all heads, then their keys, then their values; None if the model has no such biases."""
    names = [
        f"blocks.{layer}.sa.heads.{head}.{kind}.{parameter}"
        for kind in ("query", "key", "value")
        for head in range(n_head)
    ]
    return torch.cat([state[name] for name in names]) if names[0] in state else None


def _with_head_bias(state: Mapping[str, Tensor], layout: str) -> Tensor:
    """Return the last LayerNorm's bias with that of `lm_head` moved into it.

    Raises:
        CheckpointError: `not_exportable` if no bias there does the same.
    """
    weight, bias = state["lm_head.weight"].double(), state["lm_head.bias"].double()
    solved = cast(Any, torch.linalg.lstsq(weight, bias[:, None], driver="gelsd"))
    moved = cast(Tensor, solved.solution)[:, 0]
    if float((weight @ moved - bias).abs().max()) > 1e-7 * (1 + float(bias.abs().max())):
        raise CheckpointError("not_exportable", layout=layout, name="head_bias", value=True, needed=False)
    before = state.get("ln_f.bias", torch.zeros(len(moved)))
    return (before.double() + moved).to(before.dtype)
