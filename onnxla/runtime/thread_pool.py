"""The process's thread pool as Python sees it: how many threads to use, and where the native functions are.

The pool itself is native code (`thread_pool_code.py`), linked once and kept until the process ends, since its workers
run in it. Every model of the process shares it, whichever artifact its object code came from.
"""

import ctypes
import math
import os
import threading
from functools import cache
from pathlib import Path

from onnxla.config import RuntimeSettings
from onnxla.runtime.loader import NativeLibrary

PARALLEL_FOR = "onnxla_parallel_for"
_EXPORTS = (PARALLEL_FOR, "onnxla_pool_set_spin", "onnxla_pool_workers", "onnxla_pool_shutdown")


class ThreadPool:
    """The linked pool. Workers start when a job first needs them."""

    def __init__(self, object_code: bytes) -> None:
        self._library = NativeLibrary([object_code], _EXPORTS, {})
        self.parallel_for_address = self._library[PARALLEL_FOR]
        self._set_spin = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self._library["onnxla_pool_set_spin"])
        self._workers = ctypes.CFUNCTYPE(ctypes.c_int64)(self._library["onnxla_pool_workers"])
        self._shutdown = ctypes.CFUNCTYPE(None)(self._library["onnxla_pool_shutdown"])
        self.set_spin(RuntimeSettings.from_environment().spin_microseconds)

    def set_spin(self, microseconds: int) -> None:
        """How long a thread without work looks for more before it sleeps."""
        self._set_spin(microseconds * 1000)

    @property
    def workers(self) -> int:
        """How many threads the pool has started, the callers' own not counted."""
        return int(self._workers())

    def shutdown(self) -> None:
        """End all workers, after the job that runs; a later job starts new ones."""
        self._shutdown()


_pool: ThreadPool | None = None
_lock = threading.Lock()


def thread_pool(object_code: bytes) -> ThreadPool:
    """The process's pool; the first call links it from `object_code`."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPool(object_code)
        return _pool


@cache
def usable_cpus() -> int:
    """CPUs this process may use: its affinity, bounded by the quota of its control groups, at least 1."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_quota(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))
    return max(1, affinity if quota is None else min(affinity, math.ceil(quota)))


def default_threads() -> int:
    """ONNXLA_NUM_THREADS, or the CPUs this process may use."""
    return RuntimeSettings.from_environment().num_threads or usable_cpus()


def _cgroup_quota(membership: Path, root: Path) -> float | None:
    """The smallest CPU quota on the way from this process's control groups to the root, in CPUs; None without one."""
    quotas = []
    for line in _lines(membership):
        _, controllers, path = line.split(":", 2)
        mounted = root / controllers if controllers else root
        group = mounted / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(root):
                quotas += _quota_of(folder)
    return min(quotas, default=None)


def _quota_of(folder: Path) -> list[float]:
    """The quota that one control group sets: `cpu.max` (version 2) or the pair of `cpu.cfs_*` (version 1)."""
    words = " ".join(_lines(folder / "cpu.max")).split() or [
        word for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us") for word in _lines(folder / name)
    ]
    if len(words) != 2 or not all(word.isdigit() for word in words) or int(words[1]) == 0:
        return []
    return [int(words[0]) / int(words[1])]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
