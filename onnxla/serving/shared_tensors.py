"""Tensors in memory that two processes have: written behind one another by one, read in place by the other.

Strings are there as the protocol has them on the wire. What is told of a tensor is its datatype, its shape, where it
begins and how many bytes it has.
"""

import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxla.serving.errors import UnsupportedRequestError
from onnxla.serving.tensors import DTYPES, datatype_of, from_raw, to_raw

Row = list[Any]
"""[datatype, shape, offset, bytes]; empty for what is no tensor of the protocol."""
_ALIGNMENT = 64
_LEAST = 1 << 16


class SharedTensors:
    """One of the two ends. The memory grows with what is written, and never shrinks."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._map: mmap.mmap | None = None

    @staticmethod
    def create(name: str) -> "SharedTensors":
        """Memory without a file, for this process and whoever is handed the descriptor. Raises OSError."""
        return SharedTensors(os.memfd_create(name, os.MFD_CLOEXEC))

    def write(self, arrays: Sequence[Any]) -> list[Row]:
        """Write in place of what was written before. Raises OSError without memory."""
        raw: list[Any] = []
        rows: list[Row] = []
        end = 0
        for array in arrays:
            datatype = _datatype(array)
            if datatype is None:
                rows.append([])
                raw.append(None)
                continue
            data = to_raw(array) if datatype == "BYTES" else array
            size = len(data) if isinstance(data, (bytes, memoryview)) else data.nbytes
            rows.append([datatype, list(array.shape), end, size])
            raw.append(data)
            end += -(-size // _ALIGNMENT) * _ALIGNMENT
        memory = self._memory(end, grow=True)
        for row, data in zip(rows, raw, strict=True):
            if not row or not row[3]:
                continue
            place = slice(row[2], row[2] + row[3])
            if isinstance(data, np.ndarray):
                np.frombuffer(memory, data.dtype, data.size, row[2]).reshape(data.shape)[...] = data
            else:
                memory[place] = bytes(data)
        return rows

    def read(self, rows: Sequence[Row], copy: bool) -> list[Any]:
        """What `write` wrote at the other end; None for what was no tensor. Without `copy` the arrays are in the shared
        memory, and change when it is written to. Raises InvalidRequestError where rows say what cannot be."""
        end = max((row[2] + row[3] for row in rows if row), default=0)
        memory = self._memory(end, grow=False)
        arrays: list[Any] = []
        for row in rows:
            if not row:
                arrays.append(None)
                continue
            datatype, shape, offset, size = row
            if datatype == "BYTES":
                arrays.append(from_raw("", datatype, shape, memory[offset : offset + size]))
                continue
            dtype = DTYPES[datatype]
            array = np.frombuffer(memory, dtype, size // dtype.itemsize, offset).reshape(shape)
            arrays.append(array.copy() if copy else array)
        return arrays

    def close(self) -> None:
        self._map = None  # arrays may still be in it
        os.close(self.descriptor)

    def _memory(self, size: int, grow: bool) -> mmap.mmap:
        if self._map is None or len(self._map) < size:
            there = os.fstat(self.descriptor).st_size
            if grow and there < max(size, _LEAST):
                there = max(_LEAST, 1 << (size - 1).bit_length() if size else 0)
                os.ftruncate(self.descriptor, there)
            self._map = mmap.mmap(self.descriptor, max(there, size) if grow else there)
        return self._map


def _datatype(array: Any) -> str | None:
    if not isinstance(array, np.ndarray):
        return None
    try:
        return datatype_of(array.dtype)
    except UnsupportedRequestError:
        return None
