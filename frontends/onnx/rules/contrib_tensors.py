"""onnxruntime's smaller tensor operators: inverse matrices, sliding windows, distances."""

import math

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import normal_axis
from onnxla.frontends.onnx.rules.generators import trilu
from onnxla.frontends.onnx.rules.ordering import extreme_position
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32, TensorType

MICROSOFT = "com.microsoft"

onnx_op("Trilu", domain=MICROSOFT)(trilu)


@onnx_op("Inverse", domain=MICROSOFT)
def inverse(node: NodeView, b: Builder) -> Instruction:
    """Gauss and Jordan's elimination with partial pivoting, a loop over the columns for all matrices at once."""
    given = node.input(0)
    if len(given.shape) < 2 or given.shape[-1] != given.shape[-2]:
        node.shape_error(f"{given.tensor_type} is not a batch of square matrices")
    n, batch = given.shape[-1], math.prod(given.shape[:-2])
    node.require_table(n * n)
    matrix = b.reshape(widen(b, given), (batch, n, n))
    unit = b.constant(np.eye(n), matrix.tensor_type.element)
    both = b.concatenate([matrix, b.broadcast(unit, matrix.shape, [1, 2])], 2)
    init = b.tuple(b.constant(0, S32), both)
    body = Builder("eliminate_column", b.source)
    state = body.parameter(init.type)
    k, current = body.get_tuple_element(state, 0), body.get_tuple_element(state, 1)
    root = body.tuple(body.add(k, body.constant(1, S32)), _eliminated(node, body, current, k))
    condition = Builder("more_columns", b.source)
    counter = condition.get_tuple_element(condition.parameter(init.type), 0)
    more = condition.compare(counter, condition.constant(n, S32), "LT")
    done = b.get_tuple_element(b.while_(init, condition.build(more), body.build(root)), 1)
    result = b.slice(done, [0, 0, n], [batch, n, 2 * n])
    return b.convert(b.reshape(result, given.shape), given.tensor_type.element)


def _eliminated(node: NodeView, b: Builder, both: Instruction, k: Instruction) -> Instruction:
    """`both` [batch, n, 2 n] with column k of its left half made that of the unit matrix."""
    batch, n, width = both.shape
    zero = b.constant(0, S32)
    rows = b.iota(TensorType(S32, both.shape), 1)
    column = b.reshape(b.dynamic_slice(both, [zero, zero, k], [batch, n, 1]), (batch, n))
    is_above = b.compare(b.iota(TensorType(S32, (batch, n)), 1), b.broadcast_scalar(k, (batch, n)), "LT")
    size = b.select(is_above, b.full_like(column, -1), b.unary("abs", column))
    chosen = b.convert(extreme_position(node, b, size, 1, largest=True), S32)
    is_chosen = b.compare(rows, b.broadcast(chosen, both.shape, [0]), "EQ")
    pivot_row = b.reduce_by("add", b.select(is_chosen, both, b.full_like(both, 0)), [1])
    pivot = b.reshape(b.dynamic_slice(pivot_row, [zero, k], [batch, 1]), (batch,))
    pivot_row = b.divide(pivot_row, b.broadcast(pivot, pivot_row.shape, [0]))
    displaced = b.reshape(b.dynamic_slice(both, [zero, k, zero], [batch, 1, width]), (batch, width))
    swapped = b.select(is_chosen, b.broadcast(displaced, both.shape, [0, 2]), both)
    factors = b.reshape(b.dynamic_slice(swapped, [zero, zero, k], [batch, n, 1]), (batch, n))
    normalized = b.broadcast(pivot_row, both.shape, [0, 2])
    reduced = b.subtract(swapped, b.multiply(b.broadcast(factors, both.shape, [0, 1]), normalized))
    return b.select(b.compare(rows, b.broadcast_scalar(k, both.shape), "EQ"), normalized, reduced)


@onnx_op("UnfoldTensor", domain=MICROSOFT)
def unfold_tensor(node: NodeView, b: Builder) -> Instruction:
    """Windows of `size` by steps of `step` along a dimension, which counts them; their elements come last."""
    x, size, step = node.input(0), node.int("size"), node.int("step", 1)
    axis = normal_axis(node, node.int("dim", -1), len(x.shape))
    if step < 1 or not 1 <= size <= x.shape[axis]:
        node.shape_error(f"windows of {size} by steps of {step} do not fit dimension {axis} of {x.tensor_type}")
    count = (x.shape[axis] - size) // step + 1
    node.require_table(count * size)
    places = np.arange(count, dtype=np.int64)[:, None] * step + np.arange(size, dtype=np.int64)
    windows = b.take(x, b.constant(places), axis)
    rank = len(windows.shape)
    return b.transpose(windows, [*(d for d in range(rank) if d != axis + 1), axis + 1])


@onnx_op("ExpandDims", domain=MICROSOFT)
def expand_dims(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    (axis,) = node.constant_ints(1)
    axis = normal_axis(node, axis, len(x.shape) + 1)
    return b.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]))


@onnx_op("CDist", domain=MICROSOFT)
def pairwise_distances(node: NodeView, b: Builder) -> Instruction:
    """[rows of A, rows of B]: euclidean distances, or their squares."""
    metric = node.word("metric", ("euclidean", "sqeuclidean"), "sqeuclidean")
    left, right = node.input(0), node.input(1)
    if len(left.shape) != 2 or len(right.shape) != 2 or left.shape[1] != right.shape[1]:
        node.shape_error(f"the rows of {left.tensor_type} and {right.tensor_type} differ")
    shape = (left.shape[0], *right.shape)
    difference = b.subtract(b.broadcast(left, shape, [0, 2]), b.broadcast(right, shape, [1, 2]))
    squares = b.reduce_by("add", b.multiply(difference, difference), [2])
    return squares if metric == "sqeuclidean" else b.unary("sqrt", squares)
