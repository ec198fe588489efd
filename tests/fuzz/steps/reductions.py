"""Reductions, positions of extremes, sorting, running sums."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.graph import FLOATS, SINGLES, Graph, Skip, Value, rounded
from tests.fuzz.steps.common import shuffled, with_axes

_EXTREMES = ("ReduceMax", "ReduceMin")


def _reduced(shape: Sequence[int], axes: Sequence[int], keep: bool) -> tuple[int, ...]:
    return tuple(1 if a in axes else n for a, n in enumerate(shape) if keep or a not in axes)


def _some_axes(g: Graph, x: Value) -> list[int]:
    if x.rank > 1 and g.chance(0.4):
        return list(range(g.random.randint(0, x.rank - 1), x.rank))
    return sorted(g.random.sample(range(x.rank), g.random.randint(1, x.rank)))


def reduce_over(g: Graph, x: Value, op: str, axes: list[int], keep: bool) -> Value:
    """A reduction of x, whose result is known for each of them."""
    count = max(int(np.prod([x.shape[a] for a in axes])), 1)
    growth = {"ReduceSum": count, "ReduceL1": count, "ReduceSumSquare": count * x.bound, "ReduceL2": count}.get(op, 1)
    bound, error = x.bound * max(growth, 1), x.error * max(growth, 1) * 2
    if op == "ReduceLogSumExp":
        bound = x.bound + np.log(count) + 1
    signed = [a - x.rank if g.chance(0.3) else a for a in axes]
    every = len(axes) == x.rank and g.chance(0.3)
    inputs, attributes = with_axes(g, op, None if every else signed)
    result = replace(x, shape=_reduced(x.shape, axes, keep), bound=bound, error=error)
    result = result if op in _EXTREMES and not error else rounded(result)
    if count > 2000 and growth > 1:  # onnxruntime adds one after the other
        result = replace(result, error=result.error * 10)
    return g.node(op, [x, *inputs], result, keepdims=int(keep), **attributes)


def reduce(g: Graph) -> None:
    x = g.pick((*FLOATS, "int32", "int64", "int8", "uint8"), rank=(1, 4))
    axes = _some_axes(g, x)
    empty = 0 in [x.shape[a] for a in axes]
    ops = ["ReduceSum", "ReduceSumSquare", "ReduceL1"]
    ops += [] if empty else [*_EXTREMES, *_EXTREMES]
    ops += ["ReduceMean", "ReduceMean", "ReduceLogSumExp"] if not empty and x.is_float else []
    op = g.random.choice(list(_EXTREMES) if g.special and not empty else ops)
    reduce_over(g, x, op, axes, g.chance(0.5))


def reduce_product(g: Graph) -> None:
    """Products and norms of numbers of magnitude at most 1, logarithms of sums of positive ones."""
    x = g.pick(SINGLES, rank=(1, 4))
    x = g.node("Sigmoid", [x], rounded(x, bound=1))
    x = g.node("Add", [x, g.scalar(x.dtype, 0.1)], rounded(x, bound=1.1))
    axes = _some_axes(g, x)
    count = int(np.prod([x.shape[a] for a in axes]))
    op = g.random.choice(("ReduceProd", "ReduceL2", "ReduceLogSum"))
    if op != "ReduceProd" and not count or op == "ReduceProd" and count > 40:
        raise Skip(op)
    keep = g.chance(0.5)
    inputs, attributes = with_axes(g, op, axes)
    bound = 1.1**count if op == "ReduceProd" else count + 3
    result = rounded(x, shape=_reduced(x.shape, axes, keep), bound=bound, error=x.error * (count + 10) * bound)
    g.node(op, [x, *inputs], result, keepdims=int(keep), **attributes)


def reduce_nothing(g: Graph) -> None:
    """An empty list of axes that means none, and one that means all."""
    x = g.pick(("float32",), rank=(1, 3))
    nothing = g.random.randint(0, 1)
    shape = x.shape if nothing else (1,) * x.rank
    bound = x.bound * (1 if nothing else max(x.size, 1))
    result = rounded(x, shape=shape, bound=bound, error=x.error * max(x.size, 1))
    if g.opset < 13:
        raise Skip("an attribute before")
    g.node("ReduceSum", [x, g.ints()], result, noop_with_empty_axes=nothing)


def reduce_rearranged(g: Graph) -> None:
    """A reduction of something transposed, reshaped, repeated, or reduced already."""
    x = g.pick((*SINGLES, "int32"), rank=(1, 3))
    ops = ["ReduceSum", *_EXTREMES] if x.size else ["ReduceSum"]
    op = g.random.choice(list(_EXTREMES) if g.special and x.size else ops)
    kind = g.random.randrange(4)
    if kind == 0:
        x = shuffled(g, x)
    elif kind == 1:
        shape = (*x.shape[:1], 1, *x.shape[1:])
        x = g.node("Reshape", [x, g.ints(*shape)], replace(x, shape=shape), **(_zero(g) if 0 in shape else {}))
    elif kind == 2:
        shape = (g.random.randint(1, 4), *x.shape)
        x = g.node("Expand", [x, g.ints(*shape)], replace(x, shape=shape))
    elif x.rank > 1:
        axis = g.random.randrange(x.rank)
        x = reduce_over(g, x, op, [axis], g.chance(0.5))
    axes = _some_axes(g, x)
    if op in _EXTREMES and 0 in [x.shape[a] for a in axes]:
        raise Skip("nothing to choose from")
    y = reduce_over(g, x, op, axes, True)
    if g.chance(0.5):
        g.node("Sub", [x, y], rounded(x, bound=x.bound + y.bound, error=x.error + y.error))


def _zero(g: Graph) -> dict[str, Any]:
    if g.opset < 14:
        raise Skip("a 0 would mean another thing")
    return {"allowzero": 1}


def statistics(g: Graph) -> None:
    """Several reductions of one value over the same axes, and what is made of them: one kernel with many results."""
    x = g.pick(SINGLES, rank=(1, 4))
    if not x.size:
        raise Skip("nothing to reduce")
    axes = list(range(g.random.randrange(x.rank), x.rank))
    ops = g.random.sample(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1"), g.random.randint(2, 3))
    parts = [reduce_over(g, x, op, axes, True) for op in ops]
    total = x
    for part in parts:
        bound, error = total.bound + part.bound, total.error + part.error
        total = g.node("Sub", [total, part], rounded(total, bound=bound, error=error))
    if total.bound < 1000:
        g.node("Tanh", [total], rounded(total, bound=1))


def long_reduction(g: Graph) -> None:
    """Past one accumulator, one vector and one task."""
    rows = g.random.choice((1, 1, 2, 5, 64, 300))
    x = g.leaf("float32", (rows, g.random.randint(100, 40_000 // rows)), constant=False)
    x = g.node("Abs", [x], x)
    x = shuffled(g, x) if g.chance(0.3) else x
    axis = g.random.randrange(2)
    op = g.random.choice(("ReduceSum", "ReduceMax", "ReduceMean", "ReduceSumSquare", "ReduceL2"))
    y = reduce_over(g, x, op, [axis] if g.chance(0.7) else [0, 1], True)
    if g.chance(0.5):
        g.node("Div", [x, g.node("Add", [y, g.scalar("float32", 1)], rounded(y))], rounded(x, error=y.error))


def argmax(g: Graph) -> None:
    x = g.pick((*SINGLES, "int32", "float16", "int8"), rank=(1, 4), exact=True)
    axis = g.random.randrange(x.rank)
    if not x.shape[axis]:
        raise Skip("nothing to choose from")
    keep = g.chance(0.5)
    attributes: dict[str, Any] = {"select_last_index": g.random.randint(0, 1)} if g.opset > 11 else {}
    result = Value("", "int64", _reduced(x.shape, [axis], keep), x.shape[axis])
    op = g.random.choice(("ArgMax", "ArgMin"))
    g.node(op, [x], result, axis=axis - x.rank if g.chance(0.5) else axis, keepdims=int(keep), **attributes)


def top_k(g: Graph) -> None:
    x = g.pick((*SINGLES, "int32", "int64"), rank=(1, 3), exact=True)
    axis = g.random.randrange(x.rank)
    if not x.shape[axis]:
        raise Skip("nothing to sort")
    k = g.random.randint(1, x.shape[axis])
    shape = tuple(k if a == axis else n for a, n in enumerate(x.shape))
    results = replace(x, shape=shape), Value("", "int64", shape, x.shape[axis])
    g.node("TopK", [x, g.ints(k)], *results, axis=axis, largest=g.random.randint(0, 1))


def running(g: Graph) -> None:
    x = g.pick((*SINGLES, "int32", "int64"), rank=(1, 3))
    axis = g.random.randrange(x.rank)
    growth = max(x.shape[axis], 1)
    place = g.hold(np.array(axis - x.rank if g.chance(0.3) else axis, np.int64))
    flags: dict[str, Any] = {"exclusive": g.random.randint(0, 1), "reverse": g.random.randint(0, 1)}
    g.node("CumSum", [x, place], rounded(x, bound=x.bound * growth, error=x.error * growth), **flags)


def hardest(g: Graph) -> None:
    x = g.pick(SINGLES, rank=(1, 4), exact=True)
    if not x.size or g.opset < 13:
        raise Skip("Hardmax")
    g.node("Hardmax", [x], replace(x, bound=1), axis=g.random.randrange(x.rank))


STEPS: dict[Callable[[Graph], None], float] = {
    reduce: 5, reduce_product: 1, reduce_nothing: 0.3, reduce_rearranged: 3, statistics: 2, long_reduction: 1,
    argmax: 2, top_k: 2, running: 2, hardest: 0.5,
}  # fmt: skip
SPECIAL = (reduce, reduce_rearranged)
