"""The ASGI application: who may call, which route answers, and errors in the protocol's form."""

import asyncio
import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Router

from onnxla.errors import harmless_line
from onnxla.serving.access import Kind
from onnxla.serving.calls import Call, Calls, told
from onnxla.serving.errors import ForbiddenError, ServingError
from onnxla.serving.http.answers import Send, send_error
from onnxla.serving.http.body import Bodies, GoneError, Headers, Receive
from onnxla.serving.http.connections import Connection
from onnxla.serving.http.inference import Inference, ended, model_of
from onnxla.serving.http.models import Models
from onnxla.serving.logs import log

HEALTH = "/v2/health/"
ADMIN = "/v2/repository/models/"


class App:
    """All of HTTP. Admin calls are answered by routes of their own, which no other path leads to."""

    def __init__(
        self,
        calls: Calls,
        bodies: Bodies,
        *,
        routes: Sequence[BaseRoute] = (),
        admin_routes: Sequence[BaseRoute] = (),
        admin_paths: Sequence[str] = (),
        answers_admin: bool = True,
    ) -> None:
        """`routes`, `admin_routes`: further ones, the latter below `admin_paths`. `answers_admin`: whether admin calls
        are answered here, and not at a port of their own."""
        models = Models(calls, bodies)
        self._calls = calls
        self._inference = Inference(calls, bodies)
        self._router = Router([*models.routes(), *routes], redirect_slashes=False)
        self._admin = Router([*models.admin_routes(), *admin_routes], redirect_slashes=False)
        self._admin_paths = (ADMIN, *admin_paths)
        self._answers_admin = answers_admin

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        headers: Headers = dict(scope["headers"])
        path, connection = scope["path"], scope["connection"]
        model = model_of(path) if scope["method"] == "POST" else None
        if model is None:
            await self._manage(scope, headers, receive, send)
            return
        call = Call("http", *model, connection.address)
        if b"traceparent" in headers or b"x-request-id" in headers:
            call.request_id = _text(headers.get(b"x-request-id"))
            call.traceparent, call.tracestate = _text(headers.get(b"traceparent")), _text(headers.get(b"tracestate"))
        await self._inference.answer(call, headers, receive, send, connection)

    async def _manage(self, scope: dict[str, Any], headers: Headers, receive: Receive, send: Send) -> None:
        """Every call but inference."""
        connection: Connection = scope["connection"]
        path = scope["path"]
        started = False

        async def watched(message: dict[str, Any]) -> None:
            nonlocal started
            started = True
            await send(message)

        scope["app"] = self  # so that Starlette raises what it does not find
        connection.request = asyncio.current_task()
        admin = path.startswith(self._admin_paths)
        kind = Kind.ADMIN if admin else Kind.OPEN if path.startswith(HEALTH) else Kind.INFERENCE
        try:
            if admin and not self._answers_admin:
                raise ForbiddenError("admin calls are answered at the admin port (--admin-port)")
            client = self._calls.admit(kind, headers.get(b"authorization"), connection.address)
            if kind is not Kind.OPEN:
                acts = scope["method"] not in ("GET", "HEAD")
                self._calls.access.check_page(acts, headers.get(b"origin"), headers.get(b"host"))
            connection.patient = admin
            await (self._admin if admin else self._router)(scope, receive, watched)  # type: ignore[arg-type]
            if admin:
                log(logging.INFO, "admin", method=scope["method"], path=path, client=client)
        except GoneError:
            return
        except asyncio.CancelledError:
            if started or connection.transport.is_closing():
                return
            asyncio.current_task().uncancel()  # type: ignore[union-attr]
            await send_error(send, ended(connection))
        except Exception as error:
            if started:
                raise
            answer = _routing_error(scope, error) if isinstance(error, HTTPException) else told(error)
            if admin:
                log(logging.WARNING, "admin", method=scope["method"], path=path, error=str(answer))
            await send_error(send, answer, browser=path == "/" or path.startswith("/page/"))
        finally:
            connection.request = None


class _RoutingError(ServingError):
    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = HTTPStatus(status)


def _routing_error(scope: dict[str, Any], error: HTTPException) -> ServingError:
    path = harmless_line(scope["path"])
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED or model_of(scope["path"]) is not None:
        return _RoutingError(f"{scope['method']} is no method of {path}", HTTPStatus.METHOD_NOT_ALLOWED)
    if error.status_code == HTTPStatus.NOT_FOUND:
        return _RoutingError(f"there is no {path} here: docs/serving.md lists the routes", error.status_code)
    return _RoutingError(str(error.detail), error.status_code)


def _text(header: bytes | None) -> str:
    return "" if header is None else header.decode("latin-1")[:256]
