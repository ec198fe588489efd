"""Values large enough for several tasks, whose shares are uneven: what small shapes never reach."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tests.fuzz.graph import Graph, Skip, Value, rounded
from tests.fuzz.steps.common import tame
from tests.fuzz.steps.convolutions import behind
from tests.fuzz.steps.reductions import reduce_over


def elementwise(g: Graph) -> None:
    """Rows, columns and numbers spread over a large array, with several results."""
    rows, columns = g.random.choice(((700, 301), (3, 60_001), (90_000, 2), (411, 257), (1, 150_001)))
    x = g.leaf(g.random.choice(("float32", "float32", "float16", "int32")), (rows, columns), constant=False)
    y = g.leaf(x.dtype, g.random.choice(((columns,), (rows, 1), (1,), x.shape)), constant=False)
    z = g.node("Add", [x, y], rounded(x, bound=x.bound + y.bound))
    g.node("Mul", [z, y], rounded(z, bound=z.bound * y.bound, error=z.error * y.bound))
    if g.chance(0.5) and z.is_float:
        g.node("Sigmoid", [z], rounded(z, bound=1))


def few_long_rows(g: Graph) -> None:
    """A row is shared out among tasks; sums need many accumulators and their results a second kernel."""
    rows = g.random.choice((1, 1, 2, 3))
    x = g.leaf("float32", (rows, g.random.randint(150_000, 400_000) // rows), constant=False)
    if g.chance(0.5):
        x = g.node("Abs", [x], x)
    ops = g.random.sample(("ReduceMax", "ReduceMean", "ReduceSumSquare", "ReduceMin"), g.random.randint(1, 2))
    axes = [1] if g.chance(0.7) else [0, 1]
    for op in ops:
        reduce_over(g, x, op, axes, g.chance(0.5))


def many_columns(g: Graph) -> None:
    """Reductions and running sums down the columns."""
    x = g.leaf("float32", (g.random.randint(20, 90), g.random.choice((1000, 777, 2049))), constant=False)
    if g.chance(0.5):
        reduce_over(g, x, g.random.choice(("ReduceSum", "ReduceMax", "ReduceMean")), [0], g.chance(0.5))
    else:
        axis = g.hold(np.array(g.random.choice((0, 1)), np.int64))
        growth = x.shape[0] if g.initializers[axis.name] == 0 else x.shape[1]
        g.node("CumSum", [x, axis], rounded(x, bound=x.bound * growth, error=1e-3))


def wide_convolution(g: Graph) -> None:
    """Images whose lines do not fill the tiles, with kernels that Winograd does not take."""
    c, outs = g.random.choice((1, 3, 5, 8)), g.random.choice((4, 8, 19))
    groups = c if g.chance(0.25) else 1
    outs = c * g.random.choice((1, 2)) if groups > 1 else outs
    h, w = g.random.randint(12, 50), g.random.randint(20, 70)
    size, stride = g.random.choice((1, 2, 5, 7)), g.random.choice((1, 1, 2))
    pad = size // 2
    x = g.leaf("float32", (1, c, h, w), constant=False)
    weights = g.leaf("float32", (outs, c // groups, size, size), constant=True)
    image = tuple((n + 2 * pad - size) // stride + 1 for n in (h, w))
    out = rounded(Value("", "float32", (1, outs, *image), 4.0 * c // groups * size * size))
    behind(g, g.node("Conv", [x, weights], out, pads=[pad] * 4, strides=[stride] * 2, group=groups), x)


def embedding(g: Graph) -> None:
    """Many rows of a table, some of its rows then changed."""
    x = g.leaf(g.random.choice(("float32", "float16", "int8")), (500, g.random.choice((16, 65, 128))))
    places = g.hold(g.source().integers(-500, 500, (3, g.random.randint(100, 300))), constant=False)
    y = g.node("Gather", [x, places], replace(x, shape=(*places.shape, x.shape[1])), axis=0)
    if x.dtype == "float32" and g.opset >= 13:
        rows = g.hold(g.source().permutation(500)[:200].reshape(200, 1).astype(np.int64), constant=False)
        g.node("ScatterND", [x, rows, g.leaf("float32", (200, x.shape[1]))], x)
    elif y.is_float:
        g.node("Neg", [y], y)


def integer_product(g: Graph) -> None:
    """MatMul of integers, whose kernels are plain loops."""
    kind = g.random.choice(("int32", "int64", "uint32"))
    m, k, n = g.size(), g.size(), g.size()
    if g.opset < 9 or not k:
        raise Skip("MatMul")
    g.node("MatMul", [g.leaf(kind, (m, k)), g.leaf(kind, (k, n))], Value("", kind, (m, n), 100.0 * k))


def square_products(g: Graph) -> None:
    """Two products one behind the other, of more rows and columns than a panel has, and of several tasks."""
    m, k, n = g.random.randint(100, 260), g.random.randint(60, 200), g.random.randint(100, 300)
    x = g.leaf("float32", (m, k), constant=False)
    first = Value("", "float32", (m, n), 4.0 * k)
    y = tame(g, g.node("MatMul", [x, g.leaf("float32", (k, n), constant=True)], rounded(first)))
    if g.chance(0.5):
        y = g.node("Relu", [y], y)
    last = rounded(Value("", "float32", (m, k), 2 * n * y.bound), error=y.error * 2 * n)
    tame(g, g.node("MatMul", [y, g.leaf("float32", (n, k), constant=g.chance(0.5))], last))


STEPS: dict[Callable[[Graph], None], float] = {
    elementwise: 0.4, few_long_rows: 0.3, many_columns: 0.4, wide_convolution: 0.6, embedding: 0.3,
    integer_product: 0.5, square_products: 0.3,
}  # fmt: skip
SPECIAL = ()
