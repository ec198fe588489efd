"""Random programs for the passes: small graphs over every kind of operation that a pass looks at, from a seed."""

import random

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.types import F32, PRED, S32, Array, TensorType
from onnxla.hlo.window import ConvolutionDimensions, Window

SIZES = (1, 2, 3, 4)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, float("inf"), float("-inf"), 3.0)


class ProgramMaker:
    """Grows a graph one operation at a time from values that are already there."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.b = Builder()
        self.values: list[Instruction] = []
        for _ in range(self.random.randint(1, 3)):
            shape = [self.random.choice(SIZES) for _ in range(self.random.randint(0, 4))]
            self.values.append(self.b.parameter(TensorType(F32, tuple(shape))))

    def module(self, operations: int) -> Module:
        for _ in range(operations):
            value = self.random.choice(self.steps)(self)
            if value is not None and value.tensor_type.size <= 2000:
                self.values.append(value)
        roots = [v for v in self.values if not v.users] or self.values[-1:]
        return Module("random", self.b.build(self.b.tuple(*roots)))

    def pick(self, least_rank: int = 0) -> Instruction | None:
        fitting = [v for v in self.values if len(v.shape) >= least_rank and v.tensor_type.element is F32]
        # recent values more often, so that chains grow
        return self.random.choice(fitting[-6:]) if fitting else None

    def same_shape(self, value: Instruction) -> Instruction:
        others = [v for v in self.values if v.type == value.type]
        if self.random.random() < 0.3:
            return self.b.full_like(value, self.random.choice(SPECIAL))
        if value.shape and self.random.random() < 0.3:
            d = self.random.randrange(len(value.shape))
            line = np.arange(value.shape[d], dtype=np.float32) - 1
            return self.b.broadcast(self.b.constant(line), value.shape, [d])
        return self.random.choice(others)

    def unary(self) -> Instruction | None:
        x = self.pick()
        names = ("negate", "abs", "exponential", "tanh", "logistic", "floor", "sign", "sqrt")
        return x and self.b.unary(self.random.choice(names), x)

    def binary(self) -> Instruction | None:
        x = self.pick()
        names = ("add", "subtract", "multiply", "maximum", "minimum", "divide", "power")
        if x is None:
            return None
        pair = [x, self.same_shape(x)]
        self.random.shuffle(pair)
        return self.b.binary(self.random.choice(names), *pair)

    def select(self) -> Instruction | None:
        x = self.pick()
        if x is None:
            return None
        flag = self.b.compare(x, self.same_shape(x), self.random.choice(("EQ", "LT", "GE", "NE")))
        return self.b.select(self.b.not_(flag) if self.random.random() < 0.3 else flag, x, self.same_shape(x))

    def clamp(self) -> Instruction | None:
        x = self.pick()
        return x and self.b.clamp(self.b.constant(np.float32(-1)), x, self.b.constant(np.float32(2)))

    def convert(self) -> Instruction | None:
        x = self.pick()
        if x is None:
            return None
        wide = self.b.convert(self.b.maximum(self.b.minimum(x, self.b.full_like(x, 9)), self.b.full_like(x, -9)), S32)
        return self.b.convert(self.b.add(wide, self.b.full_like(wide, self.random.randint(-1, 1))), F32)

    def reshape(self) -> Instruction | None:
        x = self.pick()
        if x is None:
            return None
        sizes = [n for n in x.shape if n != 1] if self.random.random() < 0.5 else [x.tensor_type.size]
        for _ in range(self.random.randint(0, 2)):
            sizes.insert(self.random.randint(0, len(sizes)), 1)
        return self.b.reshape(x, sizes)

    def transpose(self) -> Instruction | None:
        x = self.pick(2)
        return x and self.b.transpose(x, self.random.sample(range(len(x.shape)), len(x.shape)))

    def broadcast(self) -> Instruction | None:
        x = self.pick()
        if x is None or len(x.shape) > 3:
            return None
        shape, places = list(x.shape), list(range(len(x.shape)))
        at = self.random.randint(0, len(shape))
        shape.insert(at, self.random.choice(SIZES))
        return self.b.broadcast(x, shape, [p + (p >= at) for p in places])

    def slice(self) -> Instruction | None:
        x = self.pick(1)
        if x is None:
            return None
        starts = [self.random.randint(0, n - 1) if n else 0 for n in x.shape]
        limits = [self.random.randint(a + 1, n) if n else 0 for a, n in zip(starts, x.shape, strict=True)]
        return self.b.slice(x, starts, limits, [self.random.randint(1, 2) for _ in x.shape])

    def pad(self) -> Instruction | None:
        x = self.pick(1)
        if x is None:
            return None
        low, high = ([self.random.randint(0, 1) for _ in x.shape] for _ in range(2))
        interior = [self.random.choice((0, 0, 0, 1)) for _ in x.shape]
        return self.b.pad(x, self.b.constant(np.float32(self.random.choice((0.0, 1.0)))), low, high, interior)

    def reverse(self) -> Instruction | None:
        x = self.pick(1)
        return x and self.b.reverse(x, [self.random.randrange(len(x.shape))])

    def concatenate(self) -> Instruction | None:
        x = self.pick(1)
        if x is None:
            return None
        pieces = [x, self.same_shape(x), *([self.same_shape(x)] if self.random.random() < 0.3 else [])]
        return self.b.concatenate(pieces, self.random.randrange(len(x.shape)))

    def take(self) -> Instruction | None:
        x = self.pick(1)
        if x is None:
            return None
        d = self.random.randrange(len(x.shape))
        at = [self.random.randrange(x.shape[d]) for _ in range(self.random.randint(1, 3))] if x.shape[d] else []
        return self.b.take(x, self.b.constant(np.array(at, np.int32)), d) if at else None

    def dynamic_slice(self) -> Instruction | None:
        x = self.pick(1)
        if x is None:
            return None
        starts = [self.b.constant(np.int32(self.random.randint(-1, 2))) for _ in x.shape]
        block = self.b.dynamic_slice(x, starts, [max(1, n - 1) if n else 0 for n in x.shape])
        return self.b.dynamic_update_slice(x, block, starts[::-1]) if self.random.random() < 0.5 else block

    def reduce(self) -> Instruction | None:
        x = self.pick(1)
        if x is None:
            return None
        count = self.random.randint(1, len(x.shape))
        dimensions = sorted(self.random.sample(range(len(x.shape)), count))
        return self.b.reduce_by(self.random.choice(("add", "maximum", "minimum")), x, dimensions)

    def softmax(self) -> Instruction | None:
        x = self.pick(1)
        if x is None:
            return None
        last = len(x.shape) - 1
        spread = list(range(last))
        top = self.b.broadcast(self.b.reduce_by("maximum", x, [last]), x.shape, spread)
        e = self.b.exponential(self.b.subtract(x, top))
        return self.b.divide(e, self.b.broadcast(self.b.reduce_by("add", e, [last]), x.shape, spread))

    def dot(self) -> Instruction | None:
        x = self.pick(2)
        if x is None:
            return None
        d = self.random.randrange(len(x.shape))
        weights = self.constant_of((x.shape[d], self.random.choice(SIZES)))
        return self.b.dot(x, weights, [d], [0])

    def batch_dot(self) -> Instruction | None:
        x = self.pick(3)
        if x is None:
            return None
        y = self.same_shape(x)
        rank = len(x.shape)
        return self.b.dot(x, y, [rank - 1], [rank - 1], range(rank - 2), range(rank - 2))

    def convolution(self) -> Instruction | None:
        x = self.pick(3)
        if x is None or 0 in x.shape:
            return None
        spatial = len(x.shape) - 2
        depthwise = self.random.random() < 0.3
        features, size = x.shape[1], self.random.choice((1, 2))
        outputs = features if depthwise else self.random.choice((1, 2, 3))
        weights = self.constant_of((outputs, 1 if depthwise else features, *[size] * spatial))
        window = Window.of([size] * spatial, pads_low=[size - 1] * spatial)
        dims = ConvolutionDimensions.nchw(spatial)
        product = self.b.convolution(x, weights, window, dims, features if depthwise else 1)
        scale = self.b.broadcast(self.b.constant(np.arange(outputs, dtype=np.float32) + 0.5), product.shape, [1])
        return self.random.choice((product, self.b.multiply(product, scale), self.b.add(product, scale)))

    def pool(self) -> Instruction | None:
        x = self.pick(3)
        if x is None:
            return None
        rank = len(x.shape)
        window = Window.of([1, 1] + [2] * (rank - 2), pads_low=[0, 0] + [1] * (rank - 2))
        init, combiner = self.random.choice(((-np.inf, "maximum"), (0.0, "add")))
        start = self.b.constant(np.float32(init))
        return self.b.reduce_window([x], [start], window, self.b.combiner(combiner, F32))

    def constant_of(self, shape: tuple[int, ...]) -> Instruction:
        numbers = np.random.default_rng(self.random.randrange(1 << 30)).standard_normal(shape)
        return self.b.constant(numbers.astype(np.float32))

    steps = (
        *(unary, unary, binary, binary, binary, binary, select, clamp, convert, reshape, reshape, transpose, transpose),
        *(broadcast, broadcast, slice, pad, reverse, concatenate, take, dynamic_slice, reduce, reduce, softmax),
        *(dot, batch_dot, convolution, convolution, pool),
    )


def arguments_for(module: Module, seed: int) -> list[Array]:
    """Values for the parameters of the entry."""
    numbers = np.random.default_rng(seed)
    given: list[Array] = []
    for parameter in module.entry.parameters:
        kind = parameter.tensor_type
        values = numbers.standard_normal(kind.shape) * 2
        given.append(values > 0 if kind.element is PRED else np.round(values, 1).astype(kind.element.dtype))
    return given
