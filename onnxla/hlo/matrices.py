"""Matrices in the last two dimensions of tensors, a batch before them: lines, masks, products, and loops over them."""

from collections.abc import Callable, Sequence

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32, ElementType, TensorType, TupleType, element_of

Body = Callable[[Builder, Instruction, list[Instruction], list[Instruction]], Sequence[Instruction]]
"""(builder, counter, states, constants of the loop) -> next states."""
Test = Callable[[Builder, Instruction, list[Instruction]], Instruction]
"""(builder, counter, states) -> whether the loop goes on."""


def counted(
    b: Builder,
    count: int,
    states: Sequence[Instruction],
    others: Sequence[Instruction],
    body: Body,
    goes_on: Test | None = None,
) -> list[Instruction]:
    """`states` after `count` rounds, or once `goes_on` says no before one of them; `others` do not change."""
    init = b.tuple(b.constant(0, S32), *states, *others)
    assert isinstance(init.type, TupleType)
    test = Builder("counted_condition", source=b.source)
    carried = test.parameter(init.type)
    at, *held = (test.get_tuple_element(carried, k) for k in range(1 + len(states)))
    more = test.compare(at, test.constant(count, S32), "LT")
    if goes_on is not None:
        more = test.and_(more, goes_on(test, at, held))
    condition = test.build(more)
    step = Builder("counted_body", source=b.source)
    carried = step.parameter(init.type)
    at, *values = (step.get_tuple_element(carried, k) for k in range(1 + len(states) + len(others)))
    following = body(step, at, values[: len(states)], values[len(states) :])
    done = step.build(step.tuple(step.add(at, step.constant(1, S32)), *following, *values[len(states) :]))
    loop = b.while_(init, condition, done)
    return [b.get_tuple_element(loop, 1 + k) for k in range(len(states))]


def swapped(b: Builder, x: Instruction) -> Instruction:
    """The transposed matrices."""
    rank = len(x.shape)
    return b.transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def conjugate(b: Builder, x: Instruction) -> Instruction:
    """The conjugate; `x` itself where it is real."""
    if not x.tensor_type.element.is_complex:
        return x
    return b.binary("complex", b.unary("real", x), b.negate(b.unary("imag", x)))


def adjoint(b: Builder, x: Instruction) -> Instruction:
    """The conjugate transposed matrices."""
    return conjugate(b, swapped(b, x))


def real(b: Builder, x: Instruction) -> Instruction:
    """The real part."""
    return b.unary("real", x) if x.tensor_type.element.is_complex else x


def squared(b: Builder, x: Instruction) -> Instruction:
    """|x|**2, real."""
    if not x.tensor_type.element.is_complex:
        return b.multiply(x, x)
    parts = [b.unary(part, x) for part in ("real", "imag")]
    return b.add(*(b.multiply(p, p) for p in parts))


def real_element(element: ElementType) -> ElementType:
    """The type of the real part."""
    return element_of(np.zeros((), element.dtype).real.dtype) if element.is_complex else element


def line(b: Builder, matrix: Instruction, at: Instruction, dimension: int) -> Instruction:
    """Row (dimension rank - 2) or column (rank - 1) `at`, with that dimension left at size 1."""
    zero = b.constant(0, S32)
    starts = [at if d == dimension else zero for d in range(len(matrix.shape))]
    return b.dynamic_slice(matrix, starts, matrix.tensor_type.with_size(dimension, 1).shape)


def with_line(b: Builder, matrix: Instruction, value: Instruction, at: Instruction, dimension: int) -> Instruction:
    """`matrix` with row or column `at` replaced."""
    zero = b.constant(0, S32)
    return b.dynamic_update_slice(matrix, value, [at if d == dimension else zero for d in range(len(matrix.shape))])


def places(b: Builder, x: Instruction, dimension: int) -> Instruction:
    """For each element where it stands along a dimension."""
    return b.iota(TensorType(S32, x.shape), dimension)


def compared_to(b: Builder, numbers: Instruction, direction: str, to: Instruction | int) -> Instruction:
    """`numbers` compared with one number, or with numbers that are stretched."""
    if isinstance(to, int):
        return b.compare(numbers, b.full_like(numbers, to), direction)
    return b.compare(numbers, b.numpy_broadcast(to, numbers.shape), direction)


def kept(b: Builder, where: Instruction, x: Instruction) -> Instruction:
    """`x`, and 0 elsewhere."""
    return b.select(where, x, b.full_like(x, 0))


def reduced(b: Builder, opcode: str, x: Instruction, *dimensions: int) -> Instruction:
    """Reduced along dimensions, which are left at size 1."""
    shape = [1 if d in dimensions else n for d, n in enumerate(x.shape)]
    return b.reshape(b.reduce_by(opcode, x, dimensions), shape)


def stretched(b: Builder, opcode: str, x: Instruction, y: Instruction) -> Instruction:
    """A binary operation on operands that are stretched to each other's shape."""
    shape = np.broadcast_shapes(x.shape, y.shape)
    return b.binary(opcode, b.numpy_broadcast(x, shape), b.numpy_broadcast(y, shape))


def identity(b: Builder, type: TensorType) -> Instruction:
    """1 on the diagonal, 0 elsewhere."""
    rank = len(type.shape)
    rows, columns = (b.iota(TensorType(S32, type.shape), d) for d in (rank - 2, rank - 1))
    return b.convert(b.compare(rows, columns, "EQ"), type.element)


def all_finite(b: Builder, x: Instruction) -> Instruction:
    """For each matrix whether all its elements are finite."""
    rank = len(x.shape)
    parts = [b.unary("real", x), b.unary("imag", x)] if x.tensor_type.element.is_complex else [x]
    finite = [b.reduce_by("and", b.unary("is-finite", p), [rank - 2, rank - 1]) for p in parts]
    return finite[0] if len(finite) == 1 else b.and_(*finite)
