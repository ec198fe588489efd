"""A contraction as products of matrices, for the schedules that tile them: operands by place, results by place.

Operands come in through `value`, at indices that a `View` gives, so any layout, padding or fused producer will do; what
follows the contraction in its cluster is applied to the sums before they are stored.
"""

from collections.abc import Callable
from dataclasses import dataclass

from onnxla.codegen.gpu.views import landing
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.loop import name_of
from onnxla.codegen.kernels.value import Index, ValueEmitter
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import ElementType

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
    left_run: int = 1
    """In that direction, places from one multiple of this to the next lie together in memory, all there or all padding,
    and the first of them at a multiple of it."""
    right_run: int = 1


@dataclass(frozen=True)
class Tile:
    """What a block computes."""

    rows: int
    columns: int


class Product:
    """The kernel of a contraction under construction: a block for each tile of each product."""

    def __init__(
        self, cluster: Cluster, hero: Instruction, view: View, element: ElementType, tile: Tile, threads: int
    ) -> None:
        self.cluster, self.hero, self.view, self.element, self.tile = cluster, hero, view, element, tile
        self.grid = (view.batches, -(-view.rows // tile.rows), -(-view.columns // tile.columns))
        tasks = self.grid[0] * self.grid[1] * self.grid[2]
        self.frame = Frame(cluster, name_of(cluster), tasks)
        self.e, self.b = self.frame.emitter, self.frame.b
        self.threads = self.b.kernel.threads = threads
        self.b.kernel.flops = 2.0 * view.batches * view.rows * view.columns * view.depth
        self.compute = storage.compute_element(element)
        task = self.e.bind("task", self.b.task, 0, max(tasks - 1, 0))
        self.batch, row_tile, column_tile = ix.delinearize(task, self.grid)
        self.first_row, self.first_column = row_tile * tile.rows, column_tile * tile.columns
        self.thread = self.e.bind("thread", self.b.thread(), 0, threads - 1)

    def operand(self, depth: Expr, line: Expr, is_left: bool) -> Value:
        """One element of an operand in the type of the sums; zero outside. `line` is a row or a column."""
        e, b, view = self.e, self.b, self.view
        size = view.rows if is_left else view.columns
        zero = e.literal(0, self.element)
        inside = b.and_(e.inside(depth, 0, view.depth), e.inside(line, 0, size))
        source = self.hero.operands[0 if is_left else 1]

        def read() -> list[Value]:
            # positions inside the operand, whose ranges say so
            k = e.bind("depth", e.position(depth), 0, view.depth - 1)
            at = e.bind("line", e.position(line), 0, size - 1)
            present, index = self.located(k, at, is_left)
            return e.choose(present, lambda: [self._converted(e.value(source, index), source)], lambda: [zero], 1)

        return e.choose(inside, read, lambda: [zero], 1)[0]

    def located(self, depth: Expr, line: Expr, is_left: bool) -> Located:
        view = self.view
        if is_left:
            return view.left(self.e, self.batch, line, depth)
        return view.right(self.e, self.batch, depth, line)

    def _converted(self, value: Value, source: Instruction) -> Value:
        if value.element is self.compute:
            return value
        return storage.convert(self.b, value, source.tensor_type.element, self.element)

    def finish(self, row: Expr, column: Expr, total: Value) -> None:
        """Compute the roots from one sum and store them, where the tile is over the result."""
        e, b, view = self.e, self.b, self.view
        inside = b.and_(e.inside(row, 0, view.rows), e.inside(column, 0, view.columns))
        with b.if_(inside) as branch:
            with branch.then(), e.scope():
                m = e.bind("row", e.position(row), 0, view.rows - 1)
                n = e.bind("column", e.position(column), 0, view.columns - 1)
                at = view.result(self.batch, m, n)
                rounded = storage.round_to(b, total, self.element)
                e.leaves[self.hero] = lambda index: rounded
                for root, array in zip(self.cluster.roots, self.frame.outputs, strict=True):
                    place = landing(root, at, self.hero.shape)
                    value = storage.encode(b, e.value(root, place), array.type.element)
                    b.store(array.buffer, e.position(ix.linearize(place, array.type.shape)), value)
            with branch.otherwise():
                pass
        del e.leaves[self.hero]
