"""The parameters of a request that mean something to this server, whichever protocol brings them.

`timeout` (microseconds, Triton's schedule policy), `wait_for_compile` (ours). `priority` is taken and has no effect, as
in Triton for a model without priority levels. What would change the answer and is not here is refused.
"""

import time
from typing import Any

from onnxla.errors import harmless_line
from onnxla.serving.errors import UnsupportedRequestError

_NONE: dict[str, Any] = {}
LONGEST_TIMEOUT = 10**12
"""Microseconds; some eleven days."""


def check_parameters(parameters: object, subject: str, problems: list[str]) -> dict[str, Any]:
    """The parameters as a dict; none where there are none."""
    if parameters is None:
        return _NONE
    if type(parameters) is not dict:
        problems.append(f"{subject} are not a JSON object")
        return _NONE
    return parameters


def deadline_of(parameters: dict[str, Any], problems: list[str]) -> float | None:
    """When nobody waits for the answer any more (`time.monotonic()`): `timeout` from now; 0 is no timeout."""
    if parameters.get("sequence_id"):
        raise UnsupportedRequestError(
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


def refuse_unsupported(parameters: dict[str, Any], name: str) -> None:
    """Raise UnsupportedRequestError for a tensor that lies in shared memory."""
    if parameters and "shared_memory_region" in parameters:
        raise UnsupportedRequestError(
            f"tensor '{harmless_line(name)}': shared memory is not supported; send and ask for data or binary data"
        )
