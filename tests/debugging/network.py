"""A network in which every planted fault shows, and a run of it."""

from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from onnxla.config import CompileOptions
from onnxla.debugging.budget import Budget
from onnxla.debugging.find_fault import Findings, Model, find_fault
from onnxla.debugging.trial import Settings
from onnxla.frontends.onnx.model_file import read_model
from onnxla.runtime.tensors import Array

CHANNELS, ROWS, COLUMNS = 7, 49, 13
QUICK = Settings(options=CompileOptions(opt_level=0), threads=1)


def network() -> ModelProto:
    """Movement, a product, activations, softmax, choice and reductions."""

    def op(kind: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
        return helper.make_node(kind, inputs.split(), [output], f"/{output}", **attributes)

    nodes = [
        op("Relu", "x", "relu"),
        op("Neg", "relu", "below"),
        op("Reciprocal", "below", "inverse"),
        op("Exp", "x", "growing"),
        op("Transpose", "relu", "turned", perm=[0, 2, 3, 1]),
        op("Transpose", "turned", "swapped", perm=[0, 2, 1, 3]),
        op("ReduceSum", "swapped first", "column", keepdims=0),
        op("Reshape", "swapped rows", "table"),
        op("MatMul", "table factor", "product"),
        op("Add", "product bias", "shifted"),
        op("Tanh", "shifted", "squashed"),
        op("Neg", "squashed", "negative"),
        op("Neg", "negative", "positive"),
        op("Exp", "positive", "powers"),
        op("Softmax", "powers", "soft"),
        op("Greater", "powers one", "flag"),
        op("Where", "flag soft positive", "chosen"),
        op("ReduceSum", "chosen zeroth", "total", keepdims=0),
        op("Mul", "bias bias", "scale"),
        op("Mul", "total scale", "y"),
    ]
    rng = np.random.default_rng(7)
    weights: dict[str, Array] = {
        "factor": (rng.standard_normal((CHANNELS, COLUMNS)) / CHANNELS).astype(np.float32),
        "bias": rng.standard_normal(COLUMNS).astype(np.float32),
        "rows": np.array([ROWS, CHANNELS]),
        "first": np.array([1]),
        "zeroth": np.array([0]),
        "one": np.array(1, np.float32),
    }
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "column", "inverse", "growing")
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, CHANNELS, 7, 7))],
        outputs,
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def feeds() -> dict[str, Array]:
    return {"x": np.random.default_rng(1).standard_normal((1, CHANNELS, 7, 7)).astype(np.float32)}


def search(model: ModelProto, arrays: dict[str, Array], settings: Settings | None = None) -> Findings:
    """What the search finds, with more time than it needs."""
    from pathlib import Path

    return find_fault(Model(read_model(model), Path("."), arrays), settings or QUICK, Budget(600))
