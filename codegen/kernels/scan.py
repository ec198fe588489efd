"""Cumulative operations: a reduce-window that spans everything before, or after, is one running total.

As a window each element would cost as many steps as there are elements before it. Here the
dimension is walked once, carrying the total; lanes are neighbours along the innermost other dimension.
"""

import math
from dataclasses import dataclass

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.loop import name_of, task_count, vector_lanes
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.reduction import ReduceWindow
from onnxla.hlo.types import TensorType


@dataclass(frozen=True)
class Scan:
    """A running total along `dimension`, from its end where `backward`."""

    dimension: int
    backward: bool

    @staticmethod
    def of(instruction: Instruction) -> "Scan | None":
        """None where the window is not of this kind."""
        op = instruction.op
        if not isinstance(op, ReduceWindow) or not isinstance(instruction.type, TensorType):
            return None
        shape = instruction.operands[0].shape
        wide = [d for d, w in enumerate(op.window.dimensions) if w.size > 1]
        if len(wide) != 1 or instruction.shape != shape:
            return None
        (dimension,) = wide
        for d, w in enumerate(op.window.dimensions):
            plain = w.stride == w.base_dilation == w.window_dilation == 1 and not w.reversal
            if not plain or (d != dimension and (w.pad_low or w.pad_high)):
                return None
        w, size = op.window.dimensions[dimension], shape[dimension]
        if w.size != size or {w.pad_low, w.pad_high} != {0, size - 1}:
            return None
        return Scan(dimension, w.pad_low == 0)


def lower_scan(cluster: Cluster, target: Target) -> Lowering | None:
    """None where the cluster is not one cumulative reduce-window."""
    if len(cluster.instructions) != 1:
        return None
    (hero,) = cluster.instructions
    scan = Scan.of(hero)
    if scan is None:
        return None
    shape = hero.shape
    inner = math.prod(shape[scan.dimension + 1 :])
    lanes = vector_lanes(cluster, target)
    while lanes > 1 and lanes // 2 >= inner:
        lanes //= 2
    whole, rest = divmod(inner, lanes)
    columns = whole + (rest > 0)
    outer = math.prod(shape[: scan.dimension])
    tasks = task_count(4.0 * outer * columns * shape[scan.dimension], outer * columns)
    share = -(-outer * columns // tasks)
    frame = Frame(cluster, name_of(cluster), -(-outer * columns // share))
    e, b = frame.emitter, frame.b
    first = b.mul(b.task, b.const(share))
    last = b.min(b.add(first, b.const(share)), b.const(outer * columns))
    with b.loop(first, last) as loop, e.scope():
        line = e.bind("line", loop.index, 0, outer * columns - 1)
        row = e.bind("row", e.position(line // columns), 0, outer - 1)
        column = e.bind("column", e.position(line % columns), 0, columns - 1)
        if not rest:
            _emit_line(frame, hero, scan, row, column * lanes, lanes, lanes)
        elif not whole:
            _emit_line(frame, hero, scan, row, ix.ZERO, lanes, rest)
        else:
            with b.if_(b.compare("LT", e.position(column), b.const(whole))) as branch:
                with branch.then(), e.scope():
                    full = e.bind("full", e.position(column), 0, whole - 1)
                    _emit_line(frame, hero, scan, row, full * lanes, lanes, lanes)
                with branch.otherwise(), e.scope():
                    _emit_line(frame, hero, scan, row, ix.constant(whole * lanes), lanes, rest)
    return Lowering((KernelCall(b.finish(), tuple(frame.arguments)),))


def _emit_line(frame: Frame, hero: Instruction, scan: Scan, row: Expr, column: Expr, lanes: int, active: int) -> None:
    """Walk the dimension once for `active` neighbouring positions."""
    e, b, op = frame.emitter, frame.b, hero.op
    assert isinstance(op, ReduceWindow)
    operand, init = hero.operands
    shape, element = hero.shape, hero.tensor_type.element
    size = shape[scan.dimension]
    (array,) = frame.outputs
    with e.vector(lanes, active) as lane:
        start = b.splat(e.value(init, ()), lanes)
        with e.loop("k", size, carry=[start]) as (k, loop):
            at = k * -1 + (size - 1) if scan.backward else k
            inner = ix.delinearize(column + lane, shape[scan.dimension + 1 :])
            index = (*ix.delinearize(row, shape[: scan.dimension]), at, *inner)
            (total,) = e.combine(op.to_apply, loop.carried, [e.value(operand, index)], element)
            total = b.splat(total, lanes)
            rounded = storage.encode(b, storage.round_to(b, total, element), element)
            assert e.lane is not None
            position = ix.linearize(index, shape).substitute({e.lane: ix.ZERO})
            b.store(array.buffer, e.position(position), rounded, e.mask)
            loop.next = [total]
