"""The profile of a session, in a file as onnxruntime writes it: Chrome's trace events, which Perfetto opens."""

import json
import os
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from onnxla.runtime.profiler import Profile


class SessionProfile:
    """The events since the session was made. Times are in microseconds since it began to be."""

    def __init__(self, prefix: str, begin: int) -> None:
        """`begin` is a time of `time.perf_counter_ns`."""
        self.begin = begin
        self._prefix = prefix
        self._events: list[dict[str, Any]] = []
        self._add("Session", "session_initialization", begin, time.perf_counter_ns(), {})

    def add(self, profile: Profile, begin: int, end: int) -> None:
        """One run. Its outer steps follow one another; those inside a loop or branch follow theirs."""
        self._add("Session", "model_run", begin, end, {})
        clock = begin
        inner = begin
        for number, row in enumerate(profile.rows):
            start = clock if row.step.depth == 0 else inner
            stop = start + round(row.seconds * 1e9)
            args = {
                "op_name": row.step.op,
                "provider": "onnxla",
                "node_index": str(number),
                "node": row.step.source,
                "also": list(row.step.also),
                "kernel": row.step.kernel,
                "rounds": row.rounds,
            }
            self._add("Node", f"{row.step.name}_kernel_time", start, stop, args)
            clock, inner = (stop, start) if row.step.depth == 0 else (clock, stop)

    def written(self) -> str:
        """Write the file and return its path: the prefix, and the time."""
        moment = datetime.now().strftime("%Y-%m-%d_%H-%M-%S_%f")
        path = f"{self._prefix}_{moment}.json"
        Path(path).write_text("[\n" + ",\n".join(map(json.dumps, self._events)) + "\n]\n", encoding="utf-8")
        return path

    def _add(self, category: str, name: str, begin: int, end: int, args: dict[str, Any]) -> None:
        process = os.getpid()
        times = {"dur": (end - begin) // 1000, "ts": (begin - self.begin) // 1000}
        self._events.append(
            {"cat": category, "pid": process, "tid": process, **times, "ph": "X", "name": name, "args": args}
        )
