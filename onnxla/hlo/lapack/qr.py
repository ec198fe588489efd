"""QR by Householder's reflections (geqrf), and their product (orgqr, ungqr)."""

from onnxla.hlo.builder import Builder
from onnxla.hlo.matrices import (
    compared_to,
    conjugate,
    counted,
    identity,
    kept,
    line,
    places,
    real,
    reduced,
    squared,
    stretched,
    swapped,
    with_line,
)
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32, TensorType


def qr(b: Builder, a: Instruction) -> tuple[Instruction, Instruction]:
    """R on and above the diagonal, and below it the reflections v, whose head is 1; and the factor of each.

    As in LAPACK: H = I - factor v v^H, R = ... H2^H H1^H A, and the diagonal of R is real.
    """
    rank, (m, n) = len(a.shape), a.shape[-2:]
    row, column = rank - 2, rank - 1
    count, batch, element = min(m, n), a.shape[:-2], a.tensor_type.element

    def body(s: Builder, j: Instruction, states: list[Instruction], _: list[Instruction]) -> list[Instruction]:
        matrix, factors = states
        here = s.broadcast_scalar(j, (*batch, 1, 1))
        x, alpha = line(s, matrix, j, column), line(s, line(s, matrix, j, column), j, row)
        at = places(s, x, row)
        below, head = compared_to(s, at, "GT", here), compared_to(s, at, "EQ", here)
        v, beta, factor = _reflection(s, kept(s, below, x), alpha, row)
        v = s.select(head, s.full_like(v, 1), v)

        # (I - conj(factor) v v^H) of the columns behind
        right = kept(s, compared_to(s, places(s, matrix, column), "GT", here), matrix)
        seen = s.matmul(conjugate(s, swapped(s, v)), right)
        change = stretched(s, "multiply", v, stretched(s, "multiply", conjugate(s, factor), seen))
        matrix = s.subtract(matrix, change)
        done = s.select(below, v, s.select(head, s.numpy_broadcast(beta, x.shape), x))
        matrix = with_line(s, matrix, done, j, column)
        return [matrix, with_line(s, factors, s.reshape(factor, (*batch, 1)), j, rank - 2)]

    states = [a, b.full((*batch, count), 0, element)]
    packed, factors = counted(b, count, states, [], body) if 0 not in a.shape else states
    return packed, factors


def _reflection(
    b: Builder, below: Instruction, alpha: Instruction, row: int
) -> tuple[Instruction, Instruction, Instruction]:
    """v without its head, what the column becomes, and the factor (larfg). Nothing happens where `below` is 0 and the
    head real."""
    element = below.tensor_type.element
    # lengths by the largest element, so that squares neither overflow nor vanish
    size = b.maximum(reduced(b, "maximum", b.unary("abs", below), row), b.unary("abs", alpha))
    scale = b.select(compared_scalar(b, size, "EQ", 0), b.full_like(size, 1), size)
    units = [b.divide(v, b.numpy_broadcast(b.convert(scale, element), v.shape)) for v in (below, alpha)]
    parts = [squared(b, unit) for unit in units]
    length = b.multiply(scale, b.unary("sqrt", b.add(reduced(b, "add", parts[0], row), parts[1])))
    head = real(b, alpha)
    beta = b.select(compared_scalar(b, head, "LT", 0), length, b.negate(length))
    tail = reduced(b, "maximum", b.unary("abs", below), row)
    is_done = compared_scalar(b, tail, "EQ", 0)
    if element.is_complex:
        is_done = b.and_(is_done, compared_scalar(b, b.unary("imag", alpha), "EQ", 0))
    safe = b.select(is_done, b.full_like(beta, 1), beta)
    wide = b.convert(safe, element)
    factor = b.select(is_done, b.full_like(alpha, 0), b.divide(b.subtract(wide, alpha), wide))
    divisor = b.select(is_done, b.full_like(alpha, 1), b.subtract(alpha, wide))
    v = stretched(b, "divide", below, divisor)
    return v, b.select(is_done, alpha, wide), factor


def compared_scalar(b: Builder, x: Instruction, direction: str, to: float) -> Instruction:
    """Real numbers compared with one."""
    return b.compare(x, b.full_like(x, to), direction)


def product_of_reflections(b: Builder, packed: Instruction, factors: Instruction) -> Instruction:
    """The first columns of H1 H2 ..., as many as `packed` has, with the reflections below its diagonal."""
    rank = len(packed.shape)
    row, column = rank - 2, rank - 1
    batch, count = packed.shape[:-2], factors.shape[-1]

    def body(s: Builder, k: Instruction, states: list[Instruction], others: list[Instruction]) -> list[Instruction]:
        (product,), (reflections, weights) = states, others
        j = s.subtract(s.constant(count - 1, S32), k)
        here = s.broadcast_scalar(j, (*batch, 1, 1))
        v = line(s, reflections, j, column)
        at = places(s, v, row)
        v = kept(s, compared_to(s, at, "GT", here), v)
        v = s.select(compared_to(s, at, "EQ", here), s.full_like(v, 1), v)
        factor = s.reshape(line(s, weights, j, rank - 2), (*batch, 1, 1))
        seen = s.matmul(conjugate(s, swapped(s, v)), product)
        change = stretched(s, "multiply", stretched(s, "multiply", v, factor), seen)
        return [s.subtract(product, change)]

    start = identity(b, TensorType(packed.tensor_type.element, packed.shape))
    if 0 in packed.shape or count == 0:
        return start
    (product,) = counted(b, count, [start], [packed, factors], body)
    return product
