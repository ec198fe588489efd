"""Cumulative operations on a GPU: a thread walks a line, its neighbours the lines beside it."""

import math

from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.gpu.threads import blocks_for, each_thread
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.loop import name_of
from onnxla.codegen.kernels.scan import Scan
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.ops.reduction import ReduceWindow


def lower_scan(cluster: Cluster, target: GpuTarget) -> Lowering | None:
    """None where the cluster is not one cumulative reduce-window."""
    if len(cluster.instructions) != 1:
        return None
    (hero,) = cluster.instructions
    scan = Scan.of(hero)
    if scan is None:
        return None
    assert isinstance(hero.op, ReduceWindow)
    shape, element = hero.shape, hero.tensor_type.element
    size = shape[scan.dimension]
    outer, inner = shape[: scan.dimension], shape[scan.dimension + 1 :]
    lines = math.prod(outer) * math.prod(inner)
    operand, init = hero.operands
    frame = Frame(cluster, name_of(cluster), blocks_for(lines))
    e, b = frame.emitter, frame.b
    (array,) = frame.outputs
    with each_thread(frame, lines) as line:
        place = ix.delinearize(line, (*outer, *inner))
        with e.loop("k", size, carry=[e.value(init, ())]) as (k, loop):
            at = k * -1 + (size - 1) if scan.backward else k
            index = (*place[: scan.dimension], at, *place[scan.dimension :])
            (total,) = e.combine(hero.op.to_apply, loop.carried, [e.value(operand, index)], element)
            rounded = storage.encode(b, storage.round_to(b, total, element), element)
            b.store(array.buffer, e.position(ix.linearize(index, shape)), rounded)
            loop.next = [total]
    return Lowering((KernelCall(b.finish(), tuple(frame.arguments)),))
