"""Small models for compile jobs."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper


def small(path: Path, rows: int | str = 1, scale: float = 1.0) -> Path:
    """y = relu(x @ w), x of `rows` rows of 8."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 8])
    w = onnx.numpy_helper.from_array(np.full((8, 8), scale, np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["z"]), helper.make_node("Relu", ["z"], ["y"])]
    return _saved(path, nodes, [x], [y], [w])


def slow(path: Path, layers: int = 120) -> Path:
    """A chain of products of different sizes, each with a kernel of its own: seconds of compiling."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 16])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 16 + layers])
    weights = [onnx.numpy_helper.from_array(np.full((16 + k, 17 + k), 0.1, np.float32), f"w{k}") for k in range(layers)]
    names = ["x", *(f"v{k}" for k in range(layers - 1)), "y"]
    nodes = [
        helper.make_node("MatMul", [a, f"w{k}"], [b])
        for k, (a, b) in enumerate(zip(names[:-1], names[1:], strict=True))
    ]
    return _saved(path, nodes, [x], [y], weights)


def unsupported(path: Path) -> Path:
    """Two nodes for which there are no rules."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "yz")
    nodes = [
        helper.make_node("Unheard", ["x"], ["z"], domain="of.nobody", name="first"),
        helper.make_node("Unseen", ["x"], ["y"], domain="of.nobody", name="second"),
    ]
    return _saved(path, nodes, [x], [y, z], [], [helper.make_opsetid("of.nobody", 1)])


def with_external_data(path: Path, bytes_of_data: int) -> Path:
    """y = x + w where w is in a file beside the model, which is sparse: it takes no room on a disk."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [bytes_of_data // 4])
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[bytes_of_data // 4])
    w.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", "0"), ("length", str(bytes_of_data))):
        w.external_data.add(key=key, value=value)
    _saved(path, [helper.make_node("Add", ["x", "w"], ["y"])], [x], [y], [w])
    with open(path.parent / "weights.bin", "wb") as file:
        file.truncate(bytes_of_data)
    return path


def _saved(
    path: Path,
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    initializers: list[onnx.TensorProto],
    more: list[onnx.OperatorSetIdProto] | None = None,
) -> Path:
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), *(more or [])], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path
