"""What each elementwise HLO operation computes, over registers.

`emit(b, op, element, operands)` takes values in the compute type of `element` (the operands'
element type) and returns one in the compute type of the result, not yet rounded to a narrow type.
Edge cases are XLA's: NaN wins in maximum and minimum, integers divide without a trap, shifts by
the width or more give zero or the sign.
"""

from collections.abc import Callable
from typing import Any

from onnxla.codegen.kernels import math, storage
from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.errors import InternalError
from onnxla.hlo.op import Op
from onnxla.hlo.types import PRED, ElementType

Emitter = Callable[[KernelBuilder, ElementType, list[Value]], Value]


def emit(b: KernelBuilder, op: Op, element: ElementType, operands: list[Value]) -> Value:
    """The result of an elementwise operation on one element or vector. Raises InternalError for others."""
    opcode = op.opcode
    if opcode == "compare":
        return b.compare(_field(op, "direction"), operands[0], operands[1])
    if opcode == "convert":
        return storage.convert(b, operands[0], element, _field(op, "element"))
    if opcode == "bitcast-convert":
        return storage.bitcast(b, operands[0], element, _field(op, "type").element)
    if opcode in _OPERATIONS:
        return _OPERATIONS[opcode](b, element, operands)
    if opcode in math.UNARY:
        return math.UNARY[opcode](b, operands[0])
    raise InternalError(f"no kernel computes {opcode} elementwise")


def is_elementwise(opcode: str) -> bool:
    """Whether `emit` knows the opcode."""
    return opcode in _OPERATIONS or opcode in math.UNARY or opcode in ("compare", "convert", "bitcast-convert")


def _field(op: Op, name: str) -> Any:
    return getattr(op, name)


def _primitive(opcode: str) -> Emitter:
    return lambda b, element, operands: b.binary(opcode, *operands)


def _unary(opcode: str) -> Emitter:
    return lambda b, element, operands: b.unary(opcode, operands[0])


def _extreme(opcode: str) -> Emitter:
    """maximum or minimum: NaN when either operand is NaN."""

    def emit_extreme(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
        x, y = operands
        if not x.element.is_float:
            return b.binary(opcode, x, y)
        # the kernel op gives its second operand for NaN, so a constant goes first and costs nothing more
        if _is_number(y):
            return b.binary(opcode, y, x)
        if _is_number(x):
            return b.binary(opcode, x, y)
        return b.select(b.compare("NE", x, x), x, b.binary(opcode, x, y))

    return emit_extreme


def _is_number(value: Value) -> bool:
    inner = value.operands[0] if value.opcode == "splat" else value
    return inner.is_constant and inner.attributes[0] == inner.attributes[0]


def _divide(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    x, y = operands
    if x.element.is_float:
        return b.div(x, y)
    zero, safe = _safe_divisor(b, element, x, y)
    quotient = b.div(x, safe)
    if element.is_signed:  # the smallest number by -1 wraps to itself, which is what dividing by 1 gave
        quotient = b.select(b.compare("EQ", y, b.const(-1, y.element)), b.unary("neg", x), quotient)
    return b.select(zero, b.unary("not", b.const(0, y.element, y.lanes)), quotient)


def _remainder(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    x, y = operands
    if x.element.is_float:
        return math.BINARY["remainder"](b, x, y)
    zero, safe = _safe_divisor(b, element, x, y)
    rest = b.binary("rem", x, safe)
    return b.select(zero, x, rest)


def _safe_divisor(b: KernelBuilder, element: ElementType, x: Value, y: Value) -> tuple[Value, Value]:
    """Whether the divisor is zero, and the divisor with 1 in place of 0 and -1, which would trap."""
    zero = b.compare("EQ", y, b.const(0, y.element))
    unsafe = b.or_(zero, b.compare("EQ", y, b.const(-1, y.element))) if element.is_signed else zero
    return zero, b.select(unsafe, b.const(1, y.element), y)


def _power(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    x, y = operands
    if x.element.is_float:
        return math.BINARY["power"](b, x, y)
    # square and multiply over the exponent's bits; a negative exponent leaves 0, but for bases 1 and -1
    result = b.const(1, x.element, x.lanes)
    zero, one = b.const(0, x.element), b.const(1, x.element)
    base, exponent = x, y
    with b.loop(0, element.bits, carry=[b.splat(v, max(x.lanes, y.lanes)) for v in (result, base, exponent)]) as loop:
        result, base, exponent = loop.carried
        odd = b.compare("NE", b.and_(exponent, one), zero)
        result = b.select(odd, b.mul(result, base), result)
        logical = storage.shift_right_logical(b, exponent, 1)
        loop.yield_(result, b.mul(base, base), logical)
    result = loop.results[0]
    if not element.is_signed:
        return result
    minus_one = b.const(-1, x.element)
    alternating = b.select(b.compare("NE", b.and_(y, one), zero), minus_one, one)
    inverse = b.select(b.compare("EQ", x, one), one, b.select(b.compare("EQ", x, minus_one), alternating, zero))
    return b.select(b.compare("LT", y, zero), inverse, result)


def _sign(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    (x,) = operands
    zero, one = b.const(0, x.element), b.const(1, x.element)
    positive = b.compare("GT", x, zero)
    if not x.element.is_float and not element.is_signed:
        return b.select(positive, one, zero)
    negative = b.compare("LT", x, zero)
    return b.select(positive, one, b.select(negative, b.const(-1, x.element), x))


def _clamp(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    low, x, high = operands
    return _extreme("min")(b, element, [_extreme("max")(b, element, [low, x]), high])


def _select(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    condition, on_true, on_false = operands
    return b.select(condition, on_true, on_false)


def _negate(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    return b.unary("neg", operands[0])


def _abs(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    (x,) = operands
    return x if x.element.is_integer and not element.is_signed else b.unary("abs", x)


def _not(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    return b.not_(operands[0]) if element is PRED else b.unary("not", operands[0])


def _is_finite(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    (x,) = operands
    return b.compare("LT", b.unary("abs", x), b.const(float("inf"), x.element))


def _shift(opcode: str) -> Emitter:
    def emit_shift(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
        x, amount = operands
        unsigned = storage.unsigned_of(x.element)
        wide = b.bitcast(amount, unsigned)
        last = b.const(element.bits - 1, unsigned)
        inside = b.compare("LE", wide, last)
        kept = b.bitcast(b.min(wide, last), x.element)
        if opcode == "shift-right-arithmetic":
            signed = storage.signed_of(x.element)
            surplus = b.const(x.element.bits - element.bits, signed)  # the sign of a narrow type is moved to the top
            lifted = b.binary("shl", b.bitcast(x, signed), surplus)
            shifted = b.binary("shr", lifted, b.add(b.bitcast(kept, signed), surplus))
            return b.bitcast(shifted, x.element)
        if opcode == "shift-left":
            shifted = b.binary("shl", x, kept)
        else:
            low = b.and_(x, b.const(storage.low_bits(element, x.element), x.element))
            shifted = b.bitcast(b.binary("shr", b.bitcast(low, unsigned), b.bitcast(kept, unsigned)), x.element)
        return b.select(inside, shifted, b.const(0, x.element))

    return emit_shift


def _count_leading_zeros(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    (x,) = operands
    masked = b.and_(x, b.const(storage.low_bits(element, x.element), x.element))
    surplus = x.element.bits - element.bits
    return b.sub(b.unary("clz", masked), b.const(surplus, x.element))


def _population_count(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    (x,) = operands
    return b.unary("popcnt", b.and_(x, b.const(storage.low_bits(element, x.element), x.element)))


def _round_half_away(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    (x,) = operands
    size = b.unary("abs", x)
    whole = b.unary("trunc", size)
    away = b.compare("GE", b.sub(size, whole), b.const(0.5, x.element))
    rounded = b.add(whole, b.select(away, b.const(1.0, x.element), b.const(0.0, x.element)))
    return _copy_sign(b, rounded, x)


def _copy_sign(b: KernelBuilder, size: Value, sign: Value) -> Value:
    unsigned = storage.unsigned_of(size.element)
    top = b.const(1 << (unsigned.bits - 1), unsigned)
    rest = b.const((1 << (unsigned.bits - 1)) - 1, unsigned)
    bits = b.or_(b.and_(b.bitcast(size, unsigned), rest), b.and_(b.bitcast(sign, unsigned), top))
    return b.bitcast(bits, size.element)


def _add_bits(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    return b.binary("or" if element is PRED else "add", *operands)


def _multiply_bits(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    return b.binary("and" if element is PRED else "mul", *operands)


def _atan2(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    return math.BINARY["atan2"](b, *operands)


def _itself(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    return operands[0]


def _zero(b: KernelBuilder, element: ElementType, operands: list[Value]) -> Value:
    return b.const(0, operands[0].element, operands[0].lanes)


_OPERATIONS: dict[str, Emitter] = {
    "real": _itself,  # of real numbers: complex ones are pairs of values by now
    "imag": _zero,
    "add": _add_bits,
    "subtract": _primitive("sub"),
    "multiply": _multiply_bits,
    "divide": _divide,
    "remainder": _remainder,
    "maximum": _extreme("max"),
    "minimum": _extreme("min"),
    "power": _power,
    "atan2": _atan2,
    "and": _primitive("and"),
    "or": _primitive("or"),
    "xor": _primitive("xor"),
    "shift-left": _shift("shift-left"),
    "shift-right-arithmetic": _shift("shift-right-arithmetic"),
    "shift-right-logical": _shift("shift-right-logical"),
    "negate": _negate,
    "abs": _abs,
    "sign": _sign,
    "sqrt": _unary("sqrt"),
    "floor": _unary("floor"),
    "ceil": _unary("ceil"),
    "round-nearest-even": _unary("rint"),
    "round-nearest-afz": _round_half_away,
    "not": _not,
    "is-finite": _is_finite,
    "popcnt": _population_count,
    "count-leading-zeros": _count_leading_zeros,
    "select": _select,
    "clamp": _clamp,
}
