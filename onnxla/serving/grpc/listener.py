"""grpcio's server, told how: limits, TLS, and the standard health service beside Triton's."""

import asyncio
from typing import Any

import grpc
from tritonclient.grpc.service_pb2_grpc import add_GRPCInferenceServiceServicer_to_server

from onnxla.errors import InputError
from onnxla.serving.calls import Calls
from onnxla.serving.grpc.gate import Gate
from onnxla.serving.grpc.health import Health
from onnxla.serving.grpc.server import Server
from onnxla.serving.grpc.service import InferenceService
from onnxla.serving.server_settings import ServerSettings

SERVICE = "inference.GRPCInferenceService"
_QUIET_SECONDS, _LONGEST_SECONDS = 0.15, 1.0
"""A server closes when no call has come for so long, or after so long."""


class GrpcListener:
    """One port of gRPC, on the running event loop."""

    def __init__(self, settings: ServerSettings, calls: Calls, port: int) -> None:
        """Binds the port. Raises InputError where that fails."""
        self._settings, self._calls, self._gate = settings, calls, Gate()
        self._server = Server(_options(settings), self._gate)
        add_GRPCInferenceServiceServicer_to_server(InferenceService(calls), self._server)
        self._health = Health("", SERVICE)
        self._server.add_generic_rpc_handlers([self._health.handlers()])
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        try:
            self.port = self._server.add_port(f"{host}:{port}", _credentials(settings))
        except OSError as error:
            raise InputError(str(error)) from None
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Answer from now on."""
        self._tell_health()
        self._server.start()
        self._watch = asyncio.create_task(self._keep_telling())

    async def stop(self) -> None:
        """Take no more calls; those in flight end within the time that settings give."""
        if self._watch is not None:
            self._watch.cancel()
        self._tell_health()
        await self._gate.shut(_QUIET_SECONDS, _LONGEST_SECONDS)
        stopping = asyncio.create_task(self._server.stop(self._settings.drain_seconds))
        await asyncio.sleep(0.05)  # clients are told of the end before they have the answers that were held
        self._gate.open()
        await stopping

    async def _keep_telling(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            self._tell_health()

    def _tell_health(self) -> None:
        self._health.tell(self._calls.ready())


def _options(settings: ServerSettings) -> list[tuple[str, Any]]:
    return [
        ("grpc.max_receive_message_length", settings.max_request_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", settings.max_header_bytes),
        ("grpc.absolute_max_metadata_size", settings.max_header_bytes),
        ("grpc.max_allowed_incoming_connections", settings.max_connections),
        ("grpc.max_concurrent_streams", settings.max_requests),
        ("grpc.server_handshake_timeout_ms", int(settings.head_seconds * 1000)),
        ("grpc.keepalive_time_ms", int(settings.body_seconds * 1000)),
        ("grpc.keepalive_timeout_ms", int(settings.head_seconds * 1000)),
        ("grpc.http2.min_ping_interval_without_data_ms", 5000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.so_reuseport", 0),
    ]


def _credentials(settings: ServerSettings) -> Any:
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    try:
        pair = (settings.tls_key.read_bytes(), settings.tls_cert.read_bytes())
    except OSError as error:
        raise InputError(f"the certificate or its key cannot be read: {error}") from None
    return grpc.ssl_server_credentials([pair])
