"""The row schedule: reductions over the innermost dimensions, and whole rows around them.

Every reduction of the cluster takes the same trailing dimensions, the columns, to one value a row.
A row is worked through in sweeps while it lies in cache: a sweep for the reductions that depend on
nothing, one for those that need their results, and so on, and a last one that writes outputs as
large as the input (softmax, layer normalisation). What is dear to compute and needed again in a
later sweep is kept in scratch (`kept_values`); the rest is computed anew.

Few long rows with only reduced outputs take `split_rows`.
"""

from collections.abc import Sequence

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr, Variable
from onnxla.codegen.kernels.ir import Buffer, Value
from onnxla.codegen.kernels.kept_values import Kept, plan_kept
from onnxla.codegen.kernels.loop import GRAIN, MOST_TASKS, merge_in_place, name_of, operations, vector_lanes
from onnxla.codegen.kernels.rows import NotARow, Rows, constantly, settle
from onnxla.codegen.kernels.split_rows import lower_split
from onnxla.codegen.kernels.sweeps import (
    UNROLL,
    from_scratch,
    reduce_sweep,
    row_loop,
    scratch_row,
    store_reduced,
    sweep_columns,
    unrolling,
)
from onnxla.codegen.kernels.value import Array, Emitted, ValueEmitter
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import TensorType


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
        return lower_split(rows, lanes, wanted)
    kept = plan_kept(rows)
    together = _together(rows, kept, target)
    share = -(-rows.rows // (wanted * together)) * together
    frame = Frame(cluster, name_of(cluster), -(-rows.rows // share))
    b = frame.b
    paired = rows.rows // together * together
    first = b.mul(b.task, b.const(share))
    last = b.min(b.add(first, b.const(share)), b.const(paired))
    with row_loop(frame, first, last, paired, together) as row:
        _emit_rows(rows, frame, [row + k for k in range(together)], kept, lanes, target)
    if paired < rows.rows:
        with b.if_(b.compare("EQ", b.task, b.const(b.kernel.tasks - 1))) as branch:
            with branch.then(), frame.emitter.scope():
                _emit_rows(rows, frame, [ix.constant(paired)], kept, lanes, target)
            with branch.otherwise():
                pass
    kernel = b.finish()
    return Lowering((KernelCall(kernel, tuple(frame.arguments)),), in_place=in_place)


def _together(rows: Rows, kept: Sequence[Kept], target: Target) -> int:
    """How many rows go together, sweep by sweep: one, or two where all that they hold lies in the fastest cache."""
    types = [t for t in (*(leaf.tensor_type for leaf in rows.cluster.leaves), *rows.cluster.results)]
    held = sum(t.bytes // rows.rows for t in types if t.size == rows.rows * rows.columns)
    held += sum(element.bytes * rows.columns for element in {x.place: x.element for x in kept}.values())
    return 2 if rows.rows >= 4 and 2 * held <= target.l1_bytes else 1


def _survey(rows: Rows) -> tuple[float, tuple[tuple[int, int], ...]]:
    """Operations for one element over all sweeps, and which operands may be overwritten in place."""
    frame = Frame(rows.cluster, "survey", 1)
    e = frame.emitter
    variable = Variable("position", 0, rows.rows * rows.columns - 1)
    e.bound[variable] = frame.b.task
    at = ix.of(variable)
    for reduction in (r for sweep in rows.sweeps for r in sweep):
        e.leaves[reduction] = constantly(_zeros(e, reduction))
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


# One row, or two in turns


def _emit_rows(
    rows: Rows, frame: Frame, band: Sequence[Expr], kept: Sequence[Kept], lanes: int, target: Target
) -> None:
    """All sweeps of the rows of `band`, one row after the other in each.

    While the lanes of one are brought together, which is a chain of operations, the sweep of the other goes on.
    """
    e, cluster = frame.emitter, rows.cluster
    leaves = dict(e.leaves)
    elements = {x.place: x.element for x in kept}
    places = {row: {p: scratch_row(rows, frame, kind, lanes) for p, kind in elements.items()} for row in band}
    ahead = _plan_ahead(rows, frame, len(band), kept, target)
    for number, sweep in enumerate(rows.sweeps):
        _forget(e, kept, number)
        stored = [x for x in kept if x.stored == number]
        known = {}
        for row in band:
            scratch = {x.instruction: places[row][x.place] for x in stored}
            requests = [(buffer, row + further) for buffer, further in ahead.get(number, ())]
            near = len(band) > 1  # all that these hold lies in the fastest cache
            known[row] = reduce_sweep(rows, frame, row, sweep, scratch, lanes, 0, rows.columns, requests, near)
        for x in stored:
            e.leaves[x.instruction] = from_scratch(e, rows, {row: places[row][x.place] for row in band})
        for k, reduction in enumerate(sweep):
            settle(e, reduction, {row: results[k] for row, results in known.items()})
    wide = [
        (root, array)
        for root, array in zip(cluster.roots, frame.outputs, strict=False)
        if isinstance(root.type, TensorType) and (array.type.size != rows.rows or rows.columns == 1)
    ]
    _forget(e, kept, len(rows.sweeps))
    for row in band:
        if wide:
            _write_sweep(rows, frame, row, wide, lanes)
        for root in cluster.roots:
            store_reduced(rows, frame, row, root)
    e.leaves = leaves


def _forget(e: ValueEmitter, kept: Sequence[Kept], sweep: int) -> None:
    """From this sweep on, other values may lie where those that were read for the last time did."""
    for value in kept:
        if value.last < sweep:
            e.leaves.pop(value.instruction, None)


def _plan_ahead(
    rows: Rows, frame: Frame, together: int, kept: Sequence[Kept], target: Target
) -> dict[int, list[tuple[Buffer, int]]]:
    """What to ask memory for in which sweep, and how many rows on: this row of the outputs, which would wait to be
    read before they are written, and the next row of the operands.

    The hardware sees what comes next within a page, and rows are often pages. Sweeps with dear values are asked to,
    since memory has the least to do meanwhile; else the second one, for which the row lies in cache.
    """
    operands = [frame.buffer_of(leaf) for leaf in rows.cluster.leaves if leaf.shape == rows.full]
    read = [(buffer, together) for buffer in operands if buffer is not None]
    written = [(a.buffer, 0) for a in frame.outputs if a.type.size == rows.rows * rows.columns]
    whole = sum(buffer.bytes for buffer, _ in read + written)
    hosts = sorted({x.stored for x in kept}) or list(range(1, len(rows.sweeps)))[:1]
    if not hosts or not written or whole <= target.l2_bytes or whole // rows.rows > target.l2_bytes // 8:
        return {}
    return {hosts[0]: written + read} if len(hosts) == 1 else {hosts[0]: written, hosts[-1]: read}


def _write_sweep(rows: Rows, frame: Frame, row: Expr, wide: Sequence[tuple[Instruction, Array]], lanes: int) -> None:
    e, b = frame.emitter, frame.b

    def body(column: Expr, accumulated: Sequence[Value]) -> Sequence[Value]:
        position = row * rows.columns + column
        values = [e.value(root, ix.reshape(rows.index(position), rows.full, root.shape)) for root, _ in wide]
        assert e.lane is not None
        at = e.position(position.substitute({e.lane: ix.ZERO}))
        for value, (_, array) in zip(values, wide, strict=True):
            b.store(array.buffer, at, b.splat(storage.encode(b, value, array.type.element), e.lanes), e.mask)
        return ()

    short = rows.columns < 2 * UNROLL * lanes
    sweep_columns(e, lanes, rows.columns, (), unrolling(rows.columns, lanes) if short else 1, body, lambda x, y: x)
