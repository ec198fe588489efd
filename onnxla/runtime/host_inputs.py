"""The inputs of a model that its native code does not take: values that it was made for, and strings."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxla.runtime.program import Program
from onnxla.runtime.tensors import Array
from onnxla.runtime.vocabulary import Vocabulary, all_str, is_text


class HostInputs:
    """From the inputs of a model to those of one of its programs."""

    def __init__(self, program: Program, names: Sequence[str]) -> None:
        """`names` are the model's inputs in their order."""
        words = program.vocabularies
        self._taken = [
            (names.index(s.name), Vocabulary(s.name, words[s.name]) if s.name in words else None)
            for s in program.inputs
        ]
        self._known = [
            (k, _Known(program.constants[name])) for k, name in enumerate(names) if name in program.constants
        ]
        self._is_complete = len(self._taken) + len(self._known) == len(names)

    def native(self, values: Sequence[Any]) -> list[Any] | None:
        """What the program takes of `values`, one for each input of the model, where these are plain arrays with
        the values that it was made for; None where it takes a closer look."""
        if not self._is_complete or not all(known.is_same(values[k]) for k, known in self._known):
            return None
        native = []
        for k, vocabulary in self._taken:
            value = values[k]
            if vocabulary is not None:
                if type(value) is not np.ndarray or not is_text(value):
                    return None
                value = vocabulary.places(value)
            native.append(value)
        return native

    def with_places(self, values: Sequence[Any]) -> list[Any]:
        """The inputs of the program with places for strings. Raises InputError for what is not text."""
        return [
            value if vocabulary is None else vocabulary.places(value)
            for value, (_, vocabulary) in zip(values, self._taken, strict=True)
        ]


class _Known:
    """A value that code was made for."""

    def __init__(self, value: Array) -> None:
        self._dtype, self._shape = value.dtype, value.shape
        self._strings = value.astype(str).tolist() if is_text(value) else None
        self._bytes = value.tobytes()

    def is_same(self, value: Any) -> bool:
        """Whether `value` is an array equal to it bit for bit, so that NaN equals itself and 0.0 is not -0.0."""
        if type(value) is not np.ndarray or value.shape != self._shape:
            return False
        if self._strings is not None:
            return is_text(value) and all_str(value.reshape(-1).tolist()) and value.tolist() == self._strings
        return value.dtype == self._dtype and value.tobytes() == self._bytes
