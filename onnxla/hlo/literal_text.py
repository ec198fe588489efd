"""The value of a constant as HLO text, and back, bit for bit: `{ { 1, -0 }, { inf, nan } }`.

Every finite value is written with the fewest digits that read back to it. A NaN other than the
usual one shows its sign and, where the type has them, its payload bits: `-nan`, `nan(0x400001)`.
"""

import math
import re
from collections.abc import Sequence

import numpy as np

from onnxla.errors import HloError
from onnxla.hlo.types import (
    BF16,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0FNU,
    F16,
    F32,
    F64,
    Array,
    ElementType,
    Kind,
    TensorType,
)

_PAYLOAD_BITS = {F8E5M2: 2, BF16: 7, F16: 10, F32: 23, F64: 52}
"""Mantissa bits of the types whose NaNs have payloads."""

_ONE_NAN = (F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU)
"""Types whose only NaN has no sign."""

_NAN = re.compile(r"(-?)nan(?:\((0x[0-9a-f]{1,13})\))?")
_PART = r"\s*([^\s(),{}]+(?:\(0x[0-9a-f]{1,13}\))?)\s*"
_COMPLEX = re.compile(rf"\({_PART},{_PART}\)")
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?|[+-]?inf")
_BRACES = re.compile(r"[{},]")


def format_literal(array: Array, element: ElementType) -> str:
    """XLA's text for `array`, whose elements have type `element`."""
    return (
        _nest(_words(array.reshape(-1), element), array.shape) if array.ndim else _words(array.reshape(1), element)[0]
    )


def parse_literal(text: str, type: TensorType) -> Array:
    """The array that `text` spells. Raises HloError when it does not fit `type` exactly."""
    if _brace_pairs(type.shape) + type.size > len(text) + 1:
        raise HloError(f"{type} needs {type.size} values, the text is too short for that")
    pairs = _COMPLEX.findall(text) if type.element.is_complex else []
    plain = _COMPLEX.sub("0", text) if type.element.is_complex else text
    _require_nesting(plain, type)
    words = [w.strip() for w in _BRACES.sub(" , ", plain).split(",") if w.strip()]
    if len(words) != type.size or (type.element.is_complex and len(pairs) not in (0, type.size)):
        raise HloError(f"{type} needs {type.size} values, found {len(words)}")
    if type.element.is_complex:
        part = F32 if type.element.bits == 64 else F64
        flat = np.empty(type.size, type.element.dtype)
        flat.real = _values([p[0] for p in pairs] if pairs else words, part)
        flat.imag = _values([p[1] for p in pairs], part) if pairs else 0
    else:
        flat = _values(words, type.element)
    return flat.reshape(type.shape)


def is_long(type: TensorType, most: int) -> bool:
    """The text of a constant of this type has more than `most` values or more than `most` braces."""
    return max(type.size, _brace_pairs(type.shape)) > most


def _brace_pairs(shape: tuple[int, ...]) -> int:
    return sum(math.prod(shape[:d]) for d in range(len(shape)))


def _nest(words: Sequence[str], shape: tuple[int, ...]) -> str:
    """Wrap flat `words` in braces for each dimension, innermost first."""
    rows = list(words)
    for dimension in reversed(range(len(shape))):
        size = shape[dimension]
        groups = range(math.prod(shape[:dimension]))
        space = " " if dimension + 1 < len(shape) and size else ""
        rows = [f"{{{space}{', '.join(rows[i * size : (i + 1) * size])}{space}}}" for i in groups]
    return rows[0]


def _require_nesting(text: str, type: TensorType) -> None:
    """The braces and commas of `text` are those of the shape."""
    found = re.sub(r"[^{},]+", "", text)
    if found != (_nest([""] * type.size, type.shape).replace(" ", "") if type.rank else ""):
        raise HloError(f"the braces do not have the shape of {type}")


def _words(flat: Array, element: ElementType) -> list[str]:
    if element.kind is Kind.PRED:
        return ["true" if v else "false" for v in flat.tolist()] if flat.size == 1 else [str(int(v)) for v in flat]
    if element.is_integer:
        return [str(v) for v in flat.astype(np.uint64 if element.kind is Kind.UNSIGNED else np.int64).tolist()]
    if element.is_complex:
        part = F32 if element.bits == 64 else F64
        return [f"({re}, {im})" for re, im in zip(_words(flat.real, part), _words(flat.imag, part), strict=True)]
    wide = flat if element in (F32, F64) else flat.astype(np.float32)
    words = [word.removesuffix(".0") for word in wide.astype(np.str_).tolist()]
    for i in np.flatnonzero(np.isnan(wide)).tolist():
        words[i] = _nan_word(flat[i : i + 1], element)
    return words


def _nan_word(one: Array, element: ElementType) -> str:
    bits = int(one.view(f"u{element.bytes}")[0])
    sign = "-" if bits >> (element.bits - 1) and element not in _ONE_NAN else ""
    if element not in _PAYLOAD_BITS:
        return f"{sign}nan"
    width = _PAYLOAD_BITS[element]
    payload = bits & ((1 << width) - 1)
    return f"{sign}nan" if payload == 1 << (width - 1) else f"{sign}nan({payload:#x})"


def _values(words: Sequence[str], element: ElementType) -> Array:
    """The flat array of `words`."""
    if element.kind is Kind.PRED:
        return np.array([_boolean(w) for w in words], np.bool_)
    if element.is_integer:
        return _integers(words, element)
    nans = {i: m for i, w in enumerate(words) if (m := _NAN.fullmatch(w))}
    for i, word in enumerate(words):
        if i not in nans and not _NUMBER.fullmatch(word):
            raise HloError(f"{word[:40]!r} is not a number of type {element}")
    exact = np.array([1.0 if i in nans else float(w) for i, w in enumerate(words)], np.float64)
    with np.errstate(over="ignore"):
        flat = exact.astype(element.dtype)
    kept = np.isfinite(flat.astype(np.float64)) == np.isfinite(exact)
    wrong = (
        ~kept
        | np.isnan(flat.astype(np.float64))
        | (np.isinf(exact) & np.array(["inf" not in w for w in words], np.bool_))
    )
    if wrong.any():
        raise HloError(f"{words[int(np.argmax(wrong))][:40]} is outside {element}")
    for i, match in nans.items():
        flat[i : i + 1] = _nan(match, element)
    return flat


def _nan(match: re.Match[str], element: ElementType) -> Array:
    sign, payload = match.groups()
    nan = np.array([np.nan]).astype(element.dtype)
    if element in _PAYLOAD_BITS:
        width = _PAYLOAD_BITS[element]
        bits = int(payload, 16) if payload else 1 << (width - 1)
        if not 0 < bits < 1 << width:
            raise HloError(f"{match[0]} has no such payload in {element}")
        exponent = ((1 << (element.bits - 1 - width)) - 1) << width
        return np.array([exponent | bits | (bool(sign) << (element.bits - 1))], f"u{element.bytes}").view(element.dtype)
    if payload:
        raise HloError(f"NaNs of {element} have no payload")
    if not np.isnan(nan.astype(np.float32))[0]:
        raise HloError(f"{element} has no NaN")
    return -nan if sign else nan


def _integers(words: Sequence[str], element: ElementType) -> Array:
    low = -(1 << (element.bits - 1)) if element.is_signed else 0
    high = (1 << (element.bits - element.is_signed)) - 1
    values = []
    for word in words:
        if not _INTEGER.fullmatch(word) and word not in ("true", "false"):
            raise HloError(f"{word[:40]!r} is not an integer of type {element}")
        value = int(word) if word not in ("true", "false") else int(word == "true")
        if not low <= value <= high:
            raise HloError(f"{word} is outside {element}, which holds {low} to {high}")
        values.append(value)
    return np.array(values, np.uint64 if low == 0 else np.int64).astype(element.dtype)


def _boolean(word: str) -> bool:
    if word in ("true", "1"):
        return True
    if word in ("false", "0"):
        return False
    raise HloError(f"{word[:40]!r} is neither true nor false")
