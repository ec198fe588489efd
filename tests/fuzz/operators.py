"""What a random model is made of: one function for a family of operators, each appends valid nodes to a graph."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tests.fuzz.graph import EPSILON, FLOATS, INTS, Graph, Value

ALL = (*FLOATS, *INTS, "bool")
Step = Callable[[Graph], None]


def _rounded(value: Value, **changes: object) -> Value:
    """The value after one more rounding."""
    after = replace(value, **changes)  # type: ignore[arg-type]
    if not after.is_float:
        return replace(after, error=0.0)
    return replace(after, error=after.error + 16 * EPSILON[after.dtype] * max(after.bound, 1))


def _broadcast_partner(g: Graph, x: Value) -> tuple[Value, tuple[int, ...]]:
    """A second operand whose shape broadcasts with x's, and the shape of both together."""
    same = [v for v in g.values if v.dtype == x.dtype and v.shape == x.shape and v.bound < 100 and v.error <= 0.02]
    if same and g.random.random() < 0.5:
        return g.random.choice(same), x.shape
    shape = tuple(1 if g.random.random() < 0.3 else n for n in x.shape)
    shape = shape[g.random.randint(0, len(shape)) :] if g.random.random() < 0.5 else shape
    return g.leaf(x.dtype, shape), x.shape


def unary(g: Graph) -> None:
    x = g.pick(("float32", "float64", "float16"))
    op, bound, slope = g.random.choice(
        [("Tanh", 1, 1), ("Sigmoid", 1, 1), ("Relu", x.bound, 1), ("Neg", x.bound, 1), ("Abs", x.bound, 1)]
        + [("Erf", 1, 2), ("Sin", 1, 1), ("Cos", 1, 1), ("HardSigmoid", 1, 1), ("Softplus", x.bound + 1, 1)]
        + [("Elu", x.bound + 1, 1), ("LeakyRelu", x.bound, 1), ("Gelu", x.bound + 1, 2), ("HardSwish", x.bound, 2)]
        + [("Atan", 2, 1), ("Identity", x.bound, 1), ("Softsign", 1, 1), ("Mish", x.bound + 1, 2)]
    )
    if op == "HardSwish":
        bound = x.bound * 2
    g.node(op, [x], _rounded(x, bound=bound, error=x.error * slope))


def jump(g: Graph) -> None:
    x = g.pick(("float32", "float64", "float16"), exact=True)
    op = g.random.choice(("Floor", "Ceil", "Round", "Sign"))
    g.node(op, [x], replace(x, bound=x.bound + 1))


def binary(g: Graph) -> None:
    x = g.pick(("float32", "float64", "float16", "int32", "int64"))
    y, shape = _broadcast_partner(g, x)
    op = g.random.choice(("Add", "Sub", "Mul", "Max", "Min"))
    error = x.error * y.bound + y.error * x.bound if op == "Mul" else x.error + y.error
    bound = {"Mul": x.bound * y.bound, "Max": max(x.bound, y.bound), "Min": max(x.bound, y.bound)}
    pair = [x, y] if g.random.random() < 0.5 else [y, x]
    g.node(op, [*pair], _rounded(x, shape=shape, bound=bound.get(op, x.bound + y.bound), error=error))


def compare_select(g: Graph) -> None:
    x = g.pick(("float32", "float64", "int32", "int64"), exact=True)
    y = g.leaf(x.dtype, x.shape)
    g.node(g.random.choice(("Less", "Greater", "Equal", "LessOrEqual")), [x, y], Value("", "bool", x.shape, 1))
    condition = g.values[-1]
    a = g.leaf(x.dtype, (1,))
    g.node("Where", [condition, x, a], replace(x, bound=max(x.bound, a.bound)))


def logic(g: Graph) -> None:
    x = g.pick(("bool",))
    op = g.random.choice(("And", "Or", "Xor", "Not"))
    g.node(op, [x] if op == "Not" else [x, g.leaf("bool", x.shape)], x)


def clip(g: Graph) -> None:
    x = g.pick(("float32", "float64", "int32", "int8", "uint8", "int64"))
    low = g.hold(np.array(1, x.dtype)) if g.random.random() < 0.7 else None
    g.node("Clip", [x, low, g.hold(np.array(3, x.dtype))], replace(x, bound=max(x.bound, 3)))


def cast(g: Graph) -> None:
    x = g.pick(ALL)
    target = g.random.choice(ALL)
    if x.is_float and target not in FLOATS and x.error:
        return
    if target == "uint8" and x.dtype not in ("uint8", "bool"):
        return
    if target == "int8" and x.bound > 100:
        return
    to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    bound = 1.0 if target == "bool" else x.bound
    narrowing = target in FLOATS and x.is_float and EPSILON[target] > EPSILON[x.dtype]
    result = Value("", target, x.shape, bound, x.error)
    exact_integer = not x.is_float and target in FLOATS
    g.node("Cast", [x], _rounded(result) if narrowing and not exact_integer else result, to=to)


def reduce(g: Graph) -> None:
    x = g.pick(("float32", "float64", "int32", "int64"), rank=(1, 4))
    axes = sorted(g.random.sample(range(len(x.shape)), g.random.randint(1, len(x.shape))))
    count = int(np.prod([x.shape[a] for a in axes]))
    keep = g.random.random() < 0.5
    shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape) if keep or a not in axes)
    ops = ["ReduceSum", "ReduceSumSquare", "ReduceL1"]
    ops += ["ReduceMax", "ReduceMin"] if count else []
    ops += ["ReduceMean"] if count and x.is_float else []
    op = g.random.choice(ops)
    growth = {"ReduceSum": count, "ReduceL1": count, "ReduceSumSquare": count * x.bound}.get(op, 1)
    bound, error = x.bound * max(growth, 1), x.error * max(growth, 1) * 2
    signed = [a - len(x.shape) if g.random.random() < 0.3 else a for a in axes]
    g.node(op, [x, g.ints(*signed)], _rounded(x, shape=shape, bound=bound, error=error), keepdims=int(keep))


def argmax(g: Graph) -> None:
    x = g.pick(("float32", "float64", "int32"), rank=(1, 4), exact=True)
    axis = g.random.randrange(len(x.shape))
    if not x.shape[axis]:
        return
    shape = tuple(1 if a == axis else n for a, n in enumerate(x.shape))
    last = g.random.randint(0, 1)
    result = Value("", "int64", shape, x.shape[axis])
    g.node(g.random.choice(("ArgMax", "ArgMin")), [x], result, axis=axis, select_last_index=last)


def top_k(g: Graph) -> None:
    x = g.pick(("float32", "float64", "int32", "int64"), rank=(1, 3), exact=True)
    axis = g.random.randrange(len(x.shape))
    if not x.shape[axis]:
        return
    k = g.random.randint(1, x.shape[axis])
    shape = tuple(k if a == axis else n for a, n in enumerate(x.shape))
    results = replace(x, shape=shape), Value("", "int64", shape, x.shape[axis])
    g.node("TopK", [x, g.ints(k)], *results, axis=axis, largest=g.random.randint(0, 1))


def normalise(g: Graph) -> None:
    x = g.pick(("float32", "float64"), rank=(1, 4))
    axis = g.random.randrange(len(x.shape))
    if 0 in x.shape:
        return
    if g.random.random() < 0.6:
        op = g.random.choice(("Softmax", "LogSoftmax"))
        bound = 1 if op == "Softmax" else 2 * x.bound + 5
        g.node(op, [x], _rounded(x, bound=bound, error=4 * x.error), axis=axis)
    elif x.dtype == "float32":
        scale = g.leaf(x.dtype, x.shape[axis:])
        result = _rounded(x, bound=12 * scale.bound, error=40 * x.error)
        g.node("LayerNormalization", [x, scale], result, axis=axis, epsilon=0.1)


def matmul(g: Graph) -> None:
    x = g.pick(("float32", "float64", "float16"), rank=(1, 4))
    k, n = x.shape[-1], g.size()
    batch = tuple(1 if g.random.random() < 0.3 else d for d in x.shape[:-2]) if g.random.random() < 0.5 else ()
    y = g.leaf(x.dtype, (*batch, k, n) if g.random.random() < 0.9 else (k,))
    shape = (*x.shape[:-1], n) if len(y.shape) > 1 else x.shape[:-1]
    bound = max(k, 1) * x.bound * y.bound
    g.node("MatMul", [x, y], _rounded(x, shape=shape, bound=bound, error=x.error * max(k, 1) * y.bound))


def gemm(g: Graph) -> None:
    x = g.pick(("float32", "float64"), rank=(2, 2))
    across, down = g.random.randint(0, 1), g.random.randint(0, 1)
    m, k = x.shape[::-1] if across else x.shape
    n = g.size()
    y = g.leaf(x.dtype, (n, k) if down else (k, n))
    c = g.leaf(x.dtype, g.random.choice(((n,), (m, n), (m, 1), ()))) if g.random.random() < 0.7 else None
    bound = max(k, 1) * x.bound * y.bound + 2
    result = _rounded(x, shape=(m, n), bound=bound, error=x.error * max(k, 1) * y.bound)
    g.node("Gemm", [x, y, c], result, transA=across, transB=down, alpha=g.random.choice((1.0, 0.5)))


def convolution(g: Graph) -> None:
    channels, groups = g.random.choice(((3, 1), (4, 1), (4, 2), (5, 5), (8, 8), (6, 3), (16, 1)))
    spatial = g.random.choice((1, 2, 2, 2, 3))
    image = tuple(g.random.choice((5, 6, 7, 9, 12, 14)) for _ in range(spatial))
    x = g.leaf("float32" if g.random.random() < 0.8 else "float64", (g.random.choice((1, 2, 3)), channels, *image))
    outs = groups * g.random.choice((1, 2, 3, 4)) if groups > 1 else g.random.choice((1, 3, 8, 16, 17, 32))
    size = g.random.choice((1, 3, 3, 3, 2, 5))
    stride, dilation, pad = g.random.choice((1, 1, 1, 2)), g.random.choice((1, 1, 1, 2)), g.random.choice((0, 1, 1, 2))
    attributes: dict[str, Any] = {"strides": [stride] * spatial, "dilations": [dilation] * spatial, "group": groups}
    if g.random.random() < 0.25:
        weights = g.leaf(x.dtype, (channels, outs // groups, *[size] * spatial))
        window = dilation * (size - 1) + 1
        result = tuple(stride * (n - 1) + window - 2 * pad for n in image)
        op = "ConvTranspose"
    else:
        weights = g.leaf(x.dtype, (outs, channels // groups, *[size] * spatial))
        result = tuple((n + 2 * pad - dilation * (size - 1) - 1) // stride + 1 for n in image)
        op = "Conv"
    if min(result) < 1:
        return
    terms = channels * size**spatial * 4
    bias = g.leaf(x.dtype, (outs,)) if g.random.random() < 0.5 else None
    out = Value("", x.dtype, (x.shape[0], outs, *result), terms, 2 * EPSILON[x.dtype] * terms)
    g.node(op, [x, weights, bias], out, pads=[pad] * 2 * spatial, **attributes)
    y = g.values[-1]
    if y.shape == x.shape or g.random.random() < 0.3:
        other = x if y.shape == x.shape else g.leaf(x.dtype, (1, outs, *[1] * spatial))
        g.node("Add", [y, other], _rounded(y, bound=y.bound + 2))
        y = g.values[-1]
    if g.random.random() < 0.5:
        g.node("Relu", [y], y)
    g.node("Tanh", [g.values[-1]], _rounded(g.values[-1], bound=1))


def pool(g: Graph) -> None:
    x = g.pick(("float32",), rank=(3, 4))
    if 0 in x.shape or min(x.shape[2:]) < 3:
        return
    spatial = len(x.shape) - 2
    size, stride, pad = g.random.choice((2, 3)), g.random.choice((1, 2)), g.random.choice((0, 1))
    result = tuple((n + 2 * pad - size) // stride + 1 for n in x.shape[2:])
    attributes: dict[str, Any] = {
        "kernel_shape": [size] * spatial,
        "strides": [stride] * spatial,
        "pads": [pad] * 2 * spatial,
    }
    op = g.random.choice(("MaxPool", "AveragePool", "GlobalAveragePool"))
    if op == "GlobalAveragePool":
        g.node(op, [x], _rounded(x, shape=(*x.shape[:2], *[1] * spatial)))
        return
    if op == "AveragePool":
        attributes["count_include_pad"] = g.random.randint(0, 1)
    g.node(op, [x], _rounded(x, shape=(*x.shape[:2], *result)), **attributes)


def concat_split(g: Graph) -> None:
    x = g.pick(ALL, rank=(1, 4))
    axis = g.random.randrange(len(x.shape))
    y = g.leaf(x.dtype, tuple(g.size() if a == axis else n for a, n in enumerate(x.shape)))
    total = x.shape[axis] + y.shape[axis]
    whole = tuple(total if a == axis else n for a, n in enumerate(x.shape))
    bound = max(x.bound, y.bound)
    g.node("Concat", [x, y], replace(x, shape=whole, bound=bound), axis=axis)
    if g.random.random() < 0.5:
        return
    cut = g.random.randint(0, total)
    parts = [tuple(n if a == axis else d for a, d in enumerate(whole)) for n in (cut, total - cut)]
    joined = g.values[-1]
    g.node("Split", [joined, g.ints(cut, total - cut)], *[replace(joined, shape=p) for p in parts], axis=axis)


def slice_(g: Graph) -> None:
    x = g.pick(ALL, rank=(1, 4))
    axis = g.random.randrange(len(x.shape))
    n = x.shape[axis]
    start, stop, step = g.random.randint(-n - 1, n), g.random.randint(-n - 1, n + 2), g.random.choice((1, 1, 2, -1, -2))
    count = len(range(n)[start:stop:step])
    if step < 0 and (start < -n or stop < -n):
        return
    shape = tuple(count if a == axis else d for a, d in enumerate(x.shape))
    g.node("Slice", [x, g.ints(start), g.ints(stop), g.ints(axis), g.ints(step)], replace(x, shape=shape))


def pad(g: Graph) -> None:
    x = g.pick(("float32", "float64", "int32", "int64", "int8", "uint8"), rank=(1, 4))
    mode = g.random.choice(("constant", "constant", "reflect", "edge", "wrap"))
    most = [2 if mode == "constant" else min(2, n - 1) for n in x.shape]
    if min(most) < 0:
        return
    low, high = ([g.random.randint(0, m) for m in most] for _ in range(2))
    shape = tuple(a + n + b for a, n, b in zip(low, x.shape, high, strict=True))
    g.node("Pad", [x, g.ints(*low, *high)], replace(x, shape=shape), mode=mode)


def rearrange(g: Graph) -> None:
    x = g.pick(ALL, rank=(1, 4))
    kind = g.random.randrange(5)
    rank = len(x.shape)
    if kind == 0:
        order = g.random.sample(range(rank), rank)
        g.node("Transpose", [x], replace(x, shape=tuple(x.shape[a] for a in order)), perm=order)
    elif kind == 1:
        cut = g.random.randint(0, rank)
        halves = x.shape[:cut], x.shape[cut:]
        shape = tuple(int(np.prod(h, dtype=np.int64)) for h in halves)
        g.node("Reshape", [x, g.ints(*shape)], replace(x, shape=shape), allowzero=1)
    elif kind == 2:
        shape = (g.random.randint(1, 3), *(g.random.randint(1, 4) if n == 1 else n for n in x.shape))
        g.node("Expand", [x, g.ints(*shape)], replace(x, shape=shape))
    elif kind == 3 and x.size < 5000:
        times = [g.random.choice((1, 1, 2, 3)) for _ in x.shape]
        shape = tuple(n * t for n, t in zip(x.shape, times, strict=True))
        g.node("Tile", [x, g.ints(*times)], replace(x, shape=shape))
    elif kind == 4:
        at = g.random.randint(0, rank)
        g.node("Unsqueeze", [x, g.ints(at)], replace(x, shape=(*x.shape[:at], 1, *x.shape[at:])))


def gather(g: Graph) -> None:
    x = g.pick(ALL, rank=(1, 3))
    axis = g.random.randrange(len(x.shape))
    n = x.shape[axis]
    if not n:
        return
    source = np.random.default_rng(g.random.getrandbits(32))
    if g.random.random() < 0.5:
        shape = g.shape(0, 2)
        indices = g.hold(np.asarray(source.integers(-n, n, shape), np.int64), constant=g.random.random() < 0.5)
        g.node("Gather", [x, indices], replace(x, shape=(*x.shape[:axis], *shape, *x.shape[axis + 1 :])), axis=axis)
    else:
        shape = tuple(g.random.randint(0, 4) if a == axis else d for a, d in enumerate(x.shape))
        indices = g.hold(source.integers(-n, n, shape), constant=g.random.random() < 0.5)
        g.node("GatherElements", [x, indices], replace(x, shape=shape), axis=axis)


def scatter(g: Graph) -> None:
    x = g.pick(("float32", "float64", "int32", "int64"), rank=(1, 3))
    n = x.shape[0]
    if not n:
        return
    source = np.random.default_rng(g.random.getrandbits(32))
    count = g.random.randint(1, n)
    rows = source.permutation(n)[:count].reshape(count, 1)
    updates = g.leaf(x.dtype, (count, *x.shape[1:]))
    reduction = g.random.choice(("none", "add", "max"))
    bound = x.bound + updates.bound
    indices = g.hold(rows.astype(np.int64), constant=g.random.random() < 0.5)
    g.node("ScatterND", [x, indices, updates], _rounded(x, bound=bound), reduction=reduction)


def scan_sum(g: Graph) -> None:
    x = g.pick(("float32", "float64", "int32", "int64"), rank=(1, 3))
    axis = g.random.randrange(len(x.shape))
    growth = max(x.shape[axis], 1)
    flags: dict[str, Any] = {"exclusive": g.random.randint(0, 1), "reverse": g.random.randint(0, 1)}
    axis_value = g.hold(np.array(axis, np.int64))
    g.node("CumSum", [x, axis_value], _rounded(x, bound=x.bound * growth, error=x.error * growth), **flags)


def quantize(g: Graph) -> None:
    x = g.pick(("float32",), exact=True)
    zero = g.hold(np.array(g.random.choice((0, 3)), g.random.choice(("int8", "uint8"))))
    scale = g.hold(np.array(0.0625, np.float32))
    g.node("QuantizeLinear", [x, scale, zero], Value("", zero.dtype, x.shape, 255))
    g.node("DequantizeLinear", [g.values[-1], scale, zero], Value("", "float32", x.shape, 17))


def branch(g: Graph) -> None:
    x = g.pick(("float32", "int32"), rank=(1, 3))
    condition = g.hold(np.array(g.random.random() < 0.5), constant=g.random.random() < 0.3)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(x.dtype))
    bodies = []
    for op in ("Neg", "Abs"):
        name = f"{op}{len(g.nodes)}"
        out = helper.make_tensor_value_info(name, kind, x.shape)
        bodies.append(helper.make_graph([helper.make_node(op, [x.name], [name])], op, [], [out]))
    g.node("If", [condition], x, then_branch=bodies[0], else_branch=bodies[1])


def loop(g: Graph) -> None:
    x = g.pick(("float32", "int32"), rank=(0, 3))
    tag = str(len(g.nodes))
    trips = g.random.randint(0, 4)
    step = g.leaf(x.dtype, x.shape)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(x.dtype))
    info = helper.make_tensor_value_info
    i, c, s, t = (f"{letter}{tag}" for letter in "icst")
    nodes = [helper.make_node("Add", [s, step.name], [t + "a"]), helper.make_node("Identity", [c], [c + "o"])]
    nodes.append(helper.make_node("Neg", [t + "a"], [t + "y"]))
    body = helper.make_graph(
        nodes,
        "body",
        [info(i, TensorProto.INT64, []), info(c, TensorProto.BOOL, []), info(s, kind, x.shape)],
        [info(c + "o", TensorProto.BOOL, []), info(t + "a", kind, x.shape), info(t + "y", kind, x.shape)],
    )
    count = g.hold(np.array(trips, np.int64))
    last = _rounded(x, bound=x.bound + trips * step.bound)
    g.node("Loop", [count, None, x], last, replace(last, shape=(trips, *x.shape)), body=body)


def lstm(g: Graph) -> None:
    time, batch, width, hidden = (g.random.choice((1, 2, 3, 5)) for _ in range(4))
    ways = g.random.choice((1, 2))
    x = g.leaf("float32", (time, batch, width))
    weights = g.leaf("float32", (ways, 4 * hidden, width), constant=True)
    recurrent = g.leaf("float32", (ways, 4 * hidden, hidden), constant=True)
    state = Value("", "float32", (ways, batch, hidden), 1, 1e-4)
    results = [replace(state, shape=(time, *state.shape)), state, replace(state, bound=time, error=1e-4)]
    direction = "bidirectional" if ways == 2 else g.random.choice(("forward", "reverse"))
    g.node("LSTM", [x, weights, recurrent], *results, hidden_size=hidden, direction=direction)


def elements(g: Graph) -> None:
    """Gather, GatherND, ScatterElements where sizes are 0 as well."""
    x = g.pick(("float32", "int32", "int64"), rank=(1, 3))
    source = np.random.default_rng(g.random.getrandbits(32))
    if g.random.random() < 0.5:
        axis = g.random.randrange(len(x.shape))
        shape = tuple(g.random.randint(0, n) for n in x.shape)
        order = np.argsort(source.random(x.shape), axis=axis)
        indices = g.hold(order[tuple(slice(n) for n in shape)].astype(np.int64), constant=g.random.random() < 0.5)
        updates = g.leaf(x.dtype, shape)
        result = _rounded(x, bound=x.bound + updates.bound)
        mode = g.random.choice(("none", "add"))
        g.node("ScatterElements", [x, indices, updates], result, axis=axis, reduction=mode)
        return
    depth = g.random.randint(1, len(x.shape))
    count = g.random.randint(0, 4) if 0 not in x.shape[:depth] else 0
    columns = [source.integers(-max(n, 1), max(n, 1), (count, 1)) for n in x.shape[:depth]]
    indices = g.hold(np.concatenate(columns, 1).astype(np.int64), constant=g.random.random() < 0.5)
    g.node("GatherND", [x, indices], replace(x, shape=(count, *x.shape[depth:])))


def divide(g: Graph) -> None:
    """Division, remainder and power where nothing is close to a singularity."""
    x = g.pick(("float32", "float64", "float16", "int32", "int64"), exact=True)
    op = g.random.choice(("Div", "Mod", "Pow") if x.is_float else ("Div", "Mod"))
    low, high = (1, 4) if op == "Pow" else (1, 9)
    numbers = np.random.default_rng(g.random.getrandbits(32)).integers(low, high, x.shape or ())
    divisor = g.hold(np.asarray(numbers).astype(x.dtype), constant=g.random.random() < 0.5)
    bound = x.bound**3 + 1 if op == "Pow" else x.bound + 9
    if op == "Mod":
        fmod = int(x.is_float) or g.random.randint(0, 1)
        g.node(op, [x, divisor], replace(x, bound=9.0), fmod=fmod)
    else:
        g.node(op, [x, divisor], _rounded(x, bound=bound))


def integer_products(g: Graph) -> None:
    kinds = "int8", "uint8"
    left, right = g.random.choice(kinds[1:]), g.random.choice(kinds)
    m, k, n = g.size(), max(g.size(), 1), g.size()  # onnxruntime returns uninitialised memory where k is 0
    a, b = g.leaf(left, (m, k)), g.leaf(right, (k, n))
    zeros = [g.hold(np.array(3, left)), g.hold(np.array(2, right))]
    g.node("MatMulInteger", [a, b, *zeros], Value("", "int32", (m, n), 200.0 * max(k, 1)))


def batch_norms(g: Graph) -> None:
    x = g.pick(("float32",), rank=(3, 4))
    if 0 in x.shape:
        return
    c = x.shape[1]
    scale, bias = g.leaf("float32", (c,)), g.leaf("float32", (c,))
    if g.random.random() < 0.5:
        variance = g.hold(np.full(c, 0.7, np.float32))
        result = _rounded(x, bound=3 * x.bound * scale.bound + 8, error=4 * x.error)
        g.node("BatchNormalization", [x, scale, bias, g.leaf("float32", (c,)), variance], result)
    else:
        result = _rounded(x, bound=12 * scale.bound + 2, error=40 * x.error)
        g.node("InstanceNormalization", [x, scale, bias], result, epsilon=0.1)


def resize(g: Graph) -> None:
    x = g.pick(("float32",), rank=(4, 4), exact=True)
    if 0 in x.shape:
        return
    sizes = tuple(g.random.randint(1, 9) for _ in range(2))
    mode = g.random.choice(("nearest", "linear", "cubic"))
    place = g.random.choice(("half_pixel", "asymmetric", "align_corners"))
    if mode == "nearest":
        place, sizes = "asymmetric", (x.shape[2] * 2, x.shape[3] * 3)
    result = _rounded(x, shape=(*x.shape[:2], *sizes), bound=4 * x.bound)
    if mode != "nearest":
        result = replace(result, error=1e-4 * x.bound)
    whole = g.ints(*x.shape[:2], *sizes)
    g.node("Resize", [x, None, None, whole], result, mode=mode, coordinate_transformation_mode=place)


def blocks(g: Graph) -> None:
    x = g.leaf(g.random.choice(("float32", "int8", "float16")), (g.random.choice((1, 2)), 8, g.size(), g.size()))
    n, c, h, w = x.shape
    mode = g.random.choice(("DCR", "CRD"))
    g.node("DepthToSpace", [x], replace(x, shape=(n, c // 4, h * 2, w * 2)), blocksize=2, mode=mode)


def einsum(g: Graph) -> None:
    a, b, c, d = (g.size() for _ in range(4))
    x, y = g.leaf("float32", (a, b, c)), g.leaf("float32", (d, c, b))
    equation, shape, terms = g.random.choice(
        [("abc,dcb->ad", (a, d), b * c), ("abc,dcb->abd", (a, b, d), c), ("abc,dcb->dbac", (d, b, a, c), 1)]
    )
    terms = max(terms, 1)
    out = Value("", "float32", shape, 4.0 * terms)
    g.node("Einsum", [x, y], _rounded(out), equation=equation)


def attention(g: Graph) -> None:
    """Scores, softmax, product: the heads of a transformer, with odd sizes."""
    batch, heads, time, width = g.random.choice((1, 2)), g.random.choice((1, 3)), g.size(), g.random.choice((4, 5, 16))
    if not time:
        return
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


def large_product(g: Graph) -> None:
    """Past the tiles and panels of a kernel, with tails; something fused before and behind."""
    m, k, n = g.random.randint(1, 150), g.random.randint(1, 400), g.random.randint(1, 300)
    x, y = g.leaf("float32", (m, k), constant=False), g.leaf("float32", (k, n))
    g.node("Tanh", [x], replace(x, bound=1, error=1e-6))
    flip = g.random.random() < 0.3
    if flip:
        y = g.leaf("float32", (n, k))
        g.node("Transpose", [y], replace(y, shape=(k, n)), perm=(1, 0))
        left, right = g.values[-2], g.values[-1]
    else:
        left, right = g.values[-1], y
    g.node("MatMul", [left, right], Value("", "float32", (m, n), 2 * k, 1e-6 * k + 1e-5))
    bias = g.leaf("float32", (n,), constant=True)
    g.node("Add", [g.values[-1], bias], g.values[-1])
    if g.random.random() < 0.5:
        g.node("Gelu", [g.values[-1]], replace(g.values[-1], error=2 * g.values[-1].error))


STEPS: dict[Step, int] = {
    unary: 6, binary: 8, jump: 1, compare_select: 2, logic: 1, clip: 2, cast: 3, reduce: 5, argmax: 2, top_k: 2,
    normalise: 3, matmul: 4, gemm: 2, convolution: 3, pool: 2, concat_split: 4, slice_: 4, pad: 3, rearrange: 8,
    gather: 4, scatter: 2, scan_sum: 2, quantize: 2, branch: 1, loop: 1, lstm: 1,
    elements: 3, divide: 3, integer_products: 1, batch_norms: 2, resize: 1, blocks: 1, einsum: 1, attention: 1,
    residual: 3, large_product: 1,
}  # fmt: skip
"""How often each step is taken."""
