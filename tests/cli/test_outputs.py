"""No command writes over the model that it reads, and a bad place for dumps is an error of usage."""

from pathlib import Path

import pytest

from onnxla.errors import CompileError, Problem
from tests.cli.command import onnxla, relu_model

OVER = [
    ("compile", "-o"),
    ("inspect", "--html"),
    ("profile", "--html"),
    ("profile", "--trace"),
    ("debug", "--bundle"),
    ("validate", "--layers", "--html"),
]


@pytest.mark.parametrize("words", OVER, ids=" ".join)
def test_an_output_is_not_the_model(words: tuple[str, ...], tmp_path: Path) -> None:
    model = relu_model(tmp_path / "r.onnx")
    before = model.read_bytes()
    (tmp_path / "link.onnx").symlink_to(model)
    command, *options = words
    ended = onnxla(command, tmp_path / "link.onnx", *options, model)
    assert ended.code == 2 and "is the model itself; give the output another name" in ended.err
    assert model.read_bytes() == before


def test_two_outputs_have_two_names(tmp_path: Path) -> None:
    model, page = relu_model(tmp_path / "r.onnx"), tmp_path / "page"
    ended = onnxla("profile", model, "--html", page, "--trace", page)
    assert ended.code == 2 and "is another output" in ended.err and not page.exists()


def test_dumps_need_a_folder(tmp_path: Path) -> None:
    model, taken = relu_model(tmp_path / "r.onnx"), tmp_path / "file"
    taken.write_text("kept")
    ended = onnxla("compile", model, "-o", tmp_path / "r.onnxla", "--dump-to", taken)
    assert ended.code == 2 and "is no folder to write to" in ended.err and taken.read_text() == "kept"


def test_a_name_begins_no_line_of_a_report() -> None:
    problem = Problem(CompileError, "cause", details=(("chain", "x -> a\nevery output agrees"),))
    assert str(problem) == "cause\n  chain  x -> a\\nevery output agrees"
