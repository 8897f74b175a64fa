"""What can be taken along as a file: the exact numbers, and the viewer itself as one page that needs no server.

Everything is made in memory for the one who asks; nothing is kept. A model that is not in the folder of checkpoints
belongs to a visitor, and what the page calls it is a secret: no file names it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from minigpt import exports
from minigpt.analysis.patterns import trace_ids
from minigpt.checkpoint import Checkpoint
from minigpt.errors import PromptError
from minigpt.ui import messages, offline
from minigpt.ui.models import Models
from minigpt.ui.words import LANGUAGES, word

MEDIA_TYPES = {
    "npz": "application/zip",
    "csv": "text/csv",
    "json": "application/json",
    "html": "text/html",
}
"""The formats of a file and their media types."""


@dataclass(frozen=True, kw_only=True)
class Download:
    """A file for the one who asked.

    Attributes:
        name: A name for it, without a folder.
        media_type: Such as `text/csv`.
        content: Its bytes.
    """

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is wanted of an analysis; all of it may come from outside.

    Attributes:
        format: One of `MEDIA_TYPES`.
        layer: Of the head that stands alone in a CSV and comes first on the page.
        head: The same.
        language: Of the page.
        choice: What else is chosen on the page: fields of a link.
    """

    format: object
    layer: object = 0
    head: object = 0
    language: object = "en"
    choice: object = None

    @classmethod
    def from_outside(cls, fields: object) -> "Wanted":
        """Read what came from a browser, whatever it is."""
        given: Mapping[str, object] = cast(Mapping[str, object], fields) if isinstance(fields, Mapping) else {}
        return cls(**{name: given.get(name) for name in cls.__dataclass_fields__})


def download(
    models: Models, ckpt: Checkpoint, ids: Sequence[int], wanted: Wanted, *, prompt_length: int | None = None
) -> Download:
    """Make a file of an analysis.

    Args:
        models: Says which names may be told.
        ckpt: The model and its tokenizer.
        ids: The text, at least one token; only the model's window of it is looked at.
        wanted: What to make.
        prompt_length: Tokens from this true position on were generated; None for none.

    Raises:
        PromptError: `unknown_format`, `head_out_of_range`, `empty_prompt`, or `export_too_large` if all heads would be
            too much.
    """
    ending, n_layer, n_head = str(wanted.format), ckpt.config.n_layer, ckpt.config.n_head
    if ending not in MEDIA_TYPES:
        raise PromptError("unknown_format", name=ending[:80], choices=", ".join(MEDIA_TYPES))
    layer, head = messages.checked_head(n_layer, n_head, wanted.layer, wanted.head)
    if ending != "csv":
        exports.check_size(n_layer, n_head, min(len(ids), ckpt.config.block_size))
    language = wanted.language if wanted.language in LANGUAGES else "en"
    generated_from = len(ids) if prompt_length is None else prompt_length
    name = shown_name(models, ckpt, cast(str, language))
    info = {**messages.describe(ckpt), "name": name}
    if ending == "html":
        message = messages.analysis_of(ckpt, ids, prompt_length=generated_from, largest=offline.NO_LIMIT)
        message["checkpoint"]["name"] = name
        choice = {**_plain(wanted.choice), "layer": layer, "head": head}
        content = offline.page_of(message, ckpt.tokenizer.decode(ids), cast(str, language), choice)
    else:
        traced = trace_ids(ckpt, ids)
        content = {
            "npz": lambda: exports.npz_of(traced, info, generated_from),
            "csv": lambda: exports.csv_of(traced, layer, head),
            "json": lambda: exports.json_of(traced, info, generated_from),
        }[ending]()
    stem = f"minigpt-{file_name(name)}" + (f"-L{layer}H{head}" if ending == "csv" else "")
    return Download(name=f"{stem}.{ending}", media_type=MEDIA_TYPES[ending], content=content)


def shown_name(models: Models, ckpt: Checkpoint, language: str) -> str:
    """Return what a model is called in files: its name in the folder of checkpoints, else that it is someone's own."""
    name = ckpt.path.name
    return name if name in models.names() else word(language, "viewer.export_own_model")


def file_name(text: str) -> str:
    """Return a text as a part of a file name: letters, digits, dots and dashes, at most 60 of them."""
    return re.sub(r"[^\w.]+", "-", text).strip("-._")[:60] or "model"


def _plain(choice: object) -> dict[str, int | str]:
    """Return the short words and whole numbers among what is chosen on the page; the viewer checks them again."""
    if not isinstance(choice, Mapping):
        return {}
    fields = list(cast(Mapping[object, object], choice).items())[:16]
    return {
        key: value
        for key, value in fields
        if isinstance(key, str) and isinstance(value, int | str) and len(key) <= 20 and len(str(value)) <= 20
    }
