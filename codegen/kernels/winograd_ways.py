"""Which of Winograd's convolutions can compute an instruction: in floats, where they may err more than direct sums do;
of bytes in integers, where the CPU multiplies pairs of 16 bits and the weights show that sums fit."""

from functools import partial

from onnxla.codegen.choices import Way
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.kernels.register_tile import group_of
from onnxla.codegen.kernels.winograd import lower_winograd
from onnxla.codegen.kernels.winograd_algorithm import is_exact
from onnxla.codegen.kernels.winograd_shape import EXACT, FLOATING, SCRATCH_BYTES, Arithmetic, Shape
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Convolution
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import F32, S8, U8
from onnxla.hlo.types import Array as NumpyArray

GAIN = 0.9
"""Part of direct convolution's predicted time below which the model prefers this."""


def winograd_ways(cluster: Cluster, hero: Instruction, target: Target, exact_only: bool) -> list[Way]:
    """Empty where the convolution is of another kind. `exact_only` leaves out what errs more than the direct sum."""
    op = hero.op
    assert isinstance(op, Convolution)
    plain = all(
        (w.size, w.stride, w.window_dilation, w.base_dilation, w.reversal) == (3, 1, 1, 1, False)
        for w in op.window.dimensions
    )
    if not plain or str(op.dimensions) != "b01f_01io->b01f" or op.feature_group_count * op.batch_group_count > 1:
        return []
    weights = cluster.instruction.operands[cluster.operand_number(hero.operands[1])].op
    if not isinstance(weights, Constant):
        return []
    lhs = hero.operands[0].tensor_type
    batch, height, width, features = hero.shape
    shapes: dict[tuple[int, int], Shape] = {}
    for arithmetic in _arithmetics(hero, weights.literal.array, target, exact_only):
        for scratch in (SCRATCH_BYTES, 2 * SCRATCH_BYTES):
            shape = Shape(arithmetic, batch, height, width, lhs.shape[3], features, target, scratch)
            whole = shape.channels % shape.lanes == 0 == features % shape.lanes
            if whole and shape.block >= arithmetic.fewest_tiles:
                shapes.setdefault((shape.out, shape.block), shape)
    return [Way(s.name, s.work(lhs.bytes), partial(lower_winograd, cluster, hero, s)) for s in shapes.values()]


def _arithmetics(hero: Instruction, weights: NumpyArray, target: Target, exact_only: bool) -> tuple[Arithmetic, ...]:
    op = hero.op
    assert isinstance(op, Convolution)
    left, right = (o.tensor_type.element for o in hero.operands)
    if (left, right, op.element) == (F32, F32, F32):
        return () if exact_only else FLOATING
    if left not in (U8, S8) or right not in (U8, S8) or group_of(left, right, op.element, target) != 2:
        return ()
    return tuple(a for a in EXACT if is_exact(a.algorithm, weights))
