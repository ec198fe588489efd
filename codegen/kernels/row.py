"""The row schedule: reductions over the innermost dimensions, and whole rows around them.

Every reduction of the cluster takes the same trailing dimensions, the columns, to one value a row.
A row is worked through in sweeps while it lies in cache: a sweep for the reductions that depend on
nothing, one for those that need their results, and so on, and a last one that writes outputs as
large as the input (softmax, layer normalisation). What is dear to compute and needed again in a
later sweep is kept in scratch; the rest is computed anew.

With few long rows and only reduced outputs, columns are shared out among tasks: each leaves
partial results, and a second kernel combines them in a fixed order, whatever the threads.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr, Variable
from onnxla.codegen.kernels.ir import Buffer, Kernel, Value
from onnxla.codegen.kernels.loop import GRAIN, MOST_TASKS, merge_in_place, name_of, operations, vector_lanes
from onnxla.codegen.kernels.value import Array, Emitted, Index, ValueEmitter
from onnxla.codegen.lowering import Argument, KernelCall, Lowering, Temporary
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import require_tensor
from onnxla.hlo.ops.reduction import Reduce, identity_of, simple_combiner
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import Shape, TensorType, TupleType

UNROLL = 4
"""Independent accumulators of a sweep, to cover the latency of an addition."""
SCRATCH_BYTES = 256 << 10
DEAR = frozenset(
    "exponential exponential-minus-one log log-plus-one logistic tanh erf power sine cosine tan atan2 divide cbrt "
    "gather convolution dot".split()
)
"""Opcodes that cost more than reading their result back from cache."""


class NotARow(Exception):
    """The cluster reads a reduction's result, or a kept value, at another place than the row it is in."""


@dataclass(frozen=True)
class Rows:
    """How a cluster falls into rows: `full` is the reductions' operand shape, rows * columns its size."""

    cluster: Cluster
    full: Shape
    rows: int
    columns: int
    sweeps: tuple[tuple[Instruction, ...], ...]
    """Reductions by sweep; each needs only results of earlier ones."""

    @staticmethod
    def of(cluster: Cluster) -> "Rows | None":
        """None where the cluster is no row cluster."""
        reductions = [i for i in cluster.instructions if isinstance(i.op, Reduce)]
        if not reductions:
            return None
        full = reductions[0].operands[0].shape
        dimensions = _significant(reductions[0], full)
        trailing = [d for d, n in enumerate(full) if n != 1][-len(dimensions) :] if dimensions else []
        if dimensions != trailing or 0 in full:
            return None
        if any(r.operands[0].shape != full or _significant(r, full) != dimensions for r in reductions):
            return None
        columns = math.prod(full[d] for d in dimensions)
        rows = math.prod(full) // columns
        if any(t.size not in (rows, rows * columns) for t in cluster.results):
            return None
        return Rows(cluster, full, rows, columns, _levels(cluster, reductions))

    def index(self, position: Expr) -> Index:
        """The index in `full` of a row-major position."""
        return ix.delinearize(position, self.full)


def _significant(reduce: Instruction, full: Shape) -> list[int]:
    assert isinstance(reduce.op, Reduce)
    return [d for d in sorted(reduce.op.dimensions) if full[d] != 1]


def _levels(cluster: Cluster, reductions: list[Instruction]) -> tuple[tuple[Instruction, ...], ...]:
    level: dict[Instruction, int] = {}
    for instruction in cluster.instructions:
        below = max((level.get(o, 0) for o in instruction.operands), default=0)
        level[instruction] = below + 1 if instruction in reductions else below
    depth = max(level[r] for r in reductions)
    return tuple(tuple(r for r in reductions if level[r] == k) for k in range(1, depth + 1))


def lower_row(cluster: Cluster, target: Target) -> Lowering | None:
    """None where the cluster does not fall into rows."""
    rows = Rows.of(cluster)
    if rows is None:
        return None
    try:
        return _lower(rows, target)
    except NotARow:
        return None


def _lower(rows: Rows, target: Target) -> Lowering:
    cluster = rows.cluster
    cost, in_place = _survey(rows)
    lanes = vector_lanes(cluster, target)
    while lanes > 1 and lanes // 2 >= rows.columns:
        lanes //= 2
    work = cost * rows.rows * rows.columns / lanes
    wanted = max(1, min(int(work // GRAIN), MOST_TASKS))
    reduced_only = all(t.size == rows.rows for t in cluster.results) and rows.columns > 1
    if reduced_only and len(rows.sweeps) == 1 and rows.rows * 2 <= wanted:
        return _lower_split(rows, lanes, wanted)
    share = -(-rows.rows // wanted)
    frame = Frame(cluster, name_of(cluster), -(-rows.rows // share))
    b = frame.b
    first = b.mul(b.task, b.const(share))
    last = b.min(b.add(first, b.const(share)), b.const(rows.rows))
    with _row_loop(frame, first, last, rows.rows) as row:
        _emit_row(rows, frame, row, lanes)
    kernel = b.finish()
    return Lowering((KernelCall(kernel, tuple(frame.arguments)),), in_place=in_place)


@contextmanager
def _row_loop(frame: Frame, first: Value, last: Value, count: int) -> Iterator[Expr]:
    e = frame.emitter
    if count == 1:
        with e.scope():
            yield ix.ZERO
        return
    with frame.b.loop(first, last) as loop, e.scope():
        yield e.bind("row", loop.index, 0, count - 1)


def _survey(rows: Rows) -> tuple[float, tuple[tuple[int, int], ...]]:
    """Operations for one element over all sweeps, and which operands may be overwritten in place."""
    frame = Frame(rows.cluster, "survey", 1)
    e = frame.emitter
    variable = Variable("position", 0, rows.rows * rows.columns - 1)
    e.bound[variable] = frame.b.task
    at = ix.of(variable)
    for reduction in (r for sweep in rows.sweeps for r in sweep):
        e.leaves[reduction] = _constantly(_zeros(e, reduction))
    with e.recording() as accesses:
        for reduction in (r for sweep in rows.sweeps for r in sweep):
            for operand in reduction.operands[: len(reduction.operands) // 2]:
                e.emitted(operand, rows.index(at))
        for root in rows.cluster.roots:
            if isinstance(root.type, TensorType) and root.tensor_type.size == rows.rows * rows.columns:
                e.emitted(root, ix.reshape(rows.index(at), rows.full, root.shape))
    return operations(frame.b.finish().body), merge_in_place(frame, rows.cluster, accesses, at)


def _zeros(e: ValueEmitter, reduction: Instruction) -> Emitted:
    kind = reduction.type
    kinds = (kind,) if isinstance(kind, TensorType) else kind.elements
    zeros = [e.literal(0, k.element) for k in kinds if isinstance(k, TensorType)]
    return zeros[0] if isinstance(kind, TensorType) else zeros


# One row


def _emit_row(rows: Rows, frame: Frame, row: Expr, lanes: int) -> None:
    e, cluster = frame.emitter, rows.cluster
    kept = _plan_kept(rows, frame)
    for number, sweep in enumerate(rows.sweeps):
        outputs = [x for x, first in kept.items() if first == number]
        results = _reduce_sweep(rows, frame, row, sweep, outputs, lanes, 0, rows.columns)
        for reduction, values in zip(sweep, results, strict=True):
            settle(e, rows, row, reduction, values)
    wide = [
        (root, array)
        for root, array in zip(cluster.roots, frame.outputs, strict=False)
        if isinstance(root.type, TensorType) and (array.type.size != rows.rows or rows.columns == 1)
    ]
    if wide:
        _write_sweep(rows, frame, row, wide, lanes)
    for root in cluster.roots:
        _store_reduced(rows, frame, row, root)


def _plan_kept(rows: Rows, frame: Frame) -> dict[Instruction, int]:
    """What is worth keeping, and the sweep that computes it; its leaf is set up to read the scratch."""
    targets = [[o for r in sweep for o in r.operands[: len(r.operands) // 2]] for sweep in rows.sweeps]
    targets.append([r for r in rows.cluster.roots if isinstance(r.type, TensorType)])
    reductions = {r for sweep in rows.sweeps for r in sweep}
    inside = set(rows.cluster.instructions) - reductions
    dear: dict[Instruction, bool] = {}
    for instruction in rows.cluster.instructions:
        own = instruction.op.opcode in DEAR
        dear[instruction] = instruction in inside and (own or any(dear.get(o, False) for o in instruction.operands))
    first: dict[Instruction, int] = {}
    kept: dict[Instruction, int] = {}
    room = SCRATCH_BYTES
    for number, roots in enumerate(targets):
        stack, seen = list(roots), set()
        while stack:
            instruction = stack.pop()
            if instruction in seen or instruction not in inside:
                continue
            seen.add(instruction)
            earlier = first.setdefault(instruction, number)
            wide = isinstance(instruction.type, TensorType) and instruction.shape == rows.full
            if earlier < number and wide and dear[instruction] and instruction not in kept:
                room -= rows.columns * storage.compute_element(instruction.tensor_type.element).bytes
                if room >= 0:
                    kept[instruction] = earlier
            if instruction not in kept or kept[instruction] == number:
                stack += instruction.operands
    return kept


def settle(e: ValueEmitter, rows: Rows, row: Expr, reduction: Instruction, values: list[Value]) -> None:
    """From here on the reduction's value is known, in its own row and nowhere else."""
    expected = row
    shape = reduction.type.shape if isinstance(reduction.type, TensorType) else _leaf_shape(reduction)
    single = isinstance(reduction.type, TensorType)

    def read(index: Index) -> Emitted:
        if ix.linearize(index, shape) != expected:
            raise NotARow
        return values[0] if single else values

    e.leaves[reduction] = read


def _leaf_shape(reduction: Instruction) -> Shape:
    """The shape of every result of a variadic reduction."""
    assert isinstance(reduction.type, TupleType)
    return require_tensor(reduction.type.elements[0]).shape


def _constantly(value: Emitted) -> Callable[[Index], Emitted]:
    return lambda index: value


# Sweeps

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
        parts = [list(merge(parts[k], parts[k + half])) for k in range(half)]
    total = parts[0]
    done = rounds * step
    while rest >= lanes:
        with e.vector(lanes) as lane:
            total = list(body(lane + done, total))
        done, rest = done + lanes, rest - lanes
    if rest:
        with e.vector(lanes, rest) as lane:
            total = list(body(lane + done, total))
    return total


def _unrolled(
    e: ValueEmitter, lanes: int, unroll: int, start: Expr, carried: Sequence[Value], width: int, body: Body
) -> list[Value]:
    following: list[Value] = []
    for k in range(unroll):
        with e.vector(lanes) as lane:
            following += body(start + k * lanes + lane, carried[k * width : (k + 1) * width])
    return following


def _reduce_sweep(
    rows: Rows,
    frame: Frame,
    row: Expr,
    sweep: Sequence[Instruction],
    outputs: list[Instruction],
    lanes: int,
    first_column: int | Expr,
    columns: int,
) -> list[list[Value]]:
    """The results of one sweep's reductions over `columns` columns; `outputs` are kept in scratch on the way."""
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
        at = e.position(column.substitute({e.lane: ix.ZERO}))
        for instruction, scratch in kept.items():
            b.store(scratch, at, b.splat(e.value(instruction, index), lanes), None)
        return after

    def merge(x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        return combine_each(e, sweep, x, y)

    unroll = UNROLL if columns >= 2 * UNROLL * lanes else 1
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


# Results


def _write_sweep(rows: Rows, frame: Frame, row: Expr, wide: Sequence[tuple[Instruction, Array]], lanes: int) -> None:
    e, b = frame.emitter, frame.b

    def body(column: Expr, accumulated: Sequence[Value]) -> Sequence[Value]:
        position = row * rows.columns + column
        values = [e.value(root, ix.reshape(rows.index(position), rows.full, root.shape)) for root, _ in wide]
        assert e.lane is not None
        at = e.position(position.substitute({e.lane: ix.ZERO}))
        for value, (_, array) in zip(values, wide, strict=True):
            b.store(array.buffer, at, b.splat(storage.encode(b, value, array.type.element), lanes), e.mask)
        return ()

    sweep_columns(e, lanes, rows.columns, (), 1, body, lambda x, y: x)


def _store_reduced(rows: Rows, frame: Frame, row: Expr, root: Instruction) -> None:
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


# Few long rows


def _lower_split(rows: Rows, lanes: int, wanted: int) -> Lowering:
    sweep = rows.sweeps[0]
    unit = lanes * UNROLL
    chunks = max(1, min(wanted // rows.rows, rows.columns // unit))
    share = -(-rows.columns // chunks)
    share = -(-share // unit) * unit
    chunks = -(-rows.columns // share)
    partial_types = [o.tensor_type for r in sweep for o in r.operands[: len(r.operands) // 2]]
    count = rows.rows * chunks
    first, arguments = _partial_kernel(rows, sweep, partial_types, lanes, share, chunks)
    temporaries = tuple(count * storage.compute_element(t.element).bytes for t in partial_types)
    second, combine_arguments = _combining_kernel(rows, sweep, partial_types, chunks)
    return Lowering((KernelCall(first, arguments), KernelCall(second, combine_arguments)), temporaries)


def _partials(frame: Frame, types: Sequence[TensorType], count: int, role: str) -> list[Buffer]:
    return [
        frame.b.parameter(f"partial{k}", storage.compute_element(t.element), count, role) for k, t in enumerate(types)
    ]


def _partial_kernel(
    rows: Rows, sweep: Sequence[Instruction], types: Sequence[TensorType], lanes: int, share: int, chunks: int
) -> tuple[Kernel, tuple[Argument, ...]]:
    frame = Frame(rows.cluster, name_of(rows.cluster) + "_partial", rows.rows * chunks)
    e, b = frame.emitter, frame.b
    buffers = _partials(frame, types, rows.rows * chunks, "output")
    task = e.bind("task", b.task, 0, rows.rows * chunks - 1)
    row, chunk = task // chunks, task % chunks
    row = e.bind("row", e.position(row), 0, rows.rows - 1)
    last = rows.columns - share * (chunks - 1)

    def emit(first_column: Expr, columns: int) -> None:
        results = _reduce_sweep(rows, frame, row, sweep, [], lanes, first_column, columns)
        flat = [v for values in results for v in values]
        for buffer, value in zip(buffers, flat, strict=True):
            b.store(buffer, b.task, value)

    if last == share:
        emit(e.bind("chunk", e.position(chunk), 0, chunks - 1) * share, share)
    else:
        whole = b.compare("NE", e.position(chunk), b.const(chunks - 1))
        with b.if_(whole) as branch:
            with branch.then(), e.scope():
                emit(e.bind("chunk", e.position(chunk), 0, chunks - 2) * share, share)
            with branch.otherwise(), e.scope():
                emit(ix.constant(share * (chunks - 1)), last)
    return b.finish(), (*frame.arguments, *(Temporary(k) for k in range(len(types))))


def _combining_kernel(
    rows: Rows, sweep: Sequence[Instruction], types: Sequence[TensorType], chunks: int
) -> tuple[Kernel, tuple[Argument, ...]]:
    frame = Frame(rows.cluster, name_of(rows.cluster) + "_combine", 1)
    e, b = frame.emitter, frame.b
    buffers = _partials(frame, types, rows.rows * chunks, "input")
    with _row_loop(frame, b.const(0), b.const(rows.rows), rows.rows) as row:
        start = [b.load(buffer, e.position(row * chunks)) for buffer in buffers]
        with b.loop(1, chunks, carry=start) as loop, e.scope():
            at = b.add(e.position(row * chunks), loop.index)
            loop.yield_(*combine_each(e, sweep, loop.carried, [b.load(buffer, at) for buffer in buffers]))
        total = list(loop.results)
        done = 0
        for reduction in sweep:
            count = len(reduction.operands) // 2
            values = total[done : done + count]
            done += count
            kinds = [o.tensor_type.element for o in reduction.operands[:count]]
            rounded = [storage.round_to(b, v, kind) for v, kind in zip(values, kinds, strict=True)]
            settle(e, rows, row, reduction, rounded)
        for root in rows.cluster.roots:
            _store_reduced(rows, frame, row, root)
    return b.finish(), (*frame.arguments, *(Temporary(k) for k in range(len(types))))
