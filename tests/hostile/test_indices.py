"""Indices, coordinates and lengths that arrive when a model runs: whatever they are, only tensors are touched.

Every tensor lies between pages without access (tests/fuzz/guard.py), so a touch outside ends the process.
"""

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper
from onnx.helper import np_dtype_to_tensor_dtype

import onnxla
from onnxla.hlo.types import Array
from tests.fuzz.guard import guard_pages, guarded_copy
from tests.hostile.models import model_of, tensor

WILD = np.array([0, 4, 5, -5, -6, 1 << 31, -(1 << 31), 1 << 40, (1 << 63) - 1, -(1 << 63), (1 << 62) + 3, -1], np.int64)
WILD_SHORT = WILD.astype(np.int32)
FAR = np.array([0, 0.99, 1.01, -1.01, 2.5, -7, 1e9, -1e9, 3e38, np.inf, -np.inf, np.nan], np.float32)
X = np.arange(20, dtype=np.float32).reshape(5, 4)
IMAGE = np.arange(30, dtype=np.float32).reshape(1, 1, 5, 6)


def node(op_type: str, *inputs: str, domain: str = "", **attributes: object) -> NodeProto:
    return helper.make_node(op_type, inputs, ["y"], domain=domain, **attributes)  # type: ignore[arg-type]


CASES: dict[str, tuple[NodeProto, dict[str, Array]]] = {
    "Gather": (node("Gather", "x", "i"), {"x": X, "i": WILD}),
    "Gather by s32": (node("Gather", "x", "i", axis=1), {"x": X, "i": WILD_SHORT}),
    "GatherElements": (node("GatherElements", "x", "i"), {"x": X, "i": WILD.reshape(3, 4)}),
    "GatherND": (node("GatherND", "x", "i"), {"x": X, "i": WILD.reshape(6, 2)}),
    "ScatterElements": (
        node("ScatterElements", "x", "i", "u"),
        {"x": X, "i": WILD.reshape(3, 4), "u": np.ones((3, 4), np.float32)},
    ),
    "ScatterElements that adds": (
        node("ScatterElements", "x", "i", "u", reduction="add"),
        {"x": X, "i": WILD.reshape(3, 4), "u": np.ones((3, 4), np.float32)},
    ),
    "ScatterND": (
        node("ScatterND", "x", "i", "u"),
        {"x": X, "i": WILD.reshape(12, 1), "u": np.ones((12, 4), np.float32)},
    ),
    "ScatterND that takes the largest": (
        node("ScatterND", "x", "i", "u", reduction="max"),
        {"x": X, "i": WILD.reshape(6, 2), "u": np.ones(6, np.float32)},
    ),
    "GridSample": (
        node("GridSample", "x", "g", mode="linear", padding_mode="zeros"),
        {"x": IMAGE, "g": FAR.reshape(1, 2, 3, 2)},
    ),
    "GridSample that reflects": (
        node("GridSample", "x", "g", mode="cubic", padding_mode="reflection"),
        {"x": IMAGE, "g": FAR.reshape(1, 2, 3, 2)},
    ),
    "RoiAlign": (
        node("RoiAlign", "x", "r", "b", output_height=2, output_width=2),
        {"x": IMAGE, "r": FAR.reshape(3, 4), "b": WILD[-3:]},
    ),
    "MaxUnpool": (
        node("MaxUnpool", "x", "i", kernel_shape=[2, 2], strides=[2, 2]),
        {"x": np.ones((1, 1, 3, 4), np.float32), "i": WILD.reshape(1, 1, 3, 4)},
    ),
    "ReverseSequence": (node("ReverseSequence", "x", "n", time_axis=1, batch_axis=0), {"x": X, "n": WILD[5:10]}),
    "OneHot": (node("OneHot", "i", "d", "v"), {"i": WILD, "v": np.array([0, 1], np.float32)}),
    "RotaryEmbedding": (
        node("RotaryEmbedding", "x", "p", "c", "s", domain="com.microsoft"),
        {
            "x": np.ones((1, 1, 12, 4), np.float32),
            "p": WILD.reshape(1, 12),
            "c": np.ones((8, 2), np.float32),
            "s": np.ones((8, 2), np.float32),
        },
    ),
    "EmbedLayerNormalization": (
        node("EmbedLayerNormalization", "i", "", "w", "q", "", "g", "b", domain="com.microsoft"),
        {
            "i": WILD_SHORT.reshape(1, 12),
            "w": np.ones((5, 4), np.float32),
            "q": np.ones((12, 4), np.float32),
            "g": np.ones(4, np.float32),
            "b": np.ones(4, np.float32),
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_wild_indices_touch_nothing_outside(name: str) -> None:
    made, feeds = CASES[name]
    inputs = [tensor(n, list(a.shape), np_dtype_to_tensor_dtype(a.dtype)) for n, a in feeds.items()]
    model = model_of([made], inputs, [tensor("y", None)], {"d": np.array(5)} if "d" in made.input else {})
    with guard_pages() as arena:
        compiled = onnxla.compile(model.SerializeToString(), num_threads=2)
        (result,) = compiled.run(None, {n: guarded_copy(a) for n, a in feeds.items()})
        arena.check()
    assert result.size


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.INT32])
def test_indices_in_range_count_from_either_end(kind: int) -> None:
    """So the test above is not one of tensors that are never read."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    model = model_of([node("Gather", "x", "i")], [tensor("x", [5, 4]), tensor("i", [2], kind)], [tensor("y", None)])
    result = onnxla.compile(model.SerializeToString())(X, np.array([-1, 0], dtype))
    np.testing.assert_array_equal(result, X[[-1, 0]])
