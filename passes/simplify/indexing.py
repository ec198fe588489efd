"""Dynamic indices that are known after all."""

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.indexing import DynamicSlice, Gather
from onnxla.hlo.ops.structural import Constant
from onnxla.passes.pattern import any_of, splat_value
from onnxla.passes.rewrite import NoMatch, Replacement, RuleTable

INDEXING = RuleTable()
rule = INDEXING.rule


def _known_starts(starts: tuple[Instruction, ...], shape: tuple[int, ...], sizes: tuple[int, ...]) -> list[int] | None:
    """The start of each dimension, clamped so that the block stays inside; None where one is not constant."""
    known = []
    for start, size, block in zip(starts, shape, sizes, strict=True):
        value = splat_value(start)
        if size == block:
            known.append(0)
        elif value is None:
            return None
        else:
            known.append(min(max(int(value), 0), size - block))
    return known


@rule(any_of("dynamic-slice"))
def slice_at_known_start(b: Builder, root: Instruction) -> Replacement:
    """A dynamic-slice with constant starts, or of everything, is a slice."""
    op, (operand, *starts) = root.op, root.operands
    assert isinstance(op, DynamicSlice)
    known = _known_starts(tuple(starts), operand.shape, op.sizes)
    if known is None:
        return NoMatch("unknown start")
    return b.slice(operand, known, [k + n for k, n in zip(known, op.sizes, strict=True)])


@rule(any_of("dynamic-update-slice"))
def update_of_everything(root: Instruction) -> Replacement:
    """An update as large as the operand replaces it."""
    return root.operands[1] if root.operands[1].shape == root.shape else NoMatch("a part")


@rule(any_of("gather"))
def gather_at_known_indices(b: Builder, root: Instruction) -> Replacement:
    """A gather along one dimension at equally spaced constant indices is a slice, backwards with a reverse."""
    op, (operand, indices) = root.op, root.operands
    assert isinstance(op, Gather)
    if not isinstance(indices.op, Constant) or len(op.start_index_map) != 1 or op.operand_batching_dims:
        return NoMatch("not along one dimension at constants")
    (d,) = op.start_index_map
    whole = all(k == d or n == operand.shape[k] for k, n in enumerate(op.slice_sizes))
    if not whole or op.slice_sizes[d] != 1 or op.collapsed_slice_dims not in ((d,), ()):
        return NoMatch("windows of other sizes")
    at = np.clip(indices.op.literal.array.astype(np.int64).reshape(-1), 0, operand.shape[d] - 1)
    batch = [n for k, n in enumerate(indices.shape) if k != op.index_vector_dim]
    result_dims = [k for k in range(len(root.shape)) if k not in op.offset_dims]
    if at.size == 0 or result_dims != list(range(d, d + len(batch))):
        return NoMatch("the indexed dimensions move")
    step = int(at[1] - at[0]) if at.size > 1 else 1
    if step == 0 or not np.array_equal(at, at[0] + step * np.arange(at.size)):
        return NoMatch("irregular indices")
    first, last = int(min(at[0], at[-1])), int(max(at[0], at[-1]))
    starts = [first if k == d else 0 for k in range(len(operand.shape))]
    limits = [last + 1 if k == d else n for k, n in enumerate(operand.shape)]
    strides = [abs(step) if k == d else 1 for k in range(len(operand.shape))]
    taken = b.slice(operand, starts, limits, strides)
    return b.reshape(b.reverse(taken, [d]) if step < 0 else taken, root.shape)
