"""The row schedule for few long rows with only reduced outputs: columns are shared out among tasks.

Each task leaves partial results, and a second kernel combines them in a fixed order, whatever the threads.
"""

from collections.abc import Sequence

from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.accumulation import combine_each
from onnxla.codegen.kernels.cluster import Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Buffer, Kernel
from onnxla.codegen.kernels.loop import name_of
from onnxla.codegen.kernels.rows import Rows, settle
from onnxla.codegen.kernels.sweeps import UNROLL, reduce_sweep, row_loop, store_reduced
from onnxla.codegen.lowering import Argument, KernelCall, Lowering, Temporary
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import TensorType


def lower_split(rows: Rows, lanes: int, wanted: int) -> Lowering:
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
        results = reduce_sweep(rows, frame, row, sweep, {}, lanes, first_column, columns)
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
    with row_loop(frame, b.const(0), b.const(rows.rows), rows.rows) as row:
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
            settle(e, reduction, {row: rounded})
        for root in rows.cluster.roots:
            store_reduced(rows, frame, row, root)
    return b.finish(), (*frame.arguments, *(Temporary(k) for k in range(len(types))))
