"""Gather and scatter by indices that are known only at run time, and ReverseSequence.

Negative indices count from the end. Indices out of range are an error in ONNX; here gathers clamp
them and scatters skip them, as HLO does.
"""

from collections.abc import Sequence

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import normal_axis
from onnxla.frontends.onnx.rules.slicing import pick_positions
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.indexing import Gather, Scatter
from onnxla.hlo.types import PRED, S64, ElementType, Shape, TensorType

OPCODE_OF_REDUCTION = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}
OPCODE_OF_BOOLEAN_REDUCTION = {"add": "or", "mul": "and", "max": "or", "min": "and"}
REDUCTIONS = ("none", *OPCODE_OF_REDUCTION)
"""What an update does to the element it meets: it replaces it, or is combined with it."""


def wrap_negative(b: Builder, indices: Instruction, size: int) -> Instruction:
    """`indices` with `size` added to the negative ones."""
    if not indices.tensor_type.element.is_signed:
        return indices
    negative = b.compare(indices, b.full_like(indices, 0), "LT")
    return b.select(negative, b.add(indices, b.full_like(indices, size)), indices)


@onnx_op("Gather")
def gather(node: NodeView, b: Builder) -> Instruction:
    """Known indices of at most one dimension become slices where they run evenly."""
    x, indices = node.input(0), node.input(1)
    axis = normal_axis(node, node.int("axis", 0), len(x.shape))
    size = x.shape[axis]
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    if 0 in shape:
        return b.full(shape, 0, x.tensor_type.element)
    known = node.known(1)
    if known is None:
        return b.take(x, wrap_negative(b, indices, size), axis)
    if known.size and not (-size <= known.min() and known.max() < size):
        node.shape_error(f"indices {known.min()}..{known.max()} reach outside of dimension {axis} of size {size}")
    positions = np.where(known < 0, known + size, known)
    if positions.ndim > 1:
        return b.take(x, b.constant(positions), axis)
    picked = pick_positions(b, x, axis, positions.reshape(-1))
    return b.reshape(picked, shape)


@onnx_op("GatherElements", since=11)
def gather_elements(node: NodeView, b: Builder) -> Instruction:
    """result[i, j, k] = data[i, indices[i, j, k], k] for axis 1."""
    x, indices = node.input(0), node.input(1)
    rank = len(x.shape)
    axis = normal_axis(node, node.int("axis", 0), rank)
    if len(indices.shape) != rank:
        node.shape_error("data and indices differ in rank")
    others = [d for d in range(rank) if d != axis]
    limits = [x.shape[d] if d == axis else indices.shape[d] for d in range(rank)]
    if any(limit > size for limit, size in zip(limits, x.shape, strict=True)):
        node.shape_error("indices reach past data in another dimension than the axis")
    if 0 in indices.shape:
        return b.full(indices.shape, 0, x.tensor_type.element)
    x = b.slice(x, [0] * rank, limits) if tuple(limits) != x.shape else x
    op = Gather(
        offset_dims=(),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        operand_batching_dims=tuple(others),
        start_indices_batching_dims=tuple(others),
        index_vector_dim=rank,
        slice_sizes=(1,) * rank,
        indices_are_sorted=False,
    )
    return b.gather(x, wrap_negative(b, indices, x.shape[axis]), op)


@onnx_op("GatherND", since=11)
def gather_nd(node: NodeView, b: Builder) -> Instruction:
    """The last dimension of the indices names positions in the dimensions after the batch ones."""
    x, indices = node.input(0), node.input(1)
    batch, rank, index_rank = node.int("batch_dims", 0), len(x.shape), len(indices.shape)
    if rank == 0 or index_rank == 0:
        node.shape_error("data and indices must not be scalars")
    depth = indices.shape[-1]
    if not 0 <= batch < index_rank or batch + depth > rank:
        node.shape_error(f"index vectors of length {depth} do not fit {x.tensor_type} with {batch} batch dimensions")
    shape = (*indices.shape[:-1], *x.shape[batch + depth :])
    if 0 in shape:
        return b.full(shape, 0, x.tensor_type.element)
    indexed = range(batch, batch + depth)
    windows = rank - batch - depth
    op = Gather(
        offset_dims=tuple(range(index_rank - 1, index_rank - 1 + windows)),
        collapsed_slice_dims=tuple(indexed),
        start_index_map=tuple(indexed),
        operand_batching_dims=tuple(range(batch)),
        start_indices_batching_dims=tuple(range(batch)),
        index_vector_dim=index_rank - 1,
        slice_sizes=tuple(1 if d < batch + depth else x.shape[d] for d in range(rank)),
        indices_are_sorted=False,
    )
    return b.gather(x, _wrap_index_vectors(b, indices, [x.shape[d] for d in indexed]), op)


def _wrap_index_vectors(b: Builder, indices: Instruction, sizes: Sequence[int]) -> Instruction:
    """`indices[..., i]` with `sizes[i]` added to the negative ones."""
    element = indices.tensor_type.element
    bounds = b.broadcast(b.constant(np.array(sizes), element), indices.shape, [len(indices.shape) - 1])
    negative = b.compare(indices, b.full_like(indices, 0), "LT")
    return b.select(negative, b.add(indices, bounds), indices)


@onnx_op("Scatter", since=9, until=10)
@onnx_op("ScatterElements", since=11)
def scatter_elements(node: NodeView, b: Builder) -> Instruction:
    """data[i, indices[i, j, k], k] = updates[i, j, k] for axis 1, or combined with what stands there."""
    reduction = node.word("reduction", REDUCTIONS, "none")
    x, indices, updates = node.input(0), node.input(1), node.input(2)
    rank = len(x.shape)
    axis = normal_axis(node, node.int("axis", 0), rank)
    if indices.shape != updates.shape or len(indices.shape) != rank:
        node.shape_error("indices and updates must have one shape, of the rank of data")
    indices = wrap_negative(b, indices, x.shape[axis])
    others = tuple(d for d in range(rank) if d != axis)
    if all(indices.shape[d] == x.shape[d] for d in others):
        op = _scatter(b, x, reduction, window=(), inserted=(axis,), indexed=(axis,), batch=others, vector_dim=rank)
        return b.scatter(x, indices, updates, op)
    # Updates that cover only a corner of data name every coordinate.
    type = TensorType(indices.tensor_type.element, indices.shape)
    coordinates = [b.reshape(indices if d == axis else b.iota(type, d), (*type.shape, 1)) for d in range(rank)]
    everywhere = tuple(range(rank))
    op = _scatter(b, x, reduction, window=(), inserted=everywhere, indexed=everywhere, batch=(), vector_dim=rank)
    return b.scatter(x, b.concatenate(coordinates, rank), updates, op)


@onnx_op("ScatterND", since=11)
def scatter_nd(node: NodeView, b: Builder) -> Instruction:
    """The last dimension of the indices names where each slice of updates goes."""
    reduction = node.word("reduction", REDUCTIONS, "none")
    x, indices, updates = node.input(0), node.input(1), node.input(2)
    depth, index_rank = indices.shape[-1], len(indices.shape)
    if depth > len(x.shape) or updates.shape != (*indices.shape[:-1], *x.shape[depth:]):
        node.shape_error("updates do not fit data and indices")
    indexed = tuple(range(depth))
    window = tuple(range(index_rank - 1, len(updates.shape)))
    op = _scatter(b, x, reduction, window, inserted=indexed, indexed=indexed, batch=(), vector_dim=index_rank - 1)
    return b.scatter(x, _wrap_index_vectors(b, indices, x.shape[:depth]), updates, op)


def _scatter(
    b: Builder,
    x: Instruction,
    reduction: str,
    window: Shape,
    inserted: Shape,
    indexed: Shape,
    batch: Shape,
    vector_dim: int,
) -> Scatter:
    return Scatter(
        update_window_dims=window,
        inserted_window_dims=inserted,
        scatter_dims_to_operand_dims=indexed,
        input_batching_dims=batch,
        scatter_indices_batching_dims=batch,
        index_vector_dim=vector_dim,
        indices_are_sorted=False,
        unique_indices=False,
        to_apply=_combiner(b, x.tensor_type.element, reduction),
    )


def _combiner(b: Builder, element: ElementType, reduction: str) -> Computation:
    if reduction == "none":
        return replacement(element)
    opcodes = OPCODE_OF_BOOLEAN_REDUCTION if element is PRED else OPCODE_OF_REDUCTION
    return b.combiner(opcodes[reduction], element)


def replacement(element: ElementType) -> Computation:
    """The combiner of a scatter that overwrites: (old, new) -> new."""
    inner = Builder(f"replace_{element}")
    inner.parameter(TensorType(element))
    return inner.build(inner.parameter(TensorType(element)))


@onnx_op("ReverseSequence", since=10)
def reverse_sequence(node: NodeView, b: Builder) -> Instruction:
    """The first sequence_lens[b] steps of batch entry b in reverse; the steps after them stay."""
    x, lengths = node.input(0), node.input(1)
    batch_axis, time_axis = node.int("batch_axis", 1), node.int("time_axis", 0)
    if {batch_axis, time_axis} != {0, 1} or len(x.shape) < 2:
        node.shape_error("time and batch must be the first two axes")
    if 0 in x.shape:
        return x
    type = TensorType(S64, x.shape[:2])
    time = b.iota(type, time_axis)
    length = b.broadcast(b.convert(lengths, S64), type.shape, [batch_axis])
    mirrored = b.subtract(b.subtract(length, time), b.full_like(time, 1))
    source = b.select(b.compare(time, length, "LT"), mirrored, time)
    rank = len(x.shape)
    op = Gather(
        offset_dims=tuple(range(2, rank)),
        collapsed_slice_dims=(time_axis,),
        start_index_map=(time_axis,),
        operand_batching_dims=(batch_axis,),
        start_indices_batching_dims=(batch_axis,),
        index_vector_dim=2,
        slice_sizes=(1, 1, *x.shape[2:]),
        indices_are_sorted=False,
    )
    return b.gather(x, source, op)
