"""The route of inference: an ASGI endpoint of its own, since it is the one that many requests take."""

import asyncio
from http import HTTPStatus

from onnxla.serving.access import Kind
from onnxla.serving.calls import Call, Calls
from onnxla.serving.errors import NotReadyError, ServingError, TooLargeError
from onnxla.serving.http.answers import Send, send_error, send_inference
from onnxla.serving.http.body import Bodies, GoneError, Headers, Receive
from onnxla.serving.http.connections import Connection
from onnxla.serving.http.messages import decode, encode
from onnxla.serving.requests import InferResponse


class SlowBodyError(ServingError):
    """The body did not arrive in time."""

    status, code = HTTPStatus.REQUEST_TIMEOUT, "DEADLINE_EXCEEDED"


def ended(connection: Connection) -> ServingError:
    """Why a call was cancelled whose client is still there."""
    if connection.too_slow:
        return SlowBodyError("the request's body did not arrive in time")
    return NotReadyError("the server ended before the result was there")


def model_of(path: str) -> tuple[str, str] | None:
    """(model, version) of `/v2/models/M/infer` and `/v2/models/M/versions/V/infer`; None for any other path."""
    parts = path.split("/")
    if parts[:3] != ["", "v2", "models"] or parts[-1] != "infer" or not parts[3]:
        return None
    if len(parts) == 5:
        return parts[3], ""
    if len(parts) == 7 and parts[4] == "versions" and parts[5]:
        return parts[3], parts[5]
    return None


class Inference:
    """Answers inference requests: reads, asks the engine, writes."""

    def __init__(self, calls: Calls, bodies: Bodies) -> None:
        self._calls, self._bodies = calls, bodies
        self._max_json = calls.settings.max_json_bytes

    async def answer(self, call: Call, headers: Headers, receive: Receive, send: Send, connection: Connection) -> None:
        """One request, whatever becomes of it. `connection` ends it when the client goes away or is too slow."""
        calls = self._calls
        connection.request = asyncio.current_task()
        try:
            response, json_length, pieces = await self._run(call, headers, receive)
            calls.answered(call, response)
            await send_inference(send, json_length, pieces)
        except GoneError:
            calls.cancelled(call)
        except asyncio.CancelledError:
            if connection.transport.is_closing():
                calls.cancelled(call)
                return
            asyncio.current_task().uncancel()  # type: ignore[union-attr]
            await send_error(send, calls.failed(call, ended(connection)))
        except Exception as error:
            await send_error(send, calls.failed(call, error))
        finally:
            connection.request = None

    async def _run(
        self, call: Call, headers: Headers, receive: Receive
    ) -> tuple[InferResponse, int | None, list[bytes | memoryview]]:
        calls = self._calls
        calls.access.check_page(True, headers.get(b"origin"), headers.get(b"host"))
        calls.admit(Kind.INFERENCE, headers.get(b"authorization"), call.client)
        calls.begin("http")
        try:
            body = await self._bodies.read(headers, receive)
            try:
                header_length = headers.get(b"inference-header-content-length")
                self._require_json_size(body, header_length)
                request, form = decode(call.model, call.version, body, header_length)
                call.request_id = request.id or call.request_id
                response = await calls.infer(call, request)
            finally:
                self._bodies.release(body)
            return response, *encode(response, form)
        finally:
            calls.end("http")

    def _require_json_size(self, body: bytes, header_length: bytes | None) -> None:
        size = len(body)
        length = size if header_length is None or not header_length.isdigit() else min(size, int(header_length[:18]))
        if length > self._max_json:
            raise TooLargeError(
                f"the request has {length} bytes of JSON, more than the {self._max_json} that this server reads "
                "(--max-json-bytes): send tensors as binary data"
            )
