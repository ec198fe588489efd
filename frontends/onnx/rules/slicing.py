"""Slice and Pad, and the picking of known positions along an axis that Pad, Gather and Resize share."""

from collections.abc import Sequence

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import normal_axes
from onnxla.frontends.onnx.rules.shape import slice_axis
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32

MODES = ("constant", "reflect", "edge", "wrap")
"""What Pad puts around a tensor: a value, or copies."""
MAX_PIECES = 8
"""Positions that fall into more runs than this are gathered."""


@onnx_op("Slice", until=9)
def slice_by_attributes(node: NodeView, b: Builder) -> Instruction:
    starts, ends = node.ints("starts"), node.ints("ends")
    return _slice(node, b, starts, ends, node.ints("axes", None), None)


@onnx_op("Slice", since=10)
def slice_(node: NodeView, b: Builder) -> Instruction:
    axes, steps = node.optional_constant_ints(3), node.optional_constant_ints(4)
    return _slice(node, b, node.constant_ints(1), node.constant_ints(2), axes, steps)


def _slice(
    node: NodeView,
    b: Builder,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> Instruction:
    x = node.input(0)
    steps = (1,) * len(starts) if steps is None else steps
    axes = normal_axes(node, range(len(starts)) if axes is None else axes, len(x.shape))
    if not len(starts) == len(ends) == len(axes) == len(steps):
        node.shape_error("starts, ends, axes and steps differ in length")
    if 0 in steps:
        node.shape_error("a step of 0 never ends")
    low, high, stride = [0] * len(x.shape), list(x.shape), [1] * len(x.shape)
    reversed_axes = []
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        picked = _picked(x.shape[axis], start, end, step)
        first, last = sorted((picked[0], picked[-1])) if picked else (0, -1)
        low[axis], high[axis] = first, last + 1
        stride[axis] = abs(step) if len(picked) > 1 else 1
        if step < 0 and len(picked) > 1:
            reversed_axes.append(axis)
    if (low, high, stride) != ([0] * len(x.shape), list(x.shape), [1] * len(x.shape)):
        x = b.slice(x, low, high, stride)
    return b.reverse(x, reversed_axes) if reversed_axes else x


def _picked(size: int, start: int, end: int, step: int) -> range:
    """The places of a slice: negative ones count from the end, then they are clamped.

    With a negative step a start before the first element is the first, where Python picks nothing (ONNX, Slice-13).
    """
    if size == 0:
        return range(0)
    start, end = (place + size if place < 0 else place for place in (start, end))
    least, most = (0, size) if step > 0 else (-1, size - 1)
    return range(min(max(start, 0), most), min(max(end, least), most), step)


@onnx_op("Pad", until=10)
def pad_by_attributes(node: NodeView, b: Builder) -> Instruction:
    """Opset 1 calls the attribute `paddings`."""
    pads, mode = node.ints("paddings" if node.opset == 1 else "pads"), node.word("mode", MODES, "constant")
    x = node.input(0)
    value = b.constant(node.float("value", 0.0), x.tensor_type.element)
    return _pad(node, b, pads, range(len(x.shape)), value, mode)


@onnx_op("Pad", since=11)
def pad(node: NodeView, b: Builder) -> Instruction:
    mode = node.word("mode", MODES, "constant")
    x, value, axes = node.input(0), node.optional_input(2), node.optional_constant_ints(3)
    value = b.constant(0, x.tensor_type.element) if value is None else b.reshape(value, ())
    return _pad(node, b, node.constant_ints(1), range(len(x.shape)) if axes is None else axes, value, mode)


def _pad(
    node: NodeView, b: Builder, pads: Sequence[int], axes: Sequence[int], value: Instruction, mode: str
) -> Instruction:
    """`pads` lists all beginnings, then all ends. Negative ones crop, in every mode."""
    x = node.input(0)
    axes = normal_axes(node, axes, len(x.shape))
    if len(pads) != 2 * len(axes):
        node.shape_error(f"{len(pads)} pads do not fit {len(axes)} axes")
    low, high = [0] * len(x.shape), [0] * len(x.shape)
    for i, axis in enumerate(axes):
        low[axis], high[axis] = pads[i], pads[len(axes) + i]
    if any(size + p + q < 0 for size, p, q in zip(x.shape, low, high, strict=True)):
        node.shape_error(f"pads {list(pads)} crop more than there is")
    if mode == "constant":
        return b.pad(x, value, low, high) if any(low) or any(high) else x
    for axis in range(len(x.shape)):
        x = _pad_axis_by_copies(node, b, x, axis, low[axis], high[axis], mode)
    return x


def _pad_axis_by_copies(
    node: NodeView, b: Builder, x: Instruction, axis: int, low: int, high: int, mode: str
) -> Instruction:
    x = slice_axis(b, x, axis, max(-low, 0), x.shape[axis] - max(-high, 0))
    low, high = max(low, 0), max(high, 0)
    size = x.shape[axis]
    if low + high == 0:
        return x
    if size == 0:
        node.shape_error(f"{mode} padding of dimension {axis} has no element to copy")
    node.require_table(low + size + high)
    position = np.arange(-low, size + high)
    match mode:
        case "edge":
            position = np.clip(position, 0, size - 1)
        case "wrap":
            position %= size
        case _ if size == 1:
            position[:] = 0
        case _:
            period = 2 * (size - 1)
            position %= period
            position = np.minimum(position, period - position)
    return pick_positions(b, x, axis, position)


def pick_positions(b: Builder, x: Instruction, axis: int, positions: np.ndarray) -> Instruction:
    """`x` at known `positions` (a vector, within range) along `axis`.

    Few runs become slices, reversed slices and repeats; a uniform repeat becomes one broadcast.
    Everything else is a gather.
    """
    repeat = _uniform_repeat(positions, x.shape[axis])
    if repeat is not None:
        return repeat_axis(b, x, axis, repeat)
    runs = _runs(positions)
    if runs:
        return b.concatenate([_run(b, x, axis, first, step, count) for first, step, count in runs], axis)
    return b.take(x, b.constant(positions, S32), axis)


def repeat_axis(b: Builder, x: Instruction, axis: int, repeat: int) -> Instruction:
    """Every element of `axis` `repeat` times in a row."""
    if repeat == 1:
        return x
    spread = (*x.shape[: axis + 1], repeat, *x.shape[axis + 1 :])
    kept = [d for d in range(len(spread)) if d != axis + 1]
    merged = (*x.shape[:axis], x.shape[axis] * repeat, *x.shape[axis + 1 :])
    return b.reshape(b.broadcast(x, spread, kept), merged)


def _uniform_repeat(positions: np.ndarray, size: int) -> int | None:
    repeat, rest = divmod(len(positions), size) if size else (0, 1)
    uniform = not rest and np.array_equal(positions, np.repeat(np.arange(size), repeat))
    return repeat if uniform else None


def _runs(positions: np.ndarray) -> list[tuple[int, int, int]] | None:
    """The positions as arithmetic runs (first, step, count); None where there are more than MAX_PIECES."""
    runs: list[tuple[int, int, int]] = []
    i, n = 0, len(positions)
    while i < n:
        if len(runs) == MAX_PIECES:
            return None
        step = int(positions[i + 1] - positions[i]) if i + 1 < n else 1
        count = 1
        while i + count < n and positions[i + count] - positions[i + count - 1] == step:
            count += 1
        # Two positions far apart are two runs, so that the second may begin a longer one.
        if count == 2 and i + 2 < n and abs(step) != 1:
            step, count = 1, 1
        runs.append((int(positions[i]), step, count))
        i += count
    return runs


def _run(b: Builder, x: Instruction, axis: int, first: int, step: int, count: int) -> Instruction:
    last = first + step * (count - 1)
    if step == 0:
        one = slice_axis(b, x, axis, first, first + 1)
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        return b.numpy_broadcast(one, shape)
    piece = slice_axis(b, x, axis, min(first, last), max(first, last) + 1, abs(step))
    return b.reverse(piece, [axis]) if step < 0 else piece
