"""A model whose inputs are all tensors of numbers, made from one with sequences, optionals and strings.

Code is made for tensors. Where an input is a sequence or an optional, its structure (how many elements, whether there
is one) becomes part of the model: each element is an input of its own, and nodes at the edge of the graph put them
together. Strings become constants.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto, helper, numpy_helper

from onnxla.errors import InputError
from onnxla.frontends.onnx.model_file import read_model
from onnxla.frontends.onnx.signature import onnx_type_name, signature_of
from onnxla.hlo.types import Array


def is_plain(model: ModelProto) -> bool:
    """Whether all inputs are tensors of numbers already."""
    return all(spec.element is not None for spec in signature_of(read_model(model)).inputs)


def structure(value: Any) -> Any:
    """What of an input the plain model depends on: hashable, equal where one plain model fits both."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return tuple(structure(v) for v in value)
    array = np.asarray(value)
    return (array.shape, str(array.dtype), tuple(map(str, array.reshape(-1))) if array.dtype.kind in "OSU" else ())


def plain_feeds(model: ModelProto, feeds: Mapping[str, Any]) -> dict[str, Array]:
    """The inputs of the plain model, from those of `model`."""
    types = {info.name: info.type for info in model.graph.input}
    return {n: array for name, value in feeds.items() for n, array in _arrays(name, types[name], value)}


def plain_model(model: ModelProto, feeds: Mapping[str, Any]) -> ModelProto:
    """The plain model for inputs of the structure of `feeds`. Raises InputError for inputs that do not fit."""
    edges = _Edges()
    for info in model.graph.input:
        if info.name in feeds:
            edges.bring_in(info, feeds[info.name])
    inner = ModelProto()
    inner.CopyFrom(model)
    rest = [i for i in model.graph.input if i.name not in feeds]
    _refill(inner.graph, "input", [*edges.inputs, *rest])
    _refill(inner.graph, "node", [*edges.nodes, *model.graph.node])
    inner.graph.initializer.extend(edges.strings)
    return inner


def _refill(graph: GraphProto, name: str, items: Sequence[Any]) -> None:
    graph.ClearField(name)
    getattr(graph, name).extend(items)


def _arrays(name: str, type: TypeProto, value: Any) -> Iterator[tuple[str, Array]]:
    """The tensors of numbers in an input, with the names that the plain model gives them."""
    kind = type.WhichOneof("value")
    if value is None:
        return
    if kind == "optional_type":
        yield from _arrays(_inside(name), type.optional_type.elem_type, value)
    elif kind == "sequence_type":
        for i, element in enumerate(value):
            yield from _arrays(_element(name, i), type.sequence_type.elem_type, element)
    elif np.asarray(value).dtype.kind not in "OSU":
        yield name, np.asarray(value)


def _inside(name: str) -> str:
    return f"{name}?"


def _element(name: str, i: int) -> str:
    return f"{name}[{i}]"


@dataclass
class _Edges:
    """What stands at the edge of the graph."""

    inputs: list[ValueInfoProto] = field(default_factory=list)
    strings: list[Any] = field(default_factory=list)
    nodes: list[NodeProto] = field(default_factory=list)

    def bring_in(self, info: ValueInfoProto, value: Any) -> None:
        """The input `info`, of this value, from inputs of tensors."""
        self._make(info.name, info.type, value)

    def _make(self, name: str, type: TypeProto, value: Any) -> None:
        kind = type.WhichOneof("value")
        if kind == "optional_type":
            inside = type.optional_type.elem_type
            if value is None:
                self.nodes.append(helper.make_node("Optional", [], [name], type=inside))
                return
            self._make(_inside(name), inside, value)
            self.nodes.append(helper.make_node("Optional", [_inside(name)], [name]))
        elif kind == "sequence_type" and isinstance(value, (list, tuple)):
            parts = [_element(name, i) for i in range(len(value))]
            for part, element in zip(parts, value, strict=True):
                self._make(part, type.sequence_type.elem_type, element)
            make = "SequenceConstruct" if parts else "SequenceEmpty"
            self.nodes.append(helper.make_node(make, parts, [name]))
        elif kind == "tensor_type" and value is not None and not isinstance(value, (list, tuple)):
            array = np.asarray(value)
            if array.dtype.kind in "OSU":
                self.strings.append(numpy_helper.from_array(array.astype(object), name))
            else:
                code = helper.np_dtype_to_tensor_dtype(array.dtype)
                self.inputs.append(helper.make_tensor_value_info(name, code, array.shape))
        else:
            raise InputError(f"{name} is {onnx_type_name(type)}; got {value!r:.80}")
