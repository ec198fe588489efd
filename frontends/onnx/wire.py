"""Cut the large weights out of a serialized model, so that they are never parsed or copied.

Protobuf copies every byte string it parses, and refuses messages over 2 GB. Weights are most of a
model: this walks the wire format (tag, length, payload) down to ModelProto.graph.initializer.raw_data,
notes where large ones lie, and returns the rest for protobuf to parse.
"""

from collections.abc import Iterator

from onnxla.errors import ModelFormatError

_MODEL_GRAPH, _GRAPH_INITIALIZER, _TENSOR_RAW_DATA = 7, 5, 9
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_KEPT_BYTES = 1 << 12
"""raw_data up to this size stays in the message."""


def cut_weights(model: memoryview) -> tuple[bytes, dict[int, memoryview]]:
    """The model without its large raw_data, and that data by the initializer's position.

    Raises ModelFormatError where the bytes are not a protobuf message.
    """
    weights: dict[int, memoryview] = {}
    count = 0
    kept: list[bytes | memoryview] = []
    for field, whole, payload in _fields(model):
        if field != _MODEL_GRAPH or payload is None:
            kept.append(whole)
            continue
        graph: list[bytes | memoryview] = []
        for inner, inner_whole, inner_payload in _fields(payload):
            if inner == _GRAPH_INITIALIZER and inner_payload is not None:
                rest, raw = _cut_tensor(inner_payload)
                if raw is not None:
                    weights[count] = raw
                    inner_whole = memoryview(_message(_GRAPH_INITIALIZER, rest))
                count += 1
            graph.append(inner_whole)
        kept.append(_message(_MODEL_GRAPH, b"".join(graph)))
    return b"".join(kept), weights


def _cut_tensor(tensor: memoryview) -> tuple[bytes, memoryview | None]:
    """The tensor's other fields and its raw_data; b"" and None where that is small or absent."""
    if len(tensor) <= _KEPT_BYTES:
        return b"", None
    raw = None
    rest: list[memoryview] = []
    for field, whole, payload in _fields(tensor):
        if field == _TENSOR_RAW_DATA and payload is not None:
            raw = payload  # protobuf: the last one counts
        else:
            rest.append(whole)
    return (b"".join(rest), raw) if raw is not None and len(raw) > _KEPT_BYTES else (b"", None)


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview, memoryview | None]]:
    """Number, all bytes, and (for length-delimited fields) the payload of each field."""
    position = 0
    while position < len(message):
        start = position
        tag, position = _varint(message, position)
        wire_type = tag & 7
        payload = None
        if wire_type == _VARINT:
            _, position = _varint(message, position)
        elif wire_type in (_FIXED64, _FIXED32):
            position += 8 if wire_type == _FIXED64 else 4
        elif wire_type == _BYTES:
            length, begin = _varint(message, position)
            position = begin + length
            payload = message[begin:position]
        else:
            raise ModelFormatError("the file is not an ONNX model: it is no protobuf message")
        if position > len(message):
            raise ModelFormatError("the file is not an ONNX model, or it is cut short")
        yield tag >> 3, message[start:position], payload


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(message):
            break
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ModelFormatError("the file is not an ONNX model, or it is cut short")


def _message(field: int, payload: bytes) -> bytes:
    """A length-delimited field."""
    head = bytearray([field << 3 | _BYTES])
    length = len(payload)
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + payload
