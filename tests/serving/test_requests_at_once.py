"""Requests that are answered without waiting, on whatever thread: as the event loop answers them, and counted."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxla.serving.engine import ServingEngine
from onnxla.serving.errors import DeadlineError, InvalidRequestError
from onnxla.serving.requests import InferRequest, ModelStatistics
from tests.serving.repositories import (
    Gate,
    W,
    ask,
    batched_artifact,
    dense,
    in_loop,
    put,
    put_artifact,
    random_rows,
    serving,
)

ALWAYS: dict[str, Any] = {"inline_seconds": 1e6, "control": "explicit", "load_at_start": ("m",)}
"""Every run is short."""


def now(engine: ServingEngine, rows: int = 1, **fields: Any) -> Any:
    response = engine.infer_now(InferRequest("m", {"x": random_rows(rows)}, **fields))
    return None if response is None else dict(response.outputs)


def test_the_answer_is_that_of_the_loop(tmp_path: Path) -> None:
    put(tmp_path, "m", dense(), config="max_batch_size: 4")

    async def work() -> None:
        async with serving(tmp_path, **ALWAYS) as engine:
            for rows in (1, 3):
                expected = await ask(engine, "m", {"x": random_rows(rows)})
                got = await asyncio.to_thread(now, engine, rows)
                assert list(got) == ["y", "s"]
                for name, array in expected.items():
                    np.testing.assert_array_equal(got[name], array)
            assert list(now(engine, outputs=("s",))) == ["s"]
            counts = engine.statistics("m")[0]
            assert (counts.inferences, counts.executions, counts.success.count) == (9, 5, 5)

    in_loop(work)


def test_nobody_is_answered_who_must_wait(tmp_path: Path) -> None:
    put(tmp_path, "m", dense())

    async def work() -> None:
        async with serving(tmp_path, inline_seconds=0) as engine:
            await ask(engine, "m", {"x": random_rows(1)})
            assert now(engine) is None  # no run is short
        async with serving(tmp_path, **ALWAYS) as engine:
            await ask(engine, "m", {"x": random_rows(1)})
            assert now(engine) is not None
            assert now(engine, 2) is None  # no code for these shapes yet
            assert now(engine, version="2") is None
            assert engine.infer_now(InferRequest("none", {})) is None
            gate = Gate(engine, "m")
            served: Any = engine._models["m"].newest
            served._scheduler._inline = 0
            waiting = asyncio.create_task(ask(engine, "m", {"x": random_rows(1)}))
            await asyncio.to_thread(gate.began.acquire)
            served._scheduler._inline = 1e6
            assert now(engine) is None  # the one instance runs
            gate.open()
            await waiting
            await engine.unload("m")
            assert now(engine) is None
            assert served.infer_now(InferRequest("m", {"x": random_rows(1)})) is None
        assert served._recorder.statistics.fail.count == 0

    in_loop(work)


def test_wrong_and_late_requests_are_told_so(tmp_path: Path) -> None:
    put(tmp_path, "m", dense())

    async def work() -> None:
        async with serving(tmp_path, **ALWAYS) as engine:
            await ask(engine, "m", {"x": random_rows(1)})
            with pytest.raises(InvalidRequestError, match="missing: x FP32"):
                engine.infer_now(InferRequest("m", {}))
            with pytest.raises(DeadlineError, match="came after its deadline"):
                now(engine, deadline=time.monotonic() - 1)
            assert engine.measurements().models[0].failures == {"InvalidRequestError": 1, "DeadlineError": 1}

    in_loop(work)


def test_a_request_that_waits_runs_when_the_instance_is_free_again(tmp_path: Path) -> None:
    put(tmp_path, "m", dense())

    async def work() -> None:
        async with serving(tmp_path, **ALWAYS) as engine:
            await ask(engine, "m", {"x": random_rows(1)})
            gate = Gate(engine, "m")
            first = asyncio.create_task(asyncio.to_thread(now, engine))
            await asyncio.to_thread(gate.began.acquire)
            second = asyncio.create_task(ask(engine, "m", {"x": random_rows(1)}))
            await asyncio.sleep(0.02)
            assert engine.statistics("m")[0].queued == 1 and not second.done()
            gate.open()
            np.testing.assert_array_equal((await first)["y"], (await second)["y"])

    in_loop(work)


def test_a_version_that_ends_waits_for_them(tmp_path: Path) -> None:
    put(tmp_path, "m", dense())

    async def work() -> None:
        async with serving(tmp_path, **ALWAYS) as engine:
            await ask(engine, "m", {"x": random_rows(1)})
            gate = Gate(engine, "m")
            first = asyncio.create_task(asyncio.to_thread(now, engine))
            await asyncio.to_thread(gate.began.acquire)
            unloading = asyncio.create_task(engine.unload("m"))
            await asyncio.sleep(0.02)
            assert not unloading.done() and now(engine) is None
            gate.open()
            assert (await first) is not None
            await asyncio.wait_for(unloading, 20)

    in_loop(work)


def test_threads_and_the_loop_at_once_while_the_model_is_loaded_again(tmp_path: Path) -> None:
    artifacts = [batched_artifact(tmp_path / f"{factor}.onnxla", factor) for factor in (1.0, 2.0)]
    root = tmp_path / "models"
    put_artifact(root, "m", artifacts[0])
    (root / "m" / "config.pbtxt").write_text("max_batch_size: 4 dynamic_batching {} instance_group { count: 2 }")

    def is_right(x: Any, y: Any) -> bool:
        return any(np.allclose(y, x @ W * factor, rtol=1e-4, atol=1e-5) for factor in (1, 2))

    async def work() -> None:
        async with serving(root, **ALWAYS) as engine:
            ended = threading.Event()

            def on_thread(seed: int) -> tuple[int, int]:
                answered = left = 0
                while not ended.is_set():
                    x = random_rows(1 + seed % 4, seed=seed)
                    response = engine.infer_now(InferRequest("m", {"x": x}))
                    if response is None:
                        left += 1
                    else:
                        assert is_right(x, response.outputs["y"])
                        answered += 1
                return answered, left

            async def on_loop(seed: int) -> int:
                answered = 0
                while not ended.is_set():
                    x = random_rows(1 + seed % 4, seed=seed)
                    assert is_right(x, (await ask(engine, "m", {"x": x}))["y"])
                    answered += 1
                    await asyncio.sleep(0)
                return answered

            served: list[ModelStatistics] = []
            with ThreadPoolExecutor(3) as threads:
                asked = [threads.submit(on_thread, seed) for seed in range(3)]
                clients = [asyncio.create_task(on_loop(seed)) for seed in range(4)]
                for turn in range(4):
                    await asyncio.sleep(0.15)
                    served += engine.statistics("m")
                    put_artifact(root, "m", artifacts[turn % 2])
                    await engine.load("m")
                ended.set()
                answered = sum([await client for client in clients])
                results = [await asyncio.wrap_future(one) for one in asked]
            answered += sum(one for one, _ in results)
            served += engine.statistics("m")
            assert sum(one.success.count for one in served) == answered
            assert min(one for one, _ in results) > 0
            assert engine.measurements().models[0].failures == {}

    in_loop(work)
