"""Build the page and serve it: `python app.py`.

The address comes from GRADIO_SERVER_NAME and GRADIO_SERVER_PORT, the models from MINIGPT_CHECKPOINTS, results of
experiments from MINIGPT_EXPERIMENTS; MINIGPT_TRAIN=1 lets everyone train from the page, MINIGPT_TRAIN=0 no one. With
MINIGPT_OPEN_BROWSER=1 a browser opens on the page. With `--mcp` or MINIGPT_MCP=1 it is a server of tools as well.
"""

import os
import sys

from minigpt.ui.mcp import mcp_wanted
from minigpt.ui.page import build_app, launch_options

demo = build_app()

if __name__ == "__main__":
    demo.launch(
        inbrowser=os.environ.get("MINIGPT_OPEN_BROWSER") == "1",
        mcp_server=mcp_wanted(sys.argv[1:], os.environ),
        **launch_options(),
    )
