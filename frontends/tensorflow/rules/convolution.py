"""Convolutions as XLA's, in TensorFlow's own order of dimensions; transposed and gradients likewise.

Kernels are [spatial..., input channels of a group, output channels]; the kernel of a depthwise convolution is
[spatial..., channels, multiplier], which is the same with as many groups as channels.
"""

import itertools
from collections.abc import Sequence

from onnxla.frontends.tensorflow.images import Image, image_of
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.window import ConvolutionDimensions, Window, WindowDimension


def dimensions_of(image: Image) -> ConvolutionDimensions:
    """Kernels are always spatial dimensions, inputs, outputs; images as `data_format` says."""
    count = len(image.spatial)
    return ConvolutionDimensions(
        input_batch=0,
        input_feature=image.feature,
        input_spatial=image.spatial,
        kernel_input_feature=count,
        kernel_output_feature=count + 1,
        kernel_spatial=tuple(range(count)),
        output_batch=0,
        output_feature=image.feature,
        output_spatial=image.spatial,
    )


def _groups(node: NodeView, channels: int, kernel: Instruction) -> int:
    inputs, outputs = kernel.shape[-2:]
    if not inputs or channels % inputs or outputs % max(channels // inputs, 1):
        node.shape_error(f"{channels} channels do not fit the kernel {kernel.tensor_type}")
    return channels // inputs


def _depthwise_kernel(b: Builder, kernel: Instruction) -> Instruction:
    """[spatial..., channels, multiplier] as [spatial..., 1, channels * multiplier]."""
    *spatial, channels, multiplier = kernel.shape
    return b.reshape(kernel, (*spatial, 1, channels * multiplier))


@tf_op("Conv2D", "Conv3D", "Conv")
def conv(node: NodeView, b: Builder) -> Instruction:
    return _forward(node, b, node.input(0), node.input(1))


@tf_op("DepthwiseConv2dNative")
def depthwise_conv(node: NodeView, b: Builder) -> Instruction:
    x, kernel = node.input(0), node.input(1)
    if len(kernel.shape) != len(x.shape):
        node.shape_error(f"the kernel {kernel.tensor_type} does not fit {x.tensor_type}")
    return _forward(node, b, x, _depthwise_kernel(b, kernel))


def _forward(node: NodeView, b: Builder, x: Instruction, kernel: Instruction) -> Instruction:
    image = image_of(node, x.shape, kernel.shape[:-2])
    groups = _groups(node, x.shape[image.feature], kernel)
    return b.convolution(x, kernel, image.window, dimensions_of(image), groups)


@tf_op("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def conv_backprop_input(node: NodeView, b: Builder) -> Instruction:
    """Also what a transposed convolution is."""
    return input_gradient(node, b, node.constant_ints(0), node.input(1), node.input(2))


@tf_op("DepthwiseConv2dNativeBackpropInput")
def depthwise_backprop_input(node: NodeView, b: Builder) -> Instruction:
    return input_gradient(node, b, node.constant_ints(0), _depthwise_kernel(b, node.input(1)), node.input(2))


def input_gradient(
    node: NodeView, b: Builder, sizes: Sequence[int], kernel: Instruction, g: Instruction
) -> Instruction:
    """A convolution over the gradient spread out by the strides, with the kernel turned around and its sides swapped.

    `sizes` is the input's shape, or only its spatial part.
    """
    image = _image_before(node, sizes, kernel, g)
    count = len(image.spatial)
    windows = []
    for s, d in zip(image.sliding, image.spatial, strict=True):
        spread = max((g.shape[d] - 1) * s.stride + 1, 0)
        before = s.extent - 1 - s.pad_low
        after = s.size + s.extent - 1 - spread - before
        windows.append(
            WindowDimension(
                size=s.kernel, pad_low=before, pad_high=after, base_dilation=s.stride, window_dilation=s.dilation
            )
        )
    groups = _groups(node, _channels(node, sizes, image, kernel), kernel)
    *spatial, inputs, outputs = kernel.shape
    grouped = b.reshape(kernel, (*spatial, inputs, groups, outputs // groups))
    swapped = b.transpose(grouped, (*range(count), count + 2, count + 1, count))
    turned = b.reverse(b.reshape(swapped, (*spatial, outputs // groups, groups * inputs)), range(count))
    return b.convolution(g, turned, Window(tuple(windows)), dimensions_of(image), groups)


def _image_before(node: NodeView, sizes: Sequence[int], kernel: Instruction, g: Instruction) -> Image:
    """The input of the convolution whose result `g` is the gradient of."""
    rank = len(g.shape)
    if len(sizes) not in (rank, rank - 2):
        node.shape_error(f"input sizes {list(sizes)} do not fit {g.tensor_type}")
    if len(sizes) == rank:
        shape = tuple(sizes)
    else:
        probe = image_of(node, (1,) * rank, kernel.shape[:-2])
        by_dimension = dict(zip(probe.spatial, sizes, strict=True))
        shape = tuple(by_dimension.get(d, g.shape[d]) for d in range(rank))
    image = image_of(node, shape, kernel.shape[:-2])
    if [s.output for s in image.sliding] != [g.shape[d] for d in image.spatial]:
        node.shape_error(f"a convolution of {list(shape)} does not give {g.tensor_type}")
    return image


def _channels(node: NodeView, sizes: Sequence[int], image: Image, kernel: Instruction) -> int:
    return sizes[image.feature] if len(sizes) == image.rank else kernel.shape[-2]


@tf_op("Conv2DBackpropFilter", "Conv3DBackpropFilterV2")
def conv_backprop_filter(node: NodeView, b: Builder) -> Instruction:
    x, sizes, g = node.input(0), node.constant_ints(1), node.input(2)
    image = image_of(node, x.shape, sizes[:-2])
    channels, inputs = x.shape[image.feature], sizes[-2]
    groups = channels // max(inputs, 1)
    if groups == 1:
        return _filter_gradient(b, image, x, g)
    outputs = g.shape[image.feature] // groups
    parts = [
        _filter_gradient(
            b, image, _channels_from(b, x, image, k * inputs, inputs), _channels_from(b, g, image, k * outputs, outputs)
        )
        for k in range(groups)
    ]
    return b.concatenate(parts, len(sizes) - 1)


def _channels_from(b: Builder, x: Instruction, image: Image, first: int, count: int) -> Instruction:
    starts = [first if d == image.feature else 0 for d in range(image.rank)]
    limits = [first + count if d == image.feature else n for d, n in enumerate(x.shape)]
    return b.slice(x, starts, limits)


def _filter_gradient(b: Builder, image: Image, x: Instruction, g: Instruction) -> Instruction:
    """A convolution of the input by the gradient: channels play the batch, and the batch is summed over."""
    x = _without_rest(b, image, x)
    count = len(image.spatial)
    windows = [
        WindowDimension(
            size=g.shape[d],
            stride=s.dilation,
            pad_low=s.pad_low,
            pad_high=max(_end(s.output, s.stride, s.extent) - s.size - s.pad_low, 0),
            window_dilation=s.stride,
        )
        for s, d in zip(image.sliding, image.spatial, strict=True)
    ]
    dimensions = ConvolutionDimensions(
        input_batch=image.feature,
        input_feature=0,
        input_spatial=image.spatial,
        kernel_input_feature=0,
        kernel_output_feature=image.feature,
        kernel_spatial=image.spatial,
        output_batch=count,
        output_feature=count + 1,
        output_spatial=tuple(range(count)),
    )
    return b.convolution(x, g, Window(tuple(windows)), dimensions)


def _end(output: int, stride: int, extent: int) -> int:
    """How far `output` windows reach from where the first begins."""
    return (output - 1) * stride + extent


def _without_rest(b: Builder, image: Image, x: Instruction) -> Instruction:
    """The part of the input that windows reach."""
    limits = list(x.shape)
    for s, d in zip(image.sliding, image.spatial, strict=True):
        limits[d] = min(s.size, _end(s.output, s.stride, s.extent) - s.pad_low)
    return x if tuple(limits) == x.shape else b.slice(x, [0] * len(limits), limits)


@tf_op("DepthwiseConv2dNativeBackpropFilter")
def depthwise_backprop_filter(node: NodeView, b: Builder) -> Instruction:
    """For each tap of the kernel the products of the shifted input and the gradient, summed over images and places."""
    x, sizes, g = node.input(0), node.constant_ints(1), node.input(2)
    *spatial, channels, multiplier = sizes
    image = image_of(node, x.shape, spatial)
    low, high = [0] * image.rank, [0] * image.rank
    for s, d in zip(image.sliding, image.spatial, strict=True):
        low[d], high[d] = s.pad_low, max(_end(s.output, s.stride, s.extent) - s.size - s.pad_low, 0)
    padded = b.pad(x, b.constant(0, x.tensor_type.element), low, high) if any((*low, *high)) else x
    others = [d for d in range(image.rank) if d != image.feature]
    # Channel c of the input meets the channels c * multiplier ... of the gradient.
    by_channel = [(n, 1) if d != image.feature else (channels, multiplier) for d, n in enumerate(g.shape)]
    wide = b.reshape(g, [n for pair in by_channel for n in pair])
    taps = []
    for tap in itertools.product(*map(range, spatial)):
        starts, limits, strides = [0] * image.rank, list(padded.shape), [1] * image.rank
        for s, d, t in zip(image.sliding, image.spatial, tap, strict=True):
            starts[d], strides[d] = t * s.dilation, s.stride
            limits[d] = starts[d] + (s.output - 1) * s.stride + 1
        shifted = b.slice(padded, starts, limits, strides)
        # Dimension i of the input is dimension 2 * i here.
        products = b.multiply(b.broadcast(shifted, wide.shape, range(0, 2 * image.rank, 2)), wide)
        summed = b.reduce_by("add", products, [d for o in others for d in (2 * o, 2 * o + 1)])
        taps.append(b.reshape(summed, (1, channels, multiplier)))
    return b.reshape(b.concatenate(taps, 0), sizes)
