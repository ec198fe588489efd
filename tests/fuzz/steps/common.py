"""What several steps need: axes as attribute or input, values made small, permutations."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.fuzz.graph import Graph, Value, rounded

_AXES_INPUT_SINCE = {"Unsqueeze": 13, "Squeeze": 13, "ReduceSum": 13}


def with_axes(g: Graph, op: str, axes: Sequence[int] | None) -> tuple[list[Value | None], dict[str, Any]]:
    """The further inputs and the attributes that tell `op` its axes at this opset."""
    if axes is None:
        return [], {}
    if g.opset >= _AXES_INPUT_SINCE.get(op, 18):
        return [g.ints(*axes)], {}
    return [], {"axes": list(axes)}


def unsqueeze(g: Graph, x: Value, at: int) -> Value:
    inputs, attributes = with_axes(g, "Unsqueeze", [at])
    shape = (*x.shape[:at], 1, *x.shape[at:])
    return g.node("Unsqueeze", [x, *inputs], replace(x, shape=shape), **attributes)


def transpose(g: Graph, x: Value, order: Sequence[int]) -> Value:
    return g.node("Transpose", [x], replace(x, shape=tuple(x.shape[a] for a in order)), perm=list(order))


def shuffled(g: Graph, x: Value) -> Value:
    """x with its dimensions in another order."""
    return transpose(g, x, g.random.sample(range(x.rank), x.rank))


def tame(g: Graph, x: Value) -> Value:
    """A value of moderate size, so that more can be built on it."""
    if x.bound < 20 or not x.is_float:
        return x
    if g.chance(0.5):
        return g.node("Tanh", [x], rounded(x, bound=1))
    factor = 2.0 ** -int(x.bound).bit_length()
    return g.node("Mul", [x, g.scalar(x.dtype, factor)], replace(x, bound=x.bound * factor, error=x.error * factor))
