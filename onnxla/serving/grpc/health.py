"""gRPC's standard health service, `grpc.health.v1.Health`: which services are ready, now and whenever it changes.

Its messages are declared here: those of grpcio-health-checking need a newer protobuf than Triton's clients allow, so
that one who installed a client beside the server had a server that does not start.
Source: https://github.com/grpc/grpc/blob/master/doc/health-checking.md and its `health.proto`.
"""

import asyncio
from enum import IntEnum
from typing import Any

import grpc
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

PACKAGE = "grpc.health.v1"


class Status(IntEnum):
    """`HealthCheckResponse.ServingStatus`."""

    SERVING = 1
    NOT_SERVING = 2
    SERVICE_UNKNOWN = 3


def _messages() -> tuple[Any, Any]:
    """The classes of `HealthCheckRequest` and `HealthCheckResponse`.

    Their pool is their own, so that a process may have grpcio-health-checking's as well. The status is declared as a
    number, which is the same on the wire.
    """
    file = FileDescriptorProto(name="grpc/health/v1/health.proto", package=PACKAGE, syntax="proto3")
    for message, field, kind in (
        ("HealthCheckRequest", "service", FieldDescriptorProto.TYPE_STRING),
        ("HealthCheckResponse", "status", FieldDescriptorProto.TYPE_INT32),
    ):
        declared = file.message_type.add(name=message)
        declared.field.add(name=field, number=1, type=kind, label=FieldDescriptorProto.LABEL_OPTIONAL)
    pool = DescriptorPool()
    pool.Add(file)
    request, response = (pool.FindMessageTypeByName(f"{PACKAGE}.{m.name}") for m in file.message_type)
    return GetMessageClass(request), GetMessageClass(response)


_Request, _Response = _messages()


class Health:
    """What is told of some services; on one event loop. Those who watch wait for nobody who does not read."""

    def __init__(self, *services: str) -> None:
        self._statuses = dict.fromkeys(services, Status.NOT_SERVING)
        self._changed = asyncio.Event()
        """Set, and replaced, at the next change."""

    def tell(self, ready: bool) -> None:
        """What holds for all services from now on."""
        status = Status.SERVING if ready else Status.NOT_SERVING
        if set(self._statuses.values()) != {status}:
            self._statuses = dict.fromkeys(self._statuses, status)
            self._changed.set()
            self._changed = asyncio.Event()

    def handlers(self) -> Any:
        """For `add_generic_rpc_handlers` of a server."""
        coding = {"request_deserializer": _Request.FromString, "response_serializer": _Response.SerializeToString}
        methods = {
            "Check": grpc.unary_unary_rpc_method_handler(self._check, **coding),
            "Watch": grpc.unary_stream_rpc_method_handler(self._watch, **coding),
        }
        return grpc.method_handlers_generic_handler(f"{PACKAGE}.Health", methods)

    async def _check(self, request: Any, context: Any) -> Any:
        status = self._statuses.get(request.service)
        if status is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such service")
        return _Response(status=status)

    async def _watch(self, request: Any, context: Any) -> None:
        """The status now, and whenever it is another one, until the client goes."""
        told = None
        while True:
            changed, status = self._changed, self._statuses.get(request.service, Status.SERVICE_UNKNOWN)
            if status != told:
                await context.write(_Response(status=status))
            told = status
            await changed.wait()
