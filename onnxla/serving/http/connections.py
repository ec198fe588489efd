"""Connections that cannot keep others out: their number, how large a head is, how slowly a client sends and reads.

uvicorn reads HTTP; this watches its connections. Once a second all of them are looked at, so a request costs nothing
here but a few assignments.
"""

import asyncio
from collections import Counter, OrderedDict
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from onnxla.serving.http.one_write import OneWrite
from onnxla.serving.server_settings import ServerSettings


class Connections:
    """All connections of one listener."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.all: set[Connection] = set()
        self.waiting: OrderedDict[Connection, None] = OrderedDict()
        """Those that no request is known of, the longest first."""
        self.by_client: Counter[str] = Counter()
        self.ending = False
        """Whether each connection ends with the answer to its request."""
        self.closed_for_room = 0
        self.closed_for_time = 0

    def protocol(self, **parts: Any) -> "Connection":
        """What uvicorn makes for a new connection."""
        return Connection(self, **parts)

    def admit(self, connection: "Connection") -> bool:
        """Whether there is room for it, which those make that wait longest for nothing."""
        client = connection.address
        most = self.settings.max_connections_per_client
        if most and self.by_client[client] >= most:
            return False
        if len(self.all) >= self.settings.max_connections:
            oldest = next(iter(self.waiting), None)
            if oldest is None:
                return False
            self.closed_for_room += 1
            oldest.end()
        self.all.add(connection)
        self.by_client[client] += 1
        return True

    def forget(self, connection: "Connection") -> None:
        self.waiting.pop(connection, None)
        if connection in self.all:
            self.all.discard(connection)
            self.by_client[connection.address] -= 1
            if not self.by_client[connection.address]:
                del self.by_client[connection.address]

    def end_soon(self) -> None:
        """From now on every answer says that its connection ends with it."""
        self.ending = True
        for connection in self.all:
            if connection.cycle is not None:
                connection.cycle.keep_alive = False

    async def gone(self, seconds: float) -> None:
        """Returns when there are none left, or after so long."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self.all and loop.time() < until:
            await asyncio.sleep(0.01)

    async def watch(self) -> None:
        """Every second, end the connections whose client is too slow."""
        while True:
            await asyncio.sleep(min(1.0, self.settings.head_seconds / 4, self.settings.body_seconds / 4))
            now = asyncio.get_running_loop().time()
            for connection in list(self.all):
                if connection.is_late(now):
                    self.closed_for_time += 1


class Connection(HttpToolsProtocol):
    """One connection. `request` is the task that answers its request, which ends when the client goes away."""

    def __init__(self, kept: Connections, **parts: Any) -> None:
        super().__init__(**parts)
        self.kept = kept
        self.address = ""
        self.request: asyncio.Task[Any] | None = None
        self.patient = False
        """Whether its request may take as long to arrive as it wants: an admin's."""
        self.too_slow = False
        """Whether `request` was cancelled since its body did not arrive in time."""
        self._head_since: float | None = None
        self._head_bytes = 0
        self._body_since: float | None = None
        self._framing = 0
        """Bytes since the head that were no body: sizes of chunks and what may stand beside them."""
        self._unread_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        if not self.kept.admit(self):
            transport.abort()
            return
        self.transport = OneWrite(transport, self.loop)  # type: ignore[assignment]
        self._head_since = self.loop.time()
        self.kept.waiting[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.kept.forget(self)
        super().connection_lost(exc)
        if self.request is not None:
            self.request.cancel()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._body_since is None:
            self._head_bytes += len(data)
        else:
            self._framing += len(data)
        super().data_received(data)
        settings = self.kept.settings
        if (
            self._body_since is not None
            and not self.patient
            and self._framing > settings.max_header_bytes + settings.max_request_bytes
        ):
            self.end()
        if self._head_since is not None and self._head_bytes > settings.max_header_bytes:
            self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["connection"] = self  # type: ignore[typeddict-unknown-key]
        if self._head_since is None:
            self._head_since = self.loop.time()

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self.kept.settings.max_header_bytes:
            self._refuse_head()
            return
        self.kept.waiting.pop(self, None)
        self._head_since, self._head_bytes = None, 0
        self._body_since, self._framing, self.patient = self.loop.time(), 0, False
        earlier = self.cycle
        super().on_headers_complete()
        if self.kept.ending:
            if earlier is not None and not earlier.response_started:
                earlier.keep_alive = True  # the answer to the last of several is the one that ends it
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._framing -= len(body)
        if self.cycle is not None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._body_since = None
        if self.cycle is not None:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.kept.waiting[self] = None

    def shutdown(self) -> None:
        """uvicorn ends what waits for a request. One of which a part has come is answered."""
        if not self._head_bytes:
            super().shutdown()

    def is_late(self, now: float) -> bool:
        """Whether the client took too long, for which its connection is ended here."""
        settings = self.kept.settings
        if self._head_since is not None and now - self._head_since > settings.head_seconds:
            self.end()
            return True
        if self._body_since is not None and not self.patient and now - self._body_since > settings.body_seconds:
            self._body_since = None
            if self.request is None:
                self.end()
            else:
                self.too_slow = True
                self.request.cancel()
            return True
        if not self.transport.get_write_buffer_size():
            self._unread_since = None
        elif self._unread_since is None:
            self._unread_since = now
        elif now - self._unread_since > settings.body_seconds:
            self.end()
            return True
        return False

    def end(self) -> None:
        """Close it at once, whatever it is about."""
        self.kept.forget(self)
        self.transport.abort()

    def _refuse_head(self) -> None:
        self._head_since = None
        self.send_400_response(f"The head of the request has more than {self.kept.settings.max_header_bytes} bytes.")
