"""Fourier transforms, triangular matrices, random bits."""

from onnxla.frontends.hlo.operation_view import OperationView
from onnxla.frontends.hlo.registry import stablehlo_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.linear_algebra import Cholesky, TriangularSolve

_ALGORITHMS = {"DEFAULT": "rng_default", "THREE_FRY": "rng_three_fry", "PHILOX": "rng_philox"}


@stablehlo_op("fft")
def fft(node: OperationView, b: Builder) -> Instruction:
    return b.fft(node.operand(0), node.word("fft_type", "type"), node.ints("fft_length", "length"))


@stablehlo_op("cholesky")
def cholesky(node: OperationView, b: Builder) -> Instruction:
    return b.emit(Cholesky(node.flag("lower", default=False)), node.operand(0))


@stablehlo_op("triangular_solve")
def triangular_solve(node: OperationView, b: Builder) -> Instruction:
    op = TriangularSolve(
        left_side=node.flag("left_side"),
        lower=node.flag("lower"),
        unit_diagonal=node.flag("unit_diagonal"),
        transpose_a=node.word("transpose_a"),
    )
    return b.emit(op, node.operand(0), node.operand(1))


@stablehlo_op("rng_bit_generator")
def rng_bit_generator(node: OperationView, b: Builder) -> list[Instruction]:
    name = node.word("rng_algorithm", "algorithm")
    if name not in _ALGORITHMS:
        node.unsupported(f"the random algorithm {name} is not supported")
    both = b.rng_bit_generator(node.operand(0), node.result_type(1), _ALGORITHMS[name])
    return [b.get_tuple_element(both, k) for k in range(2)]
