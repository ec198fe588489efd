"""Convolutions of every kind, pooling, and what is fused with them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.graph import EPSILON, Graph, Skip, Value, rounded
from tests.fuzz.steps.common import tame, transpose


def _result(g: Graph, x: Value, outs: int, image: Sequence[int], terms: int) -> Value:
    bound = float(terms) * x.bound * 2
    error = x.error * terms * 2 + 2 * EPSILON[x.dtype] * bound
    return Value("", x.dtype, (x.shape[0], outs, *image), bound, error)


def behind(g: Graph, y: Value, x: Value) -> Value:
    """Scale, shift, norm, residual, activation behind a convolution."""
    channels = y.shape[1]
    per_channel = (1, channels, *[1] * (y.rank - 2))
    for _ in range(g.random.choice((0, 1, 2))):
        kind = g.random.randrange(5)
        if kind == 0:
            c = g.leaf(y.dtype, g.random.choice((per_channel, per_channel[1:])), constant=g.chance(0.8))
            op = g.random.choice(("Add", "Sub"))
            y = g.node(op, [y, c], rounded(y, bound=y.bound + c.bound))
        elif kind == 1:
            c = g.leaf(y.dtype, g.random.choice((per_channel, ())), constant=g.chance(0.8))
            y = g.node("Mul", [y, c], rounded(y, bound=y.bound * c.bound, error=y.error * c.bound))
        elif kind == 2 and y.dtype == "float32":
            parts = [g.leaf(y.dtype, (channels,), constant=True) for _ in range(3)]
            variance = g.hold(np.full(channels, max(y.bound, 1) ** 2, np.float32))
            scale = 2 / max(y.bound, 1)
            y = g.node("BatchNormalization", [y, *parts, variance], rounded(y, bound=8, error=y.error * scale * 2))
        elif kind == 3:
            other = x if y.shape == x.shape and y.dtype == x.dtype else g.leaf(y.dtype, y.shape)
            y = g.node(
                "Add",
                g.random.sample([y, other], 2),
                rounded(y, bound=y.bound + other.bound, error=y.error + other.error),
            )
        else:
            op = g.random.choice(("Relu", "Sigmoid", "LeakyRelu", "Tanh"))
            y = g.node(op, [y], rounded(y, bound=1 if op in ("Sigmoid", "Tanh") else y.bound))
    return tame(g, y)


def convolution(g: Graph) -> None:
    """Any rank, groups, stride, dilation and padding, also uneven ones and the automatic kinds."""
    channels, groups = g.random.choice(
        ((3, 1), (4, 1), (4, 2), (5, 5), (8, 8), (6, 3), (16, 1), (24, 24), (1, 1), (32, 4))
    )
    spatial = g.random.choice((1, 2, 2, 2, 3))
    image = tuple(g.random.choice((1, 5, 6, 7, 9, 12, 14)) for _ in range(spatial))
    kind = "float32" if g.chance(0.85) else g.random.choice(("float64", "float16"))
    x = g.leaf(kind, (g.random.choice((1, 2, 3)), channels, *image), constant=False)
    x = g.node("Relu", [x], x) if g.chance(0.2) else x
    outs = groups * g.random.choice((1, 2, 3, 4)) if groups > 1 else g.random.choice((1, 3, 8, 16, 17, 32))
    window = [g.random.choice((1, 3, 3, 2, 5))] * spatial
    if g.chance(0.3):
        window = [g.random.choice((1, 2, 3)) for _ in range(spatial)]
    strides = [g.random.choice((1, 1, 1, 2, 3))] * spatial
    dilations = [g.random.choice((1, 1, 1, 2))] * spatial
    attributes: dict[str, Any] = {"strides": strides, "dilations": dilations, "group": groups}
    low = [g.random.choice((0, 1, 1, 2))] * spatial
    high = low if g.chance(0.7) else [g.random.choice((0, 1)) for _ in range(spatial)]
    spans = [d * (k - 1) + 1 for d, k in zip(dilations, window, strict=True)]
    sizes = zip(image, low, high, spans, strides, strict=True)
    result = [(n + a + b - span) // s + 1 if n + a + b >= span else 0 for n, a, b, span, s in sizes]
    if g.chance(0.15) and dilations[0] == 1:
        attributes["auto_pad"] = g.random.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
        result = [-(-n // s) for n, s in zip(image, strides, strict=True)]
        if attributes["auto_pad"] == "VALID":
            result = [(n - span) // s + 1 if n >= span else 0 for n, span, s in zip(image, spans, strides, strict=True)]
    else:
        attributes["pads"] = [*low, *high]
    if min(result) < 1:
        raise Skip("no room")
    weights = g.leaf(x.dtype, (outs, channels // groups, *window), constant=g.chance(0.8))
    bias = g.leaf(x.dtype, (outs,)) if g.chance(0.5) else None
    out = _result(g, x, outs, result, channels // groups * int(np.prod(window)) + 1)
    behind(g, g.node("Conv", [x, weights, bias], out, **attributes), x)


def transposed_convolution(g: Graph) -> None:
    channels, groups = g.random.choice(((3, 1), (4, 1), (4, 2), (5, 5), (16, 1)))
    spatial = g.random.choice((1, 2, 2, 3))
    image = tuple(g.random.choice((1, 3, 5, 6)) for _ in range(spatial))
    x = g.leaf("float32", (g.random.choice((1, 2)), channels, *image), constant=False)
    size, stride, dilation = g.random.choice((1, 2, 3, 4)), g.random.choice((1, 2, 3)), g.random.choice((1, 1, 2))
    pad, extra = g.random.choice((0, 1)), g.random.choice((0, 0, 1))
    extra = min(extra, stride - 1)
    per_group = g.random.choice((1, 2, 3, 8))
    weights = g.leaf("float32", (channels, per_group, *[size] * spatial), constant=g.chance(0.8))
    result = [stride * (n - 1) + extra + dilation * (size - 1) + 1 - 2 * pad for n in image]
    if min(result) < 1:
        raise Skip("no room")
    attributes: dict[str, Any] = {"strides": [stride] * spatial, "dilations": [dilation] * spatial, "group": groups}
    attributes |= {"pads": [pad] * 2 * spatial, "output_padding": [extra] * spatial}
    bias = g.leaf("float32", (per_group * groups,)) if g.chance(0.4) else None
    out = _result(g, x, per_group * groups, result, channels * size**spatial + 1)
    behind(g, g.node("ConvTranspose", [x, weights, bias], out, **attributes), x)


def padded_convolution(g: Graph) -> None:
    """A Pad before a convolution or pooling: zeros go into the window, other numbers must not."""
    n, c, h, w = 1, g.random.choice((1, 3, 8)), g.random.randint(3, 9), g.random.randint(3, 9)
    x = g.leaf("float32", (n, c, h, w), constant=False)
    around = [g.random.randint(0, 2) for _ in range(4)]
    deep = g.random.choice((0, 0, 0, 1))
    number = g.random.choice((0.0, 0.0, -0.0, 1.0))
    low, high = (0, deep, *around[:2]), (0, 0, *around[2:])
    shape = tuple(a + d + b for a, d, b in zip(low, x.shape, high, strict=True))
    y = g.node("Pad", [x, g.ints(*low, *high), g.scalar("float32", number)], replace(x, shape=shape))
    pad = g.random.choice((0, 1))
    image = [d + 2 * pad - 2 for d in y.shape[2:]]
    if g.chance(0.5):
        weights = g.leaf("float32", (4, y.shape[1], 3, 3), constant=True)
        out = _result(g, y, 4, image, 9 * y.shape[1])
        behind(g, g.node("Conv", [y, weights], out, pads=[pad] * 4), y)
    else:
        op = g.random.choice(("MaxPool", "AveragePool"))
        more: dict[str, Any] = {"count_include_pad": g.random.randint(0, 1)} if op == "AveragePool" else {}
        g.node(op, [y], rounded(y, shape=(*y.shape[:2], *image)), kernel_shape=[3, 3], pads=[pad] * 4, **more)


def winograd(g: Graph) -> None:
    """3x3 with many channels: large enough for the fast algorithm, with images that do not fill its tiles."""
    c, outs = g.random.choice((16, 32, 48, 64)), g.random.choice((16, 32, 40, 64))
    x = g.leaf("float32", (1, c, g.random.randint(6, 22), g.random.randint(6, 22)), constant=False)
    weights = g.leaf("float32", (outs, c, 3, 3), constant=True)
    pad = g.random.choice((0, 1, 1))
    image = [d + 2 * pad - 2 for d in x.shape[2:]]
    out = _result(g, x, outs, image, 9 * c)
    out = replace(out, error=out.error * 10)
    y = behind(g, g.node("Conv", [x, weights], out, pads=[pad] * 4), x)
    if g.chance(0.4) and y.shape[1] == c and y.error < 0.02:
        again = g.leaf("float32", (8, c, 1, 1), constant=True)
        behind(g, g.node("Conv", [y, again], _result(g, y, 8, y.shape[2:], c)), y)


def channels_last(g: Graph) -> None:
    """Transpose, convolution, transpose: what comes from frameworks with the other layout."""
    n, h, w, c = g.random.choice((1, 2)), g.random.randint(3, 9), g.random.randint(3, 9), g.random.choice((3, 8, 16))
    x = transpose(g, g.leaf("float32", (n, h, w, c), constant=False), (0, 3, 1, 2))
    grouped = g.chance(0.3)
    weights = g.leaf("float32", (c if grouped else 8, 1 if grouped else c, 3, 3), constant=True)
    out = _result(g, x, weights.shape[0], (h, w), 9 * c)
    y = g.node("Conv", [x, weights], out, pads=[1] * 4, group=c if grouped else 1)
    y = transpose(g, tame(g, y), (0, 2, 3, 1))
    bias = g.leaf("float32", y.shape[-1:], constant=True)
    y = g.node("Add", [y, bias], rounded(y, bound=y.bound + 2))
    if g.chance(0.5):
        g.node("Relu", [y], y)


def pool(g: Graph) -> None:
    x = g.pick(("float32", "float32", "float64"), rank=(3, 5))
    if 0 in x.shape:
        raise Skip("empty")
    spatial = x.rank - 2
    op = g.random.choice(("MaxPool", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool"))
    if op.startswith("Global"):
        g.node(op, [x], rounded(x, shape=(*x.shape[:2], *[1] * spatial)))
        return
    size, stride = [g.random.choice((1, 2, 3)) for _ in range(spatial)], g.random.choice((1, 2, 3))
    if g.chance(0.15) and max(x.shape[2:]) < 8:
        size = list(x.shape[2:])
    pads = [g.random.randint(0, min(k - 1, 2)) for k in size * 2] if g.chance(0.7) else [0] * 2 * spatial
    attributes: dict[str, Any] = {"kernel_shape": size, "strides": [stride] * spatial, "pads": pads}
    dilation = 2 if op == "MaxPool" and g.chance(0.2) else 1
    if dilation > 1:
        attributes["dilations"] = [dilation] * spatial
    room = [n + pads[k] + pads[k + spatial] - dilation * (size[k] - 1) - 1 for k, n in enumerate(x.shape[2:])]
    if min(room) < 0:
        raise Skip("no room")
    result = [r // stride + 1 for r in room]
    if op == "AveragePool":
        attributes["count_include_pad"] = g.random.randint(0, 1)
    if op == "LpPool":
        attributes["p"] = 2
    bound = x.bound * (350 if op == "LpPool" else 1)
    out = rounded(x, shape=(*x.shape[:2], *result), bound=bound, error=x.error * (350 if op == "LpPool" else 1))
    if op == "MaxPool" and not x.error:
        out = replace(out, error=0.0)
        if g.chance(0.3) and dilation == 1:
            places = Value("", "int64", out.shape, x.size)
            g.node(op, [x], out, places, **attributes)
            return
    g.node(op, [x], out, **attributes)


STEPS: dict[Callable[[Graph], None], float] = {
    convolution: 5, transposed_convolution: 1.5, padded_convolution: 1, winograd: 0.7, channels_last: 1, pool: 2,
}  # fmt: skip
SPECIAL = ()
