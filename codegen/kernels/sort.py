"""Sort: a stable merge sort of each row along one dimension, all operands moving together.

The comparator is the user's computation, inlined. Runs of one element are merged into runs of two,
four and so on, from the result buffers into temporaries and back. Rows are independent tasks.
"""

import math
from collections.abc import Sequence

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import INDEX, Buffer, Value
from onnxla.codegen.kernels.loop import task_count
from onnxla.codegen.kernels.value import ValueEmitter
from onnxla.codegen.lowering import KernelCall, Lowering, Temporary
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.indexing import Sort
from onnxla.hlo.types import PRED


def lower_sort(cluster: Cluster, target: Target) -> Lowering:
    """The cluster is one sort."""
    instruction = cluster.instruction
    op = instruction.op
    assert isinstance(op, Sort)
    shape = cluster.results[0].shape
    length = shape[op.dimension]
    rows = math.prod(shape) // length
    rounds = max(length - 1, 0).bit_length()
    tasks = task_count(12.0 * rows * length * max(rounds, 1), rows)
    share = -(-rows // tasks)
    frame = Frame(cluster, f"sort_{len(instruction.operands)}", -(-rows // share))
    b = frame.b
    spare = [
        b.parameter(f"spare{k}", storage.storage_element(t.element), t.size, "output")
        for k, t in enumerate(cluster.results)
    ]
    frame.arguments += [Temporary(k) for k in range(len(spare))]
    first = b.mul(b.task, b.const(share))
    last = b.min(b.add(first, b.const(share)), b.const(rows))
    with b.loop(first, last) as loop, frame.emitter.scope():
        row = frame.emitter.bind("row", loop.index, 0, rows - 1)
        _Row(frame, instruction, op, row, spare).emit(length)
    calls = (KernelCall(b.finish(), tuple(frame.arguments)),)
    return Lowering(calls, tuple(t.bytes for t in cluster.results))


class _Row:
    """One row: element k of every operand lies at `start + k * stride`."""

    def __init__(self, frame: Frame, instruction: Instruction, op: Sort, row: Expr, spare: list[Buffer]) -> None:
        self.frame, self.instruction, self.op, self.spare = frame, instruction, op, spare
        self.e: ValueEmitter = frame.emitter
        self.b = frame.b
        shape = frame.cluster.results[0].shape
        self.outer = ix.delinearize(row, tuple(n for d, n in enumerate(shape) if d != op.dimension))
        self.stride = math.prod(shape[op.dimension + 1 :])
        origin = (*self.outer[: op.dimension], ix.ZERO, *self.outer[op.dimension :])
        self.start = self.e.position(ix.linearize(origin, shape))
        self.results = [array.buffer for array in frame.outputs]

    def emit(self, length: int) -> None:
        e, b, dimension = self.e, self.b, self.op.dimension
        with e.loop("k", length) as (k, _):
            index = (*self.outer[:dimension], k, *self.outer[dimension:])
            at = self.at(e.position(k))
            for operand, array in zip(self.instruction.operands, self.frame.outputs, strict=True):
                value = e.value(operand, index)
                b.store(array.buffer, at, storage.encode(b, value, array.type.element))
        rounds = max(length - 1, 0).bit_length()
        with b.loop(0, rounds) as loop, e.scope():
            width = b.binary("shl", b.const(1), loop.index)
            double = b.add(width, width)
            runs = b.div(b.add(b.const(length - 1), double), double)
            with b.loop(b.const(0), runs) as run, e.scope():
                self.merge(b.mul(run.index, double), width, length)
            with b.loop(0, length) as copy, e.scope():
                at = self.at(copy.index)
                for source, target in zip(self.spare, self.results, strict=True):
                    b.store(target, at, b.load(source, at))

    def at(self, k: Value) -> Value:
        return self.b.add(self.start, self.b.mul(k, self.b.const(self.stride)))

    def merge(self, low: Value, width: Value, length: int) -> None:
        """Merge the runs at `low` and `low + width` into the temporaries; equal elements keep their order."""
        b, e = self.b, self.e
        end = b.const(length)
        middle = b.min(b.add(low, width), end)
        high = b.min(b.add(middle, width), end)
        with b.loop(low, high, carry=[low, middle]) as loop, e.scope():
            i, j = loop.carried
            # clamped positions are read but their answer is not used
            left = self.read(b.min(i, b.sub(middle, b.const(1))))
            right = self.read(b.min(j, b.const(length - 1)))
            pairs = [v for k in range(len(left)) for v in (right[k][1], left[k][1])]
            (before,) = e.apply(self.op.comparator, pairs)
            spent = b.compare("GE", i, middle)
            take = b.and_(b.compare("LT", j, high), b.or_(spent, b.convert(before, PRED)))
            at = self.at(loop.index)
            for k, buffer in enumerate(self.spare):
                b.store(buffer, at, b.select(take, right[k][0], left[k][0]))
            step = b.convert(take, INDEX)
            loop.yield_(b.add(i, b.sub(b.const(1), step)), b.add(j, step))

    def read(self, k: Value) -> Sequence[tuple[Value, Value]]:
        """Each operand's element, as it lies in memory and decoded."""
        at = self.at(k)
        raw = [self.b.load(buffer, at) for buffer in self.results]
        kinds = [t.element for t in self.frame.cluster.results]
        return [(r, storage.decode(self.b, r, kind)) for r, kind in zip(raw, kinds, strict=True)]
