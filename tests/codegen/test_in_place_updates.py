"""Kernels that update their operand in place: it is copied first wherever somebody still needs it."""

import numpy as np
import pytest
from onnx import helper

import onnxla
from onnxla.hlo.types import Array
from tests.frontends.witness import model_of

X: Array = np.arange(12, dtype=np.float32).reshape(4, 3)
ROWS: Array = np.array([[2], [0]], np.int64)
UPDATES: Array = -np.ones((2, 3), np.float32)
EXPECTED = np.where(np.isin(np.arange(4), [0, 2])[:, None], np.float32(-1), X)

scatter = helper.make_node("ScatterND", ["data", "rows", "updates"], ["y"])
negated = helper.make_node("Neg", ["x"], ["data"])


@pytest.mark.parametrize("outputs", [["y"], ["y", "data"], ["data", "y"]])
def test_a_computed_operand_survives_where_it_is_read_again(outputs: list[str]) -> None:
    feeds: dict[str, Array] = {"x": X, "rows": ROWS, "updates": UPDATES}
    results = onnxla.compile(model_of([negated, scatter], feeds, outputs)).run(outputs, feeds)
    expected = {"data": -X, "y": np.where(EXPECTED == -1, np.float32(-1), -X)}
    for name, result in zip(outputs, results, strict=True):
        np.testing.assert_array_equal(result, expected[name])


def test_an_input_is_never_written() -> None:
    feeds: dict[str, Array] = {"data": X.copy(), "rows": ROWS, "updates": UPDATES}
    (y,) = onnxla.compile(model_of([scatter], feeds, ["y"])).run(None, feeds)
    np.testing.assert_array_equal(y, EXPECTED)
    np.testing.assert_array_equal(feeds["data"], X)


def test_a_constant_operand_starts_every_run_afresh() -> None:
    feeds: dict[str, Array] = {"rows": ROWS, "updates": UPDATES}
    compiled = onnxla.compile(model_of([scatter], feeds, ["y"], initializers={"data": X}))
    for rows in (ROWS, np.array([[1], [3]], np.int64)):
        (y,) = compiled.run(None, {"rows": rows, "updates": UPDATES})
        expected = X.copy()
        expected[rows[:, 0]] = -1
        np.testing.assert_array_equal(y, expected)


def test_an_update_of_nothing_leaves_the_operand() -> None:
    feeds: dict[str, Array] = {"x": X, "rows": ROWS[:0], "updates": UPDATES[:0]}
    (y,) = onnxla.compile(model_of([negated, scatter], feeds, ["y"])).run(None, feeds)
    np.testing.assert_array_equal(y, -X)
