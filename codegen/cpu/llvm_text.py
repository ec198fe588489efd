"""LLVM IR as text: types, constants, and names for the values of a kernel."""

import struct

from onnxla.codegen.kernels.ir import KernelType, Value
from onnxla.errors import InternalError
from onnxla.hlo.types import F16, F32, F64, PRED, ElementType, Kind

_FLOATS = {F16: "half", F32: "float", F64: "double"}


def scalar_type(element: ElementType) -> str:
    """`float`, `i32`. Raises InternalError for an element that kernels do not compute in."""
    if element in _FLOATS:
        return _FLOATS[element]
    if element is PRED:
        return "i1"
    if element.kind in (Kind.SIGNED, Kind.UNSIGNED) and element.bits >= 8:
        return f"i{element.bits}"
    raise InternalError(f"{element} is not a type of the kernel IR")


def llvm_type(type: KernelType) -> str:
    """`float`, `<8 x float>`."""
    scalar = scalar_type(type.element)
    return scalar if type.lanes == 1 else f"<{type.lanes} x {scalar}>"


def suffix_of(type: KernelType) -> str:
    """How an overloaded intrinsic spells a type: `v8f32`, `i64`."""
    scalar = f"f{type.element.bits}" if type.element.is_float else scalar_type(type.element)
    return scalar if type.lanes == 1 else f"v{type.lanes}{scalar}"


def scalar_constant(value: object, element: ElementType) -> str:
    """A number without its type; floats bit for bit, one NaN for all."""
    if element is PRED:
        return "true" if value else "false"
    if element in _FLOATS:
        assert isinstance(value, float)
        if value != value:
            value = float("nan")
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    return str(value)


def splat_of(like: Value, number: float | int) -> str:
    """A number of the type of a value, without the type."""
    scalar = scalar_constant(number, like.element)
    return scalar if like.lanes == 1 else f"splat ({scalar_type(like.element)} {scalar})"


class Writer:
    """The lines of a function, and what its values are called in them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.counter = 0

    def fresh(self, text: str) -> str:
        """A line that computes a value; returns its name."""
        name = f"%v{self.counter}"
        self.counter += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def ref(self, value: Value) -> str:
        """A value without its type."""
        if value.is_constant:
            scalar = scalar_constant(value.attributes[0], value.element)
            return scalar if value.lanes == 1 else f"splat ({scalar_type(value.element)} {scalar})"
        return self.names[value]

    def typed(self, value: Value) -> str:
        """A value behind its type."""
        return f"{llvm_type(value.type)} {self.ref(value)}"

    def copies(self, x: Value, lanes: int) -> str:
        """A vector of copies of a scalar."""
        kind = llvm_type(x.type.with_lanes(lanes))
        one = self.fresh(f"insertelement {kind} poison, {self.typed(x)}, i64 0")
        return self.fresh(f"shufflevector {kind} {one}, {kind} poison, <{lanes} x i32> zeroinitializer")
