"""The logit lens: what the model would say if it stopped after each layer (nostalgebraist 2020, "interpreting GPT").

The residual stream at every point goes straight through the last LayerNorm and `lm_head`. Neither was trained on it, so
an early layer that says nonsense may still know something in another form.
"""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from minigpt.analysis.ablation import kl_bits
from minigpt.analysis.anatomy import anatomy
from minigpt.analysis.forward import forward
from minigpt.analysis.frames import frame, numbers
from minigpt.analysis.window import Window, window_of
from minigpt.checkpoint import Checkpoint
from minigpt.tokenizer import Text


@dataclass(frozen=True, kw_only=True)
class Lens:
    """What the model would say at every point of the residual stream: the embeddings, then after each layer.

    Attributes:
        window: What was read.
        top_ids: The likeliest token.
        top_tokens: Its text, point by point.
        top_probability: Its probability, 0 to 1.
        final_ids: What the model says in the end: the likeliest token after the last layer.
        final_probability: The probability of that token at every point, 0 to 1.
        kl: How far the end is from here: Kullback–Leibler divergence Σ end · log₂(end ∕ here), in bits, at least 0.
    """

    window: Window
    top_ids: Int[Tensor, "point position"]
    top_tokens: list[list[str]]
    top_probability: Float[Tensor, "point position"]
    final_ids: Int[Tensor, " position"]
    final_probability: Float[Tensor, "point position"]
    kl: Float[Tensor, "point position"]

    def to_frame(self) -> Any:  # noqa: ANN401 (a pandas.DataFrame)
        """Return one row per point and position; layer −1 is the embeddings."""
        points, time = self.kl.shape
        return frame(
            {
                "layer": [point - 1 for point in range(points) for _ in range(time)],
                "position": list(range(self.window.start, self.window.start + time)) * points,
                "token": self.window.tokens * points,
                "says": [token for tokens in self.top_tokens for token in tokens],
                "probability": numbers(self.top_probability),
                "final_probability": numbers(self.final_probability),
                "kl_bits": numbers(self.kl),
            }
        )


def logit_lens(ckpt: Checkpoint, text: Text) -> Lens:
    """Say at every layer and position what the model would say if it stopped there.

    Args:
        ckpt: The model and its tokenizer.
        text: A text or its ids, at least one token long; the last `block_size` tokens are read.

    Raises:
        PromptError: If the text cannot be read.
    """
    window = window_of(ckpt, text)
    parts = anatomy(ckpt.model)
    stream = forward(parts, window.idx).inside.residual[0]
    logs = parts.logits(stream).double().log_softmax(-1)
    probability = logs.exp()
    top = probability.max(-1)
    final = top.indices[-1]
    return Lens(
        window=window,
        top_ids=top.indices,
        top_tokens=[[ckpt.tokenizer.piece(token_id) for token_id in numbers(ids)] for ids in top.indices],
        top_probability=top.values,
        final_ids=final,
        final_probability=probability.gather(2, final.expand(len(logs), -1)[..., None])[..., 0],
        kl=kl_bits(logs[-1:].expand_as(logs), logs),
    )
