"""A server on a loop and thread of its own, so that blocking clients can call it."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

import uvloop

from onnxla.serving.requests import Engine
from onnxla.serving.server import Server
from onnxla.serving.server_settings import ServerSettings
from onnxla.serving.tracing import Tracer

T = TypeVar("T")
LONGEST = 60.0
"""Seconds that anything may take before the test fails."""


class Running:
    """`with Running(SmallEngine) as server:`; ports are chosen by the system. `given`: further arguments of Server."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        *,
        tracer: Tracer | None = None,
        given: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self._make, self._given = engine, {"tracer": tracer, **(given or {})}
        self._settings = ServerSettings(**{"http_port": 0, "grpc_port": 0, "drain_seconds": 5, **settings})
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.engine: Any = None
        self.server: Server

    def __enter__(self) -> Self:
        self._thread.start()
        self.do(self._start())
        return self

    async def _start(self) -> None:
        self.engine = self._make()
        self.server = Server(self.engine, self._settings, **self._given)
        await self.server.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.do(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LONGEST)
        self._loop.close()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it on the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LONGEST)

    def call(self, function: Callable[[], object]) -> None:
        """Call it on the server's loop."""
        self._loop.call_soon_threadsafe(function)

    @property
    def http(self) -> str:
        return f"127.0.0.1:{self.server.http_port}"

    @property
    def grpc(self) -> str:
        return f"127.0.0.1:{self.server.grpc_port}"


def eventually(what: Callable[[], bool]) -> bool:
    """Whether it becomes true in time."""
    for _ in range(500):
        if what():
            return True
        time.sleep(0.02)
    return False
