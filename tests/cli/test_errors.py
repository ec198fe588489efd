"""Exit codes, and how errors are printed."""

from pathlib import Path

import pytest
from onnx import helper

from onnxla.cli.main import exit_code
from onnxla.errors import (
    ArtifactError,
    CompileError,
    DeviceError,
    DynamicShapeError,
    HloError,
    InputError,
    InternalError,
    ModelFormatError,
    OnnxlaError,
    ResourceLimitError,
    UnboundDimensionsError,
)
from tests.cli.command import DIGITS, onnxla, relu_model, save_model, succeed


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError(""), 2),
        (ModelFormatError(""), 2),
        (HloError(""), 2),
        (CompileError(""), 3),
        (DynamicShapeError(""), 3),
        (UnboundDimensionsError(""), 3),
        (ArtifactError(""), 4),
        (ResourceLimitError(""), 5),
        (DeviceError(""), 6),
        (InternalError(""), 70),
        (OnnxlaError(""), 70),
        (ZeroDivisionError(), 70),
        (KeyboardInterrupt(), 130),
    ],
)
def test_every_kind_of_error_has_its_exit_code(error: BaseException, code: int) -> None:
    assert exit_code(error) == code


def test_no_traceback_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "missing.onnx"
    monkeypatch.delenv("ONNXLA_DEBUG", raising=False)
    ended = onnxla("compile", missing)
    assert ended.code == 2
    assert ended.err == f"ModelFormatError: {missing} cannot be opened: No such file or directory\n"
    monkeypatch.setenv("ONNXLA_DEBUG", "1")
    assert "Traceback (most recent call last)" in onnxla("compile", missing).err


def test_a_model_that_cannot_be_compiled_names_every_node(tmp_path: Path) -> None:
    model = save_model(
        tmp_path / "m.onnx",
        helper.make_node("NonZero", ["x"], ["a"], "first"),
        helper.make_node("Mystery", ["x"], ["b"], "second", domain="somewhere"),
        helper.make_node("Cast", ["a"], ["c"], "third", to=1),
        helper.make_node("Add", ["b", "c"], ["y"], "fourth"),
    )
    ended = onnxla("compile", model, "-o", tmp_path / "m.onnxla")
    assert ended.code == 3
    assert "first (NonZero" in ended.err and "second (somewhere.Mystery" in ended.err
    assert not (tmp_path / "m.onnxla").exists()
    explained = onnxla("explain", model, "--json")
    assert explained.code == 3
    assert len(explained.json["problems"]) == 2
    as_json = onnxla("compile", model, "--json")
    assert as_json.code == 3 and len(as_json.json["error"]["problems"]) == 2


def test_a_damaged_artifact(tmp_path: Path) -> None:
    artifact = tmp_path / "m.onnxla"
    succeed("compile", relu_model(tmp_path / "m.onnx"), "-o", artifact)
    artifact.write_bytes(artifact.read_bytes()[:-10])
    ended = onnxla("run", artifact)
    assert ended.code == 4 and ended.err.startswith("ArtifactError: ")


def test_a_size_that_is_missing_says_how_to_give_it(tmp_path: Path) -> None:
    ended = onnxla("compile", DIGITS, "-o", tmp_path / "d.onnxla")
    assert ended.code == 2
    assert "hint   give --dim batch=1" in ended.err


def test_wrong_usage(tmp_path: Path) -> None:
    assert onnxla("nothing").code == 2
    assert onnxla("run").code == 2
    assert onnxla("run", DIGITS, "--threads", 0).code == 2
    assert onnxla("run", DIGITS, "--option", "speed=9").code == 2
    assert onnxla("compile", DIGITS, "--dim", "batch=1", "--target", "abacus").code == 6
    text = tmp_path / "t.onnx"
    text.write_text("this is no model")
    assert onnxla("explain", text).code == 2
    assert onnxla("inspect", DIGITS, "--after", "tea").code == 2


def test_a_limit_that_is_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXLA_MAX_NODES", "3")
    assert onnxla("compile", DIGITS, "--dim", "batch=1").code == 5
