"""Padding with a value or with the mirror image, and the gradient of the latter."""

import numpy as np

from onnxla.frontends.onnx.rules.slicing import pick_positions
from onnxla.frontends.tensorflow.axes import require_enumerable
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction


@tf_op("Pad")
def pad(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return _padded(node, b, x, b.constant(0, x.tensor_type.element))


@tf_op("PadV2")
def pad_v2(node: NodeView, b: Builder) -> Instruction:
    return _padded(node, b, node.input(0), b.reshape(node.input(2), ()))


def _paddings(node: NodeView) -> np.ndarray:
    """[rank, 2], checked."""
    pads = np.array(node.constant_ints(1)).reshape(-1, 2)
    if len(pads) != len(node.input(0).shape) or (pads < 0).any():
        node.shape_error(f"paddings {pads.tolist()} do not fit {node.input(0).tensor_type}")
    return pads


def _padded(node: NodeView, b: Builder, x: Instruction, value: Instruction) -> Instruction:
    pads = _paddings(node)
    return b.pad(x, value, [int(p) for p in pads[:, 0]], [int(p) for p in pads[:, 1]])


@tf_op("MirrorPad")
def mirror_pad(node: NodeView, b: Builder) -> Instruction:
    """REFLECT leaves the border itself out of the mirror image, SYMMETRIC repeats it."""
    x = node.input(0)
    for d, (low, high) in enumerate(_paddings(node)):
        if low or high:
            x = pick_positions(b, x, d, mirrored_positions(node, x.shape[d], int(low), int(high)))
    return x


def mirrored_positions(node: NodeView, size: int, low: int, high: int) -> np.ndarray:
    """Where each element of a mirrored dimension comes from."""
    reflect = node.string("mode") == "REFLECT"
    if max(low, high) > size - int(reflect):
        node.shape_error(f"padding of {low} and {high} is more than a dimension of {size} has to mirror")
    require_enumerable(node, low + size + high)
    place = np.arange(-low, size + high)
    place = np.where(place < 0, -place if reflect else -place - 1, place)
    return np.where(place >= size, 2 * size - (2 if reflect else 1) - place, place)


@tf_op("MirrorPadGrad")
def mirror_pad_grad(node: NodeView, b: Builder) -> Instruction:
    """Each gradient back to where the element came from: a product with a matrix of zeros and ones, axis by axis."""
    g = node.input(0)
    for d, (low, high) in enumerate(np.array(node.constant_ints(1)).reshape(-1, 2)):
        if not (low or high):
            continue
        size = g.shape[d] - int(low) - int(high)
        sources = mirrored_positions(node, size, int(low), int(high))
        require_enumerable(node, len(sources) * size)
        matrix = b.constant((sources[:, None] == np.arange(size)).astype(np.float32), g.tensor_type.element)
        product = b.dot(g, matrix, [d], [0])
        last = len(g.shape) - 1
        g = b.transpose(product, [*range(d), last, *range(d, last)])
    return g
