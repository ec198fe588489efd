"""The page at `/`: the server's state, its models, their latencies and memory, and the page of each model's inside.

Names come from models of strangers: they are escaped, and a Content-Security-Policy allows this server's own script and
style alone. A model's page has a policy of its own, and stands in a sandbox without this server's origin.
"""

import html
import re
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from onnxla.errors import harmless_line
from onnxla.serving.calls import Calls
from onnxla.serving.errors import OverloadedError
from onnxla.serving.measurements import ModelMeasurements
from onnxla.serving.metrics import CONTENT_TYPE, quantile
from onnxla.serving.requests import ModelStatistics, ModelStatus
from onnxla.version import __version__

_SAFE = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
}
_NOWHERE = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_STATUS_POLICY = f"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; {_NOWHERE}"
_MODEL_POLICY = (
    f"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; {_NOWHERE}; sandbox allow-scripts"
)
_EXPLAINED_AT_ONCE = 2


class Page:
    """The routes of the page, and of the metrics that it links to."""

    def __init__(self, calls: Calls, connections: Callable[[], int]) -> None:
        self._calls, self._engine, self._connections = calls, calls.engine, connections
        self._started = time.monotonic()
        self._explaining = 0

    def routes(self) -> Sequence[BaseRoute]:
        return [
            Route("/", self.status),
            Route("/metrics", self.metrics),
            Route("/page/status.css", self.style),
            Route("/page/status.js", self.script),
            Route("/page/models/{model}/versions/{version}", self.model),
        ]

    async def status(self, request: Request) -> Response:
        return _answer(self._status_html(), "text/html; charset=utf-8", _STATUS_POLICY)

    async def style(self, request: Request) -> Response:
        return _answer(_template("status.css"), "text/css; charset=utf-8")

    async def script(self, request: Request) -> Response:
        return _answer(_template("status.js"), "text/javascript; charset=utf-8")

    async def metrics(self, request: Request) -> Response:
        return Response(self._calls.metrics.text(), headers={**_SAFE, "content-type": CONTENT_TYPE})

    async def model(self, request: Request) -> Response:
        if self._explaining >= _EXPLAINED_AT_ONCE:
            raise OverloadedError("pages of other models are being made: try again in a moment", retry_after=5.0)
        self._explaining += 1
        try:
            page = await self._engine.explain(request.path_params["model"], request.path_params["version"])
        finally:
            self._explaining -= 1
        return _answer(page, "text/html; charset=utf-8", _MODEL_POLICY)

    def _status_html(self) -> str:
        calls, engine = self._calls, self._engine
        ready = calls.ready()
        state = "draining" if calls.draining else "ready" if ready else "not ready"
        index = engine.index()
        statistics = {(one.name, one.version): one for one in engine.statistics()}
        measured = engine.measurements()
        distributions = {(one.name, one.version): one for one in measured.models}
        rows = [
            _row(line, statistics.get((line.name, line.version)), distributions.get((line.name, line.version)))
            for line in sorted(index, key=lambda line: (line.name, _number(line.version)))
        ]
        facts = {
            "Up for": _elapsed(time.monotonic() - self._started),
            "Models ready": f"{len({i.name for i in index if i.state == 'READY'})} of {len({i.name for i in index})}",
            "Connections (HTTP)": f"{self._connections():,}",
            "Requests in flight": f"{calls.in_flight('http') + calls.in_flight('grpc'):,}",
            "Compiles running": f"{measured.compiling} + {measured.compiles_waiting} waiting",
            "Found in the cache": f"{measured.cache_hits:,} of {measured.cache_hits + measured.cache_misses:,}",
        }
        parts = {
            "title": f"onnxla: {state}",
            "server": html.escape(__version__),
            "state": "ready" if ready else "unavailable",
            "state_text": state,
            "facts": "\n".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items()),
            "rows": "\n".join(rows),
            "none": "" if rows else '<p class="none">The repository has no models.</p>',
        }
        return re.sub(r"\{\{(\w+)\}\}", lambda m: parts[m[1]], _template("status.html"))


def _row(line: ModelStatus, counts: ModelStatistics | None, measured: ModelMeasurements | None) -> str:
    name, version = _escaped(line.name), _escaped(line.version)
    reason = f'<span class="reason">{_escaped(line.reason)}</span>' if line.reason else ""
    state = f'<span class="state {_escaped(line.state.lower())}">{_escaped(line.state.lower())}</span>{reason}'
    path = f"/page/models/{quote(line.name, safe='')}/versions/{quote(line.version, safe='')}"
    inside = f'<a href="{html.escape(path)}" id="inside-{name}-{version}" aria-label="Inside {name}">page</a>'
    numbers = [""] * 8
    if counts is not None:
        quantiles = [None, None] if measured is None else [quantile(measured.latency, share) for share in (0.5, 0.99)]
        runs = counts.executions
        numbers = [
            f"{counts.success.count:,}",
            f"{counts.fail.count:,}",
            *(_milliseconds(seconds) for seconds in quantiles),
            f"{counts.queued:,}",
            f"{counts.running:,}",
            f"{counts.inferences / runs:.1f}" if runs else "",
            _size(counts.memory_bytes) if counts.memory_bytes else "",
        ]
    cells = "".join(f'<td class="number">{number}</td>' for number in numbers)
    return (
        f'<tr><th scope="row">{name}</th><td>{version}</td><td>{state}</td>{cells}'
        f"<td>{inside if line.state == 'READY' else ''}</td></tr>"
    )


def _answer(text: str, kind: str, policy: str = "default-src 'none'; frame-ancestors 'none'") -> Response:
    return Response(text, headers={**_SAFE, "content-type": kind, "content-security-policy": policy})


def _escaped(text: str) -> str:
    return html.escape(harmless_line(text), quote=True)


def _number(version: str) -> tuple[int, str]:
    return (int(version) if version.isascii() and version.isdigit() else 0, version)


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.3g} ms"


def _size(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB" if count < 2**30 else f"{count / 2**30:,.2f} GiB"


def _elapsed(seconds: float) -> str:
    minutes, left = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes} min" if hours else f"{minutes} min {left} s"


@cache
def _template(name: str) -> str:
    return resources.files("onnxla.serving.http").joinpath("template", name).read_text(encoding="utf-8")
