"""Constants, tuples, and operations that move elements."""

from onnxla.frontends.hlo.operation_view import OperationView
from onnxla.frontends.hlo.registry import stablehlo_op
from onnxla.frontends.hlo.syntax import Dense
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32, U32


@stablehlo_op("constant")
def constant(node: OperationView, b: Builder) -> Instruction:
    """One value for all elements stays one."""
    value = node.attribute("value")
    if not isinstance(value, Dense):
        node.shape_error("the value of a constant is no tensor")
    if value.is_splat and value.form.shape:
        return b.broadcast(b.constant(value.values), node.result_type().shape, ())
    return b.constant(value.values)


@stablehlo_op("iota")
def iota(node: OperationView, b: Builder) -> Instruction:
    return b.iota(node.result_type(), node.integer("iota_dimension", "dim"))


@stablehlo_op("broadcast_in_dim")
def broadcast_in_dim(node: OperationView, b: Builder) -> Instruction:
    dimensions = node.ints("broadcast_dimensions", "dims")
    return broadcast_to(node, b, node.operand(0), node.result_type().shape, dimensions)


def broadcast_to(
    node: OperationView, b: Builder, value: Instruction, shape: tuple[int, ...], dimensions: tuple[int, ...]
) -> Instruction:
    """HLO's broadcast does not stretch: dimensions of size 1 that do go first."""
    if len(dimensions) != len(value.shape) or any(not 0 <= d < len(shape) for d in dimensions):
        node.shape_error(f"dims = {list(dimensions)} do not fit {value.type} and the shape {list(shape)}")
    kept = [i for i, d in enumerate(dimensions) if value.shape[i] == shape[d]]
    if any(value.shape[i] != 1 for i in range(len(dimensions)) if i not in kept):
        node.shape_error(f"{value.type} is not broadcast to the shape {list(shape)} along {list(dimensions)}")
    value = b.reshape(value, [value.shape[i] for i in kept])
    return b.broadcast(value, shape, [dimensions[i] for i in kept])


@stablehlo_op("broadcast")
def broadcast(node: OperationView, b: Builder) -> Instruction:
    value, sizes = node.operand(0), node.ints("broadcast_sizes", "sizes")
    return b.broadcast(value, (*sizes, *value.shape), range(len(sizes), len(sizes) + len(value.shape)))


@stablehlo_op("reshape")
def reshape(node: OperationView, b: Builder) -> Instruction:
    return b.reshape(node.operand(0), node.result_type().shape)


@stablehlo_op("transpose")
def transpose(node: OperationView, b: Builder) -> Instruction:
    return b.transpose(node.operand(0), node.ints("permutation", "dims"))


@stablehlo_op("reverse")
def reverse(node: OperationView, b: Builder) -> Instruction:
    return b.reverse(node.operand(0), node.ints("dimensions", "dims"))


@stablehlo_op("slice")
def slice_(node: OperationView, b: Builder) -> Instruction:
    if node.has("start_indices"):
        return b.slice(node.operand(0), node.ints("start_indices"), node.ints("limit_indices"), node.ints("strides"))
    rows = node.attribute("ranges", default=[])
    if any(len(row) != 3 for row in rows):
        node.shape_error("a slice needs ranges such as [0:4, 1:9:2]")
    starts, limits, strides = zip(*rows, strict=True) if rows else ((), (), ())
    return b.slice(node.operand(0), starts, limits, strides)


@stablehlo_op("concatenate")
def concatenate(node: OperationView, b: Builder) -> Instruction:
    node.operand(0)
    dimension = node.integer("dimension", "dim")
    if not 0 <= dimension < node.operand(0).tensor_type.rank:
        node.shape_error(f"dim = {dimension} is out of range for {node.operand(0).type}")
    return b.concatenate(node.operands, dimension)


@stablehlo_op("pad")
def pad(node: OperationView, b: Builder) -> Instruction:
    return b.pad(
        node.operand(0),
        node.operand(1),
        node.ints("edge_padding_low", "low"),
        node.ints("edge_padding_high", "high"),
        node.ints("interior_padding", "interior"),
    )


@stablehlo_op("tuple")
def tuple_(node: OperationView, b: Builder) -> Instruction:
    return b.tuple(*node.operands)


@stablehlo_op("get_tuple_element")
def get_tuple_element(node: OperationView, b: Builder) -> Instruction:
    if node.has("index"):
        return b.get_tuple_element(node.operand(0), node.integer("index"))
    rows = node.attribute("ranges")
    return b.get_tuple_element(node.operand(0), int(rows[0][0]) if rows and len(rows[0]) == 1 else -1)


@stablehlo_op("optimization_barrier")
def optimization_barrier(node: OperationView, b: Builder) -> tuple[Instruction, ...]:
    return node.operands


@stablehlo_op("get_dimension_size")
def get_dimension_size(node: OperationView, b: Builder) -> Instruction:
    value, dimension = node.operand(0), node.integer("dimension", "dim")
    if not 0 <= dimension < len(value.shape):
        node.shape_error(f"dim = {dimension} is out of range for {value.type}")
    return b.constant(value.shape[dimension], S32)


@stablehlo_op("partition_id", "replica_id")
def number_of_this_device(node: OperationView, b: Builder) -> Instruction:
    """There is one."""
    return b.constant(0, U32)
