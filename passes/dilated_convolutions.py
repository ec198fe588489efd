"""Convolutions of a dilated input (transposed convolutions) without multiplying by the zeros in between.

With base dilation s, output positions that leave the same remainder p modulo s see the input through the same
taps of the kernel, every s-th one. So the convolution is s small ones, one for each p, whose results interleave;
with several dilated dimensions, their product.
"""

import dataclasses
import itertools
from collections.abc import Sequence

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.contraction import Convolution
from onnxla.hlo.window import Window, WindowDimension
from onnxla.passes.pass_base import ComputationPass


class SplitDilatedConvolutions(ComputationPass):
    """Replace convolutions with base dilation by an interleaving of plain ones."""

    name = "split-dilated-convolutions"

    def run_on(self, computation: Computation) -> bool:
        changed = False
        for instruction in computation.instructions():
            if _is_dilated(instruction):
                computation.replace(instruction, _interleaved(instruction))
                self.count("convolutions")
                changed = True
        return changed


def _is_dilated(instruction: Instruction) -> bool:
    op = instruction.op
    if not isinstance(op, Convolution) or instruction.tensor_type.size == 0:
        return False
    if any(o.tensor_type.size == 0 for o in instruction.operands):
        return False
    dilated = [w for w in op.window.dimensions if w.base_dilation > 1]
    simple = all(w.stride == w.window_dilation == 1 and not w.reversal for w in dilated)
    return bool(dilated) and simple and op.batch_group_count == 1


@dataclasses.dataclass(frozen=True)
class _Phase:
    """The plain convolution for the outputs of one remainder, in one dimension."""

    first_tap: int
    window: WindowDimension


def _phases(w: WindowDimension, size: int, outputs: int) -> list[_Phase]:
    """One phase for each remainder; each gives ceil(outputs / dilation) places, the surplus is cut off later.

    Output q * s + p meets input i at tap k where q * s + p + k - pad_low == i * s.
    """
    s = w.base_dilation
    places = -(-outputs // s)
    phases = []
    for p in range(s):
        first = (w.pad_low - p) % s
        taps = max(-(-(w.size - first) // s), 0)
        low = (w.pad_low - p - first) // s
        high = places - 1 + taps - size - low
        phases.append(_Phase(first, WindowDimension(taps, pad_low=low, pad_high=high)))
    return phases


def _interleaved(instruction: Instruction) -> Instruction:
    op, (lhs, rhs) = instruction.op, instruction.operands
    assert isinstance(op, Convolution)
    b = Builder(source=instruction.source)
    dims = op.dimensions
    choices: list[list[_Phase]] = []
    for d, w in enumerate(op.window.dimensions):
        size, outputs = lhs.shape[dims.input_spatial[d]], instruction.shape[dims.output_spatial[d]]
        choices.append(_phases(w, size, outputs) if w.base_dilation > 1 else [_Phase(0, w)])
    counts = [len(c) for c in choices]
    if _lie_side_by_side(op, choices):
        last = choices.pop()
        parts = [_row(b, instruction, op, rhs, [(*phases, q) for q in last]) for phases in itertools.product(*choices)]
        counts[-1] = 1
    else:
        parts = [_part(b, instruction, op, rhs, phases) for phases in itertools.product(*choices)]
    woven = _weave(b, parts, counts, dims.output_spatial)
    return b.slice(woven, [0] * len(woven.shape), instruction.shape) if woven.shape != instruction.shape else woven


def _lie_side_by_side(op: Convolution, choices: Sequence[Sequence[_Phase]]) -> bool:
    """Whether all remainders along the last dimension see the same inputs, and the features of an output lie together:
    then one convolution with so many more features gives whole lines."""
    dims = op.dimensions
    rank = len(dims.output_spatial) + 2
    together = (dims.output_spatial[-1], dims.output_feature) == (rank - 2, rank - 1)
    same = len(choices[-1]) > 1 and len({phase.window for phase in choices[-1]}) == 1
    reached = all(phase.window.size for phases in choices for phase in phases)
    return together and same and reached and op.feature_group_count == 1


def _row(
    b: Builder, instruction: Instruction, op: Convolution, rhs: Instruction, combinations: Sequence[Sequence[_Phase]]
) -> Instruction:
    """The outputs of combinations that differ in the last dimension only, interleaved along it."""
    taps = [_taps(b, op, rhs, phases) for phases in combinations]
    window = Window(tuple(phase.window for phase in combinations[0]))
    weights = b.concatenate(taps, op.dimensions.kernel_output_feature)
    wide = b.emit(dataclasses.replace(op, window=window), instruction.operands[0], weights)
    *outer, places, features = wide.shape
    return b.reshape(wide, (*outer, places * len(taps), features // len(taps)))


def _part(
    b: Builder, instruction: Instruction, op: Convolution, rhs: Instruction, phases: Sequence[_Phase]
) -> Instruction:
    """The outputs of one combination of remainders."""
    dims = op.dimensions
    if any(phase.window.size == 0 for phase in phases):  # fewer taps than remainders: nothing reaches these outputs
        shape = list(instruction.shape)
        for dimension, w in zip(dims.output_spatial, op.window.dimensions, strict=True):
            shape[dimension] = -(-shape[dimension] // w.base_dilation)
        return b.full(shape, 0, op.element)
    window = Window(tuple(phase.window for phase in phases))
    return b.emit(dataclasses.replace(op, window=window), instruction.operands[0], _taps(b, op, rhs, phases))


def _taps(b: Builder, op: Convolution, rhs: Instruction, phases: Sequence[_Phase]) -> Instruction:
    """The part of the kernel that one combination of remainders sees."""
    starts, strides = [0] * len(rhs.shape), [1] * len(rhs.shape)
    for d, phase in enumerate(phases):
        starts[op.dimensions.kernel_spatial[d]] = phase.first_tap
        strides[op.dimensions.kernel_spatial[d]] = op.window.dimensions[d].base_dilation
    return b.slice(rhs, starts, rhs.shape, strides)


def _weave(b: Builder, parts: list[Instruction], counts: Sequence[int], dimensions: Sequence[int]) -> Instruction:
    """Interleave: along `dimensions[d]`, place q of part p becomes place q * counts[d] + p; the last varies fastest."""
    for d in reversed(range(len(counts))):
        count, dimension = counts[d], dimensions[d]
        if count == 1:
            continue
        woven = []
        for first in range(0, len(parts), count):
            shape = parts[first].shape
            spread = (*shape[: dimension + 1], 1, *shape[dimension + 1 :])
            group = [b.reshape(part, spread) for part in parts[first : first + count]]
            joined = b.concatenate(group, dimension + 1)
            woven.append(b.reshape(joined, (*shape[:dimension], shape[dimension] * count, *shape[dimension + 1 :])))
        parts = woven
    return parts[0]
