"""The tutorials run as they stand: their Python and their commands, block after block, in one folder."""

import contextlib
import io
import re
import shlex
import shutil
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import EXAMPLES, onnxla

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
_BLOCK = re.compile(r"(?:<!-- needs (\w+) -->\n)?```(python|sh)\n(.*?)```", re.DOTALL)
_PACKAGES = {"JAX": "jax", "TensorFlow": ""}
"""What a block may need; the exports that need TensorFlow are kept in the examples and do not run here."""


def run(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], str, int]:
    """The names that the page's Python leaves, what it printed, and how many blocks ran."""
    shutil.copytree(EXAMPLES, folder / "examples")
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    printed, count = io.StringIO(), 0
    for needed, language, text in _BLOCK.findall((FOLDER / page).read_text()):
        if needed and (not _PACKAGES[needed] or util.find_spec(_PACKAGES[needed]) is None):
            continue
        count += 1
        if language == "sh":
            for line in text.splitlines():
                command = shlex.split(line)
                assert command[0] == "onnxla"
                ended = onnxla(*command[1:])
                assert ended.code == 0, f"{line}: {ended.err}"
        else:
            with contextlib.redirect_stdout(printed):
                exec(compile(text, page, "exec"), names)
    return names, printed.getvalue(), count


def test_digits_from_keras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, printed, count = run("mnist-from-keras.md", tmp_path, monkeypatch)
    assert count == 4 and f"accuracy {names['accuracy']:.3f}" in printed
    promised = re.search(r"It prints `accuracy ([\d.]+)`", (FOLDER / "mnist-from-keras.md").read_text())
    assert promised is not None and abs(names["accuracy"] - float(promised[1])) < 0.02


def test_a_classifier_from_a_saved_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, _, count = run("savedmodel-classifier.md", tmp_path, monkeypatch)
    assert count == 6 and names["logits"].shape == (10, 10)


def test_a_function_of_jax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    names, _, count = run("jax.md", tmp_path, monkeypatch)
    assert count == 4 and names["accuracy"] > 0.85
