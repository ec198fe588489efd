"""Softmax and norms: the standard's operators, and the same written out as exporters do."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.graph import SINGLES, Graph, Skip, Value, rounded
from tests.fuzz.steps.reductions import reduce_over


def softmax(g: Graph) -> None:
    x = g.pick((*SINGLES, "float16"), rank=(1, 4))
    if 0 in x.shape:
        raise Skip("empty")
    op = g.random.choice(("Softmax", "LogSoftmax"))
    bound = 1 if op == "Softmax" else 2 * x.bound + 5
    axis = g.random.randrange(x.rank)
    g.node(op, [x], rounded(x, bound=bound, error=4 * x.error), axis=axis if g.chance(0.6) else axis - x.rank)


def softmax_written_out(g: Graph) -> None:
    """exp(x - max) / sum, over one axis or several, at times with a mask added."""
    x = g.pick(("float32",), rank=(1, 4))
    if 0 in x.shape:
        raise Skip("empty")
    if g.chance(0.3):
        mask = g.hold(np.where(g.source().random(x.shape[-1:]) < 0.3, -1e9, 0).astype(np.float32))
        x = g.node("Add", [x, mask], replace(rounded(x), bound=50))
    axes = list(range(g.random.randrange(x.rank), x.rank))
    most = reduce_over(g, x, "ReduceMax", axes, True)
    apart = g.node("Sub", [x, most], rounded(x, error=2 * x.error))
    power = g.node("Exp", [apart], rounded(x, bound=1, error=2 * x.error))
    total = reduce_over(g, power, "ReduceSum", axes, True)
    g.node("Div", [power, total], rounded(power, bound=1, error=8 * x.error))


def layer_norm(g: Graph) -> None:
    x = g.pick(SINGLES, rank=(1, 4))
    if 0 in x.shape:
        raise Skip("empty")
    axis = g.random.randrange(x.rank)
    scale = g.leaf(x.dtype, x.shape[axis:])
    result = rounded(x, bound=12 * scale.bound, error=40 * x.error + (1e-4 if x.dtype == "float32" else 0))
    if g.chance(0.3):
        g.node("RMSNormalization", [x, scale], result, axis=axis, epsilon=0.1)
        return
    bias = g.leaf(x.dtype, x.shape[axis:]) if g.chance(0.5) else None
    g.node("LayerNormalization", [x, scale, bias], result, axis=axis, epsilon=0.1)


def layer_norm_written_out(g: Graph) -> None:
    """(x - mean) / sqrt(mean of squares + epsilon) * scale + bias."""
    x = g.pick(SINGLES, rank=(1, 4))
    if 0 in x.shape:
        raise Skip("empty")
    axes = [x.rank - 1] if g.chance(0.7) else list(range(g.random.randrange(x.rank), x.rank))
    mean = reduce_over(g, x, "ReduceMean", axes, True)
    apart = g.node("Sub", [x, mean], rounded(x, bound=2 * x.bound, error=2 * x.error))
    if g.chance(0.5):
        square = g.node("Pow", [apart, g.scalar(x.dtype, 2)], rounded(apart, bound=apart.bound**2))
    else:
        square = g.node("Mul", [apart, apart], rounded(apart, bound=apart.bound**2))
    variance = reduce_over(g, square, "ReduceMean", axes, True)
    root = g.node("Sqrt", [g.node("Add", [variance, g.scalar(x.dtype, 0.1)], variance)], variance)
    result = rounded(x, bound=12, error=40 * x.error + (1e-4 if x.dtype == "float32" else 0))
    y = g.node("Div", [apart, root], result)
    scale = g.leaf(x.dtype, x.shape[-1:], constant=True)
    g.node("Mul", [y, scale], rounded(y, bound=y.bound * scale.bound, error=2 * y.error))


def channel_norms(g: Graph) -> None:
    x = g.pick(("float32",), rank=(3, 4))
    if 0 in x.shape:
        raise Skip("empty")
    c = x.shape[1]
    scale, bias = g.leaf("float32", (c,)), g.leaf("float32", (c,))
    kind = g.random.randrange(5)
    result = rounded(x, bound=12 * scale.bound + 2, error=40 * x.error + 1e-4)
    if kind < 2:
        variance = g.hold(np.full(c, 0.7, np.float32))
        result = rounded(x, bound=3 * x.bound * scale.bound + 8, error=4 * x.error)
        g.node("BatchNormalization", [x, scale, bias, g.leaf("float32", (c,)), variance], result)
    elif kind == 2:
        g.node("InstanceNormalization", [x, scale, bias], result, epsilon=0.1)
    elif kind == 3:
        groups = g.random.choice([n for n in range(1, c + 1) if c % n == 0])
        size = c if g.opset >= 21 else groups
        pair = [g.leaf("float32", (size,)), g.leaf("float32", (size,))]
        g.node("GroupNormalization", [x, *pair], replace(result, bound=26), num_groups=groups, epsilon=0.1)
    elif x.rank == 4:
        g.node("LRN", [x], rounded(x, error=2 * x.error), size=g.random.choice((1, 3, 5)), alpha=0.1, bias=1.5)


def vector_norms(g: Graph) -> None:
    x = g.pick(SINGLES, rank=(1, 4))
    if 0 in x.shape:
        raise Skip("empty")
    x = g.node("Add", [g.node("Sigmoid", [x], rounded(x, bound=1)), g.scalar(x.dtype, 0.5)], rounded(x, bound=2))
    if x.rank == 4 and x.dtype == "float32" and g.chance(0.3):
        size = x.shape[0] * x.shape[2] * x.shape[3]
        if size > 8:  # of values that all are equal, onnxruntime may make NaN
            x = g.leaf("float32", x.shape, constant=False)
            g.node("MeanVarianceNormalization", [x], rounded(x, bound=100, error=200 * x.error + 1e-3), axes=[0, 2, 3])
        return
    attributes: dict[str, Any] = {"axis": g.random.randrange(x.rank), "p": g.random.choice((1, 2))}
    g.node("LpNormalization", [x], rounded(x, error=4 * x.error), **attributes)


def rows(g: Graph) -> None:
    """A norm of many long rows, between other work: rows are shared out among tasks."""
    x = g.leaf("float32", (g.random.choice((1, 3, 40, 130)), g.random.choice((100, 257, 511, 64))), constant=False)
    y = g.node("Add", [x, g.leaf("float32", x.shape[-1:])], rounded(x, bound=4))
    z = Value("", "float32", x.shape, 1, 1e-6)
    z = g.node("Softmax", [y], z, axis=-1)
    other = g.leaf("float32", (x.shape[0], 1))
    z = g.node("Mul", [z, other], rounded(z, bound=2))
    if g.chance(0.5):
        reduce_over(g, z, "ReduceSum", [g.random.randrange(2)], True)


STEPS: dict[Callable[[Graph], None], float] = {
    softmax: 3, softmax_written_out: 1, layer_norm: 2, layer_norm_written_out: 1.5, channel_norms: 2, vector_norms: 1,
    rows: 0.7,
}  # fmt: skip
SPECIAL = ()
