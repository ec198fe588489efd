"""A client's job, and the compile behind it, which several jobs may share."""

import asyncio
import time
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from onnxla.error_json import error_json
from onnxla.errors import OnnxlaError
from onnxla.runtime.cache import CacheKey
from onnxla.serving.jobs.outcome import Outcome
from onnxla.serving.jobs.request import CompileRequest


class State(Enum):
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_final(self) -> bool:
        return self not in (State.QUEUED, State.RUNNING)


@dataclass
class Compile:
    """One compile, as far as it is. Belongs to the event loop."""

    key: CacheKey
    model: Path
    """The upload, in a folder of its own."""
    wanted: CompileRequest
    state: State = State.QUEUED
    stage: str = ""
    part: float = 0.0
    cached: bool = False
    """Whether the artifact was there already."""
    outcome: Outcome | None = None
    """What came of it; None while it goes on, where it was cancelled, and where it ended in another way."""
    error: OnnxlaError | None = None
    """Why there is no artifact."""
    sha256: str = ""
    """Of the artifact, where there is one."""
    bytes: int = 0
    jobs: set[str] = field(default_factory=set)
    """The jobs that still want it."""
    task: "asyncio.Task[None] | None" = None
    revision: int = 0
    """Grows with every change."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, stage: str, part: float) -> None:
        """Progress, which never falls."""
        self.stage, self.part = stage, max(self.part, part)
        self.changed()

    def end(self, state: State, error: OnnxlaError | None = None) -> None:
        self.state, self.error = state, error
        self.changed()

    def changed(self) -> None:
        """Wake who waits."""
        self.revision += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for_change(self, revision: int, seconds: float) -> None:
        """Until the revision is another one than this, it has ended, or the time is over."""
        end = time.monotonic() + seconds
        while self.revision == revision and not self.state.is_final and (left := end - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                return


@dataclass
class Job:
    """What one client has asked for."""

    id: str
    compile: Compile
    created: float = field(default_factory=time.time)
    finished: float | None = None
    is_cancelled: bool = False
    """Cancelled by this client, whatever becomes of the compile."""

    @property
    def state(self) -> State:
        return State.CANCELLED if self.is_cancelled else self.compile.state

    def to_json(self) -> dict[str, Any]:
        """What clients see. Times are seconds since 1970."""
        compile = self.compile
        has_artifact = self.state is State.SUCCEEDED
        return {
            "id": self.id,
            "state": self.state.value,
            "stage": compile.stage,
            "progress": 1.0 if has_artifact else round(compile.part, 4),
            "revision": compile.revision,
            "created": self.created,
            "finished": self.finished,
            "cached": compile.cached,
            "key": compile.key.digest,
            "artifact": {
                "sha256": compile.sha256,
                "bytes": compile.bytes,
                "url": f"/v2/artifacts/{compile.sha256}",
            }
            if has_artifact
            else None,
            "error": None if compile.error is None or self.is_cancelled else error_json(compile.error),
        }
