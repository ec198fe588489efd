"""Operators that compare along an axis: ArgMax, ArgMin, Hardmax, TopK. NaN counts as the largest number."""

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import dropped_shape, kept_shape, normal_axis
from onnxla.frontends.onnx.rules.shape import slice_axis
from onnxla.frontends.problems import Complaints
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.reduction import identity_of
from onnxla.hlo.types import S32, S64, ElementType, TensorType

S32_MAX = int(np.iinfo(np.int32).max)


@onnx_op("ArgMax")
@onnx_op("ArgMin")
def arg_extreme(node: NodeView, b: Builder) -> Instruction:
    """The position of the extreme along `axis`: the first one, or the last with select_last_index."""
    x = node.input(0)
    axis = normal_axis(node, node.int("axis", 0), len(x.shape))
    largest = node.op_type == "ArgMax"
    position = extreme_position(node, b, x, axis, largest, bool(node.int("select_last_index", 0)))
    shape = kept_shape(x.shape, [axis]) if node.int("keepdims", 1) else dropped_shape(x.shape, [axis])
    return b.reshape(b.convert(position, S64), shape)


def extreme_position(
    node: Complaints, b: Builder, x: Instruction, axis: int, largest: bool, last: bool = False
) -> Instruction:
    """s32 positions without `axis`: one reduction over pairs (value, position)."""
    if x.shape[axis] == 0:
        node.shape_error(f"dimension {axis} has no elements to choose from")
    if x.shape[axis] == 1:
        return b.full(dropped_shape(x.shape, [axis]), 0, S32)
    element = x.tensor_type.element
    positions = b.iota(TensorType(S32, x.shape), axis)
    worst = b.constant(identity_of("maximum" if largest else "minimum", element))
    nowhere = b.constant(-1 if last else S32_MAX, S32)
    pair = b.reduce([x, positions], [worst, nowhere], [axis], _better_pair(element, largest, last))
    return b.get_tuple_element(pair, 1)


def _better_pair(element: ElementType, largest: bool, last: bool) -> Computation:
    """(value, position) pairs: the better value wins, and between equals the first (or last) position."""
    b = Builder(f"arg_{'max' if largest else 'min'}_{'last' if last else 'first'}_{element}")
    value, position, new_value, new_position = (b.parameter(TensorType(type)) for type in (element, S32, element, S32))
    better = _comes_first(b, new_value, value, largest)
    equal = b.not_(b.or_(better, _comes_first(b, value, new_value, largest)))
    nearer = b.compare(new_position, position, "GT" if last else "LT")
    wins = b.or_(better, b.and_(equal, nearer))
    return b.build(b.tuple(b.select(wins, new_value, value), b.select(wins, new_position, position)))


def _comes_first(b: Builder, left: Instruction, right: Instruction, largest: bool) -> Instruction:
    """Whether `left` stands strictly before `right`, in descending (or ascending) order."""
    ordered = b.compare(left, right, "GT" if largest else "LT")
    if not left.tensor_type.element.is_float:
        return ordered
    only_left, only_right = (left, right) if largest else (right, left)
    return b.or_(ordered, b.and_(b.is_nan(only_left), b.not_(b.is_nan(only_right))))


@onnx_op("Hardmax", until=12)
def hardmax_of_rows(node: NodeView, b: Builder) -> Instruction:
    """Opsets 1 to 12: one 1 in each row of the matrix that flattening at `axis` gives."""
    x, axis = node.input(0), normal_axis(node, node.int("axis", 1), len(node.input(0).shape))
    rows = int(np.prod(x.shape[:axis]))
    matrix = b.reshape(x, (rows, x.tensor_type.size // rows if rows else 0))
    return b.reshape(_hardmax(node, b, matrix, 1), x.shape)


@onnx_op("Hardmax", since=13)
def hardmax(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return _hardmax(node, b, x, normal_axis(node, node.int("axis", -1), len(x.shape)))


def _hardmax(node: NodeView, b: Builder, x: Instruction, axis: int) -> Instruction:
    """1 at the first largest element along `axis`, 0 elsewhere."""
    if 0 in x.shape:
        return x
    position = extreme_position(node, b, x, axis, largest=True)
    spread = b.broadcast(position, x.shape, [d for d in range(len(x.shape)) if d != axis])
    hot = b.compare(spread, b.iota(TensorType(S32, x.shape), axis), "EQ")
    return b.convert(hot, x.tensor_type.element)


@onnx_op("TopK", until=9)
def top_k_by_attribute(node: NodeView, b: Builder) -> list[Instruction]:
    return _top_k(node, b, node.int("k"))


@onnx_op("TopK", since=10)
def top_k(node: NodeView, b: Builder) -> list[Instruction]:
    (k,) = node.constant_ints(1)
    return _top_k(node, b, k)


def _top_k(node: NodeView, b: Builder, k: int) -> list[Instruction]:
    """A stable sort of (value, position), cut to k: between equal values the smaller position is first.

    Where `sorted` is 0 any order is allowed; the sorted one serves.
    """
    x = node.input(0)
    axis = normal_axis(node, node.int("axis", -1), len(x.shape))
    if not 0 <= k <= x.shape[axis]:
        node.shape_error(f"k = {k} is out of range for dimension {axis} of size {x.shape[axis]}")
    element = x.tensor_type.element
    comparator = sort_order(element, largest=bool(node.int("largest", 1)))
    ordered = b.sort([x, b.iota(TensorType(S32, x.shape), axis)], axis, comparator)
    values, positions = (slice_axis(b, b.get_tuple_element(ordered, i), axis, 0, k) for i in range(2))
    return [values, b.convert(positions, S64)]


def sort_order(element: ElementType, largest: bool) -> Computation:
    b = Builder(f"{'descending' if largest else 'ascending'}_{element}")
    left, right, _, _ = (b.parameter(TensorType(type)) for type in (element, element, S32, S32))
    return b.build(_comes_first(b, left, right, largest))
