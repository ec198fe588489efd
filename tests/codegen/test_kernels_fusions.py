"""Random programs of arithmetic, data movement and reductions, fused and compiled, against `evaluate`.

A failing seed stands in the message: put it into `KEPT`, with what it showed.
"""

from random import Random

import numpy as np
import pytest

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, PRED, S8, S32, U8, ElementType, Shape
from tests.codegen.kernel_runner import disagreement, problems
from tests.hlo.case import Case, random

KEPT: tuple[int, ...] = ()
SHAPES: tuple[Shape, ...] = ((), (1,), (7,), (33,), (4, 16), (3, 5, 37), (2, 1, 70), (40, 3))
ELEMENTS = (F32, F32, F32, S32, S8, U8)
"""One float type: what a narrower one rounds away would count as an error in a wider one."""
FLOAT_UNARY = ("negate", "abs", "exponential", "tanh", "logistic", "sqrt", "floor", "sign", "cosine", "erf")
FLOAT_BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "atan2")
INTEGER_UNARY = ("negate", "abs", "not", "popcnt")
INTEGER_BINARY = (
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "and",
    "xor",
    "divide",
    "remainder",
    "shift-left",
)
PER_PROGRAM, PROGRAMS = 25, 12


class Grower:
    """Builds one random program; every value has a tensor type of `ELEMENTS`."""

    def __init__(self, seed: int, b: Builder, parameters: tuple[Instruction, ...]) -> None:
        self.random, self.b = Random(seed), b
        self.values = list(parameters)

    def pick(self) -> Instruction:
        return self.random.choice(self.values[-4:] if self.random.random() < 0.6 else self.values)

    def grow(self, size: int) -> Instruction:
        for _ in range(size):
            self.values.append(self.random.choice((self.arithmetic, self.arithmetic, self.movement, self.reduction))())
        return self.b.tuple(*self.values[-2:])

    def arithmetic(self) -> Instruction:
        b, x = self.b, self.pick()
        element = x.tensor_type.element
        same = self.random.choice([v for v in self.values if v.type == x.type])
        kind = self.random.randrange(4)
        if kind == 0:
            names = FLOAT_UNARY if element.is_float else INTEGER_UNARY
            name = self.random.choice([n for n in names if n not in ("negate", "abs") or element is not U8])
            return b.unary(name, x)
        if kind == 1:
            return b.binary(self.random.choice(FLOAT_BINARY if element.is_float else INTEGER_BINARY), x, same)
        if kind == 2:
            condition = b.compare(x, same, self.random.choice(("LT", "NE", "GE")))
            return b.select(condition, same, b.full_like(x, self.random.randint(0, 3)))
        return b.convert(x, self.random.choice(ELEMENTS))

    def movement(self) -> Instruction:
        b, x = self.b, self.pick()
        rank, shape = len(x.shape), x.shape
        kind = self.random.randrange(7)
        if rank == 0 or kind == 0:
            return b.broadcast(x, (*shape, self.random.choice((1, 3, 17))), range(rank))
        axis = self.random.randrange(rank)
        if kind == 1:
            order = list(range(rank))
            self.random.shuffle(order)
            return b.transpose(x, order)
        if kind == 2:
            starts = [self.random.randrange(n) for n in shape]
            return b.slice(x, starts, shape, [self.random.randint(1, 2) for _ in shape])
        if kind == 3:
            return b.reverse(x, [axis])
        if kind == 4:
            low = [self.random.randint(-1, 2) if n > 1 else 1 for n in shape]
            value = b.constant(1, x.tensor_type.element)
            return b.pad(x, value, low, [self.random.randint(0, 2) for _ in shape], [self.random.randint(0, 1)] * rank)
        if kind == 5:
            return b.concatenate([x, x], axis)
        return b.reshape(x, (int(np.prod(shape)),))

    def reduction(self) -> Instruction:
        x = self.pick()
        if not x.shape:
            return self.arithmetic()
        axes = sorted(self.random.sample(range(len(x.shape)), self.random.randint(1, len(x.shape))))
        return self.b.reduce_by(self.random.choice(("add", "maximum", "minimum")), x, axes)


def program(seed: int) -> Case:
    choice = Random(seed)
    kinds: list[tuple[ElementType, Shape]] = [
        (choice.choice(ELEMENTS), choice.choice(SHAPES)) for _ in range(choice.randint(1, 3))
    ]
    arguments = tuple(random(element, shape, (seed, k)) for k, (element, shape) in enumerate(kinds))
    size = choice.randint(2, 9)
    return Case(f"seed {seed}", lambda b, *p: Grower(seed, b, p).grow(size), arguments, 2048)


@pytest.mark.parametrize("start", range(PROGRAMS))
def test_random_programs(start: int) -> None:
    target = ("host", "x86-64-v3")[start % 2]
    cases = [program(seed) for seed in range(start * PER_PROGRAM, (start + 1) * PER_PROGRAM)]
    found = problems(cases, target, normwise=True)
    assert not found, f"{len(found)} problems for {target}\n" + "\n".join(found[:20])


@pytest.mark.parametrize("seed", KEPT)
def test_programs_that_once_failed(seed: int) -> None:
    assert not problems([program(seed)], "host", normwise=True)


def test_a_wrong_result_is_seen() -> None:
    x = random(F32, (5,))
    assert disagreement(x, x, 0, False) is None
    assert disagreement(x, x * np.float32(1.001), 16, True) is not None
    assert disagreement(random(PRED, (9,)), ~random(PRED, (9,)), 0, False) is not None
    assert disagreement(np.array([0.0]), np.array([-0.0]), 0, False) is not None
