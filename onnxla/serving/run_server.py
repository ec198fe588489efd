"""Engine, compile jobs and protocols put together: what `onnxla serve` runs until it is told to end."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import uvloop

from onnxla.errors import InputError, harmless_line
from onnxla.serving.engine import ServingEngine
from onnxla.serving.jobs.manager import Jobs
from onnxla.serving.jobs.metrics import JobMetrics
from onnxla.serving.jobs.routes import PATHS, routes
from onnxla.serving.jobs.settings import JobSettings
from onnxla.serving.logs import log, start_logging
from onnxla.serving.server import Server
from onnxla.serving.server_settings import ServerSettings
from onnxla.serving.settings import EngineSettings
from onnxla.version import __version__

PARTS: dict[str, type[Any]] = {"": ServerSettings, "engine": EngineSettings, "jobs": JobSettings}
"""Whose settings a name belongs to, by what stands before its dot."""


@dataclass
class Wanted:
    """Settings by part and name, as somebody gave them."""

    parts: dict[str, dict[str, Any]] = field(default_factory=lambda: {part: {} for part in PARTS})
    with_jobs: bool = True

    def set_text(self, text: str) -> None:
        """`name=value`, `engine.name=value` or `jobs.name=value`. Raises InputError."""
        name, sign, value = text.partition("=")
        part, _, name = name.rpartition(".")
        hints = get_type_hints(PARTS[part]) if part in PARTS else {}
        if not sign or name not in hints:
            known = [f"{p}{'.' * bool(p)}{one.name}" for p, kind in PARTS.items() for one in fields(kind)]
            raise InputError(f"--set {harmless_line(text)!r}: NAME=VALUE is needed, with a name of {', '.join(known)}")
        try:
            self.parts[part][name] = read_as(hints[name], value)
        except ValueError as error:
            raise InputError(f"--set {harmless_line(text)!r}: {error}") from None


def read_as(kind: Any, text: str) -> Any:
    """The value that `text` is for a setting of this type. Raises ValueError."""
    if get_origin(kind) in (Union, UnionType):
        kind = next(one for one in get_args(kind) if one is not type(None))
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError("choose true or false")
        return text.lower() == "true"
    if get_origin(kind) is tuple:
        return tuple(part for part in text.split(",") if part)
    if get_origin(kind) is Literal:
        return text
    if kind in (int, float, str, Path):
        return kind(text)
    raise ValueError("it cannot be set from the command line")


def run_server(wanted: Wanted) -> None:
    """Serve until SIGTERM or SIGINT. Raises InputError for settings, addresses and folders that cannot be used."""
    uvloop.run(_serve(wanted))


async def _serve(wanted: Wanted) -> None:
    settings = ServerSettings(**wanted.parts[""])
    start_logging(settings.log)
    engine = ServingEngine(EngineSettings(**wanted.parts["engine"]))
    jobs = Jobs(JobSettings(**wanted.parts["jobs"])) if wanted.with_jobs else None
    try:
        server = Server(engine, settings, admin_routes=routes(jobs) if jobs else (), admin_paths=PATHS if jobs else ())
        if jobs is not None:
            server.calls.metrics.register(JobMetrics(jobs))
        await server.start()
        _announce(server, engine)
        await server.serve()
    finally:
        if jobs is not None:
            await jobs.close()


def _announce(server: Server, engine: ServingEngine) -> None:
    settings = server.settings
    secure = "s" * (settings.tls_cert is not None)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    addresses: Sequence[tuple[str, str, int]] = (
        ("http", f"http{secure}://{host}", server.http_port),
        ("grpc", f"grpc{secure}://{host}", server.grpc_port),
        ("admin", f"http{secure}://{host}", server.admin_port),
    )
    told = {name: f"{start}:{port}" for name, start, port in addresses if port >= 0}
    log(logging.INFO, f"onnxla {__version__} serves {engine.settings.repository}", **told)
    if not settings.local and settings.token_file is None:
        log(logging.WARNING, "whoever reaches this address may send requests: --token-file asks for a token")
