"""Derivatives against finite differences in float64, each rule evaluated in numpy."""

from collections.abc import Callable

import numpy as np
import pytest

from onnxla.hlo.builder import Builder
from onnxla.hlo.derivatives.elementwise import FACTORS
from onnxla.hlo.derivatives.reverse import UnderivableError, derivatives
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.indexing import Gather, Scatter
from onnxla.hlo.types import S32, Array, TensorType, type_of
from onnxla.hlo.window import ConvolutionDimensions, Window, WindowDimension

Function = Callable[..., Instruction]
W = WindowDimension
NCHW, NHWC = ConvolutionDimensions.nchw(2), ConvolutionDimensions.parse("b01f_01io->b01f")


def numbers(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Array:
    return np.random.default_rng(seed).uniform(low, high, shape)


def check(function: Function, *inputs: Array) -> None:
    """The derivatives by all inputs, of the results weighted at random, against central differences."""
    b = Builder("main")
    parameters = [b.parameter(type_of(i)) for i in inputs]
    y = function(b, *parameters)
    weights = b.constant(numbers(*y.shape, seed=9, low=0.5))
    total = b.multiply(y, weights)
    found = derivatives(b, total, parameters)
    computation = b.build(b.tuple(total, *found))
    _, *parts = computation.evaluate(*inputs)
    for k, (array, part) in enumerate(zip(inputs, parts, strict=True)):
        assert part.shape == array.shape
        wanted = np.zeros(array.shape)
        for place in np.ndindex(*array.shape):
            step = np.zeros(array.shape)
            step[place] = 1e-5
            above, below = (
                float(computation.evaluate(*inputs[:k], array + s, *inputs[k + 1 :])[0].sum()) for s in (step, -step)
            )
            wanted[place] = (above - below) / 2e-5
        np.testing.assert_allclose(part, wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("opcode", sorted(FACTORS))
def test_functions_of_one_element(opcode: str) -> None:
    low, high = {"acosh": (1.2, 3.0)}.get(opcode, (0.1, 0.9))
    check(lambda b, x: b.unary(opcode, x), numbers(5, low=low, high=high))
    if opcode in ("abs", "tanh", "erf", "sinh", "cbrt", "asinh"):
        check(lambda b, x: b.unary(opcode, x), numbers(5, low=-0.9, high=-0.1))


@pytest.mark.parametrize(
    "opcode", ["add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "atan2", "remainder"]
)
def test_functions_of_two_elements(opcode: str) -> None:
    check(lambda b, x, w: b.binary(opcode, x, w), numbers(6, low=1, high=2), numbers(6, seed=1, low=0.3, high=1.6))


def test_edges_of_powers_extremes_and_clamps() -> None:
    b = Builder("main")
    x = b.parameter(type_of(np.zeros(3)))
    zero, square = b.full_like(x, 0), b.power(x, b.full_like(x, 2))
    inside = b.clamp(b.constant(0.0), x, b.constant(1.0))
    found = [derivatives(b, y, [x])[0] for y in (square, b.power(x, zero), b.maximum(x, zero), inside)]
    squares, powers, relu, clamped = b.build(b.tuple(*found)).evaluate(np.array([0.0, 2.0, -1.0]))
    np.testing.assert_array_equal(squares, [0, 4, -2])
    np.testing.assert_array_equal(powers, [0, 0, 0])
    np.testing.assert_array_equal(relu, [0, 1, 0])
    np.testing.assert_array_equal(clamped, [1, 0, 0])


def _gather(b: Builder, x: Instruction) -> Instruction:
    places = b.constant(np.array([[0, 1], [2, 9], [0, 1]], np.int32))  # 9 is clamped
    op = Gather((1,), (0,), (0, 1), (), (), 1, (1, 2))
    return b.gather(x, places, op)


def _scatter(b: Builder, x: Instruction, updates: Instruction) -> Instruction:
    places = b.constant(np.array([1, 7, 1], np.int32))  # 7 is skipped
    op = Scatter((1,), (0,), (0,), (), (), 1, False, False, b.combiner("add", x.tensor_type.element))
    return b.scatter(x, places, updates, op)


def _at(b: Builder, row: int) -> list[Instruction]:
    return [b.constant(row, S32), b.constant(0, S32)]


MOVEMENT: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "slice": (lambda b, x: b.slice(x, [1, 0], [6, 3], [2, 3]), [(7, 4)]),
    "pad": (
        lambda b, x, v: b.pad(x, b.reshape(v, ()), [2, -1], [-1, 1], [1, 0]),
        [(3, 3), (1,)],
    ),
    "concatenate": (lambda b, x, w: b.concatenate([x, w, x], 1), [(2, 2), (2, 3)]),
    "reverse": (lambda b, x: b.reverse(x, [1]), [(2, 3)]),
    "dynamic slice": (lambda b, x: b.dynamic_slice(x, _at(b, 9), (2, 3)), [(4, 3)]),
    "dynamic update": (lambda b, x, w: b.dynamic_update_slice(x, w, _at(b, 1)), [(4, 3), (2, 3)]),
    "gather": (_gather, [(3, 4)]),
    "scatter": (_scatter, [(4, 2), (3, 2)]),
    "broadcast": (lambda b, x: b.broadcast(x, (2, 3, 4), [0, 2]), [(2, 4)]),
    "select": (lambda b, x, w: b.select(b.compare(x, w, "LT"), b.multiply(x, x), w), [(5,), (5,)]),
    "nothing is read": (lambda b, x: b.slice(x, [0], [0]), [(3,)]),
}


@pytest.mark.parametrize("name", MOVEMENT)
def test_movement(name: str) -> None:
    function, shapes = MOVEMENT[name]
    check(function, *(numbers(*shape, seed=k) for k, shape in enumerate(shapes)))


CONVOLUTIONS: list[tuple[str, tuple[int, ...], tuple[int, ...], list[W], int, ConvolutionDimensions]] = [
    ("padded", (2, 2, 4, 5), (3, 2, 3, 2), [W(3, pad_low=1, pad_high=1), W(2)], 1, NCHW),
    ("strides that leave a rest", (1, 2, 6, 5), (2, 2, 2, 2), [W(2, stride=3), W(2, stride=2, pad_low=1)], 1, NCHW),
    ("holes in the kernel", (1, 1, 6, 5), (2, 1, 2, 2), [W(2, window_dilation=3), W(2, window_dilation=2)], 1, NCHW),
    ("holes in the image", (1, 2, 3, 3), (2, 2, 2, 3), [W(2, base_dilation=2), W(3, 1, 2, 1, 2)], 1, NCHW),
    ("groups", (2, 4, 4, 3), (6, 2, 2, 2), [W(2, pad_low=1), W(2, stride=2)], 2, NCHW),
    ("channels last, groups", (2, 4, 3, 4), (2, 2, 2, 6), [W(2, pad_low=1), W(2, stride=2)], 2, NHWC),
    ("depthwise", (2, 3, 5, 4), (6, 1, 3, 2), [W(3, stride=2, pad_low=1, pad_high=1), W(2, 1, 0, 1, 1, 2)], 3, NCHW),
    ("depthwise, channels last", (2, 4, 4, 3), (3, 2, 1, 3), [W(3, stride=2, pad_low=1), W(2)], 3, NHWC),
    ("cropped", (1, 1, 6, 6), (1, 1, 2, 2), [W(2, pad_low=-1, pad_high=-2), W(2, pad_low=-2)], 1, NCHW),
    ("no images", (0, 2, 4, 4), (3, 2, 2, 2), [W(2), W(2)], 1, NCHW),
]


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=lambda case: case[0])
def test_convolutions(
    case: tuple[str, tuple[int, ...], tuple[int, ...], list[W], int, ConvolutionDimensions],
) -> None:
    _, image, kernel, window, groups, dimensions = case
    check(
        lambda b, x, w: b.convolution(x, w, Window(tuple(window)), dimensions, groups),
        numbers(*image),
        numbers(*kernel, seed=1),
    )


WINDOWS: list[tuple[str, str, list[W]]] = [
    ("sum", "add", [W(3, stride=2, pad_low=1, pad_high=1), W(2)]),
    ("sum with holes", "add", [W(2, window_dilation=2), W(2, stride=3, pad_low=1)]),
    ("maximum", "maximum", [W(3, stride=2, pad_low=1, pad_high=1), W(2)]),
    ("minimum", "minimum", [W(2), W(3, stride=2)]),
    ("maximum with holes", "maximum", [W(2, window_dilation=2, pad_low=1), W(2, stride=2)]),
    ("maximum of a spread image", "maximum", [W(2, base_dilation=2), W(2, stride=2, pad_low=-1)]),
]


@pytest.mark.parametrize("case", WINDOWS, ids=lambda case: case[0])
def test_windows(case: tuple[str, str, list[W]]) -> None:
    _, opcode, window = case

    def pooled(b: Builder, x: Instruction) -> Instruction:
        element = x.tensor_type.element
        init = b.constant({"add": 0.0, "maximum": -np.inf, "minimum": np.inf}[opcode])
        made = b.reduce_window([x], [init], Window(tuple(window)), b.combiner(opcode, element))
        lowest, highest = b.full_like(made, -9), b.full_like(made, 9)  # windows that hold only padding
        return b.select(b.compare(b.unary("abs", made), highest, "LE"), made, lowest)

    check(pooled, np.random.default_rng(0).permutation(30).reshape(6, 5) / 30)


def test_of_several_largest_the_first_is_meant() -> None:
    """With holes and without, as TensorFlow and PyTorch do."""
    for dilation in (1, 2):
        b = Builder("main")
        x = b.parameter(type_of(np.zeros(5)))
        window = Window((W(2, window_dilation=dilation),))
        y = b.reduce_window([x], [b.constant(-np.inf)], window, b.combiner("maximum", x.tensor_type.element))
        (found,) = derivatives(b, y, [x])
        np.testing.assert_array_equal(b.build(found).evaluate(np.ones(5)), [1] * (5 - dilation) + [0] * dilation)


def test_products_in_any_order_of_dimensions() -> None:
    check(lambda b, x, w: b.dot(x, w, [1], [2], [0], [1]), numbers(2, 3, 4), numbers(5, 2, 3, seed=1))
    check(lambda b, x, w: b.dot(x, w, [2, 0], [0, 1]), numbers(2, 3, 4), numbers(4, 2, 5, seed=1))


def test_reductions() -> None:
    for opcode in ("add", "maximum", "minimum"):
        check(lambda b, x, opcode=opcode: b.reduce_by(opcode, x, [0, 2]), numbers(2, 3, 4))


def test_what_whole_numbers_decide_has_no_derivative() -> None:
    """A mask and a place depend on x, but small changes do not show in them."""

    def masked(b: Builder, x: Instruction) -> Instruction:
        positive = b.compare(x, b.full_like(x, 0), "GT")
        return b.multiply(x, b.convert(b.convert(positive, S32), x.tensor_type.element))

    check(masked, numbers(6))


def test_everything_without_a_derivative_is_named() -> None:
    b = Builder("main")
    x = b.parameter(TensorType(type_of(np.zeros(())).element, (4,)))
    product = b.reduce_by("multiply", x, [0])
    comparator = Builder("before")
    pair = [comparator.parameter(x.tensor_type.with_shape(())) for _ in range(2)]
    numbers_of = [comparator.parameter(TensorType(S32)) for _ in range(2)]
    assert numbers_of
    places = b.iota(TensorType(S32, (4,)), 0)
    both = b.sort([x, places], 0, comparator.build(comparator.compare(pair[0], pair[1], "LT")))
    y = b.add(b.broadcast_scalar(product, (4,)), b.get_tuple_element(both, 0))
    with pytest.raises(UnderivableError) as caught:
        derivatives(b, y, [x])
    assert {cause for _, cause in caught.value.found} == {
        "the derivative of sort is not known",
        "the derivative of a reduction by multiply is not known",
    }
