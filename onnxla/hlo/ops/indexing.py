"""Indices that are data: dynamic-slice, dynamic-update-slice, gather, scatter, sort."""

from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.hlo.attributes import BOOL, COMPUTATION, INT, INT_IN_BRACES, INTS
from onnxla.hlo.module import Computation
from onnxla.hlo.op import Op, attribute, require
from onnxla.hlo.ops.control_flow import require_arguments
from onnxla.hlo.ops.shape import require_dimensions
from onnxla.hlo.types import PRED, Shape, TensorType, TupleType, Type


def require_starts(operand: TensorType, starts: Sequence[TensorType]) -> None:
    """Raise HloError unless there is one integer scalar for each dimension, all of one type."""
    fits = len(starts) == operand.rank and all(s == starts[0] and s.rank == 0 for s in starts)
    require(fits and all(s.element.is_integer for s in starts), f"{operand} needs one integer scalar per dimension")


@dataclass(frozen=True)
class DynamicSlice(Op, name="dynamic-slice"):
    """The block of `sizes` that begins at the start scalars, clamped so that it stays inside."""

    sizes: Shape = attribute("dynamic_slice_sizes", INTS)

    def infer(self, operand: TensorType, *starts: TensorType) -> TensorType:
        require_starts(operand, starts)
        fits = len(self.sizes) == operand.rank and all(
            0 <= s <= n for s, n in zip(self.sizes, operand.shape, strict=True)
        )
        require(fits, f"slice sizes {self.sizes} do not fit {operand}")
        return operand.with_shape(self.sizes)


@dataclass(frozen=True)
class DynamicUpdateSlice(Op, name="dynamic-update-slice"):
    """The operand with the update written over it from the start scalars, clamped so that it stays inside."""

    def infer(self, operand: TensorType, update: TensorType, *starts: TensorType) -> TensorType:
        require_starts(operand, starts)
        fits = update.element is operand.element and update.rank == operand.rank
        fits = fits and all(u <= n for u, n in zip(update.shape, operand.shape, strict=True))
        require(fits, f"update {update} does not fit {operand}")
        return operand


def without(shape: Shape, dimensions: Sequence[int]) -> Shape:
    """`shape` without the sizes at `dimensions`."""
    return tuple(n for d, n in enumerate(shape) if d not in dimensions)


def index_batch_shape(indices: TensorType, index_vector_dim: int) -> Shape:
    """The shape of the set of start vectors in `indices`."""
    require(0 <= index_vector_dim <= indices.rank, f"index_vector_dim={index_vector_dim} does not fit {indices}")
    require(indices.element.is_integer, f"indices must be integers, got {indices}")
    return without(indices.shape, [index_vector_dim])


def index_depth(indices: TensorType, index_vector_dim: int) -> int:
    """The length of a start vector; the vector dimension may be implied behind the last one, with size 1."""
    return indices.shape[index_vector_dim] if index_vector_dim < indices.rank else 1


def require_batching(operand: TensorType, indices: TensorType, dims: Shape, index_dims: Shape, vector_dim: int) -> None:
    """Raise HloError unless the batching dimensions of operand and indices pair up with equal sizes."""
    require_dimensions(dims, operand.rank, "operand batching dimensions")
    require_dimensions(index_dims, indices.rank, "indices batching dimensions")
    same = [operand.shape[d] for d in dims] == [indices.shape[d] for d in index_dims]
    require(
        same and vector_dim not in index_dims, f"batching dimensions {dims} of {operand}, {index_dims} of {indices}"
    )


@dataclass(frozen=True)
class Gather(Op, name="gather"):
    """One slice of the operand for each start vector in the indices; starts are clamped so that slices stay inside.

    See XLA's operation semantics: `start_index_map[k]` is the operand dimension that element k
    of a start vector indexes; slices lose the collapsed and batching dimensions, and their other
    dimensions stand at `offset_dims` of the result.
    """

    offset_dims: Shape = attribute("offset_dims", INTS)
    collapsed_slice_dims: Shape = attribute("collapsed_slice_dims", INTS)
    start_index_map: Shape = attribute("start_index_map", INTS)
    operand_batching_dims: Shape = attribute("operand_batching_dims", INTS, absent=())
    start_indices_batching_dims: Shape = attribute("start_indices_batching_dims", INTS, absent=())
    index_vector_dim: int = attribute("index_vector_dim", INT)
    slice_sizes: Shape = attribute("slice_sizes", INTS)
    indices_are_sorted: bool = attribute("indices_are_sorted", BOOL, default=False)

    def infer(self, operand: TensorType, indices: TensorType) -> TensorType:
        batch = index_batch_shape(indices, self.index_vector_dim)
        depth = index_depth(indices, self.index_vector_dim)
        require(depth == len(self.start_index_map), f"start vectors of {depth} do not fit {self.start_index_map}")
        require_dimensions(self.start_index_map + self.operand_batching_dims, operand.rank, "indexed dimensions")
        dropped = self.collapsed_slice_dims + self.operand_batching_dims
        require_dimensions(dropped, operand.rank, "dropped dimensions")
        require_batching(
            operand, indices, self.operand_batching_dims, self.start_indices_batching_dims, self.index_vector_dim
        )
        fits = len(self.slice_sizes) == operand.rank
        fits = fits and all(0 <= s <= n for s, n in zip(self.slice_sizes, operand.shape, strict=True))
        require(fits, f"slice_sizes={self.slice_sizes} do not fit {operand}")
        require(all(self.slice_sizes[d] <= 1 for d in dropped), f"dropped dimensions {dropped} must have slice size 1")
        window = without(self.slice_sizes, dropped)
        return operand.with_shape(interleave(batch, window, self.offset_dims))


def interleave(batch: Shape, window: Shape, window_dims: Shape) -> Shape:
    """The shape with `window` at the dimensions `window_dims` and `batch` at the others, in order."""
    rank = len(batch) + len(window)
    require(len(window) == len(window_dims), f"{len(window)} window dimensions do not fit {window_dims}")
    require_dimensions(window_dims, rank, "window dimensions")
    require(list(window_dims) == sorted(window_dims), f"window dimensions {window_dims} must ascend")
    rest = iter(batch)
    placed = dict(zip(window_dims, window, strict=True))
    return tuple(placed[d] if d in placed else next(rest) for d in range(rank))


def take(operand: TensorType, indices: TensorType, axis: int) -> Gather:
    """The gather that is numpy.take: `indices` of any shape replace dimension `axis`."""
    others = tuple(d for d in range(operand.rank) if d != axis)
    return Gather(
        offset_dims=tuple(d if d < axis else d + indices.rank - 1 for d in others),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        operand_batching_dims=(),
        start_indices_batching_dims=(),
        index_vector_dim=indices.rank,
        slice_sizes=tuple(1 if d == axis else n for d, n in enumerate(operand.shape)),
    )


@dataclass(frozen=True)
class Scatter(Op, name="scatter"):
    """The operands with update windows combined in by `to_apply(current..., update...)`; windows that do not fit are skipped.

    Operands: n tensors, the indices, n updates; several give a tuple. The dimensions mirror gather's.
    """

    update_window_dims: Shape = attribute("update_window_dims", INTS)
    inserted_window_dims: Shape = attribute("inserted_window_dims", INTS)
    scatter_dims_to_operand_dims: Shape = attribute("scatter_dims_to_operand_dims", INTS)
    input_batching_dims: Shape = attribute("input_batching_dims", INTS, absent=())
    scatter_indices_batching_dims: Shape = attribute("scatter_indices_batching_dims", INTS, absent=())
    index_vector_dim: int = attribute("index_vector_dim", INT)
    indices_are_sorted: bool = attribute("indices_are_sorted", BOOL, absent=False)
    unique_indices: bool = attribute("unique_indices", BOOL, absent=False)
    to_apply: Computation = attribute("to_apply", COMPUTATION)

    def infer(self, *operands: TensorType) -> Type:
        require(len(operands) % 2 == 1 and len(operands) >= 3, "scatter takes n operands, the indices, n updates")
        count = len(operands) // 2
        targets, indices, updates = operands[:count], operands[count], operands[count + 1 :]
        operand = targets[0]
        batch = index_batch_shape(indices, self.index_vector_dim)
        depth = index_depth(indices, self.index_vector_dim)
        mapped = self.scatter_dims_to_operand_dims
        require(depth == len(mapped), f"scatter vectors of {depth} do not fit {mapped}")
        require_dimensions(mapped + self.input_batching_dims, operand.rank, "indexed dimensions")
        dropped = self.inserted_window_dims + self.input_batching_dims
        require_dimensions(dropped, operand.rank, "dropped dimensions")
        require_batching(
            operand, indices, self.input_batching_dims, self.scatter_indices_batching_dims, self.index_vector_dim
        )
        for target, update in zip(targets, updates, strict=True):
            require(target.shape == operand.shape, f"the operands of scatter differ in shape: {operand}, {target}")
            require(update.element is target.element, f"{update} cannot update {target}")
            require_dimensions(self.update_window_dims, update.rank, "update_window_dims")
            window = tuple(update.shape[d] for d in self.update_window_dims)
            bounds = without(operand.shape, dropped)
            fits = len(window) == len(bounds) and all(w <= n for w, n in zip(window, bounds, strict=True))
            require(fits, f"update windows {window} do not fit {operand}")
            expected = interleave(batch, window, self.update_window_dims)
            require(update.shape == expected, f"updates {update} must have shape {expected}")
        scalars = [t.with_shape(()) for t in targets]
        require_arguments(self.to_apply, scalars * 2)
        return scatter_result(self.to_apply, targets)


def scatter_result(to_apply: Computation, targets: Sequence[TensorType]) -> Type:
    """The targets' types, after a check that the computation gives their scalars."""
    scalars = tuple(t.with_shape(()) for t in targets)
    expected = scalars[0] if len(scalars) == 1 else TupleType(scalars)
    require(to_apply.result_type == expected, f"{to_apply.name} must give {expected}, not {to_apply.result_type}")
    return targets[0] if len(targets) == 1 else TupleType(tuple(targets))


@dataclass(frozen=True)
class Sort(Op, name="sort"):
    """The operands, rearranged together along `dimension` so that `comparator(l0, r0, l1, r1, ...)` holds for l before r."""

    dimension: int = attribute("dimensions", INT_IN_BRACES)
    is_stable: bool = attribute("is_stable", BOOL, absent=False)
    comparator: Computation = attribute("to_apply", COMPUTATION)

    def infer(self, *operands: TensorType) -> Type:
        require(len(operands) > 0, "sort needs an operand")
        first = operands[0]
        require(0 <= self.dimension < first.rank, f"dimension {self.dimension} is out of range for {first}")
        require(all(o.shape == first.shape for o in operands), f"the operands of sort differ in shape: {operands}")
        require_arguments(self.comparator, [o.with_shape(()) for o in operands for _ in range(2)])
        require(self.comparator.result_type == TensorType(PRED), "the comparator of a sort must give pred[]")
        return first if len(operands) == 1 else TupleType(operands)
