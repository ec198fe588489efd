"""What the kernels of attention have in common: blocks of queries, scores as the model makes them, where results go."""

from collections.abc import Callable

from onnxla.codegen.gpu.dot import view_of
from onnxla.codegen.gpu.product import Located, View
from onnxla.codegen.gpu.views import landing
from onnxla.codegen.kernels import elementwise, storage
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.loop import name_of
from onnxla.codegen.kernels.value import Index
from onnxla.hlo.attention import Attention
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32

INFINITY = float("inf")


class AttentionKernel:
    """A kernel under construction: a block for so many queries of each batch, which goes through the keys in rounds."""

    def __init__(self, cluster: Cluster, attention: Attention, queries: int, threads: int) -> None:
        self.attention, self.scored, self.summed = attention, view_of(attention.first), view_of(attention.second)
        self.grid = (self.scored.batches, -(-self.scored.rows // queries))
        self.frame = Frame(cluster, name_of(cluster), self.grid[0] * self.grid[1])
        self.e, self.b = self.frame.emitter, self.frame.b
        e, b, scored = self.e, self.b, self.scored
        b.kernel.threads = threads
        products = scored.depth + self.summed.columns
        b.kernel.flops = 2.0 * scored.batches * scored.rows * scored.columns * products
        self.held = attention.first.operands[0].tensor_type.element
        task = e.bind("task", b.task, 0, max(b.kernel.tasks - 1, 0))
        self.batch, block = ix.delinearize(task, self.grid)
        self.first_query = block * queries
        self.thread = e.bind("thread", b.thread(), 0, threads - 1)

    def located(self, view: View, is_left: bool) -> Callable[[Expr, Expr], Located]:
        """Where a factor has what it has at a depth and a line (a row of the left one, a column of the right one)."""
        if is_left:
            return lambda depth, line: view.left(self.e, self.batch, line, depth)
        return lambda depth, line: view.right(self.e, self.batch, depth, line)

    def factor_at(self, view: View, source: Instruction, is_left: bool) -> Callable[[Expr, Expr], Value]:
        """What it has there; zero outside."""
        e, lines = self.e, view.rows if is_left else view.columns
        located = self.located(view, is_left)

        def value(depth: Expr, line: Expr) -> Value:
            inside = self.b.and_(e.inside(depth, 0, view.depth), e.inside(line, 0, lines))

            def read() -> list[Value]:
                k, at = self.clamped("depth", depth, view.depth), self.clamped("line", line, lines)
                return [e.value(source, located(k, at)[1])]

            return e.choose(inside, read, lambda: [e.literal(0, self.held)], 1)[0]

        return value

    def clamped(self, name: str, expr: Expr, size: int) -> Expr:
        """The expression, or the last place where it is beyond."""
        at = self.b.min(self.e.position(expr), self.b.const(size - 1)) if expr.high >= size else self.e.position(expr)
        return self.e.bind(name, at, 0, size - 1)

    def score(self, product: Value, row: Expr, key: Expr) -> Value:
        """What the model makes of a product; -inf where there is no such key."""
        e, b = self.e, self.b
        inside = e.inside(key, 0, self.scored.columns)
        at = self.scored.result(self.batch, row, self.clamped("key", key, self.scored.columns))
        e.leaves[self.attention.first] = lambda index: product
        with e.scope():
            value = e.value(self.attention.scores, at)
        del e.leaves[self.attention.first]
        return b.select(inside, value, b.const(-INFINITY, F32))

    def level(self, highest: Value) -> Value:
        """What is taken off scores before their exponential: the highest, or 0 where all so far are -inf, so that
        exponentials are 0 and not NaN."""
        b = self.b
        return b.select(b.compare("EQ", highest, b.const(-INFINITY, F32)), b.const(0.0, F32), highest)

    def exponential(self, x: Value) -> Value:
        return elementwise.emit(self.b, self.attention.exponential.op, F32, [x])

    def over_lanes(self, combine: Callable[[Value, Value], Value], value: Value, lanes: int) -> Value:
        """The same value for each `lanes` neighbours, combined."""
        distance = 1
        while distance < lanes:
            value = combine(value, self.b.shuffle_xor(value, distance))
            distance *= 2
        return value

    def store_feature(self, row: Expr, column: Expr, value: Value) -> None:
        """A result of a query, where there is such a feature."""
        e, b, columns = self.e, self.b, self.summed.columns
        if column.high < columns:
            self._store(self.summed.result(self.batch, row, column), value)
            return
        with b.if_(e.inside(column, 0, columns)) as branch:
            with branch.then(), e.scope():
                at = e.bind("column", e.position(column), 0, columns - 1)
                self._store(self.summed.result(self.batch, row, at), value)
            with branch.otherwise():
                pass

    def _store(self, at: Index, value: Value) -> None:
        """At an index of the second product, where the transposes behind it put it."""
        e, b, second = self.e, self.b, self.attention.second
        (output,), (root,) = self.frame.outputs, self.frame.cluster.roots
        rounded = storage.round_to(b, value, second.tensor_type.element)
        e.leaves[second] = lambda index: rounded
        place = landing(root, at, second.shape)
        stored = storage.encode(b, e.value(root, place), output.type.element)
        b.store(output.buffer, e.position(ix.linearize(place, output.type.shape)), stored)
        del e.leaves[second]
