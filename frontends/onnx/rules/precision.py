"""The type that sums and normalisations compute in: half precision accumulates in f32."""

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, ElementType

WIDTH_OF_SINGLE = 32


def wide_element(element: ElementType) -> ElementType:
    """f32 for the narrower floating types, otherwise `element` itself."""
    return F32 if element.is_float and element.bits < WIDTH_OF_SINGLE else element


def widen(b: Builder, value: Instruction) -> Instruction:
    """`value` in the type that sums over it are computed in."""
    return b.convert(value, wide_element(value.tensor_type.element))
