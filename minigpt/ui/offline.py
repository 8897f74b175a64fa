"""The viewer and one analysis as a single page that opens from a disk, with no server and no network.

The viewer's own modules travel in it, unchanged but for their imports, which an import map leads to the modules beside
them; and plotly.js as the installed package has it. What people typed stands in a block of JSON, where nothing is
markup.
"""

import base64
import html
import json
import re
from collections.abc import Mapping

from minigpt import wire
from minigpt.ui.assets import FOLDER, plotly_script
from minigpt.ui.words import starting_with, word

ENTRY = "offline.js"
STYLES = ("viewer.css", "offline.css")
NO_LIMIT = 2**31
"""Bytes of a message that holds all heads at full resolution: `minigpt.exports.check_size` bounds it before."""
_IMPORT = re.compile(r"""(\bfrom\s+|\bimport\s*\(?\s*)(['"])\./([\w.-]+\.js)\2""")
_SHOWN = 80
"""Characters of the text that stand in the page's title."""

_PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{style}
</style>
<script>
{plotly}
</script>
<script type="importmap">
{imports}
</script>
</head>
<body>
<main class="mg-offline"></main>
<script type="application/json" id="mg-data">
{data}
</script>
<script type="module">
import {{ open }} from 'viewer/{entry}';
await open(document.querySelector('.mg-offline'), JSON.parse(document.getElementById('mg-data').textContent));
</script>
</body>
</html>
"""


def page_of(
    message: wire.AnalysisMessage, text: str, language: str, choice: Mapping[str, int | str] | None = None
) -> bytes:
    """Return the page with an analysis.

    Args:
        message: The analysis, with all heads at full resolution.
        text: What was analysed, for the title.
        language: The one that the page opens with.
        choice: What is chosen when it opens: fields of a link.
    """
    shown = re.sub(r"\s+", " ", text).strip()
    shown = shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"
    data = {
        "message": message,
        "words": starting_with("viewer."),
        "language": language,
        "choice": dict(choice or {}),
    }
    return _PAGE.format(
        language=language,
        title=html.escape(f"{word(language, 'viewer.offline_title')} · {message['checkpoint']['name']} · {shown}"),
        style="\n".join((FOLDER / name).read_text(encoding="utf-8") for name in STYLES),
        plotly=_script(plotly_script().read_text(encoding="utf-8")),
        imports=_json({"imports": {f"viewer/{name}": source for name, source in _modules().items()}}),
        data=_json(data),
        entry=ENTRY,
    ).encode()


def _modules() -> dict[str, str]:
    """Return every module that the page needs as a `data:` address, by its name."""
    needed = [ENTRY]
    modules: dict[str, str] = {}
    for name in needed:  # grows meanwhile
        source = (FOLDER / name).read_text(encoding="utf-8")
        needed += [found[3] for found in _IMPORT.finditer(source) if found[3] not in needed]
        code = _IMPORT.sub(r"\1\2viewer/\3\2", source)
        modules[name] = f"data:text/javascript;base64,{base64.b64encode(code.encode()).decode()}"
    return modules


def _json(value: object) -> str:
    """Return JSON that ends no script element, whatever stands in it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _script(code: str) -> str:
    """Return JavaScript that ends no script element: strings read the same with the slash escaped."""
    return re.sub(r"</(?=script)", r"<\\/", code, flags=re.IGNORECASE)
