"""Dynamic-update-slice in place on a GPU: a thread for each element of the update.

The result starts as a copy of the operand, which the plan leaves out where the two share a buffer.
"""

from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.gpu.threads import blocks_for, each_thread
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.loop import name_of
from onnxla.codegen.kernels.movement import clamped_start
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.ops.indexing import DynamicUpdateSlice


def lower_update(cluster: Cluster, target: GpuTarget) -> Lowering | None:
    """None where the cluster is not a dynamic-update-slice of a leaf, and nothing else at its root."""
    if len(cluster.roots) != 1 or not isinstance(cluster.roots[0].op, DynamicUpdateSlice):
        return None
    (root,) = cluster.roots
    operand, update, *starts = root.operands
    inner = set(cluster.instructions) - {root}
    if operand in inner or any(operand in i.operands for i in inner) or operand in root.operands[1:]:
        return None
    copies = ((cluster.operand_number(operand), 0),)
    total = update.tensor_type.size
    if total == 0:
        return Lowering((), copies=copies)
    shape, region = root.shape, update.shape
    frame = Frame(cluster, name_of(cluster), blocks_for(total), omit=(operand,))
    e, b = frame.emitter, frame.b
    (array,) = frame.outputs
    with each_thread(frame, total) as position:
        index = ix.delinearize(position, region)
        value = storage.encode(b, e.value(update, index), array.type.element)
        place = [
            i + (clamped_start(e, e.value(start, ()), n - m, f"start{d}") if n > m else 0)
            for d, (i, start, n, m) in enumerate(zip(index, starts, shape, region, strict=True))
        ]
        b.store(array.buffer, e.position(ix.linearize(tuple(place), shape)), value)
    return Lowering((KernelCall(b.finish(), tuple(frame.arguments)),), copies=copies)
