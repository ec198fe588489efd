"""Pooling of regions that are computed at run time: RoiAlign and MaxRoiPool.

A region's bins are axis-aligned, so bin by bin everything splits into a part for rows and one for
columns: weights and sample places for RoiAlign, membership for MaxRoiPool.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.frontends.onnx.rules.sampling import flattened, linear_taps
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.indexing import Gather
from onnxla.hlo.ops.reduction import identity_of
from onnxla.hlo.types import PRED, S32, ElementType, Shape, TensorType

SAMPLES_NEAR_A_PIXEL = 5
"""With adaptive sampling, samples are more than half a pixel apart: at most five lie within one pixel of another."""


@dataclass(frozen=True)
class Span:
    """The regions along one spatial dimension of `size`: where they start, and the length of one of their bins."""

    start: Instruction
    bin_length: Instruction
    bins: int
    size: int

    @property
    def regions(self) -> int:
        return self.start.shape[0]

    @property
    def element(self) -> ElementType:
        return self.start.tensor_type.element


@onnx_op("RoiAlign", since=10)
def roi_align(node: NodeView, b: Builder) -> Instruction:
    """The average (or maximum) of samples on a regular grid in each bin of each region [x1, y1, x2, y2]."""
    mode, ratio = node.word("mode", ("avg", "max"), "avg"), node.int("sampling_ratio", 0)
    half_pixel = _has_half_pixels(node)
    given, rois, images = node.input(0), node.input(1), node.input(2)
    _check(node, given, rois, columns=4)
    x = widen(b, given)
    bins = [node.int(name, 1) for name in ("output_height", "output_width")]
    spans = [_span(node, b, x, d, n, half_pixel) for d, n in enumerate(bins)]
    images = b.convert(images, S32)
    if ratio > 0:
        result = _over_samples(b, x, images, spans, mode, ratio)
    elif mode == "avg":
        result = _average_by_weights(b, x, images, spans)
    else:
        result = _maximum_in_a_loop(b, x, images, spans)
    return b.convert(result, given.tensor_type.element)


def _check(node: NodeView, x: Instruction, rois: Instruction, columns: int) -> None:
    if len(x.shape) != 4 or len(rois.shape) != 2 or rois.shape[1] != columns:
        node.shape_error(f"{node.op_type} needs images [N, C, H, W] and regions [R, {columns}]")


def _column(b: Builder, matrix: Instruction, column: int) -> Instruction:
    rows = matrix.shape[0]
    return b.reshape(b.slice(matrix, (0, column), (rows, column + 1)), (rows,))


def _has_half_pixels(node: NodeView) -> bool:
    """Since opset 16 pixels have their centre at a half, unless asked otherwise."""
    known = ("half_pixel", "output_half_pixel")
    return node.opset >= 16 and node.word("coordinate_transformation_mode", known, "half_pixel") == "half_pixel"


def _span(node: NodeView, b: Builder, x: Instruction, d: int, bins: int, half_pixel: bool) -> Span:
    """With `half_pixel` small regions stay small."""
    rois = b.convert(node.input(1), x.tensor_type.element)
    scale = node.float("spatial_scale", 1.0)

    def edge(column: int) -> Instruction:
        scaled = b.multiply(_column(b, rois, column), b.full((rois.shape[0],), scale, x.tensor_type.element))
        return b.subtract(scaled, b.full_like(scaled, 0.5)) if half_pixel else scaled

    start = edge(1 - d)
    length = b.subtract(edge(3 - d), start)
    if not half_pixel:
        length = b.maximum(length, b.full_like(length, 1))
    return Span(start, b.divide(length, b.full_like(length, bins)), bins, x.shape[2 + d])


def _places(b: Builder, span: Span, shape: Shape, sample: Instruction, samples: Instruction) -> Instruction:
    """start + (bin + (sample + 1/2) / samples) * bin_length over `shape`, which is [regions, bins, ...]."""
    half = b.add(sample, b.full(shape, 0.5, span.element))
    bins = b.iota(TensorType(span.element, shape), 1)
    within = b.add(bins, b.divide(half, samples))
    start, length = (b.broadcast(v, shape, [0]) for v in (span.start, span.bin_length))
    return b.add(start, b.multiply(within, length))


def _counts(b: Builder, place: Instruction, size: int) -> Instruction:
    """Samples up to one pixel outside of the image read its edge; those further out read 0."""
    near = b.compare(place, b.full_like(place, -1), "GE")
    return b.and_(near, b.compare(place, b.full_like(place, size), "LE"))


def _clamped(b: Builder, place: Instruction, size: int) -> Instruction:
    element = place.tensor_type.element
    return b.clamp(b.constant(0, element), place, b.constant(size - 1, element))


Taps: TypeAlias = list[tuple[Instruction, Instruction]]
"""Along one spatial dimension, the s32 pixel and the weight of each tap of a sample."""


def _taps(b: Builder, span: Span, place: Instruction, shape: Shape, dimensions: Sequence[int]) -> Taps:
    """The two pixels around each place, over `shape`, of which `place` has some dimensions."""
    counts = _counts(b, place, span.size)
    pairs = []
    for pixel, weight in linear_taps(b, _clamped(b, place, span.size)):
        whole = b.convert(_clamped(b, pixel, span.size), S32)
        weight = b.select(counts, weight, b.full_like(weight, 0))
        pairs.append((b.broadcast(whole, shape, dimensions), b.broadcast(weight, shape, dimensions)))
    return pairs


def _combined(b: Builder, x: Instruction, images: Instruction, taps: Sequence[Taps], mode: str) -> Instruction:
    """[R, C, ...]: the sum (or, for max, the greatest) of the four pixels around each sample times their weights."""
    combined: Instruction | None = None
    for (row, row_weight), (column, column_weight) in itertools.product(*taps):
        pixel = _read(b, x, images, row, column)
        others = [0, *range(2, len(pixel.shape))]
        part = b.multiply(pixel, b.broadcast(b.multiply(row_weight, column_weight), pixel.shape, others))
        if combined is None:
            combined = part
        else:
            combined = b.add(combined, part) if mode == "avg" else b.maximum(combined, part)
    assert combined is not None
    return combined


def _maximum_in_a_loop(b: Builder, x: Instruction, images: Instruction, spans: Sequence[Span]) -> Instruction:
    """As many samples as a bin has pixels, ceil(bin_length) along each dimension: one more for all bins in each round.

    There are as many rounds as the largest region has samples in a bin; bins of smaller ones leave out the rest.
    A bin without samples is 0.
    """
    counts = [b.maximum(b.unary("ceil", s.bin_length), b.full_like(s.bin_length, 0)) for s in spans]
    counts = [b.convert(c, S32) for c in counts]
    most = [b.reduce_by("maximum", c, [0]) for c in counts]
    shape = (spans[0].regions, x.shape[1], spans[0].bins, spans[1].bins)
    lowest = b.full(shape, -np.inf, x.tensor_type.element)
    total, columns = b.multiply(*most), b.maximum(most[1], b.constant(1, S32))
    ends = [v for s in spans for v in (s.start, s.bin_length)]
    init = b.tuple(b.constant(0, S32), lowest, total, columns, x, images, *counts, *ends)

    body = Builder("next_sample", b.source)
    state = body.parameter(init.type)
    t, best, total, columns, image, numbers, *rest = (
        body.get_tuple_element(state, k) for k in range(len(init.operands))
    )
    inner = [Span(rest[2 + 2 * d], rest[3 + 2 * d], span.bins, span.size) for d, span in enumerate(spans)]
    position = [body.divide(t, columns), body.remainder(t, columns)]
    part = _combined(body, image, numbers, _taps_of_sample(body, inner, rest[:2], position), "max")
    active = [body.compare(body.broadcast_scalar(i, c.shape), c, "LT") for i, c in zip(position, rest, strict=False)]
    here = body.broadcast(body.and_(*active), shape, [0])
    best = body.select(here, body.maximum(best, part), best)
    root = body.tuple(body.add(t, body.constant(1, S32)), best, total, columns, image, numbers, *rest)

    condition = Builder("more_samples", b.source)
    state = condition.parameter(init.type)
    more = condition.compare(condition.get_tuple_element(state, 0), condition.get_tuple_element(state, 2), "LT")
    best = b.get_tuple_element(b.while_(init, condition.build(more), body.build(root)), 1)
    empty = b.compare(b.multiply(*counts), b.full_like(counts[0], 0), "EQ")
    return b.select(b.broadcast(empty, shape, [0]), b.full_like(best, 0), best)


def _taps_of_sample(
    b: Builder, spans: Sequence[Span], counts: Sequence[Instruction], position: Sequence[Instruction]
) -> list[Taps]:
    """The taps [R, bins, bins] of sample `position` of every bin; a region has `counts[d]` samples along d."""
    shape = (spans[0].regions, spans[0].bins, spans[1].bins)
    found = []
    for d, span in enumerate(spans):
        own = (span.regions, span.bins)
        sample = b.broadcast_scalar(b.convert(position[d], span.element), own)
        count = b.broadcast(b.convert(b.maximum(counts[d], b.full_like(counts[d], 1)), span.element), own, [0])
        found.append(_taps(b, span, _places(b, span, own, sample, count), shape, [0, 1 + d]))
    return found


def _over_samples(
    b: Builder, x: Instruction, images: Instruction, spans: list[Span], mode: str, ratio: int
) -> Instruction:
    """ratio x ratio samples in every bin, each read from four pixels: [R, C, bins, bins]."""
    regions, channels = spans[0].regions, x.shape[1]
    shape = (regions, spans[0].bins, spans[1].bins, ratio, ratio)
    taps: list[Taps] = []
    for d, span in enumerate(spans):
        own = (regions, span.bins, ratio)
        sample = b.iota(TensorType(span.element, own), 2)
        place = _places(b, span, own, sample, b.full(own, ratio, span.element))
        taps.append(_taps(b, span, place, shape, [0, 1 + d, 3 + d]))
    combined = _combined(b, x, images, taps, mode)
    assert combined.shape[:2] == (regions, channels)
    if mode == "max":
        return b.reduce_by("maximum", combined, [4, 5])
    total = b.reduce_by("add", combined, [4, 5])
    return b.divide(total, b.full_like(total, ratio * ratio))


def _read(b: Builder, x: Instruction, images: Instruction, row: Instruction, column: Instruction) -> Instruction:
    """[R, C, ...]: pixel (row, column) of image `images[r]`, for s32 rows and columns [R, ...] within the image."""
    flat = b.add(b.multiply(row, b.full_like(row, x.shape[3])), column)
    image = b.broadcast(images, row.shape, [0])
    rank = len(row.shape)
    pair = b.concatenate([b.reshape(v, (*row.shape, 1)) for v in (image, flat)], rank)
    op = Gather(
        offset_dims=(1,),
        collapsed_slice_dims=(0, 2),
        start_index_map=(0, 2),
        operand_batching_dims=(),
        start_indices_batching_dims=(),
        index_vector_dim=rank,
        slice_sizes=(1, x.shape[1], 1),
    )
    return b.gather(flattened(b, x), pair, op)


def _average_by_weights(b: Builder, x: Instruction, images: Instruction, spans: list[Span]) -> Instruction:
    """As many samples as a bin has pixels: what each row and each column of the image weighs, and two `dot`s."""
    rows, columns = (_weights(b, span) for span in spans)
    if x.shape[0] == 1:
        across = b.dot(columns, b.reshape(x, x.shape[1:]), [2], [2])
    else:
        across = b.dot(columns, b.take(x, images, 0), [2], [3], [0], [0])
    return b.transpose(b.dot(rows, across, [2], [3], [0], [0]), (0, 3, 1, 2))


def _weights(b: Builder, span: Span) -> Instruction:
    """[R, bins, size]: what each pixel contributes to the average of the samples of each bin."""
    shape = (span.regions, span.bins, span.size)
    pixel = b.iota(TensorType(span.element, shape), 2)
    samples = b.broadcast(b.unary("ceil", span.bin_length), shape, [0])
    one = b.full(shape, 1, span.element)
    safe_samples = b.maximum(samples, one)
    spacing = b.divide(b.broadcast(span.bin_length, shape, [0]), safe_samples)
    first_place = _places(b, span, shape, b.full(shape, 0, span.element), safe_samples)
    # The first sample at pixel - 1 or after it; one sample a bin may be anywhere.
    nearest = b.unary("ceil", b.divide(b.subtract(b.subtract(pixel, one), first_place), spacing))
    zero = b.full(shape, 0, span.element)
    first = b.select(b.compare(samples, one, "LE"), zero, b.maximum(nearest, zero))
    total = zero
    for step in range(SAMPLES_NEAR_A_PIXEL):
        sample = b.add(first, b.full(shape, step, span.element))
        place = b.add(first_place, b.multiply(sample, spacing))
        exists = b.and_(b.compare(sample, samples, "LT"), _counts(b, place, span.size))
        distance = b.unary("abs", b.subtract(_clamped(b, place, span.size), pixel))
        total = b.add(total, b.select(exists, b.maximum(b.subtract(one, distance), zero), zero))
    return b.divide(total, safe_samples)


@onnx_op("MaxRoiPool")
def max_roi_pool(node: NodeView, b: Builder) -> Instruction:
    """The maximum of the pixels in each bin of each region [image, x1, y1, x2, y2]; 0 for an empty bin."""
    x, rois = node.input(0), node.input(1)
    _check(node, x, rois, columns=5)
    bins, scale = node.ints("pooled_shape"), node.float("spatial_scale", 1.0)
    images = b.convert(_column(b, rois, 0), S32)
    result = b.take(x, images, 0)
    lowest = identity_of("maximum", x.tensor_type.element).item()
    any_pixel: Instruction | None = None
    regions, channels = result.shape[:2]
    output = (regions, channels, *bins)
    for d in range(2):
        inside = _membership(b, rois, scale, d, bins[d], x.shape[2 + d])
        # Dimension 2 + d of the image becomes a pair: the bin, and the pixel to reduce over.
        shape = (*result.shape[: 2 + d], bins[d], *result.shape[2 + d :])
        spread = b.broadcast(result, shape, [i for i in range(len(shape)) if i != 2 + d])
        masked = b.select(b.broadcast(inside, shape, [0, 2 + d, 3 + d]), spread, b.full_like(spread, lowest))
        result = b.reduce_by("maximum", masked, [3 + d])
        nonempty = b.broadcast(b.reduce_by("or", inside, [2]), output, [0, 2 + d])
        any_pixel = nonempty if any_pixel is None else b.and_(any_pixel, nonempty)
    assert any_pixel is not None and any_pixel.tensor_type.element is PRED
    return b.select(any_pixel, result, b.full_like(result, 0))


def _membership(b: Builder, rois: Instruction, scale: float, d: int, bins: int, size: int) -> Instruction:
    """pred[R, bins, size]: which pixels of a dimension each bin covers; neighbouring bins may share one."""

    def edge(column: int) -> Instruction:
        coordinate = _column(b, rois, column)
        return b.unary("round-nearest-afz", b.multiply(coordinate, b.full_like(coordinate, scale)))

    shape, element = (rois.shape[0], bins, size), rois.tensor_type.element
    start = edge(2 - d)
    one = b.full_like(start, 1)
    length = b.maximum(b.add(b.subtract(edge(4 - d), start), one), one)
    step = b.broadcast(b.divide(length, b.full_like(length, bins)), shape, [0])
    first, pixel = b.broadcast(start, shape, [0]), b.iota(TensorType(element, shape), 2)
    place = b.iota(TensorType(element, shape), 1)
    low = b.add(b.unary("floor", b.multiply(place, step)), first)
    high = b.add(b.unary("ceil", b.multiply(b.add(place, b.full(shape, 1, element)), step)), first)
    return b.and_(b.compare(pixel, low, "GE"), b.compare(pixel, high, "LT"))
