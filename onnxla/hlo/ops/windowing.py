"""What a sliding window sees, as numpy views: shared by convolution and the window reductions."""

import numpy as np

from onnxla.hlo.types import Array, Shape
from onnxla.hlo.window import Window


def pad_for_window(base: Array, window: Window, first: int, fill: object) -> Array:
    """`base` after dilation and padding with `fill`; the window's dimensions begin at dimension `first` of it."""
    canvas_shape, place, crop = list(base.shape), [slice(None)] * base.ndim, [slice(None)] * base.ndim
    for axis, d in enumerate(window.dimensions, first):
        size = base.shape[axis]
        spread = (size - 1) * d.base_dilation + 1 if size else 0
        before, after = max(d.pad_low, 0), max(d.pad_high, 0)
        canvas_shape[axis] = before + spread + after
        place[axis] = slice(before, before + spread, d.base_dilation)
        crop[axis] = slice(max(-d.pad_low, 0), max(canvas_shape[axis] - max(-d.pad_high, 0), 0))
    if canvas_shape == list(base.shape):
        return base[tuple(crop)]
    canvas = np.full(canvas_shape, fill, base.dtype)
    canvas[tuple(place)] = base
    return canvas[tuple(crop)]


def window_view(padded: Array, window: Window, first: int, position: Shape, places: Shape) -> Array:
    """For every place of the window, the element at `position` of it; `padded` comes from `pad_for_window`."""
    seen = [slice(None)] * padded.ndim
    for axis, (d, index, count) in enumerate(zip(window.dimensions, position, places, strict=True), first):
        start = (d.size - 1 - index if d.reversal else index) * d.window_dilation
        seen[axis] = slice(start, start + (count - 1) * d.stride + 1 if count else start, d.stride)
    return padded[tuple(seen)]
