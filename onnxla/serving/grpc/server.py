"""A gRPC server for handlers on an event loop, which hears of a call once at most: when its message is there.

It takes the handlers that `grpc.aio.server` takes, as generated code adds them. One that is no coroutine is called on
the core's own thread; what it returns is the answer, or a coroutine that gives it on the event loop.
"""

import asyncio
import contextlib
import functools
import inspect
from collections.abc import Coroutine, Sequence
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
            tell(self._begin, context, self._stream(handler, context, None))
        else:
            rpc.receive(lambda message: self._message_came(handler, context, message))

    def _find(self, rpc: Rpc) -> Any:
        asked = _Asked(rpc.method.decode(errors="replace"), rpc.metadata)
        for generic in self._generic:
            if (found := generic.service(asked)) is not None:
                self._handlers[rpc.method] = found
                return found
        return None

    def _message_came(self, handler: Any, context: Context, message: bytes | None) -> None:
        if context.over:
            return
        work: Coroutine[Any, Any, Any] | None
        if handler.response_streaming:
            work = self._stream(handler, context, message)
        elif self._gate.is_shut:
            work = self._held(handler, context, message)
        else:
            work = _called(handler, context, message)
        if work is not None:
            self._loop.call_soon_threadsafe(self._begin, context, work)

    # On the event loop

    def _begin(self, context: Context, work: Coroutine[Any, Any, Any]) -> None:
        """Answer a call with what `work` returns, if that has not ended it."""
        if context.over:
            work.close()
            return
        context.task = self._loop.create_task(work)
        self._tasks.add(context.task)
        context.task.add_done_callback(functools.partial(self._finish, context))

    def _finish(self, context: Context, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            _fail(context, error)
        elif not context.over:
            _answer(context, task.result())

    async def _held(self, handler: Any, context: Context, message: bytes | None) -> Any:
        """A call that comes while the gate is shut."""
        await self._gate.wait()
        work = _called(handler, context, message)
        return None if work is None else await work

    async def _stream(self, handler: Any, context: Context, message: bytes | None) -> None:
        """A call of a method with streams. Handlers are async generators of answers, or coroutines that write them."""
        if self._gate.is_shut:
            await self._gate.wait()
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


def _called(handler: Any, context: Context, message: bytes | None) -> Coroutine[Any, Any, Any] | None:
    """Call the handler of a method of one message, on any thread; what is left to do on the event loop."""
    if message is None:
        context.end(grpc.StatusCode.UNIMPLEMENTED, "this method takes one message, and none was sent")
        return None
    try:
        answer = handler.unary_unary(handler.request_deserializer(message), context)
    except Exception as error:
        _fail(context, error)
        return None
    if inspect.iscoroutine(answer):
        return answer
    _answer(context, answer)
    return None


def _answer(context: Context, answer: Any) -> None:
    try:
        context.answer(answer)
    except Exception as error:
        _fail(context, error)


def _fail(context: Context, error: BaseException) -> None:
    """End a call as its error says."""
    match error:
        case Ended():
            return
        case DecodeError():
            context.end(grpc.StatusCode.INVALID_ARGUMENT, f"a message cannot be read: {harmless_line(str(error))}")
        case _:
            context.end(grpc.StatusCode.INTERNAL, str(told(error)))
