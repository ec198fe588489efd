"""A small constant matrix applied to vectors: what Winograd's transforms are.

Integers may be added in any order, so rows that differ in signs only, and columns that do, share their sums there.
Floats are added in the order of the columns, those with factor 1 first.
"""

from collections.abc import Sequence

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.winograd_algorithm import Matrix

Row = tuple[float, ...]


def both_ways(b: KernelBuilder, matrix: Matrix, grid: list[list[Value]]) -> list[list[Value]]:
    """matrix * grid * matrix^T."""
    columns = [_apply(b, matrix, [line[j] for line in grid]) for j in range(len(grid))]
    return [_apply(b, matrix, [column[i] for column in columns]) for i in range(len(matrix))]


def _apply(b: KernelBuilder, matrix: Matrix, values: Sequence[Value]) -> list[Value]:
    """matrix * values."""
    if values[0].element.is_float:
        return [_combination(b, row, values) for row in matrix]
    matrix, values = _columns_paired(b, matrix, values)
    done: list[Value | None] = [None] * len(matrix)
    for i, row in enumerate(matrix):
        partner = next(
            (j for j in range(i + 1, len(matrix)) if done[i] is None and _differ_in_signs(row, matrix[j])), None
        )
        if partner is not None:
            even, odd = (
                _combination(b, tuple((x + sign * y) / 2 for x, y in zip(row, matrix[partner], strict=True)), values)
                for sign in (1, -1)
            )
            done[i], done[partner] = b.add(even, odd), b.sub(even, odd)
        else:
            done[i] = _combination(b, row, values)
    return [value for value in done if value is not None]


def _differ_in_signs(one: Row, other: Row) -> bool:
    """Whether both have the same factors up to signs, some alike and some opposite, at least two of each."""
    alike = sum(x == y != 0 for x, y in zip(one, other, strict=True))
    opposite = sum(x == -y != 0 for x, y in zip(one, other, strict=True))
    return alike + opposite == sum(x != 0 for x in one) == sum(x != 0 for x in other) and min(alike, opposite) >= 2


def _columns_paired(b: KernelBuilder, matrix: Matrix, values: Sequence[Value]) -> tuple[Matrix, Sequence[Value]]:
    """Two columns that agree up to the sign in every row, in four rows or more, become their sum and difference."""
    columns = [list(column) for column in zip(*matrix, strict=True)]
    found = list(values)
    for k, one in enumerate(columns):
        for m in range(k + 1, len(columns)):
            other = columns[m]
            if all(abs(x) == abs(y) for x, y in zip(one, other, strict=True)) and sum(x != 0 for x in one) >= 4:
                found[k], found[m] = b.add(found[k], found[m]), b.sub(found[k], found[m])
                columns[m] = [0.0 if x == y else x for x, y in zip(one, other, strict=True)]
                columns[k] = [x if x == y else 0.0 for x, y in zip(one, other, strict=True)]
                one = columns[k]
                break
    return tuple(tuple(row) for row in zip(*columns, strict=True)), found


def _combination(b: KernelBuilder, factors: Row, values: Sequence[Value]) -> Value:
    """The sum of factors * values, without products by 0, 1 and -1."""
    element = values[0].element
    total: Value | None = None
    for c, v in sorted(zip(factors, values, strict=True), key=lambda pair: pair[0] != 1.0):
        if c == 0:
            continue
        if total is None:
            total = v if c == 1 else b.mul(v, b.const(c, element))
        elif abs(c) == 1:
            total = b.add(total, v) if c == 1 else b.sub(total, v)
        else:
            total = b.multiply_add(v, b.const(c, element), total)
    assert total is not None
    return total
