"""Runs of fewer rows than a program was made for: padded on the way in, cut on the way out.

The compiler has proven (`passes/row_independence.py`) that the rows of a program do not depend on one another, nor on
their number: the rows that are kept are bit for bit those that the program gives with any other rows beside them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onnxla.runtime.program import Array


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
