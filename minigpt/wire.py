"""Write and read the one JSON message that crosses to the browser.

This module and `assets/viewer/decode.js` are the only two that know the byte layout. It knows arrays and plain values;
it knows no model, no page and no words. The file is long because the layout should stand in one place.

An `analysis` message carries its arrays in one block: the bytes of every array one after another, each starting at a
multiple of four, compressed with zlib and written as base64. `arrays` says where each lies.

How attention travels. Weights are rounded to thousandths, so three digits read out are the right ones, and only the
lower triangle travels. Heads look at much the same places from one query to the next, so the cells are sorted into ten
groups by the sum of the two cells above them (the same key, one and two queries earlier; 0 where there is none): within
a group weights are alike, and most are 0. Going through head after head, row after row, a reader takes each cell from
the next place of its group. `pattern` holds one byte a cell, the groups one after another; `pattern_starts` says where
each begins; a byte of 255 stands for a weight of 255 thousandths or more, which is the next one in `pattern_large`. A
`thumbnail` travels in the same way.

Measured on a trained model of 5 layers × 6 heads at 256 tokens, scaled to 6 × 6, in bytes of base64: 465,000, against
542,000 in plain row order, 523,000 with two cells a byte, 464,000 with the cell to the left as well (which Python could
only read one cell at a time), 835,000 for the square root as a byte with a lower byte from 1/64 up. zlib's run-length
strategy is the smallest and at 14 ms the quickest; its level 6 takes 85 ms for 3 % more.
"""

import base64
import math
import threading
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict, cast

import numpy as np
from jaxtyping import Float, Int, Int32, UInt8, UInt16
from numpy import ndarray

VERSION = 1
LARGEST_MESSAGE = 8_000_000
"""Bytes of a packed message above which thumbnails travel instead of whole patterns."""
THUMBNAIL_SIDE = 64
"""Most cells a thumbnail has on one side."""

PARTS = 1000
"""Weights travel as whole numbers of this many parts."""

_BOUNDS = (1, 2, 3, 5, 7, 10, 15, 25, 50)
_GROUP = np.searchsorted(_BOUNDS, np.arange(2 * PARTS + 1), side="right").astype(np.uint8)
"""The group of a cell by the sum of the two cells above it."""
_LARGE = 255
_ALIGNMENT = 4


class ArrayPlace(TypedDict):
    """Where one array lies in the uncompressed payload."""

    dtype: Literal["uint8", "uint16", "int32", "float32"]
    shape: list[int]
    offset: int
    bytes: int


class CheckpointInfo(TypedDict):
    """What the page says about the model that is shown."""

    name: str
    kind: str
    n_layer: int
    n_head: int
    n_embd: int
    block_size: int
    vocab_size: int
    parameters: int
    tokenizer: str


class TokenWindow(TypedDict):
    """The tokens that were looked at, with what lies to their left."""

    ids: list[int]
    start: int
    """True position of the first token of the window."""
    cropped: list[int]
    """Ids to the left of the window, which the model did not see."""
    prompt_length: int
    """Tokens from this true position on were generated."""


class SamplingInfo(TypedDict):
    """How tokens are drawn, and how many at most."""

    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    repetition_penalty: float
    seed: int
    length: int


class Lane(TypedDict):
    """One of several continuations of the same prompt that are written side by side."""

    branch: int
    generated: list[int]
    drawn: list[float]
    """Probability by the model itself of each token."""
    pieces: dict[str, str]


class RunInfo(TypedDict):
    """What is known of a continuation while it is being generated."""

    branch: int
    """Its number, the same in all its messages."""
    drawn: list[float]
    """Probability by the model itself of each token that was drawn; those before were given."""
    sampling: SamplingInfo
    others: list[Lane]
    """Those that are written side by side with it."""


class Checks(TypedDict):
    """How far what is drawn can be trusted."""

    logit_difference: float
    """Largest difference to the logits through PyTorch's own attention."""
    compared: int
    """At how many positions of the window, from its first on, that was measured."""
    row_sum_error: float
    """Largest distance of a row's sum from 1."""


class AnalysisMessage(TypedDict):
    """Everything that is drawn for one text."""

    version: int
    kind: Literal["analysis"]
    request: int
    checkpoint: CheckpointInfo
    tokens: TokenWindow
    pieces: dict[str, str]
    checks: Checks
    scores: list[str]
    mode: Literal["full", "thumbnails"]
    thumbnail_block: NotRequired[int]
    """Tokens along one side of a thumbnail's cell (mode `thumbnails`)."""
    arrays: dict[str, ArrayPlace]
    payload: str
    run: NotRequired[RunInfo]
    respelled: NotRequired[list[str]]
    """What was changed in the text that was typed so that the model could read it; absent if nothing was."""


class HeadMessage(TypedDict):
    """One head at full resolution, on demand, where the analysis carried thumbnails."""

    version: int
    kind: Literal["head"]
    request: int
    layer: int
    head: int
    arrays: dict[str, ArrayPlace]
    payload: str


class GeneratingMessage(TypedDict):
    """What has been generated so far; each message holds all of it."""

    version: int
    kind: Literal["generating"]
    request: int
    checkpoint: str
    generated: list[int]
    pieces: dict[str, str]
    prompt_length: int
    seed: int
    done: bool
    run: RunInfo


class StepsMessage(TypedDict):
    """What each of some tokens was chosen from.

    Arrays, with one row for each token: `choice_id`, `choice_before` and `choice_after` (the listed tokens, most likely
    first, and their probabilities before and after temperature, top-k and top-p), `choice_rest` (what all others hold,
    before and after), `sampled_from` (how many could be drawn), `taken_before`, `taken_after` and `taken_rank` (of the
    token that was taken), and `step_score` (scores of all heads on the tokens before it; score, layer, head).
    """

    version: int
    kind: Literal["steps"]
    request: int
    pieces: dict[str, str]
    scores: list[str]
    arrays: dict[str, ArrayPlace]
    payload: str


class NoticeMessage(TypedDict):
    """A sentence for the person, in every language, and the action it offers."""

    version: int
    kind: Literal["notice"]
    request: int
    code: str
    sentences: dict[str, str]
    action: Literal["leave_out"] | None


class RunRecords(TypedDict):
    """The history of a training run: one number for each estimate of its losses."""

    step: list[int]
    train: list[float]
    """Estimated loss on the training split, in nats per token."""
    validation: list[float]
    speed: list[float]
    """Tokens per second since the estimate before."""


class TrainingMessage(TypedDict):
    """How a model was trained, and what its heads scored on the way.

    Arrays: `curve` (score, step, layer, head; NaN where undefined) and `appeared` (score, layer, head; the step from
    which on a score stays above half of its growth, -1 where it did not grow).
    """

    version: int
    kind: Literal["training"]
    request: int
    runs: dict[str, int]
    """The models that have a history, by name, with how many snapshots each has."""
    name: str
    records: RunRecords
    steps: list[int]
    """Those of the snapshots."""
    scores: list[str]
    arrays: dict[str, ArrayPlace]
    payload: str


class MomentMessage(TypedDict):
    """What a model did with a text at one step of its training."""

    version: int
    kind: Literal["moment"]
    request: int
    step: int
    analysis: AnalysisMessage
    own_text: bool
    """Whether the text is one of the run's own, as it cannot read the one that was asked for."""
    loss: float | None
    """Mean loss on the text, in nats per token; None for a single token."""
    sample: str
    """What it writes after the text."""


class ExperimentRow(TypedDict):
    """A variant of an experiment in its table; losses in nats per token."""

    variant: str
    parameters: int
    losses: list[float]
    """One for each seed."""
    mean: float
    spread: float | None
    """Standard deviation (n - 1) over the seeds; None for a single seed."""
    difference: float
    """Mean difference to the variant it is compared with, seed by seed."""
    margin: float | None
    """Half the width of the 95 % interval of the difference; None for a single seed."""
    told_apart: bool
    """Whether the interval leaves out 0."""
    seconds: float
    """Mean time in training steps."""


class ExperimentCurve(TypedDict):
    """The estimated validation losses of one run of an experiment, in nats per token."""

    variant: str
    seed: int
    steps: list[int]
    losses: list[float]


class ExperimentSide(TypedDict):
    """What the model of one seed of a variant writes, and what its heads do."""

    variant: str
    seed: int
    prompt: str
    sample: str
    analysis: AnalysisMessage | None
    """On the beginning of the prompt; None where no picture was kept."""


class ExperimentMessage(TypedDict):
    """The results of an experiment, computed from its records."""

    version: int
    kind: Literal["experiment"]
    request: int
    names: list[str]
    """All results that there are."""
    name: str
    experiment: str
    """Which experiment it was."""
    preset: str
    """The settings that all variants share."""
    steps: int
    characters: int
    """Length of the training text."""
    batches: int
    """Batches of the validation split that a loss is measured on."""
    seeds: list[int]
    """Those that every variant was trained with; only they are in the table."""
    against: str
    """The variant that the others are compared with."""
    rows: list[ExperimentRow]
    curves: list[ExperimentCurve]
    sides: list[ExperimentSide]


class FileMessage(TypedDict):
    """A file for the person, on demand."""

    version: int
    kind: Literal["file"]
    request: int
    name: str
    media_type: str
    content: str
    """Base64."""


class AnswerMessage(TypedDict):
    """The answer to a further question, as plain values; every number is rounded to five digits."""

    version: int
    kind: Literal["answer"]
    request: int
    question: str
    value: dict[str, Any]


class ViewMessage(TypedDict):
    """All heads drawn otherwise than by their weights; cells travel as weights do, from `low` as 0 to `top` as 1."""

    version: int
    kind: Literal["view"]
    request: int
    view: str
    low: float
    top: float
    arrays: dict[str, ArrayPlace]
    payload: str


class _Requests:
    """Numbers that only grow."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def next(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 1_000)
            return self._last


_requests = _Requests()


def next_request() -> int:
    """Return a number larger than every earlier one of this process, below 2⁵³.

    It is the time in microseconds, so that numbers grow over several replicas behind one address and over a restart.
    """
    return _requests.next()


def analysis(
    *,
    checkpoint: CheckpointInfo,
    tokens: TokenWindow,
    pieces: Mapping[int, str],
    checks: Checks,
    scores: Mapping[str, Float[ndarray, "layer head"]],
    next_id: Int[ndarray, "position choice"],
    next_probability: Float[ndarray, "position choice"],
    taken_probability: Float[ndarray, " position"],
    taken_rank: Int[ndarray, " position"],
    pattern: Float[ndarray, "layer head query key"],
    largest: int = LARGEST_MESSAGE,
) -> AnalysisMessage:
    """Pack everything that is drawn for one text.

    Args:
        checkpoint: What is said about the model.
        tokens: The window and what lies to its left.
        pieces: The text of every id that the message names.
        checks: How exact the forward pass was.
        scores: One number per head for each name, NaN where it is undefined.
        next_id: The likeliest tokens after each position, most likely first.
        next_probability: Their probabilities, 0 to 1.
        taken_probability: Probability of the token that really follows; -1 where none does.
        taken_rank: How many tokens were likelier than that one; -1 where none follows.
        pattern: Attention weights, 0 to 1, rows summing to 1.
        largest: Bytes of a packed message above which thumbnails of all heads travel instead of whole patterns.
    """
    arrays: dict[str, ndarray] = {
        "next_probability": next_probability.astype(np.float32),
        "next_id": next_id.astype(np.int32),
        "taken_probability": taken_probability.astype(np.float32),
        "taken_rank": taken_rank.astype(np.int32),
        "head_score": np.stack([scores[name] for name in scores]).astype(np.float32),
    }
    message: AnalysisMessage = {
        "version": VERSION,
        "kind": "analysis",
        "request": next_request(),
        "checkpoint": checkpoint,
        "tokens": tokens,
        "pieces": _as_json_keys(pieces),
        "checks": checks,
        "scores": list(scores),
        "mode": "full",
        "arrays": {},
        "payload": "",
    }
    n_layer, n_head, n_token, _ = pattern.shape
    # Attention of trained models packs to about a third of a byte a cell; little past this bound is worth a try, which
    # takes some twenty bytes a cell.
    if n_layer * n_head * n_token * (n_token + 1) // 2 <= 3 * largest:
        message["arrays"], message["payload"] = pack({**_travelling("pattern", pattern), **arrays})
    if not message["payload"] or len(message["payload"]) > largest:
        block = -(-n_token // THUMBNAIL_SIDE)
        message["mode"] = "thumbnails"
        message["thumbnail_block"] = block
        thumbnails = _travelling("thumbnail", max_pool(pattern, block))
        message["arrays"], message["payload"] = pack({**thumbnails, **arrays})
    return message


def head(layer: int, head: int, pattern: Float[ndarray, "query key"]) -> HeadMessage:
    """Pack one head at full resolution; its arrays have a layer and a head axis of length 1."""
    arrays, payload = pack(_travelling("pattern", pattern[None, None]))
    return {
        "version": VERSION,
        "kind": "head",
        "request": next_request(),
        "layer": layer,
        "head": head,
        "arrays": arrays,
        "payload": payload,
    }


def view(name: str, cells: Float[ndarray, "layer head query key"], *, low: float, top: float) -> ViewMessage:
    """Pack what is drawn for all heads; only the lower triangles travel, rounded to thousandths from `low` to `top`."""
    # The future is nothing, whatever 0 becomes: the order of the cells depends on it.
    parts = np.tril(np.clip((cells - low) / (top - low), 0, 1)).astype(np.float32)
    arrays, payload = pack(_travelling("pattern", parts))
    return {
        "version": VERSION,
        "kind": "view",
        "request": next_request(),
        "view": name,
        "low": low,
        "top": top,
        "arrays": arrays,
        "payload": payload,
    }


def generating(
    *,
    checkpoint: str,
    generated: Sequence[int],
    pieces: Mapping[int, str],
    prompt_length: int,
    done: bool,
    run: RunInfo,
) -> GeneratingMessage:
    """Describe what has been generated so far."""
    return {
        "version": VERSION,
        "kind": "generating",
        "request": next_request(),
        "checkpoint": checkpoint,
        "generated": list(generated),
        "pieces": _as_json_keys(pieces),
        "prompt_length": prompt_length,
        "seed": run["sampling"]["seed"],
        "done": done,
        "run": run,
    }


def steps(
    *, pieces: Mapping[int, str], scores: Mapping[str, Float[ndarray, "step layer head"]], **arrays: ndarray
) -> StepsMessage:
    """Pack what each of some tokens was chosen from.

    Args:
        pieces: The text of every id that the message names.
        scores: The heads' scores on the tokens before each step, NaN where one is undefined.
        **arrays: The other arrays of a `StepsMessage` by their names.
    """
    packed = {
        name: array.astype(np.int32 if np.issubdtype(array.dtype, np.integer) else np.float32)
        for name, array in {**arrays, "step_score": np.stack([scores[name] for name in scores], 1)}.items()
    }
    places, payload = pack(packed)
    return {
        "version": VERSION,
        "kind": "steps",
        "request": next_request(),
        "pieces": _as_json_keys(pieces),
        "scores": list(scores),
        "arrays": places,
        "payload": payload,
    }


def training(
    *,
    runs: Mapping[str, int],
    name: str,
    records: RunRecords,
    steps: Sequence[int],
    scores: Sequence[str],
    curve: Float[ndarray, "score step layer head"],
    appeared: Int[ndarray, "score layer head"],
) -> TrainingMessage:
    """Pack the history of a training run."""
    places, payload = pack({"curve": curve.astype(np.float32), "appeared": appeared.astype(np.int32)})
    return {
        "version": VERSION,
        "kind": "training",
        "request": next_request(),
        "runs": dict(runs),
        "name": name,
        "records": records,
        "steps": list(steps),
        "scores": list(scores),
        "arrays": places,
        "payload": payload,
    }


def moment(*, step: int, analysis: AnalysisMessage, own_text: bool, loss: float | None, sample: str) -> MomentMessage:
    """Describe what a model did with a text at one step of its training."""
    return {
        "version": VERSION,
        "kind": "moment",
        "request": next_request(),
        "step": step,
        "analysis": analysis,
        "own_text": own_text,
        "loss": loss,
        "sample": sample,
    }


def experiment(
    *,
    names: Sequence[str],
    name: str,
    of: tuple[str, str, int, int],
    batches: int,
    seeds: Sequence[int],
    against: str,
    rows: Sequence[ExperimentRow],
    curves: Sequence[ExperimentCurve],
    sides: Sequence[ExperimentSide],
) -> ExperimentMessage:
    """Describe the results of an experiment.

    Args:
        names: All results that there are.
        name: These.
        of: Which experiment it was, the settings that all variants share, its steps, and the length of its text in
            characters.
        batches: Batches of the validation split that a loss is measured on.
        seeds: Those that every variant was trained with.
        against: The variant that the others are compared with.
        rows: The table.
        curves: One for each run.
        sides: One for each variant.
    """
    experiment_name, preset, steps, characters = of
    return {
        "version": VERSION,
        "kind": "experiment",
        "request": next_request(),
        "names": list(names),
        "name": name,
        "experiment": experiment_name,
        "preset": preset,
        "steps": steps,
        "characters": characters,
        "batches": batches,
        "seeds": list(seeds),
        "against": against,
        "rows": list(rows),
        "curves": list(curves),
        "sides": list(sides),
    }


def notice(code: str, sentences: Mapping[str, str], action: Literal["leave_out"] | None = None) -> NoticeMessage:
    """Describe a sentence for the person, one per language, and the action that a button offers."""
    return {
        "version": VERSION,
        "kind": "notice",
        "request": next_request(),
        "code": code,
        "sentences": dict(sentences),
        "action": action,
    }


def file(name: str, media_type: str, content: bytes) -> FileMessage:
    """Describe a file for the person."""
    return {
        "version": VERSION,
        "kind": "file",
        "request": next_request(),
        "name": name,
        "media_type": media_type,
        "content": base64.b64encode(content).decode("ascii"),
    }


def answer(question: str, value: Mapping[str, object]) -> AnswerMessage:
    """Describe the answer to a question; a number that is none (NaN, infinite) becomes null."""
    return {
        "version": VERSION,
        "kind": "answer",
        "request": next_request(),
        "question": question,
        "value": {name: _plain(each) for name, each in value.items()},
    }


PICTURE_HALF = 32767
"""A number of a picture travels as a whole number of this many parts of the picture's largest, with 0 at 32768."""


def pictures(numbers: Mapping[str, Float[ndarray, "row column"]]) -> dict[str, object]:
    """Pack matrices of numbers of any sign for an answer, in 16 bits each; 0 stays exactly 0.

    `most` says what the ends stand for: the number furthest from 0, and 1 where all are 0. As an answer rounds that to
    five digits, the numbers that arrive are right to 1/15,000 of it.
    """
    most = {name: float(np.abs(values).max(initial=0)) or 1.0 for name, values in numbers.items()}
    places, payload = pack(
        {
            name: (np.rint(values / most[name] * PICTURE_HALF) + PICTURE_HALF + 1).astype(np.uint16)
            for name, values in numbers.items()
        }
    )
    return {"arrays": places, "payload": payload, "most": most}


def _plain(value: object) -> Any:  # noqa: ANN401 (what JSON can say)
    if isinstance(value, ndarray):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in cast(Mapping[object, object], value).items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast(Sequence[object], value)]
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value


def pack(arrays: Mapping[str, ndarray]) -> tuple[dict[str, ArrayPlace], str]:
    """Lay arrays out in one block, each at a multiple of four bytes, and return where each lies and the packed block.

    Raises:
        TypeError: If an array has a type that the browser does not read.
    """
    places: dict[str, ArrayPlace] = {}
    parts: list[bytes] = []
    offset = 0
    for name, array in arrays.items():
        dtype = str(array.dtype)
        if dtype not in ("uint8", "uint16", "int32", "float32"):
            raise TypeError(f"expected uint8, uint16, int32 or float32 for {name}, got {dtype}")
        content = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        places[name] = {"dtype": dtype, "shape": list(array.shape), "offset": offset, "bytes": len(content)}
        padding = -len(content) % _ALIGNMENT
        parts.append(content + bytes(padding))
        offset += len(content) + padding
    return places, base64.b64encode(_compressed(b"".join(parts))).decode("ascii")


def _compressed(block: bytes) -> bytes:
    compressor = zlib.compressobj(memLevel=7, strategy=zlib.Z_RLE)
    return compressor.compress(block) + compressor.flush()


def unpack(message: Mapping[str, Any]) -> dict[str, ndarray]:
    """Return the arrays of an `analysis` or `head` message, as a client in Python wants them.

    `pattern` comes back as `(layer, head, query, key)` in float32, zero above the diagonal, exact to 0.0005;
    `thumbnail` likewise, one cell for `thumbnail_block` tokens each way; the other arrays as they were packed.

    Raises:
        ValueError: If the message has another version or the payload is not what `arrays` describes.
    """
    if message.get("version") != VERSION:
        raise ValueError(f"expected a message of version {VERSION}, got {message.get('version')}")
    places: Mapping[str, ArrayPlace] = message["arrays"]
    size = max((place["offset"] + place["bytes"] for place in places.values()), default=0)
    block = zlib.decompressobj().decompress(base64.b64decode(message["payload"]), size + _ALIGNMENT)
    if len(block) < size:
        raise ValueError(f"expected {size} bytes of arrays, got {len(block)}")
    arrays = {name: _array(block, place) for name, place in places.items()}
    for name in ("pattern", "thumbnail"):
        if name in arrays:
            arrays[name] = _arrived(arrays[name], arrays.pop(f"{name}_large"), arrays.pop(f"{name}_starts"))
    return arrays


def max_pool(pattern: Float[ndarray, "layer head query key"], block: int) -> Float[ndarray, "layer head row column"]:
    """Return the largest weight of each block of `block` × `block` cells; the last block may be cut by the edge."""
    side = -(-pattern.shape[-1] // block)
    padding = side * block - pattern.shape[-1]
    pooled = np.empty((*pattern.shape[:2], side, side), pattern.dtype)
    for place, layer in zip(pooled, pattern, strict=True):  # layer by layer, as padding copies
        whole = np.pad(layer, ((0, 0), (0, padding), (0, padding))) if padding else layer
        whole.reshape(len(layer), side, block, side, block).max(axis=(2, 4), out=place)
    return pooled


def _as_json_keys(pieces: Mapping[int, str]) -> dict[str, str]:
    return {str(token_id): text for token_id, text in pieces.items()}


def _array(block: bytes, place: ArrayPlace) -> ndarray:
    dtype = np.dtype(place["dtype"]).newbyteorder("<")
    values = np.frombuffer(block, dtype, count=place["bytes"] // dtype.itemsize, offset=place["offset"])
    return values.reshape(place["shape"]).astype(place["dtype"])


def _travelling(name: str, square: Float[ndarray, "layer head query key"]) -> dict[str, ndarray]:
    """Return weights as the arrays that travel; see the module's docstring."""
    whole = np.rint(square * np.float32(PARTS)).astype(np.uint16)
    above = np.zeros_like(whole)
    above[:, :, 1:] = whole[:, :, :-1]
    above[:, :, 2:] += whole[:, :, :-2]
    parts, group = _triangle(whole), _GROUP[_triangle(above)].ravel()
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=len(_BOUNDS) + 1)
    return {
        name: np.minimum(parts.ravel(), _LARGE).astype(np.uint8)[order].reshape(parts.shape),
        f"{name}_large": parts[parts >= _LARGE],
        f"{name}_starts": (np.cumsum(sizes) - sizes).astype(np.int32),
    }


def _arrived(
    grouped: UInt8[ndarray, "layer head cell"], large: UInt16[ndarray, " large"], starts: Int32[ndarray, " group"]
) -> Float[ndarray, "layer head query key"]:
    """Undo `_travelling`, a row at a time: the group of each cell is known from the two rows above."""
    n_layer, n_head, n_cell = grouped.shape
    side = round(((8 * n_cell + 1) ** 0.5 - 1) / 2)
    source, following = grouped.ravel(), starts.astype(np.int64)
    parts = np.zeros((n_layer * n_head, side, side + 1), np.uint16)
    for rows in parts:
        first, second = np.zeros((2, side + 1), np.uint16)
        for query, row in enumerate(rows):
            group = _GROUP[first[: query + 1] + second[: query + 1]]
            order = np.argsort(group, kind="stable")
            sizes = np.bincount(group, minlength=len(starts))
            before = np.cumsum(sizes) - sizes
            row[order] = source[np.repeat(following - before, sizes) + np.arange(query + 1)]
            following += sizes
            first, second = row, first
    square = parts.reshape(n_layer, n_head, side, side + 1)[..., :side]
    square[square == _LARGE] = large
    return (square / np.float32(PARTS)).astype(np.float32)


def _triangle(square: UInt16[ndarray, "layer head query key"]) -> UInt16[ndarray, "layer head cell"]:
    """Return the lower triangle, row after row."""
    return np.concatenate([square[:, :, query, : query + 1] for query in range(square.shape[2])], axis=-1)
