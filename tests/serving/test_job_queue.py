"""The queue by itself: what runs together and in what order, and that every job is taken once, by any thread."""

import threading
import time
from types import SimpleNamespace
from typing import Any

from onnxla.serving.interface import Arranged
from onnxla.serving.job_queue import Job, JobQueue
from onnxla.serving.model_config import Batching
from onnxla.serving.rows import RowsPlan

PLAN = RowsPlan(inputs=(0,), outputs=(None,), ranges=((1, 1), (2, 2), (3, 4)), combines=True)
VARIANT: Any = SimpleNamespace(rows=PLAN)


def job(queue: JobQueue, rows: int = 1, shared: object = None, until: float | None = None) -> Job:
    given = Arranged([], (), rows, shared)
    future: Any = None
    return Job(VARIANT, given, queue.group_of(VARIANT, given), future, until)


def filled(
    batching: Batching | None, *arguments: dict[str, Any], has_state: bool = False
) -> tuple[JobQueue, list[Job]]:
    queue = JobQueue(batching, has_state)
    jobs = [job(queue, **one) for one in arguments]
    for one in jobs:
        queue.add(one)
    return queue, jobs


def test_what_fits_together_is_taken_together_and_what_waits_longest_first() -> None:
    queue, (a, b, c, d, e) = filled(Batching(), {"rows": 2}, {"shared": 1}, {"rows": 2}, {}, {"shared": 1})
    assert [queue.take() for _ in range(3)] == [[a, c], [b, e], [d]]
    assert all(one.began for one in (a, b, c, d, e)) and len(queue) == 0 and queue.take() == []


def test_without_batching_or_with_a_state_each_is_taken_alone() -> None:
    for batching, has_state in ((None, False), (Batching(), True)):
        queue, jobs = filled(batching, {}, {}, {}, has_state=has_state)
        assert [queue.take() for _ in jobs] == [[one] for one in jobs]


def test_jobs_wait_for_others_until_they_are_due() -> None:
    queue, (a,) = filled(Batching(delay=60.0), {})
    assert queue.take() == [] and queue.due() == a.arrived + 60 * 10**9
    full = [job(queue, rows=2), job(queue, rows=1)]
    for one in full:
        queue.add(one)
    assert queue.take() == [a, *full] and queue.due() is None
    queue, (a,) = filled(Batching(delay=0.001), {})
    time.sleep(0.002)
    assert queue.take() == [a]


def test_late_jobs_are_never_taken() -> None:
    past, future = time.monotonic() - 1, time.monotonic() + 60
    queue, (_, b, _, d) = filled(Batching(), {"until": past}, {"until": future}, {"until": past}, {})
    assert queue.take() == [b, d] and len(queue) == 0
    queue, _ = filled(None, {"until": past}, {"until": past})
    assert queue.take() == [] and len(queue) == 0 and queue.due() is None


def test_jobs_that_are_put_back_come_first_and_alone() -> None:
    queue, (a, b, c) = filled(Batching(), {}, {"rows": 2}, {"rows": 2})
    assert queue.take() == [a, b]
    for one in (a, b):
        one.tries += 1
    queue.put_back([a, b])
    assert not a.began and [queue.take() for _ in range(3)] == [[a], [b], [c]]


def test_what_was_taken_cannot_be_removed() -> None:
    queue, (a, b) = filled(None, {}, {})
    assert queue.take() == [a]
    queue.remove(a)
    queue.remove(b)
    queue.remove(b)
    assert a.began and len(queue) == 0 and queue.clear() == []


def test_every_job_is_taken_or_removed_once_by_whatever_thread() -> None:
    queue = JobQueue(Batching(), False)
    jobs = [job(queue, rows=1 + k % 3, shared=k % 2) for k in range(3000)]
    taken: list[list[Job]] = [[] for _ in range(3)]
    added = threading.Event()

    def take(into: list[Job]) -> None:
        while not added.is_set() or queue:
            batch = queue.take()
            assert sum(one.rows for one in batch) <= PLAN.most
            into += batch

    threads = [threading.Thread(target=take, args=(into,)) for into in taken]
    for thread in threads:
        thread.start()
    for one in jobs:
        queue.add(one)
        if one.rows == 2:
            queue.remove(one)
    added.set()
    for thread in threads:
        thread.join(60)
    found = [id(one) for into in taken for one in into]
    assert len(found) == len(set(found)) and {id(one) for one in jobs if one.began} == set(found)
    assert {id(one) for one in jobs if one.rows != 2} <= set(found)
