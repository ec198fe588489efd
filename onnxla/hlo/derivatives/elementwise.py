"""Derivatives of operations on single elements. Of reals: complex values have none here."""

import math
from collections.abc import Callable

from onnxla.hlo.builder import Builder
from onnxla.hlo.derivatives.rule import NoDerivativeError, Parts, Rule, derivative
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.shape import Broadcast
from onnxla.hlo.ops.structural import Constant

Factor = Callable[[Builder, Instruction, Instruction], Instruction]
"""f'(x) from x and y = f(x)."""


def require_real(*values: Instruction) -> None:
    """Raise NoDerivativeError for complex values."""
    if any(v.tensor_type.element.is_complex for v in values):
        raise NoDerivativeError("complex values have no derivative here")


def _unary(factor: Factor) -> Rule:
    def rule(b: Builder, y: Instruction, g: Instruction) -> Parts:
        require_real(y, *y.operands)
        return [b.multiply(g, factor(b, y.operands[0], y))]

    return rule


def _one(b: Builder, x: Instruction) -> Instruction:
    return b.full_like(x, 1)


def _square(b: Builder, x: Instruction) -> Instruction:
    return b.multiply(x, x)


def _inverse(b: Builder, x: Instruction) -> Instruction:
    return b.divide(_one(b, x), x)


def _root(b: Builder, x: Instruction) -> Instruction:
    return b.unary("sqrt", x)


FACTORS: dict[str, Factor] = {
    "abs": lambda b, x, y: b.unary("sign", x),
    "exponential": lambda b, x, y: y,
    "exponential-minus-one": lambda b, x, y: b.exponential(x),
    "log": lambda b, x, y: _inverse(b, x),
    "log-plus-one": lambda b, x, y: _inverse(b, b.add(x, _one(b, x))),
    "tanh": lambda b, x, y: b.subtract(_one(b, y), _square(b, y)),
    "logistic": lambda b, x, y: b.multiply(y, b.subtract(_one(b, y), y)),
    "sqrt": lambda b, x, y: b.divide(b.full_like(y, 0.5), y),
    "rsqrt": lambda b, x, y: b.multiply(b.full_like(y, -0.5), b.divide(y, x)),
    "cbrt": lambda b, x, y: b.divide(b.full_like(y, 1 / 3), _square(b, y)),
    "sine": lambda b, x, y: b.unary("cosine", x),
    "cosine": lambda b, x, y: b.negate(b.unary("sine", x)),
    "tan": lambda b, x, y: b.add(_one(b, y), _square(b, y)),
    "sinh": lambda b, x, y: b.unary("cosh", x),
    "cosh": lambda b, x, y: b.unary("sinh", x),
    "asin": lambda b, x, y: b.unary("rsqrt", b.subtract(_one(b, x), _square(b, x))),
    "acos": lambda b, x, y: b.negate(b.unary("rsqrt", b.subtract(_one(b, x), _square(b, x)))),
    "asinh": lambda b, x, y: b.unary("rsqrt", b.add(_square(b, x), _one(b, x))),
    "acosh": lambda b, x, y: _inverse(
        b, b.multiply(_root(b, b.subtract(x, _one(b, x))), _root(b, b.add(x, _one(b, x))))
    ),
    "atanh": lambda b, x, y: _inverse(b, b.subtract(_one(b, x), _square(b, x))),
    "erf": lambda b, x, y: b.multiply(b.full_like(x, 2 / math.sqrt(math.pi)), b.exponential(b.negate(_square(b, x)))),
}

for _opcode, _factor in FACTORS.items():
    derivative(_opcode)(_unary(_factor))


@derivative("ceil", "floor", "round-nearest-afz", "round-nearest-even", "sign")
def steps(b: Builder, y: Instruction, g: Instruction) -> Parts:
    """Nothing where they are constant, which is everywhere but at the steps."""
    return [None]


@derivative("negate")
def negate(b: Builder, y: Instruction, g: Instruction) -> Parts:
    return [b.negate(g)]


@derivative("add")
def add(b: Builder, y: Instruction, g: Instruction) -> Parts:
    return [g, g]


@derivative("subtract")
def subtract(b: Builder, y: Instruction, g: Instruction) -> Parts:
    return [g, b.negate(g)]


@derivative("multiply")
def multiply(b: Builder, y: Instruction, g: Instruction) -> Parts:
    require_real(y)
    return [b.multiply(g, y.operands[1]), b.multiply(g, y.operands[0])]


@derivative("divide")
def divide(b: Builder, y: Instruction, g: Instruction) -> Parts:
    require_real(y)
    part = b.divide(g, y.operands[1])
    return [part, b.negate(b.multiply(part, y))]


@derivative("remainder")
def remainder(b: Builder, y: Instruction, g: Instruction) -> Parts:
    """x - n * truncated(x / n)."""
    quotient = b.divide(*y.operands)
    whole = b.multiply(b.unary("sign", quotient), b.unary("floor", b.unary("abs", quotient)))
    return [g, b.negate(b.multiply(g, whole))]


@derivative("power")
def power(b: Builder, y: Instruction, g: Instruction) -> Parts:
    """By the base p * x ** (p - 1), 0 for a power of 0; by the exponent y * log x, 0 where x is 0."""
    require_real(y)
    x, p = y.operands
    zero, one = b.full_like(x, 0), b.full_like(x, 1)
    less = b.power(x, b.subtract(p, one))
    by_base = b.select(b.compare(p, zero, "EQ"), zero, b.multiply(p, less))
    at_zero = b.compare(x, zero, "EQ")
    logarithm = b.unary("log", b.select(at_zero, one, x))
    by_exponent = b.select(at_zero, zero, b.multiply(y, logarithm))
    return [b.multiply(g, by_base), b.multiply(g, by_exponent)]


@derivative("atan2")
def atan2(b: Builder, y: Instruction, g: Instruction) -> Parts:
    require_real(y)
    upper, lower = y.operands
    each = b.divide(g, b.add(_square(b, upper), _square(b, lower)))
    return [b.multiply(each, lower), b.negate(b.multiply(each, upper))]


def _is_constant(value: Instruction) -> bool:
    while isinstance(value.op, Broadcast):
        value = value.operands[0]
    return isinstance(value.op, Constant)


def _larger(b: Builder, y: Instruction, g: Instruction, direction: str) -> Parts:
    """All goes to the operand that is the result; of equals to a constant (max(x, 0) has 0 at 0), else to the first."""
    lhs, rhs = y.operands
    strict = _is_constant(rhs)
    first = b.compare(lhs, rhs, direction[0] + ("T" if strict else "E"))
    zero = b.full_like(g, 0)
    return [b.select(first, g, zero), b.select(first, zero, g)]


@derivative("maximum")
def maximum(b: Builder, y: Instruction, g: Instruction) -> Parts:
    return _larger(b, y, g, "GE")


@derivative("minimum")
def minimum(b: Builder, y: Instruction, g: Instruction) -> Parts:
    return _larger(b, y, g, "LE")


@derivative("clamp")
def clamp(b: Builder, y: Instruction, g: Instruction) -> Parts:
    """To the operand within its bounds; bounds that are values of their own have none here."""
    low, x, high = y.operands
    if not (_is_constant(low) and _is_constant(high)):
        raise NoDerivativeError("the derivative of clamp by its bounds is not known")
    low, high = b.broadcast_scalar(low, x.shape), b.broadcast_scalar(high, x.shape)
    inside = b.and_(b.compare(low, x, "LE"), b.compare(x, high, "LE"))
    return [None, b.select(inside, g, b.full_like(g, 0)), None]


@derivative("select")
def select(b: Builder, y: Instruction, g: Instruction) -> Parts:
    zero = b.full_like(g, 0)
    return [None, b.select(y.operands[0], g, zero), b.select(y.operands[0], zero, g)]


@derivative("convert")
def convert(b: Builder, y: Instruction, g: Instruction) -> Parts:
    return [b.convert(g, y.operands[0].tensor_type.element)]
