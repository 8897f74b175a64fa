"""`/export` for programs: an analysis as a file, which Gradio keeps as long as its own cache says."""

from typing import Literal, TypedDict

from gradio import events, processing_utils
from gradio.utils import get_upload_folder

from minigpt.ui import messages
from minigpt.ui.boundary import for_clients
from minigpt.ui.downloads import Download, Wanted, download
from minigpt.ui.endpoints import check_type
from minigpt.ui.models import Models


class ExportedFile(TypedDict):
    """A file as Gradio's clients fetch it: `url` leads to it, `orig_name` is a name for it."""

    path: str
    url: str | None
    orig_name: str
    mime_type: str
    size: int
    is_stream: bool
    meta: dict[str, str]


def add_export_endpoint(models: Models) -> None:
    """Add `/export` to the page that is being built."""

    def export(
        text: str,
        format: Literal["npz", "csv", "json", "html"] = "npz",
        checkpoint: str = "",
        layer: int = 0,
        head: int = 0,
        language: Literal["en", "ko"] = "en",
    ) -> ExportedFile:
        """Return the attention weights of a text as a file.

        Args:
            text: At least one token; of a longer one than the model's window only the end is looked at.
            format: `npz` or `json` for every number of all heads, `csv` for the weights of one head, `html` for a page
                with every head that works without a server.
            checkpoint: The name of a model; empty for the first.
            layer: Of the head in a `csv`, and of the head that an `html` shows first, from 0.
            head: The same.
            language: Of an `html`.
        """
        try:
            check_type("text", text, str)
            check_type("checkpoint", checkpoint, str)
            ckpt = models.load(checkpoint)
            wanted = Wanted(format=format, layer=layer, head=head, language=language)
            return _served(download(models, ckpt, messages.some_ids(ckpt, text), wanted))
        except Exception as error:
            raise for_clients(error) from error

    events.api(export, api_name="export", concurrency_id="analysis")


def _served(made: Download) -> ExportedFile:
    """Put a file into Gradio's cache, from where its clients fetch it."""
    path = processing_utils.save_bytes_to_cache(made.content, made.name, get_upload_folder())
    return {
        "path": path,
        "url": None,
        "orig_name": made.name,
        "mime_type": made.media_type,
        "size": len(made.content),
        "is_stream": False,
        "meta": {"_type": "gradio.FileData"},
    }
