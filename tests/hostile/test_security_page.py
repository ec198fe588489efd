"""docs/security.md names tests and files that are there, and the limits that hold."""

import re
from pathlib import Path

import pytest

from onnxla.config import CompileOptions, Limits

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)))


@pytest.mark.parametrize("file, name", TESTS)
def test_a_test_that_is_named_is_there(file: str, name: str) -> None:
    assert f"def {name}(" in (ROOT / file).read_text() if name else (ROOT / file).is_file()


def test_every_limit_is_named_with_its_default() -> None:
    for knob in Limits.describe():
        assert f"`{knob.name}`" in PAGE
    limits, options = Limits(), CompileOptions()
    assert (limits.nodes, limits.nesting, limits.unrolled_iterations) == (1_000_000, 100, 64)
    assert (limits.elements, limits.text_bytes) == (1 << 34, 1 << 30)
    assert (options.folding_bytes, options.folding_seconds, options.compile_timeout) == (256 << 20, 20.0, None)


def test_every_fuzzing_target_is_in_the_suite() -> None:
    folder = ROOT / "tests" / "hostile" / "fuzzers"
    targets = {file.stem for file in folder.glob("*.py") if "\nTARGET = " in file.read_text()}
    suite = (ROOT / "tests" / "hostile" / "test_fuzzers.py").read_text()
    assert len(targets) == 9 and all(f"({target}, " in suite for target in targets)
