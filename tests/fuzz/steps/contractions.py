"""Matrix products in all the ways models write them, with what is fused before and behind."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.graph import FLOATS, SINGLES, Graph, Skip, Value, rounded
from tests.fuzz.steps.common import tame, transpose


def epilogue(g: Graph, y: Value) -> Value:
    """Bias, scale, residual and activation behind a contraction, in any order and number."""
    for _ in range(g.random.choice((0, 1, 1, 2, 3))):
        kind = g.random.randrange(5)
        if kind == 0:
            c = g.leaf(y.dtype, y.shape[-1:] if y.shape else (), constant=g.chance(0.8))
            y = g.node("Add", g.random.sample([y, c], 2), rounded(y, bound=y.bound + c.bound))
        elif kind == 1:
            c = g.leaf(y.dtype, g.random.choice((y.shape[-1:], ())), constant=g.chance(0.8))
            y = g.node("Mul", g.random.sample([y, c], 2), rounded(y, bound=y.bound * c.bound, error=y.error * c.bound))
        elif kind == 2:
            c = g.leaf(y.dtype, y.shape, constant=g.chance(0.2))
            y = g.node("Add", g.random.sample([y, c], 2), rounded(y, bound=y.bound + c.bound))
        elif kind == 3:
            op = g.random.choice(("Relu", "Tanh", "Sigmoid", "LeakyRelu", "Neg", "Abs"))
            y = g.node(op, [y], rounded(y, bound=1 if op in ("Tanh", "Sigmoid") else y.bound))
        elif y.rank and g.chance(0.5):
            y = transpose(g, y, g.random.sample(range(y.rank), y.rank))
            break
    return tame(g, y)


def _product(g: Graph, x: Value, y: Value, shape: tuple[int, ...], k: int) -> Value:
    error = (x.error * y.bound + y.error * x.bound) * max(k, 1)
    return g.node("MatMul", [x, y], rounded(x, shape=shape, bound=max(k, 1) * x.bound * y.bound, error=error))


def matmul(g: Graph) -> None:
    x = g.pick(FLOATS, rank=(1, 4))
    k, n = x.shape[-1], g.size()
    batch = tuple(1 if g.chance(0.3) else d for d in x.shape[:-2]) if g.chance(0.5) else ()
    y = g.leaf(x.dtype, (*batch, k, n) if g.chance(0.9) else (k,))
    shape = (*x.shape[:-1], n) if y.rank > 1 else x.shape[:-1]
    epilogue(g, _product(g, x, y, shape, k))


def spread_matmul(g: Graph) -> None:
    """Batch dimensions spread on the left, or on both sides; vectors."""
    m, k, n = g.size(), g.size(), g.size()
    a, b = g.random.randint(1, 3), g.random.randint(1, 3)
    left, right, batch = g.random.choice(
        [
            ((a, 1), (1, b), (a, b)),
            ((1,), (a, b), (a, b)),
            ((), (a,), (a,)),
            ((a, b), (b,), (a, b)),
            ((a, 1), (a, b), (a, b)),
        ]
    )
    x = g.leaf("float32", (*left, m, k))
    if g.chance(0.15):
        epilogue(
            g, _product(g, g.leaf("float32", (k,)), y := g.leaf("float32", (*batch, k, n)), (*batch, n), y.shape[-2])
        )
        return
    epilogue(g, _product(g, x, g.leaf("float32", (*right, k, n)), (*batch, m, n), k))


def transposed_matmul(g: Graph) -> None:
    """Operands that are transposes of inputs or weights, of the last dimensions or of all."""
    x = g.pick(("float32", "float64"), rank=(2, 4))
    order = list(range(x.rank))
    order = [*order[:-2], order[-1], order[-2]] if g.chance(0.6) else g.random.sample(order, x.rank)
    x = transpose(g, x, order)
    k, n = x.shape[-1], g.size()
    y = g.leaf(x.dtype, (n, k))
    y = transpose(g, y, (1, 0))
    epilogue(g, _product(g, x, y, (*x.shape[:-1], n), k))


def repeated_matmul(g: Graph) -> None:
    """One matrix spread over the batch, on the right or on the left."""
    batch, m, k, n = g.random.choice((1, 2, 3)), g.size(), g.size(), g.size()
    once, many = ((k, n), (batch, m, k)) if g.chance(0.7) else ((m, k), (batch, k, n))
    x, y = g.leaf("float32", many, constant=False), g.leaf("float32", once)
    y = g.node("Expand", [y, g.ints(batch, *once)], replace(y, shape=(batch, *once)))
    pair = (x, y) if once == (k, n) and many == (batch, m, k) else (y, x)
    epilogue(g, _product(g, *pair, (batch, m, n), k))


def split_product(g: Graph) -> None:
    """One product with constant weights, cut along its columns: what exporters make of queries, keys and values."""
    rows, k, n = g.random.choice((1, 5, 16, 40)), g.size() or 1, g.random.choice((2, 4, 16))
    x = g.leaf("float32", (2, rows, k), constant=False)
    y = _product(g, x, g.leaf("float32", (k, 3 * n), constant=g.chance(0.8)), (2, rows, 3 * n), k)
    if g.chance(0.6):
        y = g.node("Add", [y, g.leaf("float32", (3 * n,), constant=True)], rounded(y, bound=y.bound + 2))
    if g.opset < 13:
        raise Skip("Split")
    g.node("Split", [y, g.ints(n, n, n)], *[replace(y, shape=(2, rows, n))] * 3, axis=2)
    for part in g.last(3)[: g.random.randint(0, 3)]:
        tame(g, part)


def gemm(g: Graph) -> None:
    x = g.pick((*SINGLES, "float16"), rank=(2, 2))
    across, down = g.random.randint(0, 1), g.random.randint(0, 1)
    m, k = x.shape[::-1] if across else x.shape
    n = g.size()
    y = g.leaf(x.dtype, (n, k) if down else (k, n))
    c = g.leaf(x.dtype, g.random.choice(((n,), (m, n), (m, 1), (1, n), ()))) if g.chance(0.7) else None
    bound = max(k, 1) * x.bound * y.bound + 4
    result = rounded(x, shape=(m, n), bound=bound, error=x.error * max(k, 1) * y.bound)
    factors: dict[str, Any] = {
        "alpha": g.random.choice((1.0, 0.5, 0.0, -1.0)),
        "beta": g.random.choice((1.0, 0.25, 2.0, 0.0)),
    }
    epilogue(g, g.node("Gemm", [x, y, c], result, transA=across, transB=down, **factors))


def einsum(g: Graph) -> None:
    a, b, c, d = (g.size() for _ in range(4))
    sizes = {"a": a, "b": b, "c": c, "d": d}
    equation = g.random.choice(
        [
            "abc,dcb->ad",
            "abc,dcb->abd",
            "abc,dcb->dbac",
            "ab,bc->ca",
            "abc,abd->acd",
            "ab,cd->abcd",
            "abc,c->ba",
            "abcd,abdc->ab",
        ]
        + ["ab,ab->", "abc->cab", "ab,b,bc->ac", "...ab,...bc->...ac"]
    )
    terms, out = equation.replace("...", "d").split("->")
    left = terms.split(",")
    operands = [g.leaf("float32", tuple(sizes[letter] for letter in t)) for t in left]
    count = int(np.prod([sizes[s] for s in {*"".join(left)} - {*out}]))
    bound = 2.0 ** len(left) * max(count, 1)
    result = Value("", "float32", tuple(sizes[letter] for letter in out), bound)
    tame(g, g.node("Einsum", operands, rounded(result), equation=equation))


def large_product(g: Graph) -> None:
    """Past the tiles and panels of a kernel, with tails; something fused before and behind."""
    m, k, n = g.random.randint(1, 150), g.random.randint(1, 300), g.random.randint(1, 300)
    m, n = g.random.choice(((m, n), (m, n), (1, n), (m, 1), (2, n)))
    kind = "float32" if g.chance(0.8) else g.random.choice(("float64", "float16", "bfloat16"))
    x, y = g.leaf(kind, (m, k), constant=False), g.leaf(kind, (k, n))
    if g.chance(0.5):
        x = g.node("Tanh", [x], rounded(x, bound=1))
    if g.chance(0.3):
        y = transpose(g, g.leaf(kind, (n, k)), (1, 0))
    result = rounded(x, shape=(m, n), bound=2 * k, error=x.error * 2 * k)
    epilogue(g, g.node("MatMul", [x, y], result))


def product_then_reduction(g: Graph) -> None:
    """A contraction whose result several kernels read."""
    x = g.pick(("float32",), rank=(2, 3))
    k, n = x.shape[-1], g.random.choice((4, 17, 64))
    y = tame(g, _product(g, x, g.leaf("float32", (k, n), constant=True), (*x.shape[:-1], n), k))
    z = g.node("Softmax", [y], rounded(y, bound=1, error=4 * y.error), axis=-1) if y.size else y
    other = g.leaf("float32", (n, g.size()))
    _product(g, z, other, (*z.shape[:-1], other.shape[1]), n)


STEPS: dict[Callable[[Graph], None], float] = {
    matmul: 4, spread_matmul: 1.5, transposed_matmul: 1.5, repeated_matmul: 0.7, split_product: 1, gemm: 2,
    einsum: 1.5, large_product: 1, product_then_reduction: 1,
}  # fmt: skip
SPECIAL = ()
