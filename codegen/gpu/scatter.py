"""Scatter on a GPU, without atomics, so that results repeat: each place of the operand has one thread that writes it.

Where windows that meet cover each other place by place, a thread owns one place of the window. Otherwise a thread
owns every so many places of the operand; all threads walk all updates in order, and apply those that fall on what
they own.
"""

import math

from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.gpu.threads import THREADS, blocks_for, each_thread
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.scatter import Updates
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.ops.indexing import Scatter

MOST_OWNERS = 64 * THREADS


def lower_scatter(cluster: Cluster, target: GpuTarget) -> Lowering:
    """The cluster is one scatter."""
    instruction = cluster.instruction
    op = instruction.op
    assert isinstance(op, Scatter)
    count = len(instruction.operands) // 2
    copies = tuple((k, k) for k in range(count))
    updates = instruction.operands[count + 1].tensor_type
    if updates.size == 0:
        return Lowering((), copies=copies)
    windows = math.prod(updates.shape[d] for d in op.update_window_dims)
    aligned = all(d in op.inserted_window_dims for d in op.scatter_dims_to_operand_dims) and windows > 1
    owners = windows if aligned else min(instruction.operands[0].tensor_type.size, MOST_OWNERS)
    omit = tuple(o for o in instruction.operands[:count] if o not in instruction.operands[count:])
    frame = Frame(cluster, "scatter", blocks_for(owners), omit)
    e, b = frame.emitter, frame.b
    scatter = Updates(frame, instruction, op, count)
    with each_thread(frame, owners) as owner, e.loop("update", math.prod(scatter.scatter_shape)) as (update, _):
        batch = ix.delinearize(update, scatter.scatter_shape)
        starts, fits = scatter.starts(batch)

        def apply(place: Expr, condition: Value) -> None:
            with b.if_(condition) as branch:
                with branch.then(), e.scope():
                    scatter.combine(batch, ix.delinearize(place, scatter.window_shape), starts)
                with branch.otherwise():
                    pass

        if aligned:
            apply(owner, fits)
        else:
            with e.loop("window", windows) as (place, _):
                falls = scatter.target(ix.delinearize(place, scatter.window_shape), starts) % owners
                apply(place, b.and_(fits, b.compare("EQ", e.position(falls), e.position(owner))))
    return Lowering((KernelCall(b.finish(), tuple(frame.arguments)),), copies=copies)
