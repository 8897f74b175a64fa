"""The chapters' common mistakes: each is made anew, by this process, and what this package says to it is answered.

A mistake is a function, and its source is the code that the page shows: so what is shown is what was run. Most end in
an error; one that does not returns what a reader could print to see it.
"""

import functools
import inspect
import textwrap
from collections.abc import Callable

import torch

from minigpt.errors import MiniGPTError
from minigpt.model import TransformerLanguageModel
from minigpt.splits import get_batch
from minigpt.tokenizer import CharTokenizer
from minigpt.ui.asking import Asked
from minigpt.ui.words import WORDS, sentences

Mistake = Callable[[], object]


def _heads() -> object:
    return TransformerLanguageModel(vocab_size=65, block_size=16, n_embd=64, n_head=3, n_layer=2)


def _window() -> object:
    model = TransformerLanguageModel(vocab_size=65, block_size=16, n_embd=32, n_head=4, n_layer=2)
    text = torch.zeros(1, 17, dtype=torch.long)
    return model(text)


def _characters() -> object:
    tokenizer = CharTokenizer("hello, attention")
    return tokenizer.encode("Hello?")


def _ids() -> object:
    model = TransformerLanguageModel(vocab_size=65, block_size=16, n_embd=32, n_head=4, n_layer=2)
    return model(torch.tensor([[1, 2, 65]]))


def _batch() -> object:
    model = TransformerLanguageModel(vocab_size=65, block_size=16, n_embd=32, n_head=4, n_layer=2)
    return model(torch.tensor([1, 2, 3]))


def _targets() -> object:
    model = TransformerLanguageModel(vocab_size=65, block_size=16, n_embd=32, n_head=4, n_layer=2)
    text = torch.zeros(1, 9, dtype=torch.long)
    return model(text[:, :-1], targets=text)


def _eval() -> object:
    model = TransformerLanguageModel(vocab_size=65, block_size=16, n_embd=32, n_head=4, n_layer=2, dropout=0.2)
    text = torch.zeros(1, 8, dtype=torch.long)
    first, second = model(text)[0], model(text)[0]
    return (first - second).abs().max().item()


def _mask() -> object:
    model = TransformerLanguageModel(vocab_size=65, block_size=16, n_embd=32, n_head=4, n_layer=1)
    state = model.state_dict()
    state["blocks.0.sa.heads.0.tril"] = torch.ones(16, 16)
    return model.load_state_dict(state)


def _state_dict() -> object:
    saved = TransformerLanguageModel(vocab_size=65, block_size=8, n_embd=32, n_head=1, n_layer=1).state_dict()
    model = TransformerLanguageModel(vocab_size=65, block_size=16, n_embd=32, n_head=1, n_layer=1)
    return model.load_state_dict(saved)


def _short_text() -> object:
    tokenizer = CharTokenizer("hello, attention")
    return get_batch(torch.tensor(tokenizer.encode("hello")), block_size=16, batch_size=4)


def _dropout() -> object:
    return TransformerLanguageModel(vocab_size=65, block_size=16, n_embd=32, n_head=4, n_layer=2, dropout=20)


MISTAKES: dict[str, Mistake] = {
    mistake.__name__.removeprefix("_"): mistake
    for mistake in (
        _heads,
        _window,
        _characters,
        _ids,
        _batch,
        _targets,
        _mask,
        _eval,
        _state_dict,
        _short_text,
        _dropout,
    )
}


def code_of(mistake: Mistake) -> str:
    """Return the lines of a mistake as a person would type them: the last without its `return`."""
    _, _, body = inspect.getsource(mistake).partition("\n")
    lines = textwrap.dedent(body).strip().splitlines()
    return "\n".join([*lines[:-1], lines[-1].removeprefix("return ")])


def made(mistake: Mistake) -> dict[str, object]:
    """Make a mistake and tell what comes of it.

    Returns:
        The `code`; `error`, the name of the exception's class, or None; `said`, what the package says, in every
        language of the page, or what the code returns where it raises nothing.
    """
    try:
        returned = mistake()
    except MiniGPTError as error:
        said, name = sentences(error), type(error).__name__
    except Exception as error:  # whatever it is, it is shown by its name and words
        said, name = dict.fromkeys(WORDS, str(error)), type(error).__name__
    else:
        said, name = dict.fromkeys(WORDS, str(returned)), None
    return {"code": code_of(mistake), "error": name, "said": said}


@functools.cache
def all_made() -> dict[str, object]:
    """Make every mistake, once: neither the text nor the model of the page plays a part."""
    return {name: made(mistake) for name, mistake in MISTAKES.items()}


def mistakes(_asked: Asked) -> dict[str, object]:
    """Answer every mistake with its code and what was said to it."""
    return all_made()
