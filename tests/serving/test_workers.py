"""Models in processes of their own: the same answers, and none lost when a process dies."""

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnxla
from onnxla.serving.engine import ServingEngine
from onnxla.serving.errors import InvalidRequestError, NotReadyError, ServingError
from onnxla.serving.instances import WorkerDied
from onnxla.serving.shared_tensors import SharedTensors
from onnxla.serving.variant import Variant
from onnxla.serving.worker_runner import WorkerRunner
from tests.runtime.test_state import running_total
from tests.serving.repositories import (
    W,
    ask,
    batched_artifact,
    dense,
    in_loop,
    put,
    put_artifact,
    random_rows,
    reshaping,
    serving,
    words,
)

BATCHED = "max_batch_size: 4 dynamic_batching {}"


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[WorkerRunner]:
    made = WorkerRunner("m", None, None, 2, 0.0)
    yield made
    made.close()


def variant(tmp_path: Path, model: onnx.ModelProto, **arguments: Any) -> Variant:
    compiled = onnxla.compile(model, **arguments)
    compiled.save(tmp_path / "v.onnxla")
    return Variant(compiled, None, tmp_path / "v.onnxla")


def workers_of(engine: ServingEngine, name: str) -> list[WorkerRunner]:
    served = engine._models[name].newest
    assert served is not None
    return [i.runner for i in served._scheduler._instances if isinstance(i.runner, WorkerRunner)]


def kill(worker: WorkerRunner) -> None:
    """Where it lives: 0 would be our own process and all that belong to it."""
    if worker.pid is not None:
        with suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGKILL)


def serves(worker: WorkerRunner) -> bool:
    """Whether it lives and has loaded the model: one that is killed as it starts is killed with the same request."""
    return worker.pid is not None and bool(worker._loaded)


def test_a_worker_gives_what_run_gives(tmp_path: Path, runner: WorkerRunner) -> None:
    code = variant(tmp_path, dense(), dims={"batch": 3})
    for seed in range(3):
        x = random_rows(3, seed=seed)
        for ours, theirs in zip(runner.run(code, [x]), code.run([x]), strict=True):
            np.testing.assert_array_equal(ours, theirs)
            assert ours.flags.owndata and ours.flags.writeable


def test_a_worker_that_is_killed_is_replaced(tmp_path: Path, runner: WorkerRunner) -> None:
    code = variant(tmp_path, dense(), dims={"batch": 3})
    runner.prepare([code])
    first = runner.pid
    kill(runner)
    with pytest.raises(WorkerDied, match="SIGKILL"):
        runner.run(code, [random_rows(3)])
    np.testing.assert_allclose(runner.run(code, [random_rows(3)])[0], random_rows(3) @ W, rtol=1e-5)
    assert runner.pid != first


def test_errors_of_a_worker_are_those_of_the_model(tmp_path: Path, runner: WorkerRunner) -> None:
    code = variant(tmp_path, dense(), dims={"batch": 3})
    with pytest.raises(onnxla.InputError, match=r"x: shape \[2, 4\], the model takes x tensor\(float\)\[3,4\]"):
        runner.run(code, [random_rows(2)])
    pid = runner.pid
    (tmp_path / "bad.onnxla").write_bytes(b"no artifact")
    with pytest.raises(onnxla.OnnxlaError, match="not an onnxla artifact"):
        runner.run(Variant(code.model, None, tmp_path / "bad.onnxla"), [random_rows(3)])
    runner.run(code, [random_rows(3)])
    assert runner.pid == pid


def test_a_run_that_hangs_is_ended(tmp_path: Path) -> None:
    runner = WorkerRunner("m", None, None, 2, 0.5)
    code = variant(tmp_path, dense(), dims={"batch": 3})
    runner.prepare([code])
    assert runner.pid is not None
    os.kill(runner.pid, signal.SIGSTOP)
    with pytest.raises(WorkerDied, match="no answer for 0.5 seconds"):
        runner.run(code, [random_rows(3)])
    runner.run(code, [random_rows(3)])
    runner.close()


def test_a_worker_keeps_so_many_sets_of_shapes(tmp_path: Path, runner: WorkerRunner) -> None:
    codes = []
    for rows in (1, 2, 3):
        path = tmp_path / str(rows)
        path.mkdir()
        codes.append(variant(path, dense(), dims={"batch": rows}))
    for rows in (1, 2, 3, 1, 3, 2):
        assert runner.run(codes[rows - 1], [random_rows(rows)])[0].shape == (rows, 3)
        assert len(runner._loaded) <= 2


def test_tensors_go_through_shared_memory_unchanged() -> None:
    ours = SharedTensors.create("test")
    theirs = SharedTensors(os.dup(ours.descriptor))
    dice = np.random.default_rng(0)
    strings = np.array([b"", b"\xff\x00", "ä"], object)
    for turn in range(4):
        arrays = [
            dice.standard_normal((3 * 10**turn, 5)).astype(np.float32),
            dice.integers(0, 9, (2, 3)).T,
            np.zeros((0, 3), np.int8),
            np.array(True),
            strings,
            None,
            np.zeros(3, np.complex64),
        ]
        rows = ours.write(arrays)
        found = theirs.read(rows, copy=True)
        for a, b in zip(arrays[:4], found[:4], strict=True):
            assert isinstance(a, np.ndarray) and a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        assert list(found[4]) == [b"", b"\xff\x00", "ä".encode()]
        assert found[5:] == [None, None]
    ours.close()
    theirs.close()


def test_models_are_served_by_workers(tmp_path: Path) -> None:
    put(tmp_path, "batched", dense(), config=BATCHED)
    put(tmp_path, "open", dense(rows="n"))
    put(tmp_path, "values", reshaping())
    put(tmp_path, "words", words())
    put(tmp_path, "here", dense(rows=1), config='parameters { key: "workers" value { string_value: "0" } }')

    async def work() -> None:
        async with serving(tmp_path, workers=2) as engine:
            assert [line.state for line in engine.index()] == ["READY"] * 5, engine.index()
            assert len(workers_of(engine, "batched")) == 2 and not workers_of(engine, "here")
            for rows in (1, 3, 4, 1):
                for name in ("batched", "open"):
                    got = await ask(engine, name, {"x": random_rows(rows)})
                    np.testing.assert_allclose(got["y"], random_rows(rows) @ W, rtol=1e-4, atol=1e-5)
            x = np.arange(6, dtype=np.float32)
            for shape in ([2, 3], [3, 2]):
                got = await ask(engine, "values", {"x": x, "shape": np.array(shape)})
                np.testing.assert_array_equal(got["y"], x.reshape(shape))
            got = await ask(engine, "words", {"x": np.array([b"one", b"zwei", b"-"], object)})
            np.testing.assert_array_equal(got["y"], [1, 2, -1])
            with pytest.raises(InvalidRequestError):
                await ask(engine, "words", {"x": np.array([b"one", b"\xff", b"-"], object)})
            pids = [w.pid for name in ("batched", "open") for w in workers_of(engine, name)]
        for _ in range(200):
            if not any(alive(pid or 0) for pid in pids):
                break
            await asyncio.sleep(0.05)
        assert not any(alive(pid or 0) for pid in pids)

    in_loop(work)


def alive(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def test_no_request_is_lost_or_wrong_while_workers_are_killed_and_the_model_is_loaded_again(tmp_path: Path) -> None:
    artifacts = [batched_artifact(tmp_path / f"{factor}.onnxla", factor) for factor in (1.0, 2.0)]
    root = tmp_path / "models"
    put_artifact(root, "m", artifacts[0])
    (root / "m" / "config.pbtxt").write_text(BATCHED)

    async def work() -> None:
        async with serving(root, workers=2, control="explicit") as engine:
            await engine.load("m")
            stop, answers = False, 0

            async def client(seed: int) -> None:
                nonlocal answers
                while not stop:
                    x = random_rows(1 + seed % 4, seed=seed)
                    got = await ask(engine, "m", {"x": x})
                    assert any(np.allclose(got["y"], x @ W * f, rtol=1e-4, atol=1e-5) for f in (1, 2))
                    answers += 1

            clients = [asyncio.create_task(client(seed)) for seed in range(6)]
            dice, restarts = random.Random(0), 0
            for turn in range(5):
                before, seen = answers, engine.measurements().models[0].worker_restarts
                kill(dice.choice(workers_of(engine, "m")))
                for _ in range(2000):
                    restarted = engine.measurements().models[0].worker_restarts > seen
                    if answers >= before + 20 and restarted and all(map(serves, workers_of(engine, "m"))):
                        break
                    await asyncio.sleep(0.01)
                restarts += engine.measurements().models[0].worker_restarts - seen
                if turn == 2:
                    put_artifact(root, "m", artifacts[1])
                    await engine.load("m")
            stop = True
            await asyncio.gather(*clients)
            assert restarts >= 5
            assert engine.measurements().models[0].failures == {}

    in_loop(work)


def test_a_request_that_always_ends_its_worker_is_refused_and_harms_no_other(tmp_path: Path) -> None:
    put_artifact(tmp_path, "m", batched_artifact(tmp_path / "m.onnxla"))
    (tmp_path / "m" / "config.pbtxt").write_text(BATCHED)

    async def work() -> None:
        async with serving(tmp_path, workers=1) as engine:
            (worker,) = workers_of(engine, "m")
            run = worker.run

            def crashing(code: Variant, arrays: Any) -> list[Any]:
                if np.isnan(arrays[0]).any():
                    kill(worker)
                return run(code, arrays)

            worker.run = crashing  # type: ignore[method-assign, assignment]
            poison = np.full((1, 4), np.nan, np.float32)
            xs = [random_rows(1), poison, random_rows(1, seed=1)]
            got = await asyncio.gather(*(ask(engine, "m", {"x": x}) for x in xs), return_exceptions=True)
            assert isinstance(got[1], ServingError) and "the worker ended while it ran this request, 3 times" in str(
                got[1]
            )
            for k in (0, 2):
                np.testing.assert_allclose(got[k]["y"], xs[k] @ W, rtol=1e-5)  # type: ignore[index]

    in_loop(work)


COUNTER = """HloModule counter

ENTRY main {
  x = f32[2]{0} parameter(0)
  ROOT t = (f32[2]{0}) tuple(x)
}
"""


def test_an_hlo_text_is_served_by_a_worker(tmp_path: Path) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.hlo").write_text(COUNTER)

    async def work() -> None:
        async with serving(tmp_path, workers=1) as engine:
            about = engine.metadata("m")
            x = np.arange(2, dtype=np.float32)
            got = await ask(engine, "m", {about.inputs[0].name: x})
            np.testing.assert_array_equal(got[about.outputs[0].name], x)

    in_loop(work)


def total_artifact(path: Path) -> Path:
    """A model that adds each row of x to a running total, and gives the total."""
    state = {"total": np.zeros(2, np.float32)}
    onnxla.compile(running_total(), inputs=["x"], outputs=["now"], state=state, shapes={"x": [1, 2]}).save(path)
    return path


@pytest.mark.parametrize("workers", [0, 2])
def test_a_model_with_a_state_runs_its_requests_in_order(tmp_path: Path, workers: int) -> None:
    put_artifact(tmp_path, "m", total_artifact(tmp_path / "m.onnxla"))
    (tmp_path / "m" / "config.pbtxt").write_text("instance_group { count: 3 }")

    async def work() -> None:
        async with serving(tmp_path, workers=workers) as engine:
            assert len(workers_of(engine, "m")) == min(workers, 1)
            one = np.ones((1, 2), np.float32)
            got = await asyncio.gather(*(ask(engine, "m", {"x": one}) for _ in range(20)))
            assert [float(answer["now"][0]) for answer in got] == list(range(1, 21))

    in_loop(work)


def test_a_state_that_is_lost_with_its_worker_is_said(tmp_path: Path) -> None:
    put_artifact(tmp_path, "m", total_artifact(tmp_path / "m.onnxla"))

    async def work() -> None:
        async with serving(tmp_path, workers=1, control="explicit") as engine:
            await engine.load("m")
            one = np.ones((1, 2), np.float32)
            await ask(engine, "m", {"x": one})
            kill(workers_of(engine, "m")[0])
            got = await asyncio.gather(*(ask(engine, "m", {"x": one}) for _ in range(3)), return_exceptions=True)
            assert "and the model's state with it" in str(got[0])
            assert all(isinstance(e, NotReadyError) and "must be loaded again" in str(e) for e in got[1:])
            with pytest.raises(NotReadyError, match="must be loaded again"):
                await ask(engine, "m", {"x": one})
            await engine.load("m")
            assert float((await ask(engine, "m", {"x": one}))["now"][0]) == 1

    in_loop(work)


def test_a_worker_that_dies_while_it_loads_is_no_fault_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_artifact(tmp_path, "m", total_artifact(tmp_path / "m.onnxla"))
    load = WorkerRunner._load

    def killed(self: WorkerRunner, code: Variant) -> None:
        kill(self)
        load(self, code)

    async def work() -> None:
        async with serving(tmp_path, workers=1, control="explicit") as engine:
            with monkeypatch.context() as patched:
                patched.setattr(WorkerRunner, "_load", killed)
                with pytest.raises(NotReadyError, match="version 1: the worker ended while it loaded.*SIGKILL"):
                    await engine.load("m")
            await engine.load("m")
            assert float((await ask(engine, "m", {"x": np.ones((1, 2), np.float32)}))["now"][0]) == 1

    in_loop(work)


def dying(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Let so many workers die while they load, the first ones; the list grows by one for each that loads."""
    loads: list[int] = []
    load = WorkerRunner._load

    def killed(self: WorkerRunner, code: Variant) -> None:
        loads.append(self.pid or 0)
        if len(loads) <= times:
            kill(self)
        load(self, code)

    monkeypatch.setattr(WorkerRunner, "_load", killed)
    return loads


def test_a_repository_that_is_polled_loads_again_what_a_dying_worker_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put_artifact(tmp_path, "m", total_artifact(tmp_path / "m.onnxla"))
    loads = dying(monkeypatch, 2)

    async def work() -> None:
        async with serving(tmp_path, workers=1, control="poll", poll_seconds=0.01) as engine:
            (line,) = engine.index()
            assert line.state == "UNAVAILABLE" and "the worker ended while it loaded" in line.reason
            while not engine.model_ready("m"):
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            assert len(loads) == 3

    in_loop(work)
    waits = [record.getMessage() for record in caplog.records if "is tried again in" in record.getMessage()]
    assert waits == ["model m is tried again in 0.01 s", "model m is tried again in 0.02 s"]


def test_that_is_tried_so_often_and_then_when_the_files_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put_artifact(tmp_path, "m", total_artifact(tmp_path / "m.onnxla"))
    loads = dying(monkeypatch, 6)

    async def work() -> None:
        async with serving(tmp_path, workers=1, control="poll", poll_seconds=0.01) as engine:
            while "not tried again until its files change" not in caplog.text:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            assert len(loads) == 6 and not engine.model_ready("m")
            put_artifact(tmp_path, "m", tmp_path / "m.onnxla")
            while not engine.model_ready("m"):
                await asyncio.sleep(0.01)

    in_loop(work)
