"""Reductions over the outer dimensions of a large tensor, in two steps: pieces of rows, then the pieces' results.

The mean of an image's pixels with channels last is one. Its result has too few elements to share out among threads, and
what they would share are columns, while every kernel around it works on rows: each thread would take half of what lies
in another core's cache. The pieces are rows too. Results do not depend on the number of threads.
"""

import math

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.reduction import Reduce, simple_combiner
from onnxla.hlo.types import TensorType
from onnxla.passes.pass_base import ComputationPass
from onnxla.passes.simplify.reduction import starts_neutral

LEAST_BYTES = 256 << 10
"""A smaller operand is reduced before another thread is awake."""
MOST_PIECES = 32
LEAST_COLUMNS = 8
_EXACT = frozenset({"maximum", "minimum", "and", "or", "xor"})


class SplitReductions(ComputationPass):
    """Reduce pieces of rows first where the reduced dimensions lie outside the kept ones."""

    name = "split-reductions"

    def run_on(self, computation: Computation) -> bool:
        changed = False
        for instruction in list(computation.instructions()):
            if isinstance(instruction.op, Reduce) and isinstance(instruction.type, TensorType):
                split = self._split(instruction, instruction.op)
                if split is not None:
                    computation.replace(instruction, split)
                    self.count("split")
                    changed = True
        return changed

    def _split(self, reduction: Instruction, op: Reduce) -> Instruction | None:
        operand, start = reduction.operands
        shape = operand.shape
        combiner = simple_combiner(op.to_apply)
        dims = sorted(op.dimensions)
        if combiner is None or not dims or dims != list(range(dims[0], dims[-1] + 1)):
            return None
        outer, columns = math.prod(shape[: dims[0]]), math.prod(shape[dims[-1] + 1 :])
        rows = math.prod(shape[d] for d in dims)
        pieces = max((n for n in range(1, MOST_PIECES + 1) if rows % n == 0), default=1) if rows else 1
        small = operand.tensor_type.bytes < LEAST_BYTES or columns < LEAST_COLUMNS
        if small or outer * 2 > MOST_PIECES or pieces < 4 or not _may_regroup(reduction, combiner):
            return None
        b = Builder(source=reduction.source)
        apart = b.reshape(operand, (outer, pieces, rows // pieces, columns))
        parts = b.reduce([apart], [start], (2,), op.to_apply)
        return b.reshape(b.reduce([parts], [start], (1,), op.to_apply), reduction.shape)


def _may_regroup(reduction: Instruction, combiner: str) -> bool:
    """Whether the start value may come in twice, and partial results may be rounded to the element type."""
    exact = combiner in _EXACT or reduction.tensor_type.element.bits >= 32
    return exact and starts_neutral(reduction)
