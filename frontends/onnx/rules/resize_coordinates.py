"""Where each output position of a Resize reads its input: coordinates, taps and weights, as numpy arrays.

Everything is computed in f32 in onnxruntime's order of operations, since a coordinate that falls on
the other side of a rounding boundary picks another element.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onnxla.hlo.types import Array

F = np.float32


@dataclass(frozen=True)
class Axis:
    """One resized axis."""

    size: int
    output: int
    scale: float
    roi_start: float = 0.0
    roi_end: float = 1.0
    span: float | None = None
    """The output size that `scale` asks for, before it is rounded down to `output`; None: `output` itself."""


@dataclass(frozen=True)
class Taps:
    """Output position i is the sum over t of `weights[i, t]` times the input at `positions[i, t]`."""

    positions: Array
    weights: Array


def _half_pixel(x: Array, axis: Axis) -> Array:
    return (x + F(0.5)) / F(axis.scale) - F(0.5)


def _pytorch_half_pixel(x: Array, axis: Axis) -> Array:
    return _half_pixel(x, axis) if axis.output > 1 else np.zeros_like(x)


def _half_pixel_symmetric(x: Array, axis: Axis) -> Array:
    """Half pixel around the true centre, where the output size was rounded."""
    adjustment = F(axis.output) / (F(axis.scale) * F(axis.size))
    offset = F(axis.size) / F(2) * (F(1) - adjustment)
    return (offset + (x + F(0.5)) / F(axis.scale)) - F(0.5)


def _align_corners(x: Array, axis: Axis) -> Array:
    """The last position of the size asked for falls on the last of the input; after rounding that may lie outside."""
    span = F(axis.output if axis.span is None else axis.span)
    return x * F(axis.size - 1) / (span - F(1)) if span != 1 else np.zeros_like(x)


def _asymmetric(x: Array, axis: Axis) -> Array:
    return x / F(axis.scale)


def _tf_half_pixel(x: Array, axis: Axis) -> Array:
    return (x + F(0.5)) / F(axis.scale)


def _tf_crop_and_resize(x: Array, axis: Axis) -> Array:
    start, end, last = F(axis.roi_start), F(axis.roi_end), F(axis.size - 1)
    if axis.output > 1:
        return start * last + x * (end - start) * last / F(axis.output - 1)
    return np.full_like(x, F(0.5) * (start + end) * last)


COORDINATES: dict[str, Callable[[Array, Axis], Array]] = {
    "half_pixel": _half_pixel,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "tf_half_pixel_for_nn": _tf_half_pixel,
    "tf_crop_and_resize": _tf_crop_and_resize,
}


def coordinates(mode: str, axis: Axis) -> Array:
    """The place in the input, as f32, of every output position."""
    return COORDINATES[mode](np.arange(axis.output, dtype=F), axis)


def _round_prefer_floor(x: Array, downsampling: bool) -> Array:
    return np.ceil(x - F(0.5))


def _round_prefer_ceil(x: Array, downsampling: bool) -> Array:
    return np.floor(x.astype(np.float64) + 0.5)


def _simple(x: Array, downsampling: bool) -> Array:
    """What opsets 1 to 10 do: up when shrinking, else towards zero."""
    return np.ceil(x) if downsampling else np.trunc(x)


ROUNDINGS: dict[str, Callable[[Array, bool], Array]] = {
    "round_prefer_floor": _round_prefer_floor,
    "round_prefer_ceil": _round_prefer_ceil,
    "floor": lambda x, downsampling: np.floor(x),
    "ceil": lambda x, downsampling: np.ceil(x),
    "simple": _simple,
}


def nearest_positions(x: Array, axis: Axis, rounding: str) -> Array:
    """The input position nearest to each coordinate."""
    return np.clip(ROUNDINGS[rounding](x, axis.scale < 1).astype(np.int64), 0, axis.size - 1)


def linear_taps(x: Array, axis: Axis, antialias: bool, exclude_outside: bool) -> Taps:
    """Two neighbours, or a triangle stretched over all that one output position covers."""
    if antialias and axis.scale < 1:
        return _filter_taps(x, axis, 1, lambda distance: np.maximum(F(1) - np.abs(distance), F(0)), exclude_outside)
    x = np.clip(x, F(0), F(axis.size - 1))
    below = np.floor(x)
    positions = np.stack([below, np.minimum(below + 1, axis.size - 1)], axis=1).astype(np.int64)
    fraction = x - below
    return Taps(positions, np.stack([F(1) - fraction, fraction], axis=1))


def cubic_taps(x: Array, axis: Axis, a: float, antialias: bool, exclude_outside: bool) -> Taps:
    """Four neighbours under the cubic convolution kernel with coefficient `a`, or its stretched form."""

    def kernel(distance: Array) -> Array:
        d = np.abs(distance)
        near = ((F(a) + 2) * d - (F(a) + 3)) * d * d + 1
        far = ((F(a) * d - 5 * F(a)) * d + 8 * F(a)) * d - 4 * F(a)
        return np.where(d <= 1, near, np.where(d < 2, far, F(0)))

    stretched = Axis(axis.size, axis.output, axis.scale if antialias else max(axis.scale, 1.0))
    return _filter_taps(x, stretched, 2, kernel, exclude_outside)


def _filter_taps(x: Array, axis: Axis, support: int, kernel: Callable[[Array], Array], exclude_outside: bool) -> Taps:
    """Weights of a kernel of half width `support`, stretched by 1 / scale where that shrinks; they sum to 1.

    Positions outside repeat the edge, or with `exclude_outside` weigh nothing.
    """
    shrink = min(axis.scale, 1.0)
    first = int(np.floor(-support / shrink)) + 1
    offsets = np.arange(first, 2 - first)
    base = np.floor(x)
    positions = base[:, None].astype(np.int64) + offsets
    distance = (offsets.astype(F) - (x - base)[:, None]) * F(shrink)
    weights = kernel(distance.astype(F)).astype(F)
    if exclude_outside:
        weights = np.where((positions >= 0) & (positions < axis.size), weights, F(0))
    weights = weights / weights.sum(axis=1, keepdims=True, dtype=F)
    used = (weights != 0).any(axis=0)
    return Taps(np.clip(positions, 0, axis.size - 1)[:, used], weights[:, used])
