"""dot on a GPU: its dimensions sorted into batches, rows, columns and depth."""

import math
from collections.abc import Sequence

from onnxla.codegen.gpu.contraction import lower_contraction
from onnxla.codegen.gpu.product import Located, View
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.value import Index, ValueEmitter
from onnxla.codegen.lowering import Lowering
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Dot
from onnxla.hlo.types import PRED, Shape


def lower_dot(cluster: Cluster, hero: Instruction, target: GpuTarget) -> Lowering | None:
    """`hero` is the dot of the cluster. None for element types that the core does not sum."""
    assert isinstance(hero.op, Dot)
    return lower_contraction(cluster, hero, view_of(hero), hero.op.element, target)


def view_of(hero: Instruction) -> View:
    """A dot as products of matrices."""
    op = hero.op
    assert isinstance(op, Dot)
    lhs, rhs = (o.tensor_type for o in hero.operands)
    lhs_free, rhs_free = op.lhs_free(lhs.rank), op.rhs_free(rhs.rank)
    batch_shape: Shape = tuple(lhs.shape[d] for d in op.lhs_batch)
    row_shape: Shape = tuple(lhs.shape[d] for d in lhs_free)
    column_shape: Shape = tuple(rhs.shape[d] for d in rhs_free)
    depth_shape: Shape = tuple(lhs.shape[d] for d in op.lhs_contracting)

    def gather(rank: int, *parts: tuple[Shape, Expr, Shape]) -> Index:
        """The index whose dimensions are spread over batch, free and contracting positions."""
        where: dict[int, Expr] = {}
        for dimensions, position, shape in parts:
            where |= dict(zip(dimensions, ix.delinearize(position, shape), strict=True))
        return tuple(where[d] for d in range(rank))

    def left(e: ValueEmitter, batch: Expr, row: Expr, depth: Expr) -> Located:
        batches, rows = (op.lhs_batch, batch, batch_shape), (lhs_free, row, row_shape)
        return e.b.const(True, PRED), gather(lhs.rank, batches, rows, (op.lhs_contracting, depth, depth_shape))

    def right(e: ValueEmitter, batch: Expr, depth: Expr, column: Expr) -> Located:
        batches, columns = (op.rhs_batch, batch, batch_shape), (rhs_free, column, column_shape)
        return e.b.const(True, PRED), gather(rhs.rank, batches, columns, (op.rhs_contracting, depth, depth_shape))

    def result(batch: Expr, row: Expr, column: Expr) -> Index:
        parts = ((batch, batch_shape), (row, row_shape), (column, column_shape))
        return tuple(i for position, shape in parts for i in ix.delinearize(position, shape))

    batches, rows, columns, depth = (math.prod(s) for s in (batch_shape, row_shape, column_shape, depth_shape))
    along_depth = (lhs.rank - 1 in op.lhs_contracting, rhs.rank - 1 in op.rhs_contracting)
    runs = (
        _run(lhs.shape, op.lhs_contracting if along_depth[0] else lhs_free),
        _run(rhs.shape, op.rhs_contracting if along_depth[1] else rhs_free),
    )
    return View(batches, rows, columns, depth, left, right, result, *along_depth, *runs)


def _run(shape: Shape, dimensions: Sequence[int]) -> int:
    """How many neighbours lie together in memory, of those that these dimensions, the last one varying first, count."""
    run = 1
    for expected, dimension in zip(range(len(shape) - 1, -1, -1), reversed(dimensions), strict=False):
        if dimension != expected:
            break
        run *= shape[dimension]
    return run
