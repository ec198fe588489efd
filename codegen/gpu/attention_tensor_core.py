"""Attention of half precision on tensor cores, in the manner of FlashAttention-2 (Dao 2023): scores stay in registers.

A block has 64 queries, a warp 16 of them, and goes through the keys 64 at a time. Each round multiplies queries by
keys, does what the model does to the scores (scale, mask), takes the exponential of their distance from the highest
score so far, and adds their products with the values to the result, after the sums so far have been scaled to the new
highest score. Values are on their way while keys are multiplied, and the other way round.

Half precision goes into the products, exponentials that way too; sums, scores and the softmax are f32.
"""

from collections.abc import Sequence

from onnxla.codegen.gpu.attention_kernel import INFINITY, AttentionKernel
from onnxla.codegen.gpu.product import View
from onnxla.codegen.gpu.slices import Factor, Slices
from onnxla.codegen.gpu.tensor_core import KINDS, WARP
from onnxla.codegen.gpu.views import Viewed
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.errors import InternalError
from onnxla.hlo.attention import Attention
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F16, F32, U16, U32

WARPS = 4
QUERIES = 16 * WARPS
KEYS = 64
SIZES = (16, 32, 64, 128)
"""Of heads in shared memory, where smaller ones end in zeros."""


class AttentionOnTensorCores(AttentionKernel):
    """Heads of up to the largest of SIZES, of queries and keys as well as of values."""

    def __init__(self, cluster: Cluster, attention: Attention) -> None:
        super().__init__(cluster, attention, QUERIES, WARPS * WARP)
        scored, summed = self.scored, self.summed
        self.lane, self.warp = self.thread % WARP, self.thread // WARP
        q, k, v = attention.factors
        self.depth, self.features = (next(s for s in SIZES if s >= size) for size in (scored.depth, summed.columns))
        self.queries = self.slices(scored, q, True, QUERIES, self.depth)
        self.keys = self.slices(scored, k, False, KEYS, self.depth)
        self.values = self.slices(summed, v, False, self.features, KEYS)

    def slices(self, view: View, source: Instruction, is_left: bool, width: int, step: int) -> Slices:
        viewed = Viewed.of(source, self.e.leaves)
        if viewed is None:
            raise InternalError(f"{source} is no factor of attention that lies in memory")
        lines = view.rows if is_left else view.columns
        along_depth = view.left_runs_along_depth if is_left else view.right_runs_along_depth
        run = view.left_run if is_left else view.right_run
        located, value = self.located(view, is_left), self.factor_at(view, source, is_left)
        factor = Factor(self.held, lines, view.depth, along_depth, run, viewed, located, value)
        return Slices(self.e, self.thread, self.b.kernel.threads, factor, width, step, is_left, 1)

    def lower(self) -> Lowering:
        e, b = self.e, self.b
        self.queries.bring(ix.ZERO, self.first_query, ix.ZERO)
        self.keys.bring(ix.ZERO, ix.ZERO, ix.ZERO)
        self.wait()
        lefts = [self.queries.load(ix.ZERO, self.warp * 16, p, self.lane) for p in range(self.depth // 16)]
        places = [self.first_query + self.warp * 16 + 8 * half + self.lane // 4 for half in range(2)]
        rows = [self.clamped("query", place, self.scored.rows) for place in places]
        tiles = self.features // 8
        start = [b.const(-INFINITY, F32)] * 2 + [b.const(0.0, F32)] * 2 + [b.const(0.0, F32, 4)] * tiles
        with e.loop("block", -(-self.scored.columns // KEYS), carry=start) as (block, loop):
            highest, totals, sums = loop.carried[:2], loop.carried[2:4], loop.carried[4:]
            self.values.bring(ix.ZERO, ix.ZERO, block * KEYS)
            scores = self.scores(lefts, rows, block * KEYS)
            raised = [self.highest(scores, highest[half], half) for half in range(2)]
            levels = [self.level(m) for m in raised]
            weights = [[self.exponential(b.sub(s, levels[k // 2])) for k, s in enumerate(tile)] for tile in scores]
            shrunk = [self.exponential(b.sub(highest[half], levels[half])) for half in range(2)]
            totals = [b.mul(totals[half], shrunk[half]) for half in range(2)]
            for tile in weights:
                totals = [b.add(b.add(totals[h], tile[2 * h]), tile[2 * h + 1]) for h in range(2)]
            sums = [b.pack([b.mul(b.extract(s, k), shrunk[k // 2]) for k in range(4)]) for s in sums]
            self.wait()
            self.keys.bring(ix.ZERO, (block + 1) * KEYS, ix.ZERO)
            loop.next = [*raised, *totals, *self.weighted(weights, sums)]
            self.wait()
        self.leave(places, rows, loop.results[2:4], loop.results[4:])
        return Lowering((KernelCall(b.finish(), tuple(self.frame.arguments)),))

    def wait(self) -> None:
        """What was brought is there, and nobody needs what was there before."""
        self.b.wait_for_copies()
        self.b.barrier()

    def scores(self, lefts: Sequence[Value], rows: Sequence[Expr], first_key: Expr) -> list[list[Value]]:
        """Of eight keys at a time, the four that a thread has: two keys of its first query, and of its second."""
        b = self.b
        tiles = [b.const(0.0, F32, 4)] * (KEYS // 8)
        for pair, left in enumerate(lefts):
            for j in range(0, KEYS // 8, 2):
                right = self.keys.load(ix.ZERO, ix.constant(8 * j), pair, self.lane)
                tiles[j : j + 2] = self.multiply(left, right, tiles[j : j + 2])
        return [
            [
                self.score(b.extract(tile, k), rows[k // 2], first_key + 8 * j + self.lane % 4 * 2 + k % 2)
                for k in range(4)
            ]
            for j, tile in enumerate(tiles)
        ]

    def multiply(self, left: Value, right: Value, totals: Sequence[Value]) -> list[Value]:
        """Two tiles of eight columns."""
        b = self.b
        words = [b.extract(right, k) for k in range(4)]
        kind = KINDS[self.held]
        return [b.mma(left, (words[2 * k], words[2 * k + 1]), total, kind) for k, total in enumerate(totals)]

    def highest(self, scores: Sequence[Sequence[Value]], before: Value, half: int) -> Value:
        """The highest score of a query so far; four threads have its keys."""
        b, highest = self.b, before
        for tile in scores:
            highest = b.max(b.max(highest, tile[2 * half]), tile[2 * half + 1])
        return self.over_lanes(b.max, highest, 4)

    def weighted(self, weights: Sequence[Sequence[Value]], sums: Sequence[Value]) -> list[Value]:
        """`sums` plus weights times values. A thread holds of the weights what `mma` wants of its left factor."""
        b, sums = self.b, list(sums)
        for pair in range(KEYS // 16):
            words = [self.word(*weights[2 * pair + t][2 * half : 2 * half + 2]) for t in range(2) for half in range(2)]
            left = b.pack(words)
            for j in range(0, len(sums), 2):
                right = self.values.load(ix.ZERO, ix.constant(8 * j), pair, self.lane)
                sums[j : j + 2] = self.multiply(left, right, sums[j : j + 2])
        return sums

    def word(self, low: Value, high: Value) -> Value:
        """Two numbers in half precision."""
        b = self.b
        raw = [storage.encode(b, x, self.held) for x in (low, high)]
        bits = [b.convert(b.bitcast(r, U16) if r.element is F16 else r, U32) for r in raw]
        return b.or_(bits[0], b.binary("shl", bits[1], b.const(16, U32)))

    def leave(
        self, places: Sequence[Expr], rows: Sequence[Expr], totals: Sequence[Value], sums: Sequence[Value]
    ) -> None:
        e, b = self.e, self.b
        for half in range(2):
            total = self.over_lanes(b.add, totals[half], 4)
            with b.if_(e.inside(places[half], 0, self.scored.rows)) as branch:
                with branch.then(), e.scope():
                    for j, tile in enumerate(sums):
                        for k in range(2):
                            column = self.lane % 4 * 2 + (8 * j + k)
                            self.store_feature(rows[half], column, b.div(b.extract(tile, 2 * half + k), total))
                with branch.otherwise():
                    pass
