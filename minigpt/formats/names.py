"""What the parameters are called elsewhere, as tables: no code knows a foreign name but through these.

A row is the name of a parameter in a file, the name that the chapters give it, its shape, and when it must be there. In
names, `{layer}` and `{head}` count from 0. In shapes, V = vocab_size, T = block_size, C = n_embd, D = C / n_head; `3C`
and `4C` are multiples. A row without a chapters' name is spread over several: `qkv` holds the queries of all heads,
then the keys, then the values; `query`, `key` and `value` hold one of them for all heads.
"""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from minigpt.config import Activation, Kind

When = Literal["always", "bias", "qkv_bias", "head_bias", "untied", "may"]
"""When a parameter must be there; `may`: a mask, which is compared and left out."""


class Row(NamedTuple):
    """One parameter: its name in the file, the chapters' name, its shape, when it must be there."""

    source: str
    target: str
    shape: str
    when: When = "always"


class Layout(NamedTuple):
    """One way of naming parameters.

    Attributes:
        name: What it is called in `Checkpoint.detected`.
        kind: The kind of model.
        sign: A pattern; a file with any name that it matches has this layout.
        rows: The table.
        activation: What such models use unless their settings say otherwise.
        spread: The rows that are spread over several parameters, by their source names, and how.
        transposed: Source names of matrices that are stored input first.
    """

    name: str
    kind: Kind
    sign: str
    rows: tuple[Row, ...]
    activation: Activation = "relu"
    spread: Mapping[str, str] = {}
    transposed: frozenset[str] = frozenset()


def _heads(prefix: str) -> tuple[Row, ...]:
    heads = f"{prefix}.heads.{{head}}"
    return (
        *(Row(f"{heads}.{layer}.weight", f"{heads}.{layer}.weight", "D C") for layer in ("key", "query", "value")),
        *(
            Row(f"{heads}.{layer}.bias", f"{heads}.{layer}.bias", "D", "qkv_bias")
            for layer in ("key", "query", "value")
        ),
        Row(f"{heads}.tril", "", "T T", "may"),
        Row(f"{prefix}.proj.weight", f"{prefix}.proj.weight", "C C"),
        Row(f"{prefix}.proj.bias", f"{prefix}.proj.bias", "C", "bias"),
    )


def _same(name: str, shape: str, when: When = "always") -> Row:
    return Row(name, name, shape, when)


_EMBEDDINGS = (_same("token_embedding_table.weight", "V C"), _same("position_embedding_table.weight", "T C"))
_LM_HEAD = (_same("lm_head.weight", "V C", "untied"), _same("lm_head.bias", "V", "head_bias"))

SINGLE_HEAD = Layout(
    "chapters",
    "single-head",
    r"^sa_head\.(key|query|value)\.",
    (
        *_EMBEDDINGS,
        *(_same(f"sa_head.{layer}.weight", "C C") for layer in ("key", "query", "value")),
        *(_same(f"sa_head.{layer}.bias", "C", "qkv_bias") for layer in ("key", "query", "value")),
        Row("sa_head.tril", "", "T T", "may"),
        *_LM_HEAD,
    ),
)
MULTI_HEAD = Layout(
    "chapters", "multi-head", r"^sa_heads\.heads\.\d+\.", (*_EMBEDDINGS, *_heads("sa_heads"), *_LM_HEAD)
)
TRANSFORMER = Layout(
    "chapters",
    "transformer",
    r"^blocks\.\d+\.sa\.heads\.\d+\.",
    (
        *_EMBEDDINGS,
        *_heads("blocks.{layer}.sa"),
        _same("blocks.{layer}.ffwd.net.0.weight", "4C C"),
        _same("blocks.{layer}.ffwd.net.0.bias", "4C", "bias"),
        _same("blocks.{layer}.ffwd.net.2.weight", "C 4C"),
        _same("blocks.{layer}.ffwd.net.2.bias", "C", "bias"),
        *(_same(f"blocks.{{layer}}.{norm}.weight", "C") for norm in ("ln1", "ln2")),
        *(_same(f"blocks.{{layer}}.{norm}.bias", "C", "bias") for norm in ("ln1", "ln2")),
        _same("ln_f.weight", "C"),
        _same("ln_f.bias", "C", "bias"),
        *_LM_HEAD,
    ),
)

_GPT2_ROWS = (
    Row("wte.weight", "token_embedding_table.weight", "V C"),
    Row("wpe.weight", "position_embedding_table.weight", "T C"),
    Row("h.{layer}.ln_1.weight", "blocks.{layer}.ln1.weight", "C"),
    Row("h.{layer}.ln_1.bias", "blocks.{layer}.ln1.bias", "C", "bias"),
    Row("h.{layer}.attn.c_attn.weight", "", "3C C"),
    Row("h.{layer}.attn.c_attn.bias", "", "3C", "qkv_bias"),
    Row("h.{layer}.attn.c_proj.weight", "blocks.{layer}.sa.proj.weight", "C C"),
    Row("h.{layer}.attn.c_proj.bias", "blocks.{layer}.sa.proj.bias", "C", "bias"),
    Row("h.{layer}.attn.bias", "", "1 1 T T", "may"),
    Row("h.{layer}.attn.masked_bias", "", "", "may"),
    Row("h.{layer}.ln_2.weight", "blocks.{layer}.ln2.weight", "C"),
    Row("h.{layer}.ln_2.bias", "blocks.{layer}.ln2.bias", "C", "bias"),
    Row("h.{layer}.mlp.c_fc.weight", "blocks.{layer}.ffwd.net.0.weight", "4C C"),
    Row("h.{layer}.mlp.c_fc.bias", "blocks.{layer}.ffwd.net.0.bias", "4C", "bias"),
    Row("h.{layer}.mlp.c_proj.weight", "blocks.{layer}.ffwd.net.2.weight", "C 4C"),
    Row("h.{layer}.mlp.c_proj.bias", "blocks.{layer}.ffwd.net.2.bias", "C", "bias"),
    Row("ln_f.weight", "ln_f.weight", "C"),
    Row("ln_f.bias", "ln_f.bias", "C", "bias"),
    Row("lm_head.weight", "lm_head.weight", "V C", "untied"),
)
_GPT2_SPREAD = {"h.{layer}.attn.c_attn.weight": "qkv", "h.{layer}.attn.c_attn.bias": "qkv"}
_GPT2_SIGN = r"^h\.\d+\.attn\.c_attn\."
NANOGPT = Layout("nanogpt", "transformer", _GPT2_SIGN, _GPT2_ROWS, "gelu", _GPT2_SPREAD)
MINGPT = Layout("mingpt", "transformer", _GPT2_SIGN, _GPT2_ROWS, "gelu_tanh", _GPT2_SPREAD)
GPT2 = Layout(
    "gpt2",
    "transformer",
    _GPT2_SIGN,
    _GPT2_ROWS,
    "gelu_tanh",
    _GPT2_SPREAD,
    frozenset(f"h.{{layer}}.{name}.weight" for name in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")),
)
"""The layout of Hugging Face's GPT-2, whose `Conv1D` layers keep their matrices input first."""

_OLD_ATTENTION = "blocks.{layer}.attn"
OLD_MINGPT = Layout(
    "mingpt",
    "transformer",
    r"^blocks\.\d+\.attn\.(key|query|value)\.",
    (
        Row("tok_emb.weight", "token_embedding_table.weight", "V C"),
        Row("pos_emb", "position_embedding_table.weight", "1 T C"),
        *(Row(f"{_OLD_ATTENTION}.{layer}.weight", "", "C C") for layer in ("key", "query", "value")),
        *(Row(f"{_OLD_ATTENTION}.{layer}.bias", "", "C", "qkv_bias") for layer in ("key", "query", "value")),
        Row(f"{_OLD_ATTENTION}.proj.weight", "blocks.{layer}.sa.proj.weight", "C C"),
        Row(f"{_OLD_ATTENTION}.proj.bias", "blocks.{layer}.sa.proj.bias", "C", "bias"),
        Row(f"{_OLD_ATTENTION}.mask", "", "1 1 T T", "may"),
        *(_same(f"blocks.{{layer}}.{norm}.weight", "C") for norm in ("ln1", "ln2")),
        *(_same(f"blocks.{{layer}}.{norm}.bias", "C", "bias") for norm in ("ln1", "ln2")),
        Row("blocks.{layer}.mlp.0.weight", "blocks.{layer}.ffwd.net.0.weight", "4C C"),
        Row("blocks.{layer}.mlp.0.bias", "blocks.{layer}.ffwd.net.0.bias", "4C", "bias"),
        Row("blocks.{layer}.mlp.2.weight", "blocks.{layer}.ffwd.net.2.weight", "C 4C"),
        Row("blocks.{layer}.mlp.2.bias", "blocks.{layer}.ffwd.net.2.bias", "C", "bias"),
        _same("ln_f.weight", "C"),
        _same("ln_f.bias", "C", "bias"),
        Row("head.weight", "lm_head.weight", "V C", "untied"),
    ),
    "gelu",
    {
        f"{_OLD_ATTENTION}.{layer}.{parameter}": layer
        for layer in ("key", "query", "value")
        for parameter in ("weight", "bias")
    },
)
LAYOUTS = (TRANSFORMER, MULTI_HEAD, SINGLE_HEAD, OLD_MINGPT, NANOGPT)
"""Every layout by its sign. minGPT's and GPT-2's names are nanoGPT's; shapes and settings tell them apart."""

ALIASES: tuple[tuple[str, str], ...] = (
    (r"^(token_embedding|tok_embedding|token_emb|tok_emb|wte)\.", "token_embedding_table."),
    (r"^(position_embedding|pos_embedding|position_emb|pos_emb|wpe)\.", "position_embedding_table."),
    (r"^(sa|attn|attention|mha)\.heads\.", "sa_heads.heads."),
    (r"^(sa|attn|attention|mha|sa_heads)\.(proj|projection|c_proj)\.", "sa_heads.proj."),
    (r"^(head|attn|attention|sa)\.(key|query|value|tril)\b", r"sa_head.\2"),
    (r"^(layers|transformer_blocks)\.(?=\d)", "blocks."),
    (r"^(blocks\.\d+)\.(sa_heads|attn|attention|mha|self_attention)\.heads\.", r"\1.sa.heads."),
    (
        r"^(blocks\.\d+)\.(sa|sa_heads|attn|attention|mha|self_attention)\.(proj|projection|c_proj)\.",
        r"\1.sa.proj.",
    ),
    (r"^(blocks\.\d+)\.(ffwd|ff|ffn|feed_forward|feedforward|mlp)\.(net\.|layers\.)?(?=\d)", r"\1.ffwd.net."),
    (r"^(blocks\.\d+)\.(ln_|layernorm|layer_norm|norm|layernorm_|norm_)([12])\.", r"\1.ln\3."),
    (r"^(ln_final|final_ln|layer_norm|final_norm|norm|ln)\.", "ln_f."),
    (r"^(head|output|unembed|fc_out)\.(?=weight$|bias$)", "lm_head."),
)
"""Other spellings of the chapters' names: a pattern, and what stands for it."""

WRAPPERS = ("module.", "model.", "_forward_module.", "net.", "gpt.", "transformer.")
"""What parallel training, Lightning and larger modules put before names. `_orig_mod.` may even stand inside."""

OTHER_ARCHITECTURES: tuple[tuple[str, str], ...] = (
    (r"(^|\.)encoder\.layers\.\d+\.self_attn\.[qkv]_proj\.", "BART or a relative"),
    (r"(^|\.)decoder\.layers\.\d+\.self_attn\.[qkv]_proj\.", "OPT"),
    (r"\.self_attn\.[qkv]_proj\.|\.mlp\.gate_proj\.|\.feed_forward\.w1\.|\.attention\.wq\.", "Llama or a relative"),
    (r"(^|\.)transformer\.layer\.\d+\.attention\.[qkv]_lin\.", "DistilBERT"),
    (r"(^|\.)embeddings\.word_embeddings\.|\.attention\.self\.query\.", "BERT"),
    (r"(^|\.)gpt_neox\.|\.attention\.query_key_value\.", "GPT-NeoX"),
    (r"\.attn\.attention\.[qkv]_proj\.", "GPT-Neo"),
    (r"\.SelfAttention\.[qkvo]\.|(^|\.)shared\.weight$", "T5"),
    (r"\.attn\.[qkv]_proj\.", "GPT-J"),
    (r"\.self_attention\.query_key_value\.", "BLOOM or Falcon"),
    (r"\.mixer\.(in_proj|A_log|dt_proj)", "Mamba"),
    (r"(^|\.)(vision_model|visual)\.|\.patch_embed", "a model of images"),
    (r"(^|\.)(weight_ih|weight_hh)_l\d", "an LSTM or GRU"),
    (r"\.self_attn\.in_proj_(weight|bias)$", "PyTorch's nn.Transformer"),
    (r"(^|\.)conv\d*\.weight$|\.bn\d+\.running_mean$", "a convolutional network"),
)
"""Names that only other architectures have, and what those are called."""

SETTINGS: Mapping[str, tuple[str, ...]] = {
    "vocab_size": ("vocab_size", "n_vocab", "vocabulary_size"),
    "block_size": (
        *("block_size", "n_positions", "n_ctx", "context_length", "ctx_len", "context_size", "seq_len"),
        *("max_seq_len", "max_len"),
    ),
    "n_embd": ("n_embd", "embed_dim", "d_model", "hidden_size", "emb_dim", "embedding_dim", "n_embed"),
    "n_head": ("n_head", "num_heads", "n_heads", "num_head", "heads", "num_attention_heads"),
    "n_layer": ("n_layer", "num_layers", "n_layers", "num_layer", "layers", "num_hidden_layers"),
    "dropout": ("dropout", "resid_pdrop", "drop_rate"),
    "activation": (
        *("activation", "activation_function", "activation_fn", "activation_type", "act", "act_fn", "act_func"),
        *("act_layer", "act_type", "hidden_act", "hidden_activation", "mlp_activation", "ffn_activation"),
        *("ff_activation", "nonlinearity", "non_linearity", "nonlin"),
    ),
    "bias": ("bias",),
    "qkv_bias": ("qkv_bias",),
    "head_bias": ("head_bias",),
    "tied": ("tied", "tie_word_embeddings", "tie_weights", "weight_tying"),
    "layer_norm_epsilon": ("layer_norm_epsilon", "layer_norm_eps", "ln_eps", "eps"),
}
"""How the settings of a model are spelled."""
ACTIVATION_SWITCHES: Mapping[str, tuple[Activation, Activation]] = {
    **dict.fromkeys(("use_gelu", "gelu", "is_gelu", "with_gelu"), ("gelu", "relu")),
    **dict.fromkeys(("use_relu", "relu", "is_relu", "with_relu"), ("relu", "gelu")),
}
"""Switches between the chapters' two non-linearities: what true means, and what false means."""
SETTINGS_INSIDE = (
    *("model_args", "config", "model_config", "hyper_parameters", "hyperparameters", "hparams", "params"),
    *("hyper_params", "hyperparams", "hyper", "hp", "cfg", "model_cfg", "model_params", "model_kwargs", "kwargs"),
    *("settings", "args", "options", "gpt_config", "meta", "metadata", "model"),
)
"""Entries of a saved dict, or of a config.json, that may hold the settings; later ones say less."""
WEIGHTS_INSIDE = ("model", "model_state_dict", "state_dict", "model_state", "weights", "net", "parameters")
"""Entries of a saved dict that may hold the parameters."""
VOCABULARY_INSIDE = ("tokenizer", "meta", "vocabulary", "config", "hyper_parameters")
"""Entries of a saved dict that may hold the vocabulary, when it does not lie beside them."""

ACTIVATIONS: Mapping[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_exact": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "newgelu": "gelu_tanh",
    "new_gelu": "gelu_tanh",
}
"""How the non-linearities are spelled, in small letters."""

MINGPT_HEADS: Mapping[str, int] = {
    "openai-gpt": 12,
    "gpt2": 12,
    "gpt2-medium": 16,
    "gpt2-large": 20,
    "gpt2-xl": 25,
    "gopher-44m": 16,
    "gpt-mini": 6,
    "gpt-micro": 4,
    "gpt-nano": 3,
}
"""Heads of minGPT's named sizes, whose files do not say how many they have."""

REFUSED_GPT2_SETTINGS: Mapping[str, tuple[object, ...]] = {
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
}
"""Settings of a Hugging Face GPT-2 that change what is computed, and the values that this program computes."""


def unwrapped(name: str) -> str:
    """Return a name without what compiling and parallel training put before and into it."""
    name = name.replace("_orig_mod.", "")
    changed = True
    while changed:
        changed = False
        for wrapper in WRAPPERS:
            if name.startswith(wrapper):
                name, changed = name.removeprefix(wrapper), True
    return name


def in_chapters_spelling(name: str) -> str:
    """Return a name with other spellings replaced by the chapters'."""
    for pattern, replacement in ALIASES:
        name = re.sub(pattern, replacement, name)
    return name


def other_architecture(names: list[str]) -> str | None:
    """Return what the architecture is called if the names belong to one that this program does not know."""
    return next((title for pattern, title in OTHER_ARCHITECTURES if any(re.search(pattern, n) for n in names)), None)
