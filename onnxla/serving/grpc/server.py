"""A gRPC server for handlers on an event loop, which hears of a call once: when its message is there.

It takes the handlers that `grpc.aio.server` takes, as generated code adds them.
"""

import asyncio
import contextlib
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import DecodeError

from onnxla.errors import harmless_line
from onnxla.serving.calls import told
from onnxla.serving.grpc.context import Context, Ended
from onnxla.serving.grpc.core import Core, Metadata, Rpc
from onnxla.serving.grpc.gate import Gate


class _Asked(NamedTuple):
    """What generic handlers are asked for."""

    method: str
    invocation_metadata: Metadata


class Server:
    """Create and use it on one event loop."""

    def __init__(self, options: Sequence[tuple[str, Any]], gate: Gate) -> None:
        """Calls wait at the gate while it is shut."""
        self._loop = asyncio.get_running_loop()
        self._gate = gate
        self._core = Core(options, self._arrived)
        self._generic: list[Any] = []
        self._handlers: dict[bytes, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        self._generic.extend(handlers)

    def add_registered_method_handlers(self, service: str, handlers: Any) -> None:
        """Nothing: generated code adds the same ones both ways."""

    def add_port(self, address: str, credentials: Any = None) -> int:
        """The port of an address such as `127.0.0.1:0`. Raises OSError where it cannot be had."""
        return self._core.listen(address, credentials)

    def start(self) -> None:
        self._core.start()

    async def stop(self, grace: float) -> None:
        """Take no more calls; those that have not ended after so many seconds are cancelled."""
        ended = asyncio.Event()
        self._core.end(lambda: self._loop.call_soon_threadsafe(ended.set))
        try:
            await asyncio.wait_for(ended.wait(), grace)
        except TimeoutError:
            self._core.cancel()
            await ended.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._core.close)

    # On the core's thread

    def _arrived(self, rpc: Rpc) -> None:
        handler = self._handlers.get(rpc.method) or self._find(rpc)
        if handler is None:
            rpc.when_over(lambda cancelled: None)
            rpc.end(grpc.StatusCode.UNIMPLEMENTED.value[0], "there is no such method")
            return
        tell = self._loop.call_soon_threadsafe
        context = Context(rpc, self._loop, handler.response_serializer)
        rpc.when_over(lambda cancelled: tell(context.cancel) if cancelled else None)
        if handler.request_streaming:
            tell(self._begin, handler, context, None)
        else:
            rpc.receive(lambda message: tell(self._begin, handler, context, message))

    def _find(self, rpc: Rpc) -> Any:
        asked = _Asked(rpc.method.decode(errors="replace"), rpc.metadata)
        for generic in self._generic:
            if (found := generic.service(asked)) is not None:
                self._handlers[rpc.method] = found
                return found
        return None

    # On the event loop

    def _begin(self, handler: Any, context: Context, message: bytes | None) -> None:
        if not context.over:
            context.task = self._loop.create_task(self._answer(handler, context, message))
            self._tasks.add(context.task)
            context.task.add_done_callback(self._tasks.discard)

    async def _answer(self, handler: Any, context: Context, message: bytes | None) -> None:
        """One call, whatever becomes of it."""
        try:
            if self._gate.is_shut:
                await self._gate.wait()
            if handler.request_streaming or handler.response_streaming:
                await self._stream(handler, context, message)
            elif message is not None:
                context.answer(await handler.unary_unary(handler.request_deserializer(message), context))
            else:
                context.end(grpc.StatusCode.UNIMPLEMENTED, "this method takes one message, and none was sent")
        except Ended:
            return
        except DecodeError as error:
            context.end(grpc.StatusCode.INVALID_ARGUMENT, f"a message cannot be read: {harmless_line(str(error))}")
        except Exception as error:
            context.end(grpc.StatusCode.INTERNAL, str(told(error)))

    async def _stream(self, handler: Any, context: Context, message: bytes | None) -> None:
        """A call of a method with streams. Raises Ended, and what the handler raises."""
        if handler.request_streaming:
            answers = handler.stream_stream(context.messages(handler.request_deserializer), context)
        else:
            answers = handler.unary_stream(handler.request_deserializer(message or b""), context)
        if inspect.isasyncgen(answers):
            async with contextlib.aclosing(answers):
                async for answer in answers:
                    await context.write(answer)
        else:
            await answers
        context.end(grpc.StatusCode.OK)
