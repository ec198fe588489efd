"""gRPC's core: a server's port and its calls, by the inside of grpcio that its own servers stand on.

`grpc.aio` brings each of a call's five events to the event loop by itself and makes three tasks of a call, and
`grpc.server` hands it to and fro between two threads: either takes longer than a small model
(`tests/bench/grpc_servers.py`). Here the core's events are taken by one thread, and what becomes of them is for
`server.py` to say. Of grpcio's inside only `_cython.cygrpc` is used, and only here; what is used of it is the same in
grpcio 1.60 to 1.85.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from grpc._cython import cygrpc

_LOG = logging.getLogger("onnxla.serving")
Metadata = Sequence[tuple[str, str | bytes]]


class Rpc:
    """One call. Everything may be called on any thread, and what is given as `then` is called on the core's."""

    __slots__ = ("_call", "_opened", "deadline", "metadata", "method")

    def __init__(self, event: Any) -> None:
        self._call = event.call
        self._opened = False
        self.method: bytes = event.call_details.method
        self.metadata: Metadata = event.invocation_metadata
        self.deadline: float = event.call_details.deadline
        """`time.time()`; a time that nobody lives to see where the client gave none."""

    def peer(self) -> str:
        return str(self._call.peer(), "utf-8")

    def when_over(self, then: Callable[[bool], object]) -> None:
        """Calls `then` once, with whether the call was cancelled: by the client, its deadline, or the end of the
        server."""
        over = cygrpc.ReceiveCloseOnServerOperation(0)
        self._call.start_server_batch((over,), lambda event: then(over.cancelled()))

    def receive(self, then: Callable[[bytes | None], object]) -> None:
        """The next message; None when there is none any more."""
        received = cygrpc.ReceiveMessageOperation(0)
        self._call.start_server_batch((received,), lambda event: then(received.message()))

    def send(self, message: bytes, then: Callable[[bool], object]) -> None:
        """Send a message, one at a time. `then` hears whether it could be."""
        self._call.start_server_batch((*self._open(), cygrpc.SendMessageOperation(message, 0)), _outcome(then))

    def end(self, status: int, details: str = "", trailing: Metadata = (), message: bytes | None = None) -> None:
        """End the call, behind the last message where there is one."""
        last = () if message is None else (cygrpc.SendMessageOperation(message, 0),)
        told = cygrpc.SendStatusFromServerOperation(tuple(trailing), status, details, 0)
        self._call.start_server_batch((*self._open(), *last, told), _nothing)

    def _open(self) -> tuple[Any, ...]:
        """What stands before the first message or the end."""
        if self._opened:
            return ()
        self._opened = True
        return (cygrpc.SendInitialMetadataOperation(None, 0),)


def _outcome(then: Callable[[bool], object]) -> Callable[[Any], object]:
    return lambda event: then(bool(event.success))


def _nothing(event: Any) -> None:
    pass


class Core:
    """A server without methods: `arrived` is told of every call, on the core's thread."""

    def __init__(self, options: Sequence[tuple[str, Any]], arrived: Callable[[Rpc], None]) -> None:
        self._arrived = arrived
        self._queue = cygrpc.CompletionQueue()
        self._server = cygrpc.Server(tuple(options), False)
        self._server.register_completion_queue(self._queue)
        self._taking = threading.Lock()
        self._ending = False
        self._thread = threading.Thread(target=self._events, name="onnxla-grpc", daemon=True)

    def listen(self, address: str, credentials: Any = None) -> int:
        """The port, of an address such as `127.0.0.1:0`. Raises OSError where it cannot be had."""
        given = () if credentials is None else (credentials._credentials,)
        port: int = self._server.add_http2_port(address.encode(), *given)
        if not port:
            raise OSError(f"{address} cannot be listened on")
        return port

    def start(self) -> None:
        """Take calls from now on."""
        self._server.start()
        self._take()
        self._thread.start()

    def end(self, then: Callable[[], object]) -> None:
        """Take no more calls, and tell clients so. `then` is called when all have ended."""
        with self._taking:
            self._ending = True
            self._server.shutdown(self._queue, lambda event: then())

    def cancel(self) -> None:
        """End all calls, as UNAVAILABLE; after `end`."""
        self._server.cancel_all_calls()

    def close(self) -> None:
        """After the end of all calls, of which nothing may be asked any more. Returns when the thread has ended."""
        self._server.destroy()
        self._queue.shutdown()
        self._thread.join()

    def _take(self) -> None:
        with self._taking:
            if not self._ending:
                self._server.request_call(self._queue, self._queue, self._come)

    def _come(self, event: Any) -> None:
        if event.success:
            self._take()
            self._arrived(Rpc(event))

    def _events(self) -> None:
        while (event := self._queue.poll()).tag is not None:
            try:
                event.tag(event)
            except Exception:
                _LOG.exception("a fault of onnxla at an event of gRPC")
            del event  # it holds its call
