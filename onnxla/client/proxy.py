"""The HTTP proxy between this machine and a server, as the environment names it.

`HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY` for the server's scheme, unless `NO_PROXY` has its name, in small letters or
large, as other programs read them. What this machine itself serves (`localhost`, 127.0.0.1) is asked without a proxy.
"""

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from onnxla.errors import InputError


@dataclass(frozen=True)
class Proxy:
    """Where a proxy is, and how it knows us."""

    host: str
    port: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def proxy_for(scheme: str, host: str, port: int | None) -> Proxy | None:
    """The proxy for a server; None where it is asked itself. Raises InputError for one that cannot be used."""
    named = getproxies()
    url = named.get(scheme) or named.get("all")
    if not url or _is_here(host) or proxy_bypass(host if port is None else f"{host}:{port}"):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        proxy_port = parts.port or 80
    except ValueError:
        proxy_port = 0
    shown = f"{parts.scheme}://{parts.hostname}"  # a password is nobody's to see
    if parts.scheme != "http" or not parts.hostname or not proxy_port:
        raise InputError(f"the proxy {shown} of the environment cannot be used: write it as http://host:3128")
    return Proxy(parts.hostname, proxy_port, _headers(parts.username, parts.password))


def _headers(user: str | None, password: str | None) -> dict[str, str]:
    if user is None:
        return {}
    known = f"{unquote(user)}:{unquote(password or '')}".encode()
    return {"proxy-authorization": f"Basic {base64.b64encode(known).decode()}"}


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
