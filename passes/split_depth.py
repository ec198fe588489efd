"""Products with too few tiles for a GPU are shared out along their depth: partial sums side by side, then one sum.

    x w      becomes      sum over p of x[:, p] w[p, :],  p over equal parts of the depth

A product of batches computes the parts, each with tiles of its own, and a reduction adds them in order, so that results
repeat. The reduction joins what follows, a norm for instance, so that it seldom costs a kernel.
"""

import dataclasses
import math
import re

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.ops.reduction import MOST_PARTS
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import BF16, F16, F32, S32, ElementType
from onnxla.passes.pass_base import ComputationPass

MULTIPROCESSORS = {75: 40, 80: 108, 86: 84, 87: 16, 89: 142, 90: 132, 100: 148, 103: 148, 110: 20, 120: 170, 121: 48}
"""Of the usual GPU of each architecture: T4, A100, A40, Orin, L40S, H100, B200, B300, Thor, RTX 5090, GB10."""
TILE, SMALL_TILE = 64, 16
"""Rows or columns of a product that a block computes, and of a product that has no more."""
SHORTEST_PART = 128
"""Depth of a part: less costs more to add up than it saves."""
LEAST_SAVED = {4: 150, 2: 500, 1: 1000}
"""Depth, by bytes of a factor, that no block goes through any more, from which on adding up parts is worth it.

From about 20, 6 and 3 ns that a slice takes for each of its depth, and 3 us of a kernel: guesses, with no GPU at hand.
"""
GRAIN = 32
"""Depth of a slice of half precision in shared memory, of which parts should be multiples."""


def multiprocessors_of(architectures: str) -> int:
    """Of the lowest of the architectures, such as `sm_80,sm_90`."""
    lowest = min(int(number) for number in re.findall(r"\d+", architectures))
    return MULTIPROCESSORS.get(lowest, MULTIPROCESSORS[80])


class SplitDepth(ComputationPass):
    """Compute parts of the depth of dots and convolutions whose tiles occupy less than half of a GPU, and add them."""

    name = "split-depth"

    def __init__(self, multiprocessors: int = MULTIPROCESSORS[80]) -> None:
        super().__init__()
        self.multiprocessors = multiprocessors

    def run_on(self, computation: Computation) -> bool:
        changed = False
        for instruction in computation.instructions():
            op = instruction.op
            if not isinstance(op, Dot | Convolution) or op.element not in (F16, BF16, F32, S32):
                continue
            if _bytes_of(instruction) not in LEAST_SAVED:
                continue
            if 0 in (instruction.tensor_type.size, *(o.tensor_type.size for o in instruction.operands)):
                continue
            b = Builder(source=instruction.source)
            split = self._dot(b, instruction, op) if isinstance(op, Dot) else self._convolution(b, instruction, op)
            if split is None:
                continue
            parts, dimension = split
            total = b.reduce_by("add", parts, [dimension])
            total = total if total.type == instruction.type else b.convert(total, op.element)
            computation.replace(instruction, total)
            self.count("split")
            changed = True
        return changed

    def _dot(self, b: Builder, instruction: Instruction, op: Dot) -> tuple[Instruction, int] | None:
        """The parts, and along which dimension they lie side by side."""
        lhs, rhs = instruction.operands
        if len(op.lhs_contracting) != 1:
            return None
        (left,), (right,) = op.lhs_contracting, op.rhs_contracting
        depth = lhs.shape[left]
        batches = math.prod(lhs.shape[d] for d in op.lhs_batch)
        rows, columns = lhs.tensor_type.size // depth // batches, rhs.tensor_type.size // depth // batches
        parts = self._parts(_tiles(batches, rows, columns), depth, depth, _bytes_of(instruction))
        if parts == 1:
            return None

        def divided(operand: Instruction, at: int) -> Instruction:
            shape = operand.shape
            return b.reshape(operand, (*shape[:at], parts, depth // parts, *shape[at + 1 :]))

        def moved(dimensions: tuple[int, ...], at: int) -> tuple[int, ...]:
            return tuple(d + (d > at) for d in dimensions)

        batched = dataclasses.replace(
            op,
            lhs_batch=(*moved(op.lhs_batch, left), left),
            rhs_batch=(*moved(op.rhs_batch, right), right),
            lhs_contracting=(left + 1,),
            rhs_contracting=(right + 1,),
            element=_sums_of(op),
        )
        return b.emit(batched, divided(lhs, left), divided(rhs, right)), len(op.lhs_batch)

    def _convolution(self, b: Builder, instruction: Instruction, op: Convolution) -> tuple[Instruction, int] | None:
        """As groups of input features, each with all output features."""
        image, kernel = instruction.operands
        dims = op.dimensions
        if op.feature_group_count != 1 or op.batch_group_count != 1 or not isinstance(kernel.op, Constant):
            return None
        features, columns = kernel.shape[dims.kernel_input_feature], kernel.shape[dims.kernel_output_feature]
        tiles = _tiles(1, instruction.tensor_type.size // columns, columns)
        parts = self._parts(tiles, features, kernel.tensor_type.size // columns, _bytes_of(instruction))
        if parts == 1:
            return None
        order = (*dims.kernel_spatial, dims.kernel_input_feature, dims.kernel_output_feature)
        weights = kernel.op.literal.array.transpose(order)
        window = weights.shape[:-2]
        weights = weights.reshape(*window, parts, features // parts, columns).swapaxes(-3, -2)
        weights = weights.reshape(*window, features // parts, parts * columns).transpose(np.argsort(order))
        grouped = dataclasses.replace(op, feature_group_count=parts, element=_sums_of(op))
        result = b.emit(grouped, image, b.constant(np.ascontiguousarray(weights), name=kernel.name))
        at = dims.output_feature
        return b.reshape(result, (*result.shape[:at], parts, columns, *result.shape[at + 1 :])), at

    def _parts(self, tiles: int, divisible: int, depth: int, width: int) -> int:
        """How many equal parts of what is divisible; whole slices where there is a choice, and 1 where it is not worth
        it. `width` is the bytes of a factor."""
        most = min(self.multiprocessors // tiles, depth // SHORTEST_PART, MOST_PARTS)
        choices = [p for p in range(2, most + 1) if divisible % p == 0 and divisible // p % 8 == 0]
        whole = [p for p in choices if divisible // p % GRAIN == 0]
        parts = max(whole or choices or [1])
        return parts if depth - depth // parts >= LEAST_SAVED[width] else 1


def _sums_of(op: Dot | Convolution) -> ElementType:
    return S32 if op.element is S32 else F32


def _bytes_of(contraction: Instruction) -> int:
    return max(o.tensor_type.element.bytes for o in contraction.operands)


def _tiles(batches: int, rows: int, columns: int) -> int:
    sides = [-(-size // (TILE if size > SMALL_TILE else SMALL_TILE)) for size in (rows, columns)]
    return batches * sides[0] * sides[1]
