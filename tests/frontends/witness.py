"""Compare an imported model, run by the HLO interpreter, with onnxruntime."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from onnxla.frontends.onnx.element_types import code_of_element
from onnxla.frontends.onnx.importer import ImportedModel, import_model
from onnxla.hlo.types import Array

Feeds = Mapping[str, npt.NDArray[Any]]


def f32(values: npt.ArrayLike) -> Array:
    """An array of float32."""
    return np.array(values, np.float32)


def s64(values: npt.ArrayLike) -> Array:
    """An array of int64."""
    return np.array(values, np.int64)


def s32(values: npt.ArrayLike) -> Array:
    """An array of int32."""
    return np.array(values, np.int32)


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Array | ValueInfoProto],
    outputs: Sequence[str] | Mapping[str, int],
    *,
    initializers: Mapping[str, Array] | None = None,
    opset: int = 21,
    domains: Mapping[str, int] | None = None,
) -> ModelProto:
    """A model of `nodes`. Inputs take type and shape from example arrays; outputs are left untyped, or get
    the element types given."""
    infos = [v if isinstance(v, ValueInfoProto) else value_info(name, v) for name, v in inputs.items()]
    codes = outputs if isinstance(outputs, Mapping) else {}
    graph = helper.make_graph(
        list(nodes),
        "test",
        infos,
        [helper.make_tensor_value_info(name, codes.get(name, 0), None) for name in outputs],
        [tensor(name, value) for name, value in (initializers or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in (domains or {}).items())]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def value_info(name: str, array: Array) -> ValueInfoProto:
    """The declaration of an input like `array`."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def tensor(name: str, array: Array) -> TensorProto:
    """A TensorProto of `array`, in raw form where the type allows."""
    code = helper.np_dtype_to_tensor_dtype(array.dtype)
    if code == TensorProto.STRING:
        return TensorProto(
            name=name, data_type=code, dims=array.shape, string_data=[str(s).encode() for s in array.reshape(-1)]
        )
    return helper.make_tensor(name, code, array.shape, np.ascontiguousarray(array).tobytes(), raw=True)


def body_of(
    nodes: Sequence[NodeProto], inputs: Mapping[str, tuple[int, Sequence[int | None]]], outputs: Mapping[str, int]
) -> GraphProto:
    """A subgraph; inputs by name with element type and shape, outputs with their element type."""
    return helper.make_graph(
        list(nodes),
        "body",
        [helper.make_tensor_value_info(name, code, shape) for name, (code, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, code, None) for name, code in outputs.items()],
    )


def run_imported(imported: ImportedModel, feeds: Feeds) -> list[Array]:
    """The outputs by the HLO interpreter."""
    arguments = [np.asarray(feeds[spec.name]) for spec in imported.inputs]
    return list(imported.module.entry.evaluate(*arguments))


PRODUCTS_OF_BYTES = ("MatMulInteger", "QLinearMatMul", "QLinearConv", "DynamicQuantize", "QAttention", "QGemm")
"""How the names begin of operators whose products onnxruntime adds in 16 bits, which saturate, without VNNI."""


def run_onnxruntime(model: ModelProto, feeds: Feeds) -> list[Any]:
    """The outputs by onnxruntime, with its graph optimizations off but for exact products of bytes."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if any(node.op_type.startswith(PRODUCTS_OF_BYTES) for node in model.graph.node):
        options.add_session_config_entry("session.x64quantprecision", "1")
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        model, feeds = _with_weights(model, feeds)
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feeds)))


def _with_weights(model: ModelProto, feeds: Feeds) -> tuple[ModelProto, Feeds]:
    """With inputs of s8 as initializers: onnxruntime makes exact what it knows."""
    held = {name for name, array in feeds.items() if array.dtype == np.int8}
    holding = ModelProto()
    holding.CopyFrom(model)
    kept = [i for i in model.graph.input if i.name not in held]
    del holding.graph.input[:]
    holding.graph.input.extend(kept)
    holding.graph.initializer.extend(tensor(name, feeds[name]) for name in sorted(held))
    return holding, {name: array for name, array in feeds.items() if name not in held}


def with_output_types(model: ModelProto, imported: ImportedModel) -> ModelProto:
    """`model` with the element types that the import found on outputs that declare none: onnxruntime wants them."""
    typed = ModelProto()
    typed.CopyFrom(model)
    for info, spec in zip(typed.graph.output, imported.outputs, strict=True):
        if info.type.tensor_type.elem_type == 0:
            info.CopyFrom(helper.make_tensor_value_info(info.name, code_of_element(spec.type.element), None))
    return typed


def check_against_onnxruntime(
    model: ModelProto,
    feeds: Feeds | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    *,
    constants: Sequence[str] = (),
    **import_options: Any,
) -> list[Array]:
    """Import `model`, run both, and assert equal types, shapes and values. Returns our outputs.

    Symbolic dimensions are bound by the feeds; the feeds named in `constants` are given while compiling.
    """
    feeds = dict(feeds or {})
    imported = import_model(
        model,
        shapes={name: array.shape for name, array in feeds.items() if name not in constants},
        constants={name: feeds[name] for name in constants},
        **import_options,
    )
    ours, theirs = run_imported(imported, feeds), run_onnxruntime(with_output_types(model, imported), feeds)
    assert len(ours) == len(theirs)
    for spec, got, expected in zip(imported.outputs, ours, theirs, strict=True):
        assert spec.type.shape == tuple(np.shape(expected)), f"{spec.name}: {spec.type.shape} != {np.shape(expected)}"
        assert got.dtype == expected.dtype, f"{spec.name}: {got.dtype} != {expected.dtype}"
        if got.dtype.kind == "f" or got.dtype.kind == "V":
            got, expected = got.astype(np.float64), expected.astype(np.float64)
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol, err_msg=spec.name)
    return ours
