"""What moves elements and computes nothing: concatenation, slices, padding, shapes, orders."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.graph import ALL, SINGLES, Graph, Skip, Value
from tests.fuzz.steps.common import shuffled, transpose, unsqueeze, with_axes

_FAR = 2**63 - 1


def _with_size(x: Value, axis: int, size: int, **changes: Any) -> Value:
    return replace(x, shape=tuple(size if a == axis else n for a, n in enumerate(x.shape)), **changes)


def _split(g: Graph, x: Value, axis: int, sizes: list[int]) -> list[Value]:
    results = [_with_size(x, axis, n) for n in sizes]
    if g.opset < 13:
        g.node("Split", [x], *results, axis=axis, split=sizes)
    else:
        g.node("Split", [x, g.ints(*sizes)], *results, axis=axis)
    return g.last(len(sizes))


def concat_split(g: Graph) -> None:
    """One to four values joined, one of them twice at times; split again, at the seams or elsewhere."""
    x = g.pick(ALL, rank=(1, 4))
    axis = g.random.randrange(x.rank)
    parts = [x, *(g.leaf(x.dtype, _with_size(x, axis, g.size()).shape) for _ in range(g.random.randint(0, 2)))]
    parts += [g.random.choice(parts)] if g.chance(0.3) else []
    g.random.shuffle(parts)
    total = sum(p.shape[axis] for p in parts)
    bound = max(p.bound for p in parts)
    whole = g.node(
        "Concat", parts, _with_size(x, axis, total, bound=bound), axis=axis - x.rank if g.chance(0.3) else axis
    )
    if g.chance(0.4):
        cut = g.random.randint(0, total)
        _split(g, whole, axis, [cut, total - cut])
    elif g.chance(0.3):
        _split(g, whole, axis, [p.shape[axis] for p in parts])


def split_and_join(g: Graph) -> None:
    """Pieces joined again, in their order or another, some of them changed or left out."""
    x = g.pick((*SINGLES, "int32"), rank=(1, 4))
    axis = g.random.randrange(x.rank)
    n = x.shape[axis]
    cuts = sorted(g.random.randint(0, n) for _ in range(g.random.randint(1, 3)))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, n], strict=True)]
    pieces = _split(g, x, axis, sizes)
    if g.chance(0.4):
        k = g.random.randrange(len(pieces))
        pieces[k] = g.node("Neg", [pieces[k]], pieces[k])
    if g.chance(0.3):
        g.random.shuffle(pieces)
    elif g.chance(0.3):
        pieces.pop()
    if not pieces:
        raise Skip("nothing left")
    total = sum(p.shape[axis] for p in pieces)
    g.node("Concat", pieces, _with_size(x, axis, total), axis=axis)


def split_evenly(g: Graph) -> None:
    x = g.pick(ALL, rank=(1, 3))
    axis = g.random.randrange(x.rank)
    n = x.shape[axis]
    if n < 2 or g.opset < 18:
        raise Skip("Split")
    count = g.random.randint(2, min(n, 4))
    size = -(-n // count)
    sizes = [size] * (count - 1) + [n - size * (count - 1)]
    if sizes[-1] < 1:
        raise Skip("Split")
    g.node("Split", [x], *[_with_size(x, axis, s) for s in sizes], axis=axis, num_outputs=count)


def slice_(g: Graph) -> None:
    """One to three axes, steps both ways, starts and ends far outside."""
    x = g.pick(ALL, rank=(1, 4))
    axes = g.random.sample(range(x.rank), g.random.randint(1, min(x.rank, 3)))
    starts, ends, steps, shape = [], [], [], list(x.shape)
    for axis in axes:
        n = x.shape[axis]
        step = g.random.choice((1, 1, 1, 2, 3, -1, -1, -2))
        start = g.random.randint(-n, n) if g.chance(0.8) else (_FAR if step < 0 else -n - 5)
        stop = g.random.randint(-n, n + 2) if g.chance(0.7) else (_FAR if step > 0 else -_FAR)
        starts.append(start)
        ends.append(stop)
        steps.append(step)
        shape[axis] = len(range(n)[slice(start, None if stop == -_FAR else stop, step)])
    named = [a - x.rank if g.chance(0.3) else a for a in axes]
    inputs = [g.ints(*starts), g.ints(*ends), g.ints(*named)]
    if any(s != 1 for s in steps) or g.chance(0.3):
        inputs.append(g.ints(*steps))
    y = g.node("Slice", [x, *inputs], replace(x, shape=tuple(shape)))
    if g.chance(0.3):
        _reverse(g, y, g.random.randrange(y.rank))


def _reverse(g: Graph, x: Value, axis: int) -> Value:
    return g.node("Slice", [x, g.ints(-1), g.ints(-_FAR), g.ints(axis), g.ints(-1)], x)


def reverses(g: Graph) -> None:
    """Turned round along some axes, twice; of something repeated."""
    x = g.pick(("float32", "int32"), rank=(1, 3))
    if g.chance(0.4):
        shape = (*x.shape[:-1], x.shape[-1] if x.shape[-1] != 1 else 4)
        x = g.node("Expand", [x, g.ints(3, *shape)], replace(x, shape=(3, *shape)))
    for _ in range(g.random.randint(1, 3)):
        x = _reverse(g, x, g.random.randrange(x.rank))


def pad(g: Graph) -> None:
    x = g.pick((*SINGLES, "int32", "int64", "int8", "uint8"), rank=(1, 4))
    modes = ("constant", "constant", "constant", "reflect", "edge") + (("wrap",) if g.opset >= 19 else ())
    mode = g.random.choice(modes)
    most = [3 if mode == "constant" else min(2, n - 1) for n in x.shape]
    if min(most) < 0:
        raise Skip("nothing to repeat")
    low, high = ([g.random.randint(0, m) if g.chance(0.7) else 0 for m in most] for _ in range(2))
    if mode == "constant":
        for axis, n in enumerate(x.shape):
            if n > 4 and g.chance(0.2):
                low[axis] = -g.random.randint(1, 2)
            if n > 4 and g.chance(0.2):
                high[axis] = -g.random.randint(1, 2)
    shape = tuple(a + n + b for a, n, b in zip(low, x.shape, high, strict=True))
    value = [g.scalar(x.dtype, g.random.choice((0, 1)))] if mode == "constant" and g.chance(0.5) else []
    y = g.node("Pad", [x, g.ints(*low, *high), *value], replace(x, shape=shape), mode=mode)
    if mode == "constant" and g.chance(0.3):
        again = [g.random.choice((0, 1)) for _ in range(2 * y.rank)]
        shape = tuple(n + a + b for n, a, b in zip(shape, again[: y.rank], again[y.rank :], strict=True))
        g.node("Pad", [y, g.ints(*again), *value], replace(y, shape=shape))


def rearrange(g: Graph) -> None:
    x = g.pick(ALL, rank=(1, 4))
    kind = g.random.choice(
        ("Transpose", "Transpose", "Reshape", "Reshape", "Expand", "Tile", "Unsqueeze", "Squeeze", "Flatten")
    )
    if kind == "Transpose":
        y = shuffled(g, x)
        if g.chance(0.3):
            shuffled(g, y)
    elif kind == "Reshape":
        _reshape(g, x)
    elif kind == "Expand":
        shape = (g.random.randint(1, 3), *(g.random.randint(1, 4) if n == 1 else n for n in x.shape))
        shape = shape if g.chance(0.5) else shape[1:]
        g.node("Expand", [x, g.ints(*shape)], replace(x, shape=shape))
    elif kind == "Tile" and x.size < 5000:
        times = [g.random.choice((1, 1, 2, 3)) for _ in x.shape]
        shape = tuple(n * t for n, t in zip(x.shape, times, strict=True))
        g.node("Tile", [x, g.ints(*times)], replace(x, shape=shape))
    elif kind == "Unsqueeze":
        unsqueeze(g, x, g.random.randint(0, x.rank))
    elif kind == "Squeeze":
        ones = [a for a, n in enumerate(x.shape) if n == 1]
        inputs, attributes = with_axes(g, "Squeeze", ones if ones else None)
        shape = tuple(n for n in x.shape if n != 1)
        g.node("Squeeze", [x, *inputs], replace(x, shape=shape), **attributes)
    elif kind == "Flatten":
        axis = g.random.randint(0, x.rank)
        halves = x.shape[:axis], x.shape[axis:]
        shape = tuple(int(np.prod(h, dtype=np.int64)) for h in halves)
        g.node("Flatten", [x], replace(x, shape=shape), axis=axis)


def _reshape(g: Graph, x: Value) -> None:
    """Dimensions joined, split, and ones put between; with 0 and -1 where they say the same."""
    sizes = [n for n in x.shape if n != 1]
    if len(sizes) > 1 and g.chance(0.6):
        at = g.random.randrange(len(sizes) - 1)
        sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
    for k, n in enumerate(list(sizes)):
        for factor in (2, 3):
            if n > factor and n % factor == 0 and g.chance(0.3):
                sizes[k : k + 1] = [factor, n // factor]
                break
        else:
            continue
        break
    if g.chance(0.4):
        sizes.insert(g.random.randint(0, len(sizes)), 1)
    told = list(sizes)
    attributes: dict[str, Any] = {"allowzero": 1} if 0 in sizes else {}
    if sizes and 0 not in sizes and g.chance(0.4):
        told[g.random.randrange(len(told))] = -1
    elif sizes and 0 not in sizes and x.shape and x.shape[0] == sizes[0] and g.chance(0.4):
        told[0] = 0
    g.node("Reshape", [x, g.ints(*told)], replace(x, shape=tuple(sizes)), **attributes)


def computed_shape(g: Graph) -> None:
    """A reshape to a shape that is taken from Shape, Gather and Concat, as exporters write it."""
    x = g.pick(("float32", "int32"), rank=(2, 4))
    if not x.size:
        raise Skip("-1 means nothing")
    shape = g.node("Shape", [x], Value("", "int64", (x.rank,), 99))
    first = g.node("Gather", [shape, g.hold(np.array([0], np.int64))], replace(shape, shape=(1,)), axis=0)
    target = g.node("Concat", [first, g.ints(-1)], replace(shape, shape=(2,)), axis=0)
    g.node("Reshape", [x, target], replace(x, shape=(x.shape[0], x.size // x.shape[0])))


def blocks(g: Graph) -> None:
    kind = g.random.choice(("float32", "int8", "float16"))
    if g.chance(0.5):
        x = g.leaf(kind, (g.random.choice((1, 2)), 8, g.size(), g.size()))
        n, c, h, w = x.shape
        mode = g.random.choice(("DCR", "CRD"))
        g.node("DepthToSpace", [x], replace(x, shape=(n, c // 4, h * 2, w * 2)), blocksize=2, mode=mode)
    else:
        x = g.leaf(kind, (g.random.choice((1, 2)), 3, g.size() * 2, g.size() * 2))
        n, c, h, w = x.shape
        g.node("SpaceToDepth", [x], replace(x, shape=(n, c * 4, h // 2, w // 2)), blocksize=2)


def triangle(g: Graph) -> None:
    x = g.pick(("float32", "float64", "int32", "int64", "bool"), rank=(2, 4))
    k = [g.hold(np.array(g.random.randint(-3, 3), np.int64))] if g.chance(0.6) else []
    g.node("Trilu", [x, *k], x, upper=g.random.randint(0, 1))


def large_transpose(g: Graph) -> None:
    """Past the blocks of a transposing kernel and past one task, with arithmetic before and behind."""
    shape = g.random.choice(((130, 257), (3, 65, 70), (2, 33, 17, 20), (1000, 3), (5, 1111), (16, 16, 64)))
    x = g.leaf(g.random.choice(("float32", "int8", "float16", "float64")), shape, constant=False)
    y = transpose(g, x, g.random.sample(range(x.rank), x.rank))
    if x.is_float:
        z = g.leaf(x.dtype, y.shape[-1:])
        y = g.node("Max", [y, z], y)
    axis = g.random.randrange(y.rank)
    g.node("Concat", [y, y], _with_size(y, axis, 2 * y.shape[axis]), axis=axis)


STEPS: dict[Callable[[Graph], None], float] = {
    concat_split: 4, split_and_join: 2, split_evenly: 0.7, slice_: 5, reverses: 1, pad: 3, rearrange: 8,
    computed_shape: 0.7, blocks: 1, triangle: 0.7, large_transpose: 0.5,
}  # fmt: skip
SPECIAL = (concat_split, split_and_join, slice_, pad, rearrange)
