"""A value that stands for 8-bit integers: how it is spelled, `(convert(bits) - zero) * scale`."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.elementwise import Convert
from onnxla.hlo.ops.shape import Broadcast, Reshape, Transpose
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import F32, S8, S32, U8

LONGEST_UNIFORM = 1 << 16
"""Most elements that are compared to find that they are all alike."""


@dataclass(frozen=True)
class Quantized:
    """A value that is `(bits - zero) * scale`, of a shape of its own."""

    bits: Instruction
    """u8 or s8."""
    zero: int
    scale: Instruction | None
    """f32, a scalar or a vector along `axis`; None for 1."""
    axis: int | None = None

    def dequantized(self, b: Builder) -> Instruction:
        """The value in f32, for a scale of all elements."""
        wide = b.convert(self.bits, S32)
        value = b.convert(b.subtract(wide, b.full_like(wide, self.zero)) if self.zero else wide, F32)
        return value if self.scale is None else b.multiply(value, b.broadcast_scalar(self.scale, value.shape))

    @staticmethod
    def of(value: Instruction) -> "Quantized | None":
        """How `value` is spelled as a quantised one; None where it is not."""
        if value.op.opcode == "multiply":
            for whole, factor in (value.operands, reversed(value.operands)):
                scale = _scale(factor)
                inner = Quantized.of(whole) if scale is not None else None
                if scale is not None and inner is not None and inner.scale is None:
                    return dataclasses.replace(inner, scale=scale[0], axis=scale[1])
        if value.op.opcode == "subtract":
            zero = _uniform(value.operands[1])
            inner = Quantized.of(value.operands[0])
            if zero is not None and inner is not None and inner.scale is None and not inner.zero:
                return dataclasses.replace(inner, zero=zero)
        if isinstance(value.op, Convert) and value.op.element in (S32, F32):
            (source,) = value.operands
            if source.tensor_type.element in (U8, S8):
                return Quantized(source, 0, None)
            if source.tensor_type.element is S32:
                return Quantized.of(source)
        if isinstance(value.op, Transpose | Reshape):
            return Quantized._moved(value)
        return None

    @staticmethod
    def _moved(value: Instruction) -> "Quantized | None":
        """Through a transpose or reshape, which the integers make in place of the numbers."""
        inner = Quantized.of(value.operands[0])
        if inner is None or (isinstance(value.op, Reshape) and inner.axis is not None):
            return None
        bits = Instruction(value.op, (inner.bits,), source=value.source)
        axis = inner.axis
        if axis is not None and isinstance(value.op, Transpose):
            axis = value.op.permutation.index(axis)
        return dataclasses.replace(inner, bits=bits, axis=axis)


def is_positive(scale: Instruction) -> bool:
    """Whether a scale is a constant whose numbers are all positive and finite."""
    if not isinstance(scale.op, Constant):
        return False
    numbers = scale.op.literal.array
    return bool((np.isfinite(numbers) & (numbers > 0)).all())


def _uniform(value: Instruction) -> int | None:
    """The integer that a constant is everywhere, also broadcast, reshaped and as another integer type."""
    source = value
    while isinstance(source.op, Broadcast | Reshape) or _widens(source):
        (source,) = source.operands
    if not isinstance(source.op, Constant) or source.tensor_type.size == 0:
        return None
    array = source.op.literal.array
    if array.size > LONGEST_UNIFORM or not (array == array.flat[0]).all() or not float(array.flat[0]).is_integer():
        return None
    return int(array.flat[0])


def _widens(value: Instruction) -> bool:
    """Whether it is the conversion of bytes to wider integers or floats."""
    return isinstance(value.op, Convert) and value.operands[0].tensor_type.element in (U8, S8)


def _scale(factor: Instruction) -> tuple[Instruction, int | None] | None:
    """A broadcast scalar, or a vector broadcast along one axis, both f32."""
    if not isinstance(factor.op, Broadcast) or factor.tensor_type.element is not F32:
        return None
    (source,) = factor.operands
    if source.shape == ():
        return source, None
    return (source, factor.op.dimensions[0]) if len(source.shape) == 1 else None
