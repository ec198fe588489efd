"""Derivatives of operations that move elements: each goes back to where it came from."""

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.derivatives.rule import NoDerivativeError, Parts, derivative
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.indexing import DynamicSlice, Gather, Scatter
from onnxla.hlo.ops.reduction import simple_combiner
from onnxla.hlo.ops.shape import Broadcast, Concatenate, Pad, Reverse, Slice, Transpose


@derivative("reshape")
def reshape(b: Builder, y: Instruction, g: Instruction) -> Parts:
    return [b.reshape(g, y.operands[0].shape)]


@derivative("broadcast")
def broadcast(b: Builder, y: Instruction, g: Instruction) -> Parts:
    assert isinstance(y.op, Broadcast)
    kept = y.op.dimensions
    return [b.reduce_by("add", g, [d for d in range(len(y.shape)) if d not in kept])]


@derivative("transpose")
def transpose(b: Builder, y: Instruction, g: Instruction) -> Parts:
    assert isinstance(y.op, Transpose)
    return [b.transpose(g, [int(i) for i in np.argsort(y.op.permutation)])]


@derivative("reverse")
def reverse(b: Builder, y: Instruction, g: Instruction) -> Parts:
    assert isinstance(y.op, Reverse)
    return [b.reverse(g, y.op.dimensions)]


def _zero(b: Builder, g: Instruction) -> Instruction:
    return b.constant(0, g.tensor_type.element)


@derivative("slice")
def slice_(b: Builder, y: Instruction, g: Instruction) -> Parts:
    assert isinstance(y.op, Slice)
    x = y.operands[0]
    if 0 in g.shape:
        return [b.full_like(x, 0)]
    starts, strides = y.op.starts, y.op.strides
    ends = [s + (m - 1) * step + 1 for s, m, step in zip(starts, g.shape, strides, strict=True)]
    high = [n - end for n, end in zip(x.shape, ends, strict=True)]
    return [b.pad(g, _zero(b, g), starts, high, [step - 1 for step in strides])]


@derivative("concatenate")
def concatenate(b: Builder, y: Instruction, g: Instruction) -> Parts:
    assert isinstance(y.op, Concatenate)
    dimension, at = y.op.dimension, 0
    parts = []
    for operand in y.operands:
        starts, limits = [0] * len(g.shape), list(g.shape)
        starts[dimension], limits[dimension] = at, at + operand.shape[dimension]
        at = limits[dimension]
        parts.append(b.slice(g, starts, limits))
    return parts


@derivative("pad")
def pad(b: Builder, y: Instruction, g: Instruction) -> Parts:
    """The padding value gets what the operand does not."""
    assert isinstance(y.op, Pad)
    x = y.operands[0]
    if 0 in x.shape:
        return [b.full_like(x, 0), b.reduce_by("add", g, range(len(g.shape)))]
    cropped = b.pad(g, _zero(b, g), [-n for n in y.op.low], [-n for n in y.op.high])
    part = b.slice(cropped, [0] * len(x.shape), cropped.shape, [n + 1 for n in y.op.interior])
    every = range(len(g.shape))
    return [part, b.subtract(b.reduce_by("add", g, every), b.reduce_by("add", part, every))]


@derivative("dynamic-slice")
def dynamic_slice(b: Builder, y: Instruction, g: Instruction) -> Parts:
    x, *starts = y.operands
    return [b.dynamic_update_slice(b.full_like(x, 0), g, starts), *(None for _ in starts)]


@derivative("dynamic-update-slice")
def dynamic_update_slice(b: Builder, y: Instruction, g: Instruction) -> Parts:
    _, update, *starts = y.operands
    rest = b.dynamic_update_slice(g, b.full_like(update, 0), starts)
    part = b.emit(DynamicSlice(update.shape), g, *starts)
    return [rest, part, *(None for _ in starts)]


@derivative("gather")
def gather(b: Builder, y: Instruction, g: Instruction) -> Parts:
    """Each slice is added where it was read, its place clamped as it was then."""
    assert isinstance(y.op, Gather)
    op, (x, indices) = y.op, y.operands
    furthest = [x.shape[d] - op.slice_sizes[d] for d in op.start_index_map]
    limits = b.constant(np.array(furthest).astype(indices.tensor_type.element.dtype))
    if op.index_vector_dim < len(indices.shape):
        high = b.broadcast(limits, indices.shape, [op.index_vector_dim])
    else:
        high = b.broadcast_scalar(b.reshape(limits, ()), indices.shape)
    scatter = Scatter(
        update_window_dims=op.offset_dims,
        inserted_window_dims=op.collapsed_slice_dims,
        scatter_dims_to_operand_dims=op.start_index_map,
        input_batching_dims=op.operand_batching_dims,
        scatter_indices_batching_dims=op.start_indices_batching_dims,
        index_vector_dim=op.index_vector_dim,
        indices_are_sorted=False,
        unique_indices=False,
        to_apply=b.combiner("add", g.tensor_type.element),
    )
    places = b.clamp(b.full_like(indices, 0), indices, high)
    return [b.scatter(b.full_like(x, 0), places, g, scatter), None]


@derivative("scatter")
def scatter(b: Builder, y: Instruction, g: Instruction) -> Parts:
    """Of sums: the operand's passes through. Updates that fit nowhere are skipped, and read nothing here."""
    assert isinstance(y.op, Scatter)
    op = y.op
    if len(y.operands) != 3 or simple_combiner(op.to_apply) != "add":
        raise NoDerivativeError("the derivative of a scatter that does not add is not known")
    x, indices, updates = y.operands
    if op.index_vector_dim < len(indices.shape):
        raise NoDerivativeError("the derivative of a scatter to places of several coordinates is not known")
    sizes = iter(updates.shape[d] for d in op.update_window_dims)
    dropped = (*op.inserted_window_dims, *op.input_batching_dims)
    slices = tuple(1 if d in dropped else next(sizes) for d in range(len(x.shape)))
    read = Gather(
        offset_dims=op.update_window_dims,
        collapsed_slice_dims=op.inserted_window_dims,
        start_index_map=op.scatter_dims_to_operand_dims,
        operand_batching_dims=op.input_batching_dims,
        start_indices_batching_dims=op.scatter_indices_batching_dims,
        index_vector_dim=op.index_vector_dim,
        slice_sizes=slices,
        indices_are_sorted=op.indices_are_sorted,
    )
    mapped = op.scatter_dims_to_operand_dims[0]
    limit = b.full_like(indices, x.shape[mapped] - slices[mapped])
    fits = b.and_(b.compare(indices, b.full_like(indices, 0), "GE"), b.compare(indices, limit, "LE"))
    batch = [d for d in range(len(updates.shape)) if d not in op.update_window_dims]
    part = b.select(b.broadcast(fits, updates.shape, batch), b.gather(g, indices, read), b.full_like(updates, 0))
    return [g, None, part]
