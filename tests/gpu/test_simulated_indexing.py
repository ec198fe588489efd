"""Sort, scatter, updates in place and cumulative operations in the simulator."""

import numpy as np
import pytest

from onnxla.hlo.builder import Builder
from onnxla.hlo.ops.contraction import Window, WindowDimension
from onnxla.hlo.ops.indexing import Scatter
from onnxla.hlo.types import F32, S32, TensorType
from tests.gpu.kernel_classes import less, sum_of_two
from tests.gpu.running import check, samples


@pytest.mark.parametrize("length", [1, 5, 32, 33, 64, 100, 300])
def test_sort_is_stable(length: int) -> None:
    b = Builder()
    keys = b.parameter(TensorType(S32, (2, length)))
    values = b.parameter(TensorType(F32, (2, length)))
    instruction = b.sort([keys, values], 1, less(S32, F32))
    check(instruction, samples(instruction), rtol=0, atol=0)


def test_sort_along_an_outer_dimension() -> None:
    b = Builder()
    check(b.sort([b.parameter(TensorType(F32, (70, 3)))], 0, less(F32)))


def _scatter(operand: tuple[int, ...], updates: tuple[int, ...], op: Scatter, indices: np.ndarray) -> None:
    b = Builder()
    x = b.parameter(TensorType(F32, operand))
    i = b.parameter(TensorType(S32, indices.shape))
    u = b.parameter(TensorType(F32, updates))
    instruction = b.scatter(x, i, u, op)
    values, _, changes = samples(instruction)
    check(instruction, [values, indices.astype(np.int32), changes])


def test_scatter_of_rows_some_of_them_twice() -> None:
    op = Scatter((1,), (0,), (0,), (), (), 1, False, False, sum_of_two())
    _scatter((6, 300), (4, 300), op, np.array([[3], [1], [3], [9]]))


def test_scatter_of_single_elements() -> None:
    op = Scatter((), (0,), (0,), (), (), 1, False, False, sum_of_two())
    _scatter((500,), (40,), op, np.random.default_rng(0).integers(-2, 500, (40, 1)))


def test_scatter_of_windows_that_overlap() -> None:
    op = Scatter((1,), (), (0,), (), (), 1, False, False, sum_of_two())
    _scatter((10,), (3, 4), op, np.array([[0], [2], [5]]))


def test_an_update_in_place() -> None:
    b = Builder()
    x, u = b.parameter(TensorType(F32, (8, 50))), b.parameter(TensorType(F32, (3, 50)))
    start = b.parameter(TensorType(S32, ()))
    zero = b.parameter(TensorType(S32, ()))
    instruction = b.dynamic_update_slice(x, u, [start, zero])
    x_, u_, *_ = samples(instruction)
    for at in (-3, 2, 7):
        check(instruction, [x_, u_, np.array(at, np.int32), np.array(0, np.int32)])


@pytest.mark.parametrize("backward", [False, True])
def test_a_running_sum(backward: bool) -> None:
    b = Builder()
    size = 40
    padding = (0, size - 1) if backward else (size - 1, 0)
    window = Window((WindowDimension(1), WindowDimension(size, pad_low=padding[0], pad_high=padding[1])))
    x = b.parameter(TensorType(F32, (3, size)))
    check(b.reduce_window([x], [b.constant(np.float32(0))], window, sum_of_two()), None, rtol=1e-4, atol=1e-5)
