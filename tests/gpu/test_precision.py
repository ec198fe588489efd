"""`precision` of target gpu on whole models, on the simulated device."""

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import onnxla
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.errors import InputError
from onnxla.runtime.device_executable import DeviceExecutable
from tests.gpu.devices import BOTH, device_named
from tests.gpu.kernel_classes import product
from tests.gpu.running import check, run, samples
from tests.gpu.test_models import feeds_of, model_of, weight
from tests.gpu.test_tensor_cores import code_of

TF32 = GpuTarget(tf32=True)


def wide_mlp() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2"], ["y"]),
    ]
    weights = {"w1": weight(48, 40), "b1": weight(48), "w2": weight(48, 36)}
    return model_of(nodes, {"x": (33, 40)}, weights)


def wide_cnn() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "w2"], ["y"], strides=[2, 2]),
    ]
    return model_of(
        nodes, {"x": (1, 8, 8, 8)}, {"w1": weight(24, 8, 3, 3), "b1": weight(24), "w2": weight(32, 24, 1, 1)}
    )


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("make", [wide_mlp, wide_cnn])
@pytest.mark.parametrize(("precision", "tolerance"), [("fp16", 4e-3), ("bf16", 3e-2), ("tf32", 4e-3), ("fp32", 2e-5)])
def test_a_model_is_as_exact_as_asked(
    make: Callable[[], onnx.ModelProto], precision: str, tolerance: float, kind: str
) -> None:
    device, model = device_named(kind), make()
    feeds = feeds_of(model)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    compiled = onnxla.compile(model, target="gpu", options={"cache_dir": None, "precision": precision})
    code = compiled.hlo("cuda")
    kinds = {"fp16": "f32.f16.f16.f32", "bf16": "f32.bf16.bf16.f32", "tf32": "f32.tf32.tf32.f32"}
    assert {k for k in kinds.values() if k in code} == ({kinds[precision]} if precision in kinds else set())
    (result,) = DeviceExecutable(compiled.programs[0], device).run(list(feeds.values()), 1)
    error = np.abs(result - expected).max()
    assert error < tolerance
    if precision != "fp32":
        assert error > 1e-6  # it did round


def test_half_precision_weights_take_half_the_memory() -> None:
    sizes = {
        precision: np.asarray(
            onnxla.compile(wide_mlp(), target="gpu", options={"cache_dir": None, "precision": precision})
            .programs[0]
            .weights
        ).nbytes
        for precision in ("fp32", "fp16")
    }
    assert sizes["fp16"] < 0.6 * sizes["fp32"]


@pytest.mark.parametrize("lhs", [0, 1])
@pytest.mark.parametrize("rhs", [0, 1])
def test_tf32_products_of_all_layouts_without_bank_conflicts(lhs: int, rhs: int) -> None:
    instruction = product(70, 36, 72, lhs=lhs, rhs=rhs)
    assert "mma" in code_of(instruction, TF32)
    arrays = samples(instruction)
    results, reports = run(instruction, arrays, target=TF32)
    assert not reports and not reports.conflicts
    exact = (arrays[0] if lhs else arrays[0].T).astype("f8") @ (arrays[1].T if rhs else arrays[1])
    np.testing.assert_allclose(results[0], exact, 2e-3, 2e-2)


def test_f32_is_never_rounded_unasked() -> None:
    assert "mma" not in code_of(product(64, 64, 64))
    check(product(64, 64, 64), rtol=1e-5, atol=1e-5)


def test_numbers_without_a_place_in_tf32_stay_what_they_are() -> None:
    instruction = product(16, 16, 16)
    x, y = np.ones((16, 16), "f4"), np.eye(16, dtype="f4")
    x[0], x[1], x[2] = np.inf, np.nan, 2.0**-130
    (result,), _ = run(instruction, [x[:, :], y + 1], target=TF32)
    assert np.isposinf(result[0]).all() and np.isnan(result[1]).all() and np.isfinite(result[2:]).all()


def test_precisions_of_a_gpu_are_refused_on_a_cpu() -> None:
    with pytest.raises(InputError, match="precision='fp16' is for target='gpu'"):
        onnxla.compile(wide_mlp(), options={"precision": "fp16"})
