"""The server: HTTP and gRPC on one event loop, from the first request to the last."""

import asyncio
import logging
import resource
import signal
from collections.abc import Sequence
from contextlib import suppress

from starlette.routing import BaseRoute

from onnxla.serving.access import Access
from onnxla.serving.calls import Calls
from onnxla.serving.grpc.listener import GrpcListener
from onnxla.serving.http.app import App
from onnxla.serving.http.body import Bodies
from onnxla.serving.http.listener import HttpListener
from onnxla.serving.http.page import Page
from onnxla.serving.logs import log
from onnxla.serving.requests import Engine
from onnxla.serving.server_settings import ServerSettings
from onnxla.serving.tracing import Tracer


class Server:
    """Serves an engine's models. Use it on one event loop: `await start()`, `await serve()` or `await stop()`."""

    def __init__(
        self,
        engine: Engine,
        settings: ServerSettings,
        *,
        admin_routes: Sequence[BaseRoute] = (),
        admin_paths: Sequence[str] = (),
        tracer: Tracer | None = None,
    ) -> None:
        """Reads tokens and certificates. `admin_routes` lie below `admin_paths`, beside load and unload.

        Raises InputError for settings that do not work.
        """
        self.engine, self.settings = engine, settings
        self.calls = Calls(engine, settings, Access.of(settings), tracer or Tracer(settings.trace_endpoint))
        self._bodies = Bodies(settings.max_request_bytes, settings.max_body_bytes_in_flight)
        self._admin_routes, self._admin_paths = admin_routes, admin_paths
        self._listeners: list[HttpListener | GrpcListener] = []
        self._stopping: asyncio.Event | None = None
        self._page = Page(self.calls, self._connections)
        self.calls.metrics.gauge("onnxla_connections", "Connections over HTTP.", self._connections)
        self.http_port = self.grpc_port = self.admin_port = -1

    async def start(self) -> None:
        """Listen, and answer. Raises InputError for an address that cannot be had."""
        allow_connections(self.settings.max_connections)
        self._stopping = asyncio.Event()
        separate = self.settings.admin_port is not None
        if self.settings.http_port >= 0:
            self.http_port = await self._listen(self.settings.http_port, not separate)
        if self.settings.grpc_port >= 0:
            grpc = GrpcListener(self.settings, self.calls, self.settings.grpc_port)
            await grpc.start()
            self._listeners.append(grpc)
            self.grpc_port = grpc.port
        if self.settings.admin_port is not None:
            self.admin_port = await self._listen(self.settings.admin_port, True)

    async def _listen(self, port: int, answers_admin: bool) -> int:
        app = App(
            self.calls,
            self._bodies,
            routes=self._page.routes(),
            admin_routes=self._admin_routes,
            admin_paths=self._admin_paths,
            answers_admin=answers_admin,
        )
        listener = HttpListener(self.settings, app, port)
        await listener.start()
        self._listeners.append(listener)
        return listener.port

    def _connections(self) -> int:
        return sum(len(one.connections.all) for one in self._listeners if isinstance(one, HttpListener))

    async def serve(self) -> None:
        """Load the engine's models, and answer until SIGTERM or SIGINT; then drain.

        A second signal ends the process as it always does.
        """
        assert self._stopping is not None, "start() comes first"
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)
        loading = asyncio.create_task(self.engine.start())
        told = asyncio.create_task(self._stopping.wait())
        await asyncio.wait((loading, told), return_when=asyncio.FIRST_COMPLETED)
        if loading.done() and loading.exception() is None:
            await told
        told.cancel()
        loading.cancel()
        await self.stop()
        if loading.done() and not loading.cancelled():
            loading.result()

    def _on_signal(self, number: signal.Signals) -> None:
        log(logging.INFO, f"{number.name}: no more requests are taken, those in flight end")
        for one in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(one)
        assert self._stopping is not None
        self._stopping.set()

    async def stop(self) -> None:
        """Say that the server is not ready, take no more, let requests in flight end, and close the engine.

        Once; a second call does nothing.
        """
        if self.calls.draining:
            return
        self.calls.draining = True
        await asyncio.sleep(self.settings.announce_seconds)
        await asyncio.gather(*(listener.stop() for listener in self._listeners))
        await self.engine.drain(1.0)
        await self.engine.close()
        await asyncio.to_thread(self.calls.tracer.close)


def allow_connections(connections: int) -> None:
    """Raise this process' bound on open files, as far as it may, to what so many connections take."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + 1024
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(
                resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
            )
