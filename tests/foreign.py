"""Models as other programs save them, small and random, and what those programs compute with them."""

import json
import pickle
import warnings

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from tests.reference import LoopMultiHead, LoopSingleHead, LoopTransformer, scattered

CHARACTERS = "\n !abcdefgh"
VOCABULARY, BLOCK, WIDTH, HEADS, LAYERS = len(CHARACTERS), 7, 12, 3, 4
IDX = torch.randint(VOCABULARY, (2, BLOCK), generator=torch.Generator().manual_seed(5))
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh"}


def loops():
    """Return the chapters' three models, one head at a time, by kind."""
    torch.manual_seed(3)
    return {
        "single-head": scattered(LoopSingleHead(VOCABULARY, BLOCK, WIDTH)).eval(),
        "multi-head": scattered(LoopMultiHead(VOCABULARY, BLOCK, WIDTH, HEADS, 0.2)).eval(),
        "transformer": scattered(LoopTransformer(VOCABULARY, BLOCK, WIDTH, HEADS, LAYERS, 0.2)).eval(),
    }


def gpt2(activation="gelu_new", *, tied=True, epsilon=1e-5, vocabulary=VOCABULARY):
    """Return a random GPT-2 of transformers, with plain attention."""
    config = GPT2Config(
        vocab_size=vocabulary,
        n_positions=BLOCK,
        n_embd=WIDTH,
        n_head=HEADS,
        n_layer=LAYERS,
        activation_function=activation,
        layer_norm_epsilon=epsilon,
        tie_word_embeddings=tied,
        attn_implementation="eager",
        bos_token_id=None,
        eos_token_id=None,
    )
    torch.manual_seed(4)
    return scattered(GPT2LMHeadModel(config), 0.2).eval()


def computed(model, idx=IDX):
    """Return logits (B, T, V) and weights (n_layer, B, n_head, T, T) of a GPT-2 of transformers."""
    with torch.no_grad():
        out = model(idx, output_attentions=True)
    return out.logits, torch.stack(out.attentions)


def nanogpt(model, *, bias=True, padded=0, prefix=""):
    """Return what nanoGPT saves of such a model: its layers are `Linear`, its head is tied."""
    with torch.no_grad():
        if not bias:
            for name, parameter in model.named_parameters():
                if name.endswith(".bias"):
                    parameter.zero_()
    state = {}
    for name, tensor in model.state_dict().items():
        if not bias and name.endswith(".bias"):
            continue
        matrix = any(part in name for part in ("c_attn.weight", "c_proj.weight", "c_fc.weight"))
        tensor = tensor.T.contiguous() if matrix else tensor.clone()
        if padded and name.endswith(("wte.weight", "lm_head.weight")):
            tensor = torch.cat([tensor, torch.ones(padded - len(tensor), WIDTH)])
        state[prefix + name] = tensor
    return {
        "model": state,
        "optimizer": {
            "state": {0: {"step": torch.tensor(9.0), "exp_avg": torch.ones(5)}},
            "param_groups": [{"lr": 1e-3}],
        },
        "model_args": {
            "n_layer": LAYERS,
            "n_head": HEADS,
            "n_embd": WIDTH,
            "block_size": BLOCK,
            "bias": bias,
            "vocab_size": padded or VOCABULARY,
            "dropout": 0.0,
        },
        "iter_num": 2000,
        "best_val_loss": torch.tensor(1.5),
        "config": {"dataset": "shakespeare_char", "always_save_checkpoint": False},
    }


def write_meta(folder):
    """Write nanoGPT's meta.pkl."""
    itos = dict(enumerate(CHARACTERS))
    meta = {"vocab_size": VOCABULARY, "itos": itos, "stoi": {char: index for index, char in itos.items()}}
    (folder / "meta.pkl").write_bytes(pickle.dumps(meta))


def old_mingpt(model):
    """Return the state dict that minGPT saved in its first version: separate layers, a mask, its own names."""
    state = model.state_dict()
    renamed = {
        "tok_emb.weight": state["transformer.wte.weight"],
        "pos_emb": state["transformer.wpe.weight"][None],
        "head.weight": state["lm_head.weight"],
        "ln_f.weight": state["transformer.ln_f.weight"],
        "ln_f.bias": state["transformer.ln_f.bias"],
    }
    for layer in range(LAYERS):
        there, here = f"transformer.h.{layer}", f"blocks.{layer}"
        for parameter in ("weight", "bias"):
            for old, new in (("ln_1", "ln1"), ("ln_2", "ln2")):
                renamed[f"{here}.{new}.{parameter}"] = state[f"{there}.{old}.{parameter}"]
            fused = state[f"{there}.attn.c_attn.{parameter}"]
            for kind, part in zip(("query", "key", "value"), fused.chunk(3, dim=-1), strict=True):
                renamed[f"{here}.attn.{kind}.{parameter}"] = part.t().contiguous()
            for old, new in (("attn.c_proj", "attn.proj"), ("mlp.c_fc", "mlp.0"), ("mlp.c_proj", "mlp.2")):
                renamed[f"{here}.{new}.{parameter}"] = state[f"{there}.{old}.{parameter}"].t().contiguous()
        renamed[f"{here}.attn.mask"] = torch.ones(BLOCK, BLOCK).tril()[None, None]
    return renamed


def write_character_tokenizer(folder):
    """Write a vocab.json of single characters."""
    (folder / "vocab.json").write_text(json.dumps({char: index for index, char in enumerate(CHARACTERS)}))


def save(value, path, **options):
    """Write with torch.save; its warnings are about it, not about what is read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(value, path, **options)
    return path
