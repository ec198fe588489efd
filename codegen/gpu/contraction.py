"""The contraction core of a GPU: a block computes a tile of rows by columns, depth step by depth step.

Each step brings a slice of either operand into shared memory and lets every thread multiply what it needs of them.
A thread sums `tile.rows / 16` by `tile.columns / 16` results in registers. Operands come in through `value`, at
indices that a `View` gives, so any layout, padding or fused producer will do; what follows the contraction in its
cluster is applied to the sums before they are stored.
"""

from collections.abc import Callable
from dataclasses import dataclass

from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Buffer, Value
from onnxla.codegen.kernels.loop import emit_roots, name_of
from onnxla.codegen.kernels.value import Index, ValueEmitter
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import PRED, ElementType

SIDE = 16
"""Threads along the rows, and along the columns, of a tile."""
THREADS = SIDE * SIDE
STEP = 16
"""Depth of a slice in shared memory."""

Located = tuple[Value, Index]
"""Whether an operand has an element there (it may be padding), and its index."""


@dataclass(frozen=True)
class View:
    """A contraction as `batches` products of a matrix of rows by depth and one of depth by columns."""

    batches: int
    rows: int
    columns: int
    depth: int
    left: Callable[[ValueEmitter, Expr, Expr, Expr], Located]
    """Of batch, row and depth."""
    right: Callable[[ValueEmitter, Expr, Expr, Expr], Located]
    """Of batch, depth and column."""
    result: Callable[[Expr, Expr, Expr], Index]
    """Of batch, row and column."""
    left_runs_along_depth: bool
    """Whether neighbours in memory are neighbours in depth; else they are neighbouring rows."""
    right_runs_along_depth: bool


@dataclass(frozen=True)
class Tile:
    rows: int
    columns: int


def lower_contraction(cluster: Cluster, hero: Instruction, view: View, element: ElementType) -> Lowering | None:
    """`hero` is the only contraction of the cluster and sums in the compute type of `element`. None for pred."""
    compute = storage.compute_element(element)
    if compute is PRED or element.is_complex:
        return None
    tile = Tile(*(64 if size > SIDE else SIDE for size in (view.rows, view.columns)))
    return _Contraction(cluster, hero, view, element, tile).lower()


class _Contraction:
    def __init__(self, cluster: Cluster, hero: Instruction, view: View, element: ElementType, tile: Tile) -> None:
        self.cluster, self.hero, self.view, self.element, self.tile = cluster, hero, view, element, tile
        self.grid = (view.batches, -(-view.rows // tile.rows), -(-view.columns // tile.columns))
        tasks = self.grid[0] * self.grid[1] * self.grid[2]
        self.frame = Frame(cluster, name_of(cluster), tasks)
        self.e, self.b = self.frame.emitter, self.frame.b
        self.b.kernel.threads = THREADS
        self.b.kernel.flops = 2.0 * view.batches * view.rows * view.columns * view.depth
        self.compute = storage.compute_element(element)
        # one element more a row, so that a column does not lie in one bank
        self.left = self.b.shared("left", self.compute, STEP * (tile.rows + 1))
        self.right = self.b.shared("right", self.compute, STEP * (tile.columns + 1))

    def lower(self) -> Lowering:
        e, b, tile = self.e, self.b, self.tile
        task = e.bind("task", b.task, 0, max(self.b.kernel.tasks - 1, 0))
        batch, row_tile, column_tile = ix.delinearize(task, self.grid)
        thread = e.bind("thread", b.thread(), 0, THREADS - 1)
        row, column = thread // SIDE, thread % SIDE
        heights, widths = range(tile.rows // SIDE), range(tile.columns // SIDE)
        zero = e.literal(0, self.element)
        with e.loop("step", -(-self.view.depth // STEP), carry=[zero] * (len(heights) * len(widths))) as (step, loop):
            self.bring(self.left, thread, step, batch, row_tile * tile.rows, is_left=True)
            self.bring(self.right, thread, step, batch, column_tile * tile.columns, is_left=False)
            b.barrier()
            with e.loop("k", STEP, carry=loop.carried) as (k, inner):
                lefts = [self.shared(self.left, k, row + SIDE * i, tile.rows) for i in heights]
                rights = [self.shared(self.right, k, column + SIDE * j, tile.columns) for j in widths]
                inner.next = [
                    self.multiply_add(lefts[i], rights[j], inner.carried[i * len(widths) + j])
                    for i in heights
                    for j in widths
                ]
            b.barrier()
            loop.next = inner.results
        for i in heights:
            for j in widths:
                place = (row_tile * tile.rows + row + SIDE * i, column_tile * tile.columns + column + SIDE * j)
                self.finish(batch, *place, loop.results[i * len(widths) + j])
        return Lowering((KernelCall(b.finish(), tuple(self.frame.arguments)),))

    def bring(self, shared: Buffer, thread: Expr, step: Expr, batch: Expr, start: Expr, is_left: bool) -> None:
        """All threads copy a slice of an operand to shared memory, neighbours what lies together; zeros around it."""
        e, b, view = self.e, self.b, self.view
        width = self.tile.rows if is_left else self.tile.columns
        along_depth = view.left_runs_along_depth if is_left else view.right_runs_along_depth
        for part in range(STEP * width // THREADS):
            number = thread + part * THREADS
            k, at = (number % STEP, number // STEP) if along_depth else (number // width, number % width)
            value = self.operand(batch, step * STEP + k, start + at, is_left)
            b.store(shared, e.position(k * (width + 1) + at), value)

    def operand(self, batch: Expr, depth: Expr, line: Expr, is_left: bool) -> Value:
        """One element of an operand in the type of the sums; zero outside."""
        e, b, view = self.e, self.b, self.view
        size = view.rows if is_left else view.columns
        inside = b.and_(e.inside(depth, 0, view.depth), e.inside(line, 0, size))
        source = self.hero.operands[0 if is_left else 1]
        zero = e.literal(0, self.element)

        def read() -> list[Value]:
            # positions inside the operand, whose ranges say so
            k = e.bind("depth", e.position(depth), 0, view.depth - 1)
            at = e.bind("line", e.position(line), 0, size - 1)
            present, index = view.left(e, batch, at, k) if is_left else view.right(e, batch, k, at)
            return e.choose(present, lambda: [self.converted(e.value(source, index), source)], lambda: [zero], 1)

        return e.choose(inside, read, lambda: [zero], 1)[0]

    def converted(self, value: Value, source: Instruction) -> Value:
        if value.element is self.compute:
            return value
        return storage.convert(self.b, value, source.tensor_type.element, self.element)

    def shared(self, buffer: Buffer, k: Expr, at: Expr, width: int) -> Value:
        return self.b.load(buffer, self.e.position(k * (width + 1) + at))

    def multiply_add(self, x: Value, y: Value, total: Value) -> Value:
        b = self.b
        return b.fma(x, y, total) if self.compute.is_float else storage.wrap(b, b.add(b.mul(x, y), total), self.element)

    def finish(self, batch: Expr, row: Expr, column: Expr, total: Value) -> None:
        """Compute the roots from one sum and store them, where the tile is over the result."""
        e, b, view = self.e, self.b, self.view
        inside = b.and_(e.inside(row, 0, view.rows), e.inside(column, 0, view.columns))
        with b.if_(inside) as branch:
            with branch.then(), e.scope():
                m = e.bind("row", e.position(row), 0, view.rows - 1)
                n = e.bind("column", e.position(column), 0, view.columns - 1)
                at = view.result(batch, m, n)
                rounded = storage.round_to(b, total, self.element)
                e.leaves[self.hero] = lambda index: rounded
                values = emit_roots(self.cluster, e, at, self.hero.shape)
                for array, value in zip(self.frame.outputs, values, strict=True):
                    place = ix.linearize(ix.reshape(at, self.hero.shape, array.type.shape), array.type.shape)
                    b.store(array.buffer, e.position(place), storage.encode(b, value, array.type.element))
            with branch.otherwise():
                pass
        del e.leaves[self.hero]
