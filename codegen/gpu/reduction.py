"""Reductions on a GPU whose results are all that is stored: columns, and sums too long for one block.

A block is some neighbouring results wide and many positions of the reduced dimensions high, so that neighbours read
neighbours also where an inner dimension is kept. Each thread walks its share, and the block meets in shared memory,
halving. Where there are few results, several blocks share one and a second kernel combines their parts in order: the
order is fixed, so results repeat.
"""

import math
from dataclasses import dataclass

from onnxla.codegen.gpu.settled import ReadElsewhere, settle
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.gpu.threads import THREADS, blocks_for, each_thread
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.accumulation import combine_each, neutral, with_inits
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Buffer, Value
from onnxla.codegen.kernels.loop import emit_roots, name_of
from onnxla.codegen.lowering import KernelCall, Lowering, Temporary
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.reduction import Reduce
from onnxla.hlo.types import Shape

WIDEST = 32
BLOCKS = 512
"""Blocks that keep a large GPU busy."""
LONG_ROW = 2048
LONG_COLUMN = 64
"""From these lengths on a reduction is worth a block."""
GRAIN = 16
"""Elements a thread reads at least before a result is shared among blocks."""


def lower_reduction(cluster: Cluster, target: GpuTarget) -> Lowering | None:
    """None where the cluster is not one reduction with a small epilogue, or is better off as a row or a loop."""
    heroes = [i for i in cluster.instructions if isinstance(i.op, Reduce)]
    if len(heroes) != 1:
        return None
    shape = _Shape.of(heroes[0])
    if any(t.size != shape.results for t in cluster.results) or not shape.worth_a_block:
        return None
    try:
        return _Reduction(cluster, heroes[0], shape).lower()
    except ReadElsewhere:
        return None


@dataclass(frozen=True)
class _Shape:
    full: Shape
    reduced: tuple[int, ...]
    """Dimensions, ascending."""
    kept: tuple[int, ...]

    @staticmethod
    def of(hero: Instruction) -> "_Shape":
        assert isinstance(hero.op, Reduce)
        full = hero.operands[0].shape
        reduced = tuple(sorted(hero.op.dimensions))
        return _Shape(full, reduced, tuple(d for d in range(len(full)) if d not in reduced))

    def sizes(self, dimensions: tuple[int, ...]) -> Shape:
        return tuple(self.full[d] for d in dimensions)

    @property
    def length(self) -> int:
        return math.prod(self.sizes(self.reduced))

    @property
    def results(self) -> int:
        return math.prod(self.sizes(self.kept))

    @property
    def width(self) -> int:
        """Results that lie side by side in a block: a power of two, 1 where the innermost dimension is reduced."""
        run = 1
        for d in reversed(range(len(self.full))):
            if d in self.reduced and self.full[d] > 1:
                break
            run *= self.full[d]
        width = 1
        while width < min(run, WIDEST):
            width *= 2
        return width

    @property
    def worth_a_block(self) -> bool:
        if self.width > 1:
            return self.length >= LONG_COLUMN
        return self.length >= LONG_ROW and self.results < BLOCKS // 2

    @property
    def parts(self) -> int:
        """Blocks that share a result."""
        groups = -(-self.results // self.width)
        return max(1, min(BLOCKS // groups, self.length * self.width // (THREADS * GRAIN)))


class _Reduction:
    def __init__(self, cluster: Cluster, hero: Instruction, shape: _Shape) -> None:
        self.cluster, self.hero, self.shape = cluster, hero, shape
        self.width, self.parts = shape.width, shape.parts
        self.groups = -(-shape.results // self.width)
        self.frame = Frame(cluster, name_of(cluster), self.groups * self.parts)
        self.e, self.b = self.frame.emitter, self.frame.b
        self.b.kernel.threads = THREADS

    def lower(self) -> Lowering:
        e, b, shape = self.e, self.b, self.shape
        task = e.bind("task", b.task, 0, self.groups * self.parts - 1)
        group, part = ix.delinearize(task, (self.groups, self.parts))
        thread = e.bind("thread", b.thread(), 0, THREADS - 1)
        result = group * self.width + thread % self.width
        start = neutral(e, self.hero)
        inside = e.inside(result, 0, shape.results)
        sums = e.choose(inside, lambda: self.walk(part, thread // self.width, result, start), lambda: start, 1)
        places = self.meet(thread, sums)
        first = b.and_(e.inside(thread, 0, self.width), inside)
        stored: list[Buffer] = []
        if self.parts > 1:
            stored = [
                b.parameter(f"part{k}", v.element, self.parts * shape.results, "output") for k, v in enumerate(sums)
            ]
        with b.if_(first) as branch:
            with branch.then(), e.scope():
                at = e.bind("result", e.position(result), 0, shape.results - 1)
                totals = [b.load(place, b.thread()) for place in places]
                if self.parts == 1:
                    self.finish(self.frame, at, totals)
                for buffer, total in zip(stored, totals, strict=False):
                    b.store(buffer, e.position(part * shape.results + at), total)
            with branch.otherwise():
                pass
        temporaries = tuple(Temporary(k) for k in range(len(stored)))
        call = KernelCall(b.finish(), (*self.frame.arguments, *temporaries))
        if self.parts == 1:
            return Lowering((call,))
        return Lowering((call, self.combine_parts(stored)), tuple(buffer.bytes for buffer in stored))

    def walk(self, part: Expr, high: Expr, result: Expr, start: list[Value]) -> list[Value]:
        """What one thread reduces: every so many positions of its part, for one result."""
        e, b, shape = self.e, self.b, self.shape
        share = -(-shape.length // self.parts)
        kept = ix.delinearize(e.bind("at", e.position(result), 0, shape.results - 1), shape.sizes(shape.kept))
        first, end = e.position(part * share + high), e.position(part * share + share)
        last = b.min(end, b.const(shape.length))
        with b.loop(first, last, THREADS // self.width, carry=start) as loop, e.scope():
            position = e.bind("position", loop.index, 0, shape.length - 1)
            where = dict(zip(shape.reduced, ix.delinearize(position, shape.sizes(shape.reduced)), strict=True))
            where |= dict(zip(shape.kept, kept, strict=True))
            index = tuple(where[d] for d in range(len(shape.full)))
            values = [e.value(o, index) for o in self.hero.operands[: len(self.hero.operands) // 2]]
            loop.yield_(*combine_each(e, [self.hero], loop.carried, values))
        return list(loop.results)

    def meet(self, thread: Expr, sums: list[Value]) -> list[Buffer]:
        """Shared memory in which the first `width` threads find their results."""
        e, b = self.e, self.b
        places = [b.shared("sums", v.element, THREADS) for v in sums]
        for place, value in zip(places, sums, strict=True):
            b.store(place, b.thread(), value)
        distance = THREADS // 2
        while distance >= self.width:
            b.barrier()
            with b.if_(e.inside(thread, 0, distance)) as branch:
                with branch.then(), e.scope():
                    mine = [b.load(place, b.thread()) for place in places]
                    other = [b.load(place, e.position(thread + distance)) for place in places]
                    for place, value in zip(places, combine_each(e, [self.hero], mine, other), strict=True):
                        b.store(place, b.thread(), value)
                with branch.otherwise():
                    pass
            distance //= 2
        return places

    def combine_parts(self, stored: list[Buffer]) -> KernelCall:
        """The second kernel: a thread for each result."""
        shape = self.shape
        frame = Frame(self.cluster, f"{name_of(self.cluster)}_parts", blocks_for(shape.results), self.reduced_only())
        e, b = frame.emitter, frame.b
        parts = [b.parameter(f"part{k}", s.element, s.size, "input") for k, s in enumerate(stored)]
        with each_thread(frame, shape.results) as result:
            with e.loop("part", self.parts, carry=neutral(e, self.hero)) as (part, loop):
                values = [b.load(p, e.position(part * shape.results + result)) for p in parts]
                loop.next = combine_each(e, [self.hero], loop.carried, values)
            self.finish(frame, result, loop.results)
        return KernelCall(b.finish(), (*frame.arguments, *(Temporary(k) for k in range(len(parts)))))

    def reduced_only(self) -> tuple[Instruction, ...]:
        """Operands that nothing behind the reduction reads."""
        values = self.hero.operands[: len(self.hero.operands) // 2]
        inside, stack = set(self.cluster.instructions) - {self.hero}, list(self.cluster.roots)
        read: set[Instruction] = set()
        while stack:
            instruction = stack.pop()
            if instruction in read:
                continue
            read.add(instruction)
            if instruction in inside or instruction is self.hero:
                stack += [o for o in instruction.operands if instruction is not self.hero or o not in values]
        return tuple(leaf for leaf in self.cluster.leaves if leaf not in read)

    def finish(self, frame: Frame, result: Expr, totals: list[Value]) -> None:
        """Compute and store the roots at one result."""
        e, b = frame.emitter, frame.b
        kept = self.shape.sizes(self.shape.kept)
        index = ix.delinearize(result, kept)
        (values,) = with_inits(e, [self.hero], totals)
        settle(e, self.hero, values, index, kept)
        for array, value in zip(frame.outputs, emit_roots(self.cluster, e, index, kept), strict=True):
            b.store(array.buffer, e.position(result), storage.encode(b, value, array.type.element))
