"""Where the viewer's files lie, and the addresses under which the page serves them."""

from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "viewer"


def served(path: Path) -> str:
    """Return the address of a static file, relative to the page, so that it works below a sub-path as well."""
    return f"gradio_api/file={quote(path.as_posix())}"


def plotly_script() -> Path:
    """Return the plotly.js of the installed plotly package.

    Raises:
        ImportError: If plotly is not installed.
    """
    found = find_spec("plotly")
    if found is None or found.origin is None:
        raise ImportError("plotly is not installed; install what requirements.txt lists")
    return Path(found.origin).parent / "package_data" / "plotly.min.js"
