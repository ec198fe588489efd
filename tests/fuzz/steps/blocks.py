"""Blocks of whole networks, as their nodes come one after the other."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.graph import Graph, Skip, Value, rounded
from tests.fuzz.steps.common import transpose


def attention(g: Graph) -> None:
    """Scores, softmax, product: the heads of a transformer, with odd sizes."""
    batch, heads, time, width = g.random.choice((1, 2)), g.random.choice((1, 3)), g.size(), g.random.choice((4, 5, 16))
    if not time:
        raise Skip("empty")
    q, k, v = (g.leaf("float32", (batch, time, heads * width), constant=False) for _ in range(3))
    split = g.ints(batch, time, heads, width)
    rows = []
    for value, order in ((q, (0, 2, 1, 3)), (k, (0, 2, 3, 1)), (v, (0, 2, 1, 3))):
        g.node("Reshape", [value, split], replace(value, shape=(batch, time, heads, width)))
        shape = tuple(g.values[-1].shape[a] for a in order)
        g.node("Transpose", [g.values[-1]], replace(value, shape=shape), perm=order)
        rows.append(g.values[-1])
    square = (batch, heads, time, time)
    g.node("MatMul", rows[:2], Value("", "float32", square, 4 * width, 1e-5 * width))
    g.node("Mul", [g.values[-1], g.hold(np.array(0.25, np.float32))], replace(g.values[-1], bound=width))
    scores = g.values[-1]
    if g.chance(0.5):
        hidden = np.triu(np.full((time, time), -1e9, np.float32), 1)
        mask = g.hold(hidden if g.chance(0.7) else hidden[None, None], constant=g.chance(0.7))
        g.node("Add", [scores, mask], scores)
    g.node("Softmax", [g.values[-1]], Value("", "float32", square, 1, 1e-4), axis=-1)
    g.node("MatMul", [g.values[-1], rows[2]], Value("", "float32", (batch, heads, time, width), 2, 1e-3))
    result = Value("", "float32", (batch, time, heads, width), 2, 1e-3)
    g.node("Transpose", [g.values[-1]], result, perm=(0, 2, 1, 3))


def residual(g: Graph) -> None:
    """A block of a convolutional network: convolutions, norm, gate, what came in added, another layout at times."""
    n, c, h, w = g.random.choice((1, 2)), g.random.choice((4, 8, 16, 24, 17)), g.random.randint(4, 15), g.size() + 3
    x = g.leaf("float32", (n, c, h, w), constant=False)
    grouped = g.random.random() < 0.4
    wide = Value("", "float32", x.shape, 36 * c, 1e-5 * c)
    bias = g.leaf("float32", (c,)) if g.random.random() < 0.5 else None
    first = g.leaf("float32", (c, 1 if grouped else c, 3, 3), constant=True)
    g.node("Conv", [x, first, bias], wide, pads=[1] * 4, group=c if grouped else 1)
    if g.random.random() < 0.6:
        parts = [g.leaf("float32", (c,), constant=True) for _ in range(3)]
        variance = g.hold(np.full(c, 100 * c, np.float32))
        g.node("BatchNormalization", [g.values[-1], *parts, variance], Value("", "float32", x.shape, 20, 1e-4))
    else:
        g.node("Mul", [g.values[-1], g.hold(np.array(1 / c, np.float32))], Value("", "float32", x.shape, 36, 1e-4))
    g.node(g.random.choice(("Relu", "Sigmoid", "HardSwish")), [g.values[-1]], replace(g.values[-1], error=2e-4))
    inner = g.values[-1]
    if g.random.random() < 0.5:
        g.node("GlobalAveragePool", [inner], replace(inner, shape=(n, c, 1, 1)))
        g.node("Sigmoid", [g.values[-1]], replace(g.values[-1], bound=1))
        g.node("Mul", [inner, g.values[-1]], replace(inner, error=1e-2))
        inner = g.values[-1]
    size = g.random.choice((1, 3))
    last = g.leaf("float32", (c, c, size, size), constant=True)
    out = Value("", "float32", x.shape, 50, 2e-4 * c * size * size * max(inner.error / 1e-4, 1))
    g.node("Conv", [inner, last], out, pads=[size // 2] * 4)
    g.node("Add", [g.values[-1], x], out)
    g.node("Relu", [g.values[-1]], out)
    block = g.values[-1]
    ending = g.random.randrange(4)
    if ending == 0:
        g.node("Concat", [block, x, inner], replace(out, shape=(n, 3 * c, h, w)), axis=1)
    elif ending == 1:
        g.node("Transpose", [block], replace(out, shape=(n, h, w, c)), perm=(0, 2, 3, 1))
        g.node("Reshape", [g.values[-1], g.ints(n, h * w, c)], replace(out, shape=(n, h * w, c)))
    elif ending == 2:
        g.node("MaxPool", [block], replace(out, shape=(n, c, h // 2, w // 2)), kernel_shape=[2, 2], strides=[2, 2])


def token(g: Graph) -> None:
    """One layer of a transformer for one or a few tokens: norm, products, gates, what came in added."""
    rows, width, inner = g.random.choice((1, 1, 2, 7)), g.random.choice((8, 16, 24)), g.random.choice((16, 33, 64))
    x = g.leaf("float32", (1, rows, width), constant=False)
    square = g.node("Mul", [x, x], rounded(x, bound=4))
    from_axes = [g.ints(-1)] if g.opset >= 18 else []
    extra: dict[str, Any] = {} if from_axes else {"axes": [-1]}
    mean = g.node("ReduceMean", [square, *from_axes], rounded(square, shape=(1, rows, 1)), **extra)
    root = g.node("Sqrt", [g.node("Add", [mean, g.scalar("float32", 0.1)], rounded(mean))], rounded(mean, bound=3))
    normal = g.node(
        "Mul",
        [g.node("Div", [x, root], Value("", "float32", x.shape, 7, 1e-5)), g.leaf("float32", (width,))],
        Value("", "float32", x.shape, 14, 1e-4),
    )
    up, gate = (g.leaf("float32", (width, inner), constant=True) for _ in range(2))
    wide = Value("", "float32", (1, rows, inner), 28 * width, 1e-4 * width)
    a, b = g.node("MatMul", [normal, up], wide), g.node("MatMul", [normal, gate], wide)
    b = g.node("Sigmoid", [b], replace(wide, bound=1))
    c = g.node("Mul", [a, b], replace(wide, error=wide.error * 30 * width))
    down = g.leaf("float32", (inner, width), constant=True)
    out = Value("", "float32", x.shape, 60 * width * inner, c.error * 2 * inner)
    d = g.node("MatMul", [c, down], out)
    g.node("Add", [d, x], out)


def patches(g: Graph) -> None:
    """An image cut into patches by reshapes and transposes, and put together again."""
    n, c, h, w, p = (
        g.random.choice((1, 2)),
        g.random.choice((1, 3, 4)),
        g.random.randint(1, 4),
        g.random.randint(1, 4),
        2,
    )
    x = g.leaf("float32", (n, c, h * p, w * p), constant=False)
    split = g.node("Reshape", [x, g.ints(n, c, h, p, w, p)], replace(x, shape=(n, c, h, p, w, p)))
    moved = transpose(g, split, (0, 2, 4, 3, 5, 1))
    flat = g.node("Reshape", [moved, g.ints(n, h * w, p * p * c)], replace(x, shape=(n, h * w, p * p * c)))
    weights = g.leaf("float32", (p * p * c, p * p * c), constant=True)
    bound = 4.0 * p * p * c
    flat = g.node("MatMul", [flat, weights], rounded(flat, bound=bound))
    back = g.node("Reshape", [flat, g.ints(n, h, w, p, p, c)], replace(flat, shape=(n, h, w, p, p, c)))
    back = transpose(g, back, (0, 5, 1, 3, 2, 4))
    whole = g.node("Reshape", [back, g.ints(n, c, h * p, w * p)], replace(back, shape=x.shape))
    g.node("Add", [whole, x], rounded(whole, bound=bound + 2))


STEPS: dict[Callable[[Graph], None], float] = {attention: 1, residual: 2, token: 1, patches: 1}
SPECIAL = ()
