"""Reductions against onnxruntime: axes in every spelling, integers, empty sets, infinities."""

import numpy as np
import pytest
from onnx import helper

from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.rules.one_node import check_node, given, normal
from tests.frontends.witness import model_of

REDUCTIONS = (
    "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare"
).split()


def axes_array(*axes: int) -> Array:
    return np.array(axes, np.int64)


@pytest.mark.parametrize("op_type", REDUCTIONS)
@pytest.mark.parametrize("axes", [None, (0,), (-1,), (0, 2), (1, -1), (0, 1, 2)])
@pytest.mark.parametrize("keep", [0, 1])
def test_axes_as_input_and_as_attribute(op_type: str, axes: tuple[int, ...] | None, keep: int) -> None:
    x = np.abs(normal(2, 3, 4)) + 0.1
    inputs = [] if axes is None else [axes_array(*axes)]
    check_node(op_type, x, *inputs, constant=[1] if inputs else [], keepdims=keep, opset=20)
    check_node(op_type, x, keepdims=keep, opset=12, **given(axes=axes))


@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_no_axes_can_mean_no_reduction(op_type: str) -> None:
    x = np.abs(normal(2, 3))
    check_node(op_type, x, axes_array(), constant=[1], noop_with_empty_axes=1)
    check_node(op_type, x, axes_array(), constant=[1], noop_with_empty_axes=0)


@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_integers(op_type: str) -> None:
    check_node(op_type, np.array([[1, 2, 4], [3, 3, 3]], np.int32), axes_array(1), constant=[1])


@pytest.mark.parametrize("op_type", [op for op in REDUCTIONS if op not in ("ReduceMax", "ReduceMin")])
def test_empty_sets_give_the_identity(op_type: str) -> None:
    check_node(op_type, np.zeros((2, 0), np.float32), axes_array(1), constant=[1])


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
def test_extremes_of_booleans_and_empty_sets(op_type: str) -> None:
    check_node(op_type, np.array([[True, False], [True, True], [False, False]]), axes_array(1), constant=[1])
    check_node(op_type, np.zeros((2, 0), np.float32), axes_array(1), constant=[1])


def test_log_sum_exp_of_infinite_and_large_rows() -> None:
    rows = [[-np.inf, -np.inf], [np.inf, 1], [1000, 1000], [-1000, -1001]]
    check_node("ReduceLogSumExp", np.array(rows, np.float32), axes_array(1), constant=[1])


def test_half_precision_is_summed_in_single() -> None:
    x = np.full((1, 4096), 1.0, np.float16)
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"])
    imported = import_model(model_of([node], {"x": x}, ["y"], initializers={"axes": axes_array(1)}))
    (result,) = imported.module.entry.evaluate(x)
    assert result.dtype == np.float16 and result.item() == 4096
