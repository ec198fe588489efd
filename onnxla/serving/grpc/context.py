"""A call as its handler sees it, on the event loop: the part of `grpc.aio.ServicerContext` that handlers here use."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc

from onnxla.serving.grpc.core import Metadata, Rpc

_NEVER = 1e11
"""Seconds since the epoch from which on a deadline is none."""


class Ended(Exception):
    """The call is over: it has its status, or its client does not wait any more."""


class Context:
    """From the call's arrival to its status."""

    __slots__ = ("_loop", "_rpc", "_serialize", "over", "task")

    def __init__(self, rpc: Rpc, loop: asyncio.AbstractEventLoop, serialize: Callable[[Any], bytes]) -> None:
        self._rpc, self._loop, self._serialize = rpc, loop, serialize
        self.over = False
        self.task: asyncio.Task[None] | None = None
        """What the handler runs in."""

    def invocation_metadata(self) -> Metadata:
        return self._rpc.metadata

    def peer(self) -> str:
        return self._rpc.peer()

    def time_remaining(self) -> float | None:
        """Seconds until the call's deadline; None where it has none."""
        deadline = self._rpc.deadline
        return None if deadline > _NEVER else max(0.0, deadline - time.time())

    def end(self, code: grpc.StatusCode, details: str = "", trailing: Metadata = ()) -> None:
        """End the call with a status, where it is not over."""
        if not self.over:
            self.over = True
            self._rpc.end(code.value[0], details, trailing)

    def answer(self, message: Any) -> None:
        """End the call well, with its one message. Raises what the serializer raises."""
        data = self._serialize(message)
        if not self.over:
            self.over = True
            self._rpc.end(0, message=data)

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Metadata = ()) -> None:
        """End the call with a status, and its handler with Ended."""
        self.end(code, details, trailing_metadata)
        raise Ended

    async def write(self, message: Any) -> None:
        """Send a message of a stream. Returns when the next one may be sent; raises Ended."""
        sent = self._loop.create_future()
        if self.over:
            raise Ended
        self._rpc.send(self._serialize(message), self._telling(sent))
        if not await sent:
            raise Ended

    async def messages(self, parse: Callable[[bytes], Any]) -> AsyncIterator[Any]:
        """The messages of a client's stream. Raises what `parse` raises."""
        while not self.over:
            received = self._loop.create_future()
            self._rpc.receive(self._telling(received))
            message = await received
            if message is None:
                return
            yield parse(message)

    def cancel(self) -> None:
        """The client has gone, or the deadline has passed, or the server has ended."""
        if not self.over:
            self.over = True
            if self.task is not None:
                self.task.cancel()

    def _telling(self, future: "asyncio.Future[Any]") -> Callable[[Any], object]:
        """What gives a future its value from any thread."""

        def settle(value: Any) -> None:
            if not future.done():
                future.set_result(value)

        return lambda value: self._loop.call_soon_threadsafe(settle, value)
