"""Small models for the tests of this folder."""

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from onnxla.hlo.types import Array

_OPSETS = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
X = np.arange(4, dtype=np.float32)


def tensor(name: str, shape: list[int] | None, kind: int = TensorProto.FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    initializers: dict[str, Array] | None = None,
) -> ModelProto:
    weights = [numpy_helper.from_array(a, name) for name, a in (initializers or {}).items()]
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), weights)
    return helper.make_model(graph, opset_imports=_OPSETS, ir_version=9)


def with_weights(size: int = 4096) -> ModelProto:
    """y = x * w, whose weights are large enough not to be parsed."""
    w = np.arange(size, dtype=np.float32)
    return model_of([helper.make_node("Mul", ["x", "w"], ["y"])], [tensor("x", [1])], [tensor("y", None)], {"w": w})
