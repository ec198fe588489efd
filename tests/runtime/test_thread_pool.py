"""The native thread pool: every task once, whoever calls, from any thread, after a fork too."""

import ctypes
import os
import threading
import time

import numpy as np
import pytest

from onnxla.runtime.loader import NativeLibrary
from onnxla.runtime.tensors import Array
from onnxla.runtime.thread_pool import PARALLEL_FOR, ThreadPool, thread_pool
from onnxla.runtime.thread_pool_code import assemble_thread_pool
from tests.runtime.hand_written import object_code, thread_pool_object

# Kernels over buffers = { counters }: count adds 1 to counters[task]; nested runs a job of 8 tasks inside each task.
KERNELS = """
declare void @onnxla_parallel_for(ptr, ptr, i64, i64)
define void @count(ptr %buffers, i64 %task) {
  %counters = load ptr, ptr %buffers
  %place = getelementptr i64, ptr %counters, i64 %task
  %value = load i64, ptr %place
  %more = add i64 %value, 1
  store i64 %more, ptr %place
  ret void
}
define void @count_all(ptr %buffers, i64 %task) {
  %counters = load ptr, ptr %buffers
  %place = getelementptr i64, ptr %counters, i64 %task
  %old = atomicrmw add ptr %place, i64 1 monotonic
  ret void
}
define void @nested(ptr %buffers, i64 %task) {
  call void @onnxla_parallel_for(ptr @count_all, ptr %buffers, i64 8, i64 4)
  ret void
}
"""


class Jobs:
    """The test kernels over the process's pool."""

    def __init__(self) -> None:
        self.pool = thread_pool(thread_pool_object())
        address = self.pool.parallel_for_address
        self._kernels = NativeLibrary([object_code(KERNELS)], {PARALLEL_FOR: address})
        self._parallel_for = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
            address
        )

    def run(self, kernel: str, counters: Array, tasks: int, threads: int) -> None:
        buffers = (ctypes.c_void_p * 1)(counters.ctypes.data)
        self._parallel_for(self._kernels[kernel], buffers, tasks, threads)


@pytest.fixture(scope="module")
def jobs() -> Jobs:
    return Jobs()


@pytest.mark.parametrize("tasks", [0, 1, 2, 3, 7, 64, 1000])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_task_runs_once(jobs: Jobs, tasks: int, threads: int) -> None:
    counters = np.zeros(tasks + 1, np.int64)
    for _ in range(20):
        jobs.run("count", counters, tasks, threads)
    assert (counters[:tasks] == 20).all()
    assert counters[tasks] == 0


def test_a_job_starts_no_more_threads_than_it_may_use(jobs: Jobs) -> None:
    jobs.pool.shutdown()
    assert jobs.pool.workers == 0
    jobs.run("count", np.zeros(100, np.int64), 100, 3)
    assert jobs.pool.workers == 2
    jobs.run("count", np.zeros(100, np.int64), 2, 8)
    assert jobs.pool.workers == 2


def test_more_threads_than_the_pool_holds_are_cut_down(jobs: Jobs) -> None:
    counters = np.zeros(1000, np.int64)
    jobs.run("count", counters, 1000, 1 << 40)
    assert (counters == 1).all()
    assert jobs.pool.workers <= 255
    jobs.pool.shutdown()


def test_a_task_may_call_the_pool(jobs: Jobs) -> None:
    counters = np.zeros(8, np.int64)
    jobs.run("nested", counters, 50, 4)
    assert (counters == 50).all()


def test_sleeping_workers_wake(jobs: Jobs) -> None:
    jobs.pool.set_spin(0)
    try:
        counters = np.zeros(64, np.int64)
        for _ in range(300):
            jobs.run("count", counters, 64, 4)
        assert (counters == 300).all()
    finally:
        jobs.pool.set_spin(50)


def test_many_callers_at_once(jobs: Jobs) -> None:
    results = [np.zeros(128, np.int64) for _ in range(8)]

    def work(counters: Array) -> None:
        for _ in range(200):
            jobs.run("count", counters, 128, 4)

    callers = [threading.Thread(target=work, args=(r,)) for r in results]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert all((r == 200).all() for r in results)


def test_a_forked_child_has_its_own_workers(jobs: Jobs) -> None:
    jobs.run("count", np.zeros(64, np.int64), 64, 4)
    child = os.fork()
    if child == 0:
        counters = np.zeros(64, np.int64)
        for _ in range(50):
            jobs.run("count", counters, 64, 4)
        os._exit(0 if (counters == 50).all() and jobs.pool.workers == 3 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    counters = np.zeros(64, np.int64)
    jobs.run("count", counters, 64, 4)
    assert (counters == 1).all()


def test_shutdown_twice_and_start_again(jobs: Jobs) -> None:
    jobs.pool.shutdown()
    jobs.pool.shutdown()
    counters = np.zeros(10, np.int64)
    jobs.run("count", counters, 10, 2)
    assert (counters == 1).all()


def test_one_pool_serves_the_process(jobs: Jobs) -> None:
    assert thread_pool(b"never looked at") is jobs.pool
    assert isinstance(jobs.pool, ThreadPool)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_a_worker_that_slept_leaves_the_callers_cpu_to_the_caller(jobs: Jobs) -> None:
    jobs.pool.shutdown()
    others = set(os.listdir("/proc/self/task"))
    jobs.run("count", np.zeros(100, np.int64), 100, 2)
    (worker,) = set(os.listdir("/proc/self/task")) - others
    allowed = os.sched_getaffinity(0)
    assert os.sched_getaffinity(int(worker)) == allowed
    time.sleep(0.05)
    jobs.run("count", np.zeros(100, np.int64), 100, 2)
    assert os.sched_getaffinity(int(worker)) < allowed
    assert len(os.sched_getaffinity(int(worker))) == len(allowed) - 1


def test_a_caller_on_one_cpu_leaves_its_workers_where_they_are(jobs: Jobs) -> None:
    """There is no other CPU that it may use; the job still ends."""
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        time.sleep(0.05)
        counters = np.zeros(100, np.int64)
        jobs.run("count", counters, 100, 2)
    finally:
        os.sched_setaffinity(0, allowed)
    assert (counters == 1).all()


@pytest.mark.parametrize("triple", ["aarch64-unknown-linux-gnu", "arm64-apple-darwin", "riscv64-unknown-linux-gnu"])
def test_the_pool_assembles_for_other_machines(triple: str) -> None:
    assert len(assemble_thread_pool(triple)) > 1000
