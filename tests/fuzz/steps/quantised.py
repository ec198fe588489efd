"""Quantised models: integers behind scales, in the forms that quantisers write.

A result may lie one step of its grid off where the exact value is between two; `error` says how far that is. Only
results that are exact are built on.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.graph import Graph, Skip, Value

_BYTES = ("int8", "uint8")
SCALE = 0.0625


def _zero(g: Graph, kind: str, shape: tuple[int, ...] = (), *, none: bool = False) -> Value:
    numbers = np.zeros(shape) if none or g.chance(0.4) else g.source().integers(0, 7, shape)
    return g.hold(np.asarray(numbers).astype(kind))


def _wide(g: Graph, kind: str, shape: tuple[int, ...], *, constant: bool) -> Value:
    """Bytes of the whole range."""
    limits = np.iinfo(kind)
    return g.hold(g.source().integers(limits.min, limits.max + 1, shape).astype(kind), constant=constant)


def quantize(g: Graph) -> None:
    x = g.pick(("float32",), exact=True)
    kind = g.random.choice((*_BYTES, "int16", "uint16") if g.opset >= 21 else _BYTES)
    zero, scale = _zero(g, kind), g.scalar("float32", SCALE)
    q = g.node("QuantizeLinear", [x, scale, zero], Value("", kind, x.shape, 255))
    if g.chance(0.3) and q.size:
        q = g.node("Reshape", [q, g.ints(-1)], replace(q, shape=(q.size,)))
    g.node("DequantizeLinear", [q, scale, zero], Value("", "float32", q.shape, 17))


def dequantize(g: Graph) -> None:
    """A scale for all or for each place along an axis."""
    kind = g.random.choice((*_BYTES, "int32"))
    x = _wide(g, kind if kind != "int32" else "int8", g.shape(1, 4), constant=g.chance(0.3))
    if kind == "int32":
        x = g.hold(g.array("int32", x.shape), constant=g.chance(0.3))
    axis = g.random.randrange(x.rank)
    per_axis = g.chance(0.5) and g.opset >= 13
    shape = (x.shape[axis],) if per_axis else ()
    scale = g.hold(g.source().uniform(0.01, 0.1, shape).astype(np.float32), constant=g.chance(0.8))
    zero = _zero(g, kind, shape, none=kind == "int32")
    extra: dict[str, Any] = {"axis": axis} if per_axis else {}
    g.node("DequantizeLinear", [x, scale, zero], Value("", "float32", x.shape, 30, 1e-5), **extra)


def dynamic_quantize(g: Graph) -> None:
    """x quantised by its own range, then a product of integers, scaled back."""
    x = g.leaf("float32", (g.size() or 1, g.size() or 1), constant=False)
    n = g.size()
    results = replace(x, dtype="uint8", bound=255, error=0), Value("", "float32", ()), Value("", "uint8", (), 255)
    g.node("DynamicQuantizeLinear", [x], *results)
    q, scale, zero = g.last(3)
    weights = _wide(g, g.random.choice(_BYTES), (x.shape[1], n), constant=True)
    total = Value("", "int32", (x.shape[0], n), 1e6)
    y = g.node("MatMulInteger", [q, weights, zero, _zero(g, weights.dtype)], total)
    y = g.node("Cast", [y], replace(y, dtype="float32"), to=1)
    factor = g.node("Mul", [scale, g.scalar("float32", 0.01)], Value("", "float32", ()))
    g.node("Mul", [y, factor], replace(y, bound=1e4, error=0.5))


def matmul_integer(g: Graph) -> None:
    """Zero points for all, or for each row and column."""
    left, right = g.random.choice(_BYTES[1:]), g.random.choice(_BYTES)
    m, k, n = g.size(), max(g.size(), 1), g.size()  # onnxruntime returns uninitialised memory where k is 0
    if g.chance(0.2):
        m, k, n = g.random.randint(1, 70), g.random.randint(60, 300), g.random.randint(1, 70)
    a, b = _wide(g, left, (m, k), constant=False), _wide(g, right, (k, n), constant=g.chance(0.7))
    zeros = [_zero(g, left), _zero(g, right, (n,) if g.chance(0.3) else ())]
    y = g.node("MatMulInteger", [a, b, *zeros[: g.random.randint(0, 2)]], Value("", "int32", (m, n), 1e8))
    if g.chance(0.4):
        g.node("Cast", [y], replace(y, dtype="float32", bound=1e8, error=10), to=1)


def convolution_integer(g: Graph) -> None:
    c, outs, size = g.random.choice((1, 3, 8)), g.random.choice((1, 4, 9)), g.random.choice((1, 3))
    h, w = g.random.randint(3, 9), g.random.randint(3, 9)
    x = _wide(g, "uint8", (1, c, h, w), constant=False)
    weights = _wide(g, "uint8", (outs, c, size, size), constant=True)
    pad = g.random.choice((0, size // 2))
    image = tuple(n + 2 * pad - size + 1 for n in (h, w))
    zeros = [_zero(g, "uint8"), _zero(g, "uint8")]
    g.node("ConvInteger", [x, weights, *zeros], Value("", "int32", (1, outs, *image), 1e8), pads=[pad] * 4)


def _dequantised(g: Graph, x: Value, scale: Value, zero: Value, axis: int = 1) -> Value:
    extra: dict[str, Any] = {"axis": axis} if scale.shape else {}
    return g.node("DequantizeLinear", [x, scale, zero], Value("", "float32", x.shape, 20, 1e-5), **extra)


def _requantised(g: Graph, y: Value, kind: str, scale: float = 0.5) -> None:
    """Back to bytes, at times behind a Relu; off by one step where a value lies between two."""
    if g.chance(0.4):
        y = g.node("Relu", [y], y)
    number = g.scalar("float32", scale)
    zero = _zero(g, kind)
    q = g.node("QuantizeLinear", [y, number, zero], Value("", kind, y.shape, 255, 1.0))
    if g.chance(0.5):
        g.node("DequantizeLinear", [q, number, zero], Value("", "float32", y.shape, 200, scale))


def products_between_scales(g: Graph) -> None:
    """DequantizeLinear twice, MatMul or Gemm, QuantizeLinear: the form of most quantised models."""
    m, k, n = g.random.randint(1, 40), g.size() or 1, g.size() or 1
    kind, other = g.random.choice(_BYTES), g.random.choice(_BYTES)
    batch = (2,) if g.chance(0.3) else ()
    x = _wide(g, kind, (*batch, m, k), constant=False)
    weights = _wide(g, other, (k, n), constant=g.chance(0.85))
    per_channel = g.chance(0.5)
    scales = g.hold(g.source().uniform(0.001, 0.02, (n,) if per_channel else ()).astype(np.float32))
    a = _dequantised(g, x, g.scalar("float32", 0.02), _zero(g, kind))
    b = _dequantised(g, weights, scales, _zero(g, other, scales.shape))
    result = Value("", "float32", (*batch, m, n), 20 * k, 1e-4 * k)
    if not batch and g.chance(0.4):
        y = g.node("Gemm", [a, b, g.leaf("float32", (n,), constant=True)], result)
    else:
        y = g.node("MatMul", [a, b], result)
        if g.chance(0.5):
            y = g.node("Add", [y, g.leaf("float32", (n,), constant=True)], y)
    if g.chance(0.7):
        _requantised(g, y, g.random.choice(_BYTES))


def convolutions_between_scales(g: Graph) -> None:
    c, outs, groups = g.random.choice(((3, 8, 1), (8, 8, 8), (4, 6, 2), (16, 16, 1)))
    size, stride = g.random.choice((1, 3, 3)), g.random.choice((1, 1, 2))
    kind = g.random.choice(_BYTES)
    x = _wide(g, kind, (1, c, g.random.randint(3, 9), g.random.randint(3, 9)), constant=False)
    weights = _wide(g, "int8", (outs, c // groups, size, size), constant=True)
    per_channel = g.chance(0.6)
    scales = g.hold(g.source().uniform(0.001, 0.02, (outs,) if per_channel else ()).astype(np.float32))
    a = _dequantised(g, x, g.scalar("float32", 0.02), _zero(g, kind))
    b = _dequantised(g, weights, scales, _zero(g, "int8", scales.shape, none=g.chance(0.8)), axis=0)
    terms = c // groups * size * size
    pad = size // 2
    image = tuple((n + 2 * pad - size) // stride + 1 for n in x.shape[2:])
    result = Value("", "float32", (1, outs, *image), 20 * terms, 1e-4 * terms)
    bias = g.leaf("float32", (outs,), constant=True) if g.chance(0.5) else None
    y = g.node("Conv", [a, b, bias], result, pads=[pad] * 4, strides=[stride] * 2, group=groups)
    if g.chance(0.7):
        _requantised(g, y, g.random.choice(_BYTES))


def quantised_operators(g: Graph) -> None:
    """QLinearMatMul and QLinearConv."""
    kind, other = g.random.choice(_BYTES), g.random.choice(_BYTES)
    scales: Sequence[Value] = [g.scalar("float32", n) for n in (0.02, 0.01, 0.5)]
    if g.chance(0.5):
        m, k, n = g.size() or 1, g.size() or 1, g.size() or 1
        a, b = _wide(g, kind, (m, k), constant=False), _wide(g, other, (k, n), constant=True)
        inputs = [a, scales[0], _zero(g, kind), b, scales[1], _zero(g, other), scales[2], _zero(g, kind)]
        g.node("QLinearMatMul", inputs, Value("", kind, (m, n), 255, 1.0))
        return
    if (kind, other) == ("int8", "uint8"):
        raise Skip("onnxruntime has no such convolution")
    c, outs = g.random.choice((1, 3, 8)), g.random.choice((1, 4, 9))
    x = _wide(g, kind, (1, c, g.random.randint(3, 8), g.random.randint(3, 8)), constant=False)
    weights = _wide(g, other, (outs, c, 3, 3), constant=True)
    inputs = [x, scales[0], _zero(g, kind), weights, scales[1], _zero(g, other), scales[2], _zero(g, kind)]
    if g.chance(0.5):
        inputs.append(g.hold(g.source().integers(-500, 500, outs).astype(np.int32)))
    g.node("QLinearConv", inputs, Value("", kind, (1, outs, *x.shape[2:]), 255, 1.0), pads=[1] * 4)


STEPS: dict[Callable[[Graph], None], float] = {
    quantize: 2, dequantize: 1, dynamic_quantize: 0.7, matmul_integer: 1, convolution_integer: 0.5,
    products_between_scales: 1, convolutions_between_scales: 1, quantised_operators: 1,
}  # fmt: skip
SPECIAL = ()
