"""Operators that make a pattern of positions: Range, EyeLike, Trilu, OneHot."""

import math

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import normal_axis
from onnxla.frontends.onnx.rules.precision import wide_element
from onnxla.frontends.onnx.rules.shape import slice_axis
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32, S64, Shape, TensorType


@onnx_op("Range", since=11)
def range_(node: NodeView, b: Builder) -> Instruction:
    """start + i * delta for i below ceil((limit - start) / delta). Half precision computes in f32."""
    start, limit, delta = (node.constant(i).reshape(()) for i in range(3))
    element = node.input(0).tensor_type.element
    if delta == 0:
        node.shape_error("a delta of 0 never reaches the limit")
    if element.is_integer:
        count = len(range(int(start), int(limit), int(delta)))
    else:
        count = max(math.ceil((float(limit) - float(start)) / float(delta)), 0)
    computed_in = wide_element(element)
    steps = b.convert(b.iota(TensorType(S64, (count,)), 0), computed_in)
    scaled = b.multiply(steps, b.full_like(steps, delta.item()))
    return b.convert(b.add(scaled, b.full_like(steps, start.item())), element)


def _diagonal_distance(b: Builder, shape: Shape) -> Instruction:
    """column - row at every position of the last two dimensions, as s32."""
    type = TensorType(S32, shape)
    return b.subtract(b.iota(type, len(shape) - 1), b.iota(type, len(shape) - 2))


@onnx_op("EyeLike", since=9)
def eye_like(node: NodeView, b: Builder) -> Instruction:
    """Ones on diagonal k: above the main one where k > 0."""
    wished = node.element("dtype") if node.has("dtype") else None
    x = node.input(0)
    if len(x.shape) != 2:
        node.shape_error(f"{x.tensor_type} is not a matrix")
    element = wished or x.tensor_type.element
    distance = _diagonal_distance(b, x.shape)
    return b.convert(b.compare(distance, b.full_like(distance, node.int("k", 0)), "EQ"), element)


@onnx_op("Trilu", since=14)
def trilu(node: NodeView, b: Builder) -> Instruction:
    """Keep what lies on diagonal k and above (or below) it, zero elsewhere."""
    x, k = node.input(0), node.optional_input(1)
    if len(x.shape) < 2:
        node.shape_error(f"{x.tensor_type} is not a matrix")
    matrix = x.shape[-2:]
    distance = b.convert(_diagonal_distance(b, matrix), S64)
    diagonal = b.constant(0, S64) if k is None else b.convert(b.reshape(k, ()), S64)
    direction = "GE" if node.int("upper", 1) else "LE"
    kept = b.compare(distance, b.broadcast_scalar(diagonal, matrix), direction)
    return b.select(b.numpy_broadcast(kept, x.shape), x, b.full_like(x, 0))


@onnx_op("OneHot", since=9)
def one_hot(node: NodeView, b: Builder) -> Instruction:
    """values = [off, on]. An index in -depth..-1 counts from the end; others outside 0..depth-1 are all off."""
    indices, values = node.input(0), node.input(2)
    depth = int(np.asarray(node.constant(1)).reshape(()))
    axis = normal_axis(node, node.int("axis", -1), len(indices.shape) + 1)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    whole = b.convert(indices, S64)
    negative = b.compare(whole, b.full_like(whole, 0), "LT")
    wrapped = b.select(negative, b.add(whole, b.full_like(whole, depth)), whole)
    spread = b.broadcast(wrapped, shape, [d for d in range(len(shape)) if d != axis])
    hot = b.compare(spread, b.iota(TensorType(S64, shape), axis), "EQ")
    off, on = (b.reshape(slice_axis(b, values, 0, i, i + 1), ()) for i in range(2))
    return b.select(hot, b.broadcast_scalar(on, shape), b.broadcast_scalar(off, shape))
