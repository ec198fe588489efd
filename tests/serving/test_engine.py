"""The engine against `run` of the same model: values, errors, versions, loading and unloading, states."""

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import onnxla
from onnxla.serving.engine import ServingEngine
from onnxla.serving.errors import (
    DeadlineError,
    InvalidRequestError,
    NotReadyError,
    OverloadedError,
    ServingError,
    UnknownModelError,
    UnsupportedRequestError,
)
from onnxla.serving.requests import InferRequest, ModelStatus
from onnxla.serving.settings import EngineSettings
from tests.serving.repositories import (
    Gate,
    ask,
    batched_artifact,
    dense,
    echo_words,
    in_loop,
    mixing,
    put,
    put_artifact,
    random_rows,
    reshaping,
    scaled,
    serving,
    words,
)


def test_a_model_gives_what_run_gives(tmp_path: Path) -> None:
    put(tmp_path, "m", dense())
    expected = onnxla.compile(dense()).run(None, {"x": random_rows(3)})

    async def work() -> None:
        async with serving(tmp_path) as engine:
            assert engine.ready() and engine.model_ready("m") and engine.model_ready("m", "1")
            response = await engine.infer(InferRequest("m", {"x": random_rows(3)}, id="7"))
            assert (response.model, response.version, response.id) == ("m", "1", "7")
            assert list(response.outputs) == ["y", "s"]
            for ours, theirs in zip(response.outputs.values(), expected, strict=True):
                np.testing.assert_array_equal(ours, theirs)
            only = await ask(engine, "m", {"x": random_rows(3)}, outputs=("s",))
            assert list(only) == ["s"]

    in_loop(work)


def test_it_says_what_it_is(tmp_path: Path) -> None:
    put(tmp_path, "m", dense(), config="max_batch_size: 2 instance_group { count: 2 }")
    put(tmp_path, "m", dense(), 2)

    async def work() -> None:
        async with serving(tmp_path) as engine:
            about = engine.metadata("m")
            assert (about.versions, about.platform) == (("2",), "onnxla")
            assert [(t.name, t.datatype, t.shape) for t in about.inputs] == [("x", "FP32", (-1, 4))]
            assert [(t.name, t.datatype, t.shape) for t in about.outputs] == [
                ("y", "FP32", (-1, 3)),
                ("s", "FP32", (-1,)),
            ]
            config = engine.config("m")
            assert config["max_batch_size"] == 2 and config["input"][0]["dims"] == [4]
            assert config["instance_group"] == [{"count": 2}]
            assert engine.index() == [ModelStatus("m", "2", "READY")]
            assert "<html" in await engine.explain("m")

    in_loop(work)


def test_wrong_requests_are_told_all_that_is_wrong(tmp_path: Path) -> None:
    put(tmp_path, "m", dense(), config="max_batch_size: 4")

    async def work() -> None:
        async with serving(tmp_path) as engine:
            for inputs, said in [
                ({}, "missing: x FP32"),
                (
                    {"x": random_rows(2).astype(np.float64), "z": random_rows(1)},
                    "model: z\nx: datatype FP64",
                ),
                ({"x": random_rows(2, 5)}, r"x: shape \[2, 5\], the model takes x FP32 \[-1, 4\]"),
                ({"x": random_rows(2)[0]}, r"x: shape \[4\]"),
                ({"x": random_rows(5)}, "5 rows, and 1 to 4 are served"),
                ({"x": random_rows(0)}, "0 rows"),
            ]:
                with pytest.raises(InvalidRequestError, match=said):
                    await ask(engine, "m", inputs)
            with pytest.raises(InvalidRequestError, match="no outputs q; the model gives y, s"):
                await ask(engine, "m", {"x": random_rows(1)}, outputs=("q", "y"))
            with pytest.raises(InvalidRequestError, match="missing: x FP32 .*\nno outputs q; the model gives y, s"):
                await ask(engine, "m", {}, outputs=("q",))
            with pytest.raises(UnknownModelError, match="no model 'n'"):
                await ask(engine, "n", {})
            with pytest.raises(UnknownModelError, match="has no version '3'; there are 1"):
                await ask(engine, "m", {}, version="3")
            assert engine.measurements().models[0].failures == {"InvalidRequestError": 8}

    in_loop(work)


def test_new_shapes_compile_when_they_come(tmp_path: Path) -> None:
    put(tmp_path, "m", scaled(), config='parameters { key: "specialisations" value { string_value: "2" } }')

    async def work() -> None:
        async with serving(tmp_path) as engine:
            k = np.float32(3).reshape(())
            with pytest.raises(NotReadyError, match=r"the code for shapes \[\[2, 4\], \[\]\] is being compiled"):
                await ask(engine, "m", {"x": random_rows(2), "k": k}, wait=False)
            for rows in (2, 3, 4, 2):
                got = await ask(engine, "m", {"x": random_rows(rows), "k": k})
                np.testing.assert_allclose(got["y"], random_rows(rows) * 3 + 1, rtol=1e-5, atol=1e-6)
            assert engine.measurements().models[0].specialisations == 2
            assert engine.statistics("m")[0].compiles.count == 4

    in_loop(work)


def test_one_compile_serves_all_who_wait_for_it(tmp_path: Path) -> None:
    put(tmp_path, "m", scaled())

    async def work() -> None:
        async with serving(tmp_path, waiting_shapes=2) as engine:
            inputs = {"x": random_rows(2), "k": np.ones((), np.float32)}
            await asyncio.gather(*(ask(engine, "m", inputs) for _ in range(20)))
            assert engine.statistics("m")[0].compiles.count == 1
            asked = [
                ask(engine, "m", {"x": random_rows(3 + k), "k": np.ones((), np.float32)}, wait=False) for k in range(3)
            ]
            got = await asyncio.gather(*asked, return_exceptions=True)
            assert [type(error) for error in got] == [NotReadyError, NotReadyError, OverloadedError]

    in_loop(work)


def test_shapes_that_do_not_compile_are_refused_and_remembered(tmp_path: Path) -> None:
    put(tmp_path, "m", reshaping())

    async def work() -> None:
        async with serving(tmp_path) as engine:
            good = {"x": np.arange(6, dtype=np.float32), "shape": np.array([2, 3])}
            np.testing.assert_array_equal((await ask(engine, "m", good))["y"], good["x"].reshape(2, 3))
            other = {**good, "shape": np.array([3, 2])}
            np.testing.assert_array_equal((await ask(engine, "m", other))["y"], good["x"].reshape(3, 2))
            for _ in range(2):
                with pytest.raises(InvalidRequestError, match="cannot be compiled"):
                    await ask(engine, "m", {**good, "shape": np.array([4, 2])})
            assert engine.measurements().compiles_failed == 1

    in_loop(work)


def test_shapes_are_refused_where_the_configuration_says_so(tmp_path: Path) -> None:
    config = 'parameters { key: "unseen_shapes" value { string_value: "refuse" } } '
    config += 'parameters { key: "dims" value { string_value: "batch=2 columns=4,5" } }'
    put(tmp_path, "m", scaled(), config=config)

    async def work() -> None:
        async with serving(tmp_path) as engine:
            k = np.ones((), np.float32)
            await ask(engine, "m", {"x": random_rows(2, 5), "k": k})
            with pytest.raises(
                InvalidRequestError, match=r"there is code for \[\[\[2, 4\], \[\]\], \[\[2, 5\], \[\]\]\]"
            ):
                await ask(engine, "m", {"x": random_rows(2, 6), "k": k})

    in_loop(work)


def test_strings_come_as_bytes(tmp_path: Path) -> None:
    put(tmp_path, "m", words())

    async def work() -> None:
        async with serving(tmp_path) as engine:
            assert engine.metadata("m").inputs[0].datatype == "BYTES"
            got = await ask(engine, "m", {"x": np.array([b"one", "zwei", b"x"], object)})
            np.testing.assert_array_equal(got["y"], [1, 2, -1])
            with pytest.raises(InvalidRequestError):
                await ask(engine, "m", {"x": np.array([b"\xff", b"", b""], object)})

    in_loop(work)


def test_an_artifact_is_served(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    model = onnxla.compile(dense(), dims={"batch": [1, 4]}, options={"pad_to_bucket": "batch"})
    model.save(tmp_path / "m" / "model.onnxla")

    async def work() -> None:
        async with serving(tmp_path) as engine:
            for rows in (1, 3, 4):
                got = await ask(engine, "m", {"x": random_rows(rows)})
                np.testing.assert_allclose(got["s"], random_rows(rows).sum(1), rtol=1e-5)
            with pytest.raises(InvalidRequestError, match="no code for"):
                await ask(engine, "m", {"x": random_rows(5)})

    in_loop(work)


def test_a_model_that_does_not_load_harms_no_other(tmp_path: Path) -> None:
    put(tmp_path, "good", dense())
    put(tmp_path, "mixing", mixing(), config="max_batch_size: 4 dynamic_batching {}")
    put(tmp_path, "config", dense(), config="max_batch: 4")
    (put(tmp_path, "bytes", dense()) / "model.onnx").write_bytes(b"no model")
    (put(tmp_path, "artifact", dense()) / "model.onnx").rename(tmp_path / "artifact" / "1" / "model.onnxla")

    async def work() -> None:
        async with serving(tmp_path) as engine:
            assert engine.ready()
            states = {line.name: (line.state, line.reason) for line in engine.index()}
            assert states["good"] == ("READY", "")
            assert states["mixing"][0] == "UNAVAILABLE" and "Softmax" in states["mixing"][1]
            assert "max_batch" in states["config"][1]
            assert {states[n][0] for n in ("bytes", "artifact")} == {"UNAVAILABLE"}
            with pytest.raises(NotReadyError, match="is not ready: UNAVAILABLE: .*it combines all rows"):
                await ask(engine, "mixing", {})
            assert not engine.model_ready("mixing")
            await ask(engine, "good", {"x": random_rows(1)})
            assert engine.measurements().loads_failed == 4

    in_loop(work)


def test_models_are_loaded_and_unloaded_by_request(tmp_path: Path) -> None:
    put(tmp_path, "m", dense())

    async def work() -> None:
        async with serving(tmp_path, control="explicit") as engine:
            assert [line.state for line in engine.index()] == ["UNAVAILABLE"]
            with pytest.raises(NotReadyError):
                await ask(engine, "m", {"x": random_rows(1)})
            await engine.load("m")
            await ask(engine, "m", {"x": random_rows(1)})
            put(tmp_path, "m", dense(2.0), 5)
            await engine.load("m")
            assert [(line.version, line.state) for line in engine.index()] == [("5", "READY")]
            await engine.load("m", {"config": '{"version_policy": {"all": {}}, "max_batch_size": 2}'})
            assert engine.metadata("m").versions == ("1", "5") and engine.config("m")["max_batch_size"] == 2
            one = await ask(engine, "m", {"x": random_rows(1)}, version="1")
            two = await ask(engine, "m", {"x": random_rows(1)})
            np.testing.assert_allclose(one["y"] * 2, two["y"], rtol=1e-5)
            for parameters, kind in [
                ({"file:1/model.onnx": b""}, UnsupportedRequestError),
                ({"config": 3}, InvalidRequestError),
                ({"x": 1}, InvalidRequestError),
                ({"config": "{"}, InvalidRequestError),
            ]:
                with pytest.raises(kind):
                    await engine.load("m", parameters)  # type: ignore[arg-type]
            assert engine.metadata("m").versions == ("1", "5")
            await engine.unload("m")
            assert [line.state for line in engine.index()] == ["UNAVAILABLE", "UNAVAILABLE"]
            for name in ("n", "..", "m/1"):
                with pytest.raises(UnknownModelError):
                    await engine.load(name)
            with pytest.raises(UnknownModelError):
                await engine.unload("n")
        async with serving(tmp_path) as engine:
            for call in (engine.load("m"), engine.unload("m")):
                with pytest.raises(UnsupportedRequestError, match="control='explicit'"):
                    await call

    in_loop(work)


def test_what_is_served_stays_where_the_new_files_are_bad(tmp_path: Path) -> None:
    folder = put(tmp_path, "m", dense())

    async def work() -> None:
        async with serving(tmp_path, control="explicit") as engine:
            await engine.load("m")
            await ask(engine, "m", {"x": random_rows(1)})
            (folder / "model.onnx").write_bytes(b"no model")
            with pytest.raises(ServingError, match="^model m is not loaded: version 1: "):
                await engine.load("m")
            await ask(engine, "m", {"x": random_rows(1)})
            (line,) = engine.index()
            assert line.state == "READY" and "loading it again failed" in line.reason
            with pytest.raises(NotReadyError, match="files have changed since it was loaded"):
                await ask(engine, "m", {"x": random_rows(2)})

    in_loop(work)


@pytest.mark.parametrize("config", ["", "max_batch_size: 2"])
def test_a_new_version_has_code_for_the_shapes_of_the_one_before(tmp_path: Path, config: str) -> None:
    put(tmp_path, "m", scaled(), config=config)

    async def work() -> None:
        async with serving(tmp_path, control="explicit") as engine:

            async def columns(*sizes: int) -> None:
                for n in sizes:
                    x, k = np.ones((1, n), np.float32), np.array(2, np.float32)
                    assert (await ask(engine, "m", {"x": x, "k": k}))["y"].tolist() == [[3.0] * n]

            await engine.load("m")
            await columns(2, 3, 4, 5, 6, 2)
            for version in (1, 2):  # the same one again, and one that is newer
                if version == 2:
                    put(tmp_path, "m", scaled(), 2)
                await engine.load("m")
                (counts,) = engine.statistics("m")
                assert (counts.version, counts.compiles.count) == (str(version), 4)  # those used last
                await columns(4, 5, 6, 2)
                assert counts.compiles.count == 4
            await columns(3)
            assert counts.compiles.count == 5
            put(tmp_path, "m", dense(), 3, "")  # another model: nothing fits
            await engine.load("m")
            assert engine.metadata("m").versions == ("3",)

    in_loop(work)


def test_a_repository_that_is_polled_follows_its_files(tmp_path: Path) -> None:
    put(tmp_path, "m", dense())
    put(tmp_path, "gone", dense())

    async def until(holds: object) -> None:
        for _ in range(600):
            if holds():  # type: ignore[operator]
                return
            await asyncio.sleep(0.05)
        raise AssertionError("it did not come true")

    async def work() -> None:
        async with serving(tmp_path, control="poll", poll_seconds=0.05) as engine:
            put(tmp_path, "m", dense(), 2)
            put(tmp_path, "new", dense())
            for name in ("gone",):
                (tmp_path / name / "1" / "model.onnx").unlink()
                (tmp_path / name / "1").rmdir()
                (tmp_path / name).rmdir()
            await until(lambda: engine.metadata("m").versions == ("2",))
            await until(lambda: {line.name: line.state for line in engine.index()} == {"m": "READY", "new": "READY"})

    in_loop(work)


def test_a_broken_new_version_leaves_the_old_one_served(tmp_path: Path) -> None:
    put(tmp_path, "m", dense())
    x = {"x": random_rows(2)}

    async def work() -> None:
        async with serving(tmp_path, control="explicit", load_at_start=("m",)) as engine:
            expected = await ask(engine, "m", x)
            second = put(tmp_path, "m", dense(2.0), 2) / "model.onnx"
            whole = second.read_bytes()
            second.write_bytes(whole[:50])
            with pytest.raises(InvalidRequestError, match="version 2"):
                await engine.load("m")
            assert [(line.version, line.state) for line in engine.index()] == [("1", "READY"), ("2", "UNAVAILABLE")]
            np.testing.assert_array_equal((await ask(engine, "m", x))["y"], expected["y"])
            second.write_bytes(whole)
            await engine.load("m")
            assert engine.metadata("m").versions == ("2",)

    in_loop(work)


def test_a_broken_configuration_is_told_once_and_in_the_index(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(tmp_path, "m", dense())

    async def work() -> None:
        async with serving(tmp_path, control="none") as engine:
            (tmp_path / "m" / "config.pbtxt").write_text("nonsense: 1")
            for _ in range(3):
                await engine._look()
            (line,) = engine.index()
            assert line.state == "READY" and "loading it again failed" in line.reason and "nonsense" in line.reason
            assert sum("nonsense" in record.getMessage() for record in caplog.records) == 1
            (tmp_path / "m" / "config.pbtxt").write_text("")
            await engine._look()
            assert [(line.state, line.reason) for line in engine.index()] == [("READY", "")]

    in_loop(work)


def test_strings_are_text_in_any_letters(tmp_path: Path) -> None:
    put(tmp_path, "m", echo_words())

    async def work() -> None:
        async with serving(tmp_path) as engine:
            for word in ("é".encode(), "é", "日本".encode()):
                text = word if isinstance(word, str) else word.decode()
                assert (await ask(engine, "m", {"x": np.array([word], object)}))["y"].tolist() == [text]
            with pytest.raises(InvalidRequestError, match="x: bytes that are no text in UTF-8"):
                await ask(engine, "m", {"x": np.array([b"\xff"], object)})

    in_loop(work)


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


def test_no_request_is_lost_while_a_model_is_loaded_again(tmp_path: Path) -> None:
    artifacts = [batched_artifact(tmp_path / f"{factor}.onnxla", factor) for factor in (1.0, 2.0)]
    root = tmp_path / "models"
    put_artifact(root, "m", artifacts[0])
    (root / "m" / "config.pbtxt").write_text("max_batch_size: 4 dynamic_batching {} instance_group { count: 2 }")

    async def work() -> None:
        async with serving(root, control="explicit", inline_seconds=0.0) as engine:
            await engine.load("m")
            stop = False
            answers = [0, 0]

            async def client(seed: int) -> None:
                while not stop:
                    x = random_rows(1 + seed % 4, seed=seed)
                    got = await ask(engine, "m", {"x": x})
                    plain = x @ np.arange(12, dtype=np.float32).reshape(4, 3)
                    (factor,) = [f for f in (1, 2) if np.allclose(got["y"], plain * f, rtol=1e-4)]
                    answers[factor - 1] += 1

            clients = [asyncio.create_task(client(seed)) for seed in range(8)]
            for k in range(6):
                put_artifact(root, "m", artifacts[(k + 1) % 2])
                await engine.load("m")
                await ask(engine, "m", {"x": random_rows(1)})
            stop = True
            await asyncio.gather(*clients)
            assert all(answers)

    in_loop(work)


def test_settings_and_folders_that_make_no_sense(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="is no folder of models"):
        in_loop(lambda: _made(tmp_path / "nothing"))
    for wrong in ({"control": "x"}, {"workers": -1}, {"compiles": 0}, {"poll_seconds": 0.0}, {"inline_seconds": -1}):
        with pytest.raises(onnxla.InputError):
            EngineSettings(tmp_path, **wrong)


async def _made(root: Path) -> ServingEngine:
    return ServingEngine(EngineSettings(root))


def test_models_of_what_the_protocol_has_no_type_for_are_refused(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "complex",
        [helper.make_tensor_value_info("x", 14, [2])],
        [helper.make_tensor_value_info("y", 14, [2])],
    )
    put(tmp_path, "m", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))

    async def work() -> None:
        async with serving(tmp_path) as engine:
            (line,) = engine.index()
            assert "for which the Open Inference Protocol has no datatype" in line.reason

    in_loop(work)


def test_models_compile_in_processes_of_their_own(tmp_path: Path) -> None:
    """Errors of the compiler, and values that it waits for, come back as they are."""
    put(tmp_path / "models", "m", dense(), config="max_batch_size: 2 dynamic_batching {}")
    put(tmp_path / "models", "mixing", mixing(), config="max_batch_size: 4")
    put(tmp_path / "models", "values", reshaping())
    cache = str(tmp_path / "cache")

    async def work() -> None:
        async with serving(tmp_path / "models", compile_in="process", cache_dir=cache) as engine:
            states = {line.name: line for line in engine.index()}
            assert states["m"].state == "READY" and "it combines all rows" in states["mixing"].reason
            got = await ask(engine, "m", {"x": random_rows(2)})
            np.testing.assert_allclose(got["s"], random_rows(2).sum(1), rtol=1e-5)
            x = np.arange(6, dtype=np.float32)
            got = await ask(engine, "values", {"x": x, "shape": np.array([2, 3])})
            np.testing.assert_array_equal(got["y"], x.reshape(2, 3))
            counts = engine.measurements()
            assert (counts.cache_hits, counts.cache_misses) == (0, 2)
            assert list((tmp_path / "cache").glob("*"))

    in_loop(work)


def test_a_compile_that_takes_too_much_ends_alone(tmp_path: Path) -> None:
    put(tmp_path, "m", dense(rows=2))

    async def work() -> None:
        async with serving(tmp_path, compile_in="process", compile_seconds=0.05) as engine:
            assert "wall_seconds=0.05" in engine.index()[0].reason
            assert engine.ready() and not engine.model_ready("m")

    in_loop(work)


def test_inputs_of_the_configuration_are_the_models_own(tmp_path: Path) -> None:
    right = 'input { name: "x" data_type: TYPE_FP32 dims: [4] } output { name: "y" data_type: TYPE_FP32 dims: [-1] }'
    wrong = 'input [ { name: "x" data_type: TYPE_INT8 dims: [5] }, { name: "z" } ] output { name: "y" dims: [3, 3] }'
    put(tmp_path, "right", dense(columns="n"), config="max_batch_size: 2 " + right)
    put(tmp_path, "wrong", dense(), config="max_batch_size: 2 " + wrong)

    async def work() -> None:
        async with serving(tmp_path) as engine:
            good, bad = engine.index()
            assert good.state == "READY", good.reason
            for said in (
                "input x: data_type is TYPE_INT8, and the model has x tensor(float)[batch,4]",
                "input x: dims are [5], and the model has x",
                "input z: the model has x",
                "output y: dims are [3, 3], and the model has y",
            ):
                assert said in bad.reason
            # compiled ahead, for the size that the configuration gives
            assert engine.measurements().models[0].specialisations == 1
            assert engine.metadata("right").inputs[0].shape == (-1, 4)
            await ask(engine, "right", {"x": random_rows(2)})
            with pytest.raises(InvalidRequestError, match=r"x: shape \[2, 5\]"):
                await ask(engine, "right", {"x": random_rows(2, 5)})

    in_loop(work)
