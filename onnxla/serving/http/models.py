"""The routes that tell of the server and its models, and those of the repository."""

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from onnxla.serving.calls import Calls
from onnxla.serving.errors import InvalidRequestError, UnsupportedRequestError
from onnxla.serving.http.body import Bodies
from onnxla.serving.http.messages import read_json
from onnxla.serving.requests import Duration, ModelStatistics, TensorMetadata
from onnxla.version import __version__

EXTENSIONS = (
    "binary_tensor_data",
    "model_configuration",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "statistics",
)
"""Those of Triton's that this server has, by their names in its metadata."""


def server_metadata() -> dict[str, Any]:
    return {"name": "onnxla", "version": __version__, "extensions": list(EXTENSIONS)}


class Models:
    """The endpoints; each is given its place in `routes`."""

    def __init__(self, calls: Calls, bodies: Bodies) -> None:
        self._calls, self._engine, self._bodies = calls, calls.engine, bodies

    def routes(self) -> Sequence[BaseRoute]:
        model = "/v2/models/{model}"
        version = f"{model}/versions/{{version}}"
        both = (
            ("", self.metadata),
            ("/ready", self.model_ready),
            ("/config", self.config),
            ("/stats", self.statistics),
        )
        return [
            Route("/v2", self.server),
            Route("/v2/health/live", self.live),
            Route("/v2/health/ready", self.ready),
            Route("/v2/models/stats", self.statistics),
            Route("/v2/repository/index", self.index, methods=["GET", "POST"]),
            *(Route(start + end, endpoint) for start in (version, model) for end, endpoint in both),
            *(Route(path, self.unsupported, methods=["GET", "POST"]) for path in _NOT_HERE),
        ]

    def admin_routes(self) -> Sequence[BaseRoute]:
        return [
            Route("/v2/repository/models/{model}/load", self.load, methods=["POST"]),
            Route("/v2/repository/models/{model}/unload", self.unload, methods=["POST"]),
        ]

    async def server(self, request: Request) -> Response:
        return JSONResponse(server_metadata())

    async def live(self, request: Request) -> Response:
        return Response()

    async def ready(self, request: Request) -> Response:
        return Response(status_code=200 if self._calls.ready() else 400)  # KServe: 4xx is "false"

    async def model_ready(self, request: Request) -> Response:
        ready = not self._calls.draining and self._engine.model_ready(*_model(request))
        return Response(status_code=200 if ready else 400)

    async def metadata(self, request: Request) -> Response:
        about = self._engine.metadata(*_model(request))
        return JSONResponse(
            {
                "name": about.name,
                "versions": list(about.versions),
                "platform": about.platform,
                "inputs": [_tensor(t) for t in about.inputs],
                "outputs": [_tensor(t) for t in about.outputs],
            }
        )

    async def config(self, request: Request) -> Response:
        return JSONResponse(self._engine.config(*_model(request)))

    async def statistics(self, request: Request) -> Response:
        found = self._engine.statistics(*_model(request))
        return JSONResponse({"model_stats": [_statistics(one) for one in found]})

    async def index(self, request: Request) -> Response:
        ready = (await self._parameters(request)).get("ready") is True
        return JSONResponse(
            [
                {"name": line.name, "version": line.version, "state": line.state, "reason": line.reason}
                for line in self._engine.index()
                if not ready or line.state == "READY"
            ]
        )

    async def load(self, request: Request) -> Response:
        parameters = (await self._parameters(request)).get("parameters") or {}
        if type(parameters) is not dict:
            raise InvalidRequestError("parameters are not a JSON object")
        await asyncio.shield(self._engine.load(_model(request)[0], parameters))  # a client that goes away ends nothing
        return Response()

    async def unload(self, request: Request) -> Response:
        await self._parameters(request)
        await asyncio.shield(self._engine.unload(_model(request)[0]))
        return Response()

    async def unsupported(self, request: Request) -> Response:
        raise UnsupportedRequestError(f"{request.url.path}: this extension of Triton's is not here")

    async def _parameters(self, request: Request) -> dict[str, Any]:
        """The body, which may be empty."""
        body = await self._bodies.read(dict(request.headers.raw), request.receive)
        try:
            return read_json(body, "the request") if body.strip() else {}
        finally:
            self._bodies.release(body)


_NOT_HERE = (
    "/v2/trace/setting",
    "/v2/models/{model}/trace/setting",
    "/v2/logging",
    "/v2/systemsharedmemory/{rest:path}",
    "/v2/cudasharedmemory/{rest:path}",
    "/v2/models/{model}/generate",
    "/v2/models/{model}/generate_stream",
    "/v2/models/{model}/versions/{version}/generate",
    "/v2/models/{model}/versions/{version}/generate_stream",
)


def _model(request: Request) -> tuple[str, str]:
    return request.path_params.get("model", ""), request.path_params.get("version", "")


def _tensor(tensor: TensorMetadata) -> dict[str, Any]:
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}


def _duration(duration: Duration) -> dict[str, int]:
    return {"count": duration.count, "ns": duration.ns}


def _statistics(one: ModelStatistics) -> dict[str, Any]:
    """As Triton's statistics extension has them; what this server does not measure apart stands at zero there."""
    none = {"count": 0, "ns": 0}
    return {
        "name": one.name,
        "version": one.version,
        "last_inference": one.last_inference,
        "inference_count": one.inferences,
        "execution_count": one.executions,
        "inference_stats": {
            "success": _duration(one.success),
            "fail": _duration(one.fail),
            "queue": _duration(one.queue),
            "compute_input": none,
            "compute_infer": _duration(one.compute),
            "compute_output": none,
            "cache_hit": none,
            "cache_miss": none,
        },
        "batch_stats": [
            {"batch_size": rows, "compute_input": none, "compute_infer": _duration(duration), "compute_output": none}
            for rows, duration in sorted(one.batches.items())
        ],
    }
