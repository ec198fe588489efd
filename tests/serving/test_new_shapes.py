"""Code that is made while a model is served: for new shapes, once for all who wait, in processes of its own."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from onnxla.serving.errors import InvalidRequestError, NotReadyError, OverloadedError
from tests.serving.repositories import ask, dense, in_loop, mixing, put, random_rows, reshaping, scaled, serving


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
