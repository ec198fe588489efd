"""The values between the angle brackets of `dense<...>`: numbers in nested lists, or bytes as hexadecimal digits."""

import re
from typing import Any

import numpy as np

from onnxla.errors import HloError
from onnxla.frontends.hlo.syntax import Dense, TensorForm
from onnxla.hlo.types import PRED, Array, ElementType

_ITEM = re.compile(
    r"(?a)\s*(?:(?P<mark>[\[\],()])|(?P<word>true|false|[+-]?(?:0x[0-9A-Fa-f]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)))"
)
_LONGEST_NUMBER = 400


def read_dense(text: str, form: TensorForm) -> Dense:
    """The constant whose text between the brackets is `text`. Raises HloError where it does not fit `form`."""
    if not form.is_static:
        raise HloError(f"a constant of type {form}")
    shape = tuple(n or 0 for n in form.shape)
    size = int(np.prod(shape, dtype=object)) if shape else 1
    text = text.strip()
    if not text:
        if size:
            raise HloError(f"{form} needs {size} values, found none")
        return Dense(form, np.zeros(shape, form.element.dtype))
    if text.startswith('"'):
        return Dense(form, _from_bytes(text.strip('"'), form, size, shape))
    words, written = _words(text)
    values = _numbers(words, form.element)
    if written == () and (len(values) == 1):
        return Dense(form, values.reshape(()))
    if written != shape or len(values) != size:
        raise HloError(f"the values have the shape {list(written)}, not that of {form}")
    return Dense(form, values.reshape(shape))


def _from_bytes(digits: str, form: TensorForm, size: int, shape: tuple[int, ...]) -> Array:
    element = form.element
    try:
        data = bytes.fromhex(digits.removeprefix("0x"))
    except ValueError:
        raise HloError("a constant's bytes are not hexadecimal digits") from None
    if element is PRED and size > 1 and len(data) in (1, (size + 7) // 8) and size != len(data):
        if len(data) == 1 and data[0] in (0, 255):
            return np.array(data[0] == 255)
        if len(data) == (size + 7) // 8:
            bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[:size]
            return bits.astype(np.bool_).reshape(shape)
    width = element.dtype.itemsize
    if len(data) == width:
        return np.frombuffer(data, _little(element)).astype(element.dtype).reshape(())
    if len(data) != size * width:
        raise HloError(f"{form} needs {size * width} bytes, found {len(data)}")
    return np.frombuffer(data, _little(element)).astype(element.dtype, copy=False).reshape(shape)


def _little(element: ElementType) -> "np.dtype[np.generic]":
    return element.dtype if element.dtype.kind == "V" else element.dtype.newbyteorder("<")


def _words(text: str) -> tuple[list[str], tuple[int, ...]]:
    """The numbers from left to right (the parts of complex ones in turn), and the shape of the lists around them."""
    words: list[str] = []
    counts: list[list[int]] = []  # for each open list how many items it has so far, then the depth's agreed size
    sizes: dict[int, int] = {}
    depth, at, in_pair, deepest = 0, 0, False, -1
    while at < len(text):
        found = _ITEM.match(text, at)
        if found is None:
            if not text[at:].strip():
                break
            raise HloError(f"{text[at : at + 20].strip()!r} is not a value")
        at = found.end()
        mark, word = found["mark"], found["word"]
        if word is not None:
            if len(word) > _LONGEST_NUMBER:
                raise HloError("a number is too long")
            words.append(word)
            if not in_pair:
                deepest = _same(deepest, depth)
                _count(counts)
        elif mark == "[":
            _count(counts)
            counts.append([0])
            depth += 1
        elif mark == "]":
            if not counts:
                raise HloError("a list is closed that was not opened")
            depth -= 1
            size = counts.pop()[0]
            if sizes.setdefault(depth, size) != size:
                raise HloError("the lists of a constant differ in length")
        elif mark == "(":
            in_pair = True
            deepest = _same(deepest, depth)
            _count(counts)
        elif mark == ")":
            in_pair = False
    if counts:
        raise HloError("a list of values is not closed")
    return words, tuple(sizes[d] for d in sorted(sizes))


def _count(counts: list[list[int]]) -> None:
    if counts:
        counts[-1][0] += 1


def _same(deepest: int, depth: int) -> int:
    if deepest not in (-1, depth):
        raise HloError("the lists of a constant differ in depth")
    return depth


def _numbers(words: list[str], element: ElementType) -> Array:
    if element.is_complex:
        part = np.dtype(np.float32 if element.bits == 64 else np.float64)
        parts = np.array([_number(w, f"f{element.bits // 2}", part) for w in words], part)
        if parts.size % 2:
            raise HloError("a complex number needs two parts")
        return parts.view(element.dtype)
    if element is PRED:
        if not set(words) <= {"true", "false", "0", "1"}:
            raise HloError("a constant of i1 is true or false")
        return np.array([w in ("true", "1") for w in words], np.bool_)
    if element.is_integer:
        return _integers(words, element)
    if not any("x" in w or w in ("true", "false") for w in words):
        with np.errstate(over="ignore"):
            return np.array([float(w) for w in words]).astype(element.dtype)
    return np.array([_number(w, str(element), element.dtype) for w in words], element.dtype)


def _integers(words: list[str], element: ElementType) -> Array:
    low, high = -(1 << (element.bits - 1)), (1 << element.bits) - 1
    values = []
    for word in words:
        try:
            value = int(word, 0) if "x" in word else int(word)
        except ValueError:
            raise HloError(f"{word[:40]} is not an integer of type {element}") from None
        if not low <= value <= high:
            raise HloError(f"{word[:40]} is outside {element}")
        values.append(value)
    wide = np.array([v & high for v in values], np.uint64)
    if element.bits < 8:
        signed = [
            v - (1 << element.bits) if element.is_signed and v >> (element.bits - 1) else v for v in wide.tolist()
        ]
        return np.array(signed, np.int64).astype(element.dtype)
    return wide.astype(f"u{element.bytes}").view(element.dtype)


def _number(word: str, name: str, dtype: "np.dtype[np.generic]") -> Any:
    """A float: a decimal, or its bits."""
    if word in ("true", "false"):
        raise HloError(f"{word} is not a number of type {name}")
    if "x" in word:
        bits = int(word, 16)
        if word.startswith(("-", "+")) or bits >> (8 * dtype.itemsize):
            raise HloError(f"{word[:40]} are not the bits of a number of type {name}")
        return np.array(bits, f"u{dtype.itemsize}").view(dtype)[()]
    with np.errstate(over="ignore"):
        return np.array(float(word)).astype(dtype)[()]
