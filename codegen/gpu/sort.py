"""Sort on a GPU: stable, by ranks. A thread finds the place of one element, in rounds of kernels.

The first round sorts runs of RUN elements: the rank of an element is how many of its run come before it. Each
further round merges two runs into one: the rank is the element's own place plus how many of the other run come before
it, by binary search. Equal elements keep their order because those of a left run come before those of a right one.
"""

import math
from collections.abc import Sequence

from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.gpu.threads import blocks_for, each_thread
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.ir import INDEX, Value
from onnxla.codegen.lowering import Argument, KernelCall, Lowering, Operand, Result, Temporary
from onnxla.hlo.ops.indexing import Sort
from onnxla.hlo.types import PRED

RUN = 32


def lower_sort(cluster: Cluster, target: GpuTarget) -> Lowering:
    """The cluster is one sort."""
    op = cluster.instruction.op
    assert isinstance(op, Sort)
    length = cluster.results[0].shape[op.dimension]
    widths = []
    width = RUN
    while width < length:
        widths.append(width)
        width *= 2
    places: list[type[Result] | type[Temporary]] = [Result if k % 2 == 0 else Temporary for k in range(len(widths) + 1)]
    places.reverse()  # the last round writes the results
    count = len(cluster.results)
    calls = [_Round(cluster, op, 0).call([Operand(k) for k in range(count)], [places[0](k) for k in range(count)])]
    for source, into, width in zip(places, places[1:], widths, strict=False):
        calls.append(
            _Round(cluster, op, width).call([source(k) for k in range(count)], [into(k) for k in range(count)])
        )
    temporaries = tuple(t.bytes for t in cluster.results) if widths else ()
    return Lowering(tuple(calls), temporaries)


class _Round:
    """One kernel: from runs of `width` to runs twice as long, or from nothing to runs of RUN where `width` is 0."""

    def __init__(self, cluster: Cluster, op: Sort, width: int) -> None:
        self.op, self.width = op, width
        self.types = cluster.results
        self.shape = self.types[0].shape
        self.length = self.shape[op.dimension]
        total = math.prod(self.shape)
        name = f"sort_{len(self.types)}" if width == 0 else f"merge_{len(self.types)}_runs_of_{width}"
        self.frame = Frame(cluster, name, blocks_for(total), omit=cluster.leaves)
        self.targets = self.frame.outputs
        self.sources = [self.frame.array(f"from{k}", t, "input") for k, t in enumerate(self.types)]
        self.e, self.b = self.frame.emitter, self.frame.b
        with each_thread(self.frame, total) as position:
            index = list(ix.delinearize(position, self.shape))
            place = self.e.position(index[op.dimension])
            index[op.dimension] = ix.ZERO
            self.start = self.e.position(ix.linearize(tuple(index), self.shape))
            self.move(place)

    def call(self, sources: Sequence[Argument], targets: Sequence[Argument]) -> KernelCall:
        return KernelCall(self.b.finish(), (*targets, *sources))

    def at(self, place: Value) -> Value:
        """The position of element `place` of this thread's row."""
        return self.b.add(self.start, self.b.mul(place, self.b.const(math.prod(self.shape[self.op.dimension + 1 :]))))

    def read(self, place: Value) -> list[Value]:
        at = self.at(place)
        return [
            storage.decode(self.b, self.b.load(a.buffer, at), t.element)
            for a, t in zip(self.sources, self.types, strict=True)
        ]

    def before(self, left: Sequence[Value], right: Sequence[Value]) -> Value:
        """Whether the elements `left` must come before `right`."""
        pairs = [v for pair in zip(left, right, strict=True) for v in pair]
        (answer,) = self.e.apply(self.op.comparator, pairs)
        return self.b.convert(answer, PRED)

    def move(self, place: Value) -> None:
        """Write the element to where it belongs after this round."""
        b = self.b
        rank = self.rank_in_run(place) if self.width == 0 else self.rank_of_merge(place)
        at, into = self.at(place), self.at(rank)
        for source, target in zip(self.sources, self.targets, strict=True):
            b.store(target.buffer, into, b.load(source.buffer, at))

    def rank_in_run(self, place: Value) -> Value:
        b = self.b
        mine = self.read(place)
        first = b.mul(b.div(place, b.const(RUN)), b.const(RUN))
        last = b.min(b.add(first, b.const(RUN)), b.const(self.length))
        with b.loop(first, last, carry=[first]) as loop, self.e.scope():
            other = self.read(loop.index)
            equal = b.not_(self.before(mine, other))
            earlier = b.and_(b.compare("LT", loop.index, place), equal)
            ahead = b.or_(self.before(other, mine), earlier)
            loop.yield_(b.add(loop.carried[0], b.convert(ahead, INDEX)))
        return loop.results[0]

    def rank_of_merge(self, place: Value) -> Value:
        """The start of the merged run, the place in the own run, and how many of the other run come first."""
        b, width = self.b, self.width
        first = b.mul(b.div(place, b.const(2 * width)), b.const(2 * width))
        middle = b.min(b.add(first, b.const(width)), b.const(self.length))
        end = b.min(b.add(first, b.const(2 * width)), b.const(self.length))
        is_left = b.compare("LT", place, middle)
        low, high = b.select(is_left, middle, first), b.select(is_left, end, middle)
        mine = self.read(place)
        # the number of elements of [low, high) that come before, by halving
        with b.loop(0, width.bit_length(), carry=[low, high]) as loop, self.e.scope():
            lower, upper = loop.carried
            half = b.div(b.add(lower, upper), b.const(2))
            other = self.read(b.min(half, b.const(self.length - 1)))
            # those of a left run come first also where they are equal
            ahead = b.select(is_left, self.before(other, mine), b.not_(self.before(mine, other)))
            open_ = b.compare("LT", lower, upper)
            up, down = b.and_(open_, ahead), b.and_(open_, b.not_(ahead))
            loop.yield_(b.select(up, b.add(half, b.const(1)), lower), b.select(down, half, upper))
        return b.add(b.sub(place, b.select(is_left, b.const(0), b.sub(middle, first))), b.sub(loop.results[0], low))
