"""Det: Gaussian elimination with partial pivoting for a batch of matrices, one step for each column."""

import math

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.ordering import extreme_position
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32, TensorType

MAX_UNROLLED = 2
"""Larger matrices take a loop: each step is a few kernels over the whole matrix."""


@onnx_op("Det", since=11)
def det(node: NodeView, b: Builder) -> Instruction:
    given = node.input(0)
    if len(given.shape) < 2 or given.shape[-1] != given.shape[-2]:
        node.shape_error(f"{given.tensor_type} is not a batch of square matrices")
    size, batch = given.shape[-1], given.shape[:-2]
    count = math.prod(batch)
    wide = widen(b, given)
    product = b.full((count,), 1, wide.tensor_type.element)
    if size and count:
        matrices = b.reshape(wide, (count, size, size))
        eliminate = _eliminate_unrolled if size <= MAX_UNROLLED else _eliminate_in_a_loop
        product = eliminate(node, b, matrices, product)
    return b.convert(b.reshape(product, batch), given.tensor_type.element)


def _eliminate_unrolled(node: NodeView, b: Builder, matrices: Instruction, product: Instruction) -> Instruction:
    for k in range(matrices.shape[1]):
        matrices, product = _eliminate(node, b, b.constant(k, S32), matrices, product)
    return product


def _eliminate_in_a_loop(node: NodeView, b: Builder, matrices: Instruction, product: Instruction) -> Instruction:
    init = b.tuple(b.constant(0, S32), matrices, product)
    body = Builder("elimination", b.source)
    state = body.parameter(init.type)
    k, *values = (body.get_tuple_element(state, i) for i in range(3))
    root = body.tuple(body.add(k, body.constant(1, S32)), *_eliminate(node, body, k, *values))
    condition = Builder("more_columns", b.source)
    k = condition.get_tuple_element(condition.parameter(init.type), 0)
    more = condition.compare(k, condition.constant(matrices.shape[1], S32), "LT")
    return b.get_tuple_element(b.while_(init, condition.build(more), body.build(root)), 2)


def _eliminate(
    node: NodeView, b: Builder, k: Instruction, matrices: Instruction, product: Instruction
) -> tuple[Instruction, Instruction]:
    """Step `k`: matrices [count, n, n] with zeros below the diagonal up to column k, the product of k + 1 pivots.

    Of the rows from k on, the one with the largest element in column k trades places with row k, which turns the sign;
    it is a pivot from then on, and not kept. A pivot of 0 makes the product 0.
    """
    count, n, _ = matrices.shape
    zero = b.constant(0, S32)

    def column(x: Instruction) -> Instruction:
        return b.reshape(b.dynamic_slice(x, [zero, zero, k], [count, n, 1]), (count, n))

    row = b.iota(TensorType(S32, (count, n)), 1)
    size = b.unary("abs", column(matrices))
    candidates = b.select(b.compare(row, b.broadcast_scalar(k, row.shape), "GE"), size, b.full_like(size, -1))
    chosen = extreme_position(node, b, candidates, 1, largest=True)
    is_chosen = b.broadcast(b.compare(row, b.broadcast(chosen, row.shape, [0]), "EQ"), matrices.shape, [0, 1])
    pivot_row = b.reduce_by("add", b.select(is_chosen, matrices, b.full_like(matrices, 0)), [1])
    row_k = b.reshape(b.dynamic_slice(matrices, [zero, k, zero], [count, 1, n]), (count, n))
    swapped = b.select(is_chosen, b.broadcast(row_k, matrices.shape, [0, 2]), matrices)
    pivot = b.reshape(b.dynamic_slice(pivot_row, [zero, k], [count, 1]), (count,))
    one = b.full_like(pivot, 1)
    in_place = b.compare(chosen, b.broadcast_scalar(k, chosen.shape), "EQ")
    signed = b.multiply(pivot, b.select(in_place, one, b.full_like(pivot, -1)))
    divisor = b.select(b.compare(pivot, b.full_like(pivot, 0), "EQ"), one, pivot)
    factors = b.divide(column(swapped), b.broadcast(divisor, (count, n), [0]))
    multiples = b.multiply(b.broadcast(factors, matrices.shape, [0, 1]), b.broadcast(pivot_row, matrices.shape, [0, 2]))
    below = b.broadcast(b.compare(row, b.broadcast_scalar(k, row.shape), "GT"), matrices.shape, [0, 1])
    return b.select(below, b.subtract(swapped, multiples), swapped), b.multiply(product, signed)
