"""State: the variables that a model changes as it runs, such as weights in training.

The native code takes them after the inputs and gives their new values after the outputs. There are two buffers for each
variable, which change places with every run: nothing is copied, and no run reads what it writes.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from onnxla.errors import InputError
from onnxla.runtime.arrays import native_array
from onnxla.runtime.buffers import aligned_bytes
from onnxla.runtime.tensors import Array, TensorSignature, element_of_dtype

Step: TypeAlias = Callable[[list[Array], list[Array]], None]
"""Reads the first arrays and writes the second ones."""


class UnknownVariable(InputError, KeyError):
    """A name that is no variable's."""

    def __str__(self) -> str:
        return str(self.args[0])


class ModelState(Mapping[str, Array]):
    """The variables by name: `state["w"]` is a copy of the value now, `state["w"] = array` replaces it."""

    def __init__(self, initial: Mapping[str, Array]) -> None:
        self._initial = dict(initial)
        self._current = {name: _copied(value) for name, value in initial.items()}
        self._spare = {name: np.empty_like(value) for name, value in self._current.items()}
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> Array:
        with self._lock:
            return self._current[self._known(name)].copy()

    def __setitem__(self, name: str, value: Any) -> None:
        """Raises InputError for a name there is not, or an array of another type."""
        self.update({name: value})

    def __iter__(self) -> Iterator[str]:
        return iter(self._current)

    def __len__(self) -> int:
        return len(self._current)

    def __repr__(self) -> str:
        return f"<ModelState {', '.join(map(str, self.signatures())) or 'without variables'}>"

    def update(self, values: Mapping[str, Any]) -> None:
        """Replace several variables, or none where something is wrong. Raises InputError that lists what."""
        arrays: dict[str, Array] = {}
        problems: list[str] = []
        for name, value in values.items():
            try:
                now = self._current[self._known(name)]
                array = native_array(value, name, now.dtype)
            except InputError as error:
                problems.append(str(error))
                continue
            if array.shape != now.shape:
                problems.append(f"{name}: shape {list(array.shape)}, the variable has {list(now.shape)}")
            arrays[name] = array
        if problems:
            raise InputError("\n".join(problems))
        with self._lock:
            for name, array in arrays.items():
                self._current[name][...] = array

    def reset(self) -> None:
        """Back to the values that the model was compiled (or loaded) with."""
        self.update(self._initial)

    def signatures(self) -> tuple[TensorSignature, ...]:
        """Names and types."""
        return tuple(TensorSignature(n, element_of_dtype(v.dtype), v.shape) for n, v in self._current.items())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the values now as an `.npz` file."""
        values: dict[str, Any] = dict(self)
        np.savez(path, **values)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Read values from an `.npz` file, which must have every variable. Raises InputError."""
        try:
            with np.load(path, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
        except (OSError, ValueError) as error:
            raise InputError(f"{os.fspath(path)} cannot be read as a saved state: {error}") from error
        missing = [name for name in self if name not in found]
        if missing:
            raise InputError(f"{os.fspath(path)} lacks {', '.join(missing)}")
        # numpy stores the types it does not know, such as bfloat16, as bytes.
        for name, now in self._current.items():
            if found[name].dtype.kind == "V":
                found[name] = found[name].view(now.dtype)
        self.update(found)

    def step(self, names: Sequence[str], run: Step, *, keep: bool = False) -> None:
        """Call `run` with the values now and the arrays for the next ones, which then take their place, but for
        `keep`. Steps follow one another, however many threads ask for them."""
        with self._lock:
            run([self._current[name] for name in names], [self._spare[name] for name in names])
            if not keep:
                for name in names:
                    self._current[name], self._spare[name] = self._spare[name], self._current[name]

    def _known(self, name: str) -> str:
        if name not in self._current:
            raise UnknownVariable(f"the model has no variable {name!r}; it has {', '.join(self._current) or 'none'}")
        return name


def _copied(value: Array) -> Array:
    """A copy in memory of its own, aligned for vectors."""
    copy: Array = aligned_bytes(value.nbytes)[: value.nbytes].view(value.dtype).reshape(value.shape)
    copy[...] = value
    return copy
