"""Resizing images, one axis at a time, and the gradients of that."""

from collections.abc import Sequence

import numpy as np

from onnxla.frontends.onnx.rules.resize import weighted
from onnxla.frontends.onnx.rules.resize_coordinates import Axis, F, Taps, cubic_taps, linear_taps
from onnxla.frontends.onnx.rules.slicing import pick_positions
from onnxla.frontends.tensorflow.axes import require_enumerable
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, Array

CUBIC_OF_HALF_PIXEL, CUBIC, TABLE_SIZE = -0.5, -0.75, 1024
LARGEST_SIDE = 1 << 16


def _places(node: NodeView, size: int, output: int) -> tuple[Array, Axis]:
    """Where each output position lies in the input, computed in f32 as TensorFlow does."""
    aligned = node.bool("align_corners", False) and output > 1
    scale = F(size - 1) / F(output - 1) if aligned else F(size) / F(output)
    x = np.arange(output, dtype=F)
    place = (x + F(0.5)) * scale - F(0.5) if node.bool("half_pixel_centers", False) else x * scale
    return place, Axis(size, output, float(output) / size)


def _sizes(node: NodeView) -> Sequence[int]:
    sizes = node.constant_ints(1)
    if len(sizes) != 2 or min(sizes) < 1 or len(node.input(0).shape) != 4:
        node.shape_error(f"{node.input(0).tensor_type} cannot be resized to {list(sizes)}")
    require_enumerable(node, max(sizes), LARGEST_SIDE)
    return sizes


def _linear(node: NodeView, size: int, output: int) -> Taps:
    place, axis = _places(node, size, output)
    return linear_taps(place, axis, False, False)


@tf_op("ResizeBilinear")
def resize_bilinear(node: NodeView, b: Builder) -> Instruction:
    x = b.convert(node.input(0), F32)
    for d, output in zip((1, 2), _sizes(node), strict=True):
        if x.shape[d] != output:
            x = weighted(b, x, d, _linear(node, x.shape[d], output))
    return x


@tf_op("ResizeBicubic")
def resize_bicubic(node: NodeView, b: Builder) -> Instruction:
    """Keys' kernel, looked up in a table of 1024 steps as TensorFlow does; with half pixel centres its coefficient is
    -0.5 and taps outside of the image weigh nothing."""
    x, half = b.convert(node.input(0), F32), node.bool("half_pixel_centers", False)
    for d, output in zip((1, 2), _sizes(node), strict=True):
        place, axis = _places(node, x.shape[d], output)
        place = np.floor(place) + np.rint((place - np.floor(place)) * F(TABLE_SIZE)) / F(TABLE_SIZE)
        x = weighted(b, x, d, cubic_taps(place, axis, CUBIC_OF_HALF_PIXEL if half else CUBIC, False, half))
    return x


@tf_op("ResizeNearestNeighbor")
def resize_nearest(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    for d, output in zip((1, 2), _sizes(node), strict=True):
        x = pick_positions(b, x, d, _nearest(node, x.shape[d], output))
    return x


def _nearest(node: NodeView, size: int, output: int) -> Array:
    aligned = node.bool("align_corners", False) and output > 1
    scale = F(size - 1) / F(output - 1) if aligned else F(size) / F(output)
    x = np.arange(output, dtype=F)
    place = (x + F(0.5)) * scale if node.bool("half_pixel_centers", False) else x * scale
    rounded = np.floor(place + F(0.5)) if aligned else np.floor(place)
    positions: Array = np.clip(rounded.astype(np.int64), 0, size - 1)
    return positions


def _spread(b: Builder, g: Instruction, d: int, matrix: Array) -> Instruction:
    """Along dimension `d`, the product with a matrix [output, input]."""
    product = b.dot(g, b.constant(matrix, g.tensor_type.element), [d], [0])
    last = len(g.shape) - 1
    return b.transpose(product, [*range(d), last, *range(d, last)])


@tf_op("ResizeBilinearGrad")
def resize_bilinear_grad(node: NodeView, b: Builder) -> Instruction:
    """Each gradient to the positions it was made from, by their weights."""
    g, original = node.input(0), node.input(1)
    for d in (1, 2):
        taps = _linear(node, original.shape[d], g.shape[d])
        require_enumerable(node, g.shape[d] * original.shape[d])
        matrix = np.zeros((g.shape[d], original.shape[d]), np.float32)
        for t in range(taps.positions.shape[1]):
            np.add.at(matrix, (np.arange(g.shape[d]), taps.positions[:, t]), taps.weights[:, t])
        g = _spread(b, g, d, matrix)
    return b.convert(g, original.tensor_type.element)


@tf_op("ResizeNearestNeighborGrad")
def resize_nearest_grad(node: NodeView, b: Builder) -> Instruction:
    g, sizes = node.input(0), node.constant_ints(1)
    for d, size in zip((1, 2), sizes, strict=True):
        require_enumerable(node, size * g.shape[d])
        matrix = _nearest(node, size, g.shape[d])[:, None] == np.arange(size)
        g = _spread(b, g, d, matrix.astype(np.float32))
    return g
