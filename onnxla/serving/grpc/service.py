"""The methods of `inference.GRPCInferenceService`: who may call, what the engine answers, errors as gRPC's statuses."""

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn

import grpc
from google.protobuf.json_format import ParseDict, ParseError
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceServicer

from onnxla.errors import harmless_line
from onnxla.serving.access import Kind
from onnxla.serving.calls import Call, Calls, told
from onnxla.serving.errors import ForbiddenError, ServingError, UnsupportedRequestError
from onnxla.serving.grpc.context import Context, Ended
from onnxla.serving.grpc.messages import decode, encode, parameters_of
from onnxla.serving.http.models import EXTENSIONS
from onnxla.serving.requests import Duration, InferRequest, InferResponse, ModelStatistics
from onnxla.version import __version__

_STREAMED = 32
"""Most requests of one stream that are in flight; their answers come in the order of the requests."""

_LONGEST_TEXT = 800
"""Characters of an error: clients read metadata of 8 KiB, and what is not ASCII takes nine bytes there."""

Method = Callable[["InferenceService", Any, Any], Awaitable[Any]]


def _call(kind: Kind) -> Callable[[Method], Method]:
    """A unary method that is not inference: permission before it, errors behind it."""

    def wrap(method: Method) -> Method:
        @functools.wraps(method)
        async def answer(self: "InferenceService", request: Any, context: Context) -> Any:
            try:
                self.admit(kind, context)
                return await method(self, request, context)
            except Exception as error:
                end(context, told(error))

        return answer

    return wrap


def end(context: Context, error: ServingError) -> NoReturn:
    """End the call with the error's status. Raises Ended."""
    trailing = () if error.retry_after is None else (("retry-after", f"{max(1.0, error.retry_after):.0f}"),)
    text = str(error)
    if len(text) > _LONGEST_TEXT:
        text = f"{text[:_LONGEST_TEXT]}... ({len(text)} characters)"
    context.end(getattr(grpc.StatusCode, error.code), text, trailing)
    raise Ended


class InferenceService(GRPCInferenceServiceServicer):  # type: ignore[misc]
    """Triton's service."""

    def __init__(self, calls: Calls) -> None:
        self._calls, self._engine = calls, calls.engine
        self._answers_admin = calls.settings.admin_port is None

    def admit(self, kind: Kind, context: Context) -> str:
        """A name for the client. Raises ServingError."""
        if kind is Kind.ADMIN and not self._answers_admin:
            raise ForbiddenError("admin calls are answered over HTTP at the admin port (--admin-port)")
        return self._calls.admit(kind, dict(context.invocation_metadata()).get("authorization"), peer(context))

    def ModelInfer(self, request: Any, context: Context) -> Any:
        """The answer of a short model, on whatever thread; what is not answered at once is a coroutine that answers."""
        call = self._begun(request, context)
        try:
            asked = self._asked(call, request, context)
            self._calls.begin("grpc")
            try:
                response = self._calls.infer_now(asked)
            finally:
                self._calls.end("grpc")
            return self._wait(call, asked, context) if response is None else self._answered(call, response)
        except Exception as error:
            return self._refuse(call, error, context)

    async def _refuse(self, call: Call, error: Exception, context: Context) -> None:
        end(context, self._calls.failed(call, error))

    async def _wait(self, call: Call, asked: InferRequest, context: Context) -> Any:
        try:
            return await self._infer(call, asked)
        except asyncio.CancelledError:
            self._calls.cancelled(call)
            raise
        except Exception as error:
            end(context, self._calls.failed(call, error))

    def _begun(self, request: Any, context: Context) -> Call:
        return Call("grpc", request.model_name, request.model_version, peer(context), request.id)

    def _asked(self, call: Call, request: Any, context: Context) -> InferRequest:
        """What a client asks of the engine, which it may. Raises ServingError."""
        metadata = dict(context.invocation_metadata())
        self._calls.admit(Kind.INFERENCE, metadata.get("authorization"), call.client)
        return self._decoded(call, request, metadata, context)

    def _decoded(self, call: Call, request: Any, metadata: dict[str, Any], context: Context) -> InferRequest:
        if "traceparent" in metadata or "x-request-id" in metadata:
            call.traceparent = str(metadata.get("traceparent", ""))[:256]
            call.tracestate = str(metadata.get("tracestate", ""))[:256]
            call.request_id = request.id or str(metadata.get("x-request-id", ""))[:256]
        seconds = context.time_remaining()
        return decode(request, None if seconds is None else time.monotonic() + seconds)

    async def _infer(self, call: Call, asked: InferRequest) -> Any:
        self._calls.begin("grpc")
        try:
            response = await self._calls.infer(call, asked)
        finally:
            self._calls.end("grpc")
        return self._answered(call, response)

    def _answered(self, call: Call, response: InferResponse) -> Any:
        message = encode(response)
        self._calls.answered(call, response)
        return message

    async def ModelStreamInfer(self, requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
        """Requests of a stream run beside one another; their answers come in their order, an error as a message."""
        metadata = dict(context.invocation_metadata())
        answers: asyncio.Queue[asyncio.Task[Any] | None] = asyncio.Queue(_STREAMED)
        try:
            self.admit(Kind.INFERENCE, context)
        except ServingError as error:
            end(context, error)

        async def read() -> None:
            try:
                async for request in requests:
                    await answers.put(asyncio.create_task(self._streamed(request, metadata, context)))
            finally:
                await answers.put(None)

        reader = asyncio.create_task(read())
        task: asyncio.Task[Any] | None = None
        try:
            while (task := await answers.get()) is not None:
                yield await task
            await reader
        finally:
            reader.cancel()
            if task is not None:
                task.cancel()
            while not answers.empty():
                if (rest := answers.get_nowait()) is not None:
                    rest.cancel()

    async def _streamed(self, request: Any, metadata: dict[str, Any], context: Context) -> Any:
        call = self._begun(request, context)
        try:
            message = await self._infer(call, self._decoded(call, request, metadata, context))
        except asyncio.CancelledError:
            self._calls.cancelled(call)
            raise
        except Exception as error:
            told_error = self._calls.failed(call, error)
            answer = pb.ModelStreamInferResponse(error_message=str(told_error))
            answer.infer_response.id = request.id
            return answer
        if parameters_of(request.parameters).get("triton_enable_empty_final_response"):
            message.parameters["triton_final_response"].bool_param = True
        return pb.ModelStreamInferResponse(infer_response=message)

    @_call(Kind.OPEN)
    async def ServerLive(self, request: Any, context: Context) -> Any:
        return pb.ServerLiveResponse(live=True)

    @_call(Kind.OPEN)
    async def ServerReady(self, request: Any, context: Context) -> Any:
        return pb.ServerReadyResponse(ready=self._calls.ready())

    @_call(Kind.INFERENCE)
    async def ModelReady(self, request: Any, context: Context) -> Any:
        ready = not self._calls.draining and self._engine.model_ready(request.name, request.version)
        return pb.ModelReadyResponse(ready=ready)

    @_call(Kind.INFERENCE)
    async def ServerMetadata(self, request: Any, context: Context) -> Any:
        return pb.ServerMetadataResponse(name="onnxla", version=__version__, extensions=EXTENSIONS)

    @_call(Kind.INFERENCE)
    async def ModelMetadata(self, request: Any, context: Context) -> Any:
        about = self._engine.metadata(request.name, request.version)
        tensor = pb.ModelMetadataResponse.TensorMetadata
        return pb.ModelMetadataResponse(
            name=about.name,
            versions=about.versions,
            platform=about.platform,
            inputs=[tensor(name=t.name, datatype=t.datatype, shape=t.shape) for t in about.inputs],
            outputs=[tensor(name=t.name, datatype=t.datatype, shape=t.shape) for t in about.outputs],
        )

    @_call(Kind.INFERENCE)
    async def ModelConfig(self, request: Any, context: Context) -> Any:
        response = pb.ModelConfigResponse()
        config = self._engine.config(request.name, request.version)
        try:
            ParseDict(config, response.config, ignore_unknown_fields=True)
        except ParseError as error:
            raise ServingError(f"the model's configuration is none of Triton's: {harmless_line(str(error))}") from None
        return response

    @_call(Kind.INFERENCE)
    async def ModelStatistics(self, request: Any, context: Context) -> Any:
        found = self._engine.statistics(request.name, request.version)
        return pb.ModelStatisticsResponse(model_stats=[_statistics(one) for one in found])

    @_call(Kind.INFERENCE)
    async def RepositoryIndex(self, request: Any, context: Context) -> Any:
        row = pb.RepositoryIndexResponse.ModelIndex
        return pb.RepositoryIndexResponse(
            models=[
                row(name=line.name, version=line.version, state=line.state, reason=line.reason)
                for line in self._engine.index()
                if not request.ready or line.state == "READY"
            ]
        )

    @_call(Kind.ADMIN)
    async def RepositoryModelLoad(self, request: Any, context: Context) -> Any:
        parameters = {
            name: getattr(value, kind)
            for name, value in request.parameters.items()
            if (kind := value.WhichOneof("parameter_choice"))
        }
        await asyncio.shield(self._engine.load(request.model_name, parameters))
        return pb.RepositoryModelLoadResponse()

    @_call(Kind.ADMIN)
    async def RepositoryModelUnload(self, request: Any, context: Context) -> Any:
        await asyncio.shield(self._engine.unload(request.model_name))
        return pb.RepositoryModelUnloadResponse()

    async def _not_here(self, request: Any, context: Context) -> Any:
        end(context, UnsupportedRequestError("shared memory, trace and log settings are not here"))

    SystemSharedMemoryStatus = SystemSharedMemoryRegister = SystemSharedMemoryUnregister = _not_here
    CudaSharedMemoryStatus = CudaSharedMemoryRegister = CudaSharedMemoryUnregister = _not_here
    TraceSetting = LogSettings = _not_here


def peer(context: Context) -> str:
    """The address of who calls, without its port: of `ipv4:127.0.0.1:5000`, `ipv6:%5B::1%5D:5000` or `unix:`."""
    _, _, address = context.peer().partition(":")
    return str(address).rpartition(":")[0] or str(address)


def _duration(duration: Duration) -> Any:
    return pb.StatisticDuration(count=duration.count, ns=duration.ns)


def _statistics(one: ModelStatistics) -> Any:
    return pb.ModelStatistics(
        name=one.name,
        version=one.version,
        last_inference=one.last_inference,
        inference_count=one.inferences,
        execution_count=one.executions,
        inference_stats=pb.InferStatistics(
            success=_duration(one.success),
            fail=_duration(one.fail),
            queue=_duration(one.queue),
            compute_infer=_duration(one.compute),
        ),
        batch_stats=[
            pb.InferBatchStatistics(batch_size=rows, compute_infer=_duration(duration))
            for rows, duration in sorted(one.batches.items())
        ],
    )
