"""Compile jobs over HTTP. All of these are admin calls; whoever mounts the routes asks for the token.

POST   /v2/compile                a model, or an archive of one, as the body -> 202 and a job
GET    /v2/compile                all jobs, the newest first
GET    /v2/compile/{id}           a job; with ?wait=SECONDS&revision=N when it is another one than this
GET    /v2/compile/{id}/events    its progress as server-sent events, until it ends
GET    /v2/compile/{id}/result    what came of it: report and problems; with ?format=text for people
DELETE /v2/compile/{id}           cancel it
GET    /v2/artifacts/{sha256}     an artifact, or ranges of it
"""

import json
import math
from collections.abc import AsyncIterator
from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from onnxla.serving.errors import InvalidRequestError
from onnxla.serving.jobs.job import Job
from onnxla.serving.jobs.manager import Jobs
from onnxla.serving.jobs.query import request_of_query
from onnxla.serving.jobs.upload import require_name

PATHS = ("/v2/compile", "/v2/artifacts/")
"""How the paths of all routes begin."""
_LONGEST_WAIT = 60.0
_HEARTBEAT = 15.0
"""Seconds after which a stream of events says that it is still there."""
_NO_STORE = {"cache-control": "no-store"}


def routes(jobs: Jobs) -> list[BaseRoute]:
    """The routes for these jobs. Endpoints raise ServingErrors, which are whoever mounts them's to answer."""

    async def submit(request: Request) -> Response:
        query = request.query_params.multi_items()
        name = require_name(request.query_params.get("name", "model.onnx"))
        wanted = request_of_query(query)
        job = await jobs.submit(_body(request), wanted, name, request.query_params.get("id"))
        headers = _NO_STORE | {"location": f"/v2/compile/{job.id}"}
        return JSONResponse(job.to_json(), HTTPStatus.ACCEPTED, headers)

    async def index(request: Request) -> Response:
        return JSONResponse({"jobs": [job.to_json() for job in jobs.jobs()]}, headers=_NO_STORE)

    async def show(request: Request) -> Response:
        job = jobs.job(request.path_params["id"])
        wait = _number(request, "wait", 0.0, _LONGEST_WAIT)
        if wait and not job.state.is_final:
            await job.compile.wait_for_change(int(_number(request, "revision", -1.0, 2.0**53)), wait)
        return JSONResponse(job.to_json(), headers=_NO_STORE)

    async def events(request: Request) -> Response:
        job = jobs.job(request.path_params["id"])
        headers = _NO_STORE | {"x-accel-buffering": "no"}
        return StreamingResponse(_events(job), media_type="text/event-stream", headers=headers)

    async def result(request: Request) -> Response:
        outcome = jobs.outcome(request.path_params["id"])
        if request.query_params.get("format") == "text":
            text = outcome.text if outcome.error is None else f"{outcome.text}\n{outcome.error}".strip()
            return PlainTextResponse(text + "\n", headers=_NO_STORE)
        return JSONResponse(dict(outcome.document), headers=_NO_STORE)

    async def cancel(request: Request) -> Response:
        return JSONResponse(jobs.cancel(request.path_params["id"]).to_json(), headers=_NO_STORE)

    async def artifact(request: Request) -> Response:
        digest = request.path_params["sha256"]
        path = await jobs.artifact(digest)
        headers = {"etag": f'"{digest}"', "cache-control": "private, immutable", "x-content-type-options": "nosniff"}
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if headers["etag"] in known or "*" in known:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return FileResponse(path, headers=headers, media_type="application/octet-stream")

    return [
        Route("/v2/compile", submit, methods=["POST"]),
        Route("/v2/compile", index, methods=["GET"]),
        Route("/v2/compile/{id}", show, methods=["GET"]),
        Route("/v2/compile/{id}", cancel, methods=["DELETE"]),
        Route("/v2/compile/{id}/events", events, methods=["GET"]),
        Route("/v2/compile/{id}/result", result, methods=["GET"]),
        Route("/v2/artifacts/{sha256}", artifact, methods=["GET"]),
    ]


async def _body(request: Request) -> AsyncIterator[bytes]:
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect:
        raise InvalidRequestError("the model was not sent to its end") from None


async def _events(job: Job) -> AsyncIterator[str]:
    """`event: progress`, and at the end `event: end`, each with the job as JSON."""
    revision = -1
    while True:
        is_final, told = job.state.is_final, job.compile.revision
        if is_final or told != revision:
            yield f"event: {'end' if is_final else 'progress'}\ndata: {json.dumps(job.to_json())}\n\n"
        else:
            yield ": still here\n\n"
        if is_final:
            return
        revision = told
        await job.compile.wait_for_change(revision, _HEARTBEAT)


def _number(request: Request, name: str, default: float, most: float) -> float:
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= most:
        raise InvalidRequestError(f"{name}={text[:40]}: a number from 0 to {most:g} is needed")
    return number
