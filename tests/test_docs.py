"""The documentation speaks of what is there: files, links, commands, functions, and an example that runs."""

import re
import shutil
from pathlib import Path

import pytest
import typer

from onnxla.cli.main import EXIT_CODES, app
from onnxla.codegen.kernels import math
from tests.cli.command import EXAMPLES

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
README = (ROOT / "README.md").read_text()
SKIPPED = {".git", ".venv", "build", "__pycache__"}
FOLDERS = ("frontends", "passes", "codegen", "cli")
FILES = [
    str(path.relative_to(ROOT))
    for folder in ("onnxla", *FOLDERS, "tests", "examples", "docs")
    for path in (ROOT / folder).rglob("*")
    if not SKIPPED & set(path.parts)
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert "://" in link or (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_are_there(page: Path) -> None:
    """`a/b.py` and `a/`, from the root or the end of a path; the user's own files are called model or file."""
    for name in re.findall(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|hlo|md|toml)|(?:[\w.-]+/)+)`", page.read_text()):
        known = [f for f in FILES if f == name.rstrip("/") or f.endswith(f"/{name.rstrip('/')}")]
        assert known or (ROOT / name).exists(), f"{page.name} names {name}"


OF_ONE_KIND = set(
    "rules ops math lapack derivatives simplify expand fuse layout cpu gpu ahead conformance capi".split()
)
"""Folders that the architecture names whole."""


def test_every_file_has_its_place_in_the_architecture() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = {name.rpartition("/")[2] for name in re.findall(r"`([\w./]+\.py)`", page)}
    files = [Path(f) for f in FILES if f.endswith(".py") and f.startswith(("onnxla", "frontends", "passes", "codegen"))]
    own = [f for f in files if f.stem[0] != "_" and not OF_ONE_KIND & {*f.parts} and f.parts[1] not in FOLDERS]
    assert len(own) > 300
    assert [str(f) for f in own if f.name not in named] == []


def test_every_function_has_its_error_in_the_numerics_page() -> None:
    page = (ROOT / "docs" / "numerics.md").read_text()
    assert [name for name in (*math.UNARY, *math.BINARY) if f"`{name}`" not in page] == []


def test_every_command_and_exit_code_is_in_the_readme() -> None:
    command = typer.main.get_command(app)
    names = list(command.commands)  # type: ignore[attr-defined]
    assert [name for name in names if f"`onnxla {name}" not in README] == []
    codes = re.search(r"Exit codes: (.*?)\n\n", README, re.DOTALL)
    assert codes is not None
    listed = {int(number) for number in re.findall(r"\b\d+\b", codes[1])}
    assert listed == {0, 1, 70, *EXIT_CODES.values()}
    table = (ROOT / "docs" / "runtime.md").read_text().partition("## Exit codes")[2].partition("\n## ")[0]
    rows = {int(code): text for code, text in re.findall(r"^\| (\d+) \|(.*)$", table, re.MULTILINE)}
    assert rows.keys() == {0, 1, 70, *EXIT_CODES.values()}
    assert [kind.__name__ for kind, code in EXIT_CODES.items() if f"`{kind.__name__}`" not in rows[code]] == []


def test_the_example_in_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert example is not None
    names: dict[str, object] = {}
    exec(compile(example[1], "README.md", "exec"), names)
    assert str(names["digits"]) == "[0 1 2 3 4 5 6 7 8 9]"


def test_ci_runs_the_command_of_the_readme() -> None:
    assert re.search(r"<!-- test command -->\n```sh\n[^\n]+pytest[^\n]*\n```", README)
    assert "<!-- test command -->" in (ROOT / ".ci" / "run").read_text()
