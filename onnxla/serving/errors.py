"""What can go wrong between a client and a model, each with its status in HTTP and in gRPC."""

from collections.abc import Iterable
from http import HTTPStatus

from onnxla.errors import FileError, InternalError, OnnxlaError, ResourceLimitError


class ServingError(OnnxlaError):
    """A request, or a call on the repository, that is not carried out. `str()` says why and what to do."""

    status: HTTPStatus = HTTPStatus.INTERNAL_SERVER_ERROR
    """The answer's status in HTTP."""
    code: str = "INTERNAL"
    """The name of the status in gRPC (`grpc.StatusCode`)."""

    def __init__(self, text: str, *, retry_after: float | None = None) -> None:
        """`retry_after`: after how many seconds it is worth another try; None where it is not known."""
        super().__init__(text)
        self.retry_after = retry_after


class InvalidRequestError(ServingError):
    """The request is malformed, or its tensors do not fit the model."""

    status, code = HTTPStatus.BAD_REQUEST, "INVALID_ARGUMENT"


class UnauthenticatedError(ServingError):
    """No token, or not one that this server knows."""

    status, code = HTTPStatus.UNAUTHORIZED, "UNAUTHENTICATED"


class ForbiddenError(ServingError):
    """The token is not for calls of this kind."""

    status, code = HTTPStatus.FORBIDDEN, "PERMISSION_DENIED"


class UnknownModelError(ServingError):
    """No model, or no version of it, has this name."""

    status, code = HTTPStatus.NOT_FOUND, "NOT_FOUND"


class TooLargeError(ServingError):
    """The request is larger than this server takes."""

    status, code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RESOURCE_EXHAUSTED"


class OverloadedError(ServingError):
    """The model's queue, or the client's rate, is at its bound: try again later."""

    status, code = HTTPStatus.TOO_MANY_REQUESTS, "RESOURCE_EXHAUSTED"


class NotReadyError(ServingError):
    """The model is loading, compiles these shapes, failed to load, or the server drains: try again later."""

    status, code = HTTPStatus.SERVICE_UNAVAILABLE, "UNAVAILABLE"


class DeadlineError(ServingError):
    """The request's deadline passed before its result was there."""

    status, code = HTTPStatus.GATEWAY_TIMEOUT, "DEADLINE_EXCEEDED"


class UnsupportedRequestError(ServingError):
    """A part of the protocol that this server does not have."""

    status, code = HTTPStatus.NOT_IMPLEMENTED, "UNIMPLEMENTED"


def load_error(error: OnnxlaError) -> ServingError:
    """Whose matter it is that a model does not load.

    A fault of ours, or of this machine's files, is `ServingError` itself; a limit of this machine, which another try
    may not meet, `NotReadyError`; anything else lies in the model or its configuration, which only others mend.
    """
    if isinstance(error, ServingError):
        return error
    if isinstance(error, FileError | InternalError) or type(error) is OnnxlaError:
        return ServingError(str(error))
    return (NotReadyError if isinstance(error, ResourceLimitError) else InvalidRequestError)(str(error))


def worst_kind(errors: Iterable[ServingError]) -> type[ServingError]:
    """The kind of several errors at once: a fault of ours, else what another try may mend, else theirs."""
    kinds = [type(error) for error in errors]
    return next((kind for kind in (ServingError, NotReadyError) if kind in kinds), InvalidRequestError)
