"""Reductions over outer dimensions in two steps: which are split, and that their values stay."""

import numpy as np
import pytest

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Module
from onnxla.hlo.ops.reduction import Reduce
from onnxla.hlo.types import Array, element_of, type_of
from onnxla.passes.split_reductions import SplitReductions


def reduction(x: Array, dims: tuple[int, ...], combiner: str = "add") -> Module:
    b = Builder()
    return Module("m", b.build(b.reduce_by(combiner, b.parameter(type_of(x)), dims)))


def reductions(computation: Computation) -> int:
    return sum(isinstance(i.op, Reduce) for i in computation.instructions())


@pytest.mark.parametrize(
    ("shape", "dims"),
    [((1, 112, 112, 32), (1, 2)), ((4096, 32), (0,)), ((3, 96, 100, 9), (1, 2)), ((2, 64, 64, 4, 8), (1, 2))],
)
@pytest.mark.parametrize("combiner", ["add", "maximum", "minimum"])
def test_rows_are_reduced_in_pieces(shape: tuple[int, ...], dims: tuple[int, ...], combiner: str) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    module = reduction(x, dims, combiner)
    before = module.entry.evaluate(x)
    assert SplitReductions().run(module)
    assert reductions(module.entry) == 2
    np.testing.assert_allclose(module.entry.evaluate(x), before, rtol=1e-5, atol=1e-4)


def test_integers_wrap_as_before() -> None:
    x = np.random.default_rng(1).integers(-(1 << 31), 1 << 31, (8192, 16)).astype(np.int32)
    module = reduction(x, (0,))
    before = module.entry.evaluate(x)
    assert SplitReductions().run(module)
    np.testing.assert_array_equal(module.entry.evaluate(x), before)


@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((64, 4096), (1,)),  # along rows: a row is a task
        ((4099, 32), (0,)),  # a prime number of rows
        ((64, 32), (0,)),  # small
        ((65536, 4), (0,)),  # few columns
        ((32, 64, 64), (1,)),  # enough results to share out
        ((64, 8, 64, 8), (0, 2)),  # dimensions apart
        ((0, 32), (0,)),
    ],
)
def test_others_stay(shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    assert not SplitReductions().run(reduction(np.zeros(shape, np.float32), dims))


def test_sums_of_half_precision_and_from_other_numbers_stay() -> None:
    assert not SplitReductions().run(reduction(np.zeros((65536, 16), np.float16), (0,)))
    b = Builder()
    x = b.parameter(type_of(np.zeros((65536, 16), np.float32)))
    one = b.constant(np.float32(1))
    assert not SplitReductions().run(
        Module("m", b.build(b.reduce([x], [one], (0,), b.combiner("add", element_of(np.dtype(np.float32))))))
    )
