"""How each element type lies in memory and in a register, and the rounding between the two.

In registers arithmetic is done in a wider type: narrow floats in f32 (holding values that the
narrow type can represent), 2- and 4-bit integers in 8 bits. In memory a float of 8 bits or fewer
and bf16 are plain unsigned integers; f16 is itself, because both targets convert it natively.
Rounding is to nearest even, as ml_dtypes does; overflow gives infinity, or NaN where the type has none.
"""

import math
from dataclasses import dataclass

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.hlo.numerics import integer_limits
from onnxla.hlo.types import (
    BF16,
    F4E2M1FN,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0FNU,
    F16,
    F32,
    F64,
    S2,
    S4,
    S8,
    S16,
    S32,
    S64,
    U2,
    U4,
    U8,
    U16,
    U32,
    U64,
    ElementType,
)

WORD = U32
"""The type in which narrower values travel between threads."""


@dataclass(frozen=True)
class _SmallFloat:
    """A float of at most 8 bits: mantissa bits, exponent bias, and what its top codes mean."""

    mantissa: int
    bias: int
    width: int
    nan: int | None
    """The code of NaN without its sign; None where there is none."""
    infinity: int | None
    largest: float
    negative_zero: bool = True


_SMALL_FLOATS = {
    F8E4M3FN: _SmallFloat(3, 7, 8, 0x7F, None, 448.0),
    F8E4M3FNUZ: _SmallFloat(3, 8, 8, 0x80, None, 240.0, negative_zero=False),
    F8E5M2: _SmallFloat(2, 15, 8, 0x7E, 0x7C, 57344.0),
    F8E5M2FNUZ: _SmallFloat(2, 16, 8, 0x80, None, 57344.0, negative_zero=False),
    F4E2M1FN: _SmallFloat(1, 1, 4, None, None, 6.0),
}
_SMALL_INTEGERS = {S4: 4, S2: 6, U4: 4, U2: 6}
"""How far to shift left and back to keep only the low bits of a byte."""


def storage_element(element: ElementType) -> ElementType:
    """The kernel-IR type of an element in memory."""
    if element is BF16:
        return U16
    if element in _SMALL_FLOATS or element is F8E8M0FNU:
        return U8
    if element in _SMALL_INTEGERS:
        return S8 if element.is_signed else U8
    return element


def compute_element(element: ElementType) -> ElementType:
    """The kernel-IR type that arithmetic on an element is done in."""
    if element.is_float and element not in (F32, F64):
        return F32
    return storage_element(element)


def decode(b: KernelBuilder, raw: Value, element: ElementType) -> Value:
    """From memory to register."""
    if element is F16:
        return b.convert(raw, F32)
    if element is BF16:
        return b.bitcast(b.binary("shl", b.convert(raw, U32), b.const(16, U32)), F32)
    if element is F8E8M0FNU:
        bits = b.binary("shl", b.convert(raw, U32), b.const(23, U32))
        bits = b.select(b.compare("EQ", raw, b.const(0, U8)), b.const(0x00400000, U32), bits)
        return b.bitcast(b.select(b.compare("EQ", raw, b.const(0xFF, U8)), b.const(0x7FC00000, U32), bits), F32)
    if element in _SMALL_FLOATS:
        return _decode_small_float(b, raw, _SMALL_FLOATS[element])
    return wrap(b, raw, element)


def _decode_small_float(b: KernelBuilder, raw: Value, kind: _SmallFloat) -> Value:
    code = b.convert(raw, U32)
    magnitude = b.and_(code, b.const((1 << (kind.width - 1)) - 1, U32))
    # placed in f32's fields the exponent is off by the difference of the biases; a product mends it, exactly
    placed = b.bitcast(b.binary("shl", magnitude, b.const(23 - kind.mantissa, U32)), F32)
    value = b.mul(placed, b.const(2.0 ** (127 - kind.bias), F32))
    if kind.infinity is not None:
        infinite = b.compare("EQ", magnitude, b.const(kind.infinity, U32))
        undefined = b.compare("GT", magnitude, b.const(kind.infinity, U32))
        value = b.select(infinite, b.const(math.inf, F32), b.select(undefined, b.const(math.nan, F32), value))
    sign = b.binary("shl", b.binary("shr", code, b.const(kind.width - 1, U32)), b.const(31, U32))
    value = b.bitcast(b.or_(b.bitcast(value, U32), sign), F32)
    if kind.nan is not None and kind.infinity is None:
        tested = code if kind.nan == 0x80 else magnitude
        value = b.select(b.compare("EQ", tested, b.const(kind.nan, U32)), b.const(math.nan, F32), value)
    return value


def encode(b: KernelBuilder, value: Value, element: ElementType) -> Value:
    """From register to memory, rounding."""
    if element is F16:
        return b.convert(value, F16)
    if element is BF16:
        bits = b.bitcast(value, U32)
        odd = b.and_(b.binary("shr", bits, b.const(16, U32)), b.const(1, U32))
        rounded = b.add(b.add(bits, b.const(0x7FFF, U32)), odd)
        quiet = b.or_(bits, b.const(0x00400000, U32))
        kept = b.select(b.compare("NE", value, value), quiet, rounded)
        return b.convert(b.binary("shr", kept, b.const(16, U32)), U16)
    if element is F8E8M0FNU:
        return _encode_exponent(b, value)
    if element in _SMALL_FLOATS:
        return _encode_small_float(b, value, _SMALL_FLOATS[element])
    return value


def _encode_exponent(b: KernelBuilder, value: Value) -> Value:
    """To a power of two, ties to the even exponent; NaN for what has no logarithm."""
    bits = b.bitcast(value, U32)
    odd = b.and_(b.binary("shr", bits, b.const(23, U32)), b.const(1, U32))
    rounded = b.add(b.add(bits, b.const(0x3FFFFF, U32)), odd)
    code = b.binary("shr", rounded, b.const(23, U32))
    positive = b.and_(b.compare("GT", value, b.const(0.0, F32)), b.compare("LT", value, b.const(math.inf, F32)))
    code = b.select(positive, b.min(code, b.const(0xFF, U32)), b.const(0xFF, U32))
    return b.convert(code, U8)


def _encode_small_float(b: KernelBuilder, value: Value, kind: _SmallFloat) -> Value:
    bits = b.bitcast(value, U32)
    sign = b.binary("shl", b.binary("shr", bits, b.const(31, U32)), b.const(kind.width - 1, U32))
    magnitude = b.and_(bits, b.const(0x7FFFFFFF, U32))
    shift = 23 - kind.mantissa
    odd = b.and_(b.binary("shr", magnitude, b.const(shift, U32)), b.const(1, U32))
    rounded = b.add(b.add(magnitude, b.const((1 << (shift - 1)) - 1, U32)), odd)
    normal = b.sub(b.binary("shr", rounded, b.const(shift, U32)), b.const((127 - kind.bias) << kind.mantissa, U32))
    # adding a power of two whose last place is the smallest step lets the hardware round subnormals
    magic = 2.0 ** (1 - kind.bias - kind.mantissa + 23)
    shifted = b.add(b.bitcast(magnitude, F32), b.const(magic, F32))
    subnormal = b.sub(b.bitcast(shifted, U32), b.bitcast(b.const(magic, F32), U32))
    small = b.compare("LT", b.bitcast(magnitude, F32), b.const(2.0 ** (1 - kind.bias), F32))
    code = b.select(small, subnormal, normal)
    last = round(math.log2(kind.largest) // 1 + kind.bias) << kind.mantissa
    last += round((kind.largest / 2 ** (math.log2(kind.largest) // 1) - 1) * (1 << kind.mantissa))
    beyond = b.compare("GT", code, b.const(last, U32))
    undefined = b.compare("NE", value, value)
    if kind.infinity is not None:
        code = b.select(beyond, b.const(kind.infinity, U32), code)
        code = b.select(undefined, b.const(kind.nan or 0, U32), code)
        return b.convert(b.or_(code, sign), U8)
    if kind.nan is None:
        signed = b.or_(b.select(beyond, b.const(last, U32), code), sign)
        # what has no NaN stores a zero of the other sign for it, as ml_dtypes does
        zero = b.binary("xor", sign, b.const(1 << (kind.width - 1), U32))
        return b.convert(b.select(undefined, zero, signed), U8)
    if not kind.negative_zero:
        signed = b.select(b.compare("EQ", code, b.const(0, U32)), b.const(0, U32), b.or_(code, sign))
        return b.convert(b.select(b.or_(beyond, undefined), b.const(kind.nan, U32), signed), U8)
    code = b.select(b.or_(beyond, undefined), b.const(kind.nan, U32), code)
    return b.convert(b.or_(code, sign), U8)


def wrap(b: KernelBuilder, value: Value, element: ElementType) -> Value:
    """Keep only the bits that a 2- or 4-bit integer has; other values pass."""
    shift = _SMALL_INTEGERS.get(element)
    if shift is None:
        return value
    amount = b.const(shift, value.element)
    return b.binary("shr", b.binary("shl", value, amount), amount)


def round_to(b: KernelBuilder, value: Value, element: ElementType) -> Value:
    """The result of an operation, made a value of its element type.

    Integers wrap and floats of 8 bits or fewer round. f16 and bf16 keep the precision of f32 until
    they are stored or converted: what is fused is computed as exactly as it would be in f32.
    """
    if element in (F16, BF16):
        return value
    return narrow(b, value, element)


def narrow(b: KernelBuilder, value: Value, element: ElementType) -> Value:
    """A register value rounded, or wrapped, to what the element type can hold."""
    if element.is_float and element not in (F32, F64):
        return decode(b, encode(b, value, element), element)
    return wrap(b, value, element)


def convert(b: KernelBuilder, value: Value, source: ElementType, target: ElementType) -> Value:
    """HLO's convert between any two element types, from register to register."""
    wanted = compute_element(target)
    if target.is_float and wanted is F32 and target is not F32:
        if value.element is F64 or (value.element.is_integer and value.element.bits >= 32 and target is not F16):
            value = _to_odd(b, b.convert(value, F64))
        return narrow(b, b.convert(value, F32), target)
    if value.element.is_float and target.is_integer and target.bits < wanted.bits:
        low, high = integer_limits(target)
        return b.max(b.min(b.convert(value, wanted), b.const(high, wanted)), b.const(low, wanted))
    return wrap(b, b.convert(value, wanted), target)


def _to_odd(b: KernelBuilder, value: Value) -> Value:
    """f64 to f32 rounded to odd, so that one more rounding gives the nearest value (Boldo, Melquiond 2008)."""
    near = b.convert(value, F32)
    back = b.convert(near, F64)
    bits = b.bitcast(near, U32)
    away = b.compare("GT", b.unary("abs", back), b.unary("abs", value))
    truncated = b.sub(bits, b.convert(away, U32))
    finite = b.compare("LT", b.unary("abs", near), b.const(math.inf, F32))
    inexact = b.and_(b.compare("NE", back, value), b.or_(finite, away))
    odd = b.or_(truncated, b.const(1, U32))
    undefined = b.compare("NE", value, value)
    return b.bitcast(b.select(b.and_(inexact, b.not_(undefined)), odd, bits), F32)


def unsigned_of(element: ElementType) -> ElementType:
    """The unsigned integer type of the same width."""
    return {8: U8, 16: U16, 32: U32, 64: U64}[element.bits]


def signed_of(element: ElementType) -> ElementType:
    """The signed integer type of the same width."""
    return {8: S8, 16: S16, 32: S32, 64: S64}[element.bits]


def low_bits(element: ElementType, held_in: ElementType) -> int:
    """The mask of the bits that `element` has, as a number that `held_in` can hold."""
    mask = (1 << element.bits) - 1
    return -1 if held_in.is_signed and element.bits == held_in.bits else mask


def shift_right_logical(b: KernelBuilder, value: Value, amount: int) -> Value:
    """Shift in zeros whatever the sign."""
    unsigned = unsigned_of(value.element)
    return b.bitcast(b.binary("shr", b.bitcast(value, unsigned), b.const(amount, unsigned)), value.element)


def bitcast(b: KernelBuilder, value: Value, source: ElementType, target: ElementType) -> Value:
    """HLO's bitcast-convert between types of the same width, from register to register."""
    raw = encode(b, value, source)
    return decode(b, b.bitcast(raw, storage_element(target)), target)
