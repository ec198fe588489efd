"""Arithmetic on arrays of any element type with XLA's rules, where numpy's differ.

Narrow types compute in a wider one (`widen`) and are rounded or wrapped back (`narrow`): f16,
bf16 and smaller floats in f32, integers below a byte in a byte.
"""

import numpy as np

from onnxla.hlo.types import PRED, Array, ElementType, Kind, TensorType, element_of

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def widen(array: Array) -> Array:
    """The same values in a type that numpy computes with: f32, s8 or u8 for narrower ones."""
    element = element_of(array.dtype)
    if element.is_float and element.bits < 32:
        return array.astype(np.float32)
    if element.is_integer and element.bits < 8:
        return array.astype(np.int8 if element.is_signed else np.uint8)
    return array


def narrow(array: Array, element: ElementType) -> Array:
    """Computed values as an array of `element`: floats round to nearest even, integers wrap."""
    result = np.asarray(array)
    return result if result.dtype == element.dtype else result.astype(element.dtype)


def convert(array: Array, element: ElementType) -> Array:
    """XLA's convert: floats to integers round towards zero and saturate, NaN gives 0; integers wrap; pred is `!= 0`."""
    source = element_of(array.dtype)
    values = widen(array)
    if source is element:
        return array
    if element is PRED:
        return np.asarray(values != 0)
    if source.is_complex and not element.is_complex:
        return convert(np.ascontiguousarray(values.real).reshape(values.shape), element)
    if source.is_float and element.is_integer:
        return _to_integer(values, element)
    with np.errstate(all="ignore"):
        return values.astype(element.dtype)


def integer_limits(element: ElementType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    if element.is_signed:
        return -(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1
    return 0, (1 << element.bits) - 1


def _to_integer(values: Array, element: ElementType) -> Array:
    low, high = integer_limits(element)
    whole = np.trunc(values.astype(np.float64))
    inside = (whole >= float(low)) & (whole < float(high) + 1.0)
    wide = np.where(inside, whole, 0).astype(np.uint64 if element.kind is Kind.UNSIGNED else np.int64)
    # comparisons with NaN are false, so NaN stays 0
    wide = np.where(whole >= float(high) + 1.0, np.asarray(high, wide.dtype), wide)
    return np.asarray(np.where(whole < float(low), np.asarray(low, wide.dtype), wide)).astype(element.dtype)


def unsigned_bits(array: Array) -> Array:
    """The bits of each element as an unsigned integer of the same size, upper bits zero for types below a byte."""
    element = element_of(array.dtype)
    bits = np.ascontiguousarray(array).reshape(array.shape).view(_UNSIGNED[array.dtype.itemsize])
    return bits if element.bits >= 8 else np.asarray(bits & np.uint8((1 << element.bits) - 1))


def integer_divide(lhs: Array, rhs: Array) -> Array:
    """Rounds towards zero; x / 0 has all bits set; the least number / -1 is itself."""
    zero = rhs == 0
    divisor = np.where(zero, rhs.dtype.type(1), rhs)
    if lhs.dtype.kind == "i":
        overflow = (lhs == np.iinfo(lhs.dtype).min) & (rhs == -1)
        divisor = np.where(overflow, lhs.dtype.type(1), divisor)
    floor = lhs // divisor
    inexact = floor * divisor != lhs
    quotient = floor + (inexact & ((lhs < 0) != (divisor < 0)))
    return np.asarray(np.where(zero, ~lhs.dtype.type(0), quotient.astype(lhs.dtype)))


def integer_remainder(lhs: Array, rhs: Array) -> Array:
    """The sign follows the dividend; x % 0 is x."""
    zero = rhs == 0
    divisor = np.where(zero, rhs.dtype.type(1), rhs)
    if lhs.dtype.kind == "i":
        # the least number % -1 is 0, which numpy computes only with a warning or trap
        divisor = np.where(divisor == -1, lhs.dtype.type(1), divisor)
    return np.where(zero, lhs, np.fmod(lhs, divisor))


def integer_power(base: Array, exponent: Array) -> Array:
    """Wraps; a negative exponent gives 1 or -1 for those bases, else 0."""
    result, square = np.ones_like(base), base
    rest = np.where(exponent < 0, exponent.dtype.type(0), exponent)
    while np.any(rest > 0):
        result = np.where(rest & 1 == 1, result * square, result)
        square, rest = square * square, rest >> 1
    if base.dtype.kind != "i":
        return result
    sign = np.where((base == -1) & (exponent & 1 == 1), -1, 1).astype(base.dtype)
    unit = (base == 1) | (base == -1)
    return np.where(exponent < 0, np.where(unit, sign, base.dtype.type(0)), result)


def bitcast(array: Array, type: TensorType) -> Array:
    """The same bits as `type`; a narrower element appends a dimension, a wider one takes the last away."""
    element = element_of(array.dtype)
    if min(element.bits, type.element.bits) >= 8:
        dense = np.ascontiguousarray(array)
        return dense.reshape(-1).view(type.element.dtype).reshape(type.shape)
    bits = (unsigned_bits(array).reshape(-1, 1) >> np.arange(element.bits, dtype=np.uint8)) & 1
    grouped = bits.reshape(-1, type.element.bits).astype(np.uint64)
    words = (grouped << np.arange(type.element.bits, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    unsigned = words.astype(_UNSIGNED[type.element.bytes])
    if type.element.is_integer:
        return np.reshape(unsigned.astype(type.element.dtype), type.shape)
    return np.reshape(unsigned.view(type.element.dtype), type.shape)
