"""Names in a model must be text: protobuf hands out bytes, in place of str, for strings that are not UTF-8.

Checked once as a model is read, so that nobody else meets such a name.
"""

from collections.abc import Iterable, Iterator

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

from onnxla.errors import ModelFormatError

_LARGEST_VERSION = (1 << 31) - 1


def require_names(model: ModelProto) -> None:
    """Raise ModelFormatError for a name that is not text, or an opset version that is no version."""
    for name in _names(model):
        if not isinstance(name, str):
            raise ModelFormatError(f"the model has a name that is not UTF-8: {name!r}")
    for opset in (*model.opset_import, *(o for f in model.functions for o in f.opset_import)):
        if not 0 <= opset.version <= _LARGEST_VERSION:
            raise ModelFormatError(f"the opset version {opset.version} of {opset.domain or 'ai.onnx'} is no version")


def _names(model: ModelProto) -> Iterator[str]:
    yield from (opset.domain for opset in model.opset_import)
    yield from _names_of_graph(model.graph)
    for function in model.functions:
        yield from _names_of_function(function)


def _names_of_function(function: FunctionProto) -> Iterator[str]:
    yield from (function.name, function.domain, function.overload)
    yield from function.input
    yield from function.output
    yield from function.attribute
    yield from (opset.domain for opset in function.opset_import)
    yield from (attribute.name for attribute in function.attribute_proto)
    yield from _names_of_nodes(function.node)


def _names_of_graph(graph: GraphProto) -> Iterator[str]:
    yield graph.name
    for info in (*graph.input, *graph.output):
        yield from _names_of_value(info)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (sparse.values.name for sparse in graph.sparse_initializer)
    yield from _names_of_nodes(graph.node)


def _names_of_value(info: ValueInfoProto) -> Iterator[str]:
    yield info.name
    yield from (d.dim_param for d in info.type.tensor_type.shape.dim)


def _names_of_nodes(nodes: Iterable[NodeProto]) -> Iterator[str]:
    for node in nodes:
        yield from (node.name, node.op_type, node.domain, node.overload)
        yield from node.input
        yield from node.output
        for attribute in node.attribute:
            yield attribute.name
            yield attribute.ref_attr_name
            if attribute.HasField("g"):
                yield from _names_of_graph(attribute.g)
            for graph in attribute.graphs:
                yield from _names_of_graph(graph)
