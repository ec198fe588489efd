"""A model with every value of its graph among the outputs, to find the first node that differs."""

from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import ModelProto, TensorProto, ValueInfoProto, shape_inference

from onnxla.errors import ModelFormatError


@dataclass(frozen=True)
class LayeredModel:
    """The model, and the node that makes each value, in the graph's order."""

    model: ModelProto
    nodes: dict[str, str]


def with_every_layer(path: Path) -> LayeredModel:
    """Read a model and make outputs of all tensors that its nodes compute. External data stays where it is."""
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:  # protobuf and onnx raise many kinds
        raise ModelFormatError(f"{path} is not an ONNX model: {error}") from error
    return add_every_layer(model)


def add_every_layer(model: ModelProto) -> LayeredModel:
    """As `with_every_layer`, of a model that is read already and that is changed."""
    outputs = {o.name for o in model.graph.output}
    others = _not_tensors_of_numbers(model)
    nodes: dict[str, str] = {}
    for number, node in enumerate(model.graph.node):
        if node.op_type == "Constant":
            continue
        for name in node.output:
            if name and name not in others:
                nodes[name] = f"{node.name or name} ({node.op_type}), node {number}"
                if name not in outputs:
                    model.graph.output.append(ValueInfoProto(name=name))
    return LayeredModel(model, nodes)


def _not_tensors_of_numbers(model: ModelProto) -> set[str]:
    """Values known to be strings, sequences and the like, which cannot be outputs."""
    try:
        graph = shape_inference.infer_shapes(model).graph
    except Exception:  # a model that onnx cannot infer may still run: then every value is tried that is not declared
        graph = model.graph
    return {info.name for info in (*graph.value_info, *graph.output) if _is_no_tensor_of_numbers(info)}


def _is_no_tensor_of_numbers(info: ValueInfoProto) -> bool:
    kind = info.type.WhichOneof("value")
    if kind == "tensor_type":
        return info.type.tensor_type.elem_type == TensorProto.STRING
    return kind is not None
