"""Sweeps over a row: accumulators in vectors, brought together at the end, and values kept on the way.

Shared by the row schedule and its split form for few long rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate

from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.accumulation import accumulation_of, with_inits
from onnxla.codegen.kernels.cluster import Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Buffer, Value
from onnxla.codegen.kernels.rows import NotARow, Rows
from onnxla.codegen.kernels.value import Index, ValueEmitter
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import ElementType, TensorType

UNROLL = 4
"""Independent accumulators of a sweep, to cover the latency of an addition."""

Body = Callable[[Expr, Sequence[Value]], Sequence[Value]]


def sweep_columns(
    e: ValueEmitter,
    lanes: int,
    columns: int,
    carry: Sequence[Value],
    unroll: int,
    body: Body,
    merge: Callable[[Sequence[Value], Sequence[Value]], Sequence[Value]],
) -> list[Value]:
    """Visit `columns` positions in vectors: `body(column, accumulators)` gives the accumulators after it.

    `unroll` vectors at a time have accumulators of their own, brought together by `merge`.
    """
    step = lanes * unroll
    rounds, rest = divmod(columns, step)
    width = len(carry)
    if rounds > 1 or (rounds == 1 and unroll == 1):
        with e.loop("c", rounds, carry=list(carry) * unroll) as (at, loop):
            loop.next = _unrolled(e, lanes, unroll, at * step, loop.carried, width, body)
        every = loop.results
    elif rounds == 1:
        with e.scope():
            every = _unrolled(e, lanes, unroll, ix.ZERO, list(carry) * unroll, width, body)
    else:
        every = list(carry)
    parts = [every[k * width : (k + 1) * width] for k in range(max(len(every) // width, 1))] if width else [[]]
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [list(merge(parts[k], parts[k + half])) for k in range(half)] + parts[2 * half :]
    total = parts[0]
    done = rounds * step
    while rest >= lanes:
        with e.vector(lanes) as lane:
            total = list(body(lane + done, total))
        done, rest = done + lanes, rest - lanes
    if rest and carry:
        with e.vector(lanes, rest) as lane:
            total = list(body(lane + done, total))
        return total
    # what is only written needs no mask; the next row, if written in place, would wait for a masked store
    for part in [1 << k for k in reversed(range(lanes.bit_length())) if rest >> k & 1]:
        with e.vector(part) as lane:
            body(lane + done, total)
        done += part
    return total


def unrolling(columns: int, lanes: int) -> int:
    """Vectors of a row to work on at a time: all of a short one."""
    vectors = columns // lanes
    return UNROLL if vectors >= 2 * UNROLL else max(vectors, 1)


def _unrolled(
    e: ValueEmitter, lanes: int, unroll: int, start: Expr, carried: Sequence[Value], width: int, body: Body
) -> list[Value]:
    following: list[Value] = []
    for k in range(unroll):
        with e.vector(lanes) as lane:
            following += body(start + k * lanes + lane, carried[k * width : (k + 1) * width])
    return following


def reduce_sweep(
    rows: Rows,
    frame: Frame,
    row: Expr,
    sweep: Sequence[Instruction],
    kept: Mapping[Instruction, Buffer],
    lanes: int,
    first_column: int | Expr,
    columns: int,
    ahead: Sequence[tuple[Buffer, Expr]] = (),
    near: bool = False,
) -> list[list[Value]]:
    """The results of one sweep's reductions over `columns` columns of a row.

    The values `kept` are written to scratch on the way, over what is read for the last time, and `ahead` is asked for:
    the same columns of these rows; `near` says that the fastest cache has room for them.
    """
    e, b = frame.emitter, frame.b
    every = [accumulation_of(reduction) for reduction in sweep]
    starts = [[b.splat(v, lanes) for v in one.start(e)] for one in every]
    ends = list(accumulate(len(start) for start in starts))
    parts = [slice(end - len(start), end) for end, start in zip(ends, starts, strict=True)]

    def body(column: Expr, carried: Sequence[Value]) -> list[Value]:
        index = rows.index(row * rows.columns + column + first_column)
        after: list[Value] = []
        for one, part in zip(every, parts, strict=True):
            operands = one.reduction.operands[: len(one.reduction.operands) // 2]
            values = [b.splat(e.value(o, index), lanes) for o in operands]
            after += one.step(e, carried[part], values)
        if e.mask is not None:
            after = [b.select(e.mask, new, old) for new, old in zip(after, carried, strict=True)]
        assert e.lane is not None
        begin = column.substitute({e.lane: ix.ZERO})
        for buffer, other in ahead:
            b.prefetch(buffer, e.position(other * rows.columns + begin), near)
        values = [b.splat(e.value(instruction, index), lanes) for instruction in kept]
        for scratch, value in zip(kept.values(), values, strict=True):
            b.store(scratch, e.position(begin), value)
        return after

    def merge(x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        return [v for one, part in zip(every, parts, strict=True) for v in one.merge(e, x[part], y[part])]

    flat = [v for start in starts for v in start]
    total = sweep_columns(e, lanes, columns, flat, unrolling(columns, lanes), body, merge)
    while lanes > 1:
        lanes //= 2
        total = merge([b.half(v, 0) for v in total], [b.half(v, 1) for v in total])
    results = [v for one, part in zip(every, parts, strict=True) for v in one.results(e, total[part])]
    return with_inits(e, sweep, results)


def scratch_row(rows: Rows, frame: Frame, element: ElementType, lanes: int) -> Buffer:
    """Room for one value of each column of a row; a masked vector may write a whole one."""
    return frame.b.scratch("kept", element, -(-rows.columns // lanes) * lanes)


def from_scratch(e: ValueEmitter, rows: Rows, kept: Mapping[Expr, Buffer]) -> Callable[[Index], Value]:
    """Read a kept value: the index must lie in one of the rows of `kept`."""

    def read(index: Index) -> Value:
        position = ix.linearize(index, rows.full)
        for row, scratch in kept.items():
            column = position - row * rows.columns
            if column.low >= 0 and column.high < rows.columns and (column.per_lane or column.is_constant):
                at = column.substitute({e.lane: ix.ZERO}) if e.lane is not None else column
                return e.b.load(scratch, e.position(at), e.lanes)
        raise NotARow

    return read


@contextmanager
def row_loop(frame: Frame, first: Value, last: Value, count: int, step: int = 1) -> Iterator[Expr]:
    """Every `step`-th of the rows [first, last) of `count`."""
    e = frame.emitter
    if count == step:
        with e.scope():
            yield ix.ZERO
        return
    with frame.b.loop(first, last, step) as loop, e.scope():
        yield e.bind("row", loop.index, 0, count - step)


def store_reduced(rows: Rows, frame: Frame, row: Expr, root: Instruction) -> None:
    """Write a root that has one value a row; one that is as large as the input was written before."""
    e, b = frame.emitter, frame.b
    if rows.columns == 1 and isinstance(root.type, TensorType):
        return
    number = rows.cluster.roots.index(root)
    if isinstance(root.type, TensorType):
        if root.tensor_type.size != rows.rows:
            return
        values, arrays = [e.value(root, ix.delinearize(row, root.shape))], [frame.outputs[number]]
    else:
        shape = rows.cluster.results[0].shape
        emitted = e.emitted(root, ix.delinearize(row, shape))
        values, arrays = emitted if isinstance(emitted, list) else [emitted], frame.outputs
    for value, array in zip(values, arrays, strict=True):
        b.store(array.buffer, e.position(row), storage.encode(b, value, array.type.element))
