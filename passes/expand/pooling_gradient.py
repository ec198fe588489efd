"""select-and-scatter as a window reduction that finds each window's choice, and a scatter."""

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.indexing import Scatter
from onnxla.hlo.ops.reduction import SelectAndScatter
from onnxla.hlo.types import S32, ElementType, TensorType
from onnxla.passes.cloning import inline


def expand_select_and_scatter(b: Builder, instruction: Instruction) -> Instruction:
    """Each window reduces (element, position) pairs to the one it selects; a window all in padding has position -1."""
    op, (operand, source, init) = instruction.op, instruction.operands
    assert isinstance(op, SelectAndScatter)
    size, element = operand.tensor_type.size, operand.tensor_type.element
    positions = b.reshape(b.iota(TensorType(S32, (size,)), 0), operand.shape)
    nothing = [b.constant(np.zeros((), element.dtype)), b.constant(-1, S32)]
    chosen = b.reduce_window([operand, positions], nothing, op.window, _chooser(op.select, element))
    count = source.tensor_type.size
    places = b.reshape(b.get_tuple_element(chosen, 1), (count, 1))
    scatter = Scatter((), (0,), (0,), (), (), 1, False, False, op.scatter)
    start = b.broadcast_scalar(init, (size,))
    return b.reshape(b.scatter(start, places, b.reshape(source, (count,)), scatter), operand.shape)


def _chooser(select: Computation, element: ElementType) -> Computation:
    """Of two (element, position) pairs the one to keep: the first, where it is one and `select` says so."""
    b = Builder("chooser")
    kept, kept_at, new, new_at = (b.parameter(TensorType(e)) for e in (element, S32, element, S32))
    zero = b.constant(0, S32)
    stays = b.and_(b.compare(kept_at, zero, "GE"), inline(select, [kept, new]))
    stays = b.or_(stays, b.compare(new_at, zero, "LT"))
    return b.build(b.tuple(b.select(stays, kept, new), b.select(stays, kept_at, new_at)))
