"""Arithmetic identities. They hold for NaN, infinities and both zeros, or are marked `exact=False`."""

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.elementwise import Elementwise
from onnxla.hlo.ops.shape import Broadcast
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import PRED, Array
from onnxla.passes.pattern import any_of, constant, elementwise_opcodes, operation, splat, splat_value, variables
from onnxla.passes.rewrite import NoMatch, Replacement, RuleTable

ARITHMETIC = RuleTable()
rule = ARITHMETIC.rule

x, y, c, d = variables("x y c d")
add, subtract, multiply, divide = (operation(name, 2) for name in ("add", "subtract", "multiply", "divide"))
power, remainder, xor, and_, or_ = (operation(name, 2) for name in ("power", "remainder", "xor", "and", "or"))
negate, not_, abs_ = (operation(name, 1) for name in ("negate", "not", "abs"))
sqrt, exponential, logarithm = (operation(name, 1) for name in ("sqrt", "exponential", "log"))

COMMUTATIVE = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")


def is_constant_like(instruction: Instruction) -> bool:
    return isinstance(instruction.op, Constant) or splat_value(instruction) is not None


def full(b: Builder, like: Instruction, value: Array) -> Instruction:
    """The scalar `value` in the shape of `like`."""
    return b.broadcast_scalar(b.constant(value), like.shape)


# Order and number of constants


@rule(constant(c))
def uniform_constant(b: Builder, c: Array, root: Instruction) -> Replacement:
    """An array of one number repeated is that number, broadcast."""
    flat = c.reshape(-1)
    if c.ndim == 0 or c.size < 2:
        return NoMatch("one element")
    # most arrays differ early or far apart, which spares reading all of a mapped file
    for sample in (flat[:64], flat[:: max(1, c.size // 64)], flat):
        if sample.tobytes() != flat[:1].tobytes() * sample.size:
            return NoMatch("not uniform")
    return b.broadcast(b.constant(flat[:1].reshape(())), c.shape, ())


@rule(any_of(*COMMUTATIVE))
def constants_to_the_right(b: Builder, root: Instruction) -> Replacement:
    """c + x == x + c; every other rule then looks for constants on the right only."""
    lhs, rhs = root.operands
    if not is_constant_like(lhs) or is_constant_like(rhs):
        return NoMatch("in order")
    return b.emit(root.op, rhs, lhs)


@rule(any_of(*elementwise_opcodes()))
def compute_before_broadcasting(b: Builder, root: Instruction) -> Replacement:
    """op(broadcast(x), broadcast(y)) == broadcast(op(x, y)): less work when both repeat in the same way."""
    shaped = [o for o in root.operands if o.shape == root.shape]
    spread = [o for o in shaped if isinstance(o.op, Broadcast) and splat_value(o) is None]
    numbers = [o for o in root.operands if o not in spread]
    if any(splat_value(o) is None for o in numbers) or not shaped or not root.shape:
        return NoMatch("an operand is not a broadcast")
    if not spread:
        if all(o.shape == () for o in root.operands):
            return NoMatch("scalar already")
        narrow = [o if o.shape == () else b.constant(splat_value(o)) for o in root.operands]  # type: ignore[arg-type]
        return b.broadcast_scalar(b.emit(root.op, *narrow), root.shape)
    first = spread[0]
    source = first.operands[0]
    same = all(o.op == first.op and o.operands[0].shape == source.shape for o in spread)
    if not same or source.tensor_type.size >= root.tensor_type.size:
        return NoMatch("the broadcasts differ")
    narrow = [
        o.operands[0] if o in spread else o if o.shape == () else full(b, source, _number(o)) for o in root.operands
    ]
    assert isinstance(first.op, Broadcast)
    return b.broadcast(b.emit(root.op, *narrow), root.shape, first.op.dimensions)


def _number(instruction: Instruction) -> Array:
    value = splat_value(instruction)
    assert value is not None
    return value


@rule(any_of("add", "multiply", "and", "or", "xor", "maximum", "minimum"))
def merge_constants(b: Builder, root: Instruction) -> Replacement:
    """(x op c) op d == x op (c op d), where op is associative without rounding."""
    inner, outer_constant = root.operands
    if inner.op != root.op or splat_value(outer_constant) is None or splat_value(inner.operands[1]) is None:
        return NoMatch("one constant")
    element = root.tensor_type.element
    if root.op.opcode in ("add", "multiply") and not (element.is_integer or element is PRED):
        return NoMatch("rounding")
    number = root.op.evaluate(_number(inner.operands[1]), _number(outer_constant))
    return b.emit(root.op, inner.operands[0], full(b, root, np.asarray(number)))


@rule(any_of("add", "multiply"), exact=False)
def merge_rounding_constants(b: Builder, root: Instruction) -> Replacement:
    """(x op c) op d == x op (c op d), up to rounding."""
    inner, outer_constant = root.operands
    if inner.op != root.op or splat_value(outer_constant) is None or splat_value(inner.operands[1]) is None:
        return NoMatch("one constant")
    number = root.op.evaluate(_number(inner.operands[1]), _number(outer_constant))
    return b.emit(root.op, inner.operands[0], full(b, root, np.asarray(number)))


# Neutral elements


@rule(add(x, splat(c)))
def add_nothing(x: Instruction, c: Array) -> Replacement:
    """x + -0.0 == x. x + 0.0 is not x for x = -0.0; integers have one zero."""
    if x.tensor_type.element.is_float or x.tensor_type.element.is_complex:
        return x if not c.dtype.kind == "c" and c == 0 and np.signbit(c.astype(np.float64)) else NoMatch("not -0.0")
    return x if not c else NoMatch("not 0")


@rule(add(x, splat(0.0)), exact=False)
def add_positive_zero(x: Instruction) -> Replacement:
    """x + 0.0 == x but for the sign of zero."""
    return x


@rule(subtract(x, splat(c)))
def subtract_nothing(x: Instruction, c: Array) -> Replacement:
    """x - 0.0 == x. x - -0.0 is not x for x = -0.0."""
    if x.tensor_type.element.is_complex:
        return NoMatch("complex")
    positive = not (x.tensor_type.element.is_float and np.signbit(c.astype(np.float64)))
    return x if c == 0 and positive else NoMatch("not 0.0")


@rule(multiply(x, splat(1)))
def multiply_by_one(x: Instruction) -> Replacement:
    """x * 1 == x"""
    return x


@rule(divide(x, splat(1)))
def divide_by_one(x: Instruction) -> Replacement:
    """x / 1 == x"""
    return x


@rule(multiply(x, splat(0)))
def multiply_integer_by_zero(b: Builder, x: Instruction) -> Replacement:
    """x * 0 == 0, for integers: NaN * 0.0 is NaN. The zero may be either operand where both are constants."""
    return b.full_like(x, 0) if x.tensor_type.element.is_integer else NoMatch("not an integer")


@rule(multiply(x, splat(0.0)), exact=False)
def multiply_by_zero(b: Builder, x: Instruction) -> Replacement:
    """x * 0.0 == 0.0 for finite x, but for the sign."""
    return b.full_like(x, 0)


@rule(multiply(x, splat(-1)))
def multiply_by_minus_one(b: Builder, x: Instruction) -> Replacement:
    """x * -1 == -x"""
    return b.negate(x)


@rule(subtract(splat(-0.0), x))
def subtract_from_minus_zero(b: Builder, x: Instruction) -> Replacement:
    """-0.0 - x == -x. 0.0 - x is not -x for x = 0.0."""
    return b.negate(x) if x.tensor_type.element.is_float else NoMatch("not a float")


@rule(subtract(splat(0), x))
def subtract_integer_from_zero(b: Builder, x: Instruction) -> Replacement:
    """0 - x == -x, for signed integers."""
    return b.negate(x) if x.tensor_type.element.kind.value == "signed" else NoMatch("not a signed integer")


@rule(any_of("and", "or", "xor", "maximum", "minimum"))
def same_operand_twice(root: Instruction) -> Replacement:
    """x op x == x, where op is idempotent."""
    lhs, rhs = root.operands
    idempotent = isinstance(root.op, Elementwise) and root.op.idempotent
    return lhs if lhs is rhs and idempotent else NoMatch("operands differ")


@rule(any_of("and", "or", "xor"))
def logic_with_a_constant(b: Builder, root: Instruction) -> Replacement:
    """and(x, true) == x, and(x, false) == false, or(x, false) == x, xor(x, true) == not(x), and as many for bits."""
    operand, other = root.operands
    value = splat_value(other)
    if value is None:
        return NoMatch("no constant")
    ones = bool(value) if root.tensor_type.element is PRED else int(value) == _all_bits(root)
    zeros = not value
    match root.op.opcode:
        case "and" if ones:
            return operand
        case "and" if zeros:
            return other
        case "or" if zeros:
            return operand
        case "or" if ones:
            return other
        case "xor" if zeros:
            return operand
        case "xor" if ones:
            return b.not_(operand)
    return NoMatch("some bits")


def _all_bits(instruction: Instruction) -> int:
    element = instruction.tensor_type.element
    return -1 if element.is_signed else (1 << element.bits) - 1


@rule(any_of("maximum", "minimum"))
def bound_that_never_binds(root: Instruction) -> Replacement:
    """maximum(x, -inf) == x and minimum(x, inf) == x, NaN included."""
    operand, other = root.operands
    value = splat_value(other)
    if value is None or not root.tensor_type.element.is_float:
        return NoMatch("no constant")
    neutral = -np.inf if root.op.opcode == "maximum" else np.inf
    return operand if float(value) == neutral else NoMatch("it binds")


# Signs


@rule(negate(negate(x)))
def negate_twice(x: Instruction) -> Replacement:
    """-(-x) == x"""
    return x


@rule(not_(not_(x)))
def not_twice(x: Instruction) -> Replacement:
    """not(not(x)) == x"""
    return x


@rule(abs_(abs_(x)))
def abs_twice(root: Instruction, x: Instruction) -> Replacement:
    """|(|x|)| == |x|"""
    return root.operands[0]


@rule(abs_(negate(x)))
def abs_of_negated(b: Builder, x: Instruction) -> Replacement:
    """|-x| == |x|"""
    return b.unary("abs", x)


@rule(add(x, negate(y)))
def add_negated(b: Builder, x: Instruction, y: Instruction) -> Replacement:
    """x + -y == x - y"""
    return b.subtract(x, y)


@rule(subtract(x, negate(y)))
def subtract_negated(b: Builder, x: Instruction, y: Instruction) -> Replacement:
    """x - -y == x + y"""
    return b.add(x, y)


@rule(subtract(x, x))
def subtract_integer_from_itself(b: Builder, x: Instruction) -> Replacement:
    """x - x == 0, for integers: inf - inf is NaN."""
    return b.full_like(x, 0) if x.tensor_type.element.is_integer else NoMatch("not an integer")


@rule(xor(x, x))
def xor_with_itself(b: Builder, x: Instruction) -> Replacement:
    """x ^ x == 0"""
    return b.full_like(x, 0)


@rule(subtract(add(x, y), x), exact=False)
def cancel_added_term(x: Instruction, y: Instruction) -> Replacement:
    """(x + y) - x == y, up to rounding."""
    return y


# Division and powers


@rule(divide(x, splat(c)))
def divide_by_power_of_two(b: Builder, x: Instruction, c: Array, root: Instruction) -> Replacement:
    """x / c == x * (1 / c), where 1 / c has no rounding: c is a power of two."""
    if not x.tensor_type.element.is_float:
        return NoMatch("not a float")
    inverse = reciprocal(c)
    return b.multiply(x, full(b, root, inverse)) if inverse is not None else NoMatch("1 / c is rounded")


def reciprocal(value: Array) -> Array | None:
    """1 / value where it is exact and normal, for one float."""
    wide = float(value)
    if wide == 0.0 or not np.isfinite(wide) or abs(np.frexp(wide)[0]) != 0.5:
        return None
    inverse = np.asarray(1.0 / wide).astype(value.dtype)
    tiny = np.finfo(np.float32).tiny if value.dtype.itemsize <= 4 else np.finfo(np.float64).tiny
    if value.dtype.itemsize < 4:
        tiny = np.float32(2.0**-14)
    exact = float(inverse) * wide == 1.0 and abs(float(inverse)) >= tiny and abs(wide) >= tiny
    return inverse if exact else None


@rule(divide(x, splat(c)), exact=False)
def divide_by_constant(b: Builder, x: Instruction, c: Array, root: Instruction) -> Replacement:
    """x / c == x * (1 / c), up to rounding."""
    if not x.tensor_type.element.is_float or c == 0 or not np.isfinite(float(c)):
        return NoMatch("no finite reciprocal")
    return b.multiply(x, full(b, root, np.asarray(1.0 / float(c)).astype(c.dtype)))


@rule(power(x, splat(c)))
def power_with_small_exponent(b: Builder, x: Instruction, c: Array) -> Replacement:
    """x ** 0 == 1, x ** 1 == x, x ** 2 == x * x, x ** 3 == x * x * x, and for floats x ** -1 == 1 / x."""
    exponent = float(c) if not c.dtype.kind == "c" else None
    match exponent:
        case 0.0:
            return b.full_like(x, 1)
        case 1.0:
            return x
        case 2.0:
            return b.multiply(x, x)
        case 3.0:
            return b.multiply(b.multiply(x, x), x)
        case -1.0 if x.tensor_type.element.is_float:
            return b.divide(b.full_like(x, 1), x)
    return NoMatch("another exponent")


@rule(power(x, splat(c)))
def power_of_one_half(b: Builder, x: Instruction, c: Array) -> Replacement:
    """x ** 0.5 == sqrt(x), where x is known to be no negative zero or infinity: those differ."""
    if not x.tensor_type.element.is_float or float(c) not in (0.5, -0.5):
        return NoMatch("another exponent")
    if not is_never_negative(x):
        return NoMatch("x may be -0.0 or -inf")
    return b.unary("sqrt" if float(c) > 0 else "rsqrt", x)


@rule(power(x, splat(c)), exact=False)
def power_of_one_half_of_anything(b: Builder, x: Instruction, c: Array) -> Replacement:
    """x ** 0.5 == sqrt(x), but for -0.0 and -inf."""
    if not x.tensor_type.element.is_float or float(c) not in (0.5, -0.5):
        return NoMatch("another exponent")
    return b.unary("sqrt" if float(c) > 0 else "rsqrt", x)


@rule(power(splat(1), x))
def power_of_one(root: Instruction) -> Replacement:
    """1 ** x == 1, NaN included."""
    return root.operands[0] if root.tensor_type.element.is_float else NoMatch("not a float")


def is_never_negative(instruction: Instruction, depth: int = 4) -> bool:
    """Whether no element has the sign bit set, NaN aside."""
    op, operands = instruction.op.opcode, instruction.operands
    if op in ("abs", "exponential", "logistic"):
        return True
    if depth == 0:
        return False
    value = splat_value(instruction)
    if value is not None:
        return not np.signbit(float(value))
    if op == "multiply":
        if operands[0] is operands[1]:
            return True
        return all(is_never_negative(o, depth - 1) for o in operands)
    if op in ("add", "divide"):
        return all(is_never_negative(o, depth - 1) for o in operands)
    if op in ("broadcast", "reshape", "transpose", "slice", "sqrt"):
        return is_never_negative(operands[0], depth - 1)
    if op == "reduce" and len(operands) == 2 and instruction.op.computations[0].root.op.opcode == "add":
        return all(is_never_negative(o, depth - 1) for o in operands)
    return False


@rule(remainder(x, splat(1)))
def remainder_by_one(b: Builder, x: Instruction) -> Replacement:
    """x % 1 == 0, for integers."""
    return b.full_like(x, 0) if x.tensor_type.element.is_integer else NoMatch("not an integer")


@rule(logarithm(exponential(x)), exact=False)
def log_of_exponential(x: Instruction) -> Replacement:
    """log(exp(x)) == x, where exp(x) is finite and not 0."""
    return x
