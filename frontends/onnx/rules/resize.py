"""Resize and Upsample, one axis at a time: nearest picks positions, linear and cubic are weighted sums of picks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import normal_axes
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.frontends.onnx.rules.resize_coordinates import (
    COORDINATES,
    ROUNDINGS,
    Axis,
    Taps,
    coordinates,
    cubic_taps,
    linear_taps,
    nearest_positions,
)
from onnxla.frontends.onnx.rules.slicing import pick_positions
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, PRED, S32, Array, ElementType

POLICIES = ("stretch", "not_larger", "not_smaller")
MAX_UNROLLED_TAPS = 4
"""More taps than this become one gather and a reduction."""


@dataclass(frozen=True)
class Method:
    """How values between positions are made."""

    mode: str
    coordinate_mode: str = "asymmetric"
    rounding: str = "simple"
    cubic_a: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    extrapolation: float | None = None
    """The value outside of the input; None where the edge repeats."""


@onnx_op("Upsample", until=6)
def upsample_image(node: NodeView, b: Builder) -> Instruction:
    method = _old_method(node)
    return _by_scales(node, b, (1.0, 1.0, node.float("height_scale"), node.float("width_scale")), method)


@onnx_op("Upsample", since=7, until=8)
def upsample_by_attribute(node: NodeView, b: Builder) -> Instruction:
    return _by_scales(node, b, node.floats("scales"), _old_method(node))


@onnx_op("Upsample", since=9, until=9)
@onnx_op("Resize", since=10, until=10)
def upsample(node: NodeView, b: Builder) -> Instruction:
    method = _old_method(node)
    return _by_scales(node, b, [float(s) for s in node.constant(1).reshape(-1)], method)


def _old_method(node: NodeView) -> Method:
    """The resizing of opsets 1 to 10: asymmetric coordinates, rounded up when shrinking and down otherwise."""
    return Method(node.word("mode", ("nearest", "linear", "bilinear", "cubic"), "nearest").removeprefix("bi"))


def _by_scales(node: NodeView, b: Builder, scales: Sequence[float], method: Method) -> Instruction:
    x = node.input(0)
    return _resize(node, b, x, dict(enumerate(_axes_of_scales(node, x.shape, scales))), method)


@onnx_op("Resize", since=11)
def resize(node: NodeView, b: Builder) -> Instruction:
    method, policy = _method(node), node.word("keep_aspect_ratio_policy", POLICIES, "stretch")
    x = node.input(0)
    rank = len(x.shape)
    named = normal_axes(node, node.ints("axes", tuple(range(rank))), rank)
    sizes = [x.shape[d] for d in named]
    scales, wished = node.optional_constant(2), node.optional_constant_ints(3)
    if wished:
        axes = _axes_of_sizes(node, sizes, wished, policy)
    elif scales is not None and scales.size:
        axes = _axes_of_scales(node, sizes, [float(s) for s in scales.reshape(-1)])
    else:
        node.shape_error("one of scales and sizes must be given")
    if method.extrapolation is not None:
        roi = node.constant(1).reshape(2, -1).astype(np.float64)
        if roi.shape[1] != len(named):
            node.shape_error(f"the roi has {roi.size} numbers for {len(named)} axes")
        axes = [replace(a, roi_start=roi[0, i], roi_end=roi[1, i]) for i, a in enumerate(axes)]
    return _resize(node, b, x, dict(zip(named, axes, strict=True)), method)


def _method(node: NodeView) -> Method:
    coordinate_mode = node.word("coordinate_transformation_mode", tuple(COORDINATES), "half_pixel")
    return Method(
        mode=node.word("mode", ("nearest", "linear", "cubic"), "nearest"),
        coordinate_mode=coordinate_mode,
        rounding=node.word("nearest_mode", tuple(r for r in ROUNDINGS if r != "simple"), "round_prefer_floor"),
        cubic_a=node.float("cubic_coeff_a", -0.75),
        antialias=bool(node.int("antialias", 0)),
        exclude_outside=bool(node.int("exclude_outside", 0)),
        extrapolation=node.float("extrapolation_value", 0.0) if coordinate_mode == "tf_crop_and_resize" else None,
    )


def _axes_of_scales(node: NodeView, sizes: Sequence[int], scales: Sequence[float]) -> list[Axis]:
    if len(scales) != len(sizes) or min(scales, default=1.0) <= 0:
        node.shape_error(f"scales {list(scales)} do not fit {len(sizes)} axes")
    single = [np.float32(s) for s in scales]
    return [
        Axis(n, int(np.float32(n) * s), float(s), span=float(np.float32(n) * s))
        for n, s in zip(sizes, single, strict=True)
    ]


def _axes_of_sizes(node: NodeView, sizes: Sequence[int], wished: Sequence[int], policy: str) -> list[Axis]:
    """The policy keeps the aspect ratio: all axes take the smallest (or largest) of their scales."""
    if len(wished) != len(sizes):
        node.shape_error(f"sizes {list(wished)} do not fit {len(sizes)} axes")
    scales = [np.float32(w) / np.float32(n) if n else np.float32(1) for w, n in zip(wished, sizes, strict=True)]
    if policy == "stretch":
        return [Axis(n, w, float(s)) for n, w, s in zip(sizes, wished, scales, strict=True)]
    scale = min(scales) if policy == "not_larger" else max(scales)
    return [Axis(n, int(np.floor(scale * np.float32(n) + np.float32(0.5))), float(scale)) for n in sizes]


def _resize(node: NodeView, b: Builder, given: Instruction, axes: dict[int, Axis], method: Method) -> Instruction:
    crops = method.extrapolation is not None
    changed = {d: a for d, a in axes.items() if crops or a.scale != 1 or a.output != a.size}
    if any(a.size == 0 < a.output for a in changed.values()):
        node.shape_error("a dimension without elements cannot grow")
    element = given.tensor_type.element
    shape = tuple(changed[d].output if d in changed else n for d, n in enumerate(given.shape))
    if 0 in shape:
        return b.full(shape, 0, element)
    node.require_table(max((a.output + a.size for a in changed.values()), default=0))
    x = given if method.mode == "nearest" else _as_float(b, given)
    # Shrinking first leaves less to do for the other axes.
    for d, axis in sorted(changed.items(), key=lambda item: item[1].scale):
        x = _resize_axis(b, x, d, axis, method)
    x = b.convert(x, element)
    return _with_extrapolation(b, x, changed, method, element) if crops else x


def _as_float(b: Builder, x: Instruction) -> Instruction:
    return widen(b, x) if x.tensor_type.element.is_float else b.convert(x, F32)


def _resize_axis(b: Builder, x: Instruction, d: int, axis: Axis, method: Method) -> Instruction:
    place = coordinates(method.coordinate_mode, axis)
    if method.mode == "nearest":
        return pick_positions(b, x, d, nearest_positions(place, axis, method.rounding))
    if method.mode == "linear":
        taps = linear_taps(place, axis, method.antialias, method.exclude_outside)
    else:
        taps = cubic_taps(place, axis, method.cubic_a, method.antialias, method.exclude_outside)
    return weighted(b, x, d, taps)


def weighted(b: Builder, x: Instruction, d: int, taps: Taps) -> Instruction:
    """Along axis `d`, the sum of the taps' picks times their weights."""
    element, count = x.tensor_type.element, taps.positions.shape[1]
    if count > MAX_UNROLLED_TAPS:
        picked = b.take(x, b.constant(taps.positions, S32), d)
        weights = b.broadcast(b.constant(taps.weights, element), picked.shape, [d, d + 1])
        return b.reduce_by("add", b.multiply(picked, weights), [d + 1])
    total: Instruction | None = None
    for t in range(count):
        picked = pick_positions(b, x, d, taps.positions[:, t])
        weights = b.broadcast(b.constant(taps.weights[:, t], element), picked.shape, [d])
        part = b.multiply(picked, weights)
        total = part if total is None else b.add(total, part)
    assert total is not None
    return total


def _with_extrapolation(
    b: Builder, x: Instruction, axes: dict[int, Axis], method: Method, element: ElementType
) -> Instruction:
    """The extrapolation value wherever a coordinate lies outside of the input."""
    inside: Instruction | None = None
    for d, axis in axes.items():
        place: Array = coordinates(method.coordinate_mode, axis)
        on_axis = b.constant((place >= 0) & (place <= axis.size - 1), PRED)
        here = b.broadcast(on_axis, x.shape, [d])
        inside = here if inside is None else b.and_(inside, here)
    if inside is None:
        return x
    return b.select(inside, x, b.full(x.shape, method.extrapolation or 0.0, element))
