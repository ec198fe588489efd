"""Receive a model: written as it comes, hashed, bounded. Nothing of it is looked at."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

from onnxla.serving.errors import InvalidRequestError, TooLargeError
from onnxla.serving.jobs.request import is_plain_name

_BUFFER = 4 << 20
"""Bytes that are written at once, on another thread."""


def require_name(name: str) -> str:
    """A file name that a client gives its model. Raises InvalidRequestError for one that could be anything else."""
    if not is_plain_name(name):
        raise InvalidRequestError(f"name={name[:128]!r}: a file name of letters, digits, . _ + - and spaces is needed")
    return name


async def receive(body: AsyncIterator[bytes], path: Path, most_bytes: int) -> str:
    """Write `body` to a new file; returns its SHA-256 digest. Raises TooLargeError, InvalidRequestError for nothing."""
    digest, size = hashlib.sha256(), 0
    buffer = bytearray()
    with open(path, "xb") as file:

        def flush(data: bytes) -> None:
            digest.update(data)
            file.write(data)

        async for chunk in body:
            size += len(chunk)
            if size > most_bytes:
                raise TooLargeError(f"the model is larger than the {most_bytes} bytes that this server takes")
            buffer += chunk
            if len(buffer) >= _BUFFER:
                await asyncio.to_thread(flush, bytes(buffer))
                buffer.clear()
        await asyncio.to_thread(flush, bytes(buffer))
    if not size:
        raise InvalidRequestError("the request has no body: send the model, or an archive of it")
    return digest.hexdigest()
