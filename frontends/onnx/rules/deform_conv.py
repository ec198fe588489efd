"""DeformConv: every tap of the kernel reads the image at its own computed offset, then one `dot`."""

import itertools
import math

import numpy as np

from onnxla.frontends.onnx.broadcasting import broadcast_from_axis
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.frontends.onnx.rules.sampling import flattened, interpolate, linear_taps, zero_outside
from onnxla.frontends.onnx.rules.windows import Sliding, read_sliding
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction


@onnx_op("DeformConv", since=19)
def deform_conv(node: NodeView, b: Builder) -> Instruction:
    x, weight, bias = node.input(0), node.input(1), node.optional_input(3)
    group, offset_group = node.int("group", 1), node.int("offset_group", 1)
    n, c, *sizes = x.shape
    m, taps = weight.shape[0], math.prod(weight.shape[2:])
    if c % offset_group or c % group or m % group or weight.shape[1] * group != c:
        node.shape_error("channels, groups and weights do not fit together")
    sliding = read_sliding(node, weight.shape[2:], sizes)
    places = math.prod(s.output for s in sliding)
    columns = _columns(node, b, sliding, offset_group)
    columns = b.reshape(columns, (n, group, c // group * taps, places))
    kernel = b.reshape(widen(b, weight), (group, m // group, c // group * taps))
    product = b.dot(kernel, columns, [2], [2], [0], [1])
    result = b.reshape(b.transpose(product, (2, 0, 1, 3)), (n, m, *(s.output for s in sliding)))
    result = b.convert(result, x.tensor_type.element)
    return result if bias is None else b.add(result, broadcast_from_axis(b, bias, result.shape, 1))


def _columns(node: NodeView, b: Builder, sliding: list[Sliding], offset_group: int) -> Instruction:
    """[N * offset_group, C / offset_group, taps * places]: what each tap reads at each place, times its mask."""
    x = widen(b, node.input(0))
    n, c, *sizes = x.shape
    element, rank = x.tensor_type.element, len(sizes)
    outputs = tuple(s.output for s in sliding)
    taps, places, groups = math.prod(s.kernel for s in sliding), math.prod(outputs), n * offset_group
    offset, mask = node.input(2), node.optional_input(4)
    if offset.tensor_type.size != groups * taps * rank * places:
        node.shape_error(f"offsets {offset.tensor_type} do not fit {taps} taps at {list(outputs)} places")
    offsets = b.reshape(b.convert(offset, element), (groups, taps, rank, places))
    neighbours = []
    for d, regular in enumerate(_regular_places(sliding)):
        moved = b.reshape(b.slice(offsets, (0, 0, d, 0), (groups, taps, d + 1, places)), (groups, taps * places))
        start = b.broadcast(b.constant(regular.reshape(-1), element), moved.shape, [1])
        neighbours.append(linear_taps(b, b.add(start, moved)))
    image = b.reshape(flattened(b, x), (groups, c // offset_group, math.prod(sizes)))
    columns = interpolate(b, image, neighbours, tuple(sizes), zero_outside(b, tuple(sizes)))
    if mask is None:
        return columns
    factors = b.reshape(b.convert(mask, element), (groups, taps * places))
    return b.multiply(columns, b.broadcast(factors, columns.shape, [0, 2]))


def _regular_places(sliding: list[Sliding]) -> list[np.ndarray]:
    """Where each tap reads at each place without offsets: one [taps, places] array for each dimension."""
    result = []
    for d in range(len(sliding)):
        s = sliding[d]
        tap = np.array([t[d] for t in itertools.product(*(range(o.kernel) for o in sliding))])
        place = np.array([p[d] for p in itertools.product(*(range(o.output) for o in sliding))])
        result.append(tap[:, None] * s.dilation + place[None, :] * s.stride - s.pad_low)
    return result
