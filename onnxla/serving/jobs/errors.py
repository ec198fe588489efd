"""What can go wrong between a client and a compile job, beside what any call of the service can meet."""

from http import HTTPStatus

from onnxla.serving.errors import ServingError


class UnknownJobError(ServingError):
    """No job has this number: there never was one, or it ended too long ago."""

    status, code = HTTPStatus.NOT_FOUND, "NOT_FOUND"


class UnknownArtifactError(ServingError):
    """The store has no artifact of this digest."""

    status, code = HTTPStatus.NOT_FOUND, "NOT_FOUND"


class NotDoneError(ServingError):
    """The job has not ended yet, or ended without what is asked for."""

    status, code = HTTPStatus.CONFLICT, "FAILED_PRECONDITION"


class NoRoomError(ServingError):
    """The server's disk is full, or fails."""

    status, code = HTTPStatus.INSUFFICIENT_STORAGE, "RESOURCE_EXHAUSTED"
