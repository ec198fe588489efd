"""Requests that wait: deadlines, requests given up, full queues, draining."""

import asyncio
import time
from pathlib import Path

import pytest

from onnxla.serving.errors import DeadlineError, NotReadyError, OverloadedError
from tests.serving.repositories import Gate, ask, dense, in_loop, put, random_rows, serving


def test_deadlines_and_cancelled_requests_leave_the_queue(tmp_path: Path) -> None:
    put(tmp_path, "m", dense(rows=1))

    async def work() -> None:
        async with serving(tmp_path, inline_seconds=0.0) as engine:
            gate = Gate(engine, "m")
            x = {"x": random_rows(1)}
            first = asyncio.create_task(ask(engine, "m", x))
            await asyncio.sleep(0)
            late = asyncio.create_task(ask(engine, "m", x, deadline=time.monotonic() + 1e-3))
            given_up = asyncio.create_task(ask(engine, "m", x))
            await asyncio.sleep(0)
            assert engine.statistics()[0].queued == 2 and engine.statistics()[0].running == 1
            given_up.cancel()
            with pytest.raises(DeadlineError, match="while the request waited"):
                await late
            with pytest.raises(asyncio.CancelledError):
                await given_up
            gate.open()
            await first
            for inline in (0.0, 1.0):
                served = engine._models["m"].newest
                assert served is not None
                served._scheduler._inline = inline
                with pytest.raises(DeadlineError, match="came after its deadline"):
                    await ask(engine, "m", x, deadline=time.monotonic() - 1)
            (counts,) = engine.statistics()
            assert counts.executions == 1 and counts.queued == 0
            assert engine.measurements().models[0].failures == {"DeadlineError": 3, "Cancelled": 1}

    in_loop(work)


def test_a_deadline_that_passes_while_the_model_runs_ends_the_wait(tmp_path: Path) -> None:
    put(tmp_path, "m", dense(rows=1))

    async def work() -> None:
        async with serving(tmp_path, inline_seconds=0.0) as engine:
            gate = Gate(engine, "m")
            with pytest.raises(DeadlineError, match="while the model ran"):
                await ask(engine, "m", {"x": random_rows(1)}, deadline=time.monotonic() + 0.05)
            gate.open()
            await ask(engine, "m", {"x": random_rows(1)})

    in_loop(work)


def test_what_waits_longer_than_the_queue_allows_is_refused(tmp_path: Path) -> None:
    config = "max_batch_size: 1 dynamic_batching { default_queue_policy { default_timeout_microseconds: 2000 } }"
    put(tmp_path, "m", dense(), config=config)

    async def work() -> None:
        async with serving(tmp_path, inline_seconds=0.0) as engine:
            gate = Gate(engine, "m")
            first = asyncio.create_task(ask(engine, "m", {"x": random_rows(1)}))
            await asyncio.sleep(0)
            with pytest.raises(DeadlineError, match="while the request waited"):
                await ask(engine, "m", {"x": random_rows(1)})
            gate.open()
            await first  # it had begun

    in_loop(work)


def test_a_full_queue_refuses(tmp_path: Path) -> None:
    config = "max_batch_size: 1 dynamic_batching { default_queue_policy { max_queue_size: 2 } }"
    put(tmp_path, "m", dense(), config=config)

    async def work() -> None:
        async with serving(tmp_path, inline_seconds=0.0) as engine:
            got = await asyncio.gather(
                *(ask(engine, "m", {"x": random_rows(1)}) for _ in range(8)), return_exceptions=True
            )
            refused = [error for error in got if isinstance(error, OverloadedError)]
            assert len(refused) == 5 and all(error.retry_after for error in refused)

    in_loop(work)


def test_draining_ends_what_has_begun_and_takes_no_more(tmp_path: Path) -> None:
    put(tmp_path, "m", dense(rows=1))

    async def work() -> None:
        async with serving(tmp_path, inline_seconds=0.0) as engine:
            gate = Gate(engine, "m")
            x = {"x": random_rows(1)}
            tasks = [asyncio.create_task(ask(engine, "m", x)) for _ in range(4)]
            await asyncio.sleep(0)
            await engine.drain(0.01)
            assert not engine.ready() and not engine.model_ready("m")
            with pytest.raises(NotReadyError, match="shutting down"):
                await ask(engine, "m", x)
            assert not any(task.done() for task in tasks)
            draining = asyncio.create_task(engine.drain(60))
            gate.open()
            await draining
            await asyncio.gather(*tasks)

    in_loop(work)
