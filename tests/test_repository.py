"""The repository keeps its word: what the documents say is there, is there, and works."""

import ast
import re
import shlex
import subprocess
import sys
import tomllib

import plotly.graph_objects
import pytest
from packaging.requirements import Requirement

import minigpt
from tests.documents import (
    READMES,
    ROOT,
    code_blocks,
    folder_of_a_checkpoint,
    folder_of_results,
    front_matter,
    headings,
    read,
    shell_lines,
    tracked_files,
    tree,
)

SIZE_LIMIT = 9_000_000
PUBLIC = {
    "Block",
    "CharTokenizer",
    "CheckpointError",
    "ConfigError",
    "CorpusError",
    "FeedForward",
    "Head",
    "MiniGPTError",
    "ModelConfig",
    "MultiHeadAttention",
    "MultiHeadAttentionLanguageModel",
    "PromptError",
    "SingleHeadAttentionLanguageModel",
    "TrainingConfig",
    "TransformerLanguageModel",
    "attention_grid",
    "attention_heatmap",
    "generate",
    "list_checkpoints",
    "load_checkpoint",
    "save_checkpoint",
    "trace",
    "train",
}
SPACE_COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
HARMLESS_ADDRESSES = ("http://www.w3.org/", "http://127.0.0.1")


def python_sources(*roots):
    names = [name for name in tracked_files() if name.endswith(".py") and name.startswith(roots)]
    return {name: ast.parse(read(name)) for name in names}


def pins(name):
    lines = read(name).splitlines()
    return {Requirement(line).name: line for line in lines if line and not line.startswith(("#", "-"))}


# --- the package ---------------------------------------------------------------------------------------------------


def test_every_promised_name_is_public():
    assert set(minigpt.__all__) >= PUBLIC


@pytest.mark.parametrize("name", minigpt.__all__)
def test_every_public_name_can_be_imported_and_is_documented(name):
    assert getattr(minigpt, name).__doc__


def test_importing_the_package_loads_no_heavy_library():
    code = "import sys, minigpt; print(sorted({'torch', 'plotly', 'gradio', 'numpy'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_figures_can_be_drawn_where_no_torch_is_loaded():
    code = "import sys, minigpt.figures; print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_nothing_from_a_person_is_unpickled():
    offenders = []
    for name, module in python_sources("app.py", "minigpt/").items():
        for node in ast.walk(module):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names}
                unpickling = (names | {getattr(node, "module", None)}) & {
                    "pickle",
                    "dill",
                    "joblib",
                    "shelve",
                    "marshal",
                }
                if unpickling and names != {"UnpicklingError"}:  # that one is only caught
                    offenders.append(f"{name}:{node.lineno}")
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
                safe = {word.arg: ast.unparse(word.value) for word in node.keywords}.get("weights_only")
                if safe != "True":
                    offenders.append(f"{name}:{node.lineno}")
    assert offenders == []


def test_every_pin_is_exact_has_a_reason_and_is_needed():
    imported = set()
    for module in python_sources("app.py", "minigpt/").values():
        for node in ast.walk(module):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported.add(node.module.split(".")[0])
    assert set(pins("requirements.txt")) == imported - set(sys.stdlib_module_names) - {"minigpt"}
    for name in ("requirements.txt", "requirements-dev.txt"):
        lines = read(name).splitlines()
        for line in pins(name).values():
            assert re.search(r"==[\w.]+$", line), line
            assert lines[lines.index(line) - 1].startswith("# "), f"no reason above {line}"


# --- the documents -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("readme", READMES)
def test_the_tree_has_one_described_line_for_every_file(readme):
    drawn = tree(read(readme))
    files = {folder_of_a_checkpoint(name) or folder_of_results(name) or name for name in tracked_files()}
    holders = {"checkpoints/", "experiments/"}
    folders = {name for name in drawn if name.endswith("/") and not name.startswith(tuple(holders))}
    assert {name for name in drawn if name not in folders} - holders == files
    assert all(any(name.startswith(folder) for name in files) for folder in folders)
    assert [name for name in files if not drawn[name]] == []


def test_both_readmes_have_the_same_sections_and_commands():
    english, korean = (read(name) for name in READMES)
    assert headings(english) == headings(korean)
    assert [block.language for block in code_blocks(english)] == [block.language for block in code_blocks(korean)]
    assert shell_lines(english) == shell_lines(korean)
    python = [[block.code for block in code_blocks(text) if block.language == "python"] for text in (english, korean)]
    assert python[0] == python[1]
    assert list(tree(english)) == list(tree(korean))


def test_the_readme_begins_with_the_two_commands_that_open_the_page_and_test_it():
    first = code_blocks(read("README.md"))[0]
    assert first.code.strip().splitlines() == ["make run", "make test"]


def test_every_command_in_the_documents_exists_with_the_options_shown():
    lines = [line for name in (*READMES, "CONTRIBUTING.md") for line in shell_lines(read(name))]
    targets = set(re.findall(r"^([\w-]+):", read("Makefile"), re.MULTILINE))
    assert {name for line in lines for name in re.findall(r"\bmake ([\w-]+)", line)} <= targets
    shown: dict[str, set[str]] = {}
    for words in (shlex.split(line) for line in lines if "python -m minigpt" in line):
        after = words[words.index("minigpt") + 1 :]
        shown.setdefault(after[0], set()).update(word.split("=")[0] for word in after if word.startswith("--"))
    assert shown
    for command, options in shown.items():
        run = [sys.executable, "-m", "minigpt", command, "--help"]
        ran = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert {option for option in options if option not in ran.stdout} == set(), command


def test_the_readmes_python_runs_as_it_stands(monkeypatch, tmp_path):
    shown = []
    monkeypatch.setattr(plotly.graph_objects.Figure, "show", lambda figure: shown.append(figure))
    (tmp_path / "checkpoints").mkdir()
    for folder in (ROOT / "checkpoints").iterdir():
        (tmp_path / "checkpoints" / folder.name).symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    blocks = [block.code for block in code_blocks(read("README.md")) if block.language == "python"]
    local = [code for code in blocks if "gradio_client" not in code]
    assert local
    names: dict[str, object] = {}
    for code in local:
        exec(compile(code, "README.md", "exec"), names)  # noqa: S102
    assert shown


def test_a_space_can_serve_the_repository_as_it_is():
    matter = front_matter(read("README.md"))
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert matter["sdk"] == "gradio"
    assert pins("requirements.txt")["gradio"] == f"gradio=={matter['sdk_version']}"
    assert str(matter["python_version"]) == project["requires-python"].removeprefix(">=")
    assert (ROOT / matter["app_file"]).is_file()
    assert matter["license"] == project["license"].lower()
    assert {matter["colorFrom"], matter["colorTo"]} <= SPACE_COLOURS
    assert matter["suggested_hardware"] == "cpu-basic"
    assert 0 < len(matter["short_description"]) <= 60
    assert matter["title"]
    assert matter["emoji"]


def test_changelog_and_package_agree_on_the_version():
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$", read("CHANGELOG.md"), re.MULTILINE)
    assert released[0] == tomllib.loads(read("pyproject.toml"))["project"]["version"]


@pytest.mark.parametrize("name", [*READMES, "CONTRIBUTING.md", "CHANGELOG.md"])
def test_every_local_link_leads_to_a_file(name):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)|(?:src|href)=\"([^\"#]+)", read(name))
    local = {target for pair in targets for target in pair if target and "://" not in target}
    assert {target for target in local if not (ROOT / target).exists()} == set()


# --- the files -----------------------------------------------------------------------------------------------------


def test_the_page_names_no_other_host():
    found = []
    for name in tracked_files():
        if name.startswith(("assets/viewer", "minigpt/ui", "app.py")) and name.endswith(
            (".js", ".css", ".html", ".py")
        ):
            addresses = re.findall(r"(?:https?:|wss?:)?//[\w-]+\.[\w.-]+[^\s\"'`)>]*", read(name))
            found += [f"{name}: {address}" for address in addresses if not address.startswith(HARMLESS_ADDRESSES)]
    assert found == []


def test_every_file_is_small_enough_for_a_space():
    sizes = {name: (ROOT / name).stat().st_size for name in tracked_files()}
    assert {name: size for name, size in sizes.items() if size > SIZE_LIMIT} == {}


def test_every_checkpoint_has_weights_settings_and_a_card():
    folders = {folder for name in tracked_files() if (folder := folder_of_a_checkpoint(name))}
    assert folders
    for folder in folders:
        assert {"model.safetensors", "config.json", "README.md"} <= {path.name for path in (ROOT / folder).iterdir()}


@pytest.mark.parametrize("readme", READMES)
def test_the_readme_states_the_size_and_the_loss_of_every_checkpoint(readme):
    for folder in sorted({folder for name in tracked_files() if (folder := folder_of_a_checkpoint(name))}):
        ckpt = minigpt.load_checkpoint(ROOT / folder)
        size = ckpt.config
        cells = (
            f"`{ckpt.path.name}`",
            f"{size.n_layer} × {size.n_head}",
            f"{size.n_embd}",
            f"{size.block_size}",
            f"{sum(parameter.numel() for parameter in ckpt.model.parameters()):,}",
            f"{ckpt.training['validation_loss']:.4f}",
        )
        assert f"| {' | '.join(cells)} |" in read(readme)


def test_no_test_is_switched_off():
    switches = re.compile(r"\b(pytest\.skip|pytest\.xfail|mark\.skip|mark\.skipif|mark\.xfail|importorskip)\b")
    names = [name for name in tracked_files() if name.startswith("tests/") and name.endswith(".py")]
    assert [name for name in names if switches.search(read(name)) and not name.endswith("test_repository.py")] == []
