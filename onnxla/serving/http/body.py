"""The body of a request: within its limits, with its compression undone."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any

from onnxla.errors import harmless_line
from onnxla.serving.errors import InvalidRequestError, OverloadedError, ServingError, TooLargeError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Headers = Mapping[bytes, bytes]

_WINDOW_BITS = {b"gzip": 16 + zlib.MAX_WBITS, b"deflate": zlib.MAX_WBITS}
_LARGE = 64 * 2**10
"""Bytes from which decompression is left to another thread."""


class GoneError(Exception):
    """The client went away: there is nobody to answer."""


class UnsupportedEncodingError(ServingError):
    """The body is compressed in a way that this server does not know."""

    status, code = HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "INVALID_ARGUMENT"


class Bodies:
    """Reads bodies, and counts the bytes of all that are here."""

    def __init__(self, max_bytes: int, max_in_flight: int) -> None:
        """`max_bytes`: of one body, as sent and as read. `max_in_flight`: of all bodies until they are let go."""
        self._max_bytes, self._max_in_flight = max_bytes, max_in_flight
        self.in_flight = 0

    async def read(self, headers: Headers, receive: Receive) -> bytes:
        """The body, which counts until `release`. Raises ServingError, or GoneError."""
        announced = headers.get(b"content-length")
        if announced is not None and int(announced) > self._max_bytes:  # digits alone, or the parser had refused it
            raise self._too_large(f"the request has {int(announced)} bytes, more")
        body = await self._received(receive)
        encoding = headers.get(b"content-encoding")
        if encoding is None or encoding == b"identity":
            return body
        bits = _WINDOW_BITS.get(encoding.lower())
        if bits is None:
            self.release(body)
            raise UnsupportedEncodingError(
                f"Content-Encoding {harmless_line(encoding.decode('latin-1'))} is not supported: gzip and deflate are"
            )
        try:
            plain = (
                await asyncio.to_thread(self._expanded, body, bits)
                if len(body) > _LARGE
                else self._expanded(body, bits)
            )
        finally:
            self.release(body)
        self._count(len(plain))
        return plain

    def release(self, body: bytes) -> None:
        """The body is no longer needed."""
        self.in_flight -= len(body)

    async def _received(self, receive: Receive) -> bytes:
        message = await receive()
        if message["type"] != "http.request":
            raise GoneError
        body: bytes = message.get("body", b"")
        self._count(len(body))
        if not message.get("more_body"):
            return body
        pieces, size = [body], len(body)
        try:
            while message.get("more_body"):
                message = await receive()
                if message["type"] != "http.request":
                    raise GoneError
                piece = message.get("body", b"")
                size += len(piece)
                self.in_flight += len(piece)
                if size > self._max_bytes:
                    raise self._too_large("the request is longer")
                if self.in_flight > self._max_in_flight:
                    raise self._full()
                pieces.append(piece)
        except BaseException:
            self.in_flight -= size
            raise
        return b"".join(pieces)

    def _count(self, size: int) -> None:
        if self.in_flight + size > self._max_in_flight:
            raise self._full()
        self.in_flight += size

    def _expanded(self, body: bytes, bits: int) -> bytes:
        reader = zlib.decompressobj(bits)
        try:
            plain = reader.decompress(body, self._max_bytes + 1)
        except zlib.error as error:
            raise InvalidRequestError(f"the request's compression is damaged: {error}") from None
        if len(plain) > self._max_bytes:
            raise self._too_large("with its compression undone the request is longer")
        if not reader.eof or reader.unused_data:
            raise InvalidRequestError("the request's compression is damaged: it ends too early or too late")
        return plain

    def _too_large(self, text: str) -> TooLargeError:
        return TooLargeError(f"{text} than the {self._max_bytes} that this server takes (--max-request-bytes)")

    def _full(self) -> OverloadedError:
        return OverloadedError(
            f"requests of {self._max_in_flight} bytes are here already (--max-body-bytes-in-flight)", retry_after=1.0
        )
