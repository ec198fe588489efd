"""Arithmetic, functions, comparisons, logic, conversions."""

from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.graph import ALL, EPSILON, FLOATS, INTS, SINGLES, Graph, Value, numpy_type, onnx_type, rounded
from tests.fuzz.steps.common import unsqueeze

_EXACT = ("Relu", "Neg", "Abs", "Identity")


def unary(g: Graph) -> None:
    x = g.pick(FLOATS)
    op, bound, slope = g.random.choice(
        [("Tanh", 1, 1), ("Sigmoid", 1, 1), ("Relu", x.bound, 1), ("Neg", x.bound, 1), ("Abs", x.bound, 1)]
        + [("Erf", 1, 2), ("Sin", 1, 1), ("Cos", 1, 1), ("HardSigmoid", 1, 1), ("Softplus", x.bound + 1, 1)]
        + [("Elu", x.bound + 1, 1), ("LeakyRelu", x.bound, 1), ("Gelu", x.bound + 1, 2), ("HardSwish", 2 * x.bound, 2)]
        + [("Atan", 2, 1), ("Identity", x.bound, 1), ("Softsign", 1, 1), ("Mish", x.bound + 1, 2)]
        + [("Selu", 2 * x.bound + 2, 2), ("Celu", x.bound + 1, 1), ("Swish", x.bound, 2), ("Asinh", x.bound, 1)]
    )
    attributes: dict[str, Any] = {}
    if op in ("Elu", "LeakyRelu", "HardSigmoid") and g.chance(0.4):
        attributes["alpha"] = g.random.choice((0.0, 0.5, 0.25))
    if op == "Gelu":
        attributes["approximate"] = g.random.choice(("none", "tanh"))
    exact = op in _EXACT and x.error == 0
    result = replace(x, bound=bound, error=x.error * slope)
    g.node(op, [x], result if exact else rounded(result), **attributes)


def integer_unary(g: Graph) -> None:
    x = g.pick(INTS)
    ops = ("Neg", "Abs", "Sign", "Relu", "Identity") if not x.dtype.startswith("u") else ("Abs", "Sign", "Identity")
    g.node(g.random.choice(ops), [x], x)


def jump(g: Graph) -> None:
    x = g.pick(FLOATS, exact=True)
    op = g.random.choice(("Floor", "Ceil", "Round", "Sign", "IsNaN", "IsInf", "ThresholdedRelu", "Shrink"))
    flags = op in ("IsNaN", "IsInf")
    attributes: dict[str, Any] = {"lambd": 0.75, "bias": 0.25} if op == "Shrink" else {}
    result = Value("", "bool", x.shape, 1) if flags else replace(x, bound=x.bound + 1)
    g.node(op, [x], rounded(result) if op == "Shrink" else result, **attributes)


_DOMAINS = {
    "Asin": (0.9, 0.0, 2, 3), "Acos": (0.9, 0.0, 4, 3), "Atanh": (0.9, 0.0, 2, 6), "Tan": (1.0, 0.0, 2, 4),
    "Log": (1.0, 1.5, 2, 2), "Sqrt": (1.0, 1.5, 2, 1), "Reciprocal": (1.0, 1.5, 2, 4), "Exp": (1.0, 0.0, 3, 3),
    "Sinh": (1.0, 0.0, 2, 2), "Cosh": (1.0, 0.0, 2, 2), "Acosh": (1.0, 2.5, 2, 1),
}  # fmt: skip


def function(g: Graph) -> None:
    """Functions with a domain: their argument is scaled and shifted into it."""
    x = g.node("Tanh", [y := g.pick(FLOATS)], rounded(y, bound=1))
    op = g.random.choice(list(_DOMAINS))
    scale, shift, bound, slope = _DOMAINS[op]
    if scale != 1:
        x = g.node("Mul", [x, g.scalar(x.dtype, scale)], rounded(x))
    if shift:
        x = g.node("Add", [x, g.scalar(x.dtype, shift)], rounded(x, bound=1 + shift))
    g.node(op, [x], rounded(x, bound=bound, error=x.error * slope))


def power(g: Graph) -> None:
    """x ** c for the exponents that have rules, and others; x of another type than c at times."""
    x = g.pick(SINGLES)
    x = g.node("Sigmoid", [x], rounded(x, bound=1))
    x = g.node("Add", [x, g.scalar(x.dtype, 0.5)], rounded(x, bound=1.5))
    exponent = g.random.choice((0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -0.5, 1.7, -2.0))
    kind = x.dtype if exponent % 1 or g.chance(0.7) else g.random.choice(("int64", "int32", "float32"))
    g.node(
        "Pow",
        [x, g.scalar(kind, exponent, g.random.choice(((), (1,) if x.shape else ())))],
        rounded(x, bound=4, error=x.error * 16),
    )


def binary(g: Graph) -> None:
    x = g.pick((*FLOATS, "int32", "int64", "int8", "uint8", "uint32"))
    y = g.partner(x)
    op = g.random.choice(("Add", "Sub", "Mul", "Max", "Min"))
    error = x.error * y.bound + y.error * x.bound if op == "Mul" else x.error + y.error
    most = max(x.bound, y.bound)
    bound = {"Mul": x.bound * y.bound, "Max": most, "Min": most}.get(op, x.bound + y.bound)
    if op == "Sub" and x.dtype.startswith("u"):
        bound = float(np.iinfo(x.dtype).max)
    result = replace(x, bound=bound, error=error)
    g.node(op, g.random.sample([x, y], 2), result if op in ("Max", "Min") and not error else rounded(result))


def outer(g: Graph) -> None:
    """Both operands are spread: (n, 1) with (m,), and ranks that differ."""
    x = g.pick((*SINGLES, "int32"), rank=(1, 3))
    x = unsqueeze(g, x, x.rank)
    y = g.leaf(x.dtype, (g.size(),))
    shape = (*x.shape[:-1], *y.shape)
    op = g.random.choice(("Add", "Mul"))
    bound = x.bound * y.bound if op == "Mul" else x.bound + y.bound
    g.node(op, g.random.sample([x, y], 2), rounded(x, shape=shape, bound=bound, error=x.error * max(y.bound, 1)))


def variadic(g: Graph) -> None:
    """One to four operands that broadcast together."""
    x = g.pick((*FLOATS, "int32"))
    op = g.random.choice(("Sum", "Mean", "Max", "Min"))
    operands = [x, *(g.partner(x) for _ in range(g.random.randint(0, 3)))]
    g.random.shuffle(operands)
    result = replace(x, bound=sum(v.bound for v in operands), error=sum(v.error for v in operands))
    g.node(op, operands, rounded(result) if op in ("Sum", "Mean") or result.error else result)


def compare_select(g: Graph) -> None:
    x = g.pick((*FLOATS, *INTS), exact=True)
    y = g.scalar(x.dtype, g.random.choice((0, 1))) if g.chance(0.3) else g.leaf(x.dtype, x.shape)
    op = g.random.choice(("Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"))
    condition = g.node(op, g.random.sample([x, y], 2), Value("", "bool", x.shape, 1))
    a = g.leaf(x.dtype, g.random.choice(((1,) if x.shape else (), (), x.shape)))
    g.node("Where", [condition, *g.random.sample([x, a], 2)], replace(x, bound=max(x.bound, a.bound)))


def spread_select(g: Graph) -> None:
    """Where with a condition that is one flag, a row or a column of flags."""
    x = g.pick(ALL, rank=(1, 4))
    shape = g.random.choice(((), (1,), x.shape[-1:], (*x.shape[:-1], 1)))
    a = g.leaf(x.dtype, x.shape)
    g.node("Where", [g.leaf("bool", shape), x, a], replace(x, bound=max(x.bound, a.bound)))


def logic(g: Graph) -> None:
    x = g.pick(("bool",))
    op = g.random.choice(("And", "Or", "Xor", "Not", "Equal"))
    g.node(op, [x] if op == "Not" else [x, g.leaf("bool", g.random.choice((x.shape, ())))], x)


def bits(g: Graph) -> None:
    x = g.pick(INTS)
    op = g.random.choice(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift"))
    limit = float(np.iinfo(x.dtype).max) if x.dtype.startswith("u") else max(x.bound, 16)
    if op == "BitShift":
        by = g.hold(np.asarray(g.source().integers(0, 9, x.shape)).astype(x.dtype), constant=g.chance(0.5))
        direction = g.random.choice(("LEFT", "RIGHT"))
        g.node(op, [x, by], replace(x, bound=limit), direction=direction)
    else:
        operands = (
            [x] if op == "BitwiseNot" else [x, g.scalar(x.dtype, 5) if g.chance(0.3) else g.leaf(x.dtype, x.shape)]
        )
        g.node(op, operands, replace(x, bound=limit))


def clip(g: Graph) -> None:
    x = g.pick((*FLOATS, "int32", "int8", "uint8", "int64"))
    low = g.scalar(x.dtype, 1) if g.chance(0.7) else None
    high = g.scalar(x.dtype, 3) if g.chance(0.8) else None
    g.node("Clip", [x, low, high], replace(x, bound=max(x.bound, 3)))


def cast(g: Graph) -> None:
    x = g.pick(ALL)
    target = g.random.choice(ALL)
    if x.is_float and target not in FLOATS and (x.error or g.special):
        return
    if x.is_float and target.startswith("u") or target == "int8" and x.bound > 100:
        return
    bound = 1.0 if target == "bool" else x.bound
    if target.startswith("u") and x.dtype in INTS and not x.dtype.startswith("u"):
        bound = float(np.iinfo(target).max)
    narrowing = target in FLOATS and x.is_float and EPSILON[target] > EPSILON[x.dtype]
    result = Value("", target, x.shape, bound, x.error)
    g.node("Cast", [x], rounded(result) if narrowing else result, to=onnx_type(target))


def divide(g: Graph) -> None:
    """Division and remainder where nothing is close to a singularity."""
    x = g.pick((*FLOATS, "int32", "int64", "uint8", "uint32", "int8"), exact=True)
    op = g.random.choice(("Div", "Mod"))
    numbers = np.asarray(g.source().integers(1, 9, g.random.choice((x.shape, ()))))
    if not x.dtype.startswith("u") and g.chance(0.4):
        numbers = np.where(numbers % 2, numbers, -numbers)
    divisor = g.hold(numbers.astype(numpy_type(x.dtype)), constant=g.chance(0.5))
    if op == "Mod":
        fmod = int(x.is_float) or g.random.randint(0, 1)
        g.node(op, [x, divisor], replace(x, bound=9.0), fmod=fmod)
    else:
        g.node(op, [x, divisor], rounded(x, bound=x.bound + 9))


def slopes(g: Graph) -> None:
    """PRelu: a slope for each channel, or one."""
    x = g.pick(SINGLES, rank=(1, 4))
    slope = g.leaf(x.dtype, g.random.choice(((1,), x.shape, x.shape[-1:], (x.shape[0], *[1] * (x.rank - 1)))))
    g.node("PRelu", [x, slope], rounded(x, bound=x.bound * slope.bound, error=2 * x.error))


STEPS = {
    unary: 6, integer_unary: 1, jump: 1, function: 2, power: 1, binary: 8, outer: 1, variadic: 2, compare_select: 3,
    spread_select: 1, logic: 2, bits: 1, clip: 2, cast: 4, divide: 3, slopes: 1,
}  # fmt: skip
SPECIAL = (unary, jump, binary, variadic, compare_select, spread_select, logic, cast, divide)
