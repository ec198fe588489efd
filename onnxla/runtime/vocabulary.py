"""Strings on their way into native code, which takes the places that they have in a list of words."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from onnxla.errors import InputError
from onnxla.runtime.program import Array, Program


def native_strings(program: Program, values: Sequence[Any]) -> list[Any]:
    """The inputs of a program with the strings among them as places. Raises InputError for what is not text."""
    return [
        places_of(s.name, value, program.vocabularies[s.name]) if s.name in program.vocabularies else value
        for s, value in zip(program.inputs, values, strict=True)
    ]


@lru_cache(maxsize=64)
def _place_of_word(words: tuple[str, ...]) -> Mapping[str, int]:
    return {word: i for i, word in enumerate(words)}


def places_of(name: str, value: Any, words: Sequence[str]) -> Array:
    """For each string its place in `words`, or their number where it is not there."""
    array = np.asarray(value)
    if array.dtype.kind not in "OSU":
        raise InputError(f"{name}: dtype {array.dtype}, the model takes strings")
    place = _place_of_word(tuple(words))
    text = (t.decode() if isinstance(t, bytes) else str(t) for t in array.reshape(-1).tolist())
    return np.fromiter((place.get(t, len(words)) for t in text), np.int64, array.size).reshape(array.shape)
