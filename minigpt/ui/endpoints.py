"""The HTTP interface for programs: `/analyze` and `/generate`, in plain JSON."""

from collections.abc import Iterator
from typing import Any, TypedDict, cast

from gradio import events
from jaxtyping import Float
from torch import Tensor

from minigpt.analysis.next_tokens import next_tokens
from minigpt.analysis.patterns import trace
from minigpt.analysis.scores import head_scores
from minigpt.errors import wrong_type
from minigpt.exports import without_nan
from minigpt.generation import generate
from minigpt.ui import messages
from minigpt.ui.boundary import for_clients
from minigpt.ui.messages import Sampling
from minigpt.ui.models import Models


class Likely(TypedDict):
    """A token that the model considered."""

    token: str
    id: int
    probability: float


class Position(TypedDict):
    """One token of the window and what the model expected after it."""

    position: int
    token: str
    id: int
    next: list[Likely]
    next_taken_probability: float | None
    next_taken_rank: int | None


class Analysis(TypedDict):
    """What `/analyze` answers."""

    checkpoint: dict[str, Any]
    cropped: list[str]
    positions: list[Position]
    head_scores: dict[str, list[list[float | None]]]
    logit_difference: float
    compared: int
    row_sum_error: float
    pattern: list[list[float]] | None
    message: dict[str, Any] | None


class GeneratedToken(TypedDict):
    """One token that was generated."""

    position: int
    token: str
    id: int
    probability: float
    model_probability: float
    rank: int


class Continuation(TypedDict):
    """What `/generate` answers, again and again until it is done."""

    checkpoint: str
    prompt: str
    generated: str
    seed: int
    tokens: list[GeneratedToken]
    done: bool


def add_endpoints(models: Models) -> None:
    """Add `/analyze` and `/generate` to the page that is being built."""

    def analyze(
        text: str,
        checkpoint: str = "",
        layer: int | None = None,
        head: int | None = None,
        packed: bool = False,
    ) -> Analysis:
        """Say what every attention head of a model does with a text.

        Args:
            text: At least one token; of a longer one than the model's window only the end is looked at.
            checkpoint: The name of a model; empty for the first.
            layer: With `head`, the layer whose weights are wanted, from 0.
            head: With `layer`, the head whose weights are wanted, from 0: exact float32, one row for each query, one
                weight for each key from the window's first token to the query itself.
            packed: Whether to add what the page itself receives: the patterns of all heads in one compressed message,
                which `minigpt.wire.unpack` reads.
        """
        try:
            check_type("text", text, str)
            check_type("checkpoint", checkpoint, str)
            return _analysis(models, text, checkpoint, layer, head, packed=packed)
        except Exception as error:
            raise for_clients(error) from error

    def generate(
        prompt: str,
        checkpoint: str = "",
        max_new_tokens: int = 120,
        temperature: float = 0.8,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = -1,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
    ) -> Iterator[Continuation]:
        """Continue a prompt; each answer holds everything so far, the last one has `done` set.

        Args:
            prompt: At least one token.
            checkpoint: The name of a model; empty for the first.
            max_new_tokens: 1 to 500.
            temperature: 0 takes the likeliest token each time; 1 draws from the model's own distribution.
            top_k: How many of the likeliest tokens may be drawn; 0 for all.
            top_p: The least share of probability that the tokens to draw from hold; 1 for all.
            seed: -1 draws a fresh one; the answer says which.
            min_p: The least probability to draw, as a share of the likeliest token's; 0 for all.
            repetition_penalty: Above 1, tokens that the window holds already become less likely; 1 for nothing.
        """
        try:
            check_type("prompt", prompt, str)
            check_type("checkpoint", checkpoint, str)
            settings: dict[str, float | None] = {
                "temperature": temperature,
                "top_k": top_k,
                "top_p": top_p,
                "min_p": min_p,
                "repetition_penalty": repetition_penalty,
                "seed": seed,
            }
            for name, value in {"max_new_tokens": max_new_tokens, **settings}.items():
                check_type(name, value, int, float)
            sampling = Sampling.from_controls(**settings)
            yield from _continuations(models, prompt, checkpoint, max_new_tokens, sampling)
        except Exception as error:
            raise for_clients(error) from error

    # Gradio takes the type of one answer from here, and knows no iterators.
    generate.__annotations__["return"] = Continuation
    events.api(analyze, api_name="analyze", concurrency_id="analysis")
    events.api(generate, api_name="generate")


def check_type(name: str, value: object, *types: type) -> None:
    """Refuse a value of another type than the endpoint says, as JSON may hold any.

    Raises:
        PromptError: `wrong_type`.
    """
    if not isinstance(value, types) or isinstance(value, bool):
        expected = " or ".join(
            {"str": "a text", "int": "a whole number", "float": "a number"}[each.__name__] for each in types
        )
        raise wrong_type(name, value, expected)


def _analysis(
    models: Models, text: str, checkpoint: str, layer: int | None, head: int | None, *, packed: bool
) -> Analysis:
    ckpt = models.load(checkpoint)
    traced = trace(ckpt, text)
    expected = next_tokens(traced.logits, traced.ids)
    likely_ids, likely_shares = cast(list[list[int]], expected.ids.tolist()), _rows(expected.probability)
    piece = ckpt.tokenizer.piece
    positions: list[Position] = []
    for index, (token, token_id) in enumerate(zip(traced.tokens, traced.ids, strict=True)):
        last = index + 1 == len(traced.ids)
        likely = zip(likely_ids[index], likely_shares[index], strict=True)
        positions.append(
            {
                "position": traced.start + index,
                "token": token,
                "id": token_id,
                "next": [{"token": piece(each), "id": each, "probability": share} for each, share in likely],
                "next_taken_probability": None if last else float(expected.taken_probability[index]),
                "next_taken_rank": None if last else int(expected.taken_rank[index]),
            }
        )
    return {
        "checkpoint": dict(messages.describe(ckpt)),
        "cropped": traced.cropped,
        "positions": positions,
        "head_scores": {
            name: without_nan(_rows(values)) for name, values in head_scores(traced.pattern, traced.tokens).items()
        },
        "logit_difference": traced.logit_difference,
        "compared": traced.compared,
        "row_sum_error": traced.row_sum_error,
        "pattern": None
        if layer is None and head is None
        else [row[: index + 1] for index, row in enumerate(_rows(messages.head_of(traced, layer, head)))],
        "message": dict(messages.read_as(ckpt, text, messages.message_of(ckpt, traced))) if packed else None,
    }


def _rows(table: Float[Tensor, "row column"]) -> list[list[float]]:
    return cast(list[list[float]], table.tolist())


def _continuations(
    models: Models, prompt: str, checkpoint: str, max_new_tokens: int, sampling: Sampling
) -> Iterator[Continuation]:
    ckpt = models.load(checkpoint)
    length = messages.length_from_control(max_new_tokens)
    tokens: list[GeneratedToken] = []
    messages.some_ids(ckpt, prompt)
    for step in generate(
        ckpt,
        prompt,
        max_new_tokens=length,
        **sampling.options(),
    ):
        tokens.append(
            {
                "position": step.position,
                "token": step.token,
                "id": step.token_id,
                "probability": step.probability,
                "model_probability": step.model_probability,
                "rank": step.rank,
            }
        )
        yield {
            "checkpoint": ckpt.path.name,
            "prompt": prompt,
            "generated": ckpt.tokenizer.decode(each["id"] for each in tokens),
            "seed": sampling.seed,
            "tokens": tokens,
            "done": len(tokens) == length,
        }
