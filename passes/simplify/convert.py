"""Chains of conversions between element types."""

import ml_dtypes
import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.numerics import integer_limits
from onnxla.hlo.ops.shape import Broadcast
from onnxla.hlo.types import F32, F64, PRED, S32, Array, ElementType
from onnxla.passes.pattern import operation, splat, splat_value, variables
from onnxla.passes.rewrite import NoMatch, Replacement, RuleTable

CONVERT = RuleTable()
rule = CONVERT.rule

x, c, d, e, f = variables("x c d e f")
convert, clamp = operation("convert", 1), operation("clamp", 3)
maximum, minimum = operation("maximum", 2), operation("minimum", 2)
add, subtract, nearest = operation("add", 2), operation("subtract", 2), operation("round-nearest-even", 1)


def holds(wide: ElementType, narrow: ElementType) -> bool:
    """Whether every value of `narrow` is a value of `wide`, so that converting there and back changes nothing."""
    if wide is narrow or narrow is PRED:
        return True
    if wide is PRED or wide.is_complex or narrow.is_complex:
        return False
    if narrow.is_integer:
        if wide.is_integer:
            return (
                wide.bits > narrow.bits
                and (wide.is_signed or not narrow.is_signed)
                or (wide.bits == narrow.bits and wide.is_signed == narrow.is_signed)
            )
        return narrow.bits - narrow.is_signed <= _precision(wide) and wide.bits >= 16
    if wide.is_integer or narrow.bits < 16:
        return wide.is_float and wide.bits >= 32 and narrow.bits < 16
    return wide.bits > narrow.bits


def _precision(element: ElementType) -> int:
    """Bits of a float's significand, the hidden one included."""
    return int(ml_dtypes.finfo(element.dtype).nmant) + 1  # type: ignore[no-untyped-call]


@rule(convert(x, e))
def convert_to_the_same_type(x: Instruction, root: Instruction) -> Replacement:
    """convert(x, type of x) == x"""
    return x if x.type == root.type else NoMatch("another type")


@rule(convert(convert(x, e), f))
def merge_converts(b: Builder, x: Instruction, e: ElementType, f: ElementType) -> Replacement:
    """convert(convert(x, e), f) == convert(x, f), where e holds every value of x."""
    if not holds(e, x.tensor_type.element):
        return NoMatch("the first conversion changes values")
    return b.convert(x, f)


@rule(convert(clamp(splat(c), x, splat(d)), e))
def saturate_by_converting(b: Builder, x: Instruction, c: Array, d: Array, e: ElementType) -> Replacement:
    """convert(clamp(c, x, d)) == convert(x), where integers of the type end before the bounds: it saturates itself."""
    if not (_saturates(x, e) and _lies_below(c, e) and _lies_above(d, e)):
        return NoMatch("a bound binds")
    return b.convert(x, e)


@rule(convert(maximum(x, splat(c)), e))
def saturate_below_by_converting(b: Builder, x: Instruction, c: Array, e: ElementType) -> Replacement:
    """convert(maximum(x, c)) == convert(x), where integers of the type end before c: u8 after relu."""
    return b.convert(x, e) if _saturates(x, e) and _lies_below(c, e) else NoMatch("the bound binds")


@rule(convert(minimum(x, splat(d)), e))
def saturate_above_by_converting(b: Builder, x: Instruction, d: Array, e: ElementType) -> Replacement:
    """convert(minimum(x, d)) == convert(x), where integers of the type end before d."""
    return b.convert(x, e) if _saturates(x, e) and _lies_above(d, e) else NoMatch("the bound binds")


@rule(convert(x, e))
def saturate_by_quantising(b: Builder, x: Instruction, e: ElementType) -> Replacement:
    """convert(round(bounded(y, c)) + d) == convert(round(y) + d), where the integers of the type end before c + d."""
    shift = splat_value(x.operands[1]) if x.op.opcode == "add" else np.zeros((), np.float32)
    rounded = x.operands[0] if x.op.opcode == "add" else x
    if rounded.op.opcode != "round-nearest-even" or shift is None or not float(shift).is_integer():
        return NoMatch("no rounding to a grid")
    bounded = rounded.operands[0]
    if bounded.op.opcode not in ("maximum", "minimum") or not _saturates(x, e):
        return NoMatch("no bound")
    bound = splat_value(bounded.operands[1])
    lies_beyond = _lies_below if bounded.op.opcode == "maximum" else _lies_above
    if bound is None or not lies_beyond(np.asarray(float(bound) + float(shift)), e):
        return NoMatch("the bound binds")
    free = b.unary("round-nearest-even", bounded.operands[0])
    return b.convert(b.add(free, x.operands[1]) if x.op.opcode == "add" else free, e)


@rule(nearest(convert(x, e)))
def round_an_integer(root: Instruction, x: Instruction) -> Replacement:
    """round(convert(x)) == convert(x), for integers."""
    return root.operands[0] if x.tensor_type.element.is_integer else NoMatch("not an integer")


@rule(add(convert(subtract(convert(x, e), splat(c)), f), splat(d)))
def zero_point_there_and_back(
    b: Builder, x: Instruction, e: ElementType, f: ElementType, c: Array, d: Array
) -> Replacement:
    """convert(convert(x) - d) + d == convert(x), for bytes and a float type: nothing is rounded."""
    narrow = x.tensor_type.element.is_integer and x.tensor_type.element.bits <= 8
    if not (narrow and e is S32 and f in (F32, F64) and c == d and abs(int(c)) < 1 << 16):
        return NoMatch("another zero point, or types that round")
    return b.convert(x, f)


def _saturates(x: Instruction, e: ElementType) -> bool:
    return x.tensor_type.element.is_float and e.is_integer


def _lies_below(bound: Array, e: ElementType) -> bool:
    return float(bound) <= integer_limits(e)[0]


def _lies_above(bound: Array, e: ElementType) -> bool:
    return float(bound) >= integer_limits(e)[1]


@rule(convert(x, e))
def convert_before_broadcasting(b: Builder, x: Instruction, e: ElementType) -> Replacement:
    """convert(broadcast(x)) == broadcast(convert(x))"""
    if not isinstance(x.op, Broadcast) or x.operands[0].tensor_type.size >= x.tensor_type.size:
        return NoMatch("no broadcast")
    return b.broadcast(b.convert(x.operands[0], e), x.shape, x.op.dimensions)


@rule(operation("compare", 2)(convert(x, e), variables("y")[0]))
def compare_flags(b: Builder, x: Instruction, y: Instruction, root: Instruction) -> Replacement:
    """convert(flag) != 0 == flag, and convert(flag) == 0 == not(flag)."""
    value = splat_value(y)
    direction = root.op.direction  # type: ignore[attr-defined]  # the pattern says it is a compare
    if x.tensor_type.element is not PRED or value is None or not np.array_equal(value, np.zeros_like(value)):
        return NoMatch("no flag compared with 0")
    match direction:
        case "NE":
            return x
        case "EQ":
            return b.not_(x)
    return NoMatch("another comparison")
