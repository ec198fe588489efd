"""The row schedule on a GPU: a block works through a row in sweeps, a thread every so many columns.

The sweeps are those of the CPU (`codegen/kernels/row.py`): what a reduction needs, then what needs
the reduction. Here each thread reduces its own columns, the threads of a warp exchange partial results,
and the first threads of the warps meet in shared memory. The order is fixed, so results repeat.
"""

from collections.abc import Sequence

from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.accumulation import combine_each, neutral, with_inits
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.loop import name_of
from onnxla.codegen.kernels.rows import NotARow, Rows, settle
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import TensorType


def lower_row(cluster: Cluster, target: GpuTarget) -> Lowering | None:
    """None where the cluster does not fall into rows."""
    rows = Rows.of(cluster)
    if rows is None:
        return None
    try:
        return _Row(rows, target).lower()
    except NotARow:
        return None


class _Row:
    def __init__(self, rows: Rows, target: GpuTarget) -> None:
        self.rows, self.warp = rows, target.warp
        self.threads = target.warp
        while self.threads < min(rows.columns // 4, 512):
            self.threads *= 2
        self.frame = Frame(rows.cluster, name_of(rows.cluster), rows.rows)
        self.frame.b.kernel.threads = self.threads
        self.e, self.b = self.frame.emitter, self.frame.b

    def lower(self) -> Lowering:
        e, b, rows = self.e, self.b, self.rows
        row = e.bind("row", b.task, 0, rows.rows - 1)
        thread = b.thread()
        for sweep in rows.sweeps:
            for reduction, values in zip(sweep, self.reduce(row, thread, sweep), strict=True):
                settle(e, reduction, {row: values})
        self.write(row, thread)
        return Lowering((KernelCall(b.finish(), tuple(self.frame.arguments)),))

    def reduce(self, row: Expr, thread: Value, sweep: Sequence[Instruction]) -> list[list[Value]]:
        """The results of one sweep's reductions, the same in every thread."""
        e, b, rows = self.e, self.b, self.rows
        start = [v for reduction in sweep for v in neutral(e, reduction)]
        with b.loop(thread, b.const(rows.columns), self.threads, carry=start) as loop, e.scope():
            column = e.bind("column", loop.index, 0, rows.columns - 1)
            index = rows.index(row * rows.columns + column)
            values = [e.value(o, index) for r in sweep for o in r.operands[: len(r.operands) // 2]]
            loop.yield_(*combine_each(e, sweep, loop.carried, values))
        partial = self.across_warp(sweep, list(loop.results), self.warp)
        if self.threads > self.warp:
            partial = self.across_block(thread, sweep, partial)
        return with_inits(e, sweep, partial)

    def across_warp(self, sweep: Sequence[Instruction], values: list[Value], width: int) -> list[Value]:
        """Every thread of the warp gets the combination of `width` neighbours' values."""
        distance = width // 2
        while distance:
            others = [self.shuffled(v, distance) for v in values]
            values = combine_each(self.e, sweep, values, others)
            distance //= 2
        return values

    def shuffled(self, value: Value, distance: int) -> Value:
        """Exchange with another thread; narrow types travel as 32 bits."""
        b = self.b
        if value.element.bits >= 32 and value.element.name != "pred":
            return b.shuffle_xor(value, distance)
        wide = b.convert(value, storage.WORD)
        return b.convert(b.shuffle_xor(wide, distance), value.element)

    def across_block(self, thread: Value, sweep: Sequence[Instruction], values: list[Value]) -> list[Value]:
        """Warps leave their value in shared memory and every thread combines all of them, in order."""
        e, b = self.e, self.b
        warps = self.threads // self.warp
        places = [b.shared("partial", v.element, warps) for v in values]
        with b.if_(b.compare("EQ", b.binary("rem", thread, b.const(self.warp)), b.const(0))) as branch:
            with branch.then(), e.scope():
                for place, value in zip(places, values, strict=True):
                    b.store(place, b.div(thread, b.const(self.warp)), value)
            with branch.otherwise():
                pass
        b.barrier()
        total = [b.load(place, b.const(0)) for place in places]
        for warp in range(1, warps):
            total = combine_each(e, sweep, total, [b.load(place, b.const(warp)) for place in places])
        return total

    def write(self, row: Expr, thread: Value) -> None:
        """Full-size roots by all threads, one value a row by the first."""
        e, b, rows = self.e, self.b, self.rows
        roots = list(zip(rows.cluster.roots, self.frame.outputs, strict=False))
        wide = [(r, a) for r, a in roots if a.type.size == rows.rows * rows.columns and isinstance(r.type, TensorType)]
        if wide:
            with b.loop(thread, b.const(rows.columns), self.threads) as loop, e.scope():
                position = row * rows.columns + e.bind("column", loop.index, 0, rows.columns - 1)
                values = [e.value(r, ix.reshape(rows.index(position), rows.full, r.shape)) for r, _ in wide]
                for value, (_, array) in zip(values, wide, strict=True):
                    b.store(array.buffer, e.position(position), storage.encode(b, value, array.type.element))
        if len(wide) == len(rows.cluster.roots):
            return
        with b.if_(b.compare("EQ", thread, b.const(0))) as branch:
            with branch.then(), e.scope():
                self.write_reduced(row, wide)
            with branch.otherwise():
                pass

    def write_reduced(self, row: Expr, wide: Sequence[tuple[Instruction, object]]) -> None:
        e, b = self.e, self.b
        done = {root for root, _ in wide}
        for root in self.rows.cluster.roots:
            if root in done:
                continue
            single = isinstance(root.type, TensorType)
            shape = root.shape if single else self.rows.cluster.results[0].shape
            emitted = e.emitted(root, ix.delinearize(row, shape))
            values = emitted if isinstance(emitted, list) else [emitted]
            number = self.rows.cluster.roots.index(root)
            arrays = [self.frame.outputs[number]] if single else self.frame.outputs
            for value, array in zip(values, arrays, strict=True):
                b.store(array.buffer, e.position(row), storage.encode(b, value, array.type.element))
