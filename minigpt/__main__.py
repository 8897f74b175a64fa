"""`python -m minigpt`: the command line."""

import sys

from minigpt.cli import main

if __name__ == "__main__":
    sys.exit(main())
