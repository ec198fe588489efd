"""Where calls wait while grpcio's server closes.

grpcio ends calls that have arrived and not yet reached their method, or that arrive before the client has heard of the
end, as CANCELLED, which clients do not try again. So the gate is shut first: calls in flight end, those that come next
are held, and a client that waits for its answer sends no more. Then the server closes with nothing on the way, tells
clients so, and what was held is answered.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc


class Gate(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Stands before every call of a server."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._last = 0.0
        """When the last call was held, or the gate was shut."""

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        if not self._open.is_set():
            self._last = asyncio.get_running_loop().time()
            await self._open.wait()
        return await continuation(details)

    async def shut(self, quiet: float, longest: float) -> None:
        """Hold calls from now on. Returns when none has come for `quiet` seconds, `longest` seconds at most."""
        self._open.clear()
        loop = asyncio.get_running_loop()
        begin = self._last = loop.time()
        while (left := min(self._last + quiet, begin + longest) - loop.time()) > 0:
            await asyncio.sleep(left)

    def open(self) -> None:
        """Let what is held go on."""
        self._open.set()
