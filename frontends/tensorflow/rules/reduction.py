"""Reductions over axes, positions of extremes, running sums, and sums over segments. Half precision sums in f32."""

import math

import ml_dtypes
import numpy as np

from onnxla.frontends.onnx.rules.axes import kept_shape
from onnxla.frontends.onnx.rules.cumulative import running
from onnxla.frontends.onnx.rules.ordering import extreme_position
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.frontends.tensorflow.axes import normal_axes, normal_axis
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.indexing import Scatter
from onnxla.hlo.ops.reduction import identity_of


def _reduced(node: NodeView, b: Builder, opcode: str, x: Instruction) -> Instruction:
    axes = normal_axes(node, node.constant_ints(1), len(node.input(0).shape))
    result = b.reduce_by(opcode, x, sorted(axes)) if axes else x
    if node.bool("keep_dims", False):
        result = b.reshape(result, kept_shape(x.shape, axes))
    return result


def _register(name: str, opcode: str) -> None:
    @tf_op(name)
    def rule(node: NodeView, b: Builder) -> Instruction:
        given = node.input(0)
        x = widen(b, given) if opcode in ("add", "multiply") else given
        return b.convert(_reduced(node, b, opcode, x), given.tensor_type.element)


for _name, _opcode in {
    "Sum": "add",
    "Prod": "multiply",
    "Max": "maximum",
    "Min": "minimum",
    "All": "and",
    "Any": "or",
}.items():
    _register(_name, _opcode)


@tf_op("Mean")
def mean(node: NodeView, b: Builder) -> Instruction:
    """Integers divide like integers."""
    given = node.input(0)
    total = _reduced(node, b, "add", widen(b, given))
    axes = normal_axes(node, node.constant_ints(1), len(given.shape))
    count = math.prod(given.shape[d] for d in axes)
    return b.convert(b.divide(total, b.full_like(total, count)), given.tensor_type.element)


@tf_op("EuclideanNorm")
def euclidean_norm(node: NodeView, b: Builder) -> Instruction:
    given = node.input(0)
    x = widen(b, given)
    return b.convert(b.unary("sqrt", _reduced(node, b, "add", b.multiply(x, x))), given.tensor_type.element)


@tf_op("ArgMax")
def arg_max(node: NodeView, b: Builder) -> Instruction:
    return _extreme(node, b, largest=True)


@tf_op("ArgMin")
def arg_min(node: NodeView, b: Builder) -> Instruction:
    return _extreme(node, b, largest=False)


def _extreme(node: NodeView, b: Builder, largest: bool) -> Instruction:
    """The first of several."""
    x = node.input(0)
    axis = normal_axis(node, node.constant_int(1) if node.input_count > 1 else 0, len(x.shape))
    position = extreme_position(node, b, x, axis, largest)
    return b.convert(position, node.element("output_type", 9))


@tf_op("Cumsum")
def cumsum(node: NodeView, b: Builder) -> Instruction:
    return _cumulative(node, b, "add")


@tf_op("Cumprod")
def cumprod(node: NodeView, b: Builder) -> Instruction:
    return _cumulative(node, b, "multiply")


def _cumulative(node: NodeView, b: Builder, opcode: str) -> Instruction:
    x = node.input(0)
    axis = normal_axis(node, node.constant_int(1), len(x.shape))
    return running(b, opcode, x, axis, node.bool("exclusive", False), node.bool("reverse", False))


def segment_combined(b: Builder, opcode: str, x: Instruction, ids: Instruction, count: int) -> Instruction:
    """[count, ...]: row k combines the rows of `x` whose id is k; ids outside of the range are left out.

    A row of none is the identity, of the largest and smallest the end of the finite numbers.
    """
    element = x.tensor_type.element
    rank = len(ids.shape)
    shape = (count, *x.shape[rank:])
    init = identity_of(opcode, element)
    if element.is_float and opcode in ("maximum", "minimum"):
        limits = ml_dtypes.finfo(element.dtype)  # type: ignore[no-untyped-call]
        init = np.asarray(limits.min if opcode == "maximum" else limits.max)
    window = tuple(range(rank, len(x.shape)))
    op = Scatter(
        update_window_dims=window,
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        input_batching_dims=(),
        scatter_indices_batching_dims=(),
        index_vector_dim=rank,
        indices_are_sorted=False,
        unique_indices=False,
        to_apply=b.combiner(opcode, element),
    )
    base = b.broadcast_scalar(b.constant(np.asarray(init, element.dtype)), shape)
    return b.scatter(base, ids, x, op)


def _register_unsorted(name: str, opcode: str) -> None:
    @tf_op(name)
    def rule(node: NodeView, b: Builder) -> Instruction:
        count = node.constant_int(2)
        if len(node.input(1).shape) > len(node.input(0).shape):
            node.shape_error("there are more dimensions of ids than of values")
        return segment_combined(b, opcode, node.input(0), node.input(1), count)


def _register_sorted(name: str, opcode: str) -> None:
    @tf_op(name)
    def rule(node: NodeView, b: Builder) -> Instruction:
        """As many rows as the last id says, which must be known; a segment without rows is 0."""
        x, count = node.input(0), _segments(node)
        result = segment_combined(b, opcode, x, node.input(1), count)
        if opcode == "add":
            return result
        sizes = _segment_sizes(b, x, node.input(1), count)
        return b.select(b.compare(sizes, b.full_like(sizes, 0), "GT"), result, b.full_like(result, 0))


for _name, _opcode in {"Sum": "add", "Prod": "multiply", "Max": "maximum", "Min": "minimum"}.items():
    _register_unsorted(f"UnsortedSegment{_name}", _opcode)
    _register_sorted(f"Segment{_name}", _opcode)


@tf_op("SegmentMean")
def segment_mean(node: NodeView, b: Builder) -> Instruction:
    x, ids, count = node.input(0), node.input(1), _segments(node)
    total = segment_combined(b, "add", x, ids, count)
    sizes = _segment_sizes(b, x, ids, count)
    return b.divide(total, b.maximum(sizes, b.full_like(sizes, 1)))


def _segments(node: NodeView) -> int:
    ids = node.constant_ints(1)
    return ids[-1] + 1 if ids else 0


def _segment_sizes(b: Builder, x: Instruction, ids: Instruction, count: int) -> Instruction:
    """How many rows each segment has, in the shape of the result."""
    return segment_combined(b, "add", b.full_like(x, 1), ids, count)
