"""Expressions that the compiler has rules for, and near misses of them: the same with another constant or type."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tests.fuzz.graph import ALL, INTS, SINGLES, Graph, Skip, Value, onnx_type, rounded
from tests.fuzz.steps.common import transpose

_NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0)


def arithmetic_with_a_constant(g: Graph) -> None:
    """x op c and c op x, for the c that mean something; the same again behind it, with another c."""
    x = g.pick((*SINGLES, "int32", "int64", "uint32"))
    ops = ["Add", "Sub", "Mul", "Max", "Min"]
    for _ in range(g.random.choice((1, 1, 2, 3))):
        number = g.random.choice(_NUMBERS if x.is_float else (0, 1, -1, 2))
        if x.dtype.startswith("u") and number < 0:
            number = 7
        c = g.spread(x, number)
        op = g.random.choice(ops)
        pair = [x, c] if g.chance(0.6) else [c, x]
        bound = x.bound * max(abs(number), 1) if op == "Mul" else x.bound + abs(number)
        bound = float(np.iinfo(x.dtype).max) if op == "Sub" and x.dtype.startswith("u") else bound
        if bound > 99:
            break
        result = replace(x, bound=bound, error=x.error * max(abs(number), 1))
        x = g.node(op, pair, result if op in ("Max", "Min") else rounded(result))
        ops = [op, *ops] if g.chance(0.5) else ops


def division_by_a_constant(g: Graph) -> None:
    x = g.pick((*SINGLES, "int32", "int64"), exact=True)
    c = g.random.choice((1, 2, 4, -8, 3) if x.is_float else (1, -1, 2, 8, 3, -4))
    if g.chance(0.3) and not x.is_float:
        g.node("Mod", [x, g.spread(x, abs(c))], replace(x, bound=abs(c)), fmod=g.random.randint(0, 1))
    else:
        g.node("Div", [x, g.spread(x, c)], rounded(x))


def power_of_a_constant(g: Graph) -> None:
    x = g.pick(SINGLES)
    x = g.node("Tanh", [x], rounded(x, bound=1))
    g.node("Pow", [g.spread(x, g.random.choice((1, 1, 2, 0.5))), x], rounded(x, bound=2, error=2 * x.error))


def signs(g: Graph) -> None:
    """Chains of Neg and Abs, and sums with their ends."""
    x = g.pick((*SINGLES, "int32", "int64"))
    y = x
    for _ in range(g.random.randint(1, 3)):
        y = g.node(g.random.choice(("Neg", "Abs")), [y], y)
    if g.chance(0.6):
        z = g.partner(x)
        op = g.random.choice(("Add", "Sub"))
        pair = g.random.sample([y, z], 2)
        g.node(op, pair, rounded(x, bound=x.bound + z.bound, error=x.error + z.error))


def with_itself(g: Graph) -> None:
    """x op x."""
    x = g.pick((*SINGLES, "int32", "int64", "bool"), exact=True)
    if x.dtype == "bool":
        g.node(g.random.choice(("And", "Or", "Xor", "Equal")), [x, x], x)
    elif g.chance(0.4):
        op = g.random.choice(("Equal", "Less", "LessOrEqual", "GreaterOrEqual"))
        flags = g.node(op, [x, x], Value("", "bool", x.shape, 1))
        g.node("Not", [flags], flags)
    else:
        op = g.random.choice(
            ("Sub", "Max", "Min", "Mul", "BitwiseXor", "BitwiseAnd") if not x.is_float else ("Sub", "Max", "Mul")
        )
        bound = x.bound**2 if op == "Mul" else 2 * x.bound
        g.node(op, [x, x], rounded(x, bound=bound))


def flags(g: Graph) -> None:
    """Not of a comparison, a comparison turned into a number and compared, a choice between true and false."""
    x = g.pick((*SINGLES, *INTS), exact=True)
    c = g.spread(x, g.random.choice((0, 1)))
    op = g.random.choice(("Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"))
    f = g.node(op, [x, c] if g.chance(0.7) else [c, x], Value("", "bool", x.shape, 1))
    kind = g.random.randrange(4)
    if kind == 0:
        f = g.node("Not", [f], f)
        f = g.node("Not", [f], f) if g.chance(0.3) else f
    elif kind == 1:
        number = g.node(
            "Cast", [f], Value("", t := g.random.choice(("float32", "int32", "int64")), x.shape, 1), to=onnx_type(t)
        )
        f = g.node(g.random.choice(("Equal", "Greater")), [number, g.scalar(t, g.random.choice((0, 1)))], f)
    elif kind == 2:
        pair = [g.scalar("bool", v) for v in g.random.choice(((True, False), (False, True), (True, True)))]
        f = g.node("Where", [f, *pair], f)
    else:
        f = g.node(g.random.choice(("And", "Or", "Xor")), [f, g.scalar("bool", g.chance(0.5))], f)
    if g.chance(0.7):
        other = g.leaf(x.dtype, x.shape) if g.chance(0.8) else x
        g.node("Where", [f, x, other], replace(x, bound=max(x.bound, other.bound)))


def chosen_already(g: Graph) -> None:
    """Where with a constant condition."""
    x = g.pick(ALL)
    y = g.leaf(x.dtype, x.shape)
    condition = g.scalar("bool", g.chance(0.5), g.random.choice(((), x.shape)))
    g.node("Where", [condition, x, y], replace(x, bound=max(x.bound, y.bound)))


def bounds(g: Graph) -> None:
    """Max of Min, Clip of Relu, bounds that cross, are open or infinite."""
    x = g.pick((*SINGLES, "int32"))
    low, high = g.random.choice(((-1, 1), (0, 6), (1, 1), (2, -1), (0, 0), (-50, 50)))
    kind = g.random.randrange(4)
    if kind == 0:
        x = g.node("Min", [x, g.spread(x, high)], replace(x, bound=max(x.bound, abs(high))))
        g.node("Max", [x, g.spread(x, low)], x)
    elif kind == 1:
        x = g.node("Max", [g.spread(x, low), x], replace(x, bound=max(x.bound, abs(low))))
        g.node("Min", [x, g.spread(x, high)], x)
    elif kind == 2 and low <= high:
        x = g.node(g.random.choice(("Relu", "Identity")), [x], x)
        g.node("Clip", [x, g.scalar(x.dtype, low), g.scalar(x.dtype, high)], replace(x, bound=max(x.bound, abs(high))))
    elif x.is_float:
        ends = g.random.choice(((-np.inf, 1), (-1, np.inf), (-np.inf, np.inf)))
        g.node("Clip", [x, *(g.scalar(x.dtype, e) for e in ends)], x)


def conversions(g: Graph) -> None:
    """A Cast there and back, over wider and narrower types; to the type it has; of something repeated."""
    x = g.pick(("float32", "int32", "int8", "uint8", "bool", "int64"), exact=True)
    paths = {
        "float32": ("float64", "float32", "float16"), "int32": ("int64", "float64", "int16", "uint32"),
        "int8": ("int32", "float32", "uint8", "float16"), "uint8": ("int32", "float32", "int8"),
        "bool": ("float32", "int64", "uint8"), "int64": ("float32", "int32", "uint8", "bool"),
    }  # fmt: skip
    if g.chance(0.4):
        shape = (g.random.randint(1, 3), *x.shape)
        x = g.node("Expand", [x, g.ints(*shape)], replace(x, shape=shape))
    middle = g.random.choice(paths[x.dtype])
    wraps = middle.startswith("u") or x.dtype.startswith("u") or middle in ("int8",)
    bound = max(x.bound, 256.0) if wraps else x.bound
    between = Value("", middle, x.shape, 1 if middle == "bool" else bound, 0)
    between = rounded(between) if middle == "float16" else between
    y = g.node("Cast", [x], between, to=onnx_type(middle))
    if y.error and not x.is_float:
        return
    g.node("Cast", [y], Value("", x.dtype, x.shape, bound, y.error), to=onnx_type(x.dtype))


def repeated_then(g: Graph) -> None:
    """Arithmetic on something spread, with something else spread the same way."""
    x = g.leaf("float32", (g.size(), 1) if g.chance(0.5) else (g.size(),))
    shape = (g.random.randint(1, 3), *x.shape[:-1], g.size() if x.shape[-1] == 1 else x.shape[-1])
    y = g.node("Expand", [x, g.ints(*shape)], replace(x, shape=shape))
    z = g.leaf("float32", g.random.choice(((), (1,), x.shape, shape)))
    w = g.node("Expand", [z, g.ints(*shape)], replace(z, shape=shape))
    w = g.node(g.random.choice(("Add", "Mul")), [y, w], rounded(y, bound=y.bound * z.bound + 4))
    if g.chance(0.5):
        transpose(g, w, g.random.sample(range(w.rank), w.rank))


def between_reshapes(g: Graph) -> None:
    """Arithmetic between reshapes and transposes that undo each other."""
    x = g.pick(SINGLES, rank=(2, 4))
    if not x.size:
        raise Skip("nothing to reshape")
    flat = g.node("Reshape", [x, g.ints(-1)], replace(x, shape=(x.size,)))
    y = g.leaf(x.dtype, g.random.choice(((), (1,), (x.size,))))
    z = g.node("Mul", [flat, y], rounded(flat, bound=x.bound * y.bound, error=x.error * y.bound))
    back = g.node("Reshape", [z, g.ints(*x.shape)], replace(z, shape=x.shape))
    order = g.random.sample(range(x.rank), x.rank)
    there = transpose(g, back, order)
    c = g.leaf(x.dtype, g.random.choice(((), there.shape[-1:], there.shape)))
    there = g.node("Add", [there, c], rounded(there, bound=there.bound + c.bound))
    transpose(g, there, [order.index(a) for a in range(x.rank)])


STEPS: dict[Callable[[Graph], None], float] = {
    arithmetic_with_a_constant: 4, division_by_a_constant: 1, power_of_a_constant: 0.3, signs: 1,
    with_itself: 1.5, flags: 2, chosen_already: 0.5,
    bounds: 2, conversions: 2, repeated_then: 2, between_reshapes: 2,
}  # fmt: skip
SPECIAL = (
    arithmetic_with_a_constant,
    division_by_a_constant,
    signs,
    with_itself,
    flags,
    bounds,
    repeated_then,
    between_reshapes,
)
