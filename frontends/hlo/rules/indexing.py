"""Slices at places that data decide, gather, scatter, sort."""

from collections.abc import Sequence

from onnxla.frontends.hlo.operation_view import OperationView
from onnxla.frontends.hlo.registry import stablehlo_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.indexing import Gather, Scatter
from onnxla.hlo.xla_forms import largest


@stablehlo_op("dynamic_slice")
def dynamic_slice(node: OperationView, b: Builder) -> Instruction:
    node.operand(0)
    return b.dynamic_slice(node.operand(0), node.operands[1:], node.ints("slice_sizes", "sizes"))


@stablehlo_op("dynamic_update_slice")
def dynamic_update_slice(node: OperationView, b: Builder) -> Instruction:
    return b.dynamic_update_slice(node.operand(0), node.operand(1), node.operands[2:])


@stablehlo_op("gather")
def gather(node: OperationView, b: Builder) -> Instruction:
    return gather_slices(node, b, node.ints("slice_sizes"))


def gather_slices(node: OperationView, b: Builder, slice_sizes: Sequence[int]) -> Instruction:
    """A gather whose slices have the sizes given; the rest is in the attributes."""
    fields = node.structure("dimension_numbers")
    op = Gather(
        offset_dims=tuple(fields.get("offset_dims", ())),
        collapsed_slice_dims=tuple(fields.get("collapsed_slice_dims", ())),
        start_index_map=tuple(fields.get("start_index_map", ())),
        operand_batching_dims=tuple(fields.get("operand_batching_dims", ())),
        start_indices_batching_dims=tuple(fields.get("start_indices_batching_dims", ())),
        index_vector_dim=int(fields.get("index_vector_dim", 0)),
        slice_sizes=tuple(slice_sizes),
        indices_are_sorted=node.flag("indices_are_sorted", default=False),
    )
    return b.gather(node.operand(0), node.operand(1), op)


@stablehlo_op("scatter")
def scatter(node: OperationView, b: Builder) -> Instruction:
    if len(node.operands) != 3:
        node.unsupported("a scatter into several tensors at once is not supported", "scatter into one after the other")
    fields = node.structure("scatter_dimension_numbers")
    op = Scatter(
        update_window_dims=tuple(fields.get("update_window_dims", ())),
        inserted_window_dims=tuple(fields.get("inserted_window_dims", ())),
        scatter_dims_to_operand_dims=tuple(fields.get("scatter_dims_to_operand_dims", ())),
        input_batching_dims=tuple(fields.get("input_batching_dims", ())),
        scatter_indices_batching_dims=tuple(fields.get("scatter_indices_batching_dims", ())),
        index_vector_dim=int(fields.get("index_vector_dim", 0)),
        indices_are_sorted=node.flag("indices_are_sorted", default=False),
        unique_indices=node.flag("unique_indices", default=False),
        to_apply=node.combiner(),
    )
    return b.scatter(node.operand(0), node.operand(1), node.operand(2), op)


@stablehlo_op("sort")
def sort(node: OperationView, b: Builder) -> list[Instruction]:
    """A negative dimension counts from the end."""
    rank = len(node.operand(0).shape)
    dimension = node.integer("dimension", default=-1)
    found = b.sort(
        node.operands,
        dimension + rank if dimension < 0 else dimension,
        node.combiner(),
        node.flag("is_stable", default=False),
    )
    count = len(node.operands)
    return [found] if count == 1 else [b.get_tuple_element(found, k) for k in range(count)]


@stablehlo_op("chlo.top_k")
def top_k(node: OperationView, b: Builder) -> list[Instruction]:
    """The largest of each row by the total order, and their places; the earlier of equals first."""
    return list(largest(b, node.operand(0), node.integer("k"), True))
