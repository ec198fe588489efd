"""uvicorn, told how: our connections, no signal handlers, sockets that are bound before it starts."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import uvicorn

from onnxla.errors import InputError
from onnxla.serving.http.connections import Connection, Connections
from onnxla.serving.server_settings import ServerSettings

_BACKLOG = 2048
_IDLE_SECONDS = 0.5
"""How long connections without a request stay when the server ends: one may be on its way."""
_LAST_SECONDS = 1.0
"""How long the last answers have to leave."""


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the server's as a whole."""
        yield


class HttpListener:
    """One port of HTTP, on the running event loop."""

    def __init__(self, settings: ServerSettings, app: Any, port: int) -> None:
        """Binds the port. Raises InputError where that fails."""
        self.connections = Connections(settings)
        self._socket = bind(settings.host, port)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app,
            http=self.connections.protocol,  # type: ignore[arg-type]
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=max(1, round(settings.idle_seconds)),
            timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
            backlog=_BACKLOG,
        )
        config.load()
        if settings.tls_cert is not None:
            config.ssl = tls_context(settings)
        self._server = _Uvicorn(config)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Answer from now on."""
        self._tasks = [
            asyncio.create_task(self._server.serve(sockets=[self._socket])),
            asyncio.create_task(self.connections.watch()),
        ]
        while not self._server.started and not self._tasks[0].done():
            await asyncio.sleep(0.005)
        if self._tasks[0].done():
            self._tasks[0].result()

    async def stop(self) -> None:
        """Take no more connections; what has arrived is answered within the time that settings give, and no more."""
        self.connections.end_soon()
        await self._refuse()
        await self.connections.gone(_IDLE_SECONDS)
        self._server.should_exit = True
        await self._tasks[0]
        await self.connections.gone(_LAST_SECONDS)
        self._tasks[1].cancel()

    async def _refuse(self) -> None:
        """Close the port. Connections that were made and not yet taken are taken first: they would be reset."""
        loop, made = asyncio.get_running_loop(), []
        with contextlib.suppress(OSError):
            for _ in range(_BACKLOG):
                made.append(self._socket.accept()[0])
        for server in self._server.servers:
            server.close()
        config, state = self._server.config, self._server.server_state

        def protocol() -> Connection:
            return self.connections.protocol(config=config, server_state=state, app_state={})

        taken = [loop.create_task(loop.connect_accepted_socket(protocol, one, ssl=config.ssl)) for one in made]
        if taken:
            await asyncio.wait(taken, timeout=_IDLE_SECONDS)


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens at this address. Raises InputError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)  # asyncio sets TCP_NODELAY where the protocol is said to be TCP
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except (OSError, OverflowError) as error:
        raise InputError(f"{host} port {port} cannot be listened on: {error}") from None
    return found


def tls_context(settings: ServerSettings) -> ssl.SSLContext:
    """TLS 1.2 or newer with the settings' certificate. Raises InputError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(str(settings.tls_cert), str(settings.tls_key))
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{settings.tls_cert} and {settings.tls_key} are no certificate and key: {error}") from None
    return context
