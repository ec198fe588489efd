"""Models loaded, loaded again, polled and unloaded: new versions, broken files, settings that make no sense."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import onnxla
from onnxla.serving.engine import ServingEngine
from onnxla.serving.errors import (
    InvalidRequestError,
    NotReadyError,
    ServingError,
    UnknownModelError,
    UnsupportedRequestError,
)
from onnxla.serving.settings import EngineSettings
from tests.serving.repositories import (
    ask,
    batched_artifact,
    dense,
    in_loop,
    mixing,
    put,
    put_artifact,
    random_rows,
    scaled,
    serving,
)


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
