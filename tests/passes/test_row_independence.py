"""Rows of a batch through every operation: what is proven holds in the interpreter, what mixes rows is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onnxla.errors import CompileError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.ops.indexing import Gather
from onnxla.hlo.ops.linear_algebra import Cholesky
from onnxla.hlo.types import F32, S32, Array, TensorType
from onnxla.hlo.window import ConvolutionDimensions, Window
from onnxla.passes.row_independence import prove_rows
from onnxla.passes.row_rules import Sizes
from onnxla.passes.rows import Rows

LARGE = 5
Body = Callable[[Builder, Instruction, int], Instruction]
WEIGHTS = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)


def module(body: Body, rows: int, shape: Callable[[int], tuple[int, ...]]) -> Module:
    b = Builder()
    x = b.parameter(TensorType(F32, shape(rows)), "x")
    return Module("m", b.build(b.tuple(body(b, x, rows))))


def batch_first(rows: int) -> tuple[int, ...]:
    return (rows, 6, 4)


def table(rows: int) -> Array:
    return np.arange(8 * 4, dtype=np.float32).reshape(8, 4)[:rows]


def softmax(b: Builder, x: Instruction, n: int) -> Instruction:
    most = b.reduce_by("maximum", x, [2])
    e = b.exponential(b.subtract(x, b.broadcast(most, x.shape, [0, 1])))
    return b.divide(e, b.broadcast(b.reduce_by("add", e, [2]), x.shape, [0, 1]))


def convolution(b: Builder, x: Instruction, n: int) -> Instruction:
    kernel = b.constant(np.ones((2, 6, 3), np.float32))
    return b.convolution(x, kernel, Window.of([3]), ConvolutionDimensions.nchw(1))


def pool(b: Builder, x: Instruction, n: int) -> Instruction:
    return b.reduce_window([x], [b.constant(np.float32(0))], Window.of([1, 2, 2], [1, 2, 1]), b.combiner("add", F32))


def heads(b: Builder, x: Instruction, n: int) -> Instruction:
    """Attention over 2 heads: rows and heads in one dimension."""
    split = b.reshape(b.transpose(b.reshape(x, [n, 6, 2, 2]), [0, 2, 1, 3]), [2 * n, 6, 2])
    scores = b.dot(split, split, lhs_batch=[0], rhs_batch=[0], lhs_contracting=[2], rhs_contracting=[2])
    mixed = b.dot(scores, split, lhs_batch=[0], rhs_batch=[0], lhs_contracting=[2], rhs_contracting=[1])
    return b.reshape(b.transpose(b.reshape(mixed, [n, 2, 6, 2]), [0, 2, 1, 3]), [n, 6, 4])


def time_first(b: Builder, x: Instruction, n: int) -> Instruction:
    """Steps before rows, and both in one dimension for the product."""
    steps = b.transpose(x, [1, 0, 2])
    flat = b.dot(b.reshape(steps, [6 * n, 4]), b.constant(WEIGHTS), lhs_contracting=[1], rhs_contracting=[0])
    return b.add(b.reshape(flat, [6, n, 3]), b.broadcast(b.constant(np.ones(3, np.float32)), [6, n, 3], [2]))


def loop(b: Builder, x: Instruction, n: int) -> Instruction:
    """A recurrent state of zeros that takes a step of every row in each round."""
    state = TensorType(F32, (n, 4))
    kind = b.tuple(b.constant(np.int32(0)), b.full([n, 4], 0.0, F32), x).type
    c = Builder("condition")
    p = c.parameter(kind)
    condition = c.build(c.compare(c.get_tuple_element(p, 0), c.constant(np.int32(6)), "LT"))
    w = Builder("body")
    q = w.parameter(kind)
    i, h, data = (w.get_tuple_element(q, k) for k in range(3))
    zero = w.constant(np.int32(0))
    step = w.reshape(w.dynamic_slice(data, [zero, i, zero], [n, 1, 4]), state.shape)
    body = w.build(
        w.tuple(w.add(i, w.constant(np.int32(1))), w.add(w.multiply(h, w.full([n, 4], 0.5, F32)), step), data)
    )
    result = b.while_(b.tuple(b.constant(np.int32(0)), b.full([n, 4], 0.0, F32), x), condition, body)
    return b.get_tuple_element(result, 1)


def looked_up(b: Builder, x: Instruction, n: int) -> Instruction:
    places = b.convert(b.clamp(b.constant(np.float32(0)), x, b.constant(np.float32(3))), S32)
    return b.take(b.constant(WEIGHTS), places, 0)


def batched_gather(b: Builder, x: Instruction, n: int) -> Instruction:
    places = b.convert(b.slice(x, [0, 0, 0], [n, 2, 1]), S32)
    return b.gather(x, places, Gather((2,), (1,), (1,), (0,), (0,), 2, (1, 1, 4)))


PROVEN: dict[str, tuple[Body, Rows | None]] = {
    "elementwise": (lambda b, x, n: b.add(b.exponential(x), b.full(x.shape, 2.0, F32)), Rows(0)),
    "softmax": (softmax, Rows(0)),
    "dot": (lambda b, x, n: b.dot(x, b.constant(WEIGHTS), lhs_contracting=[2], rhs_contracting=[0]), Rows(0)),
    "dot with the rows on the right": (
        lambda b, x, n: b.dot(b.constant(WEIGHTS), x, lhs_contracting=[0], rhs_contracting=[2]),
        Rows(1),
    ),
    "convolution": (convolution, Rows(0)),
    "pool": (pool, Rows(0)),
    "attention": (heads, Rows(0)),
    "steps before rows": (time_first, Rows(1)),
    "flat steps before rows": (lambda b, x, n: b.reshape(b.transpose(x, [1, 0, 2]), [6 * n, 4]), Rows(0, 6, 1)),
    "flat rows": (lambda b, x, n: b.reshape(x, [n * 24]), Rows(0, 1, 24)),
    "loop": (loop, Rows(0)),
    "sort": (lambda b, x, n: b.sort([x], 2, _less(F32)), Rows(0)),
    "slice, pad, reverse": (
        lambda b, x, n: b.reverse(
            b.pad(b.slice(x, [0, 1, 0], [n, 5, 3]), b.constant(np.float32(0)), [0, 1, 0], [0, 0, 2], [0, 1, 0]), [1, 2]
        ),
        Rows(0),
    ),
    "concatenate": (lambda b, x, n: b.concatenate([x, b.full([n, 2, 4], 3.0, F32)], 1), Rows(0)),
    "looked up": (looked_up, Rows(0)),
    "gather from each row": (batched_gather, Rows(0)),
    "gather in the others": (lambda b, x, n: b.take(x, b.constant(np.array([3, 1], np.int32)), 1), Rows(0)),
    "positions": (
        lambda b, x, n: b.add(x, b.broadcast(b.iota(TensorType(F32, (n,)), 0), x.shape, [0])),
        Rows(0),
    ),
    "a table of positions": (
        lambda b, x, n: b.add(x, b.broadcast(b.constant(table(n)), x.shape, [0, 2])),
        Rows(0),
    ),
    "nothing of the rows": (lambda b, x, n: b.constant(WEIGHTS), None),
    "zeros for each row": (lambda b, x, n: b.full([n, 2], 0.0, F32), Rows(0)),
    "cholesky": (
        lambda b, x, n: b.emit(
            Cholesky(True), b.dot(x, x, lhs_batch=[0], rhs_batch=[0], lhs_contracting=[2], rhs_contracting=[2])
        ),
        Rows(0),
    ),
    "update": (
        lambda b, x, n: b.dynamic_update_slice(
            x, b.slice(x, [0, 0, 0], [n, 2, 4]), [b.constant(np.int32(k)) for k in (0, 3, 0)]
        ),
        Rows(0),
    ),
}
REFUSED: dict[str, tuple[Body, str]] = {
    "sum of rows": (lambda b, x, n: b.reduce_by("add", x, [0]), "reduce is in the way, it combines all rows"),
    "mean by size": (
        lambda b, x, n: b.divide(x, b.full(x.shape, float(n), F32)),
        "constant is in the way, its value depends on the number of rows",
    ),
    "contracted": (
        lambda b, x, n: b.dot(x, b.full([n, 2], 1.0, F32), lhs_contracting=[0], rhs_contracting=[0]),
        "dot is in the way, it sums over the rows",
    ),
    "rows by rows": (
        lambda b, x, n: b.dot(x, x, lhs_contracting=[1, 2], rhs_contracting=[1, 2]),
        "dot is in the way, it multiplies rows with rows",
    ),
    "reversed": (lambda b, x, n: b.reverse(x, [0]), "reverse is in the way, it turns the order of the rows round"),
    "half of the rows": (lambda b, x, n: b.slice(x, [0, 0, 0], [n // 2, 6, 4]), "slice is in the way"),
    "all but one": (lambda b, x, n: b.slice(x, [1, 0, 0], [n, 6, 4]), "slice is in the way, it takes some of the rows"),
    "one more": (
        lambda b, x, n: b.pad(x, b.constant(np.float32(0)), [1, 0, 0], [0, 0, 0], [0, 0, 0]),
        "pad is in the way, it pads the rows",
    ),
    "rows behind rows": (lambda b, x, n: b.concatenate([x, x], 0), "concatenate is in the way"),
    "sorted rows": (lambda b, x, n: b.sort([x], 0, _less(F32)), "sort is in the way, it sorts the rows"),
    "sliding over rows": (
        lambda b, x, n: b.reduce_window([x], [b.constant(np.float32(0))], Window.of([2, 1, 1]), b.combiner("add", F32)),
        "reduce-window is in the way, its window slides over the rows",
    ),
    "rows against the last": (
        lambda b, x, n: b.add(x, b.transpose(b.reshape(x, [6, n, 4]), [1, 0, 2])),
        "reshape is in the way, it puts parts of rows together",
    ),
    "features that grow": (
        lambda b, x, n: b.broadcast(x, [n, 6, 4, n], [0, 1, 2]),
        "broadcast is in the way, its dimension 3 depends on the number of rows",
    ),
    "a table from behind": (
        lambda b, x, n: b.add(x, b.broadcast(b.constant(table(8)[8 - n :]), x.shape, [0, 2])),
        "constant is in the way, its value depends on the number of rows",
    ),
    "how many numbers": (
        lambda b, x, n: b.multiply(
            x, b.broadcast(b.reduce_by("add", b.iota(TensorType(F32, (n,)), 0), [0]), x.shape, [])
        ),
        "reduce is in the way, it combines all rows",
    ),
    "another program": (
        lambda b, x, n: b.negate(x) if n > 4 else b.exponential(x),
        "negate is in the way, with 4 rows exponential is in its place",
    ),
    "another width": (
        lambda b, x, n: b.slice(x, [0, 0, 0], [n, 1 + n // 3, 4]),
        "slice is in the way, what it takes depends on the number of rows",
    ),
    "chosen by a row": (
        lambda b, x, n: b.dynamic_slice(
            x,
            [
                b.constant(np.int32(0)),
                b.convert(b.reshape(b.slice(x, [0, 0, 0], [1, 1, 1]), []), S32),
                b.constant(np.int32(0)),
            ],
            [n, 1, 4],
        ),
        "slice is in the way, it takes some of the rows",
    ),
}


def _less(element: Any) -> Any:
    c = Builder("less")
    scalar = TensorType(element)
    return c.build(c.compare(c.parameter(scalar), c.parameter(scalar), "LT"))


@pytest.mark.parametrize("name", PROVEN)
def test_what_is_proven_holds(name: str) -> None:
    """The kept rows are those of the smaller program bit for bit, whatever the others are."""
    body, expected = PROVEN[name]
    large = module(body, LARGE, batch_first)
    random = np.random.default_rng(1)
    for rows in range(1, LARGE):
        small = module(body, rows, batch_first)
        assert prove_rows(large, small, Sizes(LARGE, rows), {0: 0}, "batch") == (expected,)
        kept = random.standard_normal((rows, 6, 4)).astype(np.float32)
        (wanted,) = small.entry.evaluate(kept)
        for more in (np.nan, np.inf, 0.0, 1e30):
            whole = np.concatenate([kept, np.full((LARGE - rows, 6, 4), more, np.float32)])
            with np.errstate(all="ignore"):
                (result,) = large.entry.evaluate(whole)
            if expected is not None:
                d = expected.dimension
                before, behind = result.shape[:d], result.shape[d + 1 :]
                parts = result.reshape(*before, expected.outer, LARGE, expected.inner, *behind)
                result = parts[(slice(None),) * (d + 1) + (slice(0, rows),)].reshape(wanted.shape)
            np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("name", REFUSED)
def test_what_mixes_rows_is_refused(name: str) -> None:
    body, message = REFUSED[name]
    large = module(body, LARGE, batch_first)
    with pytest.raises(CompileError) as caught:
        for rows in (4, 2):
            prove_rows(large, module(body, rows, batch_first), Sizes(LARGE, rows), {0: 0}, "batch")
    text = str(caught.value)
    assert text.startswith(f"batches cannot be padded along batch: {message}"), text
    assert "leave pad_to_bucket out" in text


def test_equal_sizes_elsewhere_are_no_rows() -> None:
    """A dimension that has the size of the rows by chance stays as it is."""
    shape = lambda rows: (rows, LARGE, 4)  # noqa: E731
    body: Body = lambda b, x, n: b.reduce_by("add", x, [1])  # noqa: E731
    large, small = (module(body, n, shape) for n in (LARGE, 3))
    assert prove_rows(large, small, Sizes(LARGE, 3), {0: 0}, "batch") == (Rows(0),)


def test_a_refusal_names_the_node_of_the_model() -> None:
    from onnx import TensorProto, helper

    import onnxla

    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "/block/Relu"),
        helper.make_node("ReduceMean", ["r"], ["m"], "/block/Mean", keepdims=1, axes=[0]),
        helper.make_node("Sub", ["r", "m"], ["y"], "/block/Sub"),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [info("x", TensorProto.FLOAT, ["batch", 4])], [info("y", TensorProto.FLOAT, ["batch", 4])]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    with pytest.raises(CompileError, match=r"node   /block/Mean \(ReduceMean, opset 13\), node 1"):
        onnxla.compile(model, dims={"batch": [1, 4]}, options={"pad_to_bucket": "batch"})
