"""A model with seeded random numbers in place of what it has learnt, to be shown to strangers.

Floats of 16 elements and more, and integers of 8 bits of 64 and more, are weights. They get random values of about the
same mean and spread, and of one sign where they had one, so that the model still computes something sensible. What
stays is small or may be a size, an index or a word: without it the graph would be another one. Comments and metadata
go; names stay.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from onnxla.debugging.model_part import tensor_of
from onnxla.frontends.onnx.structure import subgraphs
from onnxla.runtime.tensors import Array

FEWEST_FLOATS, FEWEST_BYTES = 16, 64
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
_BYTES = (TensorProto.INT8, TensorProto.UINT8)


def randomize_weights(proto: ModelProto, seed: int) -> int:
    """Replace the weights of a model that has them all inside; how many tensors were replaced."""
    proto.ClearField("doc_string")
    proto.ClearField("metadata_props")
    for function in proto.functions:
        function.ClearField("doc_string")
    count = 0
    for number, tensor in enumerate(_tensors(proto)):
        array = numpy_helper.to_array(tensor) if _is_weight(tensor) else None
        if array is not None:
            tensor.CopyFrom(tensor_of(tensor.name, _like(np.asarray(array), np.random.default_rng([seed, number]))))
            count += 1
    return count


def _is_weight(tensor: TensorProto) -> bool:
    size = int(np.prod(tensor.dims, dtype=np.int64))
    if tensor.data_type in _FLOATS:
        return size >= FEWEST_FLOATS
    return tensor.data_type in _BYTES and size >= FEWEST_BYTES


def _like(array: Array, rng: np.random.Generator) -> Array:
    """Random values of the type and shape of `array`, and about its mean and spread."""
    if array.dtype.kind in "iu":
        return np.asarray(rng.integers(array.min(), array.max(), array.shape, endpoint=True), array.dtype)
    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    mean, spread = (float(f"{f(finite):.1g}") for f in (np.mean, np.std)) if finite.size else (0.0, 1.0)
    values: Array = np.asarray(rng.standard_normal(array.shape)) * spread + mean
    if finite.size and (finite >= 0).all():
        values = np.abs(values)
    elif finite.size and (finite <= 0).all():
        values = -np.abs(values)
    return np.asarray(values.astype(array.dtype))


def _tensors(proto: ModelProto) -> Iterator[TensorProto]:
    yield from _tensors_of_graph(proto.graph)
    for function in proto.functions:
        yield from _tensors_of_nodes(function.node)


def _tensors_of_graph(graph: GraphProto) -> Iterator[TensorProto]:
    graph.ClearField("doc_string")
    graph.ClearField("metadata_props")
    yield from graph.initializer
    yield from (sparse.values for sparse in graph.sparse_initializer)
    yield from _tensors_of_nodes(graph.node)


def _tensors_of_nodes(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        node.ClearField("doc_string")
        node.ClearField("metadata_props")
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        for _, graph in subgraphs(node):
            yield from _tensors_of_graph(graph)
