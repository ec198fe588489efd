"""Attention on the ordinary cores, in f32, in the manner of FlashAttention-2 (Dao 2023): scores are never stored.

A block has 32 queries and goes through the keys 64 or 32 at a time. A thread sums the scores of four queries with some
keys, sixteen threads share a query. Each round brings keys, sums scores, and writes exponentials of their distance from
the highest score so far to shared memory, where all threads of a query find them; then it brings values, in place of
the keys, and adds their products to the result, after the sums so far have been scaled to the new highest score.
"""

from collections.abc import Callable, Sequence

from onnxla.codegen.gpu.attention_kernel import INFINITY, AttentionKernel
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Buffer, Value
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.attention import Attention
from onnxla.hlo.types import F32

ACROSS = 16
"""Threads that share a query."""
DOWN = 8
THREADS = ACROSS * DOWN
QUERIES = 32
HEIGHTS = QUERIES // DOWN
LARGEST_HEAD = 128


class AttentionInRegisters(AttentionKernel):
    """Heads of up to LARGEST_HEAD, of queries and keys as well as of values."""

    def __init__(self, cluster: Cluster, attention: Attention) -> None:
        super().__init__(cluster, attention, QUERIES, THREADS)
        self.depth, self.features = self.scored.depth, -(-self.summed.columns // ACROSS) * ACROSS
        self.round = 64 if max(self.depth, self.features) <= 64 else 32
        self.row, self.column = self.thread // ACROSS, self.thread % ACROSS
        # odd, so that a column lies in all banks; and two queries, which a warp writes together, in half of them each
        self.line, self.spread = self.depth | 1, self.round + ACROSS
        self.queries = self.b.shared("queries", F32, QUERIES * self.line)
        self.brought = self.b.shared("brought", F32, self.round * max(self.line, self.features))
        self.weights = self.b.shared("weights", F32, QUERIES * self.spread)

    def lower(self) -> Lowering:
        e, b = self.e, self.b
        q, k, v = self.attention.factors
        query, key = self.factor_at(self.scored, q, True), self.factor_at(self.scored, k, False)
        value = self.factor_at(self.summed, v, False)
        places = [self.first_query + self.row + DOWN * i for i in range(HEIGHTS)]
        rows = [self.clamped("query", place, self.scored.rows) for place in places]
        self.bring(self.queries, query, self.first_query, QUERIES, self.scored.left_runs_along_depth)
        widths = self.features // ACROSS
        zero, lowest = b.const(0.0, F32), b.const(-INFINITY, F32)
        start = [lowest] * HEIGHTS + [zero] * HEIGHTS + [zero] * (HEIGHTS * widths)
        with e.loop("round", -(-self.scored.columns // self.round), carry=start) as (number, loop):
            highest, totals, sums = (
                loop.carried[:HEIGHTS],
                loop.carried[HEIGHTS : 2 * HEIGHTS],
                loop.carried[2 * HEIGHTS :],
            )
            first_key = number * self.round
            b.barrier()  # nobody reads values any more
            self.bring(self.brought, key, first_key, self.round, self.scored.right_runs_along_depth)
            b.barrier()  # queries and keys are there
            scores = self.scores(rows, first_key)
            raised = [
                self.over_lanes(b.max, _folded(b.max, [before, *line]), ACROSS)
                for before, line in zip(highest, scores, strict=True)
            ]
            levels = [self.level(m) for m in raised]
            shrunk = [self.exponential(b.sub(m, level)) for m, level in zip(highest, levels, strict=True)]
            weights = [
                [self.exponential(b.sub(s, level)) for s in line] for line, level in zip(scores, levels, strict=True)
            ]
            for i, line in enumerate(weights):
                for j, weight in enumerate(line):
                    at = (self.row + DOWN * i) * self.spread + self.column + ACROSS * j
                    b.store(self.weights, e.position(at), weight)
            totals = [_folded(b.add, [b.mul(t, s), *line]) for t, s, line in zip(totals, shrunk, weights, strict=True)]
            sums = [b.mul(total, shrunk[k // widths]) for k, total in enumerate(sums)]
            b.barrier()  # nobody reads keys any more
            self.bring_values(value, first_key)
            b.barrier()  # weights and values are there
            loop.next = [*raised, *totals, *self.weighted(sums, widths)]
        self.leave(places, rows, loop.results[HEIGHTS : 2 * HEIGHTS], loop.results[2 * HEIGHTS :])
        return Lowering((KernelCall(b.finish(), tuple(self.frame.arguments)),))

    def bring(
        self,
        shared: Buffer,
        factor: Callable[[Expr, Expr], Value],
        first_line: Expr,
        lines: int,
        along_depth: bool,
    ) -> None:
        """All threads bring so many lines of a factor, neighbours what lies together, a line after the other."""

        depth = self.depth

        def one(number: Expr) -> None:
            line, k = (number // depth, number % depth) if along_depth else (number % lines, number // lines)
            value = factor(k, first_line + line)
            self.b.store(shared, self.e.position(line * self.line + k), value)

        self.each(lines * depth, one)

    def bring_values(self, factor: Callable[[Expr, Expr], Value], first_key: Expr) -> None:
        """A row of features for each key."""
        width, along_depth = self.features, self.summed.right_runs_along_depth

        def one(number: Expr) -> None:
            key, feature = (
                (number % self.round, number // self.round) if along_depth else (number // width, number % width)
            )
            self.b.store(self.brought, self.e.position(key * width + feature), factor(first_key + key, feature))

        self.each(self.round * width, one)

    def each(self, count: int, body: Callable[[Expr], None]) -> None:
        """`body` for each of so many numbers, shared out over the threads."""
        e, b = self.e, self.b
        with b.loop(b.thread(), b.const(count), THREADS) as loop, e.scope():
            body(e.bind("number", loop.index, 0, count - 1))

    def scores(self, rows: Sequence[Expr], first_key: Expr) -> list[list[Value]]:
        """Of each of the thread's queries, the scores of its keys."""
        e, b = self.e, self.b
        widths = range(self.round // ACROSS)
        start = [b.const(0.0, F32)] * (HEIGHTS * len(widths))
        with e.loop("k", self.depth, carry=start) as (k, loop):
            lefts = [b.load(self.queries, e.position((self.row + DOWN * i) * self.line + k)) for i in range(HEIGHTS)]
            rights = [b.load(self.brought, e.position((self.column + ACROSS * j) * self.line + k)) for j in widths]
            loop.next = [
                b.fma(left, right, loop.carried[i * len(widths) + j])
                for i, left in enumerate(lefts)
                for j, right in enumerate(rights)
            ]
        return [
            [self.score(loop.results[i * len(widths) + j], row, first_key + self.column + ACROSS * j) for j in widths]
            for i, row in enumerate(rows)
        ]

    def weighted(self, sums: Sequence[Value], widths: int) -> list[Value]:
        """`sums` plus weights times values."""
        e, b = self.e, self.b
        with e.loop("key", self.round, carry=list(sums)) as (key, loop):
            lefts = [
                b.load(self.weights, e.position((self.row + DOWN * i) * self.spread + key)) for i in range(HEIGHTS)
            ]
            rights = [
                b.load(self.brought, e.position(key * self.features + self.column + ACROSS * j)) for j in range(widths)
            ]
            loop.next = [
                b.fma(left, right, loop.carried[i * widths + j])
                for i, left in enumerate(lefts)
                for j, right in enumerate(rights)
            ]
        return list(loop.results)

    def leave(
        self, places: Sequence[Expr], rows: Sequence[Expr], totals: Sequence[Value], sums: Sequence[Value]
    ) -> None:
        e, b = self.e, self.b
        widths = self.features // ACROSS
        for i, place in enumerate(places):
            total = self.over_lanes(b.add, totals[i], ACROSS)
            with b.if_(e.inside(place, 0, self.scored.rows)) as branch:
                with branch.then(), e.scope():
                    for j in range(widths):
                        self.store_feature(rows[i], self.column + ACROSS * j, b.div(sums[i * widths + j], total))
                with branch.otherwise():
                    pass


def _folded(combine: Callable[[Value, Value], Value], values: Sequence[Value]) -> Value:
    """All of them combined, from the first on."""
    total, *others = values
    for other in others:
        total = combine(total, other)
    return total
