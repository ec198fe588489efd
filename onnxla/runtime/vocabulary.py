"""Strings on their way into native code, which takes the places that they have in a list of words."""

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np

from onnxla.errors import InputError
from onnxla.runtime.tensors import Array


class Vocabulary:
    """The words that a model knows for one of its inputs."""

    def __init__(self, name: str, words: Sequence[str]) -> None:
        """`name` is the input's, for messages."""
        self._name = name
        self._place_of_word = {word: place for place, word in enumerate(words)}
        self._no_place = len(words)

    def places(self, value: Any) -> Array:
        """For each string its place among the words, or their number where it is not there: s64, shaped as `value`.

        Raises InputError for what is not text.
        """
        array = as_text(self._name, np.asarray(value))
        found = map(self._place_of_word.get, array.reshape(-1).tolist(), repeat(self._no_place))
        return np.fromiter(found, np.int64, array.size).reshape(array.shape)


def places_of(name: str, value: Any, words: Sequence[str]) -> Array:
    """`Vocabulary.places`, once."""
    return Vocabulary(name, words).places(value)


def as_text(name: str, array: Array) -> Array:
    """`array` with `str` in place of bytes, which are text in UTF-8, and of other objects.

    Raises InputError, which says `name`, for what is not text; without elements, such as of `[]`, everything is.
    """
    if not is_text(array) and array.size:
        raise InputError(f"{name}: dtype {array.dtype}, the model takes strings")
    values = array.reshape(-1).tolist()
    if all_str(values):
        return array
    try:
        texts = [value.decode() if isinstance(value, bytes) else str(value) for value in values]
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: bytes that are no text in UTF-8: {error}") from error
    return np.array(texts, object).reshape(array.shape)


def is_text(array: Array) -> bool:
    """Whether an array may hold strings: of numpy's kinds, or objects."""
    return array.dtype.kind in "OSU"


def all_str(values: Sequence[Any]) -> bool:
    """Whether all are `str` itself."""
    return set(map(type, values)) <= {str}
