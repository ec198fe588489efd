"""Which clusters fall into rows: every reduction takes the same trailing dimensions to one value a row."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.value import Emitted, Index, ValueEmitter
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import require_tensor
from onnxla.hlo.ops.reduction import Reduce, adds_parts
from onnxla.hlo.types import Shape, TensorType, TupleType


class NotARow(Exception):
    """The cluster reads a reduction's result, or a kept value, at another place than the row it is in."""


@dataclass(frozen=True)
class Rows:
    """How a cluster falls into rows: `full` is the reductions' operand shape, rows * columns its size."""

    cluster: Cluster
    full: Shape
    rows: int
    columns: int
    sweeps: tuple[tuple[Instruction, ...], ...]
    """Reductions by sweep; each needs only results of earlier ones."""

    @staticmethod
    def of(cluster: Cluster) -> "Rows | None":
        """None where the cluster is no row cluster."""
        # parts of a product are added up where they are read
        reductions = [i for i in cluster.instructions if isinstance(i.op, Reduce) and not adds_parts(i)]
        if not reductions:
            return None
        full = reductions[0].operands[0].shape
        dimensions = _significant(reductions[0], full)
        trailing = [d for d, n in enumerate(full) if n != 1][-len(dimensions) :] if dimensions else []
        if dimensions != trailing or 0 in full:
            return None
        if any(r.operands[0].shape != full or _significant(r, full) != dimensions for r in reductions):
            return None
        columns = math.prod(full[d] for d in dimensions)
        rows = math.prod(full) // columns
        if any(t.size not in (rows, rows * columns) for t in cluster.results):
            return None
        return Rows(cluster, full, rows, columns, _levels(cluster, reductions))

    def index(self, position: Expr) -> Index:
        """The index in `full` of a row-major position."""
        return ix.delinearize(position, self.full)


def _significant(reduce: Instruction, full: Shape) -> list[int]:
    assert isinstance(reduce.op, Reduce)
    return [d for d in sorted(reduce.op.dimensions) if full[d] != 1]


def _levels(cluster: Cluster, reductions: list[Instruction]) -> tuple[tuple[Instruction, ...], ...]:
    level: dict[Instruction, int] = {}
    for instruction in cluster.instructions:
        below = max((level.get(o, 0) for o in instruction.operands), default=0)
        level[instruction] = below + 1 if instruction in reductions else below
    depth = max(level[r] for r in reductions)
    return tuple(tuple(r for r in reductions if level[r] == k) for k in range(1, depth + 1))


def settle(e: ValueEmitter, reduction: Instruction, known: Mapping[Expr, list[Value]]) -> None:
    """From here on the reduction's values are known, in these rows and nowhere else."""
    single = isinstance(reduction.type, TensorType)
    shape = reduction.shape if single else _leaf_shape(reduction)

    def read(index: Index) -> Emitted:
        values = known.get(ix.linearize(index, shape))
        if values is None:
            raise NotARow
        return values[0] if single else values

    e.leaves[reduction] = read


def _leaf_shape(reduction: Instruction) -> Shape:
    """The shape of every result of a variadic reduction."""
    assert isinstance(reduction.type, TupleType)
    return require_tensor(reduction.type.elements[0]).shape


def constantly(value: Emitted) -> Callable[[Index], Emitted]:
    return lambda index: value
