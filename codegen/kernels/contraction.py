"""Contractions: who computes which tiles of a sum of products, and in what order.

    for each block of tiles whose rows fit in cache
      for each panel of columns            (packed: all depths of `width` columns lie together)
        for each tile of rows              (as even as possible: 49 rows are 9 tiles of 5 and one of 4)
          sums = the register tile; store epilogue(sums)

A panel is read from memory once, by its first block of tiles; the rows of a block stay in the second-level cache
meanwhile. Tasks share out panels where all rows fit there, else blocks of rows.

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
from onnxla.codegen.kernels.register_tile import Place, Problem, RegisterTile, Right, Turn
from onnxla.codegen.kernels.tiling import Shapes, Sharing, Tiling, share_out
from onnxla.codegen.kernels.value import Index
from onnxla.codegen.lowering import Argument
from onnxla.hlo.module import Instruction


def emit_contraction(
    cluster: Cluster,
    hero: Instruction,
    frame_of: Callable[[str, int], tuple[Frame, Problem, Right]],
    problem: Shapes,
    tiling: Tiling,
    name: str,
) -> tuple[Kernel, tuple[Argument, ...]]:
    """The kernel: tasks share out batches, panels and lines of tiles; epilogue and stores included."""
    plan = share_out(problem, tiling)
    frame, contraction, right = frame_of(name, plan.tasks)
    emitter = _Core(cluster, hero, frame, contraction, right, tiling)
    emitter.emit(plan)
    kernel = frame.b.finish()
    size = problem.batches * math.prod(problem.rows) * problem.columns * math.prod(problem.depth)
    kernel.flops = 2.0 * size * contraction.group
    return kernel, tuple(frame.arguments)


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

        with self._blocks(plan, first_tile, last_tile) as (start_tile, stop_tile):
            whole = b.min(last_panel, b.const(plan.panels)) if plan.tail_columns else last_panel
            if plan.panels:
                with b.loop(first_panel, whole) as loop, e.scope():
                    panel = e.bind("panel", loop.index, 0, plan.panels - 1)
                    whole_panel = _Panel(batch, panel, self.tiling.vectors, self.tiling.lanes)
                    self._tiles(plan, whole_panel, start_tile, stop_tile)
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

    @contextmanager
    def _blocks(self, plan: Sharing, first: Value, last: Value) -> Iterator[tuple[Value, Value]]:
        """A loop over the tiles [first, last) in blocks; no loop where one block holds the most there can be."""
        if plan.block >= -(-plan.tiles // plan.tile_shares):
            yield first, last
            return
        with self.b.loop(first, last, plan.block) as loop, self.e.scope():
            yield loop.index, self.b.min(self.b.add(loop.index, self.b.const(plan.block)), last)

    def _tail_panel(self, plan: Sharing, batch: Expr, start_tile: Value, stop_tile: Value) -> None:
        lanes = self.tiling.lanes
        vectors = -(-plan.tail_columns // lanes)
        rest = plan.tail_columns - (vectors - 1) * lanes
        self._tiles(plan, _Panel(batch, ix.constant(plan.panels), vectors, rest), start_tile, stop_tile)

    def _tiles(self, plan: Sharing, panel: "_Panel", start: Value, stop: Value) -> None:
        """All tiles in [start, stop) against one panel."""
        e, b = self.e, self.b
        height = self.tiling.rows
        span = self.problem.rows[-1] if self.tiling.by_line else self.problem.row_count
        lines = plan.tiles // plan.line_tiles

        def turn(tile: Value) -> Expr:
            """How many tiles of this range came before; only prefetching depends on it."""
            return e.bind("turn", b.sub(tile, start), 0, plan.tiles - 1) if plan.block > 1 else ix.ZERO

        # A single tile of its height would stand outside any loop over tiles, where LLVM keeps the constants of its
        # epilogue in registers while it adds up, and sums in memory.
        if lines > 1 or 1 in (plan.tall, plan.line_tiles - plan.tall):
            with b.loop(start, stop) as loop, e.scope():
                tile = e.bind("tile", loop.index, 0, plan.tiles - 1)
                line, within = tile // plan.line_tiles, tile % plan.line_tiles
                line = e.bind("line", e.position(line), 0, lines - 1)
                within = e.bind("within", e.position(within), 0, plan.line_tiles - 1)
                self._tall_or_short(plan, panel, line * span, within, Turn(turn(loop.index), plan.block))
            return
        if plan.tall == plan.line_tiles:
            with b.loop(start, stop) as loop, e.scope():
                tile = e.bind("tile", loop.index, 0, plan.tiles - 1)
                self._tile(panel, tile * height, height, Turn(turn(loop.index), plan.block))
            return
        with b.loop(start, b.min(stop, b.const(plan.tall))) as loop, e.scope():
            tile = e.bind("tile", loop.index, 0, plan.tall - 1)
            self._tile(panel, tile * height, height, Turn(turn(loop.index), plan.block))
        with b.loop(b.max(start, b.const(plan.tall)), stop) as loop, e.scope():
            tile = e.bind("tile", b.sub(loop.index, b.const(plan.tall)), 0, plan.tiles - plan.tall - 1)
            first = tile * (height - 1) + plan.tall * height
            self._tile(panel, first, height - 1, Turn(turn(loop.index), plan.block))

    def _tall_or_short(self, plan: Sharing, panel: "_Panel", base: Expr, within: Expr, turn: Turn) -> None:
        e, b = self.e, self.b
        height = self.tiling.rows
        if plan.tall == plan.line_tiles:
            self._tile(panel, base + within * height, height, turn)
            return
        with b.if_(b.compare("LT", e.position(within), b.const(plan.tall))) as branch:
            with branch.then(), e.scope():
                tile = e.bind("tall", e.position(within), 0, plan.tall - 1)
                self._tile(panel, base + tile * height, height, turn)
            with branch.otherwise(), e.scope():
                short = b.sub(e.position(within), b.const(plan.tall))
                tile = e.bind("short", short, 0, plan.line_tiles - plan.tall - 1)
                self._tile(panel, base + tile * (height - 1) + plan.tall * height, height - 1, turn)

    def _tile(self, panel: "_Panel", start: Expr, height: int, turn: Turn) -> None:
        """One register tile: the sums, then the epilogue on them."""
        rows = [ix.delinearize(start + i, self.problem.rows) for i in range(height)]
        sums = self.tile.sums(Place(panel.batch, panel.number, rows, panel.vectors, panel.last, turn))

        def at(row: Expr, column: Expr) -> Index:
            where = ix.delinearize(start + row, self.problem.rows)
            return self.problem.result_index(panel.batch, where, panel.number * self.tiling.width + column)

        self.epilogue.apply(sums, height, panel.vectors, panel.last, at)


@dataclass(frozen=True)
class _Panel:
    """Some columns of a batch: `vectors` vectors of them, the last with `last` active lanes."""

    batch: Expr
    number: Expr
    vectors: int
    last: int
