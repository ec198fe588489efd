"""The parameters of a request that mean something to this server, whichever protocol brings them.

`timeout` (microseconds, Triton's schedule policy), `wait_for_compile` (ours). `priority` is taken and has no effect, as
in Triton for a model without priority levels. What would change the answer and is not here is refused.
"""

import time
from typing import Any

from onnxla.serving.errors import InvalidRequestError, UnsupportedRequestError

_NONE: dict[str, Any] = {}
LONGEST_TIMEOUT = 10**12
"""Microseconds; some eleven days."""


class Problems(list[str]):
    """What is wrong with a request, and apart from it what it asks for that is not here."""

    __slots__ = ("unsupported",)

    def __init__(self) -> None:
        self.unsupported: list[str] = []

    def require_none(self) -> None:
        """Raises InvalidRequestError with all of it, or UnsupportedRequestError where nothing else is wrong."""
        if self:
            raise InvalidRequestError("\n".join([*self, *self.unsupported]))
        if self.unsupported:
            raise UnsupportedRequestError("\n".join(self.unsupported))


def check_parameters(parameters: object, subject: str, problems: list[str]) -> dict[str, Any]:
    """The parameters as a dict; none where there are none."""
    if parameters is None:
        return _NONE
    if type(parameters) is not dict:
        problems.append(f"{subject} are not a JSON object")
        return _NONE
    return parameters


def deadline_of(parameters: dict[str, Any], problems: Problems) -> float | None:
    """When nobody waits for the answer any more (`time.monotonic()`): `timeout` from now; 0 is no timeout."""
    if parameters.get("sequence_id"):
        problems.unsupported.append(
            "sequence_id: requests of one sequence are not kept together by this server; send the state as inputs"
        )
    timeout = parameters.get("timeout", 0)
    if isinstance(timeout, str) and timeout.isdigit() and len(timeout) < 14:
        timeout = int(timeout)
    if type(timeout) is not int or not 0 <= timeout <= LONGEST_TIMEOUT:
        problems.append(f"timeout is not a number of microseconds from 0 to {LONGEST_TIMEOUT}")
        return None
    return time.monotonic() + timeout / 1e6 if timeout else None


def waits(parameters: dict[str, Any], problems: list[str]) -> bool:
    """Whether the request waits where its shapes must be compiled first."""
    wait = parameters.get("wait_for_compile", True)
    if type(wait) is not bool:
        problems.append("wait_for_compile is neither true nor false")
    return wait is not False


def in_shared_memory(parameters: dict[str, Any], subject: str, problems: Problems) -> bool:
    """Whether a tensor lies in shared memory, which is a problem."""
    if "shared_memory_region" not in parameters:
        return False
    problems.unsupported.append(f"{subject}: shared memory is not supported; send and ask for data or binary data")
    return True


def check_output(parameters: dict[str, Any], subject: str, problems: Problems) -> None:
    """What an output is asked to be."""
    in_shared_memory(parameters, subject, problems)
    if parameters.get("classification"):
        problems.unsupported.append(f"{subject}: classification is not supported; sort the output on your side")
