"""The commands on HLO and StableHLO."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.command import onnxla

PROGRAMS = Path(__file__).parent.parent / "frontends" / "hlo" / "programs"
OPEN = """
module @open {
  func.func public @main(%arg0: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<?x3xf32>
    return %0 : tensor<?x3xf32>
  }
}
"""


@pytest.mark.parametrize("name", ["scan.mlir", "scan.generic.mlir", "scan.txt"])
def test_a_program_is_compiled_run_and_replayed(tmp_path: Path, name: str) -> None:
    artifact = tmp_path / "model.onnxla"
    made = onnxla("compile", PROGRAMS / name, "-o", artifact, "--json")
    assert made.code == 0 and len(json.loads(made.out)["inputs"]) == 2
    assert onnxla("run", artifact, "--json").code == 0
    assert json.loads(onnxla("replay", PROGRAMS / name, "--json").out)["agrees"]


def test_open_sizes(tmp_path: Path) -> None:
    path = tmp_path / "open.mlir"
    path.write_text(OPEN)
    told = onnxla("explain", path, "--json")
    document = json.loads(told.out)
    assert document["compiles"] and document["language"] == "StableHLO" and document["assumed_sizes"] == {"arg0.0": "1"}
    np.save(tmp_path / "x.npy", np.zeros((4, 3), np.float32))
    assert "float32[4,3]" in onnxla("run", path, "-i", tmp_path / "x.npy").out
    assert onnxla("replay", path, "--dim", "arg0.0=2").code == 0


def test_validate_asks_xla_or_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxla.cli.hlo_judge.xla_version", lambda: None)
    judged = json.loads(onnxla("validate", PROGRAMS / "top_k.mlir", "--json").out)
    assert judged["agrees"] and judged["witness"] == "the interpreter"
    refused = onnxla("validate", PROGRAMS / "top_k.mlir", "--layers")
    assert refused.code == 2 and "for ONNX models" in refused.err


@pytest.mark.parametrize("name", ["scan.mlir", "cholesky.generic.mlir", "top_k.txt"])
def test_xla_judges_where_it_is_installed(name: str) -> None:
    pytest.importorskip("jax")
    judged = json.loads(onnxla("validate", PROGRAMS / name, "--json").out)
    assert judged["agrees"] and judged["witness"].startswith("XLA (jaxlib")


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text(OPEN.replace("?", "2").replace("stablehlo.tanh", "stablehlo.tan_h"))
    refused = onnxla("compile", path)
    assert refused.code == 3 and "stablehlo.tan_h is not supported" in refused.err and "line 4, column 5" in refused.err
    path.write_text(OPEN.replace("?", "2").replace("return", "retur"))
    assert onnxla("compile", path).code == 2
    for command in ("bench", "validate --exact"):
        assert onnxla(*command.split(), PROGRAMS / "scan.mlir").code == 2


def test_unknown_operations_of_xlas_text_are_3(tmp_path: Path) -> None:
    """As those of StableHLO's; a text that is none besides is 2."""
    path = tmp_path / "two.hlo"
    path.write_text("ENTRY main {\n  x = f32[2] parameter(0)\n  y = f32[2] wave(x)\n  ROOT z = f32[2] negat(y)\n}\n")
    for command in ("explain", "compile", "opt"):
        ended = onnxla(command, path)
        assert ended.code == 3 and "UnsupportedOpError: 2 problems" in ended.err and "negate meant?" in ended.err
    path.write_text(path.read_text().replace("negat(y)", "negate(nosuch)"))
    ended = onnxla("explain", path)
    assert ended.code == 2 and "HloError: 2 problems" in ended.err and "unknown operation wave" in ended.err


def test_ops_lists_operations_of_stablehlo_and_of_hlo() -> None:
    assert "stablehlo.dot_general" in json.loads(onnxla("ops", "dot", "--stablehlo", "--json").out)
    assert json.loads(onnxla("ops", "dynamic-s", "--hlo", "--json").out) == ["dynamic-slice"]
