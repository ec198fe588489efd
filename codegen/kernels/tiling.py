"""How a contraction is cut: register tiles, blocks that stay in cache, and tasks.

All of it is decided from sizes and the target before there is a kernel.
"""

import math
from dataclasses import dataclass

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.loop import MOST_TASKS
from onnxla.hlo.types import ElementType, Shape

TASK_FLOPS = 400_000
"""Floating-point operations that make a task worth its dispatch."""
TASK_BYTES = 128 << 10
"""Bytes of the right operand that do so where few rows share them and reading it is the work."""


@dataclass(frozen=True)
class Tiling:
    """Register tile: at most `rows` x `vectors` vectors of `lanes`; panels are `width` columns."""

    rows: int
    vectors: int
    lanes: int
    by_line: bool
    """Tiles stay within the innermost row dimension, so that their rows lie at fixed distances."""
    cache_bytes: int
    """What may stay in a core's second-level cache of an operand that is used again."""

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
    most_rows = 6
    if target.vector_registers >= 32:
        most_rows = 14 if group < 4 else 12  # rows of bytes are often a power of two apart, in few sets of the L1 cache
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
    return Tiling(height, vectors, lanes, by_line, target.l2_bytes // 4)


@dataclass(frozen=True)
class Shapes:
    """The sizes of a problem, known before there is a kernel."""

    batches: int
    rows: Shape
    columns: int
    depth: Shape
    left_bytes: int
    """The left operand of one batch, as it lies in memory."""


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
    block: int
    """Tiles whose rows stay in cache while panels pass over them."""
    tall: int
    """How many tiles (of each line, or in all) have the full height; the rest have one row less."""
    line_tiles: int
    """Tiles of a line where tiles stay within lines, else all tiles."""


def share_out(shapes: Shapes, tiling: Tiling) -> Sharing:
    """Tasks and cache blocks, so that memory is read as few times as it can be."""
    panels, tail = divmod(shapes.columns, tiling.width)
    span = shapes.rows[-1] if tiling.by_line else math.prod(shapes.rows)
    line_tiles = -(-span // tiling.rows)
    tall = span - line_tiles * (-(-span // line_tiles) - 1)
    tiles = line_tiles * (math.prod(shapes.rows) // span)
    flops = 2.0 * shapes.batches * math.prod(shapes.rows) * shapes.columns * math.prod(shapes.depth)
    right_bytes = 4.0 * shapes.columns * math.prod(shapes.depth)
    most = int(max(flops / TASK_FLOPS, shapes.batches * right_bytes / TASK_BYTES))
    each = max(1, -(-max(1, min(most, MOST_TASKS)) // shapes.batches))  # shares of one batch
    every_panel = panels + (tail > 0)
    cache = tiling.cache_bytes
    block = tiles if shapes.left_bytes <= cache else max(tiles * cache // shapes.left_bytes, 1)
    tile_shares = min(tiles, each)
    if block == tiles and every_panel >= tile_shares:
        panel_shares, tile_shares = min(every_panel, each), 1  # each weight is read by one task only
    elif right_bytes > cache and block > 1:
        tile_shares = -(-tiles // block)  # neither stays in cache: weights are read once for each block
        panel_shares = min(every_panel, -(-each // tile_shares))
    else:
        panel_shares = min(every_panel, -(-each // tile_shares))
    block = min(block, -(-tiles // tile_shares))
    if block > line_tiles:
        block = block // line_tiles * line_tiles
    tasks = shapes.batches * panel_shares * tile_shares
    return Sharing(tasks, panel_shares, panels, tail, tile_shares, tiles, block, tall, line_tiles)
