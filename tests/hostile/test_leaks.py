"""What one run leaves in memory reaches no later one: neither results nor bytes behind them depend on it."""

from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pytest
from onnx import NodeProto, helper

import onnxla
from onnxla.hlo.types import Array
from tests.hostile.models import model_of, tensor

W = np.random.default_rng(0).normal(size=(7, 7)).astype(np.float32)
MODELS: dict[str, list[NodeProto]] = {
    "rows": [helper.make_node("Softmax", ["x"], ["a"]), helper.make_node("MatMul", ["a", "w"], ["y"])],
    "padding": [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Pad", ["a", "p"], ["y"])],
    "scatter": [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Transpose", ["a"], ["b"]),
        helper.make_node("ScatterElements", ["b", "i", "u"], ["y"]),
    ],
    "sort": [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("TopK", ["a", "k"], ["y", "i2"])],
}
CONSTANTS = {
    "w": W,
    "p": np.array([1, 2, 3, 4]),
    "i": np.zeros((2, 2), np.int64),
    "u": np.ones((2, 2), np.float32),
    "k": np.array([3]),
}


def _aligned(size: int, value: int) -> Array:
    block = np.full(size + 64, value, np.uint8)
    start = -block.ctypes.data % 64
    return block[start : start + size]


def results(nodes: Sequence[NodeProto], x: Array, value: int) -> Array:
    """The first output, with every byte of the arena `value` before the run."""
    constants = {name: array for name, array in CONSTANTS.items() if any(name in n.input for n in nodes)}
    model = model_of(nodes, [tensor("x", [5, 7])], [tensor("y", None)], constants)
    with patch("onnxla.runtime.executable.aligned_bytes", lambda size: _aligned(size, value)):
        (result,) = onnxla.compile(model.SerializeToString(), num_threads=1).run(None, {"x": x})
    return np.asarray(result)


@pytest.mark.parametrize("name", MODELS)
def test_results_do_not_depend_on_what_was_in_memory(name: str) -> None:
    """Bytes of 255 are NaN as numbers."""
    x = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32)
    zeros, nans = results(MODELS[name], x, 0), results(MODELS[name], x, 255)
    assert zeros.tobytes() == nans.tobytes() and np.isfinite(zeros).all()
