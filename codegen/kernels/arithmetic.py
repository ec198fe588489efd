"""What kernels compute with: constants, vectors, arithmetic. Constants fold, index arithmetic with 0 and 1 vanishes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxla.codegen.kernels.ir import BINARY, INDEX, KernelType, Value
from onnxla.codegen.kernels.placement import Placement
from onnxla.errors import InternalError
from onnxla.hlo.types import PRED, ElementType, Kind


class Arithmetic(Placement):
    """Pure operations, each placed as it is asked for."""

    # Constants and vectors

    def const(self, value: Any, element: ElementType = INDEX, lanes: int = 1) -> Value:
        """The same constant in every lane."""
        number = element.dtype.type(value) if element.kind is not Kind.PRED else bool(value)
        key = number.tobytes() if isinstance(number, np.generic) else number
        type = KernelType(element, lanes)
        found = self._numbering[0].get(("const", type, key))
        if found is None:
            found = Value("const", type, (), (number.item() if isinstance(number, np.generic) else number,), 0)
            self._numbering[0]["const", type, key] = found
        return found

    def splat(self, value: Value, lanes: int) -> Value:
        """A vector of `lanes` copies; the value itself where it has that many lanes already."""
        if value.lanes == lanes:
            return value
        if value.lanes != 1:
            raise InternalError(f"cannot splat {value.type} to {lanes} lanes")
        if value.is_constant:
            return self.const(value.attributes[0], value.element, lanes)
        return self._pure("splat", value.type.with_lanes(lanes), (value,))

    def step(self, lanes: int, element: ElementType = INDEX) -> Value:
        """The vector 0, 1, ..., lanes - 1."""
        if lanes == 1:
            return self.const(0, element)
        return self._pure("step", KernelType(element, lanes), ())

    def extract(self, vector: Value, lane: int) -> Value:
        if vector.lanes == 1:
            return vector
        if vector.opcode == "splat":
            return vector.operands[0]
        if vector.is_constant:
            return self.const(vector.attributes[0], vector.element)
        if vector.opcode == "pack":
            return vector.operands[lane]
        return self._pure("extract", vector.type.with_lanes(1), (vector,), (lane,))

    def pack(self, scalars: Sequence[Value]) -> Value:
        """The vector of these scalars."""
        if all(s is scalars[0] for s in scalars):
            return self.splat(scalars[0], len(scalars))
        return self._pure("pack", scalars[0].type.with_lanes(len(scalars)), scalars)

    def shuffle(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        """The vector whose lane k is lane `lanes[k]` of a and b put end to end."""
        if a.lanes == 1:
            return self.pack([(a, b)[k] for k in lanes])
        return self._pure("shuffle", a.type.with_lanes(len(lanes)), (a, b), tuple(lanes))

    def horizontal(self, opcode: str, vector: Value) -> Value:
        """All lanes combined by `opcode`, as a balanced tree: lane k with lane k + n/2, and so on."""
        while vector.lanes > 1:
            vector = self.binary(opcode, self.half(vector, 0), self.half(vector, 1))
        return vector

    def any(self, mask: Value) -> Value:
        """Whether a pred holds in any lane, as a scalar."""
        return mask if mask.lanes == 1 else self._pure("any", mask.type.with_lanes(1), (mask,))

    def half(self, vector: Value, which: int) -> Value:
        """The low (0) or high (1) half of a vector; a scalar where it had two lanes."""
        lanes = vector.lanes // 2
        if lanes == 1:
            return self.extract(vector, which)
        return self.shuffle(vector, vector, range(which * lanes, (which + 1) * lanes))

    # Arithmetic

    def _together(self, *values: Value) -> list[Value]:
        lanes = max(v.lanes for v in values)
        return [self.splat(v, lanes) for v in values]

    def unary(self, opcode: str, x: Value) -> Value:
        return self._pure(opcode, x.type, (x,))

    def binary(self, opcode: str, a: Value, b: Value) -> Value:
        a, b = self._together(a, b)
        if a.type != b.type or opcode not in BINARY:
            raise InternalError(f"{opcode} of {a.type} and {b.type}")
        if a.element is INDEX:
            simple = self._simplify_index(opcode, a, b)
            if simple is not None:
                return simple
        return self._pure(opcode, a.type, (a, b))

    def _simplify_index(self, opcode: str, a: Value, b: Value) -> Value | None:
        if a.is_constant and b.is_constant:
            x, y = a.attributes[0], b.attributes[0]
            folded = {
                "add": lambda: x + y,
                "sub": lambda: x - y,
                "mul": lambda: x * y,
                "div": lambda: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1),
                "rem": lambda: abs(x) % abs(y) * (1 if x >= 0 else -1),
                "min": lambda: min(x, y),
                "max": lambda: max(x, y),
            }.get(opcode)
            return self.const(folded(), INDEX, a.lanes) if folded else None
        if b.is_constant:
            y = b.attributes[0]
            if (opcode in ("add", "sub") and y == 0) or (opcode in ("mul", "div") and y == 1):
                return a
            if (opcode == "mul" and y == 0) or (opcode == "rem" and y == 1):
                return self.const(0, INDEX, a.lanes)
        if a.is_constant and opcode in ("add", "mul"):
            return self.binary(opcode, b, a)
        return None

    def add(self, a: Value, b: Value) -> Value:
        return self.binary("add", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.binary("sub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.binary("mul", a, b)

    def div(self, a: Value, b: Value) -> Value:
        return self.binary("div", a, b)

    def min(self, a: Value, b: Value) -> Value:
        return self.binary("min", a, b)

    def max(self, a: Value, b: Value) -> Value:
        return self.binary("max", a, b)

    def and_(self, a: Value, b: Value) -> Value:
        """Bits, or truth of preds; a constant true or false side vanishes."""
        for x, y in ((a, b), (b, a)):
            if x.is_constant and x.element is PRED:
                return self.splat(y, max(a.lanes, b.lanes)) if x.attributes[0] else x
        return self.binary("and", a, b)

    def or_(self, a: Value, b: Value) -> Value:
        for x, y in ((a, b), (b, a)):
            if x.is_constant and x.element is PRED:
                return x if x.attributes[0] else self.splat(y, max(a.lanes, b.lanes))
        return self.binary("or", a, b)

    def not_(self, x: Value) -> Value:
        if x.is_constant and x.element is PRED:
            return self.const(not x.attributes[0], PRED, x.lanes)
        return self.unary("not", x)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a * b + c with one rounding (floats)."""
        a, b, c = self._together(a, b, c)
        return self._pure("fma", a.type, (a, b, c))

    def multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        """a * b + c, with one rounding where the machine has such an instruction and with two elsewhere."""
        return self.add(self.mul(a, b), c)

    def compare(self, direction: str, a: Value, b: Value) -> Value:
        a, b = self._together(a, b)
        if a.type != b.type:
            raise InternalError(f"compare of {a.type} and {b.type}")
        if a.element is INDEX and a.is_constant and b.is_constant:
            x, y = a.attributes[0], b.attributes[0]
            truth = {"EQ": x == y, "NE": x != y, "LT": x < y, "LE": x <= y, "GT": x > y, "GE": x >= y}[direction]
            return self.const(truth, PRED, a.lanes)
        return self._pure("cmp", a.type.with_element(PRED), (a, b), (direction,))

    def select(self, condition: Value, on_true: Value, on_false: Value) -> Value:
        """A scalar condition may choose between vectors."""
        if condition.is_constant:
            return on_true if condition.attributes[0] else on_false
        on_true, on_false = self._together(on_true, on_false)
        if on_true is on_false:
            return on_true
        if condition.lanes > 1:
            on_true, on_false = self.splat(on_true, condition.lanes), self.splat(on_false, condition.lanes)
        return self._pure("select", on_true.type, (condition, on_true, on_false))

    def convert(self, x: Value, element: ElementType) -> Value:
        """The value in another type.

        Float to float rounds to nearest even; float to integer truncates, NaN is 0 and what is outside the range the
        nearest limit; integer to integer wraps; to pred is `x != 0`.
        """
        if x.element is element:
            return x
        if x.is_constant and x.element is INDEX and element.is_integer:
            return self.const(x.attributes[0], element, x.lanes)
        return self._pure("convert", x.type.with_element(element), (x,))

    def bitcast(self, x: Value, element: ElementType) -> Value:
        """The same bits as another type of the same width."""
        return x if x.element is element else self._pure("bitcast", x.type.with_element(element), (x,))

    def reinterpret(self, x: Value, element: ElementType) -> Value:
        """The bits of a vector as fewer, wider lanes: u8x16 as s32x4, u8x4 as a scalar s32."""
        lanes = x.lanes * x.element.bits // element.bits
        return self._pure("reinterpret", KernelType(element, lanes), (x,))

    def dot_accumulate(self, total: Value, a: Value, b: Value, group: int) -> Value:
        """`total` (s32) plus, in each lane, the products of the `group` narrow integers packed in `a` and `b`.

        With groups of four `a` holds unsigned and `b` signed bytes; with groups of two both hold signed 16 bits.
        """
        total, a, b = self._together(total, a, b)
        return self._pure("dot_accumulate", total.type, (total, a, b), (group,))

    def lookup(self, table: Sequence[int], index: Value) -> Value:
        """In each lane one of the eight S32 numbers of `table`: the last three bits of `index` (S32) say which."""
        return self._pure("lookup", index.type, (index,), tuple(table))
