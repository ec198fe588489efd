"""Runs that were started and are not done, on a CPU: by a thread, with what `run` gives and raises."""

import asyncio
from typing import Any

import numpy as np
import pytest

import onnxla
from onnxla.errors import InputError
from onnxla.runtime.streams import gpu_number
from tests.test_public_api import arrays, multiply_add, value_of


def test_a_run_on_a_thread_gives_what_run_gives() -> None:
    model = onnxla.compile(multiply_add(3, 4))
    assert model.device == "cpu"
    feeds, out = arrays(3, 4), np.empty((3, 4), "f4")
    pending = [model.run_async(None, feeds) for _ in range(3)]
    for run in pending:
        np.testing.assert_allclose(run.wait()[0], value_of(feeds), 1e-6, 1e-6)
        assert run.done() and len(run.wait()) == 1
    assert model.run_async(["y"], feeds, out=[out]).wait()[0] is out

    async def awaited() -> list[Any]:
        return await model.run_async(["y"], feeds)

    np.testing.assert_allclose(asyncio.run(awaited())[0], value_of(feeds), 1e-6, 1e-6)


def test_what_is_wrong_is_raised_by_the_start_or_by_wait() -> None:
    model = onnxla.compile(multiply_add(3, 4))
    with pytest.raises(InputError, match="missing inputs: c"):
        model.run_async(None, {name: a for name, a in arrays(3, 4).items() if name != "c"})
    with pytest.raises(InputError, match="not outputs of the model: z"):
        model.run_async(["z"], arrays(3, 4))
    with pytest.raises(InputError, match="stream= is for runs on a GPU alone"):
        model.run_async(None, arrays(3, 4), stream=7)
    pending = model.run_async(None, arrays(3, 5))
    with pytest.raises(InputError, match="wait\\(\\) gives those"):
        _ = pending.outputs
    with pytest.raises(InputError, match=r"a: shape \[3, 5\]"):
        pending.wait()


@pytest.mark.parametrize(("name", "number"), [("cpu", None), ("cuda", 0), ("cuda:3", 3), ("gpu:1", 1)])
def test_names_of_devices(name: str, number: int | None) -> None:
    assert gpu_number(name) == number


@pytest.mark.parametrize("name", ["", "cuda:", "cuda:-1", "cuda:x", "tpu", "cpu:0", "cuda:\u0663"])
def test_what_is_no_device(name: str) -> None:
    with pytest.raises(InputError, match="write cpu, cuda, or cuda:1"):
        gpu_number(name)
