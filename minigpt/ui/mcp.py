"""The flag that offers the HTTP interface to language models as tools, over the Model Context Protocol.

Gradio does the work. It needs the package `mcp`, which the page itself does not, and would start without a word where
that is missing; so it is looked for first.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

VARIABLE = "MINIGPT_MCP"
"""The environment variable that asks for the tools, with the value 1."""
PACKAGE = "mcp>=1.21,<2"
MISSING = (
    "The tools over MCP need one more package. Install it with\n\n"
    f'    {{python}} -m pip install "{PACKAGE}"\n\n'
    f"and start again, or leave out --mcp and {VARIABLE}."
)


def mcp_wanted(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Return whether to offer the tools: with `--mcp` on the command line, or MINIGPT_MCP=1.

    Raises:
        SystemExit: If the package is not there, with the sentence that says how to install it; or if the command line
            holds anything else.
    """
    parser = argparse.ArgumentParser(prog="app.py", description="Serve the page.")
    parser.add_argument("--mcp", action="store_true", help="offer the HTTP interface as tools over MCP as well")
    wanted = parser.parse_args(arguments).mcp or environment.get(VARIABLE) == "1"
    if wanted and find_spec("mcp") is None:
        sys.exit(MISSING.format(python=sys.executable))
    return wanted
