"""Gradient of ai.onnx.preview.training: reverse-mode derivatives of what lies between two values of the graph."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.training import TRAINING
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Dot
from onnxla.hlo.ops.reduction import Reduce, simple_combiner
from onnxla.hlo.ops.shape import Broadcast, Transpose

Parts: TypeAlias = "Sequence[Instruction | None]"
"""What each operand of an instruction receives; None for nothing."""
Rule: TypeAlias = Callable[[Builder, Instruction, Instruction], Parts]
"""From an instruction and the derivative by its value to those by its operands."""

Dimensions: TypeAlias = "tuple[Sequence[int], Sequence[int], Sequence[int]]"
"""The batch, contracting and free dimensions of an operand."""


@onnx_op("Gradient", domain=TRAINING)
def gradient(node: NodeView, b: Builder) -> list[Instruction]:
    """d(sum of y)/dx for each x of `xs`; the inputs are the values of `xs`, then of `zs`, which count as constant."""
    xs, name = node.strings("xs"), node.string("y")
    y, points = node.host.named(name), node.inputs()
    if not isinstance(y, Instruction):
        node.unsupported(f"{name}, which is to be derived, is not computed before this node")
    for x, point in zip([*xs, *node.strings("zs", ())], points, strict=False):
        if node.host.named(x) is not point:
            node.unsupported(f"the derivative is wanted at another value than {x}'s own", f"give {x} as the input")
    derivatives: dict[Instruction, Instruction] = {y: b.full_like(y, 1)}
    for value in reversed(_between(points[: len(xs)], y)):
        rule = _RULES.get(value.op.opcode)
        if rule is None or (isinstance(value.op, Reduce) and _combiner(value.op) is None):
            node.unsupported(f"the derivative of {value.op.opcode} is not known", "export the gradient in the model")
        for operand, part in zip(value.operands, rule(b, value, derivatives[value]), strict=True):
            if part is not None:
                so_far = derivatives.get(operand)
                derivatives[operand] = part if so_far is None else b.add(so_far, part)
    return [derivatives.get(x, b.full_like(x, 0)) for x in points[: len(xs)]]


def _between(xs: Sequence[Instruction], y: Instruction) -> list[Instruction]:
    """What `y` is computed from that depends on one of `xs`, operands first; the `xs` themselves left out."""
    depends = dict.fromkeys(xs, True)
    order: list[Instruction] = []
    stack = [(y, False)]
    while stack:
        value, expanded = stack.pop()
        if value in depends:
            continue
        if not expanded:
            stack += [(value, True), *((o, False) for o in value.operands)]
            continue
        depends[value] = any(depends[o] for o in value.operands)
        if depends[value]:
            order.append(value)
    return order


def _unary(factor: Callable[[Builder, Instruction, Instruction], Instruction]) -> Rule:
    """The rule of y = f(x) with f' = factor(x, y)."""
    return lambda b, y, g: [b.multiply(g, factor(b, y.operands[0], y))]


def _one_minus_square(b: Builder, x: Instruction, y: Instruction) -> Instruction:
    return b.subtract(b.full_like(y, 1), b.multiply(y, y))


def _divide(b: Builder, y: Instruction, g: Instruction) -> Parts:
    part = b.divide(g, y.operands[1])
    return [part, b.negate(b.multiply(part, y))]


def _larger(direction: str) -> Rule:
    """All goes to the operand that is the result, to the first where both are."""

    def rule(b: Builder, y: Instruction, g: Instruction) -> Parts:
        lhs, rhs = y.operands
        first, zero = b.compare(lhs, rhs, direction), b.full_like(g, 0)
        return [b.select(first, g, zero), b.select(first, zero, g)]

    return rule


def _select(b: Builder, y: Instruction, g: Instruction) -> Parts:
    zero = b.full_like(g, 0)
    return [None, b.select(y.operands[0], g, zero), b.select(y.operands[0], zero, g)]


def _broadcast(b: Builder, y: Instruction, g: Instruction) -> Parts:
    assert isinstance(y.op, Broadcast)
    kept = y.op.dimensions
    summed = b.reduce_by("add", g, [d for d in range(len(y.shape)) if d not in kept])
    return [b.transpose(summed, [sorted(kept).index(d) for d in kept])]


def _transpose(b: Builder, y: Instruction, g: Instruction) -> Parts:
    assert isinstance(y.op, Transpose)
    return [b.transpose(g, [int(i) for i in np.argsort(y.op.permutation)])]


def _combiner(op: Reduce) -> str | None:
    """`add`, `maximum` or `minimum`, whose derivatives are known."""
    opcode = simple_combiner(op.to_apply)
    return opcode if opcode in ("add", "maximum", "minimum") else None


def _reduce(b: Builder, y: Instruction, g: Instruction) -> Parts:
    """A sum's goes to all elements; that of a largest or least one to those that are it, in equal parts."""
    assert isinstance(y.op, Reduce)
    x = y.operands[0]
    kept = [d for d in range(len(x.shape)) if d not in y.op.dimensions]
    if _combiner(y.op) == "add":
        return [b.broadcast(g, x.shape, kept), None]
    chosen = b.convert(b.compare(x, b.broadcast(y, x.shape, kept), "EQ"), x.tensor_type.element)
    each = b.divide(g, b.reduce_by("add", chosen, y.op.dimensions))
    return [b.multiply(chosen, b.broadcast(each, x.shape, kept)), None]


def _dot(b: Builder, y: Instruction, g: Instruction) -> Parts:
    assert isinstance(y.op, Dot)
    lhs, rhs = y.operands
    op, batch = y.op, list(range(len(y.op.lhs_batch)))
    left, right = op.lhs_free(len(lhs.shape)), op.rhs_free(len(rhs.shape))
    split = len(batch) + len(left)
    by_left, by_right = list(range(len(batch), split)), list(range(split, len(y.shape)))

    def part(
        other: Instruction, summed: list[int], free: Sequence[int], theirs: Dimensions, own: Dimensions
    ) -> Instruction:
        """The product of g and the other operand, brought into the order of this operand's dimensions."""
        product = b.dot(g, other, summed, free, batch, theirs[0], op.element)
        pairs = dict(zip(theirs[1], own[1], strict=True))
        order = [*own[0], *own[2], *(pairs[d] for d in sorted(theirs[1]))]
        return b.transpose(product, [int(i) for i in np.argsort(order)])

    ours = (op.lhs_batch, op.lhs_contracting, left)
    theirs = (op.rhs_batch, op.rhs_contracting, right)
    return [part(rhs, by_right, right, theirs, ours), part(lhs, by_left, left, ours, theirs)]


_RULES: dict[str, Rule] = {
    "add": lambda b, y, g: [g, g],
    "subtract": lambda b, y, g: [g, b.negate(g)],
    "multiply": lambda b, y, g: [b.multiply(g, y.operands[1]), b.multiply(g, y.operands[0])],
    "divide": _divide,
    "maximum": _larger("GE"),
    "minimum": _larger("LE"),
    "select": _select,
    "negate": lambda b, y, g: [b.negate(g)],
    "exponential": _unary(lambda b, x, y: y),
    "log": _unary(lambda b, x, y: b.divide(b.full_like(x, 1), x)),
    "tanh": _unary(_one_minus_square),
    "logistic": _unary(lambda b, x, y: b.multiply(y, b.subtract(b.full_like(y, 1), y))),
    "sqrt": _unary(lambda b, x, y: b.divide(b.full_like(y, 0.5), y)),
    "sine": _unary(lambda b, x, y: b.unary("cosine", x)),
    "cosine": _unary(lambda b, x, y: b.negate(b.unary("sine", x))),
    "convert": lambda b, y, g: [b.convert(g, y.operands[0].tensor_type.element)],
    "reshape": lambda b, y, g: [b.reshape(g, y.operands[0].shape)],
    "broadcast": _broadcast,
    "transpose": _transpose,
    "reduce": _reduce,
    "dot": _dot,
}
