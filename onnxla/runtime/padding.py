"""Runs of fewer rows than a program was made for: padded on the way in, cut on the way out.

The compiler has proven (`passes/row_independence.py`) that the rows of a program do not depend on one another, nor on
their number: the rows that are kept are bit for bit those that the program gives with any other rows beside them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxla.errors import ArtifactError
from onnxla.runtime.tensors import Array, TensorSignature

_LARGEST = 1 << 62


@dataclass(frozen=True)
class OutputRows:
    """Row r of an output of n rows is at indices (o * n + r) * inner + i of `dimension`, o < outer, i < inner."""

    dimension: int
    outer: int
    inner: int


@dataclass(frozen=True)
class Padding:
    """How a program takes fewer rows than it was made for."""

    name: str
    """The symbolic dimension of the model."""
    rows: int
    """What the program was made for."""
    least: int
    """The fewest rows for which it is proven that padding changes nothing."""
    inputs: Mapping[str, int]
    """The dimension of the rows, for the inputs that have them."""
    outputs: tuple[OutputRows | None, ...]
    """Of each output; None for one that all rows share."""
    combines: bool = False
    """Whether the rows are also those that the program of the next smaller size gives, where there is one: then runs of
    few rows may be put together in one of many. Proven as `least` is; of one row, whose program is another, only that
    it does the same work with the same constants, and gives the same types."""

    def to_json(self) -> Any:
        """As an artifact stores it."""
        places = [None if o is None else [o.dimension, o.outer, o.inner] for o in self.outputs]
        plain = {n: getattr(self, n) for n in ("name", "rows", "least", "inputs", "combines")}
        return {**plain, "outputs": places}

    @staticmethod
    def from_json(stored: Any) -> "Padding":
        """What `to_json` gave. Raises ArtifactError for anything else."""
        numbers = [stored["rows"], stored["least"], *stored["inputs"].values()]
        numbers += [n for place in stored["outputs"] if place is not None for n in place]
        if not all(type(n) is int and 0 <= n < _LARGEST for n in numbers) or type(stored["name"]) is not str:
            raise ArtifactError("the manifest is malformed: padding that is no padding")
        outputs = tuple(None if place is None else OutputRows(*place) for place in stored["outputs"])
        combines = stored.get("combines", False)
        if type(combines) is not bool:
            raise ArtifactError("the manifest is malformed: padding that is no padding")
        return Padding(stored["name"], stored["rows"], stored["least"], dict(stored["inputs"]), outputs, combines)

    def fits(self, inputs: Sequence[TensorSignature], outputs: Sequence[TensorSignature]) -> bool:
        """Whether a program of this interface can be padded so."""
        shapes = {t.name: t.shape for t in inputs}
        return (
            1 <= self.least <= self.rows
            and bool(self.inputs)
            and len(self.outputs) == len(outputs)
            and all(
                name in shapes and d < len(shapes[name]) and shapes[name][d] == self.rows
                for name, d in self.inputs.items()
            )
            and all(
                place is None
                or (
                    place.dimension < len(output.shape)
                    and output.shape[place.dimension] == place.outer * self.rows * place.inner
                )
                for place, output in zip(self.outputs, outputs, strict=True)
            )
        )

    def rows_in(self, shapes: Mapping[str, tuple[int, ...]], made_for: Mapping[str, tuple[int, ...]]) -> int | None:
        """The rows of inputs of these shapes; None where they do not fit the program's shapes, padded or not."""
        found: set[int] = set()
        for name, wanted in made_for.items():
            given, dimension = shapes[name], self.inputs.get(name)
            if dimension is None:
                if given != wanted:
                    return None
                continue
            if len(given) != len(wanted) or _without(given, dimension) != _without(wanted, dimension):
                return None
            found.add(given[dimension])
        if len(found) != 1:
            return None
        rows = found.pop()
        return rows if self.least <= rows <= self.rows else None

    def padded(self, name: str, array: Array) -> Array:
        """An input with its last row repeated: what the other rows are does not matter, and this is a plausible one."""
        dimension = self.inputs.get(name)
        if dimension is None:
            return array
        more = [(0, 0)] * array.ndim
        more[dimension] = (0, self.rows - array.shape[dimension])
        return np.pad(array, more, mode="edge")

    def cut_shapes(self, shapes: Sequence[tuple[int, ...]], rows: int) -> list[tuple[int, ...]]:
        """The shapes of the outputs, whose own are `shapes`, for the first `rows` rows."""
        cut = []
        for shape, place in zip(shapes, self.outputs, strict=True):
            if place is not None:
                size = place.outer * rows * place.inner
                shape = (*shape[: place.dimension], size, *shape[place.dimension + 1 :])
            cut.append(shape)
        return cut

    def cut(self, results: Sequence[Array], rows: int) -> list[Array]:
        """The results of the first `rows` rows, each an array of its own."""
        return [
            result if place is None else _cut(result, place, self.rows, rows)
            for result, place in zip(results, self.outputs, strict=True)
        ]


def _cut(result: Array, place: OutputRows, large: int, rows: int) -> Array:
    before, behind = result.shape[: place.dimension], result.shape[place.dimension + 1 :]
    parts = result.reshape((*before, place.outer, large, place.inner, *behind))
    index = (slice(None),) * (len(before) + 1) + (slice(0, rows),)
    return np.array(parts[index].reshape((*before, place.outer * rows * place.inner, *behind)), order="C")


def _without(shape: tuple[int, ...], dimension: int) -> tuple[int, ...]:
    return shape[:dimension] + shape[dimension + 1 :]
