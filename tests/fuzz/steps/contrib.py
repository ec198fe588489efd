"""onnxruntime's own operators (com.microsoft), as its optimisers write them into models."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.graph import MICROSOFT, Graph, Skip, Value, rounded
from tests.fuzz.steps.common import tame

_BYTES = ("int8", "uint8")


def _node(g: Graph, op: str, inputs: list[Value | None], *results: Value, **attributes: Any) -> Value:
    return g.node(op, inputs, *results, domain=MICROSOFT, **attributes)


def activations(g: Graph) -> None:
    x = g.pick(("float32",), rank=(1, 4))
    op = g.random.choice(("Gelu", "FastGelu", "QuickGelu", "BiasGelu"))
    inputs: list[Value | None] = [x]
    bound = x.bound
    if op == "BiasGelu" or op == "FastGelu" and g.chance(0.5):
        inputs.append(g.leaf("float32", x.shape[-1:]))
        bound += 2
    if not x.size:
        raise Skip("onnxruntime divides by the width")
    _node(g, op, inputs, replace(rounded(x, bound=bound, error=2 * x.error), error=2 * x.error + 1e-5 * bound))


def fused_products(g: Graph) -> None:
    m, k, n = g.size() or 1, g.size() or 1, g.size() or 1
    kind = g.random.randrange(3)
    if kind == 2:
        a, b = g.leaf("float32", (m, k), constant=False), g.leaf("float32", (n, k))
        c = g.leaf("float32", (n,))
        activation = g.random.choice(("Relu", "LeakyRelu", "Tanh"))
        bound = 1.0 if activation == "Tanh" else 4.0 * k + 2
        result = replace(rounded(Value("", "float32", (m, n), 4.0 * k)), bound=bound)
        _node(g, "FusedGemm", [a, b, c], result, transB=1, activation=activation, activation_alpha=0.1)
        return
    across, down = g.random.randint(0, 1), g.random.randint(0, 1)
    batch = (g.random.randint(1, 3),) if g.chance(0.5) else ()
    a = g.leaf("float32", (*batch, k, m) if across else (*batch, m, k), constant=False)
    b = g.leaf("float32", (*batch, n, k) if down else (*batch, k, n))
    result = rounded(Value("", "float32", (*batch, m, n), 4.0 * k))
    tame(g, _node(g, "FusedMatMul", [a, b], result, transA=across, transB=down, alpha=g.random.choice((1.0, 0.5))))


def fused_convolution(g: Graph) -> None:
    c, outs, groups = g.random.choice(((3, 8, 1), (8, 8, 8), (4, 6, 2), (16, 16, 1)))
    x = g.leaf("float32", (1, c, g.random.randint(3, 12), g.random.randint(3, 12)), constant=False)
    weights = g.leaf("float32", (outs, c // groups, 3, 3), constant=True)
    bias = g.leaf("float32", (outs,), constant=True)
    out = Value("", "float32", (1, outs, *x.shape[2:]), 36.0 * c + 2)
    inputs: list[Value | None] = [x, weights, bias]
    if g.chance(0.4):
        inputs.append(g.leaf("float32", out.shape))
    activation, parameters = g.random.choice(
        (("Relu", None), ("LeakyRelu", [0.1]), ("Clip", [-0.5, 0.5]), ("HardSigmoid", [0.3, 0.4]), ("Tanh", None))
    )
    extra: dict[str, Any] = {"activation_params": parameters} if parameters else {}
    tame(g, _node(g, "FusedConv", inputs, rounded(out), pads=[1] * 4, group=groups, activation=activation, **extra))


def skip_norms(g: Graph) -> None:
    batch, time, width = g.random.choice((1, 2)), g.size() or 1, g.random.choice((4, 7, 16, 33))
    x, skip = (g.leaf("float32", (batch, time, width), constant=False) for _ in range(2))
    simple = g.chance(0.5)
    inputs: list[Value | None] = [x, skip, g.leaf("float32", (width,))]
    inputs += [] if simple else [g.leaf("float32", (width,))]
    inputs += [g.leaf("float32", (width,))] if g.chance(0.5) else []
    op = "SkipSimplifiedLayerNormalization" if simple else "SkipLayerNormalization"
    _node(g, op, inputs, Value("", "float32", x.shape, 14, 1e-4), epsilon=0.1)


def attention(g: Graph) -> None:
    heads, size = g.random.choice((1, 2, 4)), g.random.choice((4, 8, 16))
    batch, time, width = g.random.choice((1, 2)), g.size() or 1, heads * size
    out = Value("", "float32", (batch, time, width), 20, 1e-3)
    if g.chance(0.5):
        inner = g.random.choice((4, 9))
        x = g.leaf("float32", (batch, time, inner), constant=False)
        inputs: list[Value | None] = [x, g.leaf("float32", (inner, 3 * width), constant=True)]
        inputs.append(g.leaf("float32", (3 * width,), constant=True))
        if g.chance(0.4):
            inputs.append(g.hold(g.source().integers(1, time + 1, batch).astype(np.int32)))
        _node(g, "Attention", inputs, out, num_heads=heads, unidirectional=g.random.randint(0, 1))
        return
    keys = g.size() or 1
    q = g.leaf("float32", (batch, time, width), constant=False)
    k, v = (g.leaf("float32", (batch, keys, width), constant=False) for _ in range(2))
    bias = g.leaf("float32", (3 * width,)) if g.chance(0.4) else None
    _node(g, "MultiHeadAttention", [q, k, v, bias], out, num_heads=heads)


def group_query(g: Graph) -> None:
    """The attention of decoders: keys so far, one or several new tokens, fewer heads of keys than of queries."""
    batch, kv, size = 1, g.random.choice((1, 2)), 16
    heads = kv * g.random.choice((1, 2, 3))
    past, new = g.random.choice((0, 3, 8)), g.random.choice((1, 1, 4))
    new = 1 if past else new
    q = g.leaf("float32", (batch, new, heads * size), constant=False)
    k, v = (g.leaf("float32", (batch, new, kv * size), constant=False) for _ in range(2))
    before = [g.leaf("float32", (batch, kv, past, size), constant=False) for _ in range(2)]
    total = past + new
    lengths = g.hold(np.full(batch, total - 1, np.int32))
    everything = g.hold(np.array(total, np.int32))
    result = Value("", "float32", q.shape, 4, 1e-3)
    present = Value("", "float32", (batch, kv, total, size))
    inputs = [q, k, v, *before, lengths, everything]
    extra: dict[str, Any] = {}
    if g.chance(0.5):
        angles = g.source().uniform(-3, 3, (total + 2, size // 2))
        inputs += [g.hold(np.cos(angles).astype(np.float32)), g.hold(np.sin(angles).astype(np.float32))]
        extra = {"do_rotary": 1, "rotary_interleaved": g.random.randint(0, 1)}
        present = replace(present, bound=4, error=1e-5)
    results = result, present, replace(present, error=0.0)
    _node(g, "GroupQueryAttention", [*inputs], *results, num_heads=heads, kv_num_heads=kv, **extra)


def rotary(g: Graph) -> None:
    batch, heads, time, size = (
        g.random.choice((1, 2)),
        g.random.choice((1, 3)),
        g.size() or 1,
        g.random.choice((4, 8, 16)),
    )
    x = g.leaf("float32", (batch, heads, time, size), constant=False)
    angles = g.source().uniform(-3, 3, (time + 3, size // 2))
    tables = [g.hold(f(angles).astype(np.float32)) for f in (np.cos, np.sin)]
    places = g.hold(g.source().integers(0, time + 3, (batch, time)).astype(np.int64), constant=False)
    result = rounded(x, bound=4)
    if g.opset >= 23 and g.chance(0.5):
        g.node("RotaryEmbedding", [x, *tables, places], result, interleaved=g.random.randint(0, 1))
    else:
        _node(g, "RotaryEmbedding", [x, places, *tables], result, interleaved=g.random.randint(0, 1))


def blocks_of_bits(g: Graph) -> None:
    """MatMulNBits: weights of 4 or 8 bits, a scale for each block along the depth."""
    rows, n, block = g.random.choice((1, 1, 3, 9)), g.random.choice((1, 5, 16, 33)), g.random.choice((16, 32))
    blocks = g.random.randint(1, 4)
    bits = g.random.choice((4, 4, 8))
    k = blocks * block
    x = g.leaf("float32", (rows, k), constant=False)
    packed = g.hold(g.source().integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8))
    scales = g.hold(g.source().uniform(0.01, 0.1, n * blocks).astype(np.float32))
    inputs: list[Value | None] = [x, packed, scales]
    if g.chance(0.5):
        width = (blocks * bits + 7) // 8
        inputs.append(g.hold(g.source().integers(0, 256, n * width).astype(np.uint8)))
    limit = 0.1 * 2 ** (bits - 1) * 2 * k * 2
    result = Value("", "float32", (rows, n), limit, 2e-5 * limit)
    tame(g, _node(g, "MatMulNBits", inputs, result, K=k, N=n, bits=bits, block_size=block))


def quantised_arithmetic(g: Graph) -> None:
    """QLinearAdd and its kin: bytes in, bytes out, one step of the grid off at most."""
    kind = g.random.choice(_BYTES)
    limits = np.iinfo(kind)

    def number(n: float) -> Value:
        return g.scalar("float32", n)

    def zero() -> Value:
        return g.scalar(kind, g.random.choice((0, 3, 9)))

    def data(shape: tuple[int, ...]) -> Value:
        return g.hold(g.source().integers(limits.min, limits.max + 1, shape).astype(kind), constant=False)

    shape = tuple(n or 1 for n in g.shape(1, 4))
    x = data(shape)
    result = Value("", kind, shape, 255, 1.0)
    op = g.random.choice(("QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearConcat"))
    if op in ("QLinearAdd", "QLinearMul"):
        y = data(g.random.choice((shape, shape[-1:])))
        _node(g, op, [x, number(0.11), zero(), y, number(0.07), zero(), number(0.23), zero()], result)
    elif op == "QLinearConcat":
        axis = g.random.randrange(len(shape))
        whole = tuple(2 * n if a == axis else n for a, n in enumerate(shape))
        pieces = [x, number(0.07), zero(), data(shape), number(0.1), zero()]
        _node(g, op, [number(0.1), zero(), *pieces], replace(result, shape=whole), axis=axis)
    else:
        extra: dict[str, Any] = {"alpha": 0.2} if op == "QLinearLeakyRelu" else {}
        _node(g, op, [x, number(0.05), zero(), number(0.01), zero()], result, **extra)


def scaled_products(g: Graph) -> None:
    """MatMulIntegerToFloat and DynamicQuantizeMatMul."""
    m, k, n = g.size() or 1, g.size() or 1, g.size() or 1
    b = g.hold(g.source().integers(-127, 128, (k, n)).astype(np.int8))
    scale = g.hold(g.source().uniform(0.01, 0.02, g.random.choice(((), (n,)))).astype(np.float32))
    bias = g.leaf("float32", (n,), constant=True) if g.chance(0.5) else None
    if g.chance(0.5):
        a = g.hold(g.source().integers(0, 256, (m, k)).astype(np.uint8), constant=False)
        inputs = [a, b, g.scalar("float32", 0.02), scale, g.scalar("uint8", 7), None, bias]
        out = Value("", "float32", (m, n), 13.0 * k + 2)
        tame(g, _node(g, "MatMulIntegerToFloat", inputs, rounded(out)))
    else:
        a = g.leaf("float32", (m, k), constant=False)
        _node(g, "DynamicQuantizeMatMul", [a, b, scale, None, bias], Value("", "float32", (m, n), 1000, 0.05 * k + 0.1))


def channels_last_pool(g: Graph) -> None:
    x = g.hold(
        g.source().integers(0, 256, (1, g.random.randint(3, 8), g.random.randint(3, 8), 3)).astype(np.uint8),
        constant=False,
    )
    h, w = ((n + 2 - 3) // 2 + 1 for n in x.shape[1:3])
    result = Value("", "uint8", (1, h, w, 3), 255)
    _node(g, "NhwcMaxPool", [x], result, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)


STEPS: dict[Callable[[Graph], None], float] = {
    activations: 0.7, fused_products: 0.7, fused_convolution: 0.5, skip_norms: 0.6, attention: 0.7, group_query: 0.5,
    rotary: 0.3, blocks_of_bits: 0.5, quantised_arithmetic: 0.7, scaled_products: 0.4, channels_last_pool: 0.2,
}  # fmt: skip
SPECIAL = ()
