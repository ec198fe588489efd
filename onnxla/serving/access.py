"""Who may call what: bearer tokens for calls of each kind, and requests from pages of other origins."""

import base64
import hashlib
import hmac
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Self

from onnxla.errors import FileError, InputError
from onnxla.serving.errors import ForbiddenError, UnauthenticatedError
from onnxla.serving.server_settings import ServerSettings

MIN_TOKEN = 16
"""Fewest characters of a token."""
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class Kind(Enum):
    """What a call is for."""

    OPEN = "health"
    INFERENCE = "inference"
    """Inference, metadata, statistics, metrics and the page."""
    ADMIN = "admin"
    """Loading and unloading models, and compile jobs."""


class Access:
    """Tokens are compared in constant time, by their digests, with every token that fits the kind of call."""

    def __init__(
        self,
        tokens: Iterable[str] = (),
        admin_tokens: Iterable[str] = (),
        *,
        open_admin: bool = False,
        hosts: Iterable[str] = (),
    ) -> None:
        """`open_admin`: admin calls need no token where there is none. Without, they are refused then.

        `hosts`: the names by which this server may be called; empty for any.
        """
        self._tokens = [_digest(token.encode()) for token in tokens]
        self._admin_tokens = [_digest(token.encode()) for token in admin_tokens]
        self._open_admin = open_admin and not self._tokens
        self._hosts = frozenset(host.lower().encode() for host in hosts)

    @classmethod
    def of(cls, settings: ServerSettings) -> Self:
        """As the settings say. Raises FileError, or InputError for a token that is too short."""
        tokens = read_tokens(settings.token_file)
        hosts = settings.hosts or (_THIS_MACHINE if settings.local and not tokens else ())
        return cls(tokens, read_tokens(settings.admin_token_file), open_admin=settings.local, hosts=hosts)

    def check_page(self, acts: bool, origin: bytes | None, host: bytes | None) -> None:
        """Raise ForbiddenError for what a page of another origin makes a browser send.

        A request that acts names the page in `Origin`. A page whose own name was made to lead here (DNS rebinding) is
        of the same origin, and known by this name in `Host`.
        """
        if acts and origin is not None and origin.partition(b"://")[2].lower() != (host or b"").lower():
            raise ForbiddenError("requests from pages of another origin are refused")
        if self._hosts and host_name(host or b"") not in self._hosts:
            raise ForbiddenError("this server is not called by this name: --set hosts=NAME,... says by which it may be")

    def check(self, kind: Kind, authorization: bytes | str | None) -> str:
        """A name for who calls: the start of the token's digest, or `""` for one who needs none.

        Raises UnauthenticatedError, or ForbiddenError for a token that is for calls of another kind.
        """
        if kind is Kind.OPEN or (kind is Kind.INFERENCE and not self._tokens):
            return ""
        if kind is Kind.ADMIN and not self._admin_tokens:
            if self._open_admin:
                return ""
            raise ForbiddenError(
                "admin calls are refused: this server has no admin token (--admin-token-file), which it needs "
                "where it has tokens for other calls or does not listen on this machine alone"
            )
        token = bearer(authorization)
        if not token:
            raise UnauthenticatedError(f"{kind.value} calls need a token: send Authorization: Bearer TOKEN")
        digest = _digest(token)
        known, is_admin = _among(digest, self._tokens), _among(digest, self._admin_tokens)
        if is_admin or (known and kind is Kind.INFERENCE):
            return digest.hex()[:12]
        if known:
            raise ForbiddenError("this token is not for admin calls")
        raise UnauthenticatedError("this token is not known here")


def host_name(host: bytes) -> bytes:
    """The name in a `Host` header, in small letters, without its port and without the brackets of IPv6."""
    name = host.lower()
    return name[1:].partition(b"]")[0] if name.startswith(b"[") else name.partition(b":")[0]


def bearer(authorization: bytes | str | None) -> bytes:
    """The token of `Bearer TOKEN`, or the password of `Basic ...`, as browsers send it; empty for anything else."""
    if not authorization:
        return b""
    text = authorization.encode("utf-8", "surrogateescape") if isinstance(authorization, str) else authorization
    scheme, _, rest = text.partition(b" ")
    if scheme.lower() == b"bearer":
        return rest.strip()
    if scheme.lower() == b"basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
        except ValueError:
            return b""
    return b""


def read_tokens(path: Path | None) -> list[str]:
    """One token a line; lines that are empty or begin with # do not count."""
    if path is None:
        return []
    try:
        lines = [line.strip() for line in path.read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"tokens cannot be read from {path}: {error}") from None
    tokens = [line for line in lines if line and not line.startswith("#")]
    if not tokens:
        raise InputError(f"{path} has no token: put one in, one a line")
    if any(len(token) < MIN_TOKEN for token in tokens):
        raise InputError(f"{path} has a token of fewer than {MIN_TOKEN} characters, which can be guessed")
    return tokens


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _among(digest: bytes, known: list[bytes]) -> bool:
    return any([hmac.compare_digest(digest, one) for one in known])
