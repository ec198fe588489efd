"""What runs a model: a thread of this process, or a process that a thread of this one speaks to."""

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, Protocol

from onnxla.serving.requests import Array
from onnxla.serving.variant import Variant


class WorkerDied(Exception):
    """The process that held a run ended; another has taken its place. Caught by the scheduler."""


class Runner(Protocol):
    """Runs one thing at a time."""

    inline: bool
    """Whether a run takes no longer than the model itself, so that whoever asks may do it."""

    def prepare(self, variants: Sequence[Variant]) -> None:
        """Get ready for runs, again after a WorkerDied. Raises as `run`."""
        ...

    def run(self, variant: Variant, arrays: Sequence[Array]) -> list[Any]:
        """All outputs of the model in its order. Raises OnnxlaErrors, and WorkerDied."""
        ...

    def close(self) -> None: ...


class LocalRunner:
    """In this process. Native code lets other threads run meanwhile."""

    inline = True

    def prepare(self, variants: Sequence[Variant]) -> None:
        pass

    def run(self, variant: Variant, arrays: Sequence[Array]) -> list[Any]:
        return variant.run(arrays)

    def close(self) -> None:
        pass


class Instance:
    """A thread that carries out one piece of work after the other."""

    def __init__(self, runner: Runner, name: str) -> None:
        self.runner = runner
        self._work: SimpleQueue[Callable[[Runner], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def start(self, work: Callable[[Runner], None]) -> None:
        """`work` must not raise."""
        self._work.put(work)

    def close(self) -> None:
        """Behind the work that it has been given."""
        self._work.put(None)

    def _loop(self) -> None:
        while True:
            work = self._work.get()
            if work is None:
                self.runner.close()
                return
            work(self.runner)
            del work
