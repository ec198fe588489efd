"""Gather, scatter, arg-extremes, top-k and running sums against onnxruntime."""

import numpy as np
import pytest
from onnx import helper

from onnxla.errors import ShapeError
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.rules.one_node import check_node, normal
from tests.frontends.witness import model_of


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


INDICES = [np.array(1), ints(0, 2), ints(-1, 0, -3), np.array([[0, -1], [2, 1]]), ints(), ints(2, 1, 0), ints(0, 0)]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", INDICES)
@pytest.mark.parametrize("known", [True, False])
def test_gather(axis: int, indices: Array, known: bool) -> None:
    check_node("Gather", normal(3, 4), indices.astype(np.int64), constant=[1] if known else [], axis=axis)


def gather_opcodes(indices: Array) -> set[str]:
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=1)
    model = model_of([node], {"x": normal(3, 8)}, ["y"], initializers={"i": indices})
    return {i.op.opcode for i in import_model(model).module.entry.instructions()}


def test_gather_of_one_known_position_is_a_slice() -> None:
    assert gather_opcodes(np.array(-1, np.int64)) == {"parameter", "slice", "reshape", "tuple"}


def test_gather_of_a_known_run_backwards_is_a_reversed_slice() -> None:
    assert gather_opcodes(ints(6, 4, 2)) == {"parameter", "slice", "reverse", "tuple"}


def test_known_indices_out_of_range_are_an_error() -> None:
    with pytest.raises(ShapeError, match="reach outside of dimension 1 of size 8"):
        gather_opcodes(ints(8))


@pytest.mark.parametrize("axis", [0, 1])
def test_gather_elements(axis: int) -> None:
    check_node("GatherElements", normal(3, 4), np.array([[0, -1, 2], [1, 0, -2]], np.int64), axis=axis)


def test_gather_elements_of_nothing() -> None:
    check_node("GatherElements", normal(3, 0, 4), np.zeros((2, 0, 4), np.int64), axis=1)


@pytest.mark.parametrize("shape, indices", [((2, 0, 3), (0, 2)), ((0, 3), (0, 2)), ((2, 3), (0, 1)), ((0,), (4, 0, 1))])
def test_gather_nd_of_nothing(shape: tuple[int, ...], indices: tuple[int, ...]) -> None:
    check_node("GatherND", normal(*shape), np.zeros(indices, np.int64))


@pytest.mark.parametrize("constant", [[], [1]])
@pytest.mark.parametrize("indices", [(0,), (0, 2)])
def test_gather_of_nothing_from_a_dimension_without_elements(indices: tuple[int, ...], constant: list[int]) -> None:
    check_node("Gather", normal(2, 0, 3), np.zeros(indices, np.int64), constant=constant, axis=1)


@pytest.mark.parametrize(
    ("shape", "indices", "batch_dims"),
    [
        ((2, 3, 4), [[0, 1], [1, -1]], 0),
        ((2, 3, 4), [[0], [-1], [1]], 0),
        ((2, 3, 4), [[1, 2, 3]], 0),
        ((2, 3, 4), [[[1], [0]], [[-1], [2]]], 1),
        ((2, 2, 4), [[[1], [0]], [[-1], [2]]], 2),
    ],
)
def test_gather_nd(shape: tuple[int, ...], indices: list[object], batch_dims: int) -> None:
    check_node("GatherND", normal(*shape), np.array(indices, np.int64), batch_dims=batch_dims)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_scatter_elements(reduction: str, axis: int) -> None:
    updates = normal(2, 4, seed=1) if axis == 1 else normal(2, 4, seed=1)
    indices = np.array([[0, 1, 2, 0], [1, -1, 0, 2]]) if axis != 1 else np.array([[0, 1, 3, 2], [1, -1, 0, 2]])
    check_node("ScatterElements", normal(3, 4), indices, updates, axis=axis, reduction=reduction)


@pytest.mark.parametrize("reduction", ["add", "max"])
def test_scatter_elements_into_one_place(reduction: str) -> None:
    check_node("ScatterElements", normal(3, 4), np.zeros((3, 4), np.int64), normal(3, 4, seed=1), reduction=reduction)


def test_scatter_before_opset_11() -> None:
    check_node("Scatter", normal(3, 4), np.array([[1, 2]]), normal(1, 2, seed=1), axis=1, opset=9)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter_nd(reduction: str) -> None:
    indices = np.array([[[0], [-1]]])
    check_node("ScatterND", normal(4, 3), indices, normal(1, 2, 3, seed=1), reduction=reduction)
    check_node("ScatterND", normal(4, 3), np.array([[0, 1], [3, -1]]), normal(2, seed=1), reduction=reduction)


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8, np.uint8])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("keep", [0, 1])
def test_arg_extremes_with_ties(op_type: str, dtype: type[np.generic], last: int, keep: int) -> None:
    x = np.array([[1, 3, 3, 2], [0, 0, 0, 0], [5, 1, 5, 1]], dtype)
    for axis in (0, -1):
        check_node(op_type, x, axis=axis, keepdims=keep, select_last_index=last)


def test_arg_extreme_of_infinities() -> None:
    x = np.array([[-np.inf, -np.inf], [np.inf, np.inf]], np.float32)
    check_node("ArgMax", x, axis=1)
    check_node("ArgMin", x, axis=1, select_last_index=1)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float64])
def test_top_k_orders_equal_values_by_position(largest: int, axis: int, dtype: type[np.generic]) -> None:
    x = np.array([[1, 3, 3, 2, 1], [0, 0, 0, 0, 4], [5, 1, 5, 1, 5]], dtype)
    for k in (1, 2, 3):
        check_node("TopK", x, ints(k), constant=[1], outputs=2, axis=axis, largest=largest)


def test_top_k_takes_nan_for_the_largest() -> None:
    x = np.array([1, np.nan, 3, -np.inf, np.nan, 2], np.float32)
    for largest in (0, 1):
        check_node("TopK", x, ints(6), constant=[1], outputs=2, largest=largest)


def test_top_k_of_a_known_count_before_opset_10() -> None:
    check_node("TopK", normal(3, 6), outputs=2, k=2, axis=1, opset=9)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_cumulative_sum(exclusive: int, reverse: int, axis: int, dtype: type[np.generic]) -> None:
    x = (normal(3, 5) * 4).astype(dtype)
    check_node("CumSum", x, np.array(axis), constant=[1], exclusive=exclusive, reverse=reverse)
