"""Values that come from nowhere, and tuples: parameter, constant, iota, tuple, get-tuple-element."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxla.hlo.attributes import INT
from onnxla.hlo.literal import Literal
from onnxla.hlo.op import Op, attribute, fail, from_result, require, require_tensor
from onnxla.hlo.types import Array, TensorType, TupleType, Type, Value


@dataclass(frozen=True)
class Parameter(Op, name="parameter"):
    """Argument `number` of the computation. The number is printed as the operand."""

    number: int
    type: Type = from_result(lambda result: result)

    def infer(self) -> Type:
        require(self.number >= 0, f"parameter number {self.number} is negative")
        return self.type

    def evaluate(self) -> Value:
        fail(f"parameter {self.number} has no value outside a call of its computation")


@dataclass(frozen=True)
class Constant(Op, name="constant"):
    """A fixed array. The value is printed as the operand."""

    literal: Literal

    def infer(self) -> TensorType:
        return self.literal.type

    def evaluate(self) -> Array:
        return self.literal.array


@dataclass(frozen=True)
class Iota(Op, name="iota"):
    """Each element is its index along `dimension`."""

    type: TensorType = from_result(require_tensor)
    dimension: int = attribute("iota_dimension", INT)

    def infer(self) -> TensorType:
        require(
            0 <= self.dimension < self.type.rank, f"iota_dimension {self.dimension} is out of range for {self.type}"
        )
        return self.type

    def evaluate(self) -> Array:
        shape = [1] * self.type.rank
        shape[self.dimension] = -1
        line = np.arange(self.type.shape[self.dimension]).astype(self.type.element.dtype)
        return np.ascontiguousarray(np.broadcast_to(line.reshape(shape), self.type.shape))


@dataclass(frozen=True)
class Tuple(Op, name="tuple"):
    """The operands as one value."""

    def infer(self, *operands: Type) -> TupleType:
        return TupleType(operands)

    def evaluate(self, *operands: Value) -> tuple[Value, ...]:
        return operands


@dataclass(frozen=True)
class GetTupleElement(Op, name="get-tuple-element"):
    """Element `index` of a tuple."""

    index: int = attribute("index", INT)

    def infer(self, operand: Type) -> Type:
        if not isinstance(operand, TupleType):
            fail(f"get-tuple-element needs a tuple, got {operand}")
        require(0 <= self.index < len(operand.elements), f"index {self.index} is out of range for {operand}")
        return operand.elements[self.index]

    def evaluate(self, operand: tuple[Any, ...]) -> Value:
        return operand[self.index]
