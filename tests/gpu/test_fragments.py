"""Which thread holds which element of a fragment: products of small whole numbers, which every precision multiplies
exactly, through each tensor core instruction and each layout of the factors. One element in the wrong place shows.

The simulator was written from the same pages as the generator, so it is on a GPU that this says most: there it comes
first (`scripts/gpu_check.sh`).
"""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxla
from onnxla.runtime.device_executable import DeviceExecutable
from tests.gpu.devices import BOTH, device_named

SIZE = 64, 48, 40
INSTRUCTIONS = {"fp16": ".f32.f16.f16.f32", "bf16": ".f32.bf16.bf16.f32", "tf32": ".f32.tf32.tf32.f32"}


def product(m: int, k: int, n: int, left: int, right: int) -> onnx.ModelProto:
    """y = a b, where a and b may lie transposed."""
    shapes = {"a": (k, m) if left else (m, k), "b": (n, k) if right else (k, n)}
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["a", "b"], ["y"], transA=left, transB=right)],
        "product",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("right", [0, 1])
@pytest.mark.parametrize("left", [0, 1])
@pytest.mark.parametrize("precision", INSTRUCTIONS)
def test_products_of_whole_numbers_are_exact(precision: str, left: int, right: int, kind: str) -> None:
    device = device_named(kind)
    rng = np.random.default_rng(0)
    m, k, n = SIZE
    options = {"precision": precision, "cache_dir": None}
    compiled = onnxla.compile(product(m, k, n, left, right), target="gpu", options=options)
    assert INSTRUCTIONS[precision] in compiled.hlo("cuda")
    a, b = rng.integers(-8, 9, (m, k)).astype("f4"), rng.integers(-8, 9, (k, n)).astype("f4")
    given = [a.T.copy() if left else a, b.T.copy() if right else b]
    (result,) = DeviceExecutable(compiled.programs[0], device).run(given, 1)
    np.testing.assert_array_equal(result, a @ b)


@pytest.mark.parametrize("kind", BOTH)
def test_products_of_bytes_are_exact(kind: str) -> None:
    device = device_named(kind)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b"], ["y"])],
        "bytes",
        [
            helper.make_tensor_value_info("a", TensorProto.UINT8, (32, 64)),
            helper.make_tensor_value_info("b", TensorProto.INT8, (64, 40)),
        ],
        [helper.make_tensor_value_info("y", TensorProto.INT32, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    compiled = onnxla.compile(model, target="gpu", options={"cache_dir": None})
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 256, (32, 64), np.uint8), rng.integers(-128, 128, (64, 40), np.int8)
    (result,) = DeviceExecutable(compiled.programs[0], device).run([a, b], 1)
    np.testing.assert_array_equal(result, a.astype("i4") @ b.astype("i4"))
