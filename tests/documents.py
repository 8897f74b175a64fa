"""Read the project's documents: headings, code blocks, front matter, the tree; the tracked files."""

import re
import subprocess
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parent.parent
READMES = ("README.md", "README.ko.md")


class Block(NamedTuple):
    """One fenced block of code."""

    language: str
    code: str


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def tracked_files():
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    return [name for name in listed.decode().split("\0") if name and (ROOT / name).exists()]


def front_matter(text):
    return yaml.safe_load(re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)[1])


def code_blocks(text):
    return [Block(*found) for found in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)]


def headings(text):
    """Return the level of every heading outside code, in order."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [len(marks) for marks in re.findall(r"^(#+) ", prose, re.MULTILINE)]


def shell_lines(text):
    """Return the commands of all bash blocks, without comments, continued lines joined."""
    joined = "\n".join(block.code for block in code_blocks(text) if block.language == "bash").replace("\\\n", " ")
    return [line.split("  #")[0].strip() for line in joined.splitlines() if line.strip()]


def tree(text):
    """Return {path: description} of the block that draws the tree; folders end with a slash."""
    drawing = next(block.code for block in code_blocks(text) if block.language == "text" and "app.py" in block.code)
    entries = {}
    folders = []
    for line in drawing.splitlines():
        name, _, description = line.strip().partition(" ")
        depth = (len(line) - len(line.lstrip())) // 2
        folders[depth:] = [name]
        entries["".join(folders)] = description.strip()
    return entries


def folder_of_a_checkpoint(name):
    """Return the checkpoint's folder for a file inside one, else None."""
    parts = PurePosixPath(name).parts
    return f"checkpoints/{parts[1]}/" if parts[0] == "checkpoints" and len(parts) > 2 else None


def folder_of_results(name):
    """Return the folder of an experiment's results for a file inside one, else None."""
    parts = PurePosixPath(name).parts
    return f"experiments/{parts[1]}/" if parts[0] == "experiments" and len(parts) > 2 else None
