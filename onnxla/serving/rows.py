"""Requests put together along their rows, and results taken apart again: rows are those of `runtime/padding.py`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxla.runtime.padding import OutputRows
from onnxla.serving.requests import Array

Allocate = Callable[[tuple[int, ...], "np.dtype[Any]"], Array]


@dataclass(frozen=True)
class RowsPlan:
    """Where rows are, and for how many of them there is code."""

    inputs: tuple[int | None, ...]
    """The dimension of the rows of each input; None for one that all rows share."""
    outputs: tuple[OutputRows | None, ...]
    ranges: tuple[tuple[int, int], ...]
    """(least, rows): code for `rows` rows serves that many down to `least`; by rows."""
    combines: bool
    """Whether requests may be put together."""

    @property
    def most(self) -> int:
        return self.ranges[-1][1]

    def size_for(self, rows: int) -> int | None:
        """The rows of the code that serves so many; None where there is none."""
        for least, size in self.ranges:
            if least <= rows <= size:
                return size
        return None


def join(plan: RowsPlan, parts: Sequence[Sequence[Array]], size: int, allocate: Allocate = np.empty) -> list[Array]:
    """For each input one array of `size` rows: those of `parts` in their order, and the last again for what is left."""
    joined = []
    for k, dimension in enumerate(plan.inputs):
        first = parts[0][k]
        if dimension is None:
            joined.append(first)
            continue
        whole = allocate((*first.shape[:dimension], size, *first.shape[dimension + 1 :]), first.dtype)
        rows = whole if dimension == 0 else np.moveaxis(whole, dimension, 0)
        place = 0
        for part in parts:
            array = part[k] if dimension == 0 else np.moveaxis(part[k], dimension, 0)
            rows[place : place + len(array)] = array
            place += len(array)
        if place < size:
            rows[place:] = rows[place - 1]
        joined.append(whole)
    return joined


def split(plan: RowsPlan, results: Sequence[Array], counts: Sequence[int], size: int) -> list[list[Array]]:
    """For each part of `counts` rows its results, in C order."""
    parts: list[list[Array]] = []
    start = 0
    for count in counts:
        stop = start + count
        parts.append([_rows(r, place, start, stop, size) for r, place in zip(results, plan.outputs, strict=True)])
        start = stop
    return parts


def _rows(result: Array, place: OutputRows | None, start: int, stop: int, size: int) -> Array:
    if place is None:
        return result
    if place.dimension == 0 and place.outer == 1:
        return result[start * place.inner : stop * place.inner]
    d = place.dimension
    before, behind = result.shape[:d], result.shape[d + 1 :]
    whole = result.reshape((*before, place.outer, size, place.inner, *behind))
    cut = whole[(slice(None),) * (d + 1) + (slice(start, stop),)]
    rows = place.outer * (stop - start) * place.inner
    return np.ascontiguousarray(cut.reshape((*before, rows, *behind)))
