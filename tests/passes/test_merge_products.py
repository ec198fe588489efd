"""Products of one value made one: which are, and that values stay to the bit."""

import numpy as np
import pytest

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.ops.contraction import Dot
from onnxla.hlo.types import F16, F32, ElementType, TensorType
from onnxla.passes.merge_products import MergeProducts

rng = np.random.default_rng(3)
WIDTH = 6


def weights(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def branch(
    b: Builder,
    x: Instruction,
    columns: int = 8,
    bias: bool = False,
    scale: float | None = None,
    converted: ElementType | None = None,
) -> Instruction:
    y = b.dot(x, b.constant(weights(WIDTH, columns)), [1], [0])
    if bias:
        y = b.add(y, b.broadcast(b.constant(weights(columns)), y.shape, [1]))
    if scale is not None:
        y = b.multiply(y, b.full_like(y, scale))
    return y if converted is None else b.convert(y, converted)


def used(b: Builder, value: Instruction, columns: int) -> Instruction:
    """A dot that reads the value through a view."""
    wide = b.reshape(value, (5 * columns // 8, 8))
    return b.dot(wide, b.constant(weights(8, 3).astype(value.tensor_type.element.dtype)), [1], [0])


def dots(module: Module) -> int:
    return sum(isinstance(i.op, Dot) for i in module.entry.instructions())


@pytest.mark.parametrize("converted", [(None, None, None), (F16, F16, F16), (F16, None, F16)])
def test_values_stay(converted: tuple[ElementType | None, ...]) -> None:
    b = Builder()
    x = b.parameter(TensorType(F32, (5, WIDTH)))
    columns = (8, 16, 8)
    parts = [
        branch(b, x, columns[0], bias=True, converted=converted[0]),
        branch(b, x, columns[1], scale=0.5, converted=converted[1]),
        branch(b, x, columns[2], converted=converted[2]),
    ]
    module = Module("m", b.build(b.tuple(*(used(b, p, c) for p, c in zip(parts, columns, strict=True)))))
    given = weights(5, WIDTH)
    given[1], given[2, 0], given[3] = 0, np.nan, -0.0
    before = module.entry.evaluate(given)
    assert MergeProducts().run(module)
    assert dots(module) == 4
    after = module.entry.evaluate(given)
    for ours, theirs in zip(after, before, strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-6, 1e-6)
        assert (np.signbit(ours[1]) == np.signbit(theirs[1])).all()


def test_results_that_others_read_keep_their_products() -> None:
    b = Builder()
    x = b.parameter(TensorType(F32, (5, WIDTH)))
    first, second = branch(b, x), branch(b, x)
    module = Module("m", b.build(b.tuple(used(b, first, 8), used(b, b.unary("tanh", second), 8))))
    assert not MergeProducts().run(module)
    b = Builder()
    x = b.parameter(TensorType(F32, (5, WIDTH)))
    first, second = branch(b, x), branch(b, x)
    module = Module("m", b.build(b.tuple(used(b, first, 8), used(b, second, 8), second)))
    assert not MergeProducts().run(module)


def test_products_of_different_values_and_of_values_that_are_computed_stay() -> None:
    b = Builder()
    x, y = b.parameter(TensorType(F32, (5, WIDTH))), b.parameter(TensorType(F32, (5, WIDTH)))
    module = Module("m", b.build(b.tuple(used(b, branch(b, x), 8), used(b, branch(b, y), 8))))
    assert not MergeProducts().run(module)
    b = Builder()
    x, w = b.parameter(TensorType(F32, (5, WIDTH))), b.parameter(TensorType(F32, (WIDTH, 8)))
    parts = [b.dot(x, w, [1], [0]), b.dot(x, b.negate(w), [1], [0])]
    module = Module("m", b.build(b.tuple(*(used(b, p, 8) for p in parts))))
    assert not MergeProducts().run(module)


def test_weights_that_two_products_share_are_not_stored_twice() -> None:
    b = Builder()
    x, y = b.parameter(TensorType(F32, (5, WIDTH))), b.parameter(TensorType(F32, (5, WIDTH)))
    shared = b.constant(weights(WIDTH, 8))
    parts = [b.dot(x, shared, [1], [0]), b.dot(y, shared, [1], [0]), branch(b, x)]
    module = Module("m", b.build(b.tuple(*(used(b, p, 8) for p in parts))))
    assert not MergeProducts().run(module)
