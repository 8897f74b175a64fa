"""What of a text a model can see, and which token of it is asked about. Positions count from the start of the text."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from minigpt.checkpoint import Checkpoint
from minigpt.errors import ConfigError, PromptError
from minigpt.tokenizer import Text, ids_of


@dataclass(frozen=True, kw_only=True)
class Window:
    """The last `block_size` tokens of a text.

    Attributes:
        ids: Their ids.
        tokens: The text of each.
        start: True position of the first.
    """

    ids: list[int]
    tokens: list[str]
    start: int

    @property
    def idx(self) -> Int[Tensor, " time"]:
        """The ids as a tensor."""
        return torch.tensor(self.ids)

    def place(self, position: int | None) -> int:
        """Return where a true position stands in the window; None is the last.

        Raises:
            PromptError: `position_out_of_range`.
        """
        last = self.start + len(self.ids) - 1
        if position is None:
            position = last
        if not self.start <= position <= last:
            raise PromptError("position_out_of_range", position=position, first=self.start, last=last)
        return position - self.start


def window_of(ckpt: Checkpoint, text: Text) -> Window:
    """Return what the model sees of a text.

    Raises:
        PromptError: `empty_prompt` if there is no token, `unknown_characters` if the vocabulary lacks any.
    """
    ids = ids_of(ckpt.tokenizer, text)
    if not ids:
        raise PromptError("empty_prompt")
    start = max(0, len(ids) - ckpt.config.block_size)
    window = ids[start:]
    return Window(ids=window, tokens=[ckpt.tokenizer.piece(token_id) for token_id in window], start=start)


def reference_ids(ckpt: Checkpoint, reference: Text | None, text: Text) -> list[int]:
    """Return the ids of the reference text; of the text itself where there is no other.

    Raises:
        PromptError: `empty_prompt` or `unknown_characters`.
    """
    ids = ids_of(ckpt.tokenizer, text if reference is None else reference)
    if not ids:
        raise PromptError("empty_prompt")
    return ids


def token_id(ckpt: Checkpoint, token: int | str) -> int:
    """Return the id of a token that is given as its id or as its text.

    Raises:
        PromptError: `not_one_token` if the text is not exactly one token, `unknown_characters`.
        ConfigError: `number_out_of_range` if there is no such id.
    """
    if isinstance(token, int):
        if not 0 <= token < ckpt.config.vocab_size:
            allowed = f"0 – {ckpt.config.vocab_size - 1}"
            raise ConfigError("number_out_of_range", name="token", value=token, allowed=allowed)
        return token
    ids = ckpt.tokenizer.encode(token)
    if len(ids) != 1:
        raise PromptError("not_one_token", text=repr(token), count=len(ids))
    return ids[0]


def chosen_token(
    ckpt: Checkpoint, window: Window, place: int, token: int | str | None, logits: Float[Tensor, " vocab"]
) -> int:
    """Return the token that is asked about: the given one, else the one that follows, else the likeliest.

    Args:
        ckpt: The model and its tokenizer.
        window: What it reads.
        place: Position in the window after which the token stands.
        token: An id or a text; None to choose.
        logits: Those after that position.
    """
    if token is not None:
        return token_id(ckpt, token)
    return window.ids[place + 1] if place + 1 < len(window.ids) else int(logits.argmax())


def token_losses(logits: Float[Tensor, "run query vocab"], ids: Sequence[int]) -> Float[Tensor, "run following"]:
    """Return the cross-entropy of each token but the first given those before it, in nats."""
    taken = torch.tensor(ids[1:], dtype=torch.long)[None, :, None].expand(len(logits), -1, 1)
    return -logits[:, :-1].log_softmax(-1).gather(2, taken)[..., 0]


def text_loss(logits: Float[Tensor, "run query vocab"], ids: Sequence[int]) -> Float[Tensor, " run"]:
    """Return the mean cross-entropy of each token given those before it, in nats per token; NaN for a single token."""
    return token_losses(logits, ids).mean(1)
