"""Pooling over windows and over whole images. Half precision sums in f32."""

import math
from collections.abc import Sequence

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.indexing import replacement
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.frontends.onnx.rules.windows import Sliding, per_dimension, read_auto_pad, read_sliding, window_over_image
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.indexing import Scatter
from onnxla.hlo.ops.reduction import identity_of
from onnxla.hlo.types import S64, Array, ElementType, TensorType


def _read(node: NodeView, x: Instruction) -> list[Sliding]:
    if len(x.shape) < 3:
        node.shape_error(f"{x.tensor_type} has no spatial dimensions [N, C, ...]")
    return read_sliding(node, node.ints("kernel_shape"), x.shape[2:])


@onnx_op("MaxPool")
def max_pool(node: NodeView, b: Builder) -> list[Instruction]:
    read_auto_pad(node)  # it may be wrong whatever the input is
    return max_over_windows(node, b, node.input(0))


def max_over_windows(node: NodeView, b: Builder, x: Instruction) -> list[Instruction]:
    """The maximum, and on request where it stood in the whole input counted as one row."""
    sliding = _read(node, x)
    window, element = window_over_image(sliding), x.tensor_type.element
    lowest = b.constant(identity_of("maximum", element))
    if not node.has_output(1):
        return [b.reduce_window([x], [lowest], window, b.combiner("maximum", element))]
    places = _places(b, x.shape, column_major=bool(node.int("storage_order", 0)))
    nowhere = b.constant(np.iinfo(np.int64).max, S64)
    pair = b.reduce_window([x, places], [lowest, nowhere], window, _larger_first(element))
    return [b.get_tuple_element(pair, 0), b.get_tuple_element(pair, 1)]


def _places(b: Builder, shape: Sequence[int], column_major: bool) -> Instruction:
    """The number of every element: row by row, or with the last spatial dimension slowest within its image."""
    if not column_major:
        return b.reshape(b.iota(TensorType(S64, (math.prod(shape),)), 0), shape)
    images, spatial = math.prod(shape[:2]), shape[2:]
    backwards = b.reshape(b.iota(TensorType(S64, (math.prod(shape),)), 0), (images, *reversed(spatial)))
    return b.reshape(b.transpose(backwards, (0, *range(len(spatial), 0, -1))), shape)


def _larger_first(element: ElementType) -> Computation:
    """(value, place) pairs: the larger value, and between equals the smaller place."""
    b = Builder(f"larger_first_{element}")
    value, place, new_value, new_place = (b.parameter(TensorType(type)) for type in (element, S64, element, S64))
    tie = b.and_(b.compare(new_value, value, "EQ"), b.compare(new_place, place, "LT"))
    wins = b.or_(b.compare(new_value, value, "GT"), tie)
    return b.build(b.tuple(b.select(wins, new_value, value), b.select(wins, new_place, place)))


@onnx_op("AveragePool")
def average_pool(node: NodeView, b: Builder) -> Instruction:
    read_auto_pad(node)
    return average_over_windows(node, b, node.input(0))


def average_over_windows(node: NodeView, b: Builder, given: Instruction) -> Instruction:
    """The sum over a window divided by the elements it covers, padding counted on request."""
    sliding = _read(node, given)
    total = _window_sum(b, widen(b, given), sliding)
    node.require_table(max([math.prod(s.output for s in sliding), *(s.output * s.kernel for s in sliding)]))
    counts = _covered(sliding, include_padding=bool(node.int("count_include_pad", 0)))
    element = total.tensor_type.element
    if counts.size and counts.min() == counts.max():
        divisor = b.full_like(total, int(counts.flat[0]))
    else:
        divisor = b.numpy_broadcast(b.constant(counts, element), total.shape)
    return b.convert(b.divide(total, divisor), given.tensor_type.element)


def _window_sum(b: Builder, x: Instruction, sliding: Sequence[Sliding]) -> Instruction:
    element = x.tensor_type.element
    return b.reduce_window([x], [b.constant(0, element)], window_over_image(sliding), b.combiner("add", element))


def _covered(sliding: Sequence[Sliding], include_padding: bool) -> Array:
    """How many elements each window covers. What ceil_mode adds past the padding is never counted."""
    result: Array = np.ones((), np.int64)
    for s in sliding:
        taps = np.arange(s.output)[:, None] * s.stride - s.pad_low + np.arange(s.kernel) * s.dilation
        first, limit = (-s.pad_low, s.size + s.pad_high) if include_padding else (0, s.size)
        result = result[..., None] * ((taps >= first) & (taps < limit)).sum(axis=1)
    return result


@onnx_op("LpPool", until=1)
def lp_pool_of_float_p(node: NodeView, b: Builder) -> Instruction:
    return _lp_pool(node, b, node.float("p", 2.0))


@onnx_op("LpPool", since=2)
def lp_pool(node: NodeView, b: Builder) -> Instruction:
    return _lp_pool(node, b, node.int("p", 2))


def _lp_pool(node: NodeView, b: Builder, p: float) -> Instruction:
    read_auto_pad(node)
    given = node.input(0)
    powers = to_power(b, widen(b, given), p)
    return b.convert(root(b, _window_sum(b, powers, _read(node, given)), p), given.tensor_type.element)


def to_power(b: Builder, x: Instruction, p: float) -> Instruction:
    """|x| ** p"""
    if p == 2:
        return b.multiply(x, x)
    magnitude = b.unary("abs", x)
    return magnitude if p == 1 else b.power(magnitude, b.full_like(x, p))


def root(b: Builder, x: Instruction, p: float) -> Instruction:
    """x ** (1 / p)"""
    if p == 2:
        return b.unary("sqrt", x)
    return x if p == 1 else b.power(x, b.full_like(x, 1 / p))


@onnx_op("GlobalMaxPool")
def global_max_pool(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return b.reshape(b.reduce_by("maximum", x, range(2, len(x.shape))), _global_shape(x))


@onnx_op("GlobalAveragePool")
def global_average_pool(node: NodeView, b: Builder) -> Instruction:
    given = node.input(0)
    total = b.reduce_by("add", widen(b, given), range(2, len(given.shape)))
    mean = b.divide(total, b.full_like(total, math.prod(given.shape[2:])))
    return b.reshape(b.convert(mean, given.tensor_type.element), _global_shape(given))


@onnx_op("GlobalLpPool", until=1)
def global_lp_pool_of_float_p(node: NodeView, b: Builder) -> Instruction:
    return _global_lp_pool(node, b, node.float("p", 2.0))


@onnx_op("GlobalLpPool", since=2)
def global_lp_pool(node: NodeView, b: Builder) -> Instruction:
    return _global_lp_pool(node, b, node.int("p", 2))


def _global_lp_pool(node: NodeView, b: Builder, p: float) -> Instruction:
    given = node.input(0)
    total = b.reduce_by("add", to_power(b, widen(b, given), p), range(2, len(given.shape)))
    return b.reshape(b.convert(root(b, total, p), given.tensor_type.element), _global_shape(given))


def _global_shape(x: Instruction) -> tuple[int, ...]:
    return (*x.shape[:2], *(1 for _ in x.shape[2:]))


@onnx_op("MaxUnpool", since=9)
def max_unpool(node: NodeView, b: Builder) -> Instruction:
    """Put each element back to its place in the unpooled tensor counted as one row; zero elsewhere.

    Places always count in the tensor that kernel, strides and pads give. An output shape adds zeros at the ends.
    """
    x, places = node.input(0), node.input(1)
    rank = len(x.shape) - 2
    kernel, strides = node.ints("kernel_shape"), per_dimension(node, "strides", rank)
    pads = node.ints("pads", None) or (0,) * (2 * rank)
    if x.shape != places.shape or len(kernel) != rank or len(pads) != 2 * rank:
        node.shape_error("the indices, kernel_shape or pads do not fit the input")
    shape = (
        *x.shape[:2],
        *((x.shape[2 + d] - 1) * strides[d] + kernel[d] - pads[d] - pads[rank + d] for d in range(rank)),
    )
    whole = node.optional_constant_ints(2) or shape
    if len(whole) != len(shape) or any(w < n for w, n in zip(whole, shape, strict=True)):
        node.shape_error(f"output_shape {list(whole)} cannot hold the unpooled {list(shape)}")
    element = x.tensor_type.element
    op = Scatter(
        update_window_dims=(),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        input_batching_dims=(),
        scatter_indices_batching_dims=(),
        index_vector_dim=1,
        indices_are_sorted=False,
        unique_indices=False,
        to_apply=replacement(element),
    )
    count = x.tensor_type.size
    row = b.full((math.prod(shape),), 0, element)
    unpooled = b.reshape(b.scatter(row, b.reshape(places, (count,)), b.reshape(x, (count,)), op), shape)
    ends = [w - n for w, n in zip(whole, shape, strict=True)]
    return b.pad(unpooled, b.constant(0, element), [0] * len(shape), ends) if any(ends) else unpooled
