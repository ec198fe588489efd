"""Transpose on a GPU through a tile in shared memory, so that both reading and writing run along memory.

A row of the tile is one element longer than the tile, so that a column does not lie in one bank.
"""

import math
from collections.abc import Callable
from functools import partial

from onnxla.codegen.gpu.settled import ReadElsewhere, settle
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.gpu.threads import THREADS
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Buffer
from onnxla.codegen.kernels.loop import emit_roots, name_of
from onnxla.codegen.kernels.value import Index
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.shape import Transpose

TILE = 32
SMALLEST = 8
"""Dimensions shorter than this leave a tile too empty to be worth it."""


def lower_transpose(cluster: Cluster, target: GpuTarget) -> Lowering | None:
    """None where the cluster has not one transpose, or that one keeps its innermost dimension."""
    heroes = [i for i in cluster.instructions if isinstance(i.op, Transpose)]
    if len(heroes) != 1 or any(t.size != heroes[0].tensor_type.size for t in cluster.results):
        return None
    (hero,) = heroes
    assert isinstance(hero.op, Transpose)
    last = hero.tensor_type.rank - 1
    turned = hero.op.permutation.index(last)
    if turned == last or min(hero.shape[turned], hero.shape[last]) < SMALLEST:
        return None
    try:
        return _Transpose(cluster, hero, hero.op, turned).lower()
    except ReadElsewhere:
        return None


class _Transpose:
    """`turned` is the dimension of the result that is innermost in the operand."""

    def __init__(self, cluster: Cluster, hero: Instruction, op: Transpose, turned: int) -> None:
        self.cluster, self.hero, self.op, self.turned = cluster, hero, op, turned
        self.shape, self.last = hero.shape, len(hero.shape) - 1
        grid = list(self.shape)
        grid[turned], grid[self.last] = (-(-self.shape[d] // TILE) for d in (turned, self.last))
        self.grid = tuple(grid)
        self.frame = Frame(cluster, name_of(cluster), math.prod(grid))
        self.e, self.b = self.frame.emitter, self.frame.b
        self.b.kernel.threads = THREADS

    def lower(self) -> Lowering:
        e, b = self.e, self.b
        element = storage.compute_element(self.hero.tensor_type.element)
        tile = b.shared("tile", element, TILE * (TILE + 1))
        block = ix.delinearize(e.bind("task", b.task, 0, math.prod(self.grid) - 1), self.grid)
        thread = e.bind("thread", b.thread(), 0, THREADS - 1)
        quick, slow = thread % TILE, thread // TILE
        steps = range(0, TILE, THREADS // TILE)
        for step in steps:
            self.inside(block, quick, slow + step, partial(self.read, tile, quick, slow + step))
        b.barrier()
        for step in steps:
            self.inside(block, slow + step, quick, partial(self.write, tile, slow + step, quick))
        return Lowering((KernelCall(b.finish(), tuple(self.frame.arguments)),))

    def inside(self, block: Index, turned: Expr, last: Expr, body: Callable[[Index], None]) -> None:
        """`body` at an index of the result, where the tile is over it."""
        e, b = self.e, self.b
        places = {self.turned: block[self.turned] * TILE + turned, self.last: block[self.last] * TILE + last}
        within = [e.inside(place, 0, self.shape[d]) for d, place in places.items()]
        with b.if_(b.and_(*within)) as branch:
            with branch.then(), e.scope():
                index = list(block)
                for d, place in places.items():
                    index[d] = e.bind(f"i{d}", e.position(place), 0, self.shape[d] - 1)
                body(tuple(index))
            with branch.otherwise():
                pass

    def read(self, tile: Buffer, turned: Expr, last: Expr, index: Index) -> None:
        """Neighbouring threads read along the operand's innermost dimension."""
        source = [ix.ZERO] * len(index)
        for position, dimension in enumerate(self.op.permutation):
            source[dimension] = index[position]
        value = self.e.value(self.hero.operands[0], tuple(source))
        self.b.store(tile, self.e.position(last * (TILE + 1) + turned), value)

    def write(self, tile: Buffer, turned: Expr, last: Expr, index: Index) -> None:
        """Neighbouring threads write along the result's innermost dimension."""
        e, b = self.e, self.b
        value = b.load(tile, e.position(last * (TILE + 1) + turned))
        settle(e, self.hero, [value], index, self.shape)
        values = emit_roots(self.cluster, e, index, self.shape)
        for array, root in zip(self.frame.outputs, values, strict=True):
            place = ix.linearize(ix.reshape(index, self.shape, array.type.shape), array.type.shape)
            b.store(array.buffer, e.position(place), storage.encode(b, root, array.type.element))
