"""What follows a contraction in its cluster, applied to sums that are still in registers."""

from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.loop import emit_roots
from onnxla.codegen.kernels.value import Index
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import ElementType


def finish(cluster: Cluster, hero: Instruction, frame: Frame, at: Index, total: Value, element: ElementType) -> None:
    """Round the sum that `hero` has at index `at`, compute the roots from it, and store them.

    Call it where `frame.emitter` counts the lanes of the sum.
    """
    e, b = frame.emitter, frame.b
    rounded = storage.round_to(b, total, element)
    e.leaves[hero] = lambda index: rounded
    with e.scope():
        values = emit_roots(cluster, e, at, hero.shape)
        assert e.lane is not None
        for array, value in zip(frame.outputs, values, strict=True):
            position = ix.linearize(ix.reshape(at, hero.shape, array.type.shape), array.type.shape)
            stored = b.splat(storage.encode(b, value, array.type.element), e.lanes)
            if position.coefficient(e.lane) == 1:
                position = position.substitute({e.lane: ix.ZERO})
            b.store(array.buffer, e.position(position), stored, e.mask)
