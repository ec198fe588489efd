"""The ways to cut one contraction: register tiles, tiles within lines or across them, blocks for the caches.

`choose_tiling` has the first word; the others are what a tuner may try. The work of each is stated in advance, from
the same sizes that the kernel is made from.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from onnxla.codegen.choices import Way
from onnxla.codegen.cost import Machine, Work
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels.tiling import Shapes, Tiling, choose_tiling, share_out
from onnxla.codegen.kernels.work import LOAD, ONE, STORE, dot_slots, effort
from onnxla.codegen.lowering import Lowering
from onnxla.hlo.types import ElementType

LATENCY = 8
"""Sums that must be under way for multiply-adds not to wait for each other: four cycles, two a cycle."""
GAIN = 0.95
"""Part of the predicted time below which larger blocks are the model's choice."""
MOST_TILES = 4
"""Further register tiles that are worth a try, by predicted time."""
WORTH = 1.4
"""How much longer than the shortest the predicted time of such a tile may be."""


@dataclass(frozen=True)
class Cut:
    """What is to be cut: the sizes, and what the choice of a tile depends on besides."""

    shapes: Shapes
    element: ElementType
    fixed_distance: bool
    group: int
    right_bytes: int
    """Of one batch, packed."""
    constant: bool
    """Whether the right operand is weights."""


def tile_ways(cut: Cut, target: Target, lower: Callable[[Tiling], Lowering]) -> list[Way]:
    """The ways to compute a contraction, that of `choose_tiling` first, or the same in blocks of twice the size where
    reading the right operand again for each block costs more."""
    shapes = cut.shapes
    own = choose_tiling(shapes.rows, shapes.columns, cut.fixed_distance, cut.element, target, cut.group)
    machine = Machine.stated(target)

    def way(tiling: Tiling) -> Way:
        return Way(_name(tiling, own), work_of(cut, tiling, target), lambda: lower(tiling))

    tiles = [way(t) for t in dict.fromkeys(_tiles(cut, own, target)) if t != own]
    tiles.sort(key=lambda w: machine.seconds(w.work))
    least = min((machine.seconds(w.work) for w in (way(own), *tiles)), default=0.0)
    tiles = [w for w in tiles if machine.seconds(w.work) <= WORTH * least][:MOST_TILES]
    blocks = [way(t) for t in _larger_blocks(cut, own)]
    first = way(own)
    if blocks and machine.seconds(blocks[0].work) < GAIN * machine.seconds(first.work):
        first, blocks[0] = blocks[0], first
    return [first, *tiles, *blocks]


def work_of(cut: Cut, tiling: Tiling, target: Target) -> Work:
    """What a contraction asks of a core, epilogue apart."""
    shapes = cut.shapes
    plan = share_out(shapes, tiling)
    rows, depth = shapes.batches * math.prod(shapes.rows), math.prod(shapes.depth)
    panels = plan.panels + (plan.tail_columns > 0)
    vectors = plan.panels * tiling.vectors + -(-plan.tail_columns // tiling.lanes)
    narrow = tiling.lanes * 4 / target.vector_bytes
    waiting = max(1.0, LATENCY / (tiling.rows * tiling.vectors))
    sums = rows * vectors * depth * dot_slots(cut.group, target) * waiting
    reads = depth * (rows * panels * ONE + shapes.batches * plan.tiles * vectors * LOAD * max(narrow, 0.5))
    blocks = -(-plan.tiles // (plan.block * plan.tile_shares)) * plan.tile_shares
    right = float(shapes.batches * cut.right_bytes)
    again = right * (blocks - 1)
    return Work(
        effort((sums, reads + rows * vectors * STORE, 0.0), target),
        right if cut.constant else 0.0,
        shapes.batches * shapes.left_bytes + again + (0.0 if cut.constant else right),
        plan.tasks,
    )


def _tiles(cut: Cut, own: Tiling, target: Target) -> Iterator[Tiling]:
    """Register tiles that fill the registers, each as high as leaves tiles even; within lines, and across."""
    many = target.vector_registers >= 32
    accumulators, most_rows = (28, 14) if many else (12, 12)
    rows, needed = cut.shapes.rows, -(-cut.shapes.columns // own.lanes)
    ways = (False,) if cut.fixed_distance or len(rows) < 2 else (False, True)
    for by_line in ways:
        span = rows[-1] if by_line else math.prod(rows)
        for vectors in range(1, min(6, needed) + 1):
            full = min(accumulators // vectors, most_rows)
            for most in (full, full - 1):
                if most >= 1 and most * vectors + vectors < target.vector_registers:
                    height = -(-span // -(-span // most))
                    yield Tiling(height, vectors, own.lanes, by_line, own.cache_bytes)


def _larger_blocks(cut: Cut, own: Tiling) -> list[Tiling]:
    """The same tiles where blocks of rows may take half of the second-level cache, or three quarters, as far as that
    makes other blocks."""
    found = {share_out(cut.shapes, own): own}
    for factor in (2, 3):
        larger = replace(own, cache_bytes=own.cache_bytes * factor)
        found.setdefault(share_out(cut.shapes, larger), larger)
    return list(found.values())[1:]


def _name(tiling: Tiling, own: Tiling) -> str:
    """`6x2`, `6x2 by line`, `6x2 in blocks of 512 KB`."""
    line = " by line" if tiling.by_line else ""
    block = "" if tiling.cache_bytes == own.cache_bytes else f" in blocks of {tiling.cache_bytes >> 10} KB"
    return f"{tiling.rows}x{tiling.vectors}{line}{block}"
