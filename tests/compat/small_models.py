"""Small models with what sessions have to tell apart: symbolic sizes, types, strings, sequences, maps, optionals."""

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnx.helper import make_node as node
from onnx.helper import make_tensor_value_info as tensor

F32, F16, I64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    initializers: Sequence[Any] = (),
    *,
    ir_version: int = 10,
    opset: int = 21,
) -> bytes:
    graph = helper.make_graph(nodes, "small", inputs, outputs, list(initializers), doc_string="of the graph")
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(
        graph,
        opset_imports=opsets,
        ir_version=ir_version,
        producer_name="tests",
        producer_version="2",
        doc_string="of the model",
        domain="example.org",
        model_version=7,
    )
    helper.set_model_props(made, {"labels": "a\nb", "stride": "32"})
    data: bytes = made.SerializeToString()
    return data


def proto(data: bytes) -> ModelProto:
    made: ModelProto = ModelProto.FromString(data)
    return made


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


def mixed_sizes() -> tuple[bytes, dict[str, Any]]:
    """Sizes that are known, named and neither; outputs whose sizes only inference knows."""
    nodes = [
        node("Concat", ["x", "x"], ["twice"], axis=1),
        node("Shape", ["x"], ["shape"]),
        node("Transpose", ["x"], ["turned"], perm=[2, 1, 0]),
        node("Flatten", ["x"], ["flat"]),
    ]
    outputs = [
        tensor("twice", F32, ["batch", None, None]),
        tensor("shape", I64, None),
        tensor("turned", F32, None),
        tensor("flat", F32, ["rows", "columns"]),
    ]
    return model(nodes, [tensor("x", F32, ["batch", 3, None])], outputs), {"x": numbers(2, 3, 4)}


def negative_and_zero() -> tuple[bytes, dict[str, Any]]:
    inputs = [tensor("x", F32, [-1, "", 0, "s"])]
    return model([node("Relu", ["x"], ["y"])], inputs, [tensor("y", F32, ["p", "q", "r", "z"])]), {
        "x": np.zeros((2, 1, 0, 3), np.float32)
    }


def no_rank() -> tuple[bytes, dict[str, Any]]:
    nodes = [node("ReduceSum", ["x"], ["y"], keepdims=0), node("Neg", ["x"], ["z"])]
    outputs = [tensor("y", F32, None), tensor("z", F32, None)]
    return model(nodes, [tensor("x", F32, None)], outputs), {"x": numbers(3, 2)}


def defaults(ir_version: int = 10) -> tuple[bytes, dict[str, Any]]:
    """`w` is an input with a value: a run may replace it from version 4 of the format on."""
    nodes = [node("MatMul", ["x", "w"], ["t"]), node("Add", ["t", "b"], ["y"])]
    weights = [helper.make_tensor("w", F32, [3, 2], np.arange(6)), helper.make_tensor("b", F32, [2], [1, -1])]
    inputs = [tensor("x", F32, ["n", 3]), tensor("w", F32, [3, 2])]
    return model(nodes, inputs, [tensor("y", F32, ["n", 2])], weights, ir_version=ir_version), {"x": numbers(2, 3)}


def half() -> tuple[bytes, dict[str, Any]]:
    nodes = [node("Mul", ["x", "x"], ["y"])]
    return model(nodes, [tensor("x", F16, ["n"])], [tensor("y", F16, ["n"])]), {"x": numbers(5, dtype=np.float16)}


def strings() -> tuple[bytes, dict[str, Any]]:
    nodes = [node("Identity", ["x"], ["y"])]
    inputs, outputs = [tensor("x", TensorProto.STRING, ["n"])], [tensor("y", TensorProto.STRING, ["n"])]
    return model(nodes, inputs, outputs), {"x": np.array(["ab", "", "ç"], object)}


def labels() -> tuple[bytes, dict[str, Any]]:
    nodes = [node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_strings=["a", "b"], values_int64s=[4, 5])]
    inputs, outputs = [tensor("x", TensorProto.STRING, ["n"])], [tensor("y", I64, ["n"])]
    return model(nodes, inputs, outputs), {"x": np.array([["b"], ["q"]], object)[:, 0]}


def sequences() -> tuple[bytes, dict[str, Any]]:
    nodes = [node("SequenceAt", ["s", "i"], ["y"]), node("SequenceInsert", ["s", "y"], ["z"])]
    inputs = [helper.make_tensor_sequence_value_info("s", F32, None), tensor("i", I64, [])]
    outputs = [tensor("y", F32, None), helper.make_tensor_sequence_value_info("z", F32, None)]
    return model(nodes, inputs, outputs), {"s": [numbers(2), numbers(3)], "i": np.array(1)}


def maps() -> tuple[bytes, dict[str, Any]]:
    element = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(F32, []))
    nodes = [node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["cat", "dog"])]
    output = helper.make_value_info("y", helper.make_sequence_type_proto(element))
    return model(nodes, [tensor("x", F32, ["n", 2])], [output]), {"x": numbers(3, 2)}


def optional() -> tuple[bytes, dict[str, Any]]:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(F32, ["q"]))
    nodes = [node("OptionalHasElement", ["x"], ["y"])]
    return model(nodes, [helper.make_value_info("x", kind)], [tensor("y", TensorProto.BOOL, [])]), {"x": None}


def two_rows() -> tuple[bytes, dict[str, Any]]:
    """One name for two sizes that a run may choose apart, as onnxruntime lets it."""
    inputs = [tensor("x", F32, ["n", 3]), tensor("z", F32, ["n", 3])]
    feeds = {"x": numbers(2, 3), "z": numbers(1, 3)}
    return model([node("Add", ["x", "z"], ["y"])], inputs, [tensor("y", F32, ["n", 3])]), feeds


def types() -> tuple[bytes, dict[str, Any]]:
    """Each of numpy's types, through a model that hands it on."""
    names = ["FLOAT", "DOUBLE", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "BOOL"]
    codes = [TensorProto.DataType.Value(name) for name in names]
    dtypes = [helper.tensor_dtype_to_np_dtype(code) for code in codes]
    inputs = [tensor(f"i{k}", code, [2]) for k, code in enumerate(codes)]
    outputs = [tensor(f"o{k}", code, [2]) for k, code in enumerate(codes)]
    nodes = [node("Concat", [f"i{k}"], [f"o{k}"], axis=0) for k in range(len(codes))]
    return model(nodes, inputs, outputs), {f"i{k}": np.array([0, 1]).astype(t) for k, t in enumerate(dtypes)}


MODELS: tuple[Callable[[], tuple[bytes, dict[str, Any]]], ...] = (
    mixed_sizes,
    negative_and_zero,
    no_rank,
    defaults,
    half,
    strings,
    labels,
    sequences,
    maps,
    optional,
    two_rows,
    types,
)


def bfloat16() -> tuple[bytes, dict[str, Any]]:
    """onnxruntime has no numpy type for this one."""
    inputs, outputs = [tensor("x", TensorProto.BFLOAT16, ["n"])], [tensor("y", TensorProto.BFLOAT16, None)]
    return model([node("Concat", ["x"], ["y"], axis=0)], inputs, outputs), {"x": numbers(3, dtype=ml_dtypes.bfloat16)}
