"""What a server is told before it starts: addresses, tokens, limits and times, each with its default."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from onnxla.errors import InputError


def _setting(default: Any, about: str) -> Any:
    return field(default=default, metadata={"about": about})


@dataclass(frozen=True)
class ServerSettings:
    """Every setting of the protocols. Sizes in bytes, times in seconds. Raises InputError for nonsense."""

    host: str = _setting("127.0.0.1", "Address to listen on; `0.0.0.0` for all of the machine's.")
    http_port: int = _setting(8000, "Port of HTTP; 0 lets the system choose, -1 leaves HTTP out.")
    grpc_port: int = _setting(8001, "Port of gRPC; 0 lets the system choose, -1 leaves gRPC out.")
    admin_port: int | None = _setting(None, "HTTP port of admin calls, which the others refuse then.")
    hosts: tuple[str, ...] = _setting(
        (),
        "Names by which HTTP may be called, separated by commas. By default any; without tokens and on `127.0.0.1` "
        "those of this machine alone.",
    )
    token_file: Path | None = _setting(None, "File with bearer tokens, one a line, for all calls but health.")
    admin_token_file: Path | None = _setting(None, "File with the bearer tokens of admin calls: load, unload, jobs.")
    tls_cert: Path | None = _setting(None, "Certificate chain (PEM) of HTTP and gRPC.")
    tls_key: Path | None = _setting(None, "Its private key (PEM).")
    max_request_bytes: int = _setting(64 * 2**20, "Largest request, as sent and with its compression undone.")
    max_json_bytes: int = _setting(16 * 2**20, "Largest JSON of a request: it is read while others wait.")
    max_body_bytes_in_flight: int = _setting(2**30, "Most bytes of HTTP requests that are being received or run.")
    max_header_bytes: int = _setting(16 * 2**10, "Largest head of a request: address and headers, or gRPC's metadata.")
    max_connections: int = _setting(4096, "Most connections over HTTP; above it the one that idles longest goes.")
    max_connections_per_client: int = _setting(0, "Most connections over HTTP from one address; 0 for any number.")
    max_requests: int = _setting(1024, "Most requests in flight, of each protocol; more are told to come later.")
    rate: float = _setting(0.0, "Most requests per second of one client (its token, or its address); 0 for any number.")
    head_seconds: float = _setting(10.0, "Longest time that the head of a request may take to arrive.")
    body_seconds: float = _setting(60.0, "Longest time that its body may take to arrive, and its answer to be read.")
    idle_seconds: float = _setting(75.0, "How long a connection without a request is kept.")
    drain_seconds: float = _setting(30.0, "Longest time that requests in flight have to end when the server stops.")
    announce_seconds: float = _setting(0.0, "How long a stopping server says so before it takes no more.")
    log: str = _setting("text", "`text` or `json`: the form of the log.")
    log_requests: bool = _setting(False, "Whether every request is a line of the log.")
    trace_endpoint: str = _setting("", "OpenTelemetry collector (OTLP over HTTP) for traces; none without.")

    def __post_init__(self) -> None:
        problems = [
            f"{name} is {value}: at least {least} is needed"
            for name, least in _LEAST.items()
            if (value := getattr(self, name)) < least
        ]
        if (self.tls_cert is None) != (self.tls_key is None):
            problems.append("tls_cert and tls_key go together: one of them is missing")
        if self.log not in ("text", "json"):
            problems.append(f"log is {self.log!r}: choose text or json")
        if self.http_port == -1 and self.grpc_port == -1:
            problems.append("http_port and grpc_port are both -1: nothing would be served")
        if problems:
            raise InputError("\n".join(problems))

    @property
    def local(self) -> bool:
        """Whether only this machine can connect."""
        return self.host in ("127.0.0.1", "::1", "localhost")


_LEAST = {
    "max_request_bytes": 1024,
    "max_json_bytes": 1024,
    "max_body_bytes_in_flight": 1024,
    "max_header_bytes": 1024,
    "max_connections": 1,
    "max_connections_per_client": 0,
    "max_requests": 1,
    "rate": 0,
    "head_seconds": 0.1,
    "body_seconds": 0.1,
    "idle_seconds": 0.1,
    "drain_seconds": 0,
    "announce_seconds": 0,
}


def table() -> str:
    """All settings as a table in Markdown, for `docs/serving.md`."""
    rows = ["| setting | default | what it does |", "| --- | --- | --- |"]
    for one in fields(ServerSettings):
        default = "" if one.default in (None, "", ()) else f"`{one.default}`"
        rows.append(f"| `{one.name}` | {default} | {one.metadata['about']} |")
    return "\n".join(rows) + "\n"
