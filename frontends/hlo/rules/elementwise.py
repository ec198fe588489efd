"""Operations on elements: StableHLO's names are HLO's with underscores."""

from collections.abc import Callable

from onnxla.frontends.hlo.operation_view import OperationView
from onnxla.frontends.hlo.registry import stablehlo_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import OPS
from onnxla.hlo.xla_forms import ordered_compare, reduced_precision

UNARY = (
    "abs cbrt ceil cosine count_leading_zeros exponential exponential_minus_one floor imag is_finite log log_plus_one "
    "logistic negate not popcnt real round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh"
).split()

BINARY = (
    "add and atan2 complex divide maximum minimum multiply or power remainder shift_left shift_right_arithmetic "
    "shift_right_logical subtract xor"
).split()

CHLO = "acos acosh asin asinh atanh cosh sinh tan erf".split()
"""Operations of CHLO that HLO has. On complex numbers they are written out by JAX."""


def _spelled(opcode: str, count: int) -> Callable[[OperationView, Builder], Instruction]:
    def rule(node: OperationView, b: Builder) -> Instruction:
        if len(node.operands) != count:
            node.shape_error(f"{count} operands were expected, there are {len(node.operands)}")
        return b.emit(OPS[opcode](), *node.operands)

    return rule


for _name in UNARY:
    stablehlo_op(_name)(_spelled(_name.replace("_", "-"), 1))
for _name in BINARY:
    stablehlo_op(_name)(_spelled(_name.replace("_", "-"), 2))
for _name in CHLO:
    stablehlo_op(f"chlo.{_name}")(_spelled(_name, 1))


@stablehlo_op("chlo.square")
def square(node: OperationView, b: Builder) -> Instruction:
    return b.multiply(node.operand(0), node.operand(0))


@stablehlo_op("compare")
def compare(node: OperationView, b: Builder) -> Instruction:
    """Total order, where it is asked for; signed or not is the elements' business."""
    direction = node.word("comparison_direction", position=0)
    kind = node.word("compare_type", default="NOTYPE", position=1)
    lhs, rhs = node.operand(0), node.operand(1)
    return ordered_compare(b, lhs, rhs, direction) if kind == "TOTALORDER" else b.compare(lhs, rhs, direction)


@stablehlo_op("select")
def select(node: OperationView, b: Builder) -> Instruction:
    return b.select(node.operand(0), node.operand(1), node.operand(2))


@stablehlo_op("clamp")
def clamp(node: OperationView, b: Builder) -> Instruction:
    return b.clamp(node.operand(0), node.operand(1), node.operand(2))


@stablehlo_op("convert")
def convert(node: OperationView, b: Builder) -> Instruction:
    return b.convert(node.operand(0), node.element())


@stablehlo_op("bitcast_convert")
def bitcast_convert(node: OperationView, b: Builder) -> Instruction:
    return b.bitcast_convert(node.operand(0), node.result_type())


@stablehlo_op("reduce_precision")
def reduce_precision(node: OperationView, b: Builder) -> Instruction:
    if node.has("format"):
        exponent, mantissa = node.ints("format")
    else:
        exponent, mantissa = node.integer("exponent_bits"), node.integer("mantissa_bits")
    return reduced_precision(b, node.operand(0), exponent, mantissa)
