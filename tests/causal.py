"""Small models of every kind for the tests of causal evidence, and one whose induction head is built by hand."""

import torch

from minigpt.checkpoint import Checkpoint
from minigpt.config import ModelConfig
from minigpt.model import TransformerLanguageModel, build_model
from minigpt.tokenizer import CharTokenizer
from tests.reference import scattered

TOKENIZER = CharTokenizer("abcdefghij\n ")
TEXT = "a bad cab\nfed"
VARIANTS = {
    "single-head": {"kind": "single-head", "n_embd": 10},
    "multi-head": {"kind": "multi-head", "n_embd": 15, "n_head": 5},
    "chapters": {"n_embd": 20, "n_head": 4, "n_layer": 3},
    "gelu": {"n_embd": 14, "n_head": 2, "n_layer": 3, "activation": "gelu", "qkv_bias": True},
    "no bias": {"n_embd": 21, "n_head": 3, "n_layer": 4, "bias": False, "head_bias": False},
    "gpt2": {
        "n_embd": 18,
        "n_head": 3,
        "n_layer": 4,
        "activation": "gelu_tanh",
        "qkv_bias": True,
        "head_bias": False,
        "tied": True,
    },
}


def checkpoint(variant="chapters", dtype=torch.float32, seed=21, block_size=16):
    """Return a random model of a kind, with every parameter far from where it would not show."""
    config = ModelConfig(vocab_size=TOKENIZER.vocab_size, block_size=block_size, **VARIANTS[variant])
    torch.manual_seed(seed)
    return Checkpoint(model=scattered(build_model(config), 0.35).to(dtype).eval(), tokenizer=TOKENIZER)


def induction_model():
    """Return a two-layer transformer that copies: L0H1 looks one token back, L1H0 at what followed the same token.

    The stream has three parts: token, position, token before. Every vector in it has the same number of ones, so
    LayerNorm only shifts and scales, and the shift is the same for all keys.
    """
    vocab, block, strength = TOKENIZER.vocab_size, 14, 300.0
    token, position, before = range(vocab), range(vocab, vocab + block), range(vocab + block, 2 * vocab + block)
    width = 2 * vocab + block
    model = TransformerLanguageModel(vocab, block, width, n_head=2, n_layer=2, qkv_bias=True)
    size = width // 2
    state = {name: torch.zeros_like(tensor) for name, tensor in model.state_dict().items() if "tril" not in name}
    for name in state:
        if name.endswith(("ln1.weight", "ln2.weight", "ln_f.weight")):
            state[name].fill_(1)
    state["token_embedding_table.weight"][:, list(token)] = torch.eye(vocab)
    state["position_embedding_table.weight"][:, list(position)] = torch.eye(block)

    back = "blocks.0.sa.heads.1"
    for place in range(1, block):
        state[f"{back}.query.weight"][place - 1, position[place]] = strength
    for place in range(block):
        state[f"{back}.key.weight"][place, position[place]] = 1
    for index in range(vocab):
        state[f"{back}.value.weight"][index, token[index]] = 1
        state["blocks.0.sa.proj.weight"][before[index], size + index] = 1

    same = "blocks.1.sa.heads.0"
    state[f"{same}.query.bias"][vocab] = strength
    state[f"{same}.key.weight"][vocab, position[0]] = -9  # the first token has none before it
    for index in range(vocab):
        state[f"{same}.query.weight"][index, token[index]] = strength
        state[f"{same}.key.weight"][index, before[index]] = 1
        state[f"{same}.value.weight"][index, token[index]] = 1
        state["blocks.1.sa.proj.weight"][token[index], index] = 9
        state["lm_head.weight"][index, token[index]] = 4
    model.load_state_dict(state)
    return Checkpoint(model=model.eval(), tokenizer=TOKENIZER)
