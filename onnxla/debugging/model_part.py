"""Part of an ONNX model as a model of its own: some nodes, with the values around them as inputs.

    whole    x -> A -> B -> C -> D -> y
    part     a -> B -> C -> c              nodes {B, C}, fed with what A gave

Values that depend on weights and shapes only become weights of the part, as the compiler would know them in the whole
model too. Weights stay where they lie: a part of a large model is cheap to make.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.frontends.onnx.operator_names import normal_domain
from onnxla.frontends.onnx.structure import check_structure, free_names, in_order, subgraphs
from onnxla.runtime.tensors import Array

_OF_SHAPES = ("Shape", "Size")
"""Operators whose results depend on the shape of what they read."""
_RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli")


@dataclass(frozen=True)
class Part:
    """Nodes by their place in `ModelGraph.nodes`, ascending, and the values that are the part's outputs."""

    nodes: tuple[int, ...]
    outputs: tuple[str, ...]


class ModelGraph:
    """The main graph of a model, ready to be cut. Raises ModelFormatError for what is not a graph."""

    def __init__(self, model: OnnxModel, constants: Iterable[str] = ()) -> None:
        """`constants` are inputs whose values the code is made for: they become weights of the parts."""
        check_structure(model)
        self.model = model
        graph = model.proto.graph
        ordered = in_order(graph.node)
        self.positions: list[int] = [position for position, _ in ordered]
        """Where each node stands in the file."""
        self.nodes: list[NodeProto] = [node for _, node in ordered]
        self.reads: list[tuple[str, ...]] = [names_read_by(node) for node in self.nodes]
        self.maker: dict[str, int] = {name: k for k, node in enumerate(self.nodes) for name in node.output if name}
        self.outputs: tuple[str, ...] = tuple(o.name for o in graph.output)
        self._initializers = {t.name: k for k, t in enumerate(graph.initializer)}
        self._sparse = {t.values.name: k for k, t in enumerate(graph.sparse_initializer)}
        self._readers: dict[str, list[int]] = {}
        for k, names in enumerate(self.reads):
            for name in names:
                self._readers.setdefault(name, []).append(k)
        self._known = self._known_values(constants)

    def label(self, node: int) -> str:
        """The node as messages name it."""
        return node_label(self.nodes[node], self.positions[node])

    def whole(self) -> Part:
        """All that the model's outputs need."""
        return self.part(range(len(self.nodes)), [name for name in self.outputs if name in self.maker])

    def part(self, nodes: Iterable[int], outputs: Sequence[str]) -> Part:
        """Those of `nodes` that `outputs` need; what they make of `outputs`."""
        wanted = set(nodes)
        kept: list[int] = []
        given = tuple(dict.fromkeys(name for name in outputs if self.maker.get(name) in wanted))
        needed = set(given)
        for k in sorted(wanted, reverse=True):
            if needed.intersection(self.nodes[k].output):
                kept.append(k)
                needed.update(self.reads[k])
        return Part(tuple(reversed(kept)), given)

    def results(self, nodes: Iterable[int]) -> list[str]:
        """What the nodes make for others: values that other nodes read, or the model gives."""
        inside = set(nodes)
        given = set(self.outputs)
        return [
            name
            for k in sorted(inside)
            for name in self.nodes[k].output
            if name and (name in given or any(reader not in inside for reader in self._readers.get(name, ())))
        ]

    def cut_values(self, part: Part) -> list[str]:
        """The values that the part reads and does not make, weights of the model aside."""
        made = {name for k in part.nodes for name in self.nodes[k].output}
        read = dict.fromkeys(name for k in part.nodes for name in self.reads[k])
        return [name for name in read if name not in made and not self._is_weight(name)]

    def known(self, names: Iterable[str]) -> set[str]:
        """Those of `names` that depend on weights and shapes only."""
        return self._known.intersection(names)

    def extract(self, part: Part, values: Mapping[str, Array], results: Mapping[str, Array]) -> OnnxModel:
        """The part as a model. `values` has all of its cut values; `results` types its outputs where it has them."""
        source = self.model.proto
        proto = ModelProto(ir_version=source.ir_version, producer_name="onnxla debug")
        proto.opset_import.extend(source.opset_import)
        proto.functions.extend(source.functions)
        graph = proto.graph
        graph.name = source.graph.name
        graph.node.extend(self.nodes[k] for k in part.nodes)
        raw = self._copy_weights(graph, {name for k in part.nodes for name in self.reads[k]})
        for name in self.cut_values(part):
            if name in self._known:
                graph.initializer.append(tensor_of(name, values[name]))
            else:
                graph.input.append(value_info(name, values[name]))
        for name in part.outputs:
            graph.output.append(value_info(name, results[name]) if name in results else ValueInfoProto(name=name))
        return OnnxModel(proto, self.model.name, self.model.folder, raw)

    def _copy_weights(self, graph: GraphProto, names: set[str]) -> dict[int, memoryview]:
        """Give `graph` the initializers among `names`; the values of those that are still in the file, by position."""
        source = self.model.proto.graph
        raw: dict[int, memoryview] = {}
        for name in sorted(names & self._initializers.keys(), key=self._initializers.__getitem__):
            place = self._initializers[name]
            if place in self.model.raw:
                raw[len(graph.initializer)] = self.model.raw[place]
            graph.initializer.append(source.initializer[place])
        for name in sorted(names & self._sparse.keys(), key=self._sparse.__getitem__):
            graph.sparse_initializer.append(source.sparse_initializer[self._sparse[name]])
        return raw

    def _is_weight(self, name: str) -> bool:
        return name in self._initializers or name in self._sparse

    def _known_values(self, constants: Iterable[str]) -> set[str]:
        known = set(constants)
        for node, names in zip(self.nodes, self.reads, strict=True):
            of_shape = node.op_type in _OF_SHAPES and not normal_domain(node.domain)
            if of_shape or (
                node.op_type not in _RANDOM and all(self._is_weight(name) or name in known for name in names)
            ):
                known.update(name for name in node.output if name)
        return known


def names_read_by(node: NodeProto) -> tuple[str, ...]:
    """The values that a node reads, in its bodies too, each once."""
    names = dict.fromkeys(name for name in node.input if name)
    for _, subgraph in subgraphs(node):
        names.update(dict.fromkeys(free_names(subgraph)))
    return tuple(names)


def node_label(node: NodeProto, position: int) -> str:
    """`/encoder/Mul_3 (Mul), node 17`: by its first output where it has no name."""
    name = node.name or next((output for output in node.output if output), "?")
    return f"{name} ({node.op_type}), node {position}"


def value_info(name: str, array: Array) -> ValueInfoProto:
    """An input or output of the type and shape of an array."""
    return helper.make_tensor_value_info(name, _element_code(array), array.shape)


def tensor_of(name: str, array: Array) -> TensorProto:
    """A weight of the values of an array."""
    if _element_code(array) == TensorProto.STRING:
        words: list[object] = [str(s).encode() for s in array.reshape(-1)]
        return helper.make_tensor(name, TensorProto.STRING, array.shape, words)  # type: ignore[arg-type]
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


def _element_code(array: Array) -> int:
    return TensorProto.STRING if array.dtype.kind in "OSU" else int(helper.np_dtype_to_tensor_dtype(array.dtype))


def whole_proto(model: OnnxModel, *, with_external: bool = True) -> ModelProto:
    """The model with its weights inside, external ones too where that is wanted. Raises ModelFormatError."""
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    for k, tensor in enumerate(proto.graph.initializer):
        if k in model.raw:
            tensor.raw_data = bytes(model.raw[k])
        elif with_external and tensor.data_location == TensorProto.EXTERNAL:
            array = model.initializer(k)
            tensor.CopyFrom(tensor_of(tensor.name, array))
    return proto
