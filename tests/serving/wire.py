"""HTTP byte by byte, for what no client sends on purpose."""

import json
import socket
from dataclasses import dataclass
from typing import Any

from tests.serving.running import Running


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


class Wire:
    """One connection to the server's port of HTTP."""

    def __init__(self, server: Running, port: int | None = None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port or server.server.http_port), 20)
        self._left = b""

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *problem: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> Answer:
        """The next answer; fails when there is none in time."""
        while b"\r\n\r\n" not in self._left:
            self._more()
        head, _, self._left = self._left.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = int(headers.get("content-length", "0"))
        while len(self._left) < length:
            self._more()
        body, self._left = self._left[:length], self._left[length:]
        return Answer(int(first.split()[1]), headers, body)

    def _more(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError(f"closed after {self._left!r}")
        self._left += data

    def is_closed(self) -> bool:
        """Waits until the server has closed it."""
        try:
            return self.socket.recv(65536) == b""
        except ConnectionError:
            return True


def request(method: str, path: str, body: bytes | object = b"", **headers: object) -> bytes:
    """The bytes of a request; `_` in names of headers is `-`."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    host = headers.pop("host", "localhost")
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", f"content-length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + data


def ask(server: Running, method: str, path: str, body: bytes | object = b"", **headers: object) -> Answer:
    """One request on a connection of its own."""
    port = headers.pop("port", None)
    with Wire(server, port) as wire:  # type: ignore[arg-type]
        wire.send(request(method, path, body, **headers))
        return wire.answer()
