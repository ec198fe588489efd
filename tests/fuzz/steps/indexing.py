"""Gathers, scatters and what else takes places or lengths."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.graph import ALL, SINGLES, Array, Graph, Skip, Value, onnx_type, rounded


def _indices(g: Graph, array: Array) -> Value:
    kind = np.int32 if g.chance(0.2) else np.int64
    return g.hold(np.asarray(array).astype(kind), constant=g.chance(0.5))


def gather(g: Graph) -> None:
    """Random places, or places side by side, backwards, equally spaced, or one."""
    x = g.pick(ALL, rank=(1, 4))
    axis = g.random.randrange(x.rank)
    n = x.shape[axis]
    if not n:
        indices = _indices(g, np.zeros((0, *g.shape(0, 1))))
    elif g.chance(0.4):
        step = g.random.choice((1, 1, 2, -1, 3))
        places = np.arange(n)[:: abs(step)]
        places = places[g.random.randrange(len(places)) :]
        places = (places[::-1] if step < 0 else places) - (n if g.chance(0.3) else 0)
        indices = g.hold(places.astype(np.int64))
    else:
        indices = _indices(g, g.source().integers(-n, n, g.shape(0, 2)))
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    g.node("Gather", [x, indices], replace(x, shape=shape), axis=axis)


def gather_elements(g: Graph) -> None:
    x = g.pick(ALL, rank=(1, 3))
    axis = g.random.randrange(x.rank)
    n = x.shape[axis]
    if not n:
        raise Skip("nothing to take")
    shape = tuple(
        g.random.randint(0, 4) if a == axis else g.random.randint(min(d, 1), d) for a, d in enumerate(x.shape)
    )
    g.node("GatherElements", [x, _indices(g, g.source().integers(-n, n, shape))], replace(x, shape=shape), axis=axis)


def gather_nd(g: Graph) -> None:
    x = g.pick(("float32", "int32", "int64", "bool"), rank=(1, 4))
    batch = g.random.randint(0, 1) if x.rank > 1 and g.opset >= 12 else 0
    depth = g.random.randint(1, x.rank - batch)
    sizes = x.shape[batch : batch + depth]
    count = g.random.randint(0, 4) if 0 not in sizes else 0
    lead = x.shape[:batch]
    columns = [g.source().integers(-max(n, 1), max(n, 1), (*lead, count, 1)) for n in sizes]
    indices = g.hold(np.concatenate(columns, -1).astype(np.int64), constant=g.chance(0.5))
    attributes: dict[str, Any] = {"batch_dims": batch} if batch else {}
    g.node("GatherND", [x, indices], replace(x, shape=(*lead, count, *x.shape[batch + depth :])), **attributes)


def _reduction(g: Graph) -> dict[str, Any]:
    mode = g.random.choice(("none", "none", "add", "mul", "max", "min"))
    if mode in ("max", "min") and g.opset < 18:
        mode = "add"
    return {} if mode == "none" or g.opset < 16 else {"reduction": mode}


def _updated(x: Value, updates: Value, attributes: dict[str, Any]) -> Value:
    bound = {"add": x.bound + updates.bound, "mul": x.bound * updates.bound}.get(attributes.get("reduction", ""), 0)
    error = x.error * max(updates.bound, 1) + updates.error * max(x.bound, 1)
    result = replace(x, bound=max(bound, x.bound, updates.bound), error=error)
    return rounded(result) if bound else result


def scatter_nd(g: Graph) -> None:
    """Places without repetition, so that any order of updates gives the same."""
    x = g.pick((*SINGLES, "int32", "int64"), rank=(1, 3))
    depth = g.random.randint(1, x.rank)
    total = int(np.prod(x.shape[:depth]))
    if not total:
        raise Skip("nowhere to write")
    count = g.random.randint(1, min(total, 20))
    flat = g.source().permutation(total)[:count]
    places = np.stack(np.unravel_index(flat, x.shape[:depth]), -1)
    updates = g.leaf(x.dtype, (count, *x.shape[depth:]))
    attributes = _reduction(g)
    indices = g.hold(places.astype(np.int64), constant=g.chance(0.5))
    g.node("ScatterND", [x, indices, updates], _updated(x, updates, attributes), **attributes)


def scatter_elements(g: Graph) -> None:
    x = g.pick((*SINGLES, "int32", "int64"), rank=(1, 3))
    axis = g.random.randrange(x.rank)
    shape = tuple(g.random.randint(0, n) for n in x.shape)
    order = np.argsort(g.source().random(x.shape), axis=axis)
    places = order[tuple(slice(n) for n in shape)]
    if g.chance(0.3):
        places = places - x.shape[axis]
    updates = g.leaf(x.dtype, shape)
    attributes = _reduction(g)
    result = _updated(x, updates, attributes)
    g.node("ScatterElements", [x, _indices(g, places), updates], result, axis=axis, **attributes)


def one_hot(g: Graph) -> None:
    depth = g.random.randint(1, 9)
    places = _indices(g, g.source().integers(-depth if g.opset > 10 else 0, depth, g.shape(1, 2)))
    axis = g.random.randint(0, len(places.shape))
    kind = g.random.choice(("float32", "int64", "int32"))
    values = g.hold(np.array([0, 3]).astype(kind))
    shape = (*places.shape[:axis], depth, *places.shape[axis:])
    g.node("OneHot", [places, g.hold(np.array(depth, np.int64)), values], Value("", kind, shape, 3), axis=axis)


def ranges(g: Graph) -> None:
    """Range, EyeLike, ConstantOfShape: values from nothing."""
    kind = g.random.randrange(3)
    if kind == 0:
        dtype = g.random.choice(("int64", "int32", "float32"))
        start, step, count = g.random.randint(-5, 5), g.random.choice((1, 2, -1, 3)), g.random.randint(0, 20)
        numbers = [g.scalar(dtype, n) for n in (start, start + step * count, step)]
        g.node("Range", numbers, Value("", dtype, (count,), 99))
    elif kind == 1:
        x = g.pick(("float32", "int32", "bool"), rank=(2, 2))
        g.node("EyeLike", [x], Value("", "float32", x.shape, 1), k=g.random.randint(-2, 2), dtype=onnx_type("float32"))
    else:
        shape = g.shape(0, 3)
        g.node("ConstantOfShape", [g.ints(*shape)], Value("", "float32", shape, 1))


def reverse_sequence(g: Graph) -> None:
    x = g.pick(("float32", "int32", "float64"), rank=(2, 4))
    time = g.random.randint(0, 1)
    batch = 1 - time
    if not x.shape[time] or not x.shape[batch]:
        raise Skip("empty")
    lengths = g.source().integers(1, x.shape[time] + 1, x.shape[batch])
    places = g.hold(lengths.astype(np.int64), constant=g.chance(0.5))
    g.node("ReverseSequence", [x, places], x, time_axis=time, batch_axis=batch)


def resize(g: Graph) -> None:
    x = g.pick(("float32",), rank=(4, 4), exact=True)
    if 0 in x.shape:
        raise Skip("empty")
    sizes = tuple(g.random.randint(1, 9) for _ in range(2))
    mode = g.random.choice(("nearest", "linear", "cubic"))
    place = g.random.choice(("half_pixel", "asymmetric", "align_corners"))
    if mode == "nearest":
        place, sizes = "asymmetric", (x.shape[2] * 2, x.shape[3] * 3)
    result = rounded(x, shape=(*x.shape[:2], *sizes), bound=4 * x.bound)
    if mode != "nearest":
        result = replace(result, error=1e-4 * x.bound)
    whole = g.ints(*x.shape[:2], *sizes)
    empty = g.hold(np.zeros(0, np.float32)) if g.opset < 13 else None
    g.node("Resize", [x, empty, empty, whole], result, mode=mode, coordinate_transformation_mode=place)


STEPS: dict[Callable[[Graph], None], float] = {
    gather: 5, gather_elements: 2, gather_nd: 2, scatter_nd: 2, scatter_elements: 2, one_hot: 0.7, ranges: 1,
    reverse_sequence: 0.7, resize: 1.5,
}  # fmt: skip
SPECIAL = ()
