"""The value of a constant: a read-only array that hashes, and that large weights only refer to."""

import hashlib
from functools import cached_property

import numpy as np

from onnxla.hlo.types import Array, TensorType, type_of

_BY_VALUE_BYTES = 1 << 16


class Literal:
    """An immutable array. Small ones are equal by value, large ones when they share memory.

    `name` is the initializer it came from, so that dumps and artifacts can refer to it; the
    array may be a memory map, which is read only when somebody looks.
    """

    def __init__(self, array: Array, name: str = "") -> None:
        # ascontiguousarray would turn a scalar into a vector of one
        dense = array if array.flags.c_contiguous else np.array(array, order="C")
        self.array: Array = dense.view()
        self.array.flags.writeable = False
        self.name = name
        self.type: TensorType = type_of(self.array)

    @cached_property
    def _key(self) -> tuple[object, ...]:
        place = self.array.__array_interface__["data"][0]
        large = self.array.nbytes > _BY_VALUE_BYTES
        return (self.type, place if large else self.array.tobytes())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the elements in memory order, in hexadecimal: the same in every process."""
        return hashlib.sha256(self.array.reshape(-1).view(np.uint8).data).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Literal({self.type}{', ' + self.name if self.name else ''})"
