"""`PendingRun`: a run that was started and may not be done, as `CompiledModel.run_async` returns it."""

import asyncio
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from onnxla.errors import InputError

if TYPE_CHECKING:
    from onnxla.runtime.device_session import Started


class PendingRun:
    """`wait()` gives the outputs; `await run` does so in asyncio.

    Keep the arrays that were given until it is done, and do not change those that are on a GPU.
    """

    def __init__(self, started: "Started | Future[list[Any]]", outputs: Sequence[Any] | None = None) -> None:
        self._started, self._outputs = started, outputs

    @property
    def outputs(self) -> list[Any]:
        """On a GPU: the outputs at once, which work that is asked for on the run's stream from now on may read.

        Raises InputError for a run on the host, which has none before it is done.
        """
        if self._outputs is None:
            raise InputError("outputs before the end are for runs on a GPU; wait() gives those of this one")
        return list(self._outputs)

    def done(self) -> bool:
        """Whether `wait` would return at once. Raises DeviceError where the run failed on a GPU."""
        return self._started.done()

    def wait(self) -> list[Any]:
        """The outputs, when they are there. Raises what `run` would have raised."""
        if isinstance(self._started, Future):
            return self._started.result()
        self._started.wait()
        return self.outputs

    def __await__(self) -> Generator[Any, None, list[Any]]:
        return asyncio.get_running_loop().run_in_executor(None, self.wait).__await__()
