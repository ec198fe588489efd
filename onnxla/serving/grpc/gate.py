"""Where calls wait while gRPC's core closes.

The core ends calls that have arrived and not yet been taken, or that arrive before the client has heard of the end, as
CANCELLED, which clients do not try again. So the gate is shut first: calls in flight end, those that come next are
held, and a client that waits for its answer sends no more. Then the server closes with nothing on the way, tells
clients so, and what was held is answered.
"""

import asyncio


class Gate:
    """Stands before every call of a server, on one event loop."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self.is_shut = False
        self._last = 0.0
        """When the last call was held, or the gate was shut."""

    async def wait(self) -> None:
        """Hold a call until the gate is open."""
        self._last = asyncio.get_running_loop().time()
        await self._open.wait()

    async def shut(self, quiet: float, longest: float) -> None:
        """Hold calls from now on. Returns when none has come for `quiet` seconds, `longest` seconds at most."""
        self.is_shut = True
        self._open.clear()
        loop = asyncio.get_running_loop()
        begin = self._last = loop.time()
        while (left := min(self._last + quiet, begin + longest) - loop.time()) > 0:
            await asyncio.sleep(left)

    def open(self) -> None:
        """Let what is held go on."""
        self.is_shut = False
        self._open.set()
