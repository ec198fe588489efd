"""`check_models`: what it says of models, of kernels that are wrong, faulty or slow, and the page it writes."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxla.codegen.gpu.compile_nvrtc import CompiledKernel, compile_cuda
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array
from tests.gpu import check_models, kernel_checks, model_kernels
from tests.gpu.running import reference
from tests.gpu.test_models import mlp, model_of, top_k


def saved(folder: Path, **models: onnx.ModelProto) -> list[str]:
    for name, model in models.items():
        onnx.save(model, folder / f"{name}.onnx")
    return [str(folder / f"{name}.onnx") for name in models]


def data_decide() -> onnx.ModelProto:
    model = model_of([helper.make_node("NonZero", ["x"], ["y"])], {"x": (4,)}, {})
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    return model


def softmax() -> onnx.ModelProto:
    return model_of([helper.make_node("Softmax", ["x"], ["y"])], {"x": (3, 1000)}, {})


def said(results: Path) -> list[str]:
    """Of the only model there."""
    return list(json.loads(results.read_text())["said"].values())


def test_a_page_about_models_each_of_them_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = saved(tmp_path, mlp=mlp(), top_k=top_k(), data_decide=data_decide())
    results, table = tmp_path / "results", tmp_path / "table.md"
    options = ["--blocks", "2", "--architectures", "sm_80,sm_90", "--results", str(results)]
    assert check_models.main([*paths, *options]) == 1
    monkeypatch.setattr(check_models, "planned", None)
    assert check_models.main([*paths, *options, "--table", str(table)]) == 1
    assert [json.loads(line)["model"] for line in results.read_text().splitlines()] == ["mlp", "top_k", "data_decide"]
    page = table.read_text()
    assert "3 models, 2 of which compile, have " in page and " 0 clean, 0 too long to simulate, 0 wrong." in page
    assert "| data_decide | " in page.partition("## Refused")[2]
    assert "| mlp | 3 | 3 | 3 |  | " in page and "Neither" not in page


def test_a_wrong_number_is_a_complaint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def otherwise(instruction: Instruction, arrays: list[Array]) -> list[Array]:
        (result,) = reference(instruction, arrays)
        return [np.where(np.arange(result.size).reshape(result.shape) == 7, 2, result)]

    monkeypatch.setattr(kernel_checks, "reference", otherwise)
    results = tmp_path / "results"
    assert check_models.main([*saved(tmp_path, m=softmax()), "--blocks", "2", "--results", str(results)]) == 1
    assert said(results) == ["1 of 2000 values are wrong"]


def test_a_fault_is_a_complaint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_a_barrier(source: str, architecture: str) -> CompiledKernel:
        return compile_cuda(source.replace("__syncthreads();", "", 1), architecture)

    monkeypatch.setattr(model_kernels, "compile_cuda", without_a_barrier)
    results = tmp_path / "results"
    assert check_models.main([*saved(tmp_path, m=softmax()), "--blocks", "2", "--results", str(results)]) == 1
    (complaint,) = said(results)
    assert complaint.startswith("faults {('shared race', ")


def test_what_takes_too_long_is_named(tmp_path: Path) -> None:
    results, table = tmp_path / "results", tmp_path / "table.md"
    limit = ["--blocks", "2", "--seconds", "1e-6", "--results", str(results), "--table", str(table)]
    assert check_models.main([*saved(tmp_path, m=softmax()), *limit]) == 0
    assert said(results) == [kernel_checks.TOO_LONG]
    assert "| m | onnxla_0_" in table.read_text().partition("## Neither right nor clean")[2]
