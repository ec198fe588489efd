"""What a value of a TensorFlow graph can be while it is imported.

Tensors are HLO instructions. Strings exist only as constants, handles only as names, and lists of tensors only with a
known length: as one tensor whose first dimension counts the elements.
"""

from dataclasses import dataclass
from typing import TypeAlias

from onnxla.frontends.onnx.values import StringConstant
from onnxla.frontends.poison import Poison
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array, ElementType

__all__ = [
    "COMPUTING",
    "Binding",
    "Handle",
    "ListValue",
    "Nothing",
    "StringConstant",
    "TableHandle",
    "Uniform",
    "Value",
    "describe",
]


@dataclass(frozen=True)
class Handle:
    """A variable: its resource, or in TensorFlow 1 a reference, which reads as its value."""

    name: str
    is_reference: bool = False

    def __str__(self) -> str:
        return f"variable {self.name}"


@dataclass(frozen=True)
class TableHandle:
    """A hash table, by name."""

    name: str

    def __str__(self) -> str:
        return f"table {self.name}"


@dataclass(frozen=True, eq=False)
class Uniform:
    """What is known of a list that grows: each element is `value`; None while there is no element."""

    value: Array | None


@dataclass(frozen=True)
class ListValue:
    """A TensorList: `stack` holds its elements; none while nothing was written to it and their shape is open."""

    length: int
    element: ElementType
    stack: Instruction | None
    shape: tuple[int | None, ...] | None = None
    """What is known of the elements' shape while there is no stack."""
    count: Instruction | None = None
    """How many elements there are (a scalar s64) of a list that grows, of which `length` is the most; else all."""
    uniform: Uniform | None = None
    """Gradients keep sizes in such lists, which must be known when they are taken out again."""

    def __str__(self) -> str:
        shape = "..." if self.stack is None else ",".join(map(str, self.stack.shape[1:]))
        most = "at most " if self.count is not None else ""
        return f"list of {most}{self.length} {self.element}[{shape}]"


@dataclass(frozen=True)
class Nothing:
    """What has no value: an iterator, a table, the output of an operation that gives none."""

    what: str

    def __str__(self) -> str:
        return self.what


Value: TypeAlias = Instruction | StringConstant | Handle | TableHandle | ListValue | Nothing
Binding: TypeAlias = Value | Poison
"""A value, or what stands for one that failed to import."""

COMPUTING = frozenset(
    "Abs Add AddV2 AvgPool BatchMatMul BatchMatMulV2 BiasAdd Cast Ceil Concat ConcatV2 Conv2D DepthwiseConv2dNative "
    "Div Elu Equal Erf Exp ExpandDims Floor FusedBatchNormV3 Gather GatherV2 Greater GreaterEqual Identity IdentityN "
    "LeakyRelu Less LessEqual Log LogicalAnd LogicalNot LogicalOr MatMul Max MaxPool Maximum Mean Min Minimum Mul Neg "
    "NotEqual Pow RealDiv Relu Relu6 Reshape Round Rsqrt SelectV2 Sigmoid Slice Softmax Softplus Split Sqrt Square "
    "Squeeze StridedSlice Sub Sum Tanh TopKV2 Transpose".split()
)
"""Operations that compute every output from the elements of every input."""


def describe(value: Value | Poison) -> str:
    """The type in words, for messages."""
    return str(value.type).split("{")[0] if isinstance(value, Instruction) else str(value)
