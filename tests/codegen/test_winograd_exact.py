"""Winograd's convolutions of bytes equal the direct sum in every bit, and are used only where they must."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onnxla
from onnxla.codegen.cpu.target import named_target
from onnxla.codegen.kernels import schedule, winograd_ways
from onnxla.codegen.kernels.winograd_algorithm import Algorithm, exact, floating, is_exact
from onnxla.codegen.kernels.winograd_shape import EXACT, Shape
from onnxla.hlo.ops.contraction import Window
from onnxla.hlo.types import Array
from tests.codegen.kernel_runner import run_together, together
from tests.codegen.test_int8_contractions import bytes_of, convolution, nearly_all
from tests.hlo.case import Case

V3 = named_target("x86-64-v3")
IMAGES = (
    ((1, 9, 11, 16, 8), (1, 1, 1, 1)),
    ((2, 14, 14, 32, 24), (0, 1, 2, 1)),
    ((1, 4, 4, 16, 16), (0, 0, 0, 0)),
    ((3, 5, 30, 8, 8), (2, 2, 0, 2)),
)
"""Batch, height, width, channels, features; padding above, left, below, right."""


def prefer(monkeypatch: pytest.MonkeyPatch, out: int) -> None:
    """Let the cost model have one of the algorithms only, and take it wherever it can be taken."""
    monkeypatch.setattr(winograd_ways, "EXACT", tuple(a for a in EXACT if a.algorithm.out == out))
    monkeypatch.setattr(schedule, "GAIN", float("inf"))


def check(pairs: list[tuple[Case, Array]], target: str) -> None:
    for (case, expected), results in zip(pairs, run_together([case for case, _ in pairs], target), strict=True):
        np.testing.assert_array_equal(results[0], expected, err_msg=case.name)


def plan(case: Case, target: str = "x86-64-v3", precision: str = "default") -> str:
    options = {"target_cpu": target, "cache_dir": None, "precision": precision}
    return onnxla.compile(together([case]), options=options).hlo("plan")


def cases() -> Iterator[tuple[Case, Array]]:
    for (batch, height, width, channels, features), edge in IMAGES:
        for dtype in (np.uint8, np.int8):
            x = bytes_of((batch, height, width, channels), dtype, height)
            w = bytes_of((3, 3, channels, features), np.int8, width)
            yield convolution(f"{x.shape} {features} {edge}", x, w, Window.of([3, 3], [1, 1], edge[:2], edge[2:]))


def extremes() -> Iterator[tuple[Case, Array]]:
    """Inputs and weights at their limits, alike everywhere and with the signs that add up most in the transforms."""
    same = Window.of([3, 3], [1, 1], [1, 1], [1, 1])
    rng = np.random.default_rng(5)
    for low, high, dtype in ((0, 255, np.uint8), (-128, 127, np.int8)):
        for x in (np.full((1, 9, 11, 16), low), np.full((1, 9, 11, 16), high), rng.choice([low, high], (1, 9, 11, 16))):
            for w in (
                np.full((3, 3, 16, 8), -128),
                np.full((3, 3, 16, 8), 127),
                rng.choice([-128, 127], (3, 3, 16, 8)),
            ):
                yield convolution("extreme", x.astype(dtype), w.astype(np.int8), same)


@pytest.mark.parametrize(("out", "target"), [(2, "host"), (4, "host"), (2, "x86-64")])
def test_sums_equal_the_direct_ones(out: int, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prefer(monkeypatch, out)
    pairs = list(cases())
    assert "winograd" in plan(pairs[0][0], "x86-64")
    check(pairs + list(extremes()), target)


@pytest.mark.parametrize("out", [2, 4])
def test_threads_share_out_blocks_and_features(out: int, monkeypatch: pytest.MonkeyPatch) -> None:
    prefer(monkeypatch, out)
    x, w = bytes_of((1, 33, 30, 64), np.uint8, 1), bytes_of((3, 3, 64, 128), np.int8, 2)
    case, expected = convolution("large", x, w, Window.of([3, 3], [1, 1], [1, 1], [1, 1]))
    small, small_expected = convolution("small", x[:, :8, :8], w, Window.of([3, 3], [1, 1], [1, 1], [1, 1]))
    model = onnxla.compile(together([case, small]), options={"cache_dir": None}, num_threads=7)
    names = [given.name for given in model.get_inputs()]
    for _ in range(3):
        results = model.run(None, dict(zip(names, (x, x[:, :8, :8].copy()), strict=True)))
        np.testing.assert_array_equal(results[0], expected)
        np.testing.assert_array_equal(results[1], small_expected)


def test_features_are_shared_out_where_tiles_are_few() -> None:
    few, many = (Shape(EXACT[0], 1, n, n, 256, 256, V3) for n in (14, 56))
    assert few.blocks == 1 < few.shares
    assert many.blocks > many.shares == 1


def test_the_plan_says_which_algorithm() -> None:
    x, w = np.zeros((1, 28, 28, 64), np.uint8), bytes_of((3, 3, 64, 64), np.int8, 0)
    same = Window.of([3, 3], [1, 1], [1, 1], [1, 1])
    case, _ = convolution("", x, w, same)
    assert "_winograd" in plan(case)
    assert "_winograd" in plan(case, precision="highest")  # it is exact
    strided, _ = convolution("", x, w, Window.of([3, 3], [2, 2], [1, 1], [1, 1]))
    assert "_winograd" not in plan(strided)


def test_cpus_that_multiply_bytes_do_not_need_it() -> None:
    shapes = (bytes_of((1, 28, 28, 64), np.uint8, 0), bytes_of((3, 3, 64, 64), np.int8, 0))
    case, _ = convolution("", *shapes, Window.of([3, 3], [1, 1], [1, 1], [1, 1]))
    assert "_winograd" not in plan(case, "generic-aarch64")


@pytest.mark.parametrize("algorithm", [floating(2), floating(4), exact(2), exact(4)])
def test_matrices_are_winograds(algorithm: Algorithm) -> None:
    rng = np.random.default_rng(0)
    tile, kernel = rng.integers(-99, 99, (algorithm.size,) * 2), rng.integers(-99, 99, (3, 3))
    a, g, b = (np.array(m) for m in (algorithm.output, algorithm.weights, algorithm.input))
    found = a @ ((g @ kernel @ g.T) * (b @ tile @ b.T)) @ a.T / algorithm.divisor
    wanted = [[(tile[i : i + 3, j : j + 3] * kernel).sum() for j in range(algorithm.out)] for i in range(algorithm.out)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-9)
    assert (algorithm.inverse * (algorithm.divisor >> algorithm.shift)) % (1 << 32) == 1


@pytest.mark.parametrize("algorithm", [exact(2), exact(4)])
def test_transformed_bytes_fit_16_bits(algorithm: Algorithm) -> None:
    for matrix, limits in ((algorithm.input, ((0, 255), (-128, 127))), (algorithm.weights, ((-128, 127), (0, 255)))):
        rows = np.kron(np.array(matrix), np.array(matrix))
        for low, high in limits:
            most = rows.clip(min=0).sum(axis=1) * high + rows.clip(max=0).sum(axis=1) * low
            least = rows.clip(min=0).sum(axis=1) * low + rows.clip(max=0).sum(axis=1) * high
            assert most.max() < 1 << 15 and least.min() >= -(1 << 15)


@pytest.mark.parametrize(("out", "most"), [(4, 1 << 25), (2, 1 << 29)])
def test_sums_that_do_not_fit_are_refused(out: int, most: int) -> None:
    """The bound is on the sum itself; one weight more than fits is too many."""
    count = most // (255 * 127)
    kernel = np.zeros((3, 3, count // 9 + 1, 2), np.int8)
    flat = kernel.reshape(-1, 2)
    flat[:count, 1] = 127
    assert is_exact(exact(out), kernel)
    flat[count, 1] = 127
    assert not is_exact(exact(out), kernel)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_layers_alike_are_exact_each_by_what_its_weights_allow(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """They differ in weights alone, and would share a kernel, but the sums of some are too long for it."""
    prefer(monkeypatch, 4)
    pairs = []
    for fill, most in itertools.product((3, -128, 127), (True, False)):
        x: Array = np.full((1, 9, 9, 240), np.iinfo(dtype).max if most else np.iinfo(dtype).min, dtype)
        w = nearly_all(fill, (3, 3, 240, 8))
        pairs.append(convolution(f"{fill} {most}", x, w, Window.of([3, 3], [1, 1], [1, 1], [1, 1])))
    assert "_winograd" in plan(pairs[0][0]) and "_winograd" not in plan(pairs[-1][0])
    check(pairs, "host")
    check(pairs[::-1], "host")


@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_any_shape_is_exact(data: st.DataObject) -> None:
    """Whatever the cost model chooses, several convolutions at a time."""
    numbers = st.integers(1, 20)
    pairs = []
    for _ in range(3):
        dtype = data.draw(st.sampled_from((np.uint8, np.int8)))
        batch, height, width = data.draw(st.integers(1, 3)), data.draw(numbers), data.draw(numbers)
        channels, features = (data.draw(st.integers(1, 5)) * data.draw(st.sampled_from((1, 8, 16))) for _ in range(2))
        edge = tuple(data.draw(st.integers(1, 2)) for _ in range(4))
        seed = data.draw(st.integers(0, 1000))
        x, w = (
            bytes_of((batch, height, width, channels), dtype, seed),
            bytes_of((3, 3, channels, features), np.int8, seed),
        )
        pairs.append(convolution(f"{x.shape} {w.shape} {edge}", x, w, Window.of([3, 3], [1, 1], edge[:2], edge[2:])))
    with pytest.MonkeyPatch.context() as patch:
        prefer(patch, data.draw(st.sampled_from((2, 4))))
        check(pairs, "host")
