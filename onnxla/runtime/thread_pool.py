"""The process's thread pool as Python sees it: how many threads to use, and where the native functions are.

The pool itself is native code (`thread_pool_code.py`), linked once and kept until the process ends, since its workers
run in it. Every model of the process shares it, whichever artifact its object code came from.
"""

import ctypes
import threading
from collections.abc import Sequence

from onnxla.config import RuntimeSettings
from onnxla.errors import ResourceLimitError
from onnxla.runtime.loader import NativeLibrary
from onnxla.runtime.machine import usable_cpus

STACK_BYTES = 4 << 20
"""What `thread_pool_code.py` gives a thread that runs kernels; a test compares."""
PARALLEL_FOR = "onnxla_parallel_for"


class ThreadPool:
    """The linked pool. Workers start when a job first needs them."""

    def __init__(self, object_code: bytes) -> None:
        self._library = NativeLibrary([object_code], {})
        self.parallel_for_address = self._library[PARALLEL_FOR]
        self._set_spin = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self._library["onnxla_pool_set_spin"])
        self._workers = ctypes.CFUNCTYPE(ctypes.c_int64)(self._library["onnxla_pool_workers"])
        self._shutdown = ctypes.CFUNCTYPE(None)(self._library["onnxla_pool_shutdown"])
        self._call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._library["onnxla_pool_call"])
        self.set_spin(RuntimeSettings.from_environment().spin_microseconds)

    def set_spin(self, microseconds: int) -> None:
        """How long a thread without work looks for more before it sleeps."""
        self._set_spin(microseconds * 1000)

    def call(self, entry: int, arguments: Sequence[int]) -> None:
        """Call a program's entry with its five arguments on a thread with a large stack, and wait for it.

        Raises ResourceLimitError where the system starts no thread.
        """
        if self._call((ctypes.c_void_p * 6)(entry, *arguments)):
            raise ResourceLimitError(
                f"this thread's stack is small, and the system starts no other with {STACK_BYTES} bytes for the run"
            )

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


def default_threads() -> int:
    """ONNXLA_NUM_THREADS, or the CPUs this process may use."""
    return RuntimeSettings.from_environment().num_threads or usable_cpus()
