"""What follows a contraction in its cluster, applied to a register tile of sums.

A light epilogue is applied to the sums while they are in registers. A heavy one (an activation with
an exponential) would fill the registers and be emitted once for each of them, so the sums go through
a small tile in cache instead, and one loop applies it.
"""

from collections.abc import Callable, Sequence

from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Buffer, Value
from onnxla.codegen.kernels.loop import emit_roots, operations
from onnxla.codegen.kernels.value import Index
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import ElementType

LIGHT = 10
"""Operations for an element up to which an epilogue stays in registers."""

TOGETHER = 2
"""Vectors that a heavy epilogue takes at once: steps of one wait for each other, those of two do not, and both read the
same constants."""


def is_heavy(cluster: Cluster, hero: Instruction) -> bool:
    """Whether the epilogue of `hero` is better applied in a loop over a tile in cache."""
    frame = Frame(cluster, "survey", 1)
    e = frame.emitter
    e.leaves[hero] = lambda index: e.literal(0, hero.tensor_type.element)
    index = tuple(e.bind(f"d{d}", frame.b.task, 0, max(n - 1, 0)) for d, n in enumerate(hero.shape))
    emit_roots(cluster, e, index, hero.shape)
    return operations(frame.b.finish().body) > LIGHT


class TileEpilogue:
    """Finishes tiles of `height` rows by some vectors of `lanes`."""

    def __init__(
        self, cluster: Cluster, hero: Instruction, frame: Frame, element: ElementType, lanes: int, most: int
    ) -> None:
        """`most` is the largest number of sums that a tile can have."""
        self.cluster, self.hero, self.frame, self.element, self.lanes = cluster, hero, frame, element, lanes
        self.tile: Buffer | None = None
        if is_heavy(cluster, hero) and most > 2:
            self.tile = frame.b.scratch("tile", storage.compute_element(element), most * lanes)

    def apply(
        self, sums: Sequence[Value], height: int, vectors: int, last: int, at: Callable[[Expr, Expr], Index]
    ) -> None:
        """`sums[row * vectors + vector]`; the last vector has `last` active lanes; `at(row, column)` is the
        hero's index of a place in the tile."""
        e, b = self.frame.emitter, self.frame.b
        if self.tile is None:
            for j in range(vectors):
                with e.vector(self.lanes, last if j == vectors - 1 else None) as lane:
                    for i in range(height):
                        self._finish(at(ix.constant(i), lane + j * self.lanes), sums[i * vectors + j])
            return
        for k, total in enumerate(sums):
            b.store(self.tile, b.const(k * self.lanes), total)
        with e.loop("row", height) as (row, _):
            for j in range(0, vectors, TOGETHER):
                count = min(TOGETHER, vectors - j)
                active = count * self.lanes if j + count < vectors else (count - 1) * self.lanes + last
                with e.vector(count * self.lanes, active) as lane:
                    place = row * (vectors * self.lanes) + j * self.lanes
                    total = b.load(self.tile, e.position(place), count * self.lanes)
                    self._finish(at(row, lane + j * self.lanes), total)

    def _finish(self, at: Index, total: Value) -> None:
        finish(self.cluster, self.hero, self.frame, at, total, self.element)


def finish(cluster: Cluster, hero: Instruction, frame: Frame, at: Index, total: Value, element: ElementType) -> None:
    """Round the sum that `hero` has at index `at`, compute the roots from it, and store them.

    Call it where `frame.emitter` counts the lanes of the sum.
    """
    e, b = frame.emitter, frame.b
    rounded = storage.round_to(b, total, element)
    e.leaves[hero] = lambda index: rounded
    with e.scope():
        values = emit_roots(cluster, e, at, hero.shape)
        assert e.lane is not None
        for array, value in zip(frame.outputs, values, strict=True):
            position = ix.linearize(ix.reshape(at, hero.shape, array.type.shape), array.type.shape)
            stored = b.splat(storage.encode(b, value, array.type.element), e.lanes)
            if position.coefficient(e.lane) == 1:
                position = position.substitute({e.lane: ix.ZERO})
            b.store(array.buffer, e.position(position), stored, e.mask)
