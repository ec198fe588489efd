"""A process with all that it started: what it takes of the machine, and its end. Read from Linux's /proc."""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_OWN_MEMORY = ("RssAnon:", "RssShmem:", "VmSwap:")
"""What a process has for itself. Pages of files (weights that are mapped, libraries) the system can take back."""

_LISTS = Path(f"/proc/self/task/{os.getpid()}/children")


@dataclass(frozen=True)
class Usage:
    memory_bytes: int
    """What the processes have for themselves, in memory and in swap."""
    cpu_seconds: float
    """User and system time, that of children which have ended included."""


def family(root: int) -> list[int]:
    """The process `root` and what it started, and so on; those that have ended and nobody has waited for included."""
    found = [root]
    for pid in found:
        found += _children(pid)
    return found


def usage(processes: Sequence[int]) -> Usage:
    """What `processes` take now, together; those that are gone take nothing."""
    return Usage(sum(map(_memory, processes)), sum(map(_cpu_seconds, processes)))


def kill_session(leader: int) -> None:
    """End every process of the session that `leader` began, a child of this process that nobody has waited for yet.

    Whoever started whom, and whoever has ended since, they are all in it: nothing of ours begins another. The leader is
    stopped first, so that it starts nothing while they are looked up.
    """
    with suppress(ProcessLookupError):
        os.kill(leader, signal.SIGSTOP)
    members = [int(name) for name in os.listdir("/proc") if name.isdigit() and _session(int(name)) == leader]
    for pid in {leader, *members}:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    """By Linux's lists of each thread's children; where it keeps none (a configuration), by everybody's parent."""
    if not _LISTS.exists():
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and _parent(int(name)) == pid]
    found: list[int] = []
    with suppress(OSError):  # it has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def _session(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[3]) if fields else 0


def _memory(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_OWN_MEMORY))


def _cpu_seconds(pid: int) -> float:
    fields = _stat(pid)
    return sum(map(int, fields[11:15])) / _TICKS if fields else 0.0


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat behind the command's name, beginning with the state."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
