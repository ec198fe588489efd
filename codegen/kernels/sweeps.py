"""Sweeps over a row: accumulators in vectors, brought together at the end, and values kept on the way.

Shared by the row schedule, its split form for few long rows, and (`combine_each`, `neutral`,
`with_inits`) the schedules of GPUs.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Buffer, Value
from onnxla.codegen.kernels.rows import NotARow, Rows
from onnxla.codegen.kernels.value import Array, Index, ValueEmitter
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.reduction import Reduce, identity_of, simple_combiner
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import TensorType

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
    outputs: list[Instruction],
    lanes: int,
    first_column: int | Expr,
    columns: int,
    ahead: Sequence[tuple[Buffer, Expr]] = (),
) -> list[list[Value]]:
    """The results of one sweep's reductions over `columns` columns; `outputs` are kept in scratch on the way.

    `ahead` is asked for meanwhile: the same columns of these rows.
    """
    e, b = frame.emitter, frame.b
    kept = {x: b.scratch("kept", storage.compute_element(x.tensor_type.element), rows.columns) for x in outputs}
    start: list[Value] = []
    for reduction in sweep:
        start += [b.splat(v, lanes) for v in neutral(e, reduction)]

    def body(column: Expr, accumulated: Sequence[Value]) -> list[Value]:
        index = rows.index(row * rows.columns + column + first_column)
        after: list[Value] = []
        for reduction in sweep:
            count = len(reduction.operands) // 2
            before = accumulated[len(after) : len(after) + count]
            values = [b.splat(e.value(o, index), lanes) for o in reduction.operands[:count]]
            combined = _combine(e, reduction, before, values)
            after += [
                b.select(e.mask, c, x) if e.mask is not None else c for c, x in zip(combined, before, strict=True)
            ]
        assert e.lane is not None
        start = column.substitute({e.lane: ix.ZERO})
        at = e.position(start)
        for buffer, other in ahead:
            b.prefetch(buffer, e.position(other * rows.columns + start))
        for instruction, scratch in kept.items():
            b.store(scratch, at, b.splat(e.value(instruction, index), lanes), None)
        return after

    def merge(x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        return combine_each(e, sweep, x, y)

    unroll = unrolling(columns, lanes)
    if kept:  # a masked vector may write a whole one
        for scratch in kept.values():
            scratch.size = -(-columns // lanes) * lanes
    total = sweep_columns(e, lanes, columns, start, unroll, body, merge)
    for instruction, scratch in kept.items():
        e.leaves[instruction] = _from_scratch(e, rows, row, scratch, instruction)
    width = lanes
    while width > 1:
        width //= 2
        low = [b.half(v, 0) for v in total]
        high = [b.half(v, 1) for v in total]
        total = combine_each(e, sweep, low, high)
    return with_inits(e, sweep, total)


def combine_each(e: ValueEmitter, sweep: Sequence[Instruction], x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
    """Two sets of accumulators of all reductions of a sweep made one."""
    merged: list[Value] = []
    for reduction in sweep:
        count = len(reduction.operands) // 2
        at = slice(len(merged), len(merged) + count)
        merged += _combine(e, reduction, x[at], y[at])
    return merged


def _combine(e: ValueEmitter, reduction: Instruction, x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
    assert isinstance(reduction.op, Reduce)
    return e.combine(reduction.op.to_apply, x, y, reduction.operands[0].tensor_type.element)


def neutral(e: ValueEmitter, reduction: Instruction) -> list[Value]:
    """What accumulators start from: the combiner's identity, or the initial values of a combiner without a name."""
    assert isinstance(reduction.op, Reduce)
    opcode = simple_combiner(reduction.op.to_apply)
    if opcode is None:
        return [e.value(init, ()) for init in reduction.operands[len(reduction.operands) // 2 :]]
    element = reduction.operands[0].tensor_type.element
    return [e.literal(identity_of(opcode, element).astype(storage.compute_element(element).dtype), element)]


def with_inits(e: ValueEmitter, sweep: Sequence[Instruction], total: Sequence[Value]) -> list[list[Value]]:
    """Initial values joined in, and each result rounded to its type."""
    results: list[list[Value]] = []
    done = 0
    for reduction in sweep:
        assert isinstance(reduction.op, Reduce)
        count = len(reduction.operands) // 2
        values = list(total[done : done + count])
        done += count
        if simple_combiner(reduction.op.to_apply) is not None and not _starts_neutral(reduction):
            values = _combine(e, reduction, values, [e.value(reduction.operands[1], ())])
        kinds = [o.tensor_type.element for o in reduction.operands[:count]]
        results.append([storage.round_to(e.b, v, kind) for v, kind in zip(values, kinds, strict=True)])
    return results


def _starts_neutral(reduction: Instruction) -> bool:
    assert isinstance(reduction.op, Reduce)
    init = reduction.operands[1]
    opcode = simple_combiner(reduction.op.to_apply)
    if opcode is None or not isinstance(init.op, Constant):
        return False
    return init.op.literal.array.tobytes() == identity_of(opcode, init.tensor_type.element).tobytes()


def _from_scratch(
    e: ValueEmitter, rows: Rows, row: Expr, scratch: Buffer, instruction: Instruction
) -> Callable[[Index], Value]:
    """Read a kept value; the index must lie in the row at hand."""

    def read(index: Index) -> Value:
        column = ix.linearize(index, rows.full) - row * rows.columns
        if column.low < 0 or column.high >= rows.columns or not (column.per_lane or column.is_constant):
            raise NotARow
        kind = TensorType(instruction.tensor_type.element, (scratch.size,))
        at = column.substitute({e.lane: ix.ZERO}) if e.lane is not None else column
        return e.b.load(Array(scratch, kind).buffer, e.position(at), e.lanes)

    return read


@contextmanager
def row_loop(frame: Frame, first: Value, last: Value, count: int) -> Iterator[Expr]:
    e = frame.emitter
    if count == 1:
        with e.scope():
            yield ix.ZERO
        return
    with frame.b.loop(first, last) as loop, e.scope():
        yield e.bind("row", loop.index, 0, count - 1)


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
