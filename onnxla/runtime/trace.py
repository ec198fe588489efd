"""A profile as Chrome's trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

Source: "Trace Event Format", Google. Complete events (`ph: "X"`) with times in microseconds: one track for the steps,
with what is inside loops nested in them, and one for each thread with the tasks that it ran.
"""

from typing import Any

from onnxla.runtime.profiler import Profile

_PROCESS = 1


def chrome_trace(profile: Profile, name: str) -> dict[str, Any]:
    """The document. The profile needs spans."""
    threads = sorted({span.thread for span in profile.spans})
    events: list[dict[str, Any]] = [_named("process_name", 0, name)]
    events += [_named("thread_name", t, f"thread {t}" if t else "steps") for t in threads]
    for span in sorted(profile.spans, key=lambda s: (s.begin, -s.end)):
        step = profile.rows[span.step].step
        event = {
            "name": step.name,
            "cat": "task" if span.thread else step.op,
            "ph": "X",
            "ts": span.begin * 1e6,
            "dur": (span.end - span.begin) * 1e6,
            "pid": _PROCESS,
            "tid": span.thread,
        }
        if not span.thread:
            event["args"] = {
                "node": step.source,
                "also": list(step.also),
                "kernel": step.kernel,
                "bytes": step.bytes,
                "flops": step.flops,
            }
        events.append(event)
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"spans lost": profile.lost}}


def _named(kind: str, thread: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": _PROCESS, "tid": thread, "args": {"name": name}}
