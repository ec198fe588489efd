"""What each PTX operation computes, over numpy arrays with one element a thread.

`operation("fma.rn.f32")` gives the dtypes of its operands and result and a function between them. The table is a
whitelist: a form that is not in it raises UnsupportedPtx.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.gpu.ptx_text import UnsupportedPtx

Array = npt.NDArray[Any]
Dtype = np.dtype[Any]

DTYPES: dict[str, Dtype] = {
    "pred": np.dtype(bool),
    "f16": np.dtype("f2"),
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    **{
        f"{kind}{8 * n}": np.dtype(f"{code}{n}")
        for kind, code in (("s", "i"), ("u", "u"), ("b", "u"))
        for n in (1, 2, 4, 8)
    },
}
"""numpy's dtype for each PTX type; bits are unsigned."""


@dataclass(frozen=True)
class Operation:
    """`function` maps arrays of the dtypes `operands` to one of the dtype `result`."""

    operands: tuple[Dtype, ...]
    result: Dtype
    function: Callable[..., Array]


@cache
def operation(opcode: str) -> Operation:
    """Raises UnsupportedPtx for a form that is not in the table."""
    for pattern, make in _TABLE:
        if match := pattern.fullmatch(opcode):
            return make(*match.groups())
    raise UnsupportedPtx(opcode)


_INTEGER = "[su](?:16|32|64)"
_COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_ARITHMETIC: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
}


def _same(name: str, kind: str) -> Operation:
    """An operation whose operands and result have one type."""
    dtype, function = DTYPES[kind], _ARITHMETIC[name]
    return Operation((dtype,) * (1 if name in ("not", "neg", "abs", "sqrt") else 2), dtype, function)


def _float_extreme(name: str, kind: str) -> Operation:
    """min and max give the other operand for a NaN."""
    return Operation((DTYPES[kind],) * 2, DTYPES[kind], np.fmin if name == "min" else np.fmax)


def _mad(kind: str) -> Operation:
    return Operation((DTYPES[kind],) * 3, DTYPES[kind], lambda x, y, z: x * y + z)


def _wide(name: str, kind: str) -> Operation:
    """mul.wide and mad.wide: the whole product of two numbers, twice as wide."""
    narrow = DTYPES[kind]
    wide = np.dtype(f"{narrow.kind}{2 * narrow.itemsize}")
    if name == "mul":
        return Operation((narrow, narrow), wide, lambda x, y: np.multiply(x, y, dtype=wide))
    return Operation((narrow, narrow, wide), wide, lambda x, y, z: np.multiply(x, y, dtype=wide) + z)


def _high(kind: str) -> Operation:
    dtype = DTYPES[kind]
    wide = np.dtype(f"{dtype.kind}8")
    return Operation(
        (dtype, dtype), dtype, lambda x, y: np.asarray(np.multiply(x, y, dtype=wide) >> wide.type(32)).astype(dtype)
    )


def _divide(name: str, kind: str) -> Operation:
    """Truncating division; what division by zero gives is not defined, so it is all ones here."""
    dtype = DTYPES[kind]

    def quotient(x: Array, y: Array) -> Array:
        safe = np.where(y == 0, dtype.type(1), y).astype(dtype)
        floor = np.floor_divide(x, safe)
        inexact = (floor * safe != x) & ((x < 0) != (safe < 0))
        return np.asarray(np.where(y == 0, ~dtype.type(0), floor + inexact.astype(dtype)), dtype)

    if name == "div":
        return Operation((dtype, dtype), dtype, quotient)
    return Operation((dtype, dtype), dtype, lambda x, y: (x - quotient(x, y) * y).astype(dtype))


def _divide_float(kind: str) -> Operation:
    return Operation((DTYPES[kind],) * 2, DTYPES[kind], np.divide)


def _reciprocal(kind: str) -> Operation:
    return Operation((DTYPES[kind],), DTYPES[kind], lambda x: DTYPES[kind].type(1) / x)


def _fma(kind: str) -> Operation:
    if kind == "f32":
        return Operation(
            (DTYPES[kind],) * 3, DTYPES[kind], lambda x, y, z: (x.astype("f8") * y.astype("f8") + z).astype("f4")
        )
    return Operation((DTYPES[kind],) * 3, DTYPES[kind], _fma64)


def _fma64(x: Array, y: Array, z: Array) -> Array:
    """x * y + z with the error of the product carried along (Dekker), on mantissas so that nothing overflows."""

    def halves(v: Array) -> tuple[Array, Array]:
        scaled = v * 134217729.0
        high = scaled - (scaled - v)
        return high, v - high

    (u, first), (v, second) = np.frexp(x), np.frexp(y)
    exponent = first + second
    w = np.ldexp(z, -exponent)
    product = u * v
    (uh, ul), (vh, vl) = halves(u), halves(v)
    error = ((uh * vh - product) + uh * vl + ul * vh) + ul * vl
    total = product + w
    part = total - product
    result = np.ldexp(total + ((product - (total - part)) + (w - part) + error), exponent)
    plain = x * y + z
    exact = np.isfinite(result) & np.isfinite(plain) & np.isfinite(w) & (product != 0)
    return np.where(exact, result, plain)


def _compare(how: str, unordered: str, kind: str) -> Operation:
    dtype, compare = DTYPES[kind], _COMPARE[how]
    if dtype.kind != "f":
        if unordered:
            raise UnsupportedPtx(f"setp.{how}{unordered}.{kind}")
        return Operation((dtype, dtype), np.dtype(bool), compare)

    def function(x: Array, y: Array) -> Array:
        nan = np.isnan(x) | np.isnan(y)
        return (compare(x, y) | nan) if unordered else (compare(x, y) & ~nan)

    return Operation((dtype, dtype), np.dtype(bool), function)


def _compare_unsigned(how: str, kind: str) -> Operation:
    names = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
    return _compare(names[how], "", kind)


def _nan(how: str, kind: str) -> Operation:
    def function(x: Array, y: Array) -> Array:
        nan = np.isnan(x) | np.isnan(y)
        return nan if how == "nan" else ~nan

    return Operation((DTYPES[kind],) * 2, np.dtype(bool), function)


def _select(kind: str) -> Operation:
    dtype = DTYPES[kind]
    return Operation((dtype, dtype, np.dtype(bool)), dtype, lambda x, y, p: np.asarray(np.where(p, x, y)))


def _shift(name: str, kind: str) -> Operation:
    """Amounts beyond the width shift everything out."""
    dtype = DTYPES[kind]
    bits = 8 * dtype.itemsize

    def left(x: Array, n: Array) -> Array:
        return np.asarray(np.where(n >= bits, dtype.type(0), x << np.minimum(n, bits - 1).astype(dtype)), dtype)

    def right(x: Array, n: Array) -> Array:
        shifted = x >> np.minimum(n, bits - 1).astype(dtype)
        return np.asarray(shifted if dtype.kind == "i" else np.where(n >= bits, dtype.type(0), shifted), dtype)

    return Operation((dtype, np.dtype("u4")), dtype, left if name == "shl" else right)


def _move(kind: str) -> Operation:
    return Operation((DTYPES[kind],), DTYPES[kind], lambda x: x)


def _count(name: str, kind: str) -> Operation:
    dtype = DTYPES[kind]
    bits = 8 * dtype.itemsize

    def zeros(x: Array) -> Array:
        left, found = np.full(np.shape(x), bits, "u4"), np.zeros(np.shape(x), bool)
        for bit in range(bits - 1, -1, -1):
            here = ~found & ((x >> dtype.type(bit)) & dtype.type(1) != 0)
            left[here] = bits - 1 - bit
            found |= here
        return left

    return Operation((dtype,), np.dtype("u4"), zeros if name == "clz" else lambda x: np.bitwise_count(x).astype("u4"))


def _insert(kind: str) -> Operation:
    """bfi: `length` low bits of x into y at `position`."""
    dtype = DTYPES[kind]
    full = dtype.type(~dtype.type(0))

    def function(x: Array, y: Array, position: Array, length: Array) -> Array:
        bits = 8 * dtype.itemsize
        low = np.where(
            length >= bits, full, (dtype.type(1) << np.minimum(length, bits - 1).astype(dtype)) - dtype.type(1)
        )
        at = np.minimum(position, bits - 1).astype(dtype)
        mask = (low << at).astype(dtype)
        return np.asarray((y & ~mask) | ((x << at) & mask))

    return Operation((dtype, dtype, np.dtype("u4"), np.dtype("u4")), dtype, function)


def _permute() -> Operation:
    """prmt: four bytes out of the eight of x (low) and y (high); the top bit of a choice repeats the byte's sign."""
    word = np.dtype("u4")

    def function(x: Array, y: Array, choice: Array) -> Array:
        both = x.astype("u8") | (y.astype("u8") << np.uint64(32))
        result = np.zeros(np.broadcast_shapes(x.shape, choice.shape), "u8")
        for k in range(4):
            nibble = (choice.astype("u8") >> np.uint64(4 * k)) & np.uint64(15)
            byte = (both >> ((nibble & np.uint64(7)) * np.uint64(8))) & np.uint64(255)
            sign = np.where(byte >= 128, np.uint64(255), np.uint64(0))
            result |= np.where(nibble >= 8, sign, byte) << np.uint64(8 * k)
        return result.astype("u4")

    return Operation((word, word, word), word, function)


def _funnel(direction: str) -> Operation:
    """shf.wrap: 64 bits of y (high) and x (low), shifted by n modulo 32; the high or the low word of that."""
    word = np.dtype("u4")

    def function(x: Array, y: Array, n: Array) -> Array:
        both = x.astype("u8") | (y.astype("u8") << np.uint64(32))
        amount = (n & np.uint32(31)).astype("u8")
        moved = (both << amount) >> np.uint64(32) if direction == "l" else both >> amount
        return np.asarray(moved & np.uint64(0xFFFFFFFF), word)

    return Operation((word, word, word), word, function)


def _dot(a: str, b: str, part: str = "") -> Operation:
    """The numbers packed in x times those in y, and z, summed with what wraps in 32 bits.

    dp4a: four bytes of either. dp2a: two halves of x, and the bytes of the lower or the upper half of y.
    """
    result = np.dtype("u4" if (a, b) == ("u32", "u32") else "i4")

    def function(x: Array, y: Array, z: Array) -> Array:
        x, y, z = np.broadcast_arrays(x, y, z)
        left, right = _packed(x, a, 2 if part else 1), _packed(y, b, 1)
        right = {"lo": right[..., :2], "hi": right[..., 2:], "": right}[part]
        return np.asarray((z.astype("i8") + (left * right).sum(axis=-1)).astype(result))

    return Operation((DTYPES[a], DTYPES[b], result), result, function)


def _packed(words: Array, kind: str, size: int) -> Array:
    """The numbers of so many bytes in each word, lowest bits first, signed where its type is."""
    return np.ascontiguousarray(words)[..., None].view(f"{kind[0].replace('s', 'i')}{size}").astype("i8")


_ROUNDINGS: dict[str, Callable[[Array], Array]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _convert(rounding: str | None, target: str, source: str) -> Operation:
    into, out_of = DTYPES[target], DTYPES[source]

    def to_integer(x: Array) -> Array:
        limits = np.iinfo(into)
        whole = _ROUNDINGS["rzi"](np.nan_to_num(x.astype("f8"), nan=0.0, posinf=np.inf, neginf=-np.inf))
        inside = (whole > float(limits.min)) & (whole < float(limits.max))
        clipped = np.where(whole < 0, limits.min, limits.max).astype(into)
        return np.where(inside, np.where(inside, whole, 0).astype(into), np.where(whole == 0, 0, clipped)).astype(into)

    def function(x: Array) -> Array:
        if out_of.kind == "f" and into.kind != "f":
            return to_integer(x)
        return (_ROUNDINGS[rounding](x) if rounding in _ROUNDINGS else x).astype(into)

    plain: dict[tuple[str, str], set[str | None]] = {
        ("f", "f"): {None, "rn", *_ROUNDINGS},
        ("f", "i"): {"rzi"},
        ("i", "f"): {"rn"},
        ("i", "i"): {None},
    }
    kinds = ("f" if out_of.kind == "f" else "i", "f" if into.kind == "f" else "i")
    if rounding not in plain[kinds]:
        raise UnsupportedPtx(f"cvt.{rounding}.{target}.{source}")
    return Operation((out_of,), into, function)


def _to_tf32() -> Operation:
    """The bits of an f32 without the low 13, to nearest, ties away from zero."""
    word = np.dtype("u4")

    def function(x: Array) -> Array:
        bits = x.view(word)
        rounded = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
        return np.asarray(np.where(np.isnan(x), np.uint32(0x7FFFFFFF), np.where(np.isinf(x), bits, rounded)))

    return Operation((np.dtype("f4"),), word, function)


def _table() -> Iterator[tuple[re.Pattern[str], Callable[..., Operation]]]:
    forms: list[tuple[str, Callable[..., Operation]]] = [
        (rf"(add|sub|min|max)\.({_INTEGER})", _same),
        (rf"(neg|abs)\.({_INTEGER}|f32|f64)", _same),
        (r"(add|sub|mul)(?:\.rn)?\.(f32|f64)", _same),
        (r"(min|max)\.(f32|f64)", _float_extreme),
        (r"(sqrt)\.rn\.(f32|f64)", _same),
        (r"(and|or|xor|not)\.(b16|b32|b64|pred)", _same),
        (rf"(mul)\.lo\.({_INTEGER})", _same),
        (rf"mad\.lo\.({_INTEGER})", _mad),
        (r"(mul|mad)\.wide\.([su](?:16|32))", _wide),
        (r"mul\.hi\.([su]32)", _high),
        (rf"(div|rem)\.({_INTEGER})", _divide),
        (r"div\.rn\.(f32|f64)", _divide_float),
        (r"rcp\.rn\.(f32|f64)", _reciprocal),
        (r"fma\.rn\.(f32|f64)", _fma),
        (rf"setp\.(eq|ne|lt|le|gt|ge)(u?)\.({_INTEGER}|b16|b32|b64|f32|f64)", _compare),
        (r"setp\.(lo|ls|hi|hs)\.(u16|u32|u64)", _compare_unsigned),
        (r"setp\.(nan|num)\.(f32|f64)", _nan),
        (r"selp\.([subf](?:16|32|64))", _select),
        (r"(shl)\.(b16|b32|b64)", _shift),
        (rf"(shr)\.({_INTEGER}|b32|b64)", _shift),
        (r"mov\.([subf](?:16|32|64)|pred)", _move),
        (r"cvt\.rna\.tf32\.f32", _to_tf32),
        (r"(clz|popc)\.(b32|b64)", _count),
        (r"bfi\.(b32|b64)", _insert),
        (r"prmt\.b32", _permute),
        (r"dp4a\.([su]32)\.([su]32)", _dot),
        (r"dp2a\.(lo|hi)\.([su]32)\.([su]32)", lambda part, a, b: _dot(a, b, part)),
        (r"shf\.([lr])\.wrap\.b32", _funnel),
        (r"cvt(?:\.(rn|rni|rzi|rmi|rpi))?\.([suf](?:8|16|32|64))\.([suf](?:8|16|32|64))", _convert),
    ]
    for pattern, make in forms:
        yield re.compile(pattern), make


_TABLE = list(_table())
