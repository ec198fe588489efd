"""Half precision for CPUs that cannot convert it: IEEE 754's binary16 to f32 and back, in integers of 32 bits.

LLVM would call two functions of the compiler's library for it, which compiled models do not have. A half's exponent,
placed in f32's field, is off by the difference of the biases, 112; a product with 2^112 mends it exactly, subnormals
included (https://gist.github.com/rygorous/2156668).
"""

from onnxla.codegen.cpu.llvm_text import Writer, llvm_type
from onnxla.codegen.kernels.ir import KernelType, Value
from onnxla.hlo.types import F16, F32, PRED, U16, U32, ElementType


def half_to_float(writer: Writer, x: Value) -> str:
    """The name of an f16 value as f32, which is exact; NaN becomes quiet and keeps its payload."""
    w = _Bits(writer, x.type)
    raw = writer.fresh(f"bitcast {writer.typed(x)} to {w.type(U16)}")
    code = writer.fresh(f"zext {w.type(U16)} {raw} to {w.word}")
    magnitude = w.apply("and", code, 0x7FFF)
    placed = w.apply("shl", magnitude, 13)
    scaled = w.of_float(writer.fresh(f"fmul {w.float} {w.as_float(placed)}, {w.splat('float 0x46F0000000000000')}"))
    special = w.apply("or", placed, 0x7F800000)
    quiet = w.select(w.above(magnitude, 0x7C00), w.apply("or", special, 0x00400000), special)
    value = w.select(w.above(magnitude, 0x7BFF), quiet, scaled)
    sign = w.apply("shl", w.apply("and", code, 0x8000), 16)
    return w.as_float(writer.fresh(f"or {w.word} {value}, {sign}"))


def float_to_half(writer: Writer, x: Value) -> str:
    """The name of an f32 value rounded to f16, to nearest even; NaN becomes quiet and keeps its payload's top bits."""
    w = _Bits(writer, x.type)
    bits = w.of_float(writer.ref(x))
    magnitude = w.apply("and", bits, 0x7FFFFFFF)
    # the last place of 1/2 is that of subnormal halves: a sum with it rounds to them
    sum_ = writer.fresh(f"fadd {w.float} {w.as_float(magnitude)}, {w.splat('float 5.000000e-01')}")
    small = w.apply("sub", w.of_float(sum_), 0x3F000000)
    odd = w.apply("and", w.apply("lshr", magnitude, 13), 1)
    rebiased = w.apply("sub", magnitude, (112 << 23) - 0xFFF)
    normal = w.apply("lshr", writer.fresh(f"add {w.word} {rebiased}, {odd}"), 13)
    payload = w.apply("or", w.apply("and", w.apply("lshr", magnitude, 13), 0x3FF), 0x7E00)
    special = w.select(w.above(magnitude, 0x7F800000), payload, w.splat(f"i32 {0x7C00}"))
    finite = w.select(w.above(magnitude, 0x387FFFFF), normal, small)
    value = w.select(w.above(magnitude, 0x477FFFFF), special, finite)
    sign = w.apply("lshr", w.apply("and", bits, 0x80000000), 16)
    whole = writer.fresh(f"or {w.word} {value}, {sign}")
    raw = writer.fresh(f"trunc {w.word} {whole} to {w.type(U16)}")
    return writer.fresh(f"bitcast {w.type(U16)} {raw} to {w.type(F16)}")


class _Bits:
    """Operations on the bits of f32 numbers, as many beside one another as a type has lanes."""

    def __init__(self, writer: Writer, type: KernelType) -> None:
        self._writer, self._type = writer, type
        self.word, self.float = self.type(U32), self.type(F32)

    def type(self, element: ElementType) -> str:
        return llvm_type(self._type.with_element(element))

    def splat(self, constant: str) -> str:
        """A constant, such as `i32 7`, for each lane, without the type."""
        return f"splat ({constant})" if self._type.lanes > 1 else constant.partition(" ")[2]

    def apply(self, opcode: str, bits: str, number: int) -> str:
        return self._writer.fresh(f"{opcode} {self.word} {bits}, {self.splat(f'i32 {number}')}")

    def above(self, magnitude: str, number: int) -> str:
        """Whether bits without a sign are more than a number."""
        return self._writer.fresh(f"icmp sgt {self.word} {magnitude}, {self.splat(f'i32 {number}')}")

    def select(self, condition: str, yes: str, no: str) -> str:
        return self._writer.fresh(f"select {self.type(PRED)} {condition}, {self.word} {yes}, {self.word} {no}")

    def as_float(self, bits: str) -> str:
        return self._writer.fresh(f"bitcast {self.word} {bits} to {self.float}")

    def of_float(self, value: str) -> str:
        return self._writer.fresh(f"bitcast {self.float} {value} to {self.word}")
