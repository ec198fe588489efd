"""How attribute values are written in HLO text and read back: one codec per spelling.

Fields of an operation that share an attribute name are written together: the codec's value is
then the tuple of their values, in field order (`slice={[0:3:1]}`, `padding=0_1_0`).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, Self, TypeVar

from onnxla.errors import HloError
from onnxla.hlo.module import Computation
from onnxla.hlo.op import Codec

Computations = dict[str, Computation]


class Spelled(Protocol):
    """A value that knows its own text."""

    def __str__(self) -> str: ...

    @classmethod
    def parse(cls, text: str) -> Self: ...


T = TypeVar("T")


@dataclass(frozen=True)
class Plain(Generic[T]):
    """A codec of two functions, for values that need no computations."""

    write: Callable[[T], str]
    read: Callable[[str], T]
    calls: ClassVar[bool] = False

    def format(self, value: T) -> str:
        return self.write(value)

    def parse(self, text: str, computations: Computations) -> T:
        return self.read(text.strip())


class ComputationCodec:
    """`%name`."""

    calls: ClassVar[bool] = True

    def format(self, value: Computation) -> str:
        return f"%{value.name}"

    def parse(self, text: str, computations: Computations) -> Computation:
        name = text.strip().removeprefix("%")
        if name not in computations:
            raise HloError(f"no computation is called {name}")
        return computations[name]


class ComputationsCodec:
    """`{%a, %b}`."""

    calls: ClassVar[bool] = True

    def format(self, value: Sequence[Computation]) -> str:
        return "{" + ", ".join(f"%{c.name}" for c in value) + "}"

    def parse(self, text: str, computations: Computations) -> tuple[Computation, ...]:
        return tuple(COMPUTATION.parse(item, computations) for item in _items(text))


def spelled_by(kind: type[Spelled]) -> Codec:
    """The codec of a class that has `__str__` and `parse`."""
    return Plain(str, kind.parse)


def read_int(text: str) -> int:
    """A decimal integer, or HloError."""
    word = text.strip()
    if not re.fullmatch(r"-?[0-9]{1,19}", word):
        raise HloError(f"expected an integer, got {word!r}")
    return int(word)


def _items(text: str) -> list[str]:
    """The elements of `{a, b}`."""
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        raise HloError(f"expected {{...}}, got {text!r}")
    inner = text[1:-1].strip()
    return [item.strip() for item in inner.split(",")] if inner else []


def _format_ints(values: Sequence[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def _parse_ints(text: str) -> tuple[int, ...]:
    return tuple(read_int(item) for item in _items(text))


def _parse_one(text: str) -> int:
    values = _parse_ints(text)
    if len(values) != 1:
        raise HloError(f"expected one integer in braces, got {text!r}")
    return values[0]


def _parse_bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise HloError(f"expected true or false, got {text!r}")
    return text == "true"


def _parse_word(text: str) -> str:
    if not re.fullmatch(r"[\w.-]+", text):
        raise HloError(f"expected a word, got {text!r}")
    return text


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def quote(value: str) -> str:
    """`value` as a C string literal in ASCII: other bytes of its UTF-8 become octal escapes."""
    out = []
    for character in value:
        if character in _ESCAPES:
            out.append(_ESCAPES[character])
        elif " " <= character <= "~":
            out.append(character)
        else:
            out += [f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogatepass")]
    return f'"{"".join(out)}"'


def unquote(text: str) -> str:
    """The value of a C string literal. Raises HloError when it is not one."""
    if not re.fullmatch(r'"(?:[^"\\]|\\.)*"', text, re.DOTALL):
        raise HloError(f"expected a quoted string, got {text!r}")
    out = bytearray()
    for match in re.finditer(r"\\([0-7]{3})|\\x([0-9a-fA-F]{2})|\\(.)|([^\\]+)", text[1:-1], re.DOTALL):
        octal, hexadecimal, escape, plain = match.groups()
        if octal or hexadecimal:
            out.append(int(octal, 8) & 255 if octal else int(hexadecimal, 16))
        else:
            out += (plain or _UNESCAPES.get(escape, escape)).encode("utf-8", "surrogatepass")
    return out.decode("utf-8", "replace")


Slices = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _format_slices(value: Slices) -> str:
    return "{" + ", ".join(f"[{start}:{limit}:{stride}]" for start, limit, stride in zip(*value, strict=True)) + "}"


def _parse_slices(text: str) -> Slices:
    rows = []
    for item in _items(text):
        parts = item.strip("[]").split(":")
        if not (item.startswith("[") and item.endswith("]") and len(parts) in (2, 3)):
            raise HloError(f"expected [start:limit:stride], got {item!r}")
        rows.append([*map(read_int, parts), *([1] if len(parts) == 2 else [])])
    starts, limits, strides = zip(*rows, strict=True) if rows else ((), (), ())
    return starts, limits, strides


def _format_padding(value: Slices) -> str:
    low, high, interior = value
    rows = [f"{a}_{b}_{c}" if any(interior) else f"{a}_{b}" for a, b, c in zip(low, high, interior, strict=True)]
    return "x".join(rows)


def _parse_padding(text: str) -> Slices:
    rows = []
    for item in text.split("x") if text else []:
        parts = [read_int(part) for part in item.split("_")]
        if len(parts) not in (2, 3):
            raise HloError(f"expected low_high or low_high_interior, got {item!r}")
        rows.append([*parts, 0][:3])
    low, high, interior = zip(*rows, strict=True) if rows else ((), (), ())
    return low, high, interior


INT: Codec = Plain(str, read_int)
INTS: Codec = Plain(_format_ints, _parse_ints)
"""`{1,0}`."""
INT_IN_BRACES: Codec = Plain(lambda value: _format_ints((value,)), _parse_one)
"""`{1}` for a single dimension."""
BOOL: Codec = Plain(lambda value: "true" if value else "false", _parse_bool)
WORD: Codec = Plain(str, _parse_word)
"""An enumerator such as `LT` or `kLoop`."""
STRING: Codec = Plain(quote, unquote)
COMPUTATION: Codec = ComputationCodec()
COMPUTATIONS: Codec = ComputationsCodec()
SLICES: Codec = Plain(_format_slices, _parse_slices)
"""`{[0:3:1], [1:4:1]}` for starts, limits and strides."""
PADDING: Codec = Plain(_format_padding, _parse_padding)
"""`0_1_0x2_2_1` for low, high and interior; interior is left out where all are 0."""
