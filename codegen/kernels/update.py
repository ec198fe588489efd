"""Dynamic-update-slice in place: only the updated region is computed and written.

The result starts as a copy of the operand, which the plan leaves out where the two share a buffer:
in a loop that fills an array step by step no step touches more than its own slice.
"""

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.loop import name_of, vector_lanes
from onnxla.codegen.kernels.movement import clamped_start
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.ops.indexing import DynamicUpdateSlice


def lower_update(cluster: Cluster, target: Target) -> Lowering | None:
    """None where the cluster is not a dynamic-update-slice of a leaf, and nothing else at its root."""
    if len(cluster.roots) != 1 or not isinstance(cluster.roots[0].op, DynamicUpdateSlice):
        return None
    (root,) = cluster.roots
    operand, update, *starts = root.operands
    inner = set(cluster.instructions) - {root}
    if operand in inner or any(operand in i.operands for i in inner) or operand in root.operands[1:]:
        return None
    copies = ((cluster.operand_number(operand), 0),)
    if update.tensor_type.size == 0:
        return Lowering((), copies=copies)
    shape, region = root.shape, update.shape
    frame = Frame(cluster, name_of(cluster), 1, omit=(operand,))
    e, b = frame.emitter, frame.b
    (array,) = frame.outputs
    corner = [
        clamped_start(e, e.value(start, ()), shape[d] - region[d], f"start{d}") if shape[d] > region[d] else ix.ZERO
        for d, start in enumerate(starts)
    ]
    # trailing dimensions that are replaced as a whole are one run in memory
    split = len(region)
    while split > 0 and region[split - 1 :] == shape[split - 1 :]:
        split -= 1
    split = max(split - 1, 0)
    run = 1
    for size in region[split:]:
        run *= size
    lanes = vector_lanes(cluster, target)
    while lanes > 1 and lanes // 2 >= run:
        lanes //= 2
    whole, rest = divmod(run, lanes)

    def emit(outer: tuple[Expr, ...], first: Expr, active: int) -> None:
        with e.vector(lanes, active) as lane:
            index = (*outer, *ix.delinearize(first + lane, region[split:]))
            value = storage.encode(b, e.value(update, index), array.type.element)
            place = ix.linearize(tuple(c + i for c, i in zip(corner, index, strict=True)), shape)
            assert e.lane is not None
            if place.coefficient(e.lane) == 1:
                place = place.substitute({e.lane: ix.ZERO})
            b.store(array.buffer, e.position(place), b.splat(value, lanes), e.mask)

    def nest(dimension: int, outer: tuple[Expr, ...]) -> None:
        if dimension < split:
            with e.loop(f"i{dimension}", region[dimension]) as (at, _):
                nest(dimension + 1, (*outer, at))
            return
        if whole:
            with e.loop("v", whole) as (v, _):
                emit(outer, v * lanes, lanes)
        if rest:
            with e.scope():
                emit(outer, ix.constant(whole * lanes), rest)

    nest(0, ())
    return Lowering((KernelCall(b.finish(), tuple(frame.arguments)),), copies=copies)
