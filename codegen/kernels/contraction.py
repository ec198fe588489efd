"""The contraction core: a register tile of sums of products, shared by dot and convolution.

    for each panel of columns            (packed: all depths of `width` columns lie together)
      for each tile of rows              (as even as possible: 49 rows are 9 tiles of 5 and one of 4)
        accumulators[rows][vectors] = 0
        for each depth: accumulators += splat(a[row, depth]) * b[depth, vector]
        store epilogue(accumulators)

Rows are given by where they start in memory, so plain, strided, dilated and grouped convolutions
and matrices are one core (Goto, van de Geijn 2008; Georganas et al. 2018 for convolutions). The
accumulators are SSA values. What is fused after the contraction comes in through `value`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.epilogue import TileEpilogue
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Buffer, Kernel, Value
from onnxla.codegen.kernels.loop import MOST_TASKS
from onnxla.codegen.kernels.value import Array, Index, ValueEmitter
from onnxla.codegen.lowering import Argument
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S8, S16, S32, U8, ElementType, Shape
from onnxla.hlo.types import Array as NumpyArray

TASK_FLOPS = 400_000
"""Floating-point operations that make a task worth its dispatch."""

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


@dataclass(frozen=True)
class Tiling:
    """Register tile: at most `rows` x `vectors` vectors of `lanes`; panels are `width` columns."""

    rows: int
    vectors: int
    lanes: int
    by_line: bool
    """Tiles stay within the innermost row dimension, so that their rows lie at fixed distances."""

    @property
    def width(self) -> int:
        return self.vectors * self.lanes


def choose_tiling(
    rows: Shape, columns: int, fixed_distance: bool, element: ElementType, target: Target, group: int = 1
) -> Tiling:
    """A tile that keeps the FMA units busy: about 12 accumulators of 16 registers, 28 of 32.

    `fixed_distance` says that consecutive rows are equally far apart everywhere, not only within a line.
    """
    lanes = target.vector_bytes // storage.compute_element(element).bytes
    least = 1 if group == 1 else 4  # the instructions that add up groups take whole registers
    while lanes > least and lanes // 2 >= columns:
        lanes //= 2
    accumulators = 28 if target.vector_registers >= 32 else 12
    needed = -(-columns // lanes)
    most_rows = 14 if target.vector_registers >= 32 else 6
    count = math.prod(rows)
    by_line = False
    if not fixed_distance and len(rows) > 1:
        line = rows[-1]
        by_line = line / -(-line // most_rows) >= 0.75 * min(most_rows, count)
    span = rows[-1] if by_line else count
    height = -(-span // -(-span // most_rows))
    vectors = max(1, min(accumulators // height, 8, needed))
    if needed > vectors and needed % vectors:  # panels as even as possible
        vectors = -(-needed // -(-needed // vectors))
    return Tiling(height, vectors, lanes, by_line)


def pack_panels(right: NumpyArray, width: int, dtype: DType, group: int = 1) -> NumpyArray:
    """`right` as [batch, depth, columns] to [batch, panels, depth / group, width, group]; missing columns are zero."""
    batches, depth, columns = right.shape
    panels = -(-columns // width)
    padded = np.zeros((batches, depth, panels * width), dtype)
    padded[:, :, :columns] = right
    parts = padded.reshape(batches, depth // group, group, panels, width)
    return np.ascontiguousarray(parts.transpose(0, 3, 1, 4, 2))


def group_of(left: ElementType, right: ElementType, result: ElementType, target: Target) -> int:
    """How many products one instruction of the target adds up: 4 bytes, 2 halves of 16 bits, or 1."""
    if (left, right, result) != (U8, S8, S32) or not target.is_x86:
        return 1
    return 4 if target.has("avx512vnni") or target.has("avxvnni") else 2


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


def emit_contraction(
    cluster: Cluster, hero: Instruction, frame_of: Callable[[str, int], tuple[Frame, Problem, Right]],
    problem: "Shapes", tiling: Tiling, name: str,
) -> tuple[Kernel, tuple[Argument, ...]]:
    """The kernel: tasks share out batches, panels and lines of tiles; epilogue and stores included."""
    plan = _share_out(problem, tiling)
    frame, contraction, right = frame_of(name, plan.tasks)
    emitter = _Core(cluster, hero, frame, contraction, right, tiling)
    emitter.emit(plan)
    kernel = frame.b.finish()
    size = problem.batches * math.prod(problem.rows) * problem.columns * math.prod(problem.depth)
    kernel.flops = 2.0 * size * contraction.group
    return kernel, tuple(frame.arguments)


@dataclass(frozen=True)
class Shapes:
    """The sizes of a problem, known before there is a kernel."""

    batches: int
    rows: Shape
    columns: int
    depth: Shape


@dataclass(frozen=True)
class Sharing:
    """How work is cut: task = (batch, panel share, tile share), tile shares fastest."""

    tasks: int
    panel_shares: int
    panels: int
    """Whole panels; a narrower one may follow."""
    tail_columns: int
    tile_shares: int
    tiles: int
    """Tiles of one batch."""
    tall: int
    """How many tiles (of each line, or in all) have the full height; the rest have one row less."""
    line_tiles: int
    """Tiles of a line where tiles stay within lines, else all tiles."""


def _share_out(shapes: Shapes, tiling: Tiling) -> Sharing:
    panels, tail = divmod(shapes.columns, tiling.width)
    span = shapes.rows[-1] if tiling.by_line else math.prod(shapes.rows)
    line_tiles = -(-span // tiling.rows)
    tall = span - line_tiles * (-(-span // line_tiles) - 1)
    tiles = line_tiles * (math.prod(shapes.rows) // span)
    flops = 2.0 * shapes.batches * math.prod(shapes.rows) * shapes.columns * math.prod(shapes.depth)
    wanted = max(1, min(int(flops // TASK_FLOPS), MOST_TASKS))
    every_panel = panels + (tail > 0)
    tile_shares = min(tiles, max(1, -(-wanted // shapes.batches)))
    bytes_per_row = math.prod(shapes.depth) * 4
    if tiles * tiling.rows * bytes_per_row < 1 << 18 and every_panel >= tile_shares:
        # the left operand stays in cache: share out panels, so that each weight is read by one task only
        panel_shares, tile_shares = min(every_panel, tile_shares), 1
    else:
        panel_shares = min(every_panel, max(1, -(-wanted // (shapes.batches * tile_shares))))
    return Sharing(
        shapes.batches * panel_shares * tile_shares, panel_shares, panels, tail, tile_shares, tiles, tall, line_tiles
    )


class _Core:
    def __init__(
        self, cluster: Cluster, hero: Instruction, frame: Frame, problem: Problem, right: Right, tiling: Tiling
    ) -> None:
        self.cluster, self.hero, self.frame = cluster, hero, frame
        self.problem, self.right, self.tiling = problem, right, tiling
        self.e, self.b = frame.emitter, frame.b
        self.compute = storage.compute_element(problem.element)
        sums = tiling.rows * tiling.vectors
        self.epilogue = TileEpilogue(cluster, hero, frame, problem.element, tiling.lanes, sums)

    def emit(self, plan: Sharing) -> None:
        e, b = self.e, self.b
        task = e.bind("task", b.task, 0, plan.tasks - 1)
        tile_share = task % plan.tile_shares
        panel_share = (task // plan.tile_shares) % plan.panel_shares
        batch = task // (plan.tile_shares * plan.panel_shares)
        batch = e.bind("batch", e.position(batch), 0, self.problem.batches - 1)
        first_tile, last_tile = self._share(tile_share, plan.tiles, plan.tile_shares)
        every_panel = plan.panels + (plan.tail_columns > 0)
        first_panel, last_panel = self._share(panel_share, every_panel, plan.panel_shares)

        block = self._tile_block(plan)
        with self._blocks(first_tile, last_tile, block, plan.tiles) as (start_tile, stop_tile):
            whole = b.min(last_panel, b.const(plan.panels)) if plan.tail_columns else last_panel
            if plan.panels:
                with b.loop(first_panel, whole) as loop, e.scope():
                    panel = e.bind("panel", loop.index, 0, plan.panels - 1)
                    self._tiles(plan, batch, panel, self.tiling.vectors, self.tiling.lanes, start_tile, stop_tile)
            if plan.tail_columns:
                if plan.panel_shares == 1:
                    self._tail_panel(plan, batch, start_tile, stop_tile)
                else:
                    with b.if_(b.compare("EQ", last_panel, b.const(every_panel))) as branch:
                        with branch.then(), e.scope():
                            self._tail_panel(plan, batch, start_tile, stop_tile)
                        with branch.otherwise():
                            pass

    def _share(self, share: Expr, total: int, shares: int) -> tuple[Value, Value]:
        """The range of `total` things that a share has: as even as possible, larger shares first."""
        b, e = self.b, self.e
        if shares == 1:
            return b.const(0), b.const(total)
        small, more = divmod(total, shares)
        number = e.position(share)
        first = b.add(b.mul(number, b.const(small)), b.min(number, b.const(more)))
        extra = b.select(b.compare("LT", number, b.const(more)), b.const(small + 1), b.const(small))
        return first, b.add(first, extra)

    def _tile_block(self, plan: Sharing) -> int:
        """Tiles whose rows stay in half of a core's second-level cache while panels pass over them."""
        row_bytes = math.prod(self.problem.depth) * self.problem.left.type.element.bytes
        rows = max((256 << 10) // max(row_bytes, 1), self.tiling.rows)
        block = max(rows // self.tiling.rows, 1)
        if self.tiling.by_line:
            block = max(block // plan.line_tiles, 1) * plan.line_tiles
        return block

    @contextmanager
    def _blocks(self, first: Value, last: Value, step: int, most: int) -> Iterator[tuple[Value, Value]]:
        """A loop over [first, last) in blocks of `step`; no loop where one block holds the most there can be."""
        if step >= most:
            yield first, last
            return
        with self.b.loop(first, last, step) as loop, self.e.scope():
            yield loop.index, self.b.min(self.b.add(loop.index, self.b.const(step)), last)

    def _tail_panel(self, plan: Sharing, batch: Expr, start_tile: Value, stop_tile: Value) -> None:
        lanes = self.tiling.lanes
        vectors = -(-plan.tail_columns // lanes)
        rest = plan.tail_columns - (vectors - 1) * lanes
        self._tiles(plan, batch, ix.constant(plan.panels), vectors, rest, start_tile, stop_tile)

    def _tiles(
        self, plan: Sharing, batch: Expr, panel: Expr, vectors: int, last: int, start: Value, stop: Value
    ) -> None:
        """All tiles in [start, stop) against one panel."""
        e, b = self.e, self.b
        height = self.tiling.rows
        span = self.problem.rows[-1] if self.tiling.by_line else self.problem.row_count
        lines = plan.tiles // plan.line_tiles
        if lines > 1:
            with b.loop(start, stop) as loop, e.scope():
                tile = e.bind("tile", loop.index, 0, plan.tiles - 1)
                line, within = tile // plan.line_tiles, tile % plan.line_tiles
                line = e.bind("line", e.position(line), 0, lines - 1)
                within = e.bind("within", e.position(within), 0, plan.line_tiles - 1)
                self._tall_or_short(plan, batch, panel, vectors, last, line * span, within, height)
            return
        if plan.tall == plan.line_tiles:
            with b.loop(start, stop) as loop, e.scope():
                tile = e.bind("tile", loop.index, 0, plan.tiles - 1)
                self._tile(batch, panel, vectors, last, tile * height, height)
            return
        with b.loop(start, b.min(stop, b.const(plan.tall))) as loop, e.scope():
            tile = e.bind("tile", loop.index, 0, plan.tall - 1)
            self._tile(batch, panel, vectors, last, tile * height, height)
        with b.loop(b.max(start, b.const(plan.tall)), stop) as loop, e.scope():
            tile = e.bind("tile", b.sub(loop.index, b.const(plan.tall)), 0, plan.tiles - plan.tall - 1)
            self._tile(batch, panel, vectors, last, tile * (height - 1) + plan.tall * height, height - 1)

    def _tall_or_short(
        self, plan: Sharing, batch: Expr, panel: Expr, vectors: int, last: int, base: Expr, within: Expr,
        height: int,
    ) -> None:
        e, b = self.e, self.b
        if plan.tall == plan.line_tiles:
            self._tile(batch, panel, vectors, last, base + within * height, height)
            return
        with b.if_(b.compare("LT", e.position(within), b.const(plan.tall))) as branch:
            with branch.then(), e.scope():
                tile = e.bind("tall", e.position(within), 0, plan.tall - 1)
                self._tile(batch, panel, vectors, last, base + tile * height, height)
            with branch.otherwise(), e.scope():
                short = b.sub(e.position(within), b.const(plan.tall))
                tile = e.bind("short", short, 0, plan.line_tiles - plan.tall - 1)
                start = base + tile * (height - 1) + plan.tall * height
                self._tile(batch, panel, vectors, last, start, height - 1)

    def _tile(
        self, batch: Expr, panel: Expr, vectors: int, last: int, start: Expr, height: int
    ) -> None:
        """One register tile: the sums, then the epilogue on them."""
        b, lanes = self.b, self.tiling.lanes
        rows = [ix.delinearize(start + i, self.problem.rows) for i in range(height)]
        zero = b.const(0, self.compute, lanes)
        sums = self._nest(batch, panel, rows, vectors, last, 0, (), ix.ZERO, [zero] * (height * vectors))

        def at(row: Expr, column: Expr) -> Index:
            where = ix.delinearize(start + row, self.problem.rows)
            return self.problem.result_index(batch, where, panel * self.tiling.width + column)

        self.epilogue.apply(sums, height, vectors, last, at)

    def _nest(
        self, batch: Expr, panel: Expr, rows: Sequence[Index], vectors: int, last: int, level: int,
        depth: Index, flat: Expr, carried: Sequence[Value],
    ) -> list[Value]:
        """Loops over the depth dimensions; the innermost is unrolled."""
        sizes = self.problem.depth
        if level == len(sizes) - 1:
            return self._innermost(batch, panel, rows, vectors, last, depth, flat * sizes[-1], carried)
        with self.e.loop(f"k{level}", sizes[level], carry=carried) as (at, loop):
            loop.next = self._nest(
                batch, panel, rows, vectors, last, level + 1, (*depth, at), flat * sizes[level] + at, loop.carried
            )
        return loop.results

    def _innermost(
        self, batch: Expr, panel: Expr, rows: Sequence[Index], vectors: int, last: int, depth: Index,
        flat: Expr, carried: Sequence[Value],
    ) -> list[Value]:
        size = self.problem.depth[-1]
        unroll = 4 if len(carried) <= 12 else 2
        rounds, rest = divmod(size, unroll)
        sums = list(carried)
        if rounds == 1:
            rounds, rest = 0, size
        if rounds:
            with self.e.loop("k", rounds, carry=sums) as (at, loop):
                inner = list(loop.carried)
                for u in range(unroll):
                    k = at * unroll + u
                    inner = self._step(batch, panel, rows, vectors, last, (*depth, k), flat + k, inner)
                loop.next = inner
            sums = loop.results
        for u in range(rest):
            k = ix.constant(rounds * unroll + u)
            sums = self._step(batch, panel, rows, vectors, last, (*depth, k), flat + k, sums)
        return sums

    def _step(
        self, batch: Expr, panel: Expr, rows: Sequence[Index], vectors: int, last: int, depth: Index,
        flat: Expr, sums: Sequence[Value],
    ) -> list[Value]:
        """One depth: an outer product of a column of the left and a line of the right operand."""
        e, lanes = self.e, self.tiling.lanes
        line = []
        for j in range(vectors):
            with e.vector(lanes, last if j == vectors - 1 else lanes):
                line.append(self._right(batch, panel, flat, j * lanes))
        result = []
        for i, row in enumerate(rows):
            x = self._left(batch, row, depth)
            for j in range(vectors):
                result.append(self._multiply_add(x, line[j], sums[i * vectors + j]))
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

    def _right(self, batch: Expr, panel: Expr, flat: Expr, offset: int) -> Value:
        value = self.right.vector(self.e, batch, panel, flat, offset, self.tiling.lanes)
        if isinstance(self.right, PlainRight):
            return storage.convert(self.b, value, self.right.array.type.element, self.problem.element)
        return value

    def _multiply_add(self, x: Value, y: Value, total: Value) -> Value:
        if self.problem.group > 1:
            return self.b.dot_accumulate(total, x, y, self.problem.group)
        if self.compute.is_float:
            return self.b.fma(x, y, total)
        return self.b.add(self.b.mul(x, y), total)
