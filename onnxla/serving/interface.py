"""The inputs and outputs of a model as clients see them: arrays of a request checked, and put in the model's order."""

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from onnxla.errors import harmless_line
from onnxla.runtime.signature import ModelSignature, ModelTensor
from onnxla.serving.errors import InvalidRequestError, UnsupportedRequestError
from onnxla.serving.requests import Array, TensorMetadata
from onnxla.serving.tensors import datatype_of

_LARGEST_KEY = 4096
"""Bytes of inputs that all rows share by which requests are compared; larger ones are not put together."""


class Arranged(NamedTuple):
    """The inputs of one request."""

    arrays: list[Array]
    shapes: tuple[tuple[int, ...], ...]
    """Of each input, without its rows: what code is made for."""
    rows: int
    """0 for models without a dimension of rows."""
    shared: Hashable
    """Equal for requests that can be in one run."""


class _Input(NamedTuple):
    name: str
    dtype: "np.dtype[Any]"
    shape: tuple[int | None, ...] | None
    rows: int | None


class Interface:
    """The signature of a model, for clients."""

    def __init__(self, signature: ModelSignature, rows: Mapping[str, int], most_rows: int = 0) -> None:
        """`rows` is where the inputs have their rows. Raises UnsupportedRequestError for inputs that clients cannot
        send, and for a model without an output that they can read."""
        self.signature = signature
        self.most_rows = most_rows
        problems = []
        self.inputs: list[TensorMetadata] = []
        self._inputs: list[_Input] = []
        for tensor in signature.inputs:
            try:
                dtype = _dtype(tensor)
                self.inputs.append(_metadata(tensor, dtype))
            except UnsupportedRequestError as error:
                problems.append(f"input {tensor}: {error}")
                continue
            shape = None if tensor.shape is None else tuple(n if isinstance(n, int) else None for n in tensor.shape)
            self._inputs.append(_Input(tensor.name, dtype, shape, rows.get(tensor.name)))
        self.outputs: list[TensorMetadata] = []
        self.places: dict[str, int] = {}
        """Where each output that clients can read is among those of the model."""
        self.left_out: list[str] = []
        """Why others cannot be read."""
        for k, tensor in enumerate(signature.outputs):
            try:
                self.outputs.append(_metadata(tensor, _dtype(tensor)))
                self.places[tensor.name] = k
            except UnsupportedRequestError as error:
                self.left_out.append(f"output {tensor}: {error}")
        if not self.outputs:
            problems += self.left_out or ["it has no outputs"]
        if problems:
            raise UnsupportedRequestError("\n".join(map(harmless_line, problems)))
        self._rows = dict(rows)
        self._shared = [k for k, i in enumerate(self._inputs) if i.rows is None] if rows else []
        self.dtypes = {i.name: i.dtype for i in self._inputs}
        self.all_outputs = tuple(self.places.items())

    def rows_of(self, name: str) -> int | None:
        """The dimension in which an input has its rows."""
        return self._rows.get(name)

    def accept(
        self, given: Mapping[str, Array], names: tuple[str, ...] | None
    ) -> tuple[Arranged, tuple[tuple[str, int], ...]]:
        """`arrange` and `wanted` of one request. Raises InvalidRequestError that lists all that does not fit."""
        try:
            wanted = self.wanted(names)
        except InvalidRequestError as error:
            try:
                self.arrange(given)
            except InvalidRequestError as first:
                raise InvalidRequestError(f"{first}\n{error}") from None
            raise
        return self.arrange(given), wanted

    def arrange(self, given: Mapping[str, Array]) -> Arranged:
        """Raises InvalidRequestError that lists all that does not fit."""
        inputs = self._inputs
        if len(given) != len(inputs):
            raise self._refusal(given)
        arrays, shapes, rows = [], [], 0
        try:
            for name, dtype, wanted, dimension in inputs:
                array = given[name]
                shape = array.shape
                if array.dtype != dtype:
                    raise self._refusal(given)
                if wanted is not None:
                    if len(shape) != len(wanted):
                        raise self._refusal(given)
                    for size, n in zip(shape, wanted, strict=True):
                        if n is not None and n != size:
                            raise self._refusal(given)
                if dimension is not None:
                    count = shape[dimension]
                    if rows not in (0, count) or not 1 <= count <= self.most_rows:
                        raise self._refusal(given)
                    rows = count
                    shape = shape[:dimension] + shape[dimension + 1 :]
                arrays.append(array)
                shapes.append(shape)
        except KeyError:
            raise self._refusal(given) from None
        shared: Hashable = None
        if self._shared:
            shared = tuple(_identity(arrays[k]) for k in self._shared)
        return Arranged(arrays, tuple(shapes), rows, shared)

    def wanted(self, names: tuple[str, ...] | None) -> tuple[tuple[str, int], ...]:
        """Names and places of the outputs that a request asks for. Raises InvalidRequestError."""
        if names is None:
            return self.all_outputs
        try:
            return tuple([(name, self.places[name]) for name in names])
        except KeyError:
            unknown = ", ".join(harmless_line(n)[:200] for n in names if n not in self.places)
            raise InvalidRequestError(f"no outputs {unknown}; the model gives {', '.join(self.places)}") from None

    def _refusal(self, given: Mapping[str, Array]) -> InvalidRequestError:
        problems = []
        counts = {}
        names = [i.name for i in self._inputs]
        unknown = [harmless_line(str(n))[:200] for n in given if n not in names]
        if unknown:
            problems.append(f"not inputs of the model: {', '.join(unknown[:20])}")
        for (name, dtype, wanted, dimension), tensor in zip(self._inputs, self.inputs, strict=True):
            if name not in given:
                problems.append(f"missing: {_text(tensor)}")
                continue
            array = given[name]
            if array.dtype != dtype:
                problems.append(f"{name}: datatype {_datatype(array)}, the model takes {_text(tensor)}")
            fits = wanted is None or (
                len(array.shape) == len(wanted)
                and all(n is None or n == size for size, n in zip(array.shape, wanted, strict=True))
            )
            if not fits:
                problems.append(f"{name}: shape {list(array.shape)}, the model takes {_text(tensor)}")
            elif dimension is not None:
                counts[name] = array.shape[dimension]
                if not 1 <= counts[name] <= self.most_rows:
                    problems.append(f"{name}: {counts[name]} rows, and 1 to {self.most_rows} are served")
        if len(set(counts.values())) > 1:
            problems.append(
                "the inputs have different numbers of rows: " + ", ".join(f"{n} {c}" for n, c in counts.items())
            )
        return InvalidRequestError("\n".join(map(harmless_line, problems)))


def _dtype(tensor: ModelTensor) -> "np.dtype[Any]":
    if tensor.type == "tensor(string)":
        return np.dtype(object)
    if tensor.dtype is None:
        raise UnsupportedRequestError(f"the Open Inference Protocol has tensors alone, and no {tensor.type}")
    return tensor.dtype


def _metadata(tensor: ModelTensor, dtype: "np.dtype[Any]") -> TensorMetadata:
    shape = (-1,) if tensor.shape is None else tuple(n if isinstance(n, int) else -1 for n in tensor.shape)
    return TensorMetadata(tensor.name, datatype_of(dtype, tensor.name), shape)


def _datatype(array: Array) -> str:
    try:
        return datatype_of(array.dtype)
    except UnsupportedRequestError:
        return str(array.dtype)


def _text(tensor: TensorMetadata) -> str:
    return f"{tensor.name} {tensor.datatype} {list(tensor.shape)}"


def _identity(array: Array) -> Hashable:
    """Equal for arrays that are equal; for large ones, and strings, different for every request."""
    if array.nbytes > _LARGEST_KEY or array.dtype == object:
        return object()
    return array.tobytes()
