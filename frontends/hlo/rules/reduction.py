"""Many elements to one."""

from onnxla.frontends.hlo.operation_view import OperationView
from onnxla.frontends.hlo.registry import stablehlo_op
from onnxla.frontends.hlo.syntax import Dense
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.window import Window


@stablehlo_op("reduce")
def reduce(node: OperationView, b: Builder) -> list[Instruction]:
    count = len(node.operands) // 2
    found = b.reduce(node.operands[:count], node.operands[count:], node.ints("dimensions"), node.combiner())
    return _parts(b, found, count)


def _parts(b: Builder, found: Instruction, count: int) -> list[Instruction]:
    return [found] if count == 1 else [b.get_tuple_element(found, k) for k in range(count)]


def window_of(node: OperationView) -> Window:
    sizes = node.ints("window_dimensions")
    ones = [1] * len(sizes)
    padding = node.attribute("padding", default=[[0, 0]] * len(sizes))
    rows = padding.array().reshape(-1, 2).tolist() if isinstance(padding, Dense) else padding
    columns = (
        node.ints("window_strides", default=ones),
        [int(r[0]) for r in rows],
        [int(r[1]) for r in rows],
        node.ints("base_dilations", default=ones),
        node.ints("window_dilations", default=ones),
    )
    if any(len(c) != len(sizes) for c in columns):
        node.shape_error("the strides, padding and dilations of a window have one entry for each dimension")
    return Window.of(sizes, *columns)


@stablehlo_op("reduce_window")
def reduce_window(node: OperationView, b: Builder) -> list[Instruction]:
    count = len(node.operands) // 2
    found = b.reduce_window(node.operands[:count], node.operands[count:], window_of(node), node.combiner())
    return _parts(b, found, count)


@stablehlo_op("select_and_scatter")
def select_and_scatter(node: OperationView, b: Builder) -> Instruction:
    operand, source, init = node.operand(0), node.operand(1), node.operand(2)
    return b.select_and_scatter(operand, source, init, window_of(node), node.combiner(0), node.combiner(1))


@stablehlo_op("map")
def map_(node: OperationView, b: Builder) -> Instruction:
    return b.map(node.combiner(), node.ints("dimensions"), *node.operands)
