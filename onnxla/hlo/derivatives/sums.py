"""Derivatives of reductions and products."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.derivatives.elementwise import require_real
from onnxla.hlo.derivatives.rule import NoDerivativeError, Parts, derivative
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Dot
from onnxla.hlo.ops.reduction import Reduce, simple_combiner

Dimensions: TypeAlias = "tuple[Sequence[int], Sequence[int], Sequence[int]]"
"""The batch, contracting and free dimensions of an operand."""


@derivative("reduce")
def reduce(b: Builder, y: Instruction, g: Instruction) -> Parts:
    """A sum's goes to all elements; that of a largest or least one to those that are it, in equal parts.

    Initial values count as the combiner's identity, which they are in what frontends emit.
    """
    assert isinstance(y.op, Reduce)
    combiner = simple_combiner(y.op.to_apply)
    x = y.operands[0]
    kept = [d for d in range(len(x.shape)) if d not in y.op.dimensions]
    match combiner:
        case "add":
            return [b.broadcast(g, x.shape, kept), None]
        case "maximum" | "minimum":
            chosen = b.convert(b.compare(x, b.broadcast(y, x.shape, kept), "EQ"), x.tensor_type.element)
            each = b.divide(g, b.reduce_by("add", chosen, y.op.dimensions))
            return [b.multiply(chosen, b.broadcast(each, x.shape, kept)), None]
        case _:
            raise NoDerivativeError(f"the derivative of a reduction by {combiner or y.op.to_apply.name} is not known")


@derivative("dot")
def dot(b: Builder, y: Instruction, g: Instruction) -> Parts:
    """For each operand the product of g and the other one, over the other's free dimensions."""
    assert isinstance(y.op, Dot)
    require_real(y)
    lhs, rhs = y.operands
    op, batch = y.op, list(range(len(y.op.lhs_batch)))
    left, right = op.lhs_free(len(lhs.shape)), op.rhs_free(len(rhs.shape))
    split = len(batch) + len(left)
    by_left, by_right = list(range(len(batch), split)), list(range(split, len(y.shape)))

    def part(
        operand: Instruction,
        other: Instruction,
        summed: list[int],
        free: Sequence[int],
        theirs: Dimensions,
        own: Dimensions,
    ) -> Instruction:
        """The product of g and the other operand, brought into the order of this operand's dimensions."""
        product = b.dot(g, other, summed, free, batch, theirs[0], op.element)
        pairs = dict(zip(theirs[1], own[1], strict=True))
        order = [*own[0], *own[2], *(pairs[d] for d in sorted(theirs[1]))]
        ordered = b.transpose(product, [int(i) for i in np.argsort(order)])
        return b.convert(ordered, operand.tensor_type.element)

    ours = (op.lhs_batch, op.lhs_contracting, left)
    theirs = (op.rhs_batch, op.rhs_contracting, right)
    return [part(lhs, rhs, by_right, right, theirs, ours), part(rhs, lhs, by_left, left, ours, theirs)]
