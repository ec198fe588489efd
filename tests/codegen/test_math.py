"""Every mathematical function keeps the error that its docstring states, in f32 and f64, over its whole domain."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onnxla
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.types import Array, type_of

FLOATS = (np.float32, np.float64)
RANDOM = 20000


def erf(x: Array) -> Array:
    return np.array([math.erf(v) for v in x.astype(np.float64)]).astype(np.longdouble)


def logistic(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small))


UNARY: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "acos": (2, np.arccos),
    "acosh": (3, np.arccosh),
    "asin": (2, np.arcsin),
    "asinh": (3, np.arcsinh),
    "atanh": (3, np.arctanh),
    "cbrt": (1, np.cbrt),
    "cosh": (2, np.cosh),
    "cosine": (2, np.cos),
    "erf": (2, erf),
    "exponential": (1, np.exp),
    "exponential-minus-one": (2, np.expm1),
    "log": (1, np.log),
    "log-plus-one": (2, np.log1p),
    "logistic": (3, logistic),
    "rsqrt": (1.5, lambda x: 1 / np.sqrt(x)),
    "sine": (2, np.sin),
    "sinh": (3, np.sinh),
    "sqrt": (0.5, np.sqrt),
    "tan": (3, np.tan),
    "tanh": (3, np.tanh),
}
"""Stated error in ulps, and the function in longdouble."""
FLUSHED = {"logistic"}
"""What may give 0 where half the smallest normal number is more than the result."""
BINARY: dict[str, tuple[float, Callable[[Array, Array], Array]]] = {
    "atan2": (2, np.arctan2),
    "power": (1, np.power),
    "remainder": (0, np.fmod),
}


def edges(dtype: type) -> Array:
    limits = np.finfo(dtype)
    values: list[float | np.floating[Any]] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        3.0,
        math.inf,
        -math.inf,
        math.nan,
        math.pi / 2,
        math.pi,
        1e22,
    ]
    values += [limits.tiny, -limits.tiny, limits.smallest_subnormal, -limits.smallest_subnormal]
    values += [limits.max, -limits.max, 1 - limits.epsneg, 1 + limits.eps, 2.5, -3.0, 16777215.0]
    return np.array(values, dtype)


def any_bits(rng: np.random.Generator, dtype: type, count: int) -> Array:
    integer = np.uint32 if dtype is np.float32 else np.uint64
    return rng.integers(0, np.iinfo(integer).max, count, dtype=integer, endpoint=True).view(dtype)


def compiled(
    build: Callable[..., Instruction], opcodes: list[str], arguments: list[Array], target: str = "host"
) -> list[Array]:
    """The results of one program that applies every operation to the same arguments."""
    b = Builder("main")
    parameters = [b.parameter(type_of(a), f"x{k}") for k, a in enumerate(arguments)]
    root = b.tuple(*(build(b, opcode, *parameters) for opcode in opcodes))
    model = onnxla.compile(Module("functions", b.build(root)), options={"cache_dir": None, "target_cpu": target})
    names = [given.name for given in model.get_inputs()]
    return list(model.run(None, dict(zip(names, arguments, strict=True))))


def errors_in_ulps(ours: Array, exact: Array) -> Array:
    """Infinite where one is NaN and the other not, where only one is infinite, and where zeros differ in sign."""
    with np.errstate(all="ignore"):
        nearest = exact.astype(ours.dtype)
        spacing = np.spacing(np.maximum(np.abs(nearest), np.finfo(ours.dtype).tiny)).astype(np.longdouble)
        errors = np.abs(ours.astype(np.longdouble) - exact) / spacing
    same = (ours == nearest) | (np.isnan(ours) & np.isnan(nearest))
    errors = np.where(same & ~np.isfinite(nearest), 0, errors)
    errors = np.where((ours == 0) & (nearest == 0) & (np.signbit(ours) != np.signbit(nearest)), np.inf, errors)
    return np.asarray(np.where(np.isnan(errors), np.inf, errors))


def check(opcode: str, ulps: float, ours: Array, exact: Array, *arguments: Array) -> None:
    if opcode in FLUSHED:
        exact = np.where((ours == 0) & (np.abs(exact) < np.finfo(ours.dtype).tiny / 2), 0, exact)
    errors = errors_in_ulps(ours, exact)
    worst = int(np.argmax(errors))
    at = ", ".join(repr(a[worst]) for a in arguments)
    assert errors[worst] <= ulps, f"{opcode}({at}) is off by {errors[worst]:.2f} ulp: {ours[worst]!r}, {exact[worst]!r}"


@pytest.mark.parametrize("target", ["host", "x86-64-v3", "x86-64"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_one_number(dtype: type, target: str) -> None:
    more = 0.1 if target == "x86-64" else 0.0  # products and sums are rounded apart there
    rng = np.random.default_rng(2024)
    spans = [rng.uniform(-s, s, RANDOM // 5) for s in (1, 3, 10, 100, 1e6)]
    x = np.concatenate([edges(dtype), any_bits(rng, dtype, RANDOM), *(s.astype(dtype) for s in spans)])
    x = np.append(x, x[:3])  # a tail
    results = compiled(lambda b, opcode, v: b.unary(opcode, v), list(UNARY), [x], target)
    for (opcode, (ulps, reference)), ours in zip(UNARY.items(), results, strict=True):
        with np.errstate(all="ignore"):
            check(opcode, ulps + more, ours, reference(x.astype(np.longdouble)), x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_two_numbers(dtype: type) -> None:
    rng = np.random.default_rng(2025)
    first, second = (v.ravel() for v in np.meshgrid(edges(dtype), edges(dtype)))
    part = RANDOM // 4
    x = [first, any_bits(rng, dtype, part), np.exp(rng.uniform(-3, 3, part)), rng.uniform(-100, 100, part)]
    x.append(np.exp(rng.uniform(-80, 80, part)))
    y = [second, any_bits(rng, dtype, part), rng.uniform(-300, 300, part), np.round(rng.uniform(-50, 50, part))]
    y.append(rng.uniform(-10, 10, part))
    left, right = (np.concatenate([v.astype(dtype) for v in values]) for values in (x, y))
    results = compiled(lambda b, opcode, v, w: b.binary(opcode, v, w), list(BINARY), [left, right])
    for (opcode, (ulps, reference)), ours in zip(BINARY.items(), results, strict=True):
        wide = np.longdouble if opcode != "remainder" else dtype
        with np.errstate(all="ignore"):
            exact = reference(left.astype(wide), right.astype(wide)).astype(np.longdouble)
        check(opcode, max(ulps, 0.5 if opcode != "remainder" else 0), ours, exact, left, right)


@pytest.mark.parametrize("dtype", FLOATS)
def test_multiples_of_half_pi_near_and_far(dtype: type) -> None:
    """Where sine or cosine is nearly 0, a reduction that is not exact shows."""
    k = np.concatenate([np.arange(1, 4000), np.geomspace(5e3, 1e30, 2000)])
    x: Array = (k * (np.pi / 2)).astype(dtype)
    sine, cosine, tan = compiled(lambda b, opcode, v: b.unary(opcode, v), ["sine", "cosine", "tan"], [x])
    wide = x.astype(np.longdouble)
    check("sine", 2, sine, np.sin(wide), x)
    check("cosine", 2, cosine, np.cos(wide), x)
    check("tan", 3, tan, np.tan(wide), x)


@pytest.mark.parametrize("opcode", ["exponential", "tanh", "logistic", "erf", "log", "sine", "power"])
def test_a_nan_of_any_payload_stays_nan(opcode: str) -> None:
    x = np.array([0x7F800001, 0x7FC00001, 0xFFC12345, 0x7FFFFFFF] * 5, np.uint32).view(np.float32)
    (ours,) = compiled(lambda b, name, v: b.binary(name, v, v) if name == "power" else b.unary(name, v), [opcode], [x])
    assert np.isnan(ours).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_exponential_of_a_row_less_its_maximum(dtype: type) -> None:
    """Within 1 ulp; 0 not far below the smallest normal number. NaN of any payload and infinities take their row."""
    tiny = np.finfo(dtype).tiny
    deep = -np.log(tiny) + 3
    x: Array = np.linspace(-deep, 0, 37 * 40, dtype=dtype).reshape(40, 37)
    x[5:, 36] = 0
    x[1, 5], x[2, 6], x[3, :] = -np.inf, np.inf, -np.inf
    # a NaN of payload 1
    x[4, :1] = np.array([0x7F800001], np.uint32).view(dtype) if dtype is np.float32 else np.array([np.nan], dtype)

    def build(b: Builder, opcode: str, v: Instruction) -> Instruction:
        largest = b.reduce_by("maximum", v, [1])
        shifted = b.exponential(b.subtract(v, b.broadcast(largest, v.shape, [0])))
        return b.multiply(shifted, b.broadcast(b.reduce_by("minimum", b.full_like(v, 1), [1]), v.shape, [0]))

    (ours,) = compiled(build, [""], [x])
    with np.errstate(invalid="ignore"):
        exact = np.exp((x - x.max(1, keepdims=True)).astype(np.longdouble))
    kept = exact >= 1.1 * tiny
    assert (ours[exact < 0.7 * tiny] == 0).all() and (ours[kept] > 0).all()
    check("exponential", 1, ours[kept], exact[kept], x[kept])
    assert np.array_equal(np.isnan(ours), np.isnan(exact))


def test_a_maximum_that_belongs_to_other_rows_bounds_nothing() -> None:
    """In a square, x[i, j] - max(x[j]) may be of any size."""
    x = np.array([[0, 60], [95, -10]], np.float32)

    def build(b: Builder, opcode: str, v: Instruction) -> Instruction:
        return b.exponential(b.subtract(v, b.broadcast(b.reduce_by("maximum", v, [1]), v.shape, [1])))

    (ours,) = compiled(build, [""], [x])
    exact = np.exp((x - x.max(1)[None, :]).astype(np.longdouble))
    np.testing.assert_allclose(ours, exact.astype(np.float32), rtol=1e-6)


@pytest.mark.parametrize("opcode", ["erf", "tanh"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_one_plus_a_function_that_reaches_minus_one(opcode: str, dtype: type) -> None:
    """Within 2e-7 where f32 goes on its own way, and closer to 0 than the sum of rounded terms would come."""
    rng = np.random.default_rng(2026)
    x = np.concatenate([edges(dtype), any_bits(rng, dtype, RANDOM), rng.uniform(-7, 7, RANDOM).astype(dtype)])

    def build(b: Builder, name: str, v: Instruction) -> Instruction:
        return b.add(b.unary(name, v), b.full_like(v, 1))

    (ours,) = compiled(build, [opcode], [x])
    with np.errstate(all="ignore"):
        wide = x.astype(np.longdouble)
        exact = np.array([math.erfc(-v) for v in wide]) if opcode == "erf" else 2 / (1 + np.exp(-2 * wide))
    assert np.array_equal(np.isnan(ours), np.isnan(x))
    known = ~np.isnan(x)
    np.testing.assert_allclose(
        ours[known], exact[known].astype(float), rtol=0, atol=2e-7 if dtype is np.float32 else 5e-16
    )
    if dtype is np.float32:
        tail = known & (x > -3) & (x < 0)
        np.testing.assert_allclose(ours[tail], exact[tail].astype(float), rtol=1.1e-4)
    assert (ours[x == -np.inf] == 0).all() and (ours[x == 0] == 1).all() and (ours[x == np.inf] == 2).all()
