"""Sort, scatter, updates in place and cumulative operations in the simulator."""

from collections.abc import Callable

import numpy as np
import pytest

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.contraction import Window, WindowDimension
from onnxla.hlo.ops.indexing import Scatter
from onnxla.hlo.types import F32, S32, ElementType, TensorType
from tests.gpu.running import check, run, samples


def _less(*elements: ElementType) -> Computation:
    """Compares the first operand only."""
    b = Builder("less")
    sides = [b.parameter(TensorType(e, ())) for e in elements for _ in "lr"]
    return b.build(b.compare(sides[0], sides[1], "LT"))


@pytest.mark.parametrize("length", [1, 5, 32, 33, 64, 100, 300])
def test_sort_is_stable(length: int) -> None:
    b = Builder()
    keys = b.parameter(TensorType(S32, (2, length)))
    values = b.parameter(TensorType(F32, (2, length)))
    instruction = b.sort([keys, values], 1, _less(S32, F32))
    check(instruction, samples(instruction), rtol=0, atol=0)


def test_sort_along_an_outer_dimension() -> None:
    b = Builder()
    check(b.sort([b.parameter(TensorType(F32, (70, 3)))], 0, _less(F32)))


def _scatter(operand: tuple[int, ...], updates: tuple[int, ...], op: Scatter, indices: np.ndarray) -> None:
    b = Builder()
    x = b.parameter(TensorType(F32, operand))
    i = b.parameter(TensorType(S32, indices.shape))
    u = b.parameter(TensorType(F32, updates))
    instruction = b.scatter(x, i, u, op)
    values, _, changes = samples(instruction)
    check(instruction, [values, indices.astype(np.int32), changes])


def _add() -> Computation:
    b = Builder("add")
    return b.build(b.add(b.parameter(TensorType(F32, ())), b.parameter(TensorType(F32, ()))))


def test_scatter_of_rows_some_of_them_twice() -> None:
    op = Scatter((1,), (0,), (0,), (), (), 1, False, False, _add())
    _scatter((6, 300), (4, 300), op, np.array([[3], [1], [3], [9]]))


def test_scatter_of_single_elements() -> None:
    op = Scatter((), (0,), (0,), (), (), 1, False, False, _add())
    _scatter((500,), (40,), op, np.random.default_rng(0).integers(-2, 500, (40, 1)))


def test_scatter_of_windows_that_overlap() -> None:
    op = Scatter((1,), (), (0,), (), (), 1, False, False, _add())
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
    check(b.reduce_window([x], [b.constant(np.float32(0))], window, _add()), None, rtol=1e-4, atol=1e-5)


# Mutations: what is taken away must be noticed.


def _sorted() -> Instruction:
    b = Builder()
    return b.sort([b.parameter(TensorType(F32, (2, 70)))], 1, _less(F32))


def _scattered() -> Instruction:
    b = Builder()
    op = Scatter((1,), (0,), (0,), (), (), 1, False, False, _add())
    x, i, u = (b.parameter(t) for t in (TensorType(F32, (6, 70)), TensorType(S32, (4, 1)), TensorType(F32, (4, 70))))
    return b.scatter(x, i, u, op)


def _updated() -> Instruction:
    b = Builder()
    x, u, at = (b.parameter(t) for t in (TensorType(F32, (70,)), TensorType(F32, (70,)), TensorType(S32, ())))
    return b.dynamic_update_slice(x, u, [at])


def _running() -> Instruction:
    b = Builder()
    window = Window((WindowDimension(1), WindowDimension(5, pad_low=4)))
    return b.reduce_window([b.parameter(TensorType(F32, (70, 5)))], [b.constant(np.float32(0))], window, _add())


@pytest.mark.parametrize(("make", "bound"), [(_sorted, 140), (_scattered, 70), (_updated, 70), (_running, 70)])
def test_a_missing_bound_is_noticed(make: Callable[[], Instruction], bound: int) -> None:
    """One thread more than there are elements reads or writes beyond them."""
    instruction = make()
    texts = []

    def widened(source: str) -> str:
        texts.append(source)
        return source.replace(f"< {bound};", f"< {bound + 60};")

    _, reports = run(instruction, samples(instruction), widened)
    assert any(f"< {bound};" in text for text in texts)
    assert "out-of-bounds global access" in reports.kinds
