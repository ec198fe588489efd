"""The client of compile jobs where the environment names a proxy."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

import onnxla
from onnxla.client import CompileServer
from onnxla.client.proxy import proxy_for
from onnxla.errors import InputError, ServiceError
from tests.serving.jobs import models
from tests.serving.jobs.running import JobServer
from tests.serving.jobs.test_jobs import Gate
from tests.serving.test_operations import certificate

NAMED = {"hosts": ("compile.example",)}
__all__ = ["certificate"]


class PassingOn(socketserver.ThreadingTCPServer):
    """A proxy that leads to one server, by whatever name, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self, to: str) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        host, _, port = to.rpartition(":")
        self.to = host, int(port)
        self.heads: list[str] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://me:a%20secret@127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.shutdown()
        self.server_close()


class _Connection(socketserver.StreamRequestHandler):
    server: PassingOn

    def handle(self) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.rfile.readline()
            if not line:
                return
            head += line
        self.server.heads.append(head.decode())
        with socket.create_connection(self.server.to, 60) as there:
            if head.startswith(b"CONNECT "):
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                there.sendall(head)
            back = threading.Thread(target=_pass_on, args=(there.recv, self.connection))
            back.start()
            _pass_on(lambda size: self.rfile.read1(size), there)
            back.join(60)


def _pass_on(read: Any, to: socket.socket) -> None:
    with suppress(OSError):
        while data := read(1 << 16):
            to.sendall(data)
    with suppress(OSError):
        to.shutdown(socket.SHUT_WR)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Without proxies."""
    for name in ("http", "https", "all", "no"):
        for spelled in (f"{name}_proxy", f"{name}_proxy".upper()):
            monkeypatch.delenv(spelled, raising=False)
    yield monkeypatch


def compile_through(url: str, tmp_path: Path, **more: Any) -> None:
    with pytest.raises(onnxla.InputError, match="^no compile$"):
        CompileServer(url, **more).compile(models.small(tmp_path / "model.onnx"), tmp_path / "a.onnxla")


def test_a_proxy_is_given_whole_addresses(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Gate(environment).open()
    with JobServer(folder=tmp_path / "jobs", server=NAMED) as server, PassingOn(server.http) as proxy:
        environment.setenv("HTTP_PROXY", proxy.url)
        with pytest.raises(ServiceError, match="answers 404"):  # which shows that the prefix is passed on
            CompileServer("http://compile.example:8000/models/").compile(
                models.small(tmp_path / "model.onnx"), tmp_path / "a.onnxla"
            )
        assert proxy.heads[-1].startswith("POST http://compile.example:8000/models/v2/compile?")
        compile_through("http://compile.example:8000", tmp_path)
        head = proxy.heads[-1]
        assert head.startswith("GET http://compile.example:8000/v2/compile/")
        assert "host: compile.example:8000\r\n" in head.lower()
        assert "proxy-authorization: Basic bWU6YSBzZWNyZXQ=\r\n" in head


def test_through_a_proxy_what_is_encrypted_stays_so(
    environment: pytest.MonkeyPatch, certificate: dict[str, Any], tmp_path: Path
) -> None:
    Gate(environment).open()
    with (
        JobServer(folder=tmp_path / "jobs", server={**NAMED, **certificate}) as server,
        PassingOn(server.http) as proxy,
    ):
        environment.setenv("https_proxy", proxy.url)
        compile_through("https://compile.example", tmp_path, ca_file=certificate["tls_cert"], token="a token of mine")
        assert proxy.heads and all(head.startswith("CONNECT compile.example:443 HTTP/1") for head in proxy.heads)
        assert all("proxy-authorization: Basic bWU6YSBzZWNyZXQ=\r\n" in head for head in proxy.heads)
        assert not any("token" in head.lower() for head in proxy.heads)


def test_servers_that_are_asked_without_a_proxy(environment: pytest.MonkeyPatch) -> None:
    assert proxy_for("https", "compile.example", None) is None
    environment.setenv("ALL_PROXY", "proxy.example:3128")
    environment.setenv("NO_PROXY", "inside.example, other.example:8000")
    assert str(proxy_for("https", "compile.example", None)) == "proxy.example:3128"
    assert str(proxy_for("http", "other.example", 9000)) == "proxy.example:3128"
    for host in ("inside.example", "a.inside.example", "other.example", "localhost", "127.0.0.1", "::1"):
        assert proxy_for("http", host, 8000) is None
    environment.setenv("NO_PROXY", "*")
    assert proxy_for("https", "compile.example", None) is None


@pytest.mark.parametrize("url", ["https://me:secret@proxy.example", "socks5://me:secret@proxy", "http://me:secret@p:x"])
def test_a_proxy_that_cannot_be_used_is_refused(url: str, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("https_proxy", url)
    with pytest.raises(InputError, match="cannot be used: write it as http://host:3128") as found:
        CompileServer("https://compile.example")
    assert "secret" not in str(found.value)


def test_a_proxy_that_is_not_there_is_named(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment.setenv("https_proxy", "http://me:secret@127.0.0.1:9")
    with pytest.raises(ServiceError, match="cannot be reached through the proxy 127.0.0.1:9, or does not") as found:
        CompileServer("https://compile.example").compile(models.small(tmp_path / "model.onnx"), tmp_path / "a.onnxla")
    assert "secret" not in str(found.value)
