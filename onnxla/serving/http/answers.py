"""Answers in ASGI's messages: JSON, bytes, and errors as the protocol has them."""

import math
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any

from onnxla.serving.errors import ServingError, TooLargeError
from onnxla.serving.http.messages import encode_error

Send = Callable[[dict[str, Any]], Awaitable[None]]

_JSON = (b"content-type", b"application/json")
_BYTES = (b"content-type", b"application/octet-stream")


async def send_inference(send: Send, json_length: int | None, pieces: Sequence[bytes | memoryview]) -> None:
    """The answer to an inference request, as `messages.encode` has made it."""
    body = b"".join(pieces) if len(pieces) > 1 else pieces[0]
    length = (b"content-length", b"%d" % len(body))
    headers = (
        [_JSON, length]
        if json_length is None
        else [_BYTES, length, (b"inference-header-content-length", b"%d" % json_length)]
    )
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_error(send: Send, error: ServingError, *, browser: bool = False) -> None:
    """`{"error": text}` with the error's status. `browser`: ask for a password where a token is missing."""
    body = encode_error(error)
    headers = [_JSON, (b"content-length", b"%d" % len(body)), (b"cache-control", b"no-store")]
    if error.retry_after is not None:
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(error.retry_after))))
    if error.status is HTTPStatus.UNAUTHORIZED:
        scheme = b'Basic realm="onnxla: any name, the token as password"' if browser else b'Bearer realm="onnxla"'
        headers.append((b"www-authenticate", scheme))
    if isinstance(error, TooLargeError):
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": int(error.status), "headers": headers})
    await send({"type": "http.response.body", "body": body})
