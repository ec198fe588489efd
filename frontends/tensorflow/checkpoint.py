"""A checkpoint bundle: `PREFIX.index` says where in `PREFIX.data-00000-of-00001` each variable lies.

Data files are read once; variables are views of what was read.
"""

import math
import struct
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from onnxla.errors import HloError, ModelFormatError
from onnxla.frontends.onnx.external_data import read_file_beneath
from onnxla.frontends.tensorflow.bundle_table import read_table, varint
from onnxla.frontends.tensorflow.crc32c import crc32c, extend_crc32c, masked
from onnxla.frontends.tensorflow.element_types import STRING, code_name, element_of_code
from onnxla.frontends.tensorflow.messages import BundleEntryProto, BundleHeaderProto, TrackableObjectGraph
from onnxla.frontends.tensorflow.tensors import shape_of
from onnxla.hlo.types import Array

OBJECT_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"


class Checkpoint:
    """The variables of one checkpoint by key. Every array is checked against its checksum before it is given out."""

    def __init__(self, folder: Path, prefix: str) -> None:
        """The files `PREFIX.index` and so on beneath `folder`. Raises ModelFormatError for an index that is none."""
        self._folder = folder
        self._prefix = prefix
        table = read_table(bytes(read_file_beneath(folder, f"{prefix}.index")))
        header = _parsed(BundleHeaderProto, table.pop(b"", b""))
        if header.endianness != 0:
            raise ModelFormatError(f"the checkpoint {prefix} is big-endian")
        self._shards = header.num_shards
        self._entries = {key.decode(errors="backslashreplace"): value for key, value in table.items()}
        self._read: dict[int, Array] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def array(self, key: str) -> Array:
        """The value of a variable, a read-only view of the file's bytes. Raises ModelFormatError."""
        entry = self._entry(key)
        shape = shape_of(entry.shape)
        if entry.slices or shape is None or any(n is None for n in shape):
            raise ModelFormatError(f"{key}: a variable that is stored in slices cannot be read")
        try:
            dtype = element_of_code(entry.dtype).dtype
        except HloError as error:
            raise ModelFormatError(f"{key}: values of type {code_name(entry.dtype)} cannot be read") from error
        sizes = [n for n in shape if n is not None]
        data = self._bytes(key, entry)
        if len(data) != math.prod(sizes) * dtype.itemsize:
            raise ModelFormatError(f"{key}: {len(data)} bytes for {dtype}{sizes}")
        if masked(crc32c(data)) != entry.crc32c:
            raise ModelFormatError(f"{key}: the checksum does not fit, so the checkpoint is damaged")
        return np.frombuffer(data, dtype).reshape(sizes)

    @cached_property
    def objects(self) -> Any:
        """The nodes of the object graph that the checkpoint was written from; empty where it has none."""
        if OBJECT_GRAPH_KEY not in self:
            return []
        return _parsed(TrackableObjectGraph, self._string(OBJECT_GRAPH_KEY)).nodes

    def _entry(self, key: str) -> Any:
        if key not in self:
            raise ModelFormatError(f"the checkpoint has no {key}")
        return _parsed(BundleEntryProto, self._entries[key])

    def _bytes(self, key: str, entry: Any) -> Array:
        shard = self._shard(entry.shard_id)
        if entry.offset < 0 or entry.size < 0 or entry.offset + entry.size > shard.size:
            raise ModelFormatError(f"{key} lies outside of the checkpoint's data")
        return shard[entry.offset : entry.offset + entry.size]

    def _shard(self, number: int) -> Array:
        if number not in self._read:
            name = f"{self._prefix}.data-{number:05d}-of-{self._shards:05d}"
            self._read[number] = np.frombuffer(read_file_beneath(self._folder, name), np.uint8)
        return self._read[number]

    def _string(self, key: str) -> bytes:
        """A scalar of type string: its length, the checksum of the length, its bytes."""
        entry = self._entry(key)
        data = self._bytes(key, entry).tobytes()
        length, place = varint(data, 0)
        if entry.dtype != STRING or place + 4 + length != len(data):
            raise ModelFormatError(f"{key}: not one string")
        checksum = crc32c(struct.pack("<I", length))
        (stored,) = struct.unpack_from("<I", data, place)
        whole = extend_crc32c(extend_crc32c(checksum, data[place : place + 4]), data[place + 4 :])
        if masked(checksum) != stored or masked(whole) != entry.crc32c:
            raise ModelFormatError(f"{key}: the checksum does not fit, so the checkpoint is damaged")
        return data[place + 4 :]


def _parsed(message: Any, data: bytes) -> Any:
    try:
        return message.FromString(data)
    except DecodeError as error:
        raise ModelFormatError(f"the checkpoint's index is damaged: {error}") from error
