"""The register tile: sums of products of a few rows by a few vectors of columns, held in registers.

It is the one inner loop of dot, convolution and Winograd's middle. Rows are given by where they
start in memory, so plain, strided, dilated and grouped operands are one core; the right operand is
packed into panels, or read where it lies. The accumulators are SSA values.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Buffer, Value
from onnxla.codegen.kernels.value import Array, Index, ValueEmitter
from onnxla.hlo.types import S8, S16, S32, U8, ElementType, Shape
from onnxla.hlo.types import Array as NumpyArray

FAR_BYTES = 256 << 10
"""Size of a right operand from which it is not expected in a core's caches."""
ROUND = 8
"""Depths between two requests for memory where depths are not unrolled."""
STRIDE_BYTES = 512
"""How far one round of the innermost loop goes on in a panel: CPUs foresee what an instruction loads next by its
distance to what it loaded last, up to some 2 KB and for not many instructions."""
DType: TypeAlias = "np.dtype[Any]"
Position = Callable[[Expr, Index, Index], Index]
"""(batch, row index, depth index) -> index into the left operand."""


@dataclass(frozen=True)
class Problem:
    """What is contracted, in terms of batches, rows, columns and depth.

    The result at (batch, row, column) is the sum over depth of left * right. `result_index` gives
    the contraction's own index of that place.
    """

    batches: int
    rows: Shape
    """Row dimensions; tiles walk their row-major order."""
    columns: int
    depth: Shape
    """Depth dimensions, in the order the packed right operand holds them."""
    left: Array
    left_index: Position
    element: ElementType
    """Element type of the sums."""
    result_index: Callable[[Expr, Index, Expr], Index]
    group: int = 1
    """Neighbours of the last depth dimension that one instruction multiplies and adds; `depth` counts groups."""

    @property
    def row_count(self) -> int:
        return math.prod(self.rows)


def pack_panels(right: NumpyArray, width: int, dtype: DType, group: int = 1) -> NumpyArray:
    """`right` as [batch, depth, columns] to [batch, panels, depth / group, width, group]; missing columns are zero."""
    batches, depth, columns = right.shape
    panels, whole = -(-columns // width), columns // width
    packed = np.zeros((batches, panels, depth // group, width, group), dtype)
    # Splitting a dimension copies nothing, so the result is all that is in memory beside the weights.
    parts = right[:, :, : whole * width].reshape(batches, depth // group, group, whole, width)
    packed[:, :whole] = parts.transpose(0, 3, 1, 4, 2)
    left = columns - whole * width
    if left:
        rest = right[:, :, whole * width :].reshape(batches, depth // group, group, left)
        packed[:, whole, :, :left] = rest.transpose(0, 1, 3, 2)
    return packed


def group_of(left: ElementType, right: ElementType, result: ElementType, target: Target) -> int:
    """How many products one instruction of the target adds up, exactly: 4 bytes, 2 halves of 16 bits, or 1."""
    if not {left, right} <= {U8, S8, S16} or result is not S32 or not target.is_x86:
        return 1  # sums of pairs of 16 bits wrap as sums of 32 bits do
    in_bytes = (left, right) == (U8, S8) and (target.has("avx512vnni") or target.has("avxvnni"))
    return 4 if in_bytes else 2


def packed_element(result: ElementType, group: int) -> ElementType:
    """The element type of a packed right operand."""
    return {1: storage.compute_element(result), 2: S16, 4: S8}[group]


@dataclass(frozen=True)
class PackedRight:
    """The right operand as panels, all depths of a panel one after the other."""

    buffer: Buffer
    width: int
    panel_elements: int
    batch_elements: int
    group: int = 1

    def vector(self, e: ValueEmitter, batch: Expr, panel: Expr, depth: Expr, lane_offset: int, lanes: int) -> Value:
        """A line of the panel; with groups, each lane holds one."""
        at = batch * self.batch_elements + panel * self.panel_elements + depth * self.width + lane_offset
        alignment = min(lanes * self.group * self.buffer.element.bytes, 64)
        line = e.b.load(self.buffer, e.position(at * self.group), lanes * self.group, alignment=alignment)
        return line if self.group == 1 else e.b.reinterpret(line, S32)


@dataclass(frozen=True)
class PlainRight:
    """The right operand where it lies; columns are best consecutive."""

    array: Array
    index: Callable[[Expr, Expr, Expr], Index]
    """(batch, flat depth, column) -> index into the right operand."""
    width: int

    def vector(self, e: ValueEmitter, batch: Expr, panel: Expr, depth: Expr, lane_offset: int, lanes: int) -> Value:
        assert e.lane is not None
        column = panel * self.width + ix.of(e.lane) + lane_offset
        return e.load(self.array, self.index(batch, depth, column))


Right = PackedRight | PlainRight


@dataclass(frozen=True)
class Turn:
    """Which of the tiles that use a panel one after the other; by default the only one."""

    number: Expr = ix.ZERO
    count: int = 1


@dataclass(frozen=True)
class Place:
    """Which tile: its rows, its panel of columns, and how many vectors of that; the last has `last` active lanes."""

    batch: Expr
    panel: Expr
    rows: Sequence[Index]
    vectors: int
    last: int
    turn: Turn = Turn()


class RegisterTile:
    """Emits tiles of one problem."""

    def __init__(self, e: ValueEmitter, problem: Problem, right: Right, lanes: int) -> None:
        self.e, self.b = e, e.b
        self.problem, self.right, self.lanes = problem, right, lanes
        self.compute = storage.compute_element(problem.element)

    def sums(self, place: Place) -> list[Value]:
        """All sums of a tile, over the whole depth: `[row * vectors + vector]`."""
        zero = self.b.const(0, self.compute, self.lanes)
        return self._nest(place, 0, (), ix.ZERO, [zero] * (len(place.rows) * place.vectors))

    def _nest(self, place: Place, level: int, depth: Index, flat: Expr, carried: Sequence[Value]) -> list[Value]:
        """Loops over the depth dimensions; the innermost is unrolled."""
        sizes = self.problem.depth
        if level == len(sizes) - 1:
            return self._innermost(place, depth, flat * sizes[-1], carried)
        with self.e.loop(f"k{level}", sizes[level], carry=carried) as (at, loop):
            loop.next = self._nest(place, level + 1, (*depth, at), flat * sizes[level] + at, loop.carried)
        return loop.results

    def _innermost(self, place: Place, depth: Index, flat: Expr, carried: Sequence[Value]) -> list[Value]:
        size = self.problem.depth[-1]
        if self.problem.group == 2:
            return self._rolled(place, depth, flat, carried)
        unroll = 4 if len(carried) <= 12 else 2
        if isinstance(self.right, PackedRight):
            unroll = max(min(unroll, STRIDE_BYTES // (place.vectors * self.lanes * self.compute.bytes)), 1)
        rounds, rest = divmod(size, unroll)
        sums = list(carried)
        if rounds == 1:
            rounds, rest = 0, size
        if rounds:
            with self.e.loop("k", rounds, carry=sums) as (at, loop):
                inner = list(loop.carried)
                self._fetch_ahead(place, flat + at * unroll, unroll)
                for u in range(unroll):
                    k = at * unroll + u
                    inner = self._step(place, (*depth, k), flat + k, inner)
                loop.next = inner
            sums = loop.results
        for u in range(rest):
            k = ix.constant(rounds * unroll + u)
            sums = self._step(place, (*depth, k), flat + k, sums)
        return sums

    def _rolled(self, place: Place, depth: Index, flat: Expr, carried: Sequence[Value]) -> list[Value]:
        """One depth at a time: of several LLVM would add up the products first, which takes more registers than
        there are. An outer loop asks for memory, whose lines are longer than what one depth needs."""
        size = self.problem.depth[-1]
        rounds, rest = divmod(size, ROUND) if self._fetches(place) else (0, size)
        sums = list(carried)
        if rounds:
            with self.e.loop("round", rounds, carry=sums) as (at, loop):
                self._fetch_ahead(place, flat + at * ROUND, ROUND)
                loop.next = self._run(place, depth, flat, at * ROUND, ROUND, loop.carried)
            sums = loop.results
        return self._run(place, depth, flat, ix.constant(rounds * ROUND), rest, sums) if rest else sums

    def _run(
        self, place: Place, depth: Index, flat: Expr, first: Expr, count: int, carried: Sequence[Value]
    ) -> list[Value]:
        with self.e.loop("k", count, carry=carried) as (at, loop):
            loop.next = self._step(place, (*depth, first + at), flat + first + at, loop.carried)
        return loop.results

    def _fetches(self, place: Place) -> bool:
        """Whether panels come from memory, and are used often enough: where reading is all the work, the hardware sees
        what comes next."""
        far = isinstance(self.right, PackedRight) and self.right.buffer.bytes >= FAR_BYTES
        return far and len(place.rows) * place.turn.count >= 8

    def _fetch_ahead(self, place: Place, flat: Expr, depths: int) -> None:
        """Ask for this turn's part of the next panel, so that memory is read while the registers work.

        A panel serves its tiles from cache; without this the first of them would wait for memory at each depth.
        """
        right, turn = self.right, place.turn
        if not self._fetches(place):
            return
        assert isinstance(right, PackedRight)
        line = 64 // right.buffer.element.bytes
        share = -(-right.panel_elements * right.group // (turn.count * line)) * line
        stride = -(-right.width * right.group * depths // turn.count)
        start = (place.batch * right.batch_elements + (place.panel + 1) * right.panel_elements) * right.group
        for k in range(-(-stride // line)):
            at = start + turn.number * share + flat // depths * stride + k * line
            self.b.prefetch(right.buffer, self.e.position(at))

    def _step(self, place: Place, depth: Index, flat: Expr, sums: Sequence[Value]) -> list[Value]:
        """One depth: an outer product of a column of the left and a line of the right operand."""
        e, lanes = self.e, self.lanes
        line = []
        for j in range(place.vectors):
            with e.vector(lanes, place.last if j == place.vectors - 1 else lanes):
                line.append(self._right(place, flat, j * lanes))
        result = []
        for i, row in enumerate(place.rows):
            x = self._left(place.batch, row, depth)
            for j in range(place.vectors):
                result.append(self._multiply_add(x, line[j], sums[i * place.vectors + j]))
        return result

    def _left(self, batch: Expr, row: Index, depth: Index) -> Value:
        """One element of the left operand, or a group of neighbours packed in 32 bits."""
        e, b, group, left = self.e, self.b, self.problem.group, self.problem.left
        if group == 1:
            x = e.load(left, self.problem.left_index(batch, row, depth))
            return storage.convert(b, x, left.type.element, self.problem.element)
        at = self.problem.left_index(batch, row, (*depth[:-1], depth[-1] * group))
        raw = b.load(left.buffer, e.position(ix.linearize(at, left.type.shape)), group)
        return b.reinterpret(raw if group == 4 else b.convert(raw, S16), S32)

    def _right(self, place: Place, flat: Expr, offset: int) -> Value:
        value = self.right.vector(self.e, place.batch, place.panel, flat, offset, self.lanes)
        if isinstance(self.right, PlainRight):
            return storage.convert(self.b, value, self.right.array.type.element, self.problem.element)
        return value

    def _multiply_add(self, x: Value, y: Value, total: Value) -> Value:
        if self.problem.group > 1:
            return self.b.dot_accumulate(total, x, y, self.problem.group)
        return self.b.multiply_add(x, y, total)
