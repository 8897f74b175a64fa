"""The exact numbers of an analysis as files that other programs read: NPZ, CSV and JSON.

Every weight is the float32 of the forward pass: NPZ holds its bits, CSV and JSON the shortest decimal number that reads
back to them. Knows no page and no file system.
"""

import csv
import io
import json
import math
from collections.abc import Mapping
from typing import cast

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from minigpt.analysis.patterns import Trace
from minigpt.analysis.scores import head_scores
from minigpt.errors import PromptError

MOST_WEIGHTS = 12_000_000
"""Most weights (layers × heads × tokens²) that are written at once: 48 MB of float32."""
JSON_FORMAT = "minigpt-attention"
JSON_VERSION = 1


def check_size(n_layer: int, n_head: int, n_token: int) -> None:
    """Refuse to write all heads where that would be too much.

    Raises:
        PromptError: `export_too_large` above `MOST_WEIGHTS`.
    """
    weights = n_layer * n_head * n_token**2
    if weights > MOST_WEIGHTS:
        raise PromptError("export_too_large", weights=f"{weights:,}", most=f"{MOST_WEIGHTS:,}", tokens=n_token)


def arrays_of(traced: Trace) -> dict[str, ndarray]:
    """Return what every NPZ of an analysis holds, by name: `pattern`, `ids`, `tokens`, `start`; see `npz_of`."""
    return {
        "pattern": traced.pattern.numpy(),
        "ids": np.array(traced.ids, dtype=np.int64),
        "tokens": np.array(traced.tokens, dtype=np.str_),
        "start": np.array(traced.start),
    }


def npz_of(traced: Trace, checkpoint: Mapping[str, object], prompt_length: int) -> bytes:
    """Return an NPZ archive with every number of an analysis; nothing in it needs unpickling.

    Its arrays: `pattern` float32 (layer, head, query, key), `ids`, `tokens`, `start` (true position of the window's
    first token), `cropped_ids` (what lies to the left of the window), `prompt_length` (tokens from this true position
    on were generated), `head_score` float32 (score, layer, head), `score_names`, `checkpoint` (described in JSON).

    Args:
        traced: The analysis.
        checkpoint: What is said about the model.
        prompt_length: In tokens.
    """
    scores = head_scores(traced.pattern, traced.tokens)
    arrays: dict[str, ndarray] = {
        **arrays_of(traced),
        "cropped_ids": np.array(traced.cropped_ids, dtype=np.int64),
        "prompt_length": np.array(prompt_length),
        "head_score": np.stack([values.numpy() for values in scores.values()]).astype(np.float32),
        "score_names": np.array(list(scores), dtype=np.str_),
        "checkpoint": np.array(json.dumps(dict(checkpoint), ensure_ascii=False)),
    }
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def csv_of(traced: Trace, layer: int, head: int) -> bytes:
    """Return one head as a table: a row for each query, a column for each key, the future left empty.

    The first line holds the true positions of the keys, the second their tokens; each further line begins with the
    query's position and token. Tokens are written as JSON strings, so that no spreadsheet takes one for a formula and
    invisible characters can be told apart. UTF-8 with a byte order mark, which spreadsheets want.

    Args:
        traced: The analysis.
        layer: From 0.
        head: From 0.
    """
    names = [json.dumps(token, ensure_ascii=False) for token in traced.tokens]
    positions = range(traced.start, traced.start + len(names))
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow([f"L{layer}H{head}", "", *positions])
    writer.writerow(["", "", *names])
    rows = _shortest(traced.pattern[layer, head].numpy())
    for query, (position, name) in enumerate(zip(positions, names, strict=True)):
        empty = [""] * (len(names) - query - 1)
        writer.writerow([position, name, *rows[query][: query + 1], *empty])
    return file.getvalue().encode("utf-8-sig")


def json_of(traced: Trace, checkpoint: Mapping[str, object], prompt_length: int) -> bytes:
    """Return every number of an analysis as one JSON object; the README lists its fields.

    `pattern[layer][head][query]` lists the weights from the window's first key to the query itself.

    Args:
        traced: The analysis.
        checkpoint: What is said about the model.
        prompt_length: In tokens.
    """
    scores = head_scores(traced.pattern, traced.tokens)
    described: dict[str, object] = {
        "format": JSON_FORMAT,
        "version": JSON_VERSION,
        "checkpoint": dict(checkpoint),
        "start": traced.start,
        "prompt_length": prompt_length,
        "tokens": traced.tokens,
        "ids": traced.ids,
        "cropped_tokens": traced.cropped,
        "cropped_ids": traced.cropped_ids,
        "logit_difference": traced.logit_difference,
        "compared": traced.compared,
        "row_sum_error": traced.row_sum_error,
        "head_scores": {name: without_nan(cast(list[list[float]], values.tolist())) for name, values in scores.items()},
    }
    head = json.dumps(described, ensure_ascii=False).removesuffix("}")
    return f'{head}, "pattern": {_nested(traced.pattern.numpy())}}}\n'.encode()


def without_nan(table: list[list[float]]) -> list[list[float | None]]:
    """Return a table with None where a score is undefined, as JSON has no NaN."""
    return [[None if math.isnan(value) else value for value in row] for row in table]


def _shortest(values: Float[ndarray, "row column"]) -> list[list[str]]:
    """Return float32 numbers as the shortest decimals that read back to them."""
    return values.astype(np.str_).tolist()


def _nested(pattern: Float[ndarray, "layer head query key"]) -> str:
    layers: list[str] = []
    for layer in pattern:
        heads: list[str] = []
        for head in layer:
            rows = (f"[{','.join(row[: query + 1])}]" for query, row in enumerate(_shortest(head)))
            heads.append(f"[{','.join(rows)}]")
        layers.append(f"[{','.join(heads)}]")
    return f"[{','.join(layers)}]"
