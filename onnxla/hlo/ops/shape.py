"""Data movement without indices from data: broadcast, reshape, transpose, reverse, slice, concatenate, pad."""

import math
from dataclasses import dataclass

import numpy as np

from onnxla.hlo.attributes import INT_IN_BRACES, INTS, PADDING, SLICES
from onnxla.hlo.op import Op, attribute, from_result, require, require_tensor
from onnxla.hlo.types import Array, Shape, TensorType, Type


def require_dimensions(dimensions: Shape, rank: int, what: str) -> None:
    """Raise HloError unless `dimensions` are distinct and below `rank`."""
    inside = all(0 <= d < rank for d in dimensions)
    require(inside and len(set(dimensions)) == len(dimensions), f"{what}={{{dimensions}}} do not fit rank {rank}")


@dataclass(frozen=True)
class Broadcast(Op, name="broadcast"):
    """Operand dimension i becomes result dimension `dimensions[i]` of equal size; the others repeat."""

    shape: Shape = from_result(lambda result: require_tensor(result).shape)
    dimensions: Shape = attribute("dimensions", INTS)

    def infer(self, operand: TensorType) -> TensorType:
        require_dimensions(self.dimensions, len(self.shape), "dimensions")
        require(list(self.dimensions) == sorted(self.dimensions), f"dimensions={self.dimensions} must ascend")
        require(all(n >= 0 for n in self.shape), f"negative size in {self.shape}")
        placed = tuple(self.shape[d] for d in self.dimensions)
        require(placed == operand.shape, f"cannot broadcast {operand} to {self.shape} at dimensions {self.dimensions}")
        return operand.with_shape(self.shape)

    def evaluate(self, operand: Array) -> Array:
        aligned = [1] * len(self.shape)
        for d, size in zip(self.dimensions, operand.shape, strict=True):
            aligned[d] = size
        return np.array(np.broadcast_to(operand.reshape(aligned), self.shape))


@dataclass(frozen=True)
class Reshape(Op, name="reshape"):
    """The same elements in row-major order under another shape."""

    shape: Shape = from_result(lambda result: require_tensor(result).shape)

    def infer(self, operand: TensorType) -> TensorType:
        same = all(n >= 0 for n in self.shape) and math.prod(self.shape) == operand.size
        require(same, f"cannot reshape {operand} to {self.shape}: the numbers of elements differ")
        return operand.with_shape(self.shape)

    def evaluate(self, operand: Array) -> Array:
        return operand.reshape(self.shape)


@dataclass(frozen=True)
class Transpose(Op, name="transpose"):
    """Result dimension i is operand dimension `permutation[i]`."""

    permutation: Shape = attribute("dimensions", INTS)

    def infer(self, operand: TensorType) -> TensorType:
        fits = sorted(self.permutation) == list(range(operand.rank))
        require(fits, f"{self.permutation} is not a permutation of the dimensions of {operand}")
        return operand.with_shape([operand.shape[d] for d in self.permutation])

    def evaluate(self, operand: Array) -> Array:
        return np.array(operand.transpose(self.permutation), order="C")


@dataclass(frozen=True)
class Reverse(Op, name="reverse"):
    """The order of elements along `dimensions` is turned round."""

    dimensions: Shape = attribute("dimensions", INTS)

    def infer(self, operand: TensorType) -> TensorType:
        require_dimensions(self.dimensions, operand.rank, "dimensions")
        return operand

    def evaluate(self, operand: Array) -> Array:
        return np.array(np.flip(operand, self.dimensions), order="C")


@dataclass(frozen=True)
class Slice(Op, name="slice"):
    """Elements `starts`, `starts + strides`, ... below `limits`; strides are positive."""

    starts: Shape = attribute("slice", SLICES)
    limits: Shape = attribute("slice", SLICES)
    strides: Shape = attribute("slice", SLICES)

    def infer(self, operand: TensorType) -> TensorType:
        ranks = (len(self.starts), len(self.limits), len(self.strides))
        require(ranks == (operand.rank,) * 3, f"slice of rank {ranks} does not fit {operand}")
        rows = list(zip(self.starts, self.limits, self.strides, operand.shape, strict=True))
        fits = all(0 <= start <= limit <= size and stride > 0 for start, limit, stride, size in rows)
        require(fits, f"slice {self.starts}:{self.limits}:{self.strides} does not fit {operand}")
        return operand.with_shape([-((start - limit) // stride) for start, limit, stride, _ in rows])

    def evaluate(self, operand: Array) -> Array:
        rows = zip(self.starts, self.limits, self.strides, strict=True)
        return np.array(operand[tuple(slice(*row) for row in rows)], order="C")


@dataclass(frozen=True)
class Concatenate(Op, name="concatenate"):
    """Join the operands end to end along `dimension`."""

    dimension: int = attribute("dimensions", INT_IN_BRACES)

    def infer(self, *operands: TensorType) -> TensorType:
        require(len(operands) > 0, "concatenate needs an operand")
        first = operands[0]
        require(0 <= self.dimension < first.rank, f"dimension {self.dimension} is out of range for {first}")
        for other in operands:
            same = other.rank == first.rank and other.with_size(self.dimension, 0) == first.with_size(self.dimension, 0)
            require(same, f"operands differ outside dimension {self.dimension}: {first}, {other}")
        return first.with_size(self.dimension, sum(t.shape[self.dimension] for t in operands))

    def evaluate(self, *operands: Array) -> Array:
        return np.concatenate(operands, axis=self.dimension)


@dataclass(frozen=True)
class Pad(Op, name="pad"):
    """`interior` copies of the value between neighbours, then `low` and `high` at the edges; negative ones crop."""

    low: Shape = attribute("padding", PADDING)
    high: Shape = attribute("padding", PADDING)
    interior: Shape = attribute("padding", PADDING)

    def infer(self, operand: TensorType, value: Type) -> TensorType:
        require(value == TensorType(operand.element), f"the padding value must be {operand.element}[], got {value}")
        ranks = (len(self.low), len(self.high), len(self.interior))
        require(ranks == (operand.rank,) * 3, f"padding of rank {ranks} does not fit {operand}")
        require(all(n >= 0 for n in self.interior), f"negative interior padding {self.interior}")
        sizes = [
            low + high + n + max(n - 1, 0) * between
            for low, high, between, n in zip(self.low, self.high, self.interior, operand.shape, strict=True)
        ]
        require(all(n >= 0 for n in sizes), f"padding {self.low}, {self.high} leaves less than nothing of {operand}")
        return operand.with_shape(sizes)

    def evaluate(self, operand: Array, value: Array) -> Array:
        rows = list(zip(self.low, self.high, self.interior, operand.shape, strict=True))
        spread = [n + max(n - 1, 0) * between for _, _, between, n in rows]
        canvas = np.full(
            [max(low, 0) + n + max(high, 0) for (low, high, *_), n in zip(rows, spread, strict=True)], value
        )
        place = [slice(max(low, 0), max(low, 0) + n, b + 1) for (low, _, b, _), n in zip(rows, spread, strict=True)]
        canvas[tuple(place)] = operand
        crop = [
            slice(max(-low, 0), size - max(-high, 0)) for (low, high, *_), size in zip(rows, canvas.shape, strict=True)
        ]
        return np.array(canvas[tuple(crop)], order="C")
