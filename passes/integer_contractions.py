"""Contractions of dequantised numbers become contractions of the integers behind them.

A quantised operand is spelled out in the module: `(convert(q) - zero) * scale`, q of 8 bits. With x = (q - z) * s and
w = v * t the sum over depth of x * w is (sum of q * v - z * sum of v) * s * t. The first sum is exact in 32-bit
integers, the second is known while compiling, and the scales move behind. Where weights have a zero point y, y * sum of
(q - z) is taken off besides: one number for each row, or pixel. Works for floating contractions (models with
QuantizeLinear/DequantizeLinear pairs) and for integer ones (QLinearConv, ConvInteger, MatMulInteger) alike.

The left operand is made unsigned and the right one, which must be constant, signed: what the kernels multiply.
"""

import dataclasses
import math

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.numerics import integer_limits
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.ops.shape import Reshape, Transpose
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import F32, S8, S32, U8, ElementType
from onnxla.hlo.window import Window, WindowDimension
from onnxla.passes.pass_base import ComputationPass
from onnxla.passes.quantized import Quantized

LARGEST_SUM = (1 << 31) - 1
"""Of products of floats that stand for integers. Sums of integers wrap in the model, too."""


class IntegerContractions(ComputationPass):
    """Compute convolutions and dots of dequantised operands in integers, and scale the sums."""

    name = "integer-contractions"

    def run_on(self, computation: Computation) -> bool:
        changed = False
        for instruction in computation.instructions():
            if isinstance(instruction.op, Convolution | Dot):
                replacement = _rewritten(instruction)
                if replacement is not None:
                    computation.replace(instruction, replacement)
                    self.count("contractions")
                    changed = True
        return changed


def _rewritten(instruction: Instruction) -> Instruction | None:
    op = instruction.op
    assert isinstance(op, Convolution | Dot)
    left, right = (Quantized.of(o) for o in instruction.operands)
    if left is None or right is None or op.element not in (F32, S32) or left.axis is not None:
        return None
    if not isinstance(_source(right.bits).op, Constant):
        return None
    b = Builder(source=instruction.source)
    left, right = _with_element(b, left, U8, 128), _with_element(b, right, S8, -128)
    of_bytes = 0 <= left.zero <= 255 and -256 <= right.zero < 256
    if not of_bytes or not _axis_survives(op, instruction, right):
        return None
    depth = right.bits.tensor_type.size // max(_columns(op, right), 1)
    if op.element is F32 and depth * _largest(left) * _largest(right) > LARGEST_SUM:
        return None
    if isinstance(op, Convolution):
        sums = _convolved(b, op, left, right)
    else:
        sums = b.emit(dataclasses.replace(op, element=S32), left.bits, right.bits)
    product = sums
    if right.zero:
        rows = _row_sums(b, product)
        if rows is None:
            return None
        shifted = b.subtract(rows, b.full_like(rows, depth * left.zero))
        sums = b.subtract(sums, b.multiply(shifted, b.full_like(rows, right.zero)))
    if left.zero:
        sums = b.subtract(sums, _zero_part(b, op, left, right, sums.shape))
    if op.element is S32:
        return sums
    result = b.convert(sums, F32)
    for scale, axis in ((left.scale, None), (right.scale, _result_axis(op, instruction, right))):
        if scale is not None:
            spread = (
                b.broadcast_scalar(scale, result.shape) if axis is None else b.broadcast(scale, result.shape, [axis])
            )
            result = b.multiply(result, spread)
    return result


def _largest(value: Quantized) -> int:
    """The largest size that its integers can have, less its zero point."""
    low, high = integer_limits(value.bits.tensor_type.element)
    return max(abs(low - value.zero), abs(high - value.zero))


def _source(value: Instruction) -> Instruction:
    while isinstance(value.op, Transpose | Reshape):
        (value,) = value.operands
    return value


def _with_element(b: Builder, value: Quantized, element: ElementType, shift: int) -> Quantized:
    """The same numbers with bits of another signedness: both bits and zero move by `shift`."""
    if value.bits.tensor_type.element is element:
        return value
    wide = b.convert(value.bits, S32)
    moved = b.convert(b.add(wide, b.full_like(wide, shift)), element)
    return dataclasses.replace(value, bits=moved, zero=value.zero + shift)


def _axis_survives(op: Convolution | Dot, instruction: Instruction, right: Quantized) -> bool:
    """Whether the scale of the right operand is one for each column, which the sums can be multiplied with."""
    return right.axis is None or _result_axis(op, instruction, right) is not None


def _result_axis(op: Convolution | Dot, instruction: Instruction, right: Quantized) -> int | None:
    """The dimension of the result that the axis of the right operand becomes."""
    if right.axis is None:
        return None
    if isinstance(op, Convolution):
        dims = op.dimensions
        return dims.output_feature if right.axis == dims.kernel_output_feature else None
    lhs, rhs = (o.tensor_type for o in instruction.operands)
    free = op.rhs_free(rhs.rank)
    if right.axis not in free:
        return None
    return len(op.lhs_batch) + len(op.lhs_free(lhs.rank)) + free.index(right.axis)


def _convolved(b: Builder, op: Convolution, left: Quantized, right: Quantized) -> Instruction:
    """The integer convolution; padding that stands for zero is padded with the integer that means zero."""
    bits, window = left.bits, op.window
    if left.zero and any(w.pad_low or w.pad_high or w.base_dilation != 1 for w in window.dimensions):
        rank = len(bits.shape)
        low, high, between = [0] * rank, [0] * rank, [0] * rank
        for d, w in zip(op.dimensions.input_spatial, window.dimensions, strict=True):
            low[d], high[d], between[d] = w.pad_low, w.pad_high, w.base_dilation - 1
        bits = b.pad(bits, b.constant(left.zero, U8), low, high, between)
        plain = tuple(dataclasses.replace(w, pad_low=0, pad_high=0, base_dilation=1) for w in window.dimensions)
        window = Window(plain)
    return b.emit(dataclasses.replace(op, window=window, element=S32), bits, right.bits)


def _columns(op: Convolution | Dot, right: Quantized) -> int:
    """How many sums have a row, batches apart."""
    shape = right.bits.shape
    if isinstance(op, Convolution):
        return shape[op.dimensions.kernel_output_feature]
    return math.prod(n for d, n in enumerate(shape) if d not in op.rhs_contracting)


def _row_sums(b: Builder, product: Instruction) -> Instruction | None:
    """The sums of the left operand's integers over depth, in the shape of the sums of products; None where groups, or
    batches, have sums of their own."""
    op, bits = product.op, product.operands[0]
    wide = b.convert(bits, S32)
    if isinstance(op, Dot):
        if op.lhs_batch:
            return None
        rows = b.reduce_by("add", wide, op.lhs_contracting)
        return b.broadcast(rows, product.shape, range(len(rows.shape)))
    assert isinstance(op, Convolution)
    dims = op.dimensions
    if op.feature_group_count != 1 or op.batch_group_count != 1:
        return None
    windows = dict(zip(dims.input_spatial, op.window.dimensions, strict=True))
    places = dict(zip((dims.input_batch, *dims.input_spatial), (dims.output_batch, *dims.output_spatial), strict=True))
    kept = [d for d in range(len(bits.shape)) if d != dims.input_feature]
    if [places[d] for d in kept] != sorted(places.values()):
        return None
    window = Window(tuple(windows.get(d, WindowDimension()) for d in kept))
    pixels = b.reduce_by("add", wide, [dims.input_feature])
    rows = b.reduce_window((pixels,), (b.constant(0, S32),), window, b.combiner("add", S32))
    return b.broadcast(rows, product.shape, [places[d] for d in kept])


def _zero_part(
    b: Builder, op: Convolution | Dot, left: Quantized, right: Quantized, shape: tuple[int, ...]
) -> Instruction:
    """zero * (sum of the right operand over depth), in the shape of the sums; it folds to a constant."""
    wide = b.convert(right.bits, S32)
    if isinstance(op, Convolution):
        dims = op.dimensions
        total = b.reduce_by("add", wide, (*dims.kernel_spatial, dims.kernel_input_feature))
        places = [dims.output_feature]
    else:
        total = b.reduce_by("add", wide, op.rhs_contracting)
        rank = len(right.bits.shape)
        kept = [d for d in range(rank) if d not in op.rhs_contracting]
        free = op.rhs_free(rank)
        first_free = len(shape) - len(free)
        places = [op.rhs_batch.index(d) if d in op.rhs_batch else first_free + free.index(d) for d in kept]
        order = list(np.argsort(places))
        total, places = b.transpose(total, order), sorted(places)
    scaled = b.multiply(total, b.full_like(total, left.zero))
    return b.broadcast(scaled, shape, places)
