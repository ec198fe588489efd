"""The row schedule: reductions over the innermost dimensions, and whole rows around them.

Every reduction of the cluster takes the same trailing dimensions, the columns, to one value a row.
A row is worked through in sweeps while it lies in cache: a sweep for the reductions that depend on
nothing, one for those that need their results, and so on, and a last one that writes outputs as
large as the input (softmax, layer normalisation). What is dear to compute and needed again in a
later sweep is kept in scratch; the rest is computed anew.

Few long rows with only reduced outputs take `split_rows`.
"""

from collections.abc import Mapping, Sequence

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr, Variable
from onnxla.codegen.kernels.ir import Buffer, Value
from onnxla.codegen.kernels.loop import GRAIN, MOST_TASKS, merge_in_place, name_of, operations, vector_lanes
from onnxla.codegen.kernels.rows import NotARow, Rows, constantly, settle
from onnxla.codegen.kernels.split_rows import lower_split
from onnxla.codegen.kernels.sweeps import UNROLL, reduce_sweep, row_loop, store_reduced, sweep_columns, unrolling
from onnxla.codegen.kernels.value import Array, Emitted, ValueEmitter
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import TensorType

SCRATCH_BYTES = 256 << 10
DEAR = frozenset(
    "exponential exponential-minus-one log log-plus-one logistic tanh erf power sine cosine tan atan2 divide cbrt "
    "gather convolution dot".split()
)
"""Opcodes that cost more than reading their result back from cache."""


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
    share = -(-rows.rows // wanted)
    frame = Frame(cluster, name_of(cluster), -(-rows.rows // share))
    b = frame.b
    first = b.mul(b.task, b.const(share))
    last = b.min(b.add(first, b.const(share)), b.const(rows.rows))
    with row_loop(frame, first, last, rows.rows) as row:
        _emit_row(rows, frame, row, lanes, target)
    kernel = b.finish()
    return Lowering((KernelCall(kernel, tuple(frame.arguments)),), in_place=in_place)


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


# One row


def _emit_row(rows: Rows, frame: Frame, row: Expr, lanes: int, target: Target) -> None:
    e, cluster = frame.emitter, rows.cluster
    kept = _plan_kept(rows, frame)
    ahead = _plan_ahead(rows, frame, row, kept, target)
    for number, sweep in enumerate(rows.sweeps):
        outputs = [x for x, first in kept.items() if first == number]
        results = reduce_sweep(rows, frame, row, sweep, outputs, lanes, 0, rows.columns, ahead.get(number, ()))
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
        store_reduced(rows, frame, row, root)


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


def _plan_ahead(
    rows: Rows, frame: Frame, row: Expr, kept: Mapping[Instruction, int], target: Target
) -> dict[int, list[tuple[Buffer, Expr]]]:
    """What to ask memory for in which sweep: this row of the outputs, which would wait to be read before they are
    written, and the next row of the operands.

    The hardware sees what comes next within a page, and rows are often pages. Sweeps with dear values are asked to,
    since memory has the least to do meanwhile; else the second one, for which the row lies in cache.
    """
    operands = [frame.buffer_of(leaf) for leaf in rows.cluster.leaves if leaf.shape == rows.full]
    read = [(buffer, row + 1) for buffer in operands if buffer is not None]
    written = [(a.buffer, row) for a in frame.outputs if a.type.size == rows.rows * rows.columns]
    whole = sum(buffer.bytes for buffer, _ in read + written)
    hosts = sorted(set(kept.values())) or list(range(1, len(rows.sweeps)))[:1]
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
