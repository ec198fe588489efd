"""Choices that are known: select, clamp and compare."""

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.elementwise import Compare
from onnxla.hlo.ops.shape import Broadcast
from onnxla.hlo.types import PRED, Array
from onnxla.passes.pattern import any_of, operation, splat, splat_value, variables
from onnxla.passes.rewrite import NoMatch, Replacement, RuleTable

SELECTION = RuleTable()
rule = SELECTION.rule

c, d, n, x, y = variables("c d n x y")
select, clamp, compare = operation("select", 3), operation("clamp", 3), operation("compare", 2)
maximum, minimum, not_ = operation("maximum", 2), operation("minimum", 2), operation("not", 1)


@rule(select(splat(n), x, y))
def select_by_constant(n: Array, x: Instruction, y: Instruction) -> Replacement:
    """select(true, x, y) == x and select(false, x, y) == y"""
    return x if n else y


@rule(select(c, x, x))
def select_the_same(c: Instruction, x: Instruction) -> Replacement:
    """select(c, x, x) == x"""
    return x


@rule(select(not_(c), x, y))
def select_by_negation(b: Builder, c: Instruction, x: Instruction, y: Instruction) -> Replacement:
    """select(not(c), x, y) == select(c, y, x)"""
    return b.select(c, y, x)


@rule(select(c, x, y))
def select_by_spread_flag(b: Builder, c: Instruction, x: Instruction, y: Instruction) -> Replacement:
    """A predicate that is one flag for all elements stays a scalar."""
    if not isinstance(c.op, Broadcast) or c.operands[0].shape != ():
        return NoMatch("not one flag")
    return b.select(c.operands[0], x, y)


@rule(select(c, splat(n), splat(d)))
def select_flags(b: Builder, c: Instruction, n: Array, d: Array, root: Instruction) -> Replacement:
    """select(c, true, false) == c and select(c, false, true) == not(c)"""
    if root.tensor_type.element is not PRED or bool(n) == bool(d):
        return NoMatch("not flags")
    flag = c if c.shape == root.shape else b.broadcast_scalar(c, root.shape)
    return flag if n else b.not_(flag)


@rule(any_of("clamp"))
def clamp_with_scalar_bounds(b: Builder, root: Instruction) -> Replacement:
    """Bounds that are one number for all elements stay scalars."""
    low, operand, high = root.operands
    scalars = [o.operands[0] if isinstance(o.op, Broadcast) and o.operands[0].shape == () else o for o in (low, high)]
    if scalars == [low, high] or operand.shape == ():
        return NoMatch("scalars already")
    return b.clamp(scalars[0], operand, scalars[1])


@rule(clamp(splat(c), x, splat(d)))
def clamp_with_open_bounds(b: Builder, c: Array, x: Instruction, d: Array) -> Replacement:
    """clamp(-inf, x, d) == minimum(x, d) and clamp(c, x, inf) == maximum(x, c)"""
    if not x.tensor_type.element.is_float:
        return NoMatch("no infinities")
    if float(c) == -np.inf:
        return b.minimum(x, b.broadcast_scalar(b.constant(d), x.shape))
    if float(d) == np.inf:
        return b.maximum(x, b.broadcast_scalar(b.constant(c), x.shape))
    return NoMatch("both bounds bind")


@rule(maximum(minimum(x, splat(d)), splat(c)))
def maximum_of_minimum(b: Builder, x: Instruction, c: Array, d: Array) -> Replacement:
    """maximum(minimum(x, d), c) == clamp(c, x, d), where c <= d."""
    return b.clamp(b.constant(c), x, b.constant(d)) if x.shape and c <= d else NoMatch("the bounds cross")


@rule(minimum(maximum(x, splat(c)), splat(d)))
def minimum_of_maximum(b: Builder, x: Instruction, c: Array, d: Array) -> Replacement:
    """minimum(maximum(x, c), d) == clamp(c, x, d)"""
    return b.clamp(b.constant(c), x, b.constant(d)) if x.shape and c <= d else NoMatch("the bounds cross")


@rule(clamp(splat(c), maximum(x, splat(d)), variables("high")[0]))
def clamp_of_maximum(
    b: Builder, c: Array, d: Array, x: Instruction, high: Instruction, root: Instruction
) -> Replacement:
    """clamp(c, maximum(x, d), high) == clamp(c, x, high), where d <= c: relu before relu6."""
    return b.clamp(root.operands[0], x, high) if d <= c else NoMatch("the inner bound binds")


@rule(any_of("compare"))
def compare_with_itself(b: Builder, root: Instruction) -> Replacement:
    """x == x for all but floats, where NaN differs from itself."""
    assert isinstance(root.op, Compare)
    lhs, rhs = root.operands
    element = lhs.tensor_type.element
    if lhs is not rhs or element.is_float or element.is_complex:
        return NoMatch("not the same, or NaN may be")
    return b.full(root.shape, root.op.direction in ("EQ", "LE", "GE"), PRED)


@rule(not_(any_of("compare")))
def negated_compare(b: Builder, root: Instruction) -> Replacement:
    """not(x == y) == (x != y), for NaN too; orders turn round where there is no NaN."""
    (inner,) = root.operands
    assert isinstance(inner.op, Compare)
    element = inner.operands[0].tensor_type.element
    opposite = {"EQ": "NE", "NE": "EQ"}
    if not element.is_float and not element.is_complex:
        opposite |= {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}
    if inner.op.direction not in opposite:
        return NoMatch("NaN makes a difference")
    lhs, rhs = inner.operands
    return b.compare(lhs, rhs, opposite[inner.op.direction])


@rule(compare(x, splat(c)))
def compare_beyond_the_range(b: Builder, x: Instruction, c: Array, root: Instruction) -> Replacement:
    """An unsigned number is never below 0."""
    assert isinstance(root.op, Compare)
    if x.tensor_type.element.kind.value != "unsigned" or splat_value(root.operands[1]) is None or c != 0:
        return NoMatch("in range")
    match root.op.direction:
        case "LT":
            return b.full(root.shape, False, PRED)
        case "GE":
            return b.full(root.shape, True, PRED)
    return NoMatch("in range")
