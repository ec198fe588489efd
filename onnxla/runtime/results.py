"""What a model gives, put together from the tensors that its native code gives.

Most outputs are those tensors. A sequence, an optional, strings or maps have a structure that is known since
compiling, and only numbers that are not: a `Result` is the structure, with a place for each tensor.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from onnxla.errors import ArtifactError
from onnxla.runtime.tensors import Array

Json: TypeAlias = Any


@dataclass(frozen=True)
class TensorResult:
    """A tensor of the native code."""

    index: int

    def assembled(self, tensors: Sequence[Array]) -> Array:
        """The Python value, as onnxruntime gives it."""
        return tensors[self.index]


@dataclass(frozen=True)
class TextResult:
    """Strings that are known: an array of `str` objects."""

    shape: tuple[int, ...]
    strings: tuple[str, ...]

    def assembled(self, tensors: Sequence[Array]) -> Array:
        return _text(self.strings).reshape(self.shape)


@dataclass(frozen=True)
class ChosenTextResult:
    """Strings out of a table; a tensor of integers says which."""

    index: int
    table: tuple[str, ...]

    @cached_property
    def _texts(self) -> Array:
        return _text(self.table)

    def assembled(self, tensors: Sequence[Array]) -> Array:
        return np.asarray(self._texts[tensors[self.index]], object)


@dataclass(frozen=True)
class MapsResult:
    """A sequence of maps: a dict for each row of a matrix, a key for each column. Keys come in their order."""

    index: int
    keys: tuple[int | str, ...]

    @cached_property
    def _columns(self) -> list[tuple[int | str, int]]:
        """Keys in their order, with their columns."""
        return sorted(zip(self.keys, range(len(self.keys)), strict=True), key=lambda pair: pair[0])

    def assembled(self, tensors: Sequence[Array]) -> list[dict[int | str, Any]]:
        columns = self._columns
        return [{key: row[column] for key, column in columns} for row in tensors[self.index].tolist()]


@dataclass(frozen=True)
class SequenceResult:
    """A list."""

    elements: "tuple[Result, ...]"

    def assembled(self, tensors: Sequence[Array]) -> list[Any]:
        return [element.assembled(tensors) for element in self.elements]


@dataclass(frozen=True)
class NothingResult:
    """An empty optional: None."""

    def assembled(self, tensors: Sequence[Array]) -> None:
        return None


Result: TypeAlias = TensorResult | TextResult | ChosenTextResult | MapsResult | SequenceResult | NothingResult


def _text(strings: Sequence[str]) -> Array:
    array = np.empty(len(strings), object)
    array[:] = strings
    return array


def indices_of(result: Result) -> Iterator[int]:
    """The tensors that a result takes."""
    match result:
        case TensorResult(index) | ChosenTextResult(index) | MapsResult(index):
            yield index
        case SequenceResult(elements):
            for element in elements:
                yield from indices_of(element)


def result_json(result: Result) -> Json:
    """A result as a manifest holds it."""
    match result:
        case TensorResult(index):
            return ["tensor", index]
        case TextResult(shape, strings):
            return ["text", list(shape), list(strings)]
        case ChosenTextResult(index, table):
            return ["chosen text", index, list(table)]
        case MapsResult(index, keys):
            return ["maps", index, list(keys)]
        case SequenceResult(elements):
            return ["sequence", [result_json(element) for element in elements]]
        case NothingResult():
            return ["nothing"]


def result_of_json(row: Json) -> Result:
    """The inverse of `result_json`. Raises ArtifactError for anything else."""
    match row:
        case ["tensor", int(index)]:
            return TensorResult(index)
        case ["text", [*shape], [*strings]] if _all(shape, int) and _all(strings, str):
            return TextResult(tuple(shape), tuple(strings))
        case ["chosen text", int(index), [*table]] if _all(table, str):
            return ChosenTextResult(index, tuple(table))
        case ["maps", int(index), [*keys]] if _all(keys, int) or _all(keys, str):
            return MapsResult(index, tuple(keys))
        case ["sequence", [*elements]]:
            return SequenceResult(tuple(map(result_of_json, elements)))
        case ["nothing"]:
            return NothingResult()
    raise ArtifactError(f"the manifest is malformed: {str(row)[:60]!r} is no result")


def _all(values: Sequence[Json], kind: type) -> bool:
    return all(type(value) is kind for value in values)
