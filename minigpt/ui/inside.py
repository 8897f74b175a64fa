"""What the tab "Inside" asks: the terms of a logit, what each layer would say, and what a head is wired to do."""

import numpy as np

from minigpt.analysis.circuits import ov_circuit, positional_qk, qk_circuit
from minigpt.analysis.contributions import direct_logits
from minigpt.analysis.lens import logit_lens
from minigpt.ui.asking import Asked

MOST_SIDE = 128
"""Largest vocabulary whose circuits are drawn whole; of a larger one, the rows are the different tokens of the text."""
MOST_ROWS = 64
LISTED = 8
MOST_POSITIONS = 256
"""Largest window whose positional circuit is drawn whole; of a larger one the first positions."""


def logit_terms(asked: Asked) -> dict[str, object]:
    """Answer what the logit of a token is the sum of, term by term, and what each head brought from which token."""
    asked.check_work(2)
    found = direct_logits(asked.ckpt, asked.ids, position=asked.position(), token=asked.token())
    return {
        "position": found.position,
        "token": found.token,
        "id": found.token_id,
        "logit": found.logit,
        "remainder": found.remainder,
        "embedding": found.embedding,
        "position_embedding": found.position_embedding,
        "heads": found.heads.numpy(),
        "sources": found.sources[..., : found.position + 1].numpy(),
        "attention_bias": found.attention_bias.numpy(),
        "mlps": found.mlps.numpy(),
        "norm_bias": found.norm_bias,
        "head_bias": found.head_bias,
    }


def lens(asked: Asked) -> dict[str, object]:
    """Answer what the model would say after each layer: likeliest tokens, and how far that is from the end."""
    asked.check_work(2)
    found = logit_lens(asked.ckpt, asked.ids)
    return {
        "top": found.top_ids.tolist(),
        "top_probability": found.top_probability.numpy(),
        "final": found.final_ids.tolist(),
        "final_probability": found.final_probability.numpy(),
        "kl": found.kl.numpy(),
        "pieces": asked.pieces({*found.top_ids.flatten().tolist(), *found.final_ids.tolist()}),
    }


def circuit(asked: Asked) -> dict[str, object]:
    """Answer what a head is wired to prefer (QK), to push (OV), or which positions it prefers.

    Of a large vocabulary only the strongest columns of some rows are answered.
    """
    layer, head = asked.head()
    kind = asked.one_of("kind", ("qk", "ov", "position"))
    if kind == "position":
        pattern = positional_qk(asked.ckpt, layer, head).pattern[:MOST_POSITIONS, :MOST_POSITIONS].numpy()
        return {"kind": kind, "pattern": [row[: query + 1] for query, row in enumerate(pattern)]}
    vocab = asked.ckpt.config.vocab_size
    rows = list(range(vocab)) if vocab <= MOST_SIDE else list(dict.fromkeys(asked.ids))[:MOST_ROWS]
    found = (qk_circuit if kind == "qk" else ov_circuit)(asked.ckpt, layer, head, rows=rows, most=LISTED)
    matrix = None
    if vocab <= MOST_SIDE and found.matrix is not None:
        matrix = found.matrix.numpy()
        # Of QK scores only differences within a row mean anything.
        matrix = matrix - matrix.mean(1, keepdims=True) if kind == "qk" else matrix
    listed = {*np.unique(found.top_ids.numpy()).tolist(), *np.unique(found.bottom_ids.numpy()).tolist()}
    return {
        "kind": kind,
        "rows": found.row_ids,
        "matrix": matrix,
        "top": found.top_ids.tolist(),
        "top_value": found.top.numpy(),
        "bottom": found.bottom_ids.tolist(),
        "bottom_value": found.bottom.numpy(),
        "pieces": asked.pieces({*found.row_ids, *listed, *(range(vocab) if matrix is not None else ())}),
    }
