"""Operations whose shapes are operands: sizes of inputs, and what is computed of them, known once the inputs' are."""

from onnxla.frontends.hlo.operation_view import OperationView
from onnxla.frontends.hlo.registry import stablehlo_op
from onnxla.frontends.hlo.rules.contraction import convolve
from onnxla.frontends.hlo.rules.indexing import gather_slices
from onnxla.frontends.hlo.rules.shape import broadcast_to
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import TensorType


@stablehlo_op("dynamic_reshape")
def dynamic_reshape(node: OperationView, b: Builder) -> Instruction:
    return b.reshape(node.operand(0), node.known_ints(1, "the shape of a reshape"))


@stablehlo_op("dynamic_broadcast_in_dim")
def dynamic_broadcast_in_dim(node: OperationView, b: Builder) -> Instruction:
    shape = node.known_ints(1, "the shape of a broadcast")
    return broadcast_to(node, b, node.operand(0), shape, node.ints("broadcast_dimensions", "dims"))


@stablehlo_op("dynamic_iota")
def dynamic_iota(node: OperationView, b: Builder) -> Instruction:
    type = TensorType(node.element(), node.known_ints(0, "the shape of an iota"))
    return b.iota(type, node.integer("iota_dimension", "dim"))


@stablehlo_op("real_dynamic_slice")
def real_dynamic_slice(node: OperationView, b: Builder) -> Instruction:
    starts, limits, strides = (node.known_ints(k, "a slice") for k in (1, 2, 3))
    return b.slice(node.operand(0), starts, limits, strides)


@stablehlo_op("dynamic_pad")
def dynamic_pad(node: OperationView, b: Builder) -> Instruction:
    low, high, interior = (node.known_ints(k, "padding") for k in (2, 3, 4))
    return b.pad(node.operand(0), node.operand(1), low, high, interior)


@stablehlo_op("dynamic_gather")
def dynamic_gather(node: OperationView, b: Builder) -> Instruction:
    return gather_slices(node, b, node.known_ints(2, "the size of slices"))


@stablehlo_op("dynamic_conv")
def dynamic_convolution(node: OperationView, b: Builder) -> Instruction:
    padding = node.known(2, "padding").reshape(-1, 2)
    return convolve(node, b, [int(n) for n in padding[:, 0]], [int(n) for n in padding[:, 1]])
