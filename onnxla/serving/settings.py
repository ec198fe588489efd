"""What the engine is told by whoever runs the server; what one model is told is in `model_config.py`."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from onnxla.errors import InputError
from onnxla.given import number, whole_number


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class EngineSettings:
    """Raises InputError for values that make no sense."""

    repository: Path
    """The folder of models."""
    control: Literal["none", "poll", "explicit"] = "none"
    """When models are loaded: all at the start; the same, and again when their files change; when somebody asks."""
    load_at_start: tuple[str, ...] | None = None
    """Names of models to load at the start; None for all, or with `explicit` for none."""
    poll_seconds: float = 10.0
    """How often the repository is looked at with `poll`."""
    workers: int = 0
    """Processes that hold each model; 0 runs models in this process, where a crash of native code ends it."""
    compile_in: Literal["process", "thread"] = "process"
    """Where models compile: a process of its own within limits, or a thread of this one."""
    compiles: int = field(default_factory=lambda: max(1, _cpus() // 2))
    """Most compiles at once."""
    waiting_shapes: int = 16
    """Most sets of shapes of one model that wait for their code; beyond it requests are refused with 429."""
    compile_seconds: float = 600.0
    """Longest time of one compile."""
    compile_memory: int = 16 << 30
    """Most bytes of memory of a compile in a process of its own."""
    cache_dir: str | None = None
    """Folder of the compile cache."""
    queue_size: int = 1000
    """Most requests that wait for one version of a model, where its configuration says nothing."""
    inline_seconds: float = 150e-6
    """Runs that are this short, as measured, are not worth another thread while nothing else waits; 0: none is."""
    run_seconds: float = 0.0
    """After how long a run in a worker process is taken to hang, and the worker is replaced; 0: never."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "repository", Path(self.repository))
        if self.control not in ("none", "poll", "explicit"):
            raise InputError(f"control={self.control!r}: choose 'none', 'poll' or 'explicit'")
        if self.compile_in not in ("process", "thread"):
            raise InputError(f"compile_in={self.compile_in!r}: choose 'process' or 'thread'")
        for name, least in (("workers", 0), ("compiles", 1), ("waiting_shapes", 1), ("queue_size", 1)):
            whole_number(getattr(self, name), name, least)
        for name in ("poll_seconds", "compile_seconds", "inline_seconds", "run_seconds"):
            if not 0 <= number(getattr(self, name), name) < float("inf"):
                raise InputError(f"{name}={getattr(self, name)!r}: a number of seconds is needed")
        if self.poll_seconds < 0.01:
            raise InputError(f"poll_seconds={self.poll_seconds!r}: at least 0.01 is needed")
