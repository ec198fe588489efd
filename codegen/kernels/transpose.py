"""Transposes of the innermost dimension, a square of elements at a time in registers.

Dimensions of size 1 aside, and with neighbours that stay together as one, many transposes swap the last two of
(outer, rows, columns). A square is loaded by rows, turned by shuffles, and stored by columns, so memory is read and
written in vectors. A few rows, such as the colours of a picture, are woven into one another.
"""

import math
from collections.abc import Sequence

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Buffer, Value
from onnxla.codegen.kernels.loop import lower_loop, name_of, task_count
from onnxla.codegen.kernels.value import Array
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.ops.shape import Transpose
from onnxla.hlo.types import Shape

MOST_LANES = 16
FEW = 4
"""Rows up to which they are woven in place of turning squares."""
SMALL = 48 << 10
"""Bytes of a matrix that the loop schedule reads across its rows without leaving the nearest cache."""


def lower_transpose(cluster: Cluster, target: Target) -> Lowering:
    """A cluster of one transpose; those of another form are left to the loop schedule."""
    root = cluster.roots[0]
    assert isinstance(root.op, Transpose)
    (operand,) = root.operands
    swapped = _as_swap(operand.shape, root.op.permutation)
    lanes = min(target.vector_bytes // storage.storage_element(root.tensor_type.element).bytes, MOST_LANES)
    if swapped is None or len(cluster.instructions) > 1 or lanes < FEW:
        return lower_loop(cluster, target)
    outer, rows, columns = swapped
    size = rows * columns * root.tensor_type.element.bytes
    if columns < lanes or (rows > FEW and size < SMALL):
        return lower_loop(cluster, target)
    steps = -(-columns // lanes)  # each task gets some vectors of columns of some matrices
    share = -(-outer * steps // task_count(4.0 * root.tensor_type.size / lanes, outer * steps))
    frame = Frame(cluster, name_of(cluster), -(-outer * steps // share))
    e, b = frame.emitter, frame.b
    source = e.leaves[operand]
    assert isinstance(source, Array)
    turn = _Turn(frame, source.buffer, frame.outputs[0].buffer, rows, columns, lanes)
    first = b.mul(b.task, b.const(share))
    with b.loop(first, b.min(b.add(first, b.const(share)), b.const(outer * steps))) as loop, e.scope():
        number = e.bind("number", loop.index, 0, outer * steps - 1)
        matrix = e.bind("matrix", e.position(number // steps), 0, outer - 1)
        step = e.bind("step", e.position(number % steps), 0, steps - 1)
        turn.columns_of(matrix * (rows * columns), step)
    return Lowering((KernelCall(b.finish(), tuple(frame.arguments)),))


def _as_swap(shape: Shape, permutation: Shape) -> tuple[int, int, int] | None:
    """(outer, rows, columns) where the transpose swaps the last two of three dimensions, else None."""
    order = [d for d in permutation if shape[d] != 1]
    ranks = sorted(order)
    groups: list[list[int]] = []
    for d in order:
        if groups and ranks.index(d) == ranks.index(groups[-1][-1]) + 1:
            groups[-1].append(d)
        else:
            groups.append([d])
    sizes = [math.prod(shape[d] for d in group) for group in groups]
    firsts = [group[0] for group in groups]
    if len(groups) == 2 and firsts[0] > firsts[1]:
        return 1, sizes[1], sizes[0]
    if len(groups) == 3 and firsts[0] < firsts[2] < firsts[1]:
        return sizes[0], sizes[2], sizes[1]
    return None


class _Turn:
    """Emits the columns of one matrix after the other as rows of the result."""

    def __init__(self, frame: Frame, source: Buffer, result: Buffer, rows: int, columns: int, lanes: int) -> None:
        self.e, self.b = frame.emitter, frame.b
        self.source, self.result, self.rows, self.columns, self.lanes = source, result, rows, columns, lanes

    def columns_of(self, start: Expr, step: Expr) -> None:
        """`lanes` columns of the matrix at `start`, or what is left of them."""
        whole, rest = divmod(self.columns, self.lanes)
        if not rest:
            self._strip(start, step, self.lanes)
            return
        b, e = self.b, self.e
        with b.if_(b.compare("LT", e.position(step), b.const(whole))) as branch:
            with branch.then(), e.scope():
                if whole:
                    self._strip(start, e.bind("whole", e.position(step), 0, whole - 1), self.lanes)
            with branch.otherwise(), e.scope():
                self._strip(start, ix.constant(whole), rest)

    def _strip(self, start: Expr, step: Expr, columns: int) -> None:
        """All rows of some columns."""
        column = step * self.lanes
        if self.rows <= FEW:
            self._weave(start, column, columns)
            return
        whole, rest = divmod(self.rows, self.lanes)
        if whole:
            with self.e.loop("r", whole) as (r, _):
                self._square(start, r * self.lanes, self.lanes, column, columns)
        if rest:
            self._square(start, ix.constant(whole * self.lanes), rest, column, columns)

    def _square(self, start: Expr, row: Expr, rows: int, column: Expr, columns: int) -> None:
        """A square of which `rows` rows and `columns` columns are there."""
        zero = self.b.const(0, self.source.element, self.lanes)
        lines = [self._load(start + (row + i) * self.columns + column, columns) for i in range(rows)]
        lines += [zero] * (self.lanes - rows)
        for j, line in enumerate(self._turned(lines)[:columns]):
            self._store(start + (column + j) * self.rows + row, line, rows)

    def _turned(self, lines: list[Value]) -> list[Value]:
        """Swap blocks across the diagonal, of one element, then two, and so on."""
        distance, lanes = 1, range(self.lanes)
        while distance < self.lanes:
            for i in lanes:
                if not i & distance:
                    one, other = lines[i], lines[i + distance]
                    low = [k if not k & distance else self.lanes + k - distance for k in lanes]
                    high = [k + distance if not k & distance else self.lanes + k for k in lanes]
                    lines[i] = self.b.shuffle(one, other, low)
                    lines[i + distance] = self.b.shuffle(one, other, high)
            distance *= 2
        return lines

    def _weave(self, start: Expr, column: Expr, columns: int) -> None:
        """A few whole rows become runs of as many elements."""
        lines = [self._load(start + i * self.columns + column, columns) for i in range(self.rows)]
        count = columns * self.rows
        for first in range(0, count, self.lanes):
            places = [divmod(min(first + k, count - 1), self.rows) for k in range(self.lanes)]
            line = lines[0]
            for i in range(self.rows):
                picked = [place if row == i else -1 for place, row in places]
                line = (
                    self._merged(line, lines[i], picked)
                    if i
                    else self.b.shuffle(line, line, [max(p, 0) for p in picked])
                )
            self._store(start + column * self.rows + first, line, min(self.lanes, count - first))

    def _merged(self, line: Value, other: Value, picked: Sequence[int]) -> Value:
        """`line` with lane k replaced by lane `picked[k]` of the other where that is not -1."""
        return self.b.shuffle(line, other, [k if p < 0 else self.lanes + p for k, p in enumerate(picked)])

    def _load(self, at: Expr, active: int) -> Value:
        with self.e.vector(self.lanes, active):
            return self.b.load(self.source, self.e.position(at), self.lanes, self.e.mask)

    def _store(self, at: Expr, line: Value, active: int) -> None:
        with self.e.vector(self.lanes, active):
            self.b.store(self.result, self.e.position(at), line, self.e.mask)
