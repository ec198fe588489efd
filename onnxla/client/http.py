"""One request to a server, and what its answers mean: errors of a compile are raised as they would be here."""

import http.client
import json
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from onnxla.client.proxy import proxy_for
from onnxla.errors import InputError, OnnxlaError, ResourceLimitError, ServiceError, harmless_line

_LONGEST_ANSWER = 512 << 20
_KINDS: Mapping[int, type[OnnxlaError]] = {
    HTTPStatus.BAD_REQUEST: InputError,
    HTTPStatus.UNAUTHORIZED: InputError,
    HTTPStatus.FORBIDDEN: InputError,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ResourceLimitError,
    HTTPStatus.TOO_MANY_REQUESTS: ResourceLimitError,
}
"""What answers are to who called; any other failure is the service's."""


class Connection:
    """Where a server is, and how it knows us."""

    def __init__(self, url: str, token: str | None, ca_file: Path | None, timeout: float) -> None:
        """Raises InputError for an address or a file that is none."""
        parts = urlsplit(url if "://" in url else f"http://{url}")
        try:
            port = parts.port
        except ValueError as error:
            raise InputError(f"{url} is no address of a server: {error}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            raise InputError(f"{url} is no address of a server: write it as https://host:8000")
        self.url = url
        self._host, self._port = parts.hostname, port
        self._prefix = parts.path.rstrip("/")
        self._is_secure = parts.scheme == "https"
        self._proxy = proxy_for(parts.scheme, parts.hostname, port)
        self._timeout = timeout
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        if self._proxy is not None and not self._is_secure:  # what is encrypted it passes on, and else it reads all
            self._prefix = f"http://{parts.netloc}{self._prefix}"
            self._headers.update(self._proxy.headers)
        try:
            self._context = ssl.create_default_context(cafile=ca_file) if self._is_secure else None
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"{ca_file} holds no certificates: {error}") from error

    def json(self, method: str, path: str, *, timeout: float | None = None) -> Any:
        """The answer's JSON. Raises as `request`."""
        with self.request(method, path, timeout=timeout) as answer:
            return self.json_of(answer)

    def json_of(self, answer: http.client.HTTPResponse) -> Any:
        data = self.read(answer, _LONGEST_ANSWER + 1)
        try:
            if len(data) > _LONGEST_ANSWER:
                raise ValueError(f"it has more than {_LONGEST_ANSWER} bytes")
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ServiceError(f"{self.url} answers what nobody understands: {error}") from error

    @contextmanager
    def request(
        self,
        method: str,
        path: str,
        body: Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        """The answer, where it is a good one. Raises the error that it tells of; ServiceError where there is none."""
        connection = self._connection(self._timeout if timeout is None else timeout)
        try:
            yield self._answered(connection, method, self._prefix + path, body, {**self._headers, **(headers or {})})
        finally:
            connection.close()

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        proxy = self._proxy
        host, port = (self._host, self._port) if proxy is None else (proxy.host, proxy.port)
        if not self._is_secure:
            return http.client.HTTPConnection(host, port, timeout=seconds)
        connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=self._context)
        if proxy is not None:
            connection.set_tunnel(self._host, self._port, proxy.headers)
        return connection

    def read(self, answer: http.client.HTTPResponse, size: int) -> bytes:
        """The next bytes of an answer, none at its end. Raises ServiceError."""
        try:
            return answer.read(size)
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error

    def _answered(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Iterable[bytes] | None,
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        try:
            sent = _send(connection, method, path, body, headers)
            try:
                answer = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                raise (sent or error) from error
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        if answer.status >= 300:
            raise self._refusal(answer)
        return answer

    def _unreachable(self, error: Exception) -> ServiceError:
        what = str(error) or type(error).__name__
        through = "" if self._proxy is None else f" through the proxy {self._proxy}"
        return ServiceError(f"{self.url} cannot be reached{through}, or does not answer: {what}")

    def _refusal(self, answer: http.client.HTTPResponse) -> OnnxlaError:
        text = self.read(answer, 1 << 16).decode(errors="replace")
        try:
            said = json.loads(text)["error"]
        except (ValueError, KeyError, TypeError):
            said = text[:200] or answer.reason
        kind = _KINDS.get(answer.status, ServiceError)
        return kind(
            f"{self.url} answers {answer.status}: {said if isinstance(said, str) else harmless_line(str(said))}"
        )


def _send(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: Iterable[bytes] | None,
    headers: Mapping[str, str],
) -> OSError | None:
    """Send a request. A server that has said no before the end takes no more: that error is returned, its answer may
    be there."""
    try:
        connection.request(method, path, body, dict(headers))
    except (BrokenPipeError, ConnectionResetError) as error:
        return error
    return None
