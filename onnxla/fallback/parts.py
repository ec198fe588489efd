"""Part of a model as a model of its own: some nodes, what they read from others as inputs, what others read as outputs.

Weights stay where they lie: in the file the model came from, or beside it.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from onnxla.fallback.wiring import names_read_by
from onnxla.frontends.onnx.element_types import code_of_element
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.hlo.types import Array, TensorType


def part_of(
    model: OnnxModel,
    nodes: Iterable[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[str],
    known: Mapping[str, Array],
) -> OnnxModel:
    """The nodes, in order, as a model. `known` has values that become weights, in place of the model's own too."""
    source = model.proto
    proto = ModelProto(ir_version=source.ir_version, producer_name="onnxla")
    proto.opset_import.extend(source.opset_import)
    proto.functions.extend(source.functions)
    graph = proto.graph
    graph.name = source.graph.name or "graph"
    graph.node.extend(nodes)
    graph.input.extend(inputs)
    graph.output.extend(ValueInfoProto(name=name) for name in outputs)
    read = {name for node in graph.node for name in names_read_by(node)} | set(outputs)
    given = {info.name for info in inputs} | known.keys()
    raw = _copy_weights(model, graph, read - given)
    made = {name for node in graph.node for name in node.output}
    graph.initializer.extend(tensor_of(name, known[name]) for name in sorted(read & known.keys() - made))
    return OnnxModel(proto, model.name, model.folder, raw)


def _copy_weights(model: OnnxModel, graph: GraphProto, names: set[str]) -> dict[int, memoryview]:
    """Give `graph` the initializers among `names`; the bytes of those that are not in the message, by position."""
    source = model.proto.graph
    raw: dict[int, memoryview] = {}
    for place, tensor in enumerate(source.initializer):
        if tensor.name in names:
            if place in model.raw:
                raw[len(graph.initializer)] = model.raw[place]
            graph.initializer.append(tensor)
    graph.sparse_initializer.extend(t for t in source.sparse_initializer if t.values.name in names)
    return raw


def with_weights(model: OnnxModel) -> ModelProto:
    """The model with the bytes of its weights in the message, but those that lie in files beside it."""
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    for place, data in model.raw.items():
        proto.graph.initializer[place].raw_data = bytes(data)
    return proto


def tensor_info(name: str, kind: TensorType) -> ValueInfoProto:
    """An input of a static type."""
    return helper.make_tensor_value_info(name, code_of_element(kind.element), kind.shape)


def tensor_of(name: str, array: Array) -> TensorProto:
    """A weight of the values of an array."""
    if array.dtype.kind in "OSU":
        words: list[object] = [str(text).encode() for text in array.reshape(-1)]
        return helper.make_tensor(name, TensorProto.STRING, array.shape, words)  # type: ignore[arg-type]
    return numpy_helper.from_array(np.require(array, requirements="C"), name)
