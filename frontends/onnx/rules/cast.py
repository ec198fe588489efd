"""Cast, CastLike and BitCast: conversion between element types.

Integers wrap, floats overflow to infinity, and float8 saturates unless the model says otherwise.
Floats outside an integer type's range are undefined in ONNX; HLO's convert saturates them.
"""

from collections.abc import Sequence

import ml_dtypes
import numpy as np
from onnx import TensorProto

from onnxla.frontends.onnx.element_types import code_of_element, element_of_code
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.values import ChosenStrings, StringConstant, Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import (
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0FNU,
    F32,
    F64,
    S2,
    S4,
    S32,
    U2,
    U4,
    U8,
    U32,
    Array,
    ElementType,
)

SATURATING = (F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ)
SUB_BYTE_INTEGERS = (S2, S4, U2, U4)
STRING = TensorProto.STRING
MANTISSA_BITS_OF_SINGLE = 23
INFINITE_EXPONENT = 0xFF
LARGEST_EXPONENT = 0xFE


@onnx_op("Cast", until=5)
def cast_to_named_type(node: NodeView, b: Builder) -> Instruction:
    """Opsets 1 to 5 spell the type as a string."""
    name = node.string("to")
    if name not in TensorProto.DataType.keys():
        node.unsupported(f"the data type {name} is not known", "the names are those of TensorProto.DataType")
    element = element_of_code(TensorProto.DataType.Value(name))
    return convert(node, b, node.input(0), element)


@onnx_op("Cast", since=6)
def cast(node: NodeView, b: Builder) -> Value:
    return cast_to(node, b, node.int("to"))


@onnx_op("CastLike", since=15)
def cast_like(node: NodeView, b: Builder) -> Value:
    like = node.value(1)
    return cast_to(node, b, code_of_element(like.tensor_type.element) if isinstance(like, Instruction) else STRING)


def cast_to(node: NodeView, b: Builder, code: int) -> Value:
    """Input 0 as the element type `code`. Strings are read as numbers where they are known."""
    element = None if code == STRING else element_of_code(code)
    if element is F8E8M0FNU:
        _round_mode(node)  # it may be wrong whatever the input is
    x = node.value(0)
    if element is None:
        return x if isinstance(x, (StringConstant, ChosenStrings)) else _written(node)
    if isinstance(x, StringConstant):
        return b.constant(_read(node, x.array.reshape(-1).tolist(), element).reshape(x.array.shape))
    node.require_closed(x)
    if isinstance(x, ChosenStrings):
        return b.take(b.constant(_read(node, x.table, element)), x.places, 0)
    return convert(node, b, node.input(0), element)


def _written(node: NodeView) -> Value:
    """Numbers as strings: those that are known."""
    numbers = node.known(0)
    if numbers is None:
        node.unsupported("numbers that are computed cannot become strings", "cast after the model has run")
    if numbers.dtype.kind not in "iub":
        node.unsupported(f"{numbers.dtype} numbers cannot become strings", "the standard leaves their digits open")
    array = np.array([str(int(n)) for n in numbers.reshape(-1)], object)
    return StringConstant(array.reshape(numbers.shape))


def _read(node: NodeView, strings: Sequence[str], element: ElementType) -> Array:
    """The numbers that strings spell, as in "3.14", "1e-5", "-inf", "NaN"."""
    try:
        numbers = [int(s) if element.is_integer else float(s) for s in strings]
        return np.array(numbers, element.dtype)
    except (ValueError, OverflowError) as error:
        node.unsupported(f"the strings are no {element} numbers: {error}", "correct the strings")


@onnx_op("BitCast", since=26)
def bit_cast(node: NodeView, b: Builder) -> Instruction:
    element, x = node.element("to"), node.input(0)
    if element.bits != x.tensor_type.element.bits:
        node.shape_error(f"{x.tensor_type.element} and {element} differ in width")
    return b.bitcast_convert(x, x.tensor_type.with_element(element))


def convert(node: NodeView, b: Builder, x: Instruction, element: ElementType) -> Instruction:
    """`x` in `element`, with the node's attributes `saturate` and `round_mode`.

    Floats become 2- and 4-bit integers as in onnxruntime: rounded, halves away from zero, and then wrapped.
    """
    if x.tensor_type.element is element:
        return x
    saturate = bool(node.int("saturate", 1))
    if element is F8E8M0FNU:
        return _to_power_of_two(b, x, _round_mode(node), saturate)
    if saturate and element in SATURATING:
        x = x if x.tensor_type.element is F64 else b.convert(x, F32)
        limit = float(ml_dtypes.finfo(element.dtype).max)  # type: ignore[no-untyped-call]
        source = x.tensor_type.element
        x = b.clamp(b.constant(-limit, source), x, b.constant(limit, source))
    if element in SUB_BYTE_INTEGERS and x.tensor_type.element.is_float:
        x = b.convert(b.unary("round-nearest-afz", x), S32)
    return b.convert(x, element)


def _round_mode(node: NodeView) -> str:
    """How a number becomes a power of two."""
    return node.word("round_mode", ("up", "nearest", "down"), "up")


def _to_power_of_two(b: Builder, x: Instruction, round_mode: str, saturate: bool) -> Instruction:
    """f8e8m0fnu holds the exponent of an f32 alone, so rounding is integer arithmetic on its bits.

    NaN and infinity become NaN. The sign is dropped; ONNX leaves negative numbers undefined.
    """
    single = b.convert(x, F32)
    bits = b.bitcast_convert(single, single.tensor_type.with_element(U32))

    def word(value: int) -> Instruction:
        return b.full_like(bits, value)

    shifted = b.binary("shift-right-logical", bits, word(MANTISSA_BITS_OF_SINGLE))
    exponent = b.and_(shifted, word(INFINITE_EXPONENT))
    fraction = b.and_(bits, word((1 << MANTISSA_BITS_OF_SINGLE) - 1))
    half = word(1 << (MANTISSA_BITS_OF_SINGLE - 1))
    match round_mode:
        case "up":
            up = b.compare(fraction, word(0), "GT")
        case "nearest":
            # A tie goes up, except from the subnormal exponent 0 to 1.
            tie = b.and_(b.compare(fraction, half, "EQ"), b.compare(exponent, word(0), "GT"))
            up = b.or_(b.compare(fraction, half, "GT"), tie)
        case _:
            up = b.compare(bits, bits, "NE")
    ceiling = LARGEST_EXPONENT if saturate else INFINITE_EXPONENT
    finite = b.compare(exponent, word(INFINITE_EXPONENT), "LT")
    rounded = b.minimum(b.add(exponent, b.convert(up, U32)), word(ceiling))
    byte = b.convert(b.select(finite, rounded, word(INFINITE_EXPONENT)), U8)
    return b.bitcast_convert(byte, byte.tensor_type.with_element(F8E8M0FNU))
