"""Small models that cannot be compiled as a whole."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from onnxla.hlo.types import Array

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
node = helper.make_node


def weight(*shape: int, seed: int = 0) -> Array:
    return (np.random.default_rng(seed).standard_normal(shape) * 0.1).astype(np.float32)


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, tuple[int, Sequence[int | str]]],
    outputs: Mapping[str, int],
    held: Mapping[str, Array],
    value_info: Sequence[ValueInfoProto] = (),
) -> ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
        value_info=list(value_info),
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def onnxruntime_results(model: ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feeds)))


def require_equal(ours: Sequence[Array], theirs: Sequence[Array]) -> None:
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


def detector() -> ModelProto:
    """A convolution, boxes and scores of each place, NonMaxSuppression, and the boxes that it selects."""
    nodes = [
        node("Conv", ["x", "w"], ["features"], pads=[1] * 4, name="conv"),
        node("Relu", ["features"], ["active"], name="relu"),
        node("Conv", ["active", "w_boxes"], ["box_image"], name="box_conv"),
        node("Conv", ["active", "w_scores"], ["score_image"], name="score_conv"),
        node("Shape", ["box_image"], ["batch"], start=0, end=1, name="batch"),
        node("Concat", ["batch", "four"], ["box_shape"], axis=0, name="box_shape"),
        node("Reshape", ["box_image", "box_shape"], ["box_rows"], name="box_rows"),
        node("Transpose", ["box_rows"], ["boxes"], perm=[0, 2, 1], name="boxes"),
        node("Reshape", ["score_image", "three"], ["score_rows"], name="score_rows"),
        node("Sigmoid", ["score_rows"], ["scores"], name="sigmoid"),
        node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["chosen"], name="nms"),
        node("Gather", ["chosen", "two"], ["places"], axis=1, name="places"),
        node("Gather", ["boxes", "places"], ["found"], axis=1, name="found"),
    ]
    held = {
        "w": weight(32, 3, 3, 3),
        "w_boxes": weight(4, 32, 1, 1, seed=1),
        "w_scores": weight(3, 32, 1, 1, seed=2),
        "four": np.array([4, -1]),
        "three": np.array([0, 3, -1]),
        "most": np.array([9]),
        "overlap": np.array([0.5], np.float32),
        "least": np.array([0.1], np.float32),
        "two": np.array(2),
    }
    return model_of(nodes, {"x": (FLOAT, ["N", 3, 16, 16])}, {"found": FLOAT, "scores": FLOAT}, held)


def nonzero_between() -> ModelProto:
    """A product, the places where it is not zero, their mean, which has a static shape, and another product."""
    nodes = [
        node("MatMul", ["x", "w"], ["product"], name="product"),
        node("Relu", ["product"], ["active"], name="relu"),
        node("NonZero", ["active"], ["places"], name="nonzero"),
        node("Cast", ["places"], ["numbers"], to=FLOAT, name="cast"),
        node("ReduceMean", ["numbers"], ["mean"], axes=[1], keepdims=0, name="mean"),
        node("MatMul", ["mean", "w_out"], ["out"], name="out"),
        node("Tanh", ["out"], ["y"], name="tanh"),
    ]
    held = {"w": weight(64, 256), "w_out": weight(2, 16384, seed=1)}
    return model_of(nodes, {"x": (FLOAT, [64, 64])}, {"y": FLOAT}, held)


def hash_between() -> ModelProto:
    """An operator that onnxla does not know, and that keeps the shape, between two clusters."""
    nodes = [
        node("Mul", ["x", "x"], ["squares"], name="squares"),
        node("Add", ["squares", "x"], ["sums"], name="sums"),
        node("MurmurHash3", ["sums"], ["hashes"], domain="com.microsoft", positive=0, name="hash"),
        node("Cast", ["hashes"], ["numbers"], to=FLOAT, name="cast"),
        node("Mul", ["numbers", "tiny"], ["y"], name="scale"),
    ]
    held = {"tiny": np.array(2.0**-31, np.float32)}
    return model_of(nodes, {"x": (TensorProto.INT32, [200, 200])}, {"y": FLOAT}, held)
