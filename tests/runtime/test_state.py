"""State: variables that running changes are read, set, saved and loaded."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxla
from onnxla.errors import InputError
from onnxla.runtime.state import ModelState
from tests.frontends.tensorflow.graphs import graph


@pytest.fixture
def counter(tmp_path: Path) -> onnxla.CompiledModel:
    """A model that adds each input to a running total, and gives the total; its length is open."""
    return onnxla.compile(running_total(), inputs=["x"], outputs=["now"], state={"total": np.zeros(2, np.float32)})


def running_total() -> Any:
    g = graph(
        ("x", "Placeholder", []),
        ("axis_of_rows", "Sum", ["x", "axis"]),
        ("total", "VarHandleOp", []),
        ("add", "AssignAddVariableOp", ["total", "axis_of_rows"]),
        ("now", "ReadVariableOp", ["total", "^add"]),
        constants={"axis": 0},
    )
    total = next(n for n in g.node if n.name == "total")
    total.attr["dtype"].type = 1
    total.attr["shape"].shape.dim.add(size=2)
    return g


def test_runs_follow_one_another(counter: onnxla.CompiledModel) -> None:
    assert list(counter.state) == ["total"]
    for k, rows in enumerate((1, 3, 1)):  # another size is another program, over the same state
        total = counter(np.ones((rows, 2), np.float32))
        np.testing.assert_array_equal(total, counter.state["total"])
        assert total[0] == (1, 4, 5)[k]


def test_a_value_that_was_read_stays_as_it_was(counter: onnxla.CompiledModel) -> None:
    before = counter.state["total"]
    counter(np.ones((1, 2), np.float32))
    counter(np.ones((1, 2), np.float32))
    np.testing.assert_array_equal(before, [0, 0])


def test_values_can_be_set_and_set_back(counter: onnxla.CompiledModel) -> None:
    counter.state["total"] = np.array([10, 20], np.float32)
    np.testing.assert_array_equal(counter(np.ones((1, 2), np.float32)), [11, 21])
    counter.state.reset()
    np.testing.assert_array_equal(counter.state["total"], [0, 0])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("sum", np.zeros(2, np.float32), "the model has no variable 'sum'; it has total"),
        ("total", np.zeros(3, np.float32), r"total: shape \[3\], the variable has \[2\]"),
        ("total", np.zeros(2, np.int32), "total: dtype int32, the model takes float32"),
    ],
)
def test_what_does_not_fit_is_refused(counter: onnxla.CompiledModel, name: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        counter.state[name] = value
    assert counter.state.get("sum") is None and "sum" not in counter.state


def test_an_artifact_keeps_the_state(counter: onnxla.CompiledModel, tmp_path: Path) -> None:
    x = np.ones((1, 2), np.float32)
    counter(x)
    counter.save(tmp_path / "counter.onnxla")
    loaded = onnxla.load_compiled(tmp_path / "counter.onnxla")
    np.testing.assert_array_equal(loaded(x), [2, 2])
    np.testing.assert_array_equal(counter.state["total"], [1, 1])


def test_the_state_alone_is_saved_and_loaded(counter: onnxla.CompiledModel, tmp_path: Path) -> None:
    counter(np.ones((1, 2), np.float32))
    counter.state.save(tmp_path / "state.npz")
    counter(np.ones((1, 2), np.float32))
    counter.state.load(tmp_path / "state.npz")
    np.testing.assert_array_equal(counter.state["total"], [1, 1])
    np.savez(tmp_path / "other.npz", something=np.zeros(1))
    with pytest.raises(InputError, match="lacks total"):
        counter.state.load(tmp_path / "other.npz")
    (tmp_path / "none.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read as a saved state"):
        counter.state.load(tmp_path / "none.npz")


def test_types_that_numpy_lacks_are_saved_and_loaded(tmp_path: Path) -> None:
    import ml_dtypes

    state = ModelState({"w": np.array([1.5, -2], ml_dtypes.bfloat16)})
    state.save(tmp_path / "state.npz")
    state["w"] = np.zeros(2, ml_dtypes.bfloat16)
    state.load(tmp_path / "state.npz")
    assert state["w"].tolist() == [1.5, -2]


def test_a_profile_leaves_the_state(counter: onnxla.CompiledModel) -> None:
    counter.profile({"x": np.ones((1, 2), np.float32)})
    np.testing.assert_array_equal(counter.state["total"], [0, 0])


def test_a_run_that_is_refused_leaves_the_state(counter: onnxla.CompiledModel) -> None:
    with pytest.raises(InputError):
        counter(np.ones((1, 2), np.int32))
    np.testing.assert_array_equal(counter.state["total"], [0, 0])


def test_no_step_is_lost_among_threads(counter: onnxla.CompiledModel) -> None:
    x = np.ones((1, 2), np.float32)
    counter(x)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: counter(x), range(40)))
    np.testing.assert_array_equal(counter.state["total"], [41, 41])
