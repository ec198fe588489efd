"""The loop schedule on a GPU: a thread for each element of the result, neighbours on neighbouring elements."""

import math

from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.gpu.threads import blocks_for, each_thread
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.loop import Survey, emit_roots, name_of
from onnxla.codegen.lowering import KernelCall, Lowering


def lower_loop(cluster: Cluster, target: GpuTarget) -> Lowering:
    """One kernel that computes every root at every index; all roots have equally many elements."""
    domain = cluster.results[0].shape
    total = math.prod(domain)
    frame = Frame(cluster, name_of(cluster), blocks_for(total))
    e, b = frame.emitter, frame.b
    with each_thread(frame, total) as position:
        values = emit_roots(cluster, e, ix.delinearize(position, domain), domain)
        for array, value in zip(frame.outputs, values, strict=True):
            b.store(array.buffer, e.position(position), storage.encode(b, value, array.type.element))
    in_place = Survey.of(cluster, domain).in_place
    return Lowering((KernelCall(b.finish(), tuple(frame.arguments)),), in_place=in_place)
