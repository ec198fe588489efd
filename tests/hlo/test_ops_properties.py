"""What `infer` says is what `evaluate` gives, and windows, slices and sorts do what their definitions say."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import ConvolutionDimensions, Window, WindowDimension
from onnxla.hlo.types import BF16, F32, S32, Array, ElementType, Shape, TensorType, TupleType, Type, Value, type_of
from tests.hlo.case import random
from tests.hlo.cases_movement import by_magnitude
from tests.hlo.op_cases import CASES

quick = settings(max_examples=60, deadline=None)
sizes = st.integers(0, 5)
shapes = st.lists(sizes, min_size=0, max_size=4).map(tuple)
elements = st.sampled_from([F32, BF16, S32])


def type_of_value(value: Value) -> Type:
    return TupleType(tuple(map(type_of_value, value))) if isinstance(value, tuple) else type_of(value)


@pytest.mark.parametrize("opcode", CASES)
def test_the_table_has_the_inferred_types(opcode: str) -> None:
    for case in CASES[opcode]:
        computation = case.computation()
        value = computation.evaluate(*case.arguments)
        assert type_of_value(value) == computation.result_type, case.name


def evaluate(result: Instruction, b: Builder, *arguments: Array) -> Array:
    value: Array = b.build(result).evaluate(*arguments)
    assert type_of(value) == result.type
    return value


@st.composite
def window_dimensions(draw: st.DrawFn) -> WindowDimension:
    return WindowDimension(
        size=draw(st.integers(1, 3)),
        stride=draw(st.integers(1, 3)),
        pad_low=draw(st.integers(-2, 3)),
        pad_high=draw(st.integers(-2, 3)),
        base_dilation=draw(st.integers(1, 3)),
        window_dilation=draw(st.integers(1, 3)),
        reversal=draw(st.booleans()),
    )


def seen_index(d: WindowDimension, place: int, position: int, size: int) -> int | None:
    """The base index that window element `position` sees at a place, None in a hole: the definition."""
    position = d.size - 1 - position if d.reversal else position
    spot = place * d.stride + position * d.window_dilation - d.pad_low
    index, hole = divmod(spot, d.base_dilation)
    return index if hole == 0 and 0 <= index < size else None


@quick
@given(st.lists(st.tuples(window_dimensions(), sizes), min_size=1, max_size=2))
def test_reduce_window_is_its_definition(rows: list[tuple[WindowDimension, int]]) -> None:
    window, shape = Window(tuple(d for d, _ in rows)), tuple(n for _, n in rows)
    x = random(S32, shape)
    b = Builder()
    operand = b.parameter(type_of(x))
    result = evaluate(b.reduce_window([operand], [b.constant(0, S32)], window, b.combiner("add", S32)), b, x)
    for place in np.ndindex(*result.shape):
        total = 0
        for position in np.ndindex(*(d.size for d in window.dimensions)):
            index = [seen_index(d, p, q, n) for (d, n), p, q in zip(rows, place, position, strict=True)]
            total += 0 if None in index else int(x[tuple(i for i in index if i is not None)])
        assert result[place] == total


@quick
@given(window_dimensions(), sizes, st.integers(1, 2), st.integers(1, 2), st.integers(1, 2))
def test_convolution_is_its_definition(d: WindowDimension, size: int, groups: int, depth: int, outputs: int) -> None:
    x, w = random(S32, (2, groups * depth, size)), random(S32, (groups * outputs, depth, d.size))
    b = Builder()
    operands = b.parameter(type_of(x)), b.parameter(type_of(w))
    result = evaluate(
        b.convolution(*operands, Window((d,)), ConvolutionDimensions.nchw(1), feature_group_count=groups), b, x, w
    )
    for n, o, place in np.ndindex(*result.shape):
        total = 0
        for c, position in product(range(depth), range(d.size)):
            index = seen_index(d, place, position, size)
            if index is not None:
                total += int(x[n, o // outputs * depth + c, index]) * int(w[o, c, position])
        assert result[n, o, place] == total


@quick
@given(shapes, st.data())
def test_pad_then_slice_gives_the_operand_back(shape: Shape, data: st.DataObject) -> None:
    low, high, interior = (data.draw(st.tuples(*[st.integers(0, 3)] * len(shape))) for _ in range(3))
    x = random(F32, shape)
    b = Builder()
    padded = b.pad(b.parameter(type_of(x)), b.constant(9, F32), low, high, interior)
    limits = [n - h for n, h in zip(padded.shape, high, strict=True)]
    back = b.slice(padded, low, limits, [i + 1 for i in interior])
    np.testing.assert_array_equal(evaluate(back, b, x), x)


@quick
@given(shapes, st.data())
def test_negative_pads_crop_as_a_slice(shape: Shape, data: st.DataObject) -> None:
    low = [data.draw(st.integers(0, n)) for n in shape]
    high = [data.draw(st.integers(0, n - cut)) for n, cut in zip(shape, low, strict=True)]
    x = random(S32, shape)
    b = Builder()
    operand = b.parameter(type_of(x))
    cropped = b.pad(operand, b.constant(0, S32), [-n for n in low], [-n for n in high])
    expected = x[tuple(slice(a, n - z) for a, z, n in zip(low, high, shape, strict=True))]
    np.testing.assert_array_equal(evaluate(cropped, b, x), expected)


@quick
@given(st.permutations(range(4)), st.permutations(range(4)), st.data())
def test_dot_is_einsum(lhs_order: list[int], rhs_order: list[int], data: st.DataObject) -> None:
    # letters: a batch, b contracted, c lhs free, d rhs free
    extent = dict(zip("abcd", data.draw(st.tuples(*[st.integers(0, 3)] * 4)), strict=True))
    lhs = "".join("abc"[i] for i in lhs_order if i < 3)
    rhs = "".join("abd"[i] for i in rhs_order if i < 3)
    x, y = (random(S32, tuple(extent[c] for c in letters), letters) for letters in (lhs, rhs))
    b = Builder()
    operands = b.parameter(type_of(x)), b.parameter(type_of(y))
    contracted, batch = ([[letters.index(c)] for letters in (lhs, rhs)] for c in "ba")
    result = evaluate(b.dot(*operands, contracted[0], contracted[1], batch[0], batch[1]), b, x, y)
    np.testing.assert_array_equal(result, np.einsum(f"{lhs},{rhs}->acd", x, y))


@quick
@given(shapes.filter(len), elements, st.data())
def test_take_is_numpys(shape: Shape, element: ElementType, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    shape = (*shape[:axis], shape[axis] + 1, *shape[axis + 1 :])
    picked = np.array(data.draw(st.lists(st.integers(-3, 9), max_size=4)), np.int32)
    x = random(element, shape)
    b = Builder()
    result = evaluate(b.take(b.parameter(type_of(x)), b.parameter(type_of(picked)), axis), b, x, picked)
    np.testing.assert_array_equal(result, np.take(x, picked, axis, mode="clip"))


@quick
@given(st.lists(st.integers(-9, 9), max_size=40), st.booleans())
def test_a_general_comparator_sorts_stably(values: list[int], descending: bool) -> None:
    x, places = np.array(values, np.int32), np.arange(len(values), dtype=np.int32)
    inner = Builder("rest")
    left, right, *_ = (inner.parameter(TensorType(S32)) for _ in range(4))
    low, high = (inner.unary("abs", v) for v in (left, right))
    comparator = inner.build(inner.compare(low, high, "GT" if descending else "LT"))
    b = Builder()
    result = b.sort([b.parameter(type_of(x)), b.parameter(type_of(places))], 0, comparator)
    found = b.build(result).evaluate(x, places)
    expected = np.argsort(-np.abs(x) if descending else np.abs(x), kind="stable")
    np.testing.assert_array_equal(found[1], expected)
    np.testing.assert_array_equal(found[0], x[expected])


def test_sort_by_magnitude_of_rows() -> None:
    x = random(F32, (5, 64))
    b = Builder()
    result = evaluate(b.sort([b.parameter(type_of(x))], 1, by_magnitude(F32)), b, x)
    np.testing.assert_array_equal(np.abs(result), np.sort(np.abs(x), axis=1))
