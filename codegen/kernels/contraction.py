"""Contractions: who computes which tiles of a sum of products, and in what order.

    for each block of tiles whose rows fit in cache
      for each panel of columns            (packed: all depths of `width` columns lie together)
        for each tile of rows              (as even as possible: 49 rows are 9 tiles of 5 and one of 4)
          sums = the register tile; store epilogue(sums)

Shared by dot and convolution (Goto, van de Geijn 2008; Georganas et al. 2018 for convolutions).
What is fused after the contraction comes in through `value`.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.epilogue import TileEpilogue
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Kernel, Value
from onnxla.codegen.kernels.loop import MOST_TASKS
from onnxla.codegen.kernels.register_tile import Place, Problem, RegisterTile, Right, Tiling
from onnxla.codegen.kernels.value import Index
from onnxla.codegen.lowering import Argument
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Shape

TASK_FLOPS = 400_000
"""Floating-point operations that make a task worth its dispatch."""
TASK_BYTES = 128 << 10
"""Bytes of the right operand that do so where few rows share them and reading it is the work."""


def emit_contraction(
    cluster: Cluster,
    hero: Instruction,
    frame_of: Callable[[str, int], tuple[Frame, Problem, Right]],
    problem: "Shapes",
    tiling: Tiling,
    name: str,
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
    right_bytes = 4.0 * shapes.batches * shapes.columns * math.prod(shapes.depth)
    wanted = max(1, min(int(max(flops / TASK_FLOPS, right_bytes / TASK_BYTES)), MOST_TASKS))
    every_panel = panels + (tail > 0)
    each = max(1, -(-wanted // shapes.batches))  # shares of one batch
    bytes_per_row = math.prod(shapes.depth) * 4
    tile_shares = min(tiles, each)
    if tiles * tiling.rows * bytes_per_row < 1 << 18 and every_panel >= tile_shares:
        # the left operand stays in cache: share out panels, so that each weight is read by one task only
        panel_shares, tile_shares = min(every_panel, each), 1
    else:
        panel_shares = min(every_panel, max(1, -(-each // tile_shares)))
    return Sharing(
        shapes.batches * panel_shares * tile_shares, panel_shares, panels, tail, tile_shares, tiles, tall, line_tiles
    )


class _Core:
    def __init__(
        self, cluster: Cluster, hero: Instruction, frame: Frame, problem: Problem, right: Right, tiling: Tiling
    ) -> None:
        self.problem, self.tiling = problem, tiling
        self.e, self.b = frame.emitter, frame.b
        self.tile = RegisterTile(frame.emitter, problem, right, tiling.lanes)
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
        self,
        plan: Sharing,
        batch: Expr,
        panel: Expr,
        vectors: int,
        last: int,
        base: Expr,
        within: Expr,
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

    def _tile(self, batch: Expr, panel: Expr, vectors: int, last: int, start: Expr, height: int) -> None:
        """One register tile: the sums, then the epilogue on them."""
        rows = [ix.delinearize(start + i, self.problem.rows) for i in range(height)]
        sums = self.tile.sums(Place(batch, panel, rows, vectors, last))

        def at(row: Expr, column: Expr) -> Index:
            where = ix.delinearize(start + row, self.problem.rows)
            return self.problem.result_index(batch, where, panel * self.tiling.width + column)

        self.epilogue.apply(sums, height, vectors, last, at)
