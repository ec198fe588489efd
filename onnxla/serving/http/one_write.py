"""A transport that sends head and body of an answer together, and closes without taking it back.

One system call and one packet, not two of each. A socket that is closed with bytes that nobody read resets the
connection, and the client loses what it had not read either: so our side ends first, and the socket when the client has
ended its own.
"""

import asyncio
from typing import Any

_SMALL = 64 * 2**10
"""Bytes up to which putting two writes together is cheaper than a second one."""

_LINGER_SECONDS = 1.0
"""How long the client has to end its side."""


class OneWrite:
    """What uvicorn writes to; a small write waits for the next one, at most until the loop's turn ends."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: bytes | None = None
        self._ended = False

    def write(self, data: bytes) -> None:
        held, self._held = self._held, None
        if held is not None:
            if len(data) <= _SMALL:
                data = held + data
            else:
                self._transport.write(held)
        elif len(data) <= _SMALL:
            self._held = data
            self._loop.call_soon(self._flush)
            return
        self._transport.write(data)

    def close(self) -> None:
        if self.is_closing():
            return
        self._flush()
        self._ended = True
        if not self._transport.can_write_eof():  # TLS, whose end says that it is one
            self._transport.close()
            return
        self._transport.write_eof()
        self._transport.resume_reading()
        self._loop.call_later(_LINGER_SECONDS, self._transport.close)

    def is_closing(self) -> bool:
        return self._ended or self._transport.is_closing()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size() + len(self._held or b"")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _flush(self) -> None:
        held, self._held = self._held, None
        if held is not None and not self._transport.is_closing():
            self._transport.write(held)
