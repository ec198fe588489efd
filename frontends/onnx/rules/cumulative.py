"""Running sums and products along an axis, as XLA writes them: a window as long as the axis, padded before it."""

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import normal_axis
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.frontends.onnx.rules.shape import slice_axis
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.reduction import identity_of
from onnxla.hlo.window import Window, WindowDimension


@onnx_op("CumSum", since=11)
def cum_sum(node: NodeView, b: Builder) -> Instruction:
    return _cumulative(node, b, "add")


@onnx_op("CumProd", since=26)
def cum_prod(node: NodeView, b: Builder) -> Instruction:
    return _cumulative(node, b, "multiply")


def _cumulative(node: NodeView, b: Builder, opcode: str) -> Instruction:
    x = node.input(0)
    (axis,) = node.constant_ints(1)
    axis = normal_axis(node, axis, len(x.shape))
    return running(b, opcode, x, axis, bool(node.int("exclusive", 0)), bool(node.int("reverse", 0)))


def running(b: Builder, opcode: str, given: Instruction, axis: int, exclusive: bool, reverse: bool) -> Instruction:
    """Each element combined with all before it. Half precision accumulates in f32.

    `exclusive` leaves out the element itself, `reverse` starts at the end.
    """
    x, size = widen(b, given), given.shape[axis]
    if size == 0:
        return given
    identity = b.constant(identity_of(opcode, x.tensor_type.element))
    if exclusive:
        x = _shifted(b, x, axis, identity, reverse)
    before, after = (0, size - 1) if reverse else (size - 1, 0)
    dimensions = [
        WindowDimension(size=size, pad_low=before, pad_high=after) if d == axis else WindowDimension()
        for d in range(len(x.shape))
    ]
    combiner = b.combiner(opcode, x.tensor_type.element)
    result = b.reduce_window([x], [identity], Window(tuple(dimensions)), combiner)
    return b.convert(result, given.tensor_type.element)


def _shifted(b: Builder, x: Instruction, axis: int, identity: Instruction, reverse: bool) -> Instruction:
    """`x` one step later (earlier for `reverse`), the identity filling in."""
    size = x.shape[axis]
    rest = slice_axis(b, x, axis, 1, size) if reverse else slice_axis(b, x, axis, 0, size - 1)
    before = [int(d == axis and not reverse) for d in range(len(x.shape))]
    after = [int(d == axis and reverse) for d in range(len(x.shape))]
    return b.pad(rest, identity, before, after)
