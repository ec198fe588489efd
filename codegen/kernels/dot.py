"""dot as a contraction: which dimensions are batches, rows, columns and depth.

A constant right operand is packed into panels at compile time. Another one is read where it lies
when its columns are consecutive; else it is first copied with the columns innermost.
"""

import math

from onnxla.codegen.choices import Way
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.contraction import emit_contraction
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.loop import name_of
from onnxla.codegen.kernels.operand_copy import copy_operand, multiplied_as, read_operand
from onnxla.codegen.kernels.register_tile import (
    DType,
    PackedRight,
    PlainRight,
    Problem,
    Right,
    group_of,
    pack_panels,
    packed_element,
)
from onnxla.codegen.kernels.tiling import Shapes, Tiling
from onnxla.codegen.kernels.tilings import Cut, tile_ways
from onnxla.codegen.kernels.transpose import lower_transpose
from onnxla.codegen.kernels.value import Index
from onnxla.codegen.lowering import KernelCall, Lowering, Operand, Packed, Temporary
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Dot
from onnxla.hlo.ops.shape import Transpose
from onnxla.hlo.ops.structural import Constant, Parameter
from onnxla.hlo.types import Array as NumpyArray
from onnxla.hlo.types import Shape, TensorType


def dot_ways(cluster: Cluster, hero: Instruction, target: Target) -> list[Way]:
    """`hero` is the dot of the cluster; its operands are leaves."""
    op = hero.op
    assert isinstance(op, Dot)
    lhs, rhs = (o.tensor_type for o in hero.operands)
    dims = _Dimensions(op, lhs, rhs)
    left_leaf, right_leaf = hero.operands
    number = cluster.operand_number(right_leaf)
    constant = isinstance(cluster.instruction.operands[number].op, Constant)
    group = group_of(lhs.element, rhs.element, op.element, target) if constant and len(dims.depth) == 1 else 1
    if dims.depth[-1:] and dims.depth[-1] % group:
        group = 1
    calls: list[KernelCall] = []
    temporaries: list[int] = []
    arranged = rhs
    none = (0,) * lhs.rank
    copies, copy_bytes, copied = copy_operand(
        cluster, hero, target, none, none, none, multiplied_as(lhs.element, group)
    )
    calls += copies
    temporaries += copy_bytes
    depths = (*dims.depth[:-1], dims.depth[-1] // group) if dims.depth else (1,)
    if not constant and not dims.columns_innermost:
        arranged = TensorType(rhs.element, tuple(rhs.shape[d] for d in dims.right_order))
        source = Instruction(Parameter(0, rhs))
        turned = Cluster.of(Instruction(Transpose(dims.right_order), (source,)))
        (call,) = lower_transpose(turned, target).calls
        mended = tuple(Operand(number) if isinstance(a, Operand) else Temporary(0) for a in call.arguments)
        calls.append(KernelCall(call.kernel, mended))
        temporaries.append(arranged.bytes)

    def frame_of(name: str, tasks: int, tiling: Tiling) -> tuple[Frame, Problem, Right]:
        omit = (*((left_leaf,) if copies else ()), *((right_leaf,) if constant or calls else ()))
        frame = Frame(cluster, name, tasks, cluster.replaced(hero, *omit))
        left = read_operand(frame, left_leaf, copied, bool(copies))
        problem = Problem(
            dims.batches, dims.rows, dims.columns, depths, left, dims.left_index, op.element, dims.result_index, group
        )
        if constant:
            element = packed_element(op.element, group)
            panels = -(-dims.columns // tiling.width)
            panel = math.prod(depths) * tiling.width
            size = dims.batches * panels * panel * group
            buffer = frame.b.parameter("packed", element, size, "input", 64)
            packing = f"dot {op.rhs_batch} {op.rhs_contracting} x{tiling.width} {element}/{group}"
            frame.arguments.append(
                Packed(number, packing, lambda a: _pack(a, dims, tiling.width, element.dtype, group))
            )
            return frame, problem, PackedRight(buffer, tiling.width, panel, panels * panel, group)
        if calls:
            array = frame.array("arranged", arranged, "input")
            frame.arguments.append(Temporary(0))
            return frame, problem, PlainRight(array, dims.arranged_index, tiling.width)
        array = frame.emitter.leaves[right_leaf]  # type: ignore[assignment]
        return frame, problem, PlainRight(array, dims.right_index, tiling.width)

    shapes = Shapes(dims.batches, dims.rows, dims.columns, depths, copied.bytes // max(dims.batches, 1))
    right_bytes = dims.columns * math.prod(depths) * packed_element(op.element, group).bytes * group

    def lower(tiling: Tiling) -> Lowering:
        kernel, arguments = emit_contraction(
            cluster, hero, lambda name, tasks: frame_of(name, tasks, tiling), shapes, tiling, name_of(cluster)
        )
        return Lowering((*calls, KernelCall(kernel, arguments)), tuple(temporaries))

    cut = Cut(shapes, op.element, dims.rows_equidistant, group, right_bytes, constant)
    return tile_ways(cut, target, lower)


class _Dimensions:
    """The dimensions of a dot, sorted by what they do."""

    def __init__(self, op: Dot, lhs: TensorType, rhs: TensorType) -> None:
        self.op, self.lhs, self.rhs = op, lhs, rhs
        self.lhs_free, self.rhs_free = op.lhs_free(lhs.rank), op.rhs_free(rhs.rank)
        self.batch_shape: Shape = tuple(lhs.shape[d] for d in op.lhs_batch)
        self.batches = math.prod(self.batch_shape)
        self.rows: Shape = tuple(lhs.shape[d] for d in self.lhs_free) or (1,)
        self.column_shape: Shape = tuple(rhs.shape[d] for d in self.rhs_free)
        self.columns = math.prod(self.column_shape)
        self.depth_shape: Shape = tuple(lhs.shape[d] for d in op.lhs_contracting)
        self.right_order: Shape = (*op.rhs_batch, *op.rhs_contracting, *self.rhs_free)
        last = [d for d, n in enumerate(rhs.shape) if n != 1]
        free = [d for d in self.rhs_free if rhs.shape[d] != 1]
        self.columns_innermost = not free or last[-len(free) :] == free
        # depth dimensions whose left steps agree are one loop
        self.depth: Shape = (math.prod(self.depth_shape),) if self._depth_merges() else self.depth_shape

    def _depth_merges(self) -> bool:
        dims = [d for d in self.op.lhs_contracting if self.lhs.shape[d] != 1]
        return all(b == a + 1 for a, b in zip(dims, dims[1:], strict=False)) or len(dims) <= 1

    @property
    def rows_equidistant(self) -> bool:
        """Whether consecutive rows are equally far apart in the left operand."""
        free = [d for d in self.lhs_free if self.lhs.shape[d] != 1]
        return all(b == a + 1 for a, b in zip(free, free[1:], strict=False))

    def left_index(self, batch: Expr, row: Index, depth: Index) -> Index:
        where = dict(zip(self.op.lhs_batch, ix.delinearize(batch, self.batch_shape), strict=True))
        where |= dict(zip(self.lhs_free, row, strict=False))
        deep = ix.delinearize(depth[0], self.depth_shape) if len(depth) == 1 else depth
        where |= dict(zip(self.op.lhs_contracting, deep, strict=True))
        return tuple(where[d] for d in range(self.lhs.rank))

    def right_index(self, batch: Expr, depth: Expr, column: Expr) -> Index:
        where = dict(zip(self.op.rhs_batch, ix.delinearize(batch, self.batch_shape), strict=True))
        where |= dict(zip(self.op.rhs_contracting, ix.delinearize(depth, self.depth_shape), strict=True))
        where |= dict(zip(self.rhs_free, ix.delinearize(column, self.column_shape), strict=True))
        return tuple(where[d] for d in range(self.rhs.rank))

    def arranged_index(self, batch: Expr, depth: Expr, column: Expr) -> Index:
        """The same in the copy whose dimensions are batch, depth, columns."""
        return (
            *ix.delinearize(batch, self.batch_shape),
            *ix.delinearize(depth, self.depth_shape),
            *ix.delinearize(column, self.column_shape),
        )

    def result_index(self, batch: Expr, row: Index, column: Expr) -> Index:
        rows = row if self.lhs_free else ()
        return (*ix.delinearize(batch, self.batch_shape), *rows, *ix.delinearize(column, self.column_shape))


def _pack(right: NumpyArray, dims: _Dimensions, width: int, dtype: DType, group: int) -> NumpyArray:
    ordered = right.transpose(dims.right_order).reshape(dims.batches, -1, dims.columns)
    return pack_panels(ordered, width, dtype, group)
