"""Where the rows of a batch are in a value, as `row_independence.py` follows them through a program."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Shape


class RowsMix(Exception):
    """Rows depend on one another, or may; the text says why."""


@dataclass(frozen=True)
class Rows:
    """Row r of n is what has indices (o * n + r) * inner + i along `dimension`, for o < outer and i < inner.

    What is there depends on row r of the inputs, on r, and on what all rows share; not on n or on other rows.
    """

    dimension: int
    outer: int = 1
    inner: int = 1

    def size(self, rows: int) -> int:
        """Of the dimension."""
        return self.outer * rows * self.inner

    def at(self, dimension: int) -> "Rows":
        """The same in another dimension."""
        return Rows(dimension, self.outer, self.inner)


@dataclass(frozen=True)
class Even:
    """All that lies along `dimension` is equal and shared by all rows, whose number decides the dimension's size."""

    dimension: int

    def at(self, dimension: int) -> "Even":
        """The same in another dimension."""
        return Even(dimension)


State: TypeAlias = "Rows | Even | tuple[State, ...] | None"
"""Of a value: None where it does not depend on the rows or their number; of a tuple, the states of its elements."""
Placed: TypeAlias = Rows | Even


def placed(state: State) -> Placed | None:
    """The state of a tensor."""
    if isinstance(state, tuple):
        raise RowsMix("it takes a tuple")
    return state


def common(operands: Sequence[Instruction], states: Sequence[State]) -> Placed | None:
    """The state of what is computed from tensors of one shape, element by element; scalars may be among them."""
    found = [placed(s) for s in states]
    rows: set[Placed] = {s for s in found if isinstance(s, Rows)}
    even: set[Placed] = {s for s in found if isinstance(s, Even)}
    if not rows and not even:
        return None
    if len(rows) > 1 or len({s.dimension for s in rows | even}) > 1:
        raise RowsMix("its operands have their rows in different places")
    if any(s is None and operand.tensor_type.rank for s, operand in zip(found, operands, strict=True)):
        raise RowsMix("an operand without rows has an element for each")
    return next(iter(rows or even))


def joined(one: State, other: State) -> State:
    """The state of what is the one value or the other, such as a loop's before and after a round."""
    if one == other:
        return one
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return tuple(joined(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, Rows | Even) and isinstance(other, Rows | Even) and one.dimension == other.dimension:
        if isinstance(one, Even):
            return other
        if isinstance(other, Even):
            return one
    raise RowsMix("a value has rows before and not behind, or in another place")


def reshaped(state: Placed, before: Shape, after: Shape, rows: int) -> Rows:
    """Where the rows are after a reshape: no element moves in memory, so nor do the rows."""
    if isinstance(state, Even):
        if before[state.dimension] % rows:
            raise RowsMix("its dimension is no multiple of the rows")
        state = Rows(state.dimension, 1, before[state.dimension] // rows)
    outer = state.outer * _product(before[: state.dimension])
    inner = state.inner * _product(before[state.dimension + 1 :])
    for dimension, size in enumerate(after):
        left, right = _product(after[:dimension]), _product(after[dimension + 1 :])
        if left and right and outer % left == 0 and inner % right == 0:
            found = Rows(dimension, outer // left, inner // right)
            if found.size(rows) == size:
                return found
    raise RowsMix("it puts parts of rows together")


def _product(sizes: Shape) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result
