"""Padding at the edges as copies of whole runs: a line of the result is a margin, a line of the operand, a margin.

Dimensions behind the last one that is padded belong to the run, so a picture with channels last is copied
a line of all channels at a time. Nothing is compared for each element.
"""

import math
from collections.abc import Callable

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.loop import lower_loop, name_of, task_count
from onnxla.codegen.kernels.value import Array
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.ops.elementwise import Convert
from onnxla.hlo.ops.shape import Pad
from onnxla.hlo.types import PRED

SHORTEST = 8
"""Elements of a run from which this is worth its loops."""


def lower_pad(cluster: Cluster, target: Target) -> Lowering:
    """A cluster of one pad, or of the conversion of one to other integers; padding between elements, cropping, and
    short runs are left to the loop schedule."""
    root = cluster.roots[0]
    pad = root.operands[0] if isinstance(root.op, Convert) else root
    op, operand = pad.op, pad.operands[0]
    assert isinstance(op, Pad)
    padded = [d for d in range(len(pad.shape)) if op.low[d] or op.high[d]]
    if operand not in cluster.leaves or not padded or any(op.interior) or min((*op.low, *op.high)) < 0:
        return lower_loop(cluster, target)
    last = padded[-1]
    inner = math.prod(pad.shape[last + 1 :])
    run = operand.shape[last] * inner
    if run < SHORTEST or pad.operands[1].tensor_type.size != 1 or operand is pad.operands[1]:
        return lower_loop(cluster, target)
    outer = pad.shape[:last]
    lines, length = math.prod(outer), pad.shape[last] * inner
    stored = storage.storage_element(root.tensor_type.element)
    lanes = target.vector_bytes // stored.bytes
    share = -(-lines // task_count(2.0 * lines * length / lanes, lines))
    frame = Frame(cluster, name_of(cluster), -(-lines // share))
    e, b = frame.emitter, frame.b
    source, result = e.leaves[operand], frame.outputs[0]
    assert isinstance(source, Array)
    filling = b.convert(storage.encode(b, e.value(pad.operands[1], ()), pad.tensor_type.element), stored)

    def moved(place: Expr) -> Value:
        return b.convert(b.load(source.buffer, e.position(place), e.lanes, e.mask), stored)

    def write(start: Expr, size: int, value: Callable[[Expr], Value]) -> None:
        """`size` elements of the result from `start`: whole vectors, then one in part."""
        whole, rest = divmod(size, lanes)
        if whole:
            with e.loop("v", whole) as (v, _), e.vector(lanes):
                at = v * lanes
                b.store(result.buffer, e.position(start + at), b.splat(value(at), lanes), e.mask)
        if rest:
            with e.vector(lanes, rest):
                at = ix.constant(whole * lanes)
                b.store(result.buffer, e.position(start + at), b.splat(value(at), lanes), e.mask)

    first = b.mul(b.task, b.const(share))
    with b.loop(first, b.min(b.add(first, b.const(share)), b.const(lines))) as loop, e.scope():
        line = e.bind("line", loop.index, 0, lines - 1)
        at = ix.delinearize(line, outer)
        at = tuple(e.bind(f"at{d}", e.position(i), i.low, i.high) for d, i in enumerate(at))
        inside = b.const(True, PRED)
        for d, i in enumerate(at):
            inside = b.and_(inside, e.inside(i, op.low[d], op.low[d] + operand.shape[d]))
        start = line * length

        def copy() -> list[Value]:
            low = op.low[last] * inner
            high = length - low - run
            place = ix.linearize((*(i - op.low[d] for d, i in enumerate(at)), ix.ZERO), (*operand.shape[:last], run))
            write(start, low, lambda _: filling)
            write(start + low, run, lambda v: moved(place + v))
            write(start + (low + run), high, lambda _: filling)
            return []

        def fill() -> list[Value]:
            write(start, length, lambda _: filling)
            return []

        e.choose(inside, copy, fill, 1)
    return Lowering((KernelCall(b.finish(), tuple(frame.arguments)),))
