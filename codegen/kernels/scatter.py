"""Scatter: the operand, with update windows combined into it one after the other.

The result starts as a copy of the operand (or shares its buffer). Updates are applied in the order
of their indices. Tasks share out positions within the window where windows that meet cover each
other position by position, so that the result does not depend on the number of threads.
"""

import math
from collections.abc import Sequence

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import INDEX, Value
from onnxla.codegen.kernels.loop import task_count
from onnxla.codegen.kernels.value import Index
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.indexing import Scatter
from onnxla.hlo.types import PRED, Shape


def lower_scatter(cluster: Cluster, target: Target) -> Lowering:
    """The cluster is one scatter."""
    instruction = cluster.instruction
    op = instruction.op
    assert isinstance(op, Scatter)
    count = len(instruction.operands) // 2
    updates = instruction.operands[count + 1]
    windows = math.prod(updates.shape[d] for d in op.update_window_dims)
    aligned = all(d in op.inserted_window_dims for d in op.scatter_dims_to_operand_dims)
    tasks = task_count(8.0 * updates.tensor_type.size, windows) if aligned and updates.tensor_type.size else 1
    share = -(-windows // tasks) if windows else 0
    tasks = -(-windows // share) if windows else 1
    omit = tuple(o for o in instruction.operands[:count] if o not in instruction.operands[count:])
    frame = Frame(cluster, "scatter", tasks, omit)
    copies = tuple((k, k) for k in range(count))
    if updates.tensor_type.size == 0:
        return Lowering((), copies=copies)
    Updates(frame, instruction, op, count).emit(share, windows)
    return Lowering((KernelCall(frame.b.finish(), tuple(frame.arguments)),), copies=copies)


class Updates:
    """Code that applies the updates of a scatter to the results, which hold the operands already."""

    def __init__(self, frame: Frame, instruction: Instruction, op: Scatter, count: int) -> None:
        self.frame, self.op, self.count = frame, op, count
        self.operand = instruction.operands[0]
        self.indices = instruction.operands[count]
        self.updates = instruction.operands[count + 1 :]
        shape = self.updates[0].shape
        self.window_shape: Shape = tuple(shape[d] for d in op.update_window_dims)
        self.scatter_dims = [d for d in range(len(shape)) if d not in op.update_window_dims]
        self.scatter_shape: Shape = tuple(shape[d] for d in self.scatter_dims)

    def emit(self, share: int, windows: int) -> None:
        e, b = self.frame.emitter, self.frame.b
        with e.loop("update", math.prod(self.scatter_shape)) as (update, _):
            batch = ix.delinearize(update, self.scatter_shape)
            starts, fits = self.starts(batch)
            with b.if_(fits) as branch:
                with branch.then(), e.scope():
                    first = b.mul(b.task, b.const(share))
                    last = b.min(b.add(first, b.const(share)), b.const(windows))
                    with b.loop(first, last) as loop, e.scope():
                        place = e.bind("window", loop.index, 0, windows - 1)
                        self.combine(batch, ix.delinearize(place, self.window_shape), starts)
                with branch.otherwise():
                    pass

    def starts(self, batch: Index) -> tuple[list[Expr], Value]:
        """Where the window starts in each dimension of the operand, and whether it fits there."""
        e, b, op = self.frame.emitter, self.frame.b, self.op
        shape = self.operand.shape
        hidden = (*op.inserted_window_dims, *op.input_batching_dims)
        sizes = iter(self.window_shape)
        window = [1 if d in hidden else next(sizes) for d in range(len(shape))]
        starts: list[Expr] = [ix.ZERO] * len(shape)
        fits = b.const(True, PRED)

        def at(indices_dimension: int) -> Expr:
            return batch[indices_dimension - (indices_dimension > op.index_vector_dim)]

        for dimension, source in zip(op.input_batching_dims, op.scatter_indices_batching_dims, strict=True):
            starts[dimension] = at(source)
        for component, dimension in enumerate(op.scatter_dims_to_operand_dims):
            where = list(batch)
            if op.index_vector_dim < len(self.indices.shape):
                where.insert(op.index_vector_dim, ix.constant(component))
            raw = e.value(self.indices, tuple(where))
            last = shape[dimension] - window[dimension]
            fits = b.and_(fits, self.within(raw, last))
            starts[dimension] = e.bind(f"start{dimension}", b.convert(raw, INDEX), 0, last)
        return starts, fits

    def within(self, start: Value, last: int) -> Value:
        """0 <= start <= last, compared in the type of the index so that nothing wraps."""
        b = self.frame.b
        largest = (1 << (start.element.bits - start.element.is_signed)) - 1
        below = b.compare("LE", start, b.const(min(last, largest), start.element))
        if not start.element.is_signed:
            return below
        return b.and_(b.compare("GE", start, b.const(0, start.element)), below)

    def target(self, window: Index, starts: Sequence[Expr]) -> Expr:
        """The position in the operand that a place in the window falls on."""
        hidden = (*self.op.inserted_window_dims, *self.op.input_batching_dims)
        inner = iter(window)
        return ix.linearize(
            tuple(s if d in hidden else s + next(inner) for d, s in enumerate(starts)), self.operand.shape
        )

    def combine(self, batch: Index, window: Index, starts: Sequence[Expr]) -> None:
        """Combine one element of the update into its place."""
        e, b, op = self.frame.emitter, self.frame.b, self.op
        where = dict(zip(self.scatter_dims, batch, strict=True))
        where |= dict(zip(op.update_window_dims, window, strict=True))
        source = tuple(where[d] for d in range(len(where)))
        at = e.position(self.target(window, starts))
        current = [storage.decode(b, b.load(array.buffer, at), array.type.element) for array in self.frame.outputs]
        incoming = [e.value(update, source) for update in self.updates]
        for array, value in zip(self.frame.outputs, e.apply(op.to_apply, [*current, *incoming]), strict=True):
            b.store(array.buffer, at, storage.encode(b, value, array.type.element))
