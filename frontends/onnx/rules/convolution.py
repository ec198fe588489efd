"""Conv and ConvTranspose as XLA's `convolution` in ONNX's own order of dimensions, and Col2Im."""

import itertools
import math
from collections.abc import Sequence

from onnxla.frontends.onnx.broadcasting import broadcast_from_axis
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.precision import wide_element, widen
from onnxla.frontends.onnx.rules.windows import per_dimension, read_auto_pad, read_sliding
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.window import ConvolutionDimensions, Window, WindowDimension


@onnx_op("Conv")
def conv(node: NodeView, b: Builder) -> Instruction:
    read_auto_pad(node)  # it may be wrong whatever the inputs are
    return convolve(node, b, node.input(0))


def convolve(node: NodeView, b: Builder, x: Instruction) -> Instruction:
    """`x` convolved with the weights of input 1 by the node's window, plus the bias of input 2."""
    weight = node.input(1)
    rank = _check_operands(node, x, weight)
    sliding = read_sliding(node, node.ints("kernel_shape", ()) or weight.shape[2:], x.shape[2:])
    if weight.shape[1] * node.int("group", 1) != x.shape[1]:
        node.shape_error(f"{x.shape[1]} channels do not fit weights {weight.tensor_type}")
    window = Window(tuple(s.dimension for s in sliding))
    return _with_bias(node, b, x, weight, window, rank)


def _check_operands(node: NodeView, x: Instruction, weight: Instruction) -> int:
    """The number of spatial dimensions."""
    if len(x.shape) < 3 or len(weight.shape) != len(x.shape):
        node.shape_error("a convolution needs [N, C, spatial...] and weights of the same rank")
    kernel = node.ints("kernel_shape", ())
    if kernel and kernel != weight.shape[2:]:
        node.shape_error(f"kernel_shape {list(kernel)} is not that of the weights {weight.tensor_type}")
    return len(x.shape) - 2


def _with_bias(
    node: NodeView, b: Builder, x: Instruction, weight: Instruction, window: Window, rank: int
) -> Instruction:
    """[N, C, spatial] with weights [M, C / group, spatial], plus the bias; half precision is rounded after that."""
    dimensions, group, bias = ConvolutionDimensions.nchw(rank), node.int("group", 1), node.optional_input(2)
    if bias is None:
        return b.convolution(x, weight, window, dimensions, group)
    element = x.tensor_type.element
    result = b.convolution(x, weight, window, dimensions, group, element=wide_element(element))
    return b.convert(b.add(result, broadcast_from_axis(b, widen(b, bias), result.shape, 1)), element)


@onnx_op("ConvTranspose")
def conv_transpose(node: NodeView, b: Builder) -> Instruction:
    """A convolution over the input spread out by the strides, with the weights turned around."""
    auto_pad = read_auto_pad(node)
    x, weight = node.input(0), node.input(1)
    rank, group = _check_operands(node, x, weight), node.int("group", 1)
    if weight.shape[0] != x.shape[1] or x.shape[1] % group:
        node.shape_error(f"{x.shape[1]} channels do not fit weights {weight.tensor_type}")
    kernel = weight.shape[2:]
    strides, dilations = per_dimension(node, "strides", rank), per_dimension(node, "dilations", rank)
    low, outputs = _transposed_padding(node, x.shape[2:], kernel, strides, dilations, auto_pad)
    dimensions = []
    for d in range(rank):
        extent = (kernel[d] - 1) * dilations[d] + 1
        before = extent - 1 - low[d]
        spread = (x.shape[2 + d] - 1) * strides[d] + 1
        after = outputs[d] + extent - 1 - spread - before
        dimensions.append(
            WindowDimension(
                size=kernel[d], pad_low=before, pad_high=after, base_dilation=strides[d], window_dilation=dilations[d]
            )
        )
    turned = b.reverse(_output_features_first(b, weight, group), range(2, 2 + rank))
    return _with_bias(node, b, x, turned, Window(tuple(dimensions)), rank)


def _output_features_first(b: Builder, weight: Instruction, group: int) -> Instruction:
    """[C, M / group, ...] as [M, C / group, ...]."""
    c, m, *kernel = weight.shape
    spatial = range(3, 3 + len(kernel))
    grouped = b.reshape(weight, (group, c // group, m, *kernel))
    return b.reshape(b.transpose(grouped, (0, 2, 1, *spatial)), (group * m, c // group, *kernel))


def _transposed_padding(
    node: NodeView,
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    auto_pad: str,
) -> tuple[list[int], list[int]]:
    """What is cropped in front, and the output size, of each spatial dimension."""
    rank = len(sizes)
    extra = node.ints("output_padding", None) or (0,) * rank
    wished = node.ints("output_shape", None)
    pads = node.ints("pads", None) or (0,) * (2 * rank)
    if len(extra) != rank or len(pads) != 2 * rank or (wished and len(wished) not in (rank, rank + 2)):
        node.shape_error(f"output_padding, pads or output_shape do not fit {rank} spatial dimensions")
    low, outputs = [], []
    for d in range(rank):
        full = (sizes[d] - 1) * strides[d] + extra[d] + (kernel[d] - 1) * dilations[d] + 1
        if wished:
            output = wished[len(wished) - rank + d]
        elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            output = sizes[d] * strides[d]
        else:
            output = full - (pads[d] + pads[rank + d] if auto_pad == "NOTSET" else 0)
            low.append(pads[d] if auto_pad == "NOTSET" else 0)
            outputs.append(output)
            continue
        total = max(full - output, 0)
        low.append(total // 2 if auto_pad == "SAME_UPPER" else total - total // 2)
        outputs.append(output)
    if min(outputs) < 1:
        node.shape_error(f"the pads crop all of the output, which would be {outputs}")
    return low, outputs


@onnx_op("Col2Im", since=18)
def col2im(node: NodeView, b: Builder) -> Instruction:
    """Add every column of patches back to where it was cut out: one shifted image for each tap."""
    x = node.input(0)
    image, block = node.constant_ints(1), node.constant_ints(2)
    rank = len(image)
    strides, dilations = per_dimension(node, "strides", rank), per_dimension(node, "dilations", rank)
    pads = node.ints("pads", None) or (0,) * (2 * rank)
    taps = math.prod(block)
    counts = [
        (image[d] + pads[d] + pads[rank + d] - (block[d] - 1) * dilations[d] - 1) // strides[d] + 1 for d in range(rank)
    ]
    if len(x.shape) != 3 or x.shape[1] % taps or x.shape[2] != math.prod(counts):
        node.shape_error(f"{x.tensor_type} does not hold {counts} patches of {list(block)}")
    n, channels = x.shape[0], x.shape[1] // taps
    patches = b.reshape(x, (n, channels, taps, *counts))
    zero = b.constant(0, x.tensor_type.element)
    total: Instruction | None = None
    for tap, offset in enumerate(itertools.product(*(range(size) for size in block))):
        starts = [0, 0, tap, *(0 for _ in counts)]
        plane = b.reshape(b.slice(patches, starts, [n, channels, tap + 1, *counts]), (n, channels, *counts))
        low = [offset[d] * dilations[d] - pads[d] for d in range(rank)]
        high = [image[d] - low[d] - ((counts[d] - 1) * strides[d] + 1) for d in range(rank)]
        image_of_tap = b.pad(plane, zero, [0, 0, *low], [0, 0, *high], [0, 0, *(s - 1 for s in strides)])
        total = image_of_tap if total is None else b.add(total, image_of_tap)
    if total is None:
        node.shape_error("the block has no elements")
    return total
