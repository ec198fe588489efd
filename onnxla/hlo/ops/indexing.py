"""Indices that are data: dynamic-slice, dynamic-update-slice, gather, scatter, sort."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onnxla.hlo.attributes import BOOL, COMPUTATION, INT, INT_IN_BRACES, INTS
from onnxla.hlo.module import Computation
from onnxla.hlo.numerics import widen
from onnxla.hlo.op import Op, attribute, require, require_tensor
from onnxla.hlo.ops.control_flow import apply_to_elements, require_arguments
from onnxla.hlo.ops.elementwise import Compare
from onnxla.hlo.ops.reduction import combine_at
from onnxla.hlo.ops.shape import require_dimensions
from onnxla.hlo.types import PRED, Array, Shape, TensorType, TupleType, Type, Value, row_major_strides, type_of


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

    def evaluate(self, operand: Array, *starts: Array) -> Array:
        return np.array(operand[block(operand.shape, self.sizes, starts)], order="C")


@dataclass(frozen=True)
class DynamicUpdateSlice(Op, name="dynamic-update-slice"):
    """The operand with the update written over it from the start scalars, clamped so that it stays inside."""

    def infer(self, operand: TensorType, update: TensorType, *starts: TensorType) -> TensorType:
        require_starts(operand, starts)
        fits = update.element is operand.element and update.rank == operand.rank
        fits = fits and all(u <= n for u, n in zip(update.shape, operand.shape, strict=True))
        require(fits, f"update {update} does not fit {operand}")
        return operand

    def evaluate(self, operand: Array, update: Array, *starts: Array) -> Array:
        result = np.array(operand, order="C")
        result[block(operand.shape, update.shape, starts)] = update
        return result


def clamp_starts(starts: Array, limit: int) -> Array:
    """Integers of any type clamped to 0..limit, as s64."""
    if starts.dtype == np.uint64:
        starts = np.minimum(starts, np.uint64(limit))
    return np.clip(starts.astype(np.int64), 0, limit)


def block(shape: Shape, sizes: Shape, starts: Sequence[Array]) -> tuple[slice, ...]:
    """The block of `sizes` inside `shape` from the clamped starts."""
    first = [int(clamp_starts(s, n - size)) for s, n, size in zip(starts, shape, sizes, strict=True)]
    return tuple(slice(start, start + size) for start, size in zip(first, sizes, strict=True))


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

    def evaluate(self, operand: Array, indices: Array) -> Array:
        shape = require_tensor(self.infer(type_of(operand), type_of(indices))).shape
        plan = IndexPlan(
            self.offset_dims,
            self.collapsed_slice_dims,
            self.start_index_map,
            self.operand_batching_dims,
            self.start_indices_batching_dims,
            self.index_vector_dim,
        )
        starts = plan.starts(indices, operand.ndim)
        bounds = zip(starts, operand.shape, self.slice_sizes, strict=True)
        clamped = [clamp_starts(start, n - size) for start, n, size in bounds]
        return np.array(operand[plan.places(clamped, shape)], order="C")


@dataclass(frozen=True)
class IndexPlan:
    """What gather and scatter share: where a start vector and a place in its window stand in the operand.

    The windowed side is gather's result or scatter's updates: batch dimensions, in order, with the window's
    at `window_dims`.
    """

    window_dims: Shape
    dropped_dims: Shape
    index_map: Shape
    batching_dims: Shape
    index_batching_dims: Shape
    index_vector_dim: int

    def starts(self, indices: Array, rank: int) -> list[Array]:
        """For each dimension of an operand of `rank`, the start of each window, over the batch."""
        depth_last = indices[..., np.newaxis] if self.index_vector_dim == indices.ndim else indices
        vectors = np.moveaxis(depth_last, self.index_vector_dim, -1)
        batch = vectors.shape[:-1]
        result = [np.zeros(batch, np.int64) for _ in range(rank)]
        for k, d in enumerate(self.index_map):
            result[d] = vectors[..., k]
        for d, index_dim in zip(self.batching_dims, self.index_batching_dims, strict=True):
            axis = index_dim - (index_dim > self.index_vector_dim)
            line = [-1 if a == axis else 1 for a in range(len(batch))]
            result[d] = np.broadcast_to(np.arange(batch[axis]).reshape(line), batch)
        return result

    def places(self, starts: Sequence[Array], shape: Shape) -> tuple[Array, ...]:
        """For each dimension of the operand, its index for every element of the windowed side of `shape`."""
        batch_shape = [1 if d in self.window_dims else n for d, n in enumerate(shape)]
        result = [np.broadcast_to(start.reshape(batch_shape), batch_shape) for start in starts]
        kept = [d for d in range(len(starts)) if d not in self.dropped_dims + self.batching_dims]
        for d, window_dim in zip(kept, self.window_dims, strict=True):
            line = [-1 if a == window_dim else 1 for a in range(len(shape))]
            result[d] = result[d] + np.arange(shape[window_dim]).reshape(line)
        return tuple(np.broadcast_to(place, shape) for place in result)


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
    """The operands with update windows combined in by `to_apply(current..., update...)`.

    An update window that does not fit as a whole is skipped. Operands: n tensors, the indices, n
    updates; several give a tuple. The dimensions mirror gather's.
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
            shape = interleave(batch, window, self.update_window_dims)
            require(update.shape == shape, f"updates {update} must have shape {shape}")
        scalars = [t.with_shape(()) for t in targets]
        require_arguments(self.to_apply, scalars * 2)
        expected: Type = scalars[0] if count == 1 else TupleType(tuple(scalars))
        given = self.to_apply.result_type
        require(given == expected, f"{self.to_apply.name} must give {expected}, not {given}")
        return targets[0] if count == 1 else TupleType(tuple(targets))

    def evaluate(self, *operands: Array) -> Value:
        count = len(operands) // 2
        targets, indices, updates = operands[:count], operands[count], operands[count + 1 :]
        shape, windowed = targets[0].shape, updates[0].shape
        plan = IndexPlan(
            self.update_window_dims,
            self.inserted_window_dims,
            self.scatter_dims_to_operand_dims,
            self.input_batching_dims,
            self.scatter_indices_batching_dims,
            self.index_vector_dim,
        )
        dropped = self.inserted_window_dims + self.input_batching_dims
        window = iter(windowed[d] for d in self.update_window_dims)
        sizes = [1 if d in dropped else next(window) for d in range(len(shape))]
        starts = plan.starts(indices, len(shape))
        inside = np.ones(starts[0].shape if starts else windowed, np.bool_)
        for start, n, size in zip(starts, shape, sizes, strict=True):
            inside &= (start >= 0) & (start <= n - size)
        taken = plan.places([np.where(inside, start, 0).astype(np.int64) for start in starts], windowed)
        batch_shape = [1 if d in self.update_window_dims else n for d, n in enumerate(windowed)]
        fits = np.broadcast_to(inside.reshape(batch_shape), windowed)
        flat = np.zeros(windowed, np.int64)
        for place, stride in zip(taken, row_major_strides(shape), strict=True):
            flat += place * stride
        results = [np.array(t).reshape(-1) for t in targets]
        combine_at(results, flat[fits], [u[fits] for u in updates], self.to_apply)
        values = tuple(r.reshape(shape) for r in results)
        return values[0] if count == 1 else values


@dataclass(frozen=True)
class Sort(Op, name="sort"):
    """The operands, rearranged together along `dimension`: `comparator(l0, r0, l1, r1, ...)` holds for l before r."""

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

    def evaluate(self, *operands: Array) -> Value:
        lines = tuple(np.moveaxis(o, self.dimension, -1) for o in operands)
        key = self._sort_key(lines)
        if key is not None:
            order = np.argsort(key, axis=-1, kind="stable")
        else:
            order = self._merge_sort(lines)
        sorted_lines = (np.take_along_axis(line, order, axis=-1) for line in lines)
        results = tuple(np.array(np.moveaxis(line, -1, self.dimension), order="C") for line in sorted_lines)
        return results[0] if len(results) == 1 else results

    def _sort_key(self, lines: Sequence[Array]) -> Array | None:
        """Values whose ascending order, NaN last, is the comparator's, where it is a plain LT or GT of one operand."""
        root, parameters = self.comparator.root, self.comparator.parameters
        op = root.op
        if not isinstance(op, Compare) or op.direction not in ("LT", "GT"):
            return None
        pairs = [(parameters[2 * i], parameters[2 * i + 1]) for i in range(len(lines))]
        left, right = root.operands
        for (a, b), line in zip(pairs, lines, strict=True):
            if {left, right} == {a, b}:
                ascending = (op.direction == "LT") == (left is a)
                key = widen(line)
                if ascending:
                    return key
                return np.negative(key) if key.dtype.kind == "f" else np.invert(key)
        return None

    def _merge_sort(self, lines: Sequence[Array]) -> Array:
        """The sorting permutation of every line: a stable merge sort whose merges of one level happen at once."""
        shape = lines[0].shape
        size = shape[-1]
        place = np.arange(size)
        order = np.array(np.broadcast_to(place, shape))
        width = 1
        while width < size:
            run = place // width
            from_left = run % 2 == 1  # the run to merge with stands to the left of this one
            start = np.where(from_left, run - 1, run + 1) * width
            current = [np.take_along_axis(line, order, axis=-1) for line in lines]
            # binary search for how many elements of the other run come before each element
            low = np.zeros(shape, np.int64)
            high = np.array(np.broadcast_to(np.clip(size - start, 0, width), shape))
            while np.any(low < high):
                middle = (low + high) // 2
                probe = np.where(low < high, start + middle, 0)
                other = [np.take_along_axis(c, probe, axis=-1) for c in current]
                other_first = self._before(other, current)
                own_first = self._before(current, other)
                precedes = np.where(from_left, ~own_first, other_first)
                active = low < high
                low = np.where(active & precedes, middle + 1, low)
                high = np.where(active & ~precedes, middle, high)
            target = np.minimum(start, run * width) + (place - run * width) + low
            merged = np.empty_like(order)
            np.put_along_axis(merged, target, order, axis=-1)
            order, width = merged, width * 2
        return order

    def _before(self, left: Sequence[Array], right: Sequence[Array]) -> Array:
        arguments = [side for pair in zip(left, right, strict=True) for side in pair]
        return np.asarray(apply_to_elements(self.comparator, *arguments))
