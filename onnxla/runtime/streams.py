"""Streams of PyTorch, CuPy and others as the numbers that CUDA has for them, and what users call devices."""

from typing import Any

from onnxla.errors import InputError

LEGACY_STREAM = 1
"""CUDA's number of the stream that work goes to where nobody chose one."""


def stream_number(stream: Any) -> int:
    """The handle of a stream: a number, or what has `__cuda_stream__` (PyTorch, CuPy, cuda.core), `cuda_stream` (older
    PyTorch) or `ptr` (older CuPy). Raises InputError."""
    if isinstance(stream, bool):
        raise InputError(f"stream={stream!r} is no stream")
    if not isinstance(stream, int):
        protocol = getattr(stream, "__cuda_stream__", None)
        if protocol is not None:
            version, stream = protocol() if callable(protocol) else protocol
            if version != 0:
                raise InputError(f"the stream follows version {version} of __cuda_stream__, and only 0 is known")
        else:
            given, stream = stream, getattr(stream, "cuda_stream", getattr(stream, "ptr", None))
            if not isinstance(stream, int):
                raise InputError(
                    f"stream= takes a CUDA stream: a number, or an object with __cuda_stream__ such as "
                    f"torch.cuda.Stream, not {type(given).__name__}"
                )
    if stream < 0:
        raise InputError(f"stream={stream} is no stream")
    return int(stream) or LEGACY_STREAM


def gpu_number(device: str) -> int | None:
    """`cuda` -> 0, `cuda:1` -> 1, `cpu` -> None. Raises InputError for other names."""
    kind, colon, number = device.partition(":")
    if device == "cpu":
        return None
    if kind in ("cuda", "gpu") and (not colon or (number.isascii() and number.isdigit())):
        return int(number or 0)
    raise InputError(f"device={device!r}: write cpu, cuda, or cuda:1 for the second GPU")
