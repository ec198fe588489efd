"""Index expressions: what position of an operand a position of the result reads.

An expression is a sum of integer multiples of atoms plus a constant. An atom is a variable with a
known range, or a floor division or remainder by a positive constant. Expressions are kept in normal
form, and ranges decide what vanishes: with 0 <= lane < 8, `(8*i + lane) // 16` is `i // 2`.

Every HLO op that moves data is a map over these (`codegen/kernels/value.py`), so composing maps
through a fusion is substitution, and a schedule can ask the result how it steps along the vector.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from onnxla.hlo.types import Shape, row_major_strides


@dataclass(frozen=True, eq=False)
class Variable:
    """An index variable with values in [low, high]. Identity counts, not the name."""

    name: str
    low: int
    high: int
    per_lane: bool = False
    """Each lane of the vector has its own value (the lane number itself, or data read per lane)."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class FloorDiv:
    operand: "Expr"
    divisor: int

    @property
    def low(self) -> int:
        return self.operand.low // self.divisor

    @property
    def high(self) -> int:
        return self.operand.high // self.divisor

    def __str__(self) -> str:
        return f"({self.operand}) // {self.divisor}"


@dataclass(frozen=True)
class Mod:
    operand: "Expr"
    divisor: int

    @property
    def low(self) -> int:
        return 0

    @property
    def high(self) -> int:
        return self.divisor - 1

    def __str__(self) -> str:
        return f"({self.operand}) % {self.divisor}"


Atom = Variable | FloorDiv | Mod


def _order(atom: Atom) -> tuple[int, str, int]:
    if isinstance(atom, Variable):
        return (0, atom.name, id(atom))
    return (1, str(atom), 0)


@dataclass(frozen=True)
class Expr:
    """`sum(coefficient * atom) + constant`, with atoms in a fixed order and no zero coefficient."""

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.terms, self.constant))

    @cached_property
    def low(self) -> int:
        """A lower bound of the value, inclusive."""
        return self.constant + sum(c * (a.low if c > 0 else a.high) for a, c in self.terms)

    @cached_property
    def high(self) -> int:
        """An upper bound of the value, inclusive."""
        return self.constant + sum(c * (a.high if c > 0 else a.low) for a, c in self.terms)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @cached_property
    def per_lane(self) -> bool:
        """Whether the value differs between the lanes of a vector."""
        return any(a.per_lane if isinstance(a, Variable) else a.operand.per_lane for a, _ in self.terms)

    def __add__(self, other: "Expr | int") -> "Expr":
        if isinstance(other, int):
            return Expr(self.terms, self.constant + other) if other else self
        if not other.terms:
            return self + other.constant
        if not self.terms:
            return other + self.constant
        merged = dict(self.terms)
        for atom, coefficient in other.terms:
            merged[atom] = merged.get(atom, 0) + coefficient
        return _normal(merged, self.constant + other.constant)

    def __sub__(self, other: "Expr | int") -> "Expr":
        return self + (-other if isinstance(other, int) else other * -1)

    def __mul__(self, factor: int) -> "Expr":
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        return Expr(tuple((a, c * factor) for a, c in self.terms), self.constant * factor)

    def __floordiv__(self, divisor: int) -> "Expr":
        """Floor division by a positive constant."""
        if divisor == 1:
            return self
        if len(self.terms) == 1 and not self.constant:
            inner, coefficient = self.terms[0]
            if coefficient == 1 and isinstance(inner, FloorDiv):
                return inner.operand // (inner.divisor * divisor)
        whole, rest = self._split(divisor)
        if rest.low // divisor == rest.high // divisor:
            return whole + rest.low // divisor
        common, coarse, fine = rest._coarsen(divisor)
        if fine is not None:
            return whole + coarse // (divisor // common)
        return whole + Expr(((FloorDiv(rest, divisor), 1),))

    def __mod__(self, divisor: int) -> "Expr":
        """The remainder in [0, divisor)."""
        if divisor == 1:
            return ZERO
        _, rest = self._split(divisor)
        quotient = rest.low // divisor
        if quotient == rest.high // divisor:
            return rest - quotient * divisor
        common, coarse, fine = rest._coarsen(divisor)
        if fine is not None:
            return (coarse % (divisor // common)) * common + fine
        return Expr(((Mod(rest, divisor), 1),))

    def _split(self, divisor: int) -> tuple["Expr", "Expr"]:
        """`self == whole * divisor + rest`, with every multiple of the divisor in `whole`."""
        whole = tuple((a, c // divisor) for a, c in self.terms if c % divisor == 0)
        rest = tuple((a, c) for a, c in self.terms if c % divisor)
        return Expr(whole, self.constant // divisor), Expr(rest, self.constant % divisor)

    def _coarsen(self, divisor: int) -> tuple[int, "Expr", "Expr | None"]:
        """`self == common * coarse + fine` with 0 <= fine < common and common dividing the divisor."""
        candidates = {math.gcd(c, divisor) for _, c in self.terms} - {1}
        for common in sorted(candidates, reverse=True):
            coarse, fine = self._split(common)
            if 0 <= fine.low and fine.high < common:
                return common, coarse, fine
        return 1, self, None

    def substitute(self, replacements: dict[Variable, "Expr"]) -> "Expr":
        """The expression with variables replaced, simplified anew."""
        total = Expr((), self.constant)
        for atom, coefficient in self.terms:
            if isinstance(atom, Variable):
                part = replacements.get(atom, Expr(((atom, 1),)))
            elif isinstance(atom, FloorDiv):
                part = atom.operand.substitute(replacements) // atom.divisor
            else:
                part = atom.operand.substitute(replacements) % atom.divisor
            total = total + part * coefficient
        return total

    def coefficient(self, variable: Variable) -> int | None:
        """How far one step of the variable moves the value; None where the step is not constant."""
        for atom, _ in self.terms:
            if not isinstance(atom, Variable) and atom.operand.mentions(variable):
                return None
        return dict(self.terms).get(variable, 0)

    def mentions(self, variable: Variable) -> bool:
        return any(a is variable if isinstance(a, Variable) else a.operand.mentions(variable) for a, _ in self.terms)

    def __str__(self) -> str:
        parts = [str(a) if c == 1 else f"{c}*{a}" for a, c in self.terms]
        parts += [str(self.constant)] if self.constant or not parts else []
        return " + ".join(parts)


def _normal(terms: dict[Atom, int], constant: int) -> Expr:
    for atom, coefficient in list(terms.items()):
        if isinstance(atom, Mod) and coefficient:
            quotient = atom.operand // atom.divisor
            if len(quotient.terms) == 1 and quotient.constant == 0:
                ((partner, one),) = quotient.terms
                if one == 1 and terms.get(partner) == coefficient * atom.divisor:
                    # d * (x // d) + x % d == x
                    rest = {a: c for a, c in terms.items() if a is not atom and a != partner}
                    return _normal(rest, constant) + atom.operand * coefficient
    kept = sorted(((a, c) for a, c in terms.items() if c), key=lambda term: _order(term[0]))
    return Expr(tuple(kept), constant)


ZERO = Expr()


def constant(value: int) -> Expr:
    return Expr((), value)


def of(variable: Variable) -> Expr:
    """The expression that is just this variable; a constant where its range holds one value."""
    return constant(variable.low) if variable.low == variable.high else Expr(((variable, 1),))


def linearize(index: tuple[Expr, ...], shape: Shape) -> Expr:
    """Position in a dense row-major array."""
    total = ZERO
    for expr, stride in zip(index, row_major_strides(shape), strict=True):
        total = total + expr * stride
    return total


def delinearize(position: Expr, shape: Shape) -> tuple[Expr, ...]:
    """The index of a position, which must lie inside the array."""
    index: list[Expr] = []
    for dimension, stride in enumerate(row_major_strides(shape)):
        quotient = position // stride if stride else ZERO
        index.append(quotient if dimension == 0 else quotient % shape[dimension])
    return tuple(index)


def reshape(index: tuple[Expr, ...], source: Shape, target: Shape) -> tuple[Expr, ...]:
    """The index into `target` of the element at `index` in `source`: equal row-major positions.

    Dimensions are first grouped where the products of sizes agree, so that a reshape which only
    splits or merges a few dimensions leaves the others untouched.
    """
    result: list[Expr] = []
    if 0 in source:
        return (ZERO,) * len(target)
    i = j = 0
    while i < len(source) or j < len(target):
        first_i, first_j = i, j
        left = source[i] if i < len(source) else 1
        right = target[j] if j < len(target) else 1
        i, j = min(i + 1, len(source)), min(j + 1, len(target))
        while left != right:
            if left < right:
                left *= source[i]
                i += 1
            else:
                right *= target[j]
                j += 1
        group = linearize(index[first_i:i], source[first_i:i])
        result += delinearize(group, target[first_j:j])
    return tuple(result)
