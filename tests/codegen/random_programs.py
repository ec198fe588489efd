"""Random HLO programs over small integer tensors: shared values, views, loops, branches and calls, nested.

Every loop counts down a counter of its own, so it ends; the rest of its state is shuffled, passed on, replaced by
constants and recomputed at will, which is what buffer assignment has to get right.
"""

import math
from random import Random

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.types import PRED, S32, TensorType

SHAPES = ((4,), (2, 2), (16,), (0,), (40,))
KINDS = ["binary"] * 6 + ["unary"] * 3 + ["view", "constant", "resize", "update", "sort"] + ["nested"] * 2


def random_module(random: Random, size: int = 12, depth: int = 2) -> Module:
    """A module with a few inputs and outputs."""
    b = Builder("main")
    values = [b.parameter(TensorType(S32, random.choice(SHAPES)), f"in{k}") for k in range(random.randint(1, 3))]
    _grow(random, b, values, size, depth)
    outputs = [_pick(random, values) for _ in range(random.randint(1, 5))]
    return Module("random", b.build(b.tuple(*outputs)))


def _pick(random: Random, values: list[Instruction]) -> Instruction:
    """Mostly a recent value, so that little of a program is dead."""
    return random.choice(values[-4:] if random.random() < 0.7 else values)


def random_inputs(random: Random, module: Module) -> list[np.ndarray]:
    """An array for each parameter of the entry."""
    generator = np.random.default_rng(random.randrange(1 << 30))
    return [generator.integers(-5, 6, p.shape).astype(p.tensor_type.element.dtype) for p in module.entry.parameters]


def _grow(random: Random, b: Builder, values: list[Instruction], size: int, depth: int) -> None:
    """Append about `size` values, each made from earlier ones."""
    for _ in range(random.randint(1 + size // 2, size)):
        kind = random.choice(
            ["binary"] * 6 + ["unary"] * 3 + ["view", "constant", "resize", "update", "sort"] + ["nested"] * 2
        )
        if kind == "binary":
            x = _pick(random, values)
            y = random.choice([v for v in values if v.type == x.type])
            values.append(b.binary(random.choice(["add", "subtract", "maximum"]), x, y))
        elif kind == "unary":
            values.append(b.negate(_pick(random, values)))
        elif kind == "view":
            x = _pick(random, values)
            values.append(b.reshape(x, (x.tensor_type.size,) if x.shape == (2, 2) else (1, x.tensor_type.size)))
        elif kind == "constant":
            values.append(_constant(random, b, TensorType(S32, random.choice(SHAPES))))
        elif kind == "resize":
            values.append(_resized(b, _pick(random, values), random.choice(SHAPES)))
        elif kind == "update":
            values.append(_updated(random, b, values))
        elif kind == "sort":
            values += _sorted(random, b, values)
        elif depth:
            make = random.choice([_loop, _loop, _branch, _call])
            values += make(random, b, values, max(size // 2, 1), depth - 1)


def _flat(b: Builder, value: Instruction) -> Instruction:
    return b.reshape(value, (value.tensor_type.size,))


def _resized(b: Builder, value: Instruction, shape: tuple[int, ...]) -> Instruction:
    """The elements of `value` backwards, repeated or cut to fill `shape`."""
    have, want = value.tensor_type.size, math.prod(shape)
    if not have:
        return b.constant(np.ones(shape, np.int32))
    flat = b.reverse(_flat(b, value), [0])
    many = b.concatenate([flat] * -(-want // have), 0) if want > have else flat
    return b.reshape(b.slice(many, [0], [want]), shape)


def _updated(random: Random, b: Builder, values: list[Instruction]) -> Instruction:
    """A value with a part of it overwritten, from a start that is only known at run time."""
    target = _pick(random, values)
    flat = _flat(b, target)
    size = min(3, target.tensor_type.size)
    start = b.reshape(_resized(b, _pick(random, values), (1,)), ())
    return b.dynamic_update_slice(flat, _resized(b, _pick(random, values), (size,)), [start])


def _sorted(random: Random, b: Builder, values: list[Instruction]) -> list[Instruction]:
    """Two results of one instruction: keys in order, and values carried along."""
    keys = _flat(b, _pick(random, values))
    carried = _resized(b, _pick(random, values), keys.shape)
    less = Builder("less")
    a, c, *_ = [less.parameter(TensorType(S32)) for _ in range(4)]
    done = b.sort([keys, carried], 0, less.build(less.compare(a, c, "LT")))
    return _elements(b, done, 2)


def _constant(random: Random, b: Builder, type: TensorType) -> Instruction:
    return b.constant(np.full(type.shape, random.randint(-3, 3), np.int32))


def _value_of(random: Random, b: Builder, values: list[Instruction], type: TensorType) -> Instruction:
    """A value of `type`: mostly an existing one, else a constant."""
    same = [v for v in values if v.type == type]
    return _pick(random, same) if same and random.random() < 0.9 else _constant(random, b, type)


def _elements(b: Builder, value: Instruction, count: int) -> list[Instruction]:
    return [b.get_tuple_element(value, k) for k in range(count)]


def _loop(random: Random, b: Builder, values: list[Instruction], size: int, depth: int) -> list[Instruction]:
    inits = [_pick(random, values) for _ in range(random.randint(1, 4))]
    state = b.tuple(b.constant(np.int32(random.randint(0, 3))), *inits)
    body = Builder(f"body{depth}")
    parameter = body.parameter(state.type)
    counter, *leaves = _elements(body, parameter, len(inits) + 1)
    inner = list(leaves)
    _grow(random, body, inner, size, depth)
    roots = [_value_of(random, body, inner + leaves, leaf.tensor_type) for leaf in leaves]
    counter = body.subtract(counter, body.constant(np.int32(1)))
    check = Builder(f"condition{depth}")
    left, *others = _elements(check, check.parameter(state.type), len(inits) + 1)
    if random.random() < 0.3:
        _grow(random, check, others, 3, 0)
        zero = [o for o in others if o.shape == ()]
        left = check.maximum(left, zero[0]) if zero else left
    condition = check.build(check.compare(left, check.constant(np.int32(0)), "GT"))
    done = b.while_(state, condition, body.build(body.tuple(counter, *roots)))
    return _elements(b, done, len(inits) + 1)[1:]


def _branch(random: Random, b: Builder, values: list[Instruction], size: int, depth: int) -> list[Instruction]:
    arguments = [_pick(random, values) for _ in range(random.randint(1, 3))]
    argument = b.tuple(*arguments)
    types = [random.choice(values).tensor_type for _ in range(random.randint(1, 3))]
    by_predicate = random.random() < 0.5
    count = 2 if by_predicate else random.randint(1, 3)
    cases = [_case(random, argument, len(arguments), types, size, depth) for _ in range(count)]
    number = b.constant(np.int32(random.randint(-1, 3)))
    index = b.compare(number, b.constant(np.int32(1)), "GT") if by_predicate else b.negate(number)
    assert index.type in (TensorType(PRED), TensorType(S32))
    return _elements(b, b.conditional(index, [argument] * count, cases), len(types))


def _case(
    random: Random, argument: Instruction, count: int, types: list[TensorType], size: int, depth: int
) -> Computation:
    case = Builder(f"case{depth}")
    inner = _elements(case, case.parameter(argument.type), count)
    _grow(random, case, inner, size, depth)
    return case.build(case.tuple(*(_value_of(random, case, inner, type) for type in types)))


def _call(random: Random, b: Builder, values: list[Instruction], size: int, depth: int) -> list[Instruction]:
    arguments = [_pick(random, values) for _ in range(random.randint(1, 3))]
    callee = Builder(f"callee{depth}")
    inner = [callee.parameter(a.type) for a in arguments]
    _grow(random, callee, inner, size, depth)
    computation = callee.build(callee.tuple(*(_pick(random, inner) for _ in range(2))))
    calls = [b.call(computation, *arguments) for _ in range(random.randint(1, 2))]
    return [e for call in calls for e in _elements(b, call, 2)]
