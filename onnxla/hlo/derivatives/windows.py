"""Derivatives of what slides windows: convolutions and pooling, each by windows seen from the other side."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from onnxla.hlo.builder import Builder
from onnxla.hlo.derivatives.elementwise import require_real
from onnxla.hlo.derivatives.rule import NoDerivativeError, Parts, derivative
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.contraction import Convolution
from onnxla.hlo.ops.reduction import ReduceWindow, simple_combiner
from onnxla.hlo.types import ElementType, TensorType
from onnxla.hlo.window import ConvolutionDimensions, Window, WindowDimension

_MOST_TAPS = 1024


def _seen_from_the_base(w: WindowDimension, base: int, places: int) -> WindowDimension:
    """Slides over the results and stops once at each element of the base: at the windows that hold it.

    Results stand as far apart as windows began; neighbours of the base as far as the base was spread.
    """
    low = w.span - 1 - w.pad_low
    reach = (base - 1) * w.base_dilation + w.span
    spread = (places - 1) * w.stride + 1
    return WindowDimension(
        size=w.size,
        stride=w.base_dilation,
        pad_low=low,
        pad_high=reach - spread - low,
        base_dilation=w.stride,
        window_dilation=w.window_dilation,
    )


def _seen_from_the_kernel(w: WindowDimension, base: int, places: int) -> WindowDimension:
    """Slides over the base with the results as the window, and stops once at each tap of the kernel."""
    reach = (w.size - 1) * w.window_dilation + (places - 1) * w.stride + 1
    spread = (base - 1) * w.base_dilation + 1
    return WindowDimension(
        size=places,
        stride=w.window_dilation,
        pad_low=w.pad_low,
        pad_high=reach - spread - w.pad_low,
        base_dilation=w.base_dilation,
        window_dilation=w.stride,
    )


@derivative("convolution")
def convolution(b: Builder, y: Instruction, g: Instruction) -> Parts:
    assert isinstance(y.op, Convolution)
    require_real(y)
    x, kernel = y.operands
    if y.op.batch_group_count > 1 or any(w.reversal for w in y.op.window.dimensions):
        raise NoDerivativeError("the derivative of a convolution in batch groups or of a reversed kernel is not known")
    if 0 in (*x.shape, *kernel.shape, *y.shape):
        return [b.full_like(x, 0), b.full_like(kernel, 0)]
    g = b.convert(g, y.op.element)
    by_input, by_kernel = _by_input(b, y, y.op, g), _by_kernel(b, y, y.op, g)
    return [b.convert(by_input, x.tensor_type.element), b.convert(by_kernel, kernel.tensor_type.element)]


def _pairs(y: Instruction, op: Convolution) -> list[tuple[WindowDimension, int, int]]:
    """For each spatial dimension the window, the input's size, and the number of places."""
    dims, x = op.dimensions, y.operands[0]
    sizes = [(x.shape[i], y.shape[o]) for i, o in zip(dims.input_spatial, dims.output_spatial, strict=True)]
    return [(w, *s) for w, s in zip(op.window.dimensions, sizes, strict=True)]


def _by_input(b: Builder, y: Instruction, op: Convolution, g: Instruction) -> Instruction:
    """g convolved with the kernel turned around, its input and output features swapped within their groups."""
    dims, kernel, groups = op.dimensions, y.operands[1], op.feature_group_count
    turned = b.reverse(kernel, dims.kernel_spatial)
    i, o = dims.kernel_input_feature, dims.kernel_output_feature
    if groups > 1:  # [.., in, .., group * out, ..] to [.., group * in, .., out, ..]
        outputs = kernel.shape[o] // groups
        split = b.reshape(turned, (*kernel.shape[:o], groups, outputs, *kernel.shape[o + 1 :]))
        at = i if i < o else i + 1
        order = [d for d in range(len(split.shape)) if d != o]
        order.insert(order.index(at), o)
        sizes = list(kernel.shape)
        sizes[i], sizes[o] = groups * kernel.shape[i], outputs
        turned = b.reshape(b.transpose(split, order), sizes)
    swapped = ConvolutionDimensions(
        input_batch=dims.output_batch,
        input_feature=dims.output_feature,
        input_spatial=dims.output_spatial,
        kernel_input_feature=o,
        kernel_output_feature=i,
        kernel_spatial=dims.kernel_spatial,
        output_batch=dims.input_batch,
        output_feature=dims.input_feature,
        output_spatial=dims.input_spatial,
    )
    window = Window(tuple(_seen_from_the_base(*pair) for pair in _pairs(y, op)))
    return b.convolution(g, turned, window, swapped, groups, element=op.element)


def _by_kernel(b: Builder, y: Instruction, op: Convolution, g: Instruction) -> Instruction:
    """The input convolved with g: features play the batch, and the batch is summed over. Groups go one by one."""
    dims, (x, kernel), groups = op.dimensions, y.operands, op.feature_group_count
    if groups > 1 and kernel.shape[dims.kernel_input_feature] == 1:
        return _by_kernel_of_depth(b, y, op, g)
    window = Window(tuple(_seen_from_the_kernel(*pair) for pair in _pairs(y, op)))
    swapped = ConvolutionDimensions(
        input_batch=dims.input_feature,
        input_feature=dims.input_batch,
        input_spatial=dims.input_spatial,
        kernel_input_feature=dims.output_batch,
        kernel_output_feature=dims.output_feature,
        kernel_spatial=dims.output_spatial,
        output_batch=dims.kernel_input_feature,
        output_feature=dims.kernel_output_feature,
        output_spatial=dims.kernel_spatial,
    )
    parts = []
    for k in range(groups):
        inputs = _part_of(b, x, dims.input_feature, k, groups)
        parts.append(b.convolution(inputs, _part_of(b, g, dims.output_feature, k, groups), window, swapped))
    return b.concatenate(parts, dims.kernel_output_feature)


def _part_of(b: Builder, x: Instruction, dimension: int, number: int, count: int) -> Instruction:
    """One of `count` equal parts along a dimension."""
    if count == 1:
        return x
    each = x.shape[dimension] // count
    starts, limits = [0] * len(x.shape), list(x.shape)
    starts[dimension], limits[dimension] = number * each, (number + 1) * each
    return b.slice(x, starts, limits)


def _by_kernel_of_depth(b: Builder, y: Instruction, op: Convolution, g: Instruction) -> Instruction:
    """Of a depthwise one: for each tap the products of the shifted input and g, summed over images and places."""
    dims, (x, kernel) = op.dimensions, y.operands
    channels = x.shape[dims.input_feature]
    each = kernel.shape[dims.kernel_output_feature] // channels
    rank = len(x.shape)
    # batch, channel, spatial: the order that both are brought to
    images = b.transpose(x, (dims.input_batch, dims.input_feature, *dims.input_spatial))
    results = b.transpose(g, (dims.output_batch, dims.output_feature, *dims.output_spatial))
    places = results.shape[2:]
    results = b.reshape(results, (results.shape[0], channels, each, *places))
    padded = b.convert(_padded(b, images, op.window), g.tensor_type.element)
    taps = []
    for tap in itertools.product(*(range(w.size) for w in op.window.dimensions)):
        shifted = _tap(b, padded, op.window, tap, places)
        spread = b.broadcast(shifted, results.shape, [0, 1, *range(3, rank + 1)])
        taps.append(b.reduce_by("add", b.multiply(spread, results), [0, *range(3, rank + 1)]))
    joined = b.concatenate([b.reshape(t, (1, channels * each)) for t in taps], 0)
    sizes = [w.size for w in op.window.dimensions]
    found = b.reshape(joined, (*sizes, 1, channels * each))
    order = [*dims.kernel_spatial, dims.kernel_input_feature, dims.kernel_output_feature]
    return b.transpose(found, [order.index(d) for d in range(rank)])


def _padded(b: Builder, x: Instruction, window: Window, value: Instruction | None = None) -> Instruction:
    """The base of a window over the last dimensions, spread and padded as the window says."""
    lead = [0] * (len(x.shape) - len(window.dimensions))
    low, high = ([getattr(w, f"pad_{side}") for w in window.dimensions] for side in ("low", "high"))
    between = [w.base_dilation - 1 for w in window.dimensions]
    if not any((*low, *high, *between)):
        return x
    zero = b.constant(0, x.tensor_type.element) if value is None else value
    return b.pad(x, zero, [*lead, *low], [*lead, *high], [*lead, *between])


def _tap(b: Builder, padded: Instruction, window: Window, tap: Sequence[int], places: Sequence[int]) -> Instruction:
    """What one tap of the window sees at each place."""
    lead = len(padded.shape) - len(window.dimensions)
    starts = [t * w.window_dilation for t, w in zip(tap, window.dimensions, strict=True)]
    limits = [s + (m - 1) * w.stride + 1 for s, m, w in zip(starts, places, window.dimensions, strict=True)]
    strides = [w.stride for w in window.dimensions]
    return b.slice(padded, [0] * lead + starts, [*padded.shape[:lead], *limits], [1] * lead + strides)


@derivative("reduce-window")
def reduce_window(b: Builder, y: Instruction, g: Instruction) -> Parts:
    """A sum's goes to all that the window held; a largest one's to where it stood, the first of several."""
    assert isinstance(y.op, ReduceWindow)
    combiner = simple_combiner(y.op.to_apply)
    window, (x, *_) = y.op.window, y.operands
    if any(w.reversal for w in window.dimensions) or combiner not in ("add", "maximum", "minimum"):
        raise NoDerivativeError(f"the derivative of windows reduced by {combiner or y.op.to_apply.name} is not known")
    if 0 in (*x.shape, *y.shape):
        return [b.full_like(x, 0), None]
    element = g.tensor_type.element
    if combiner == "add":
        seen = [_seen_from_the_base(*p) for p in zip(window.dimensions, x.shape, y.shape, strict=True)]
        zero = b.constant(0, element)
        return [b.reduce_window([g], [zero], Window(tuple(seen)), b.combiner("add", element)), None]
    if all(w.base_dilation == w.window_dilation == 1 for w in window.dimensions):
        keeps = _keeps(element, "GE" if combiner == "maximum" else "LE")
        zero = b.constant(0, element)
        return [b.select_and_scatter(x, g, zero, window, keeps, b.combiner("add", element)), None]
    return [_to_the_first(b, y, window, g), None]


def _keeps(element: ElementType, direction: str) -> Computation:
    """Whether the value chosen so far stays chosen."""
    b = Builder(f"keeps_{direction.lower()}_{element}")
    chosen, other = b.parameter(TensorType(element)), b.parameter(TensorType(element))
    return b.build(b.compare(chosen, other, direction))


def _to_the_first(b: Builder, y: Instruction, window: Window, g: Instruction) -> Instruction:
    """Tap by tap: where a tap holds the window's value and none before did, g goes back to what it saw."""
    x, init = y.operands
    taps = math.prod(w.size for w in window.dimensions)
    if taps > _MOST_TAPS:
        raise NoDerivativeError(f"the derivative of windows of {taps} elements with holes is not known")
    padded = _padded(b, x, window, init)
    total = b.full(padded.shape, 0, g.tensor_type.element)
    taken = b.false(y.shape)
    zero = b.constant(0, g.tensor_type.element)
    for tap in itertools.product(*(range(w.size) for w in window.dimensions)):
        holds = b.compare(_tap(b, padded, window, tap, y.shape), y, "EQ")
        first = b.and_(holds, b.not_(taken))
        taken = b.or_(taken, holds)
        low = [t * w.window_dilation for t, w in zip(tap, window.dimensions, strict=True)]
        spread = [w.stride - 1 for w in window.dimensions]
        ends = [n + (m - 1) * (s + 1) + 1 for n, m, s in zip(low, y.shape, spread, strict=True)]
        high = [n - end for n, end in zip(padded.shape, ends, strict=True)]
        total = b.add(total, b.pad(b.select(first, g, b.full_like(g, 0)), zero, low, high, spread))
    back = [replace(w, pad_low=-w.pad_low, pad_high=-w.pad_high, base_dilation=1) for w in window.dimensions]
    cropped = _padded(b, total, Window(tuple(back)))
    return b.slice(cropped, [0] * len(x.shape), cropped.shape, [w.base_dilation for w in window.dimensions])
