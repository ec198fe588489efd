"""What quantised operators share: a number q of a small integer type stands for (q - zero_point) * scale.

Scales and zero points are one number, one for each place along an axis, or one for each block along
an axis; `spread` brings all three to the shape of the data. Rounding is half to even, and values
outside of the type saturate.
"""

from collections.abc import Sequence

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.rules.axes import normal_axis
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, F64, S32, U8, ElementType


def limits(element: ElementType) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    if element.is_signed:
        return -(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1
    return 0, (1 << element.bits) - 1


def is_known_zero(node: NodeView, i: int) -> bool:
    """Whether input `i` is left out, or known to be zero everywhere."""
    if not node.has_input(i):
        return True
    value = node.known(i)
    return value is not None and not value.any()


def scalar(node: NodeView, b: Builder, i: int) -> Instruction:
    """Input `i`, which must hold one number, as a scalar."""
    value = node.input(i)
    if value.tensor_type.size != 1:
        node.unsupported(f"input {node.input_name(i)} must be one number", "only per-tensor quantisation is known here")
    return b.reshape(value, ())


def optional_scalar(node: NodeView, b: Builder, i: int) -> Instruction | None:
    """Input `i` as a scalar, or None where it is left out or known to be zero."""
    return None if is_known_zero(node, i) else scalar(node, b, i)


def spread(
    node: NodeView, b: Builder, parameter: Instruction, shape: Sequence[int], axis: int, block_size: int
) -> Instruction:
    """A scale or zero point stretched to the data's `shape`: per tensor, per axis, or per block along `axis`."""
    if parameter.tensor_type.size == 1 and len(parameter.shape) <= 1 and block_size == 0:
        return b.broadcast_scalar(b.reshape(parameter, ()), shape)
    axis = 0 if len(shape) == 1 else normal_axis(node, axis, len(shape))
    if len(parameter.shape) == 1 and block_size == 0:
        if parameter.shape[0] != shape[axis]:
            node.shape_error(f"{parameter.shape[0]} scales or zero points do not fit dimension {axis} of {list(shape)}")
        return b.broadcast(parameter, shape, [axis])
    outside = [n for d, n in enumerate(parameter.shape) if d != axis] == [n for d, n in enumerate(shape) if d != axis]
    if len(parameter.shape) != len(shape) or not outside or parameter.shape[axis] < 1:
        node.shape_error(
            f"scales or zero points {parameter.tensor_type} do not fit {list(shape)} in blocks along {axis}"
        )
    blocks = parameter.shape[axis]
    size = block_size or -(-shape[axis] // blocks)
    if -(-shape[axis] // size) != blocks:
        node.shape_error(f"{blocks} blocks of {size} do not fit dimension {axis} of {list(shape)}")
    return repeat_blocks(b, parameter, axis, size, shape[axis])


def repeat_blocks(b: Builder, value: Instruction, axis: int, block: int, limit: int) -> Instruction:
    """Every element along `axis` repeated `block` times, cut off at `limit`."""
    shape = value.shape
    wide = (*shape[: axis + 1], block, *shape[axis + 1 :])
    kept = [d for d in range(len(wide)) if d != axis + 1]
    merged = (*shape[:axis], shape[axis] * block, *shape[axis + 1 :])
    repeated = b.reshape(b.broadcast(value, wide, kept), merged)
    if merged[axis] == limit:
        return repeated
    ends = list(merged)
    ends[axis] = limit
    return b.slice(repeated, [0] * len(ends), ends)


def quantize(
    b: Builder, x: Instruction, scale: Instruction, zero_point: Instruction | None, element: ElementType
) -> Instruction:
    """saturate(round(x / scale) + zero_point) in an integer type; the parameters have x's shape or are scalars."""
    return round_to(b, b.divide(x, b.broadcast_scalar(scale, x.shape)), zero_point, element)


def requantize(
    b: Builder, sums: Instruction, factor: Instruction, zero_point: Instruction | None, element: ElementType
) -> Instruction:
    """saturate(round(sums * factor) + zero_point) for sums in s32, as the end of integer products."""
    scaled = b.multiply(b.convert(sums, F32), b.broadcast_scalar(factor, sums.shape))
    return round_to(b, scaled, zero_point, element)


def round_to(b: Builder, x: Instruction, zero_point: Instruction | None, element: ElementType) -> Instruction:
    """saturate(round(x) + zero_point) in an integer type; NaN gives the least number."""
    low, high = limits(element)
    computed = x.tensor_type.element if x.tensor_type.element in (F32, F64) else F32
    rounded = b.unary("round-nearest-even", b.convert(x, computed))
    if zero_point is not None:
        rounded = b.add(rounded, b.broadcast_scalar(b.convert(zero_point, computed), x.shape))
    return b.convert(b.clamp(b.constant(low, computed), rounded, b.constant(high, computed)), element)


def dequantize(b: Builder, q: Instruction, scale: Instruction, zero_point: Instruction | None) -> Instruction:
    """(q - zero_point) * scale in f32. `scale` and `zero_point` have q's shape or are scalars."""
    if q.tensor_type.element.is_integer:
        value = b.convert(q, S32)
        if zero_point is not None:
            value = b.subtract(value, b.broadcast_scalar(b.convert(zero_point, S32), q.shape))
        value = b.convert(value, F32)
    else:
        value = b.convert(q, F32)
        if zero_point is not None:
            value = b.subtract(value, b.broadcast_scalar(b.convert(zero_point, F32), q.shape))
    return b.multiply(value, b.broadcast_scalar(b.convert(scale, F32), q.shape))


def dynamic_quantize(b: Builder, x: Instruction) -> tuple[Instruction, Instruction, Instruction]:
    """x in u8 over its own range widened to hold 0, with the scale (f32) and the zero point (u8), both scalars.

    A range of nothing but zero has scale 1, as in onnxruntime.
    """
    every = range(len(x.shape))
    zero = b.constant(0, F32)
    low = b.minimum(b.reduce_by("minimum", x, every), zero)
    high = b.maximum(b.reduce_by("maximum", x, every), zero)
    least, greatest = limits(U8)
    scale = b.divide(b.subtract(high, low), b.constant(greatest - least, F32))
    scale = b.select(b.compare(low, high, "EQ"), b.constant(1, F32), scale)
    zero_point = round_to(b, b.divide(b.negate(low), scale), None, U8)
    return quantize(b, x, scale, zero_point, U8), scale, zero_point
