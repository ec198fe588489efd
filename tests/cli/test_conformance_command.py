"""`onnxla conformance`: counts, the table, and its exit codes."""

from pathlib import Path

import pytest

from tests.cli.command import onnxla, succeed


@pytest.mark.filterwarnings("ignore")
def test_counts_of_both() -> None:
    ended = succeed("conformance", "test_relu")
    assert "2 tests: 2 pass, 0 are rejected, 0 fail" in ended.out
    assert "onnxruntime: 2 pass" in ended.out


@pytest.mark.filterwarnings("ignore")
def test_rejections_name_their_kind() -> None:
    (result,) = succeed("conformance", "test_nonzero", "--no-reference", "--json").json
    assert (result["operator"], result["status"], result["kind"]) == ("NonZero", "reject", "DynamicShapeError")


@pytest.mark.filterwarnings("ignore")
def test_table(tmp_path: Path) -> None:
    page = tmp_path / "table.md"
    succeed("conformance", "test_unique_length_1", "--table", page)
    assert "| Unique | 28 | 1 |  | 1 |  | 1 |  |  |" in page.read_text()
    assert "- test_unique_length_1" in page.read_text()


@pytest.mark.filterwarnings("ignore")
def test_failures_end_with_one() -> None:
    ended = onnxla("conformance", "test_dft_inverse_opset19", "--no-reference")
    assert ended.code == 1
    assert "test_dft_inverse_opset19: mismatch: output 0: 10 of 200 differ" in ended.out


def test_no_such_test() -> None:
    ended = onnxla("conformance", "nothing like this")
    assert ended.code == 2 and "no test has 'nothing like this' in its name" in ended.err
