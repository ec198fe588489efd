"""numpy's broadcasting, and the axis-aligned one that ONNX had before opset 7."""

from collections.abc import Sequence

from onnxla.errors import HloError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Shape


def shape_of_broadcast(*shapes: Sequence[int]) -> Shape:
    """The common shape by numpy's rule. Raises HloError when two sizes differ and neither is 1."""
    rank = max((len(s) for s in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for d, size in enumerate(shape, start=rank - len(shape)):
            if size != 1 and result[d] not in (1, size):
                raise HloError(f"shapes {', '.join(str(list(s)) for s in shapes)} do not broadcast together")
            result[d] = size if size != 1 else result[d]
    return tuple(result)


def broadcast_together(b: Builder, *values: Instruction) -> list[Instruction]:
    """Every value stretched to the common shape. Raises HloError when there is none."""
    shape = shape_of_broadcast(*(v.shape for v in values))
    return [b.numpy_broadcast(v, shape) for v in values]


def broadcast_from_axis(b: Builder, value: Instruction, shape: Sequence[int], axis: int | None) -> Instruction:
    """Stretch `value` to `shape`, its first dimension standing at `axis` of it (opsets 1 to 6).

    Without an axis the trailing dimensions align. Raises HloError when the sizes do not fit.
    """
    rank, own = len(shape), len(value.shape)
    start = rank - own if axis is None else axis + rank if axis < 0 else axis
    if not 0 <= start <= rank - own:
        raise HloError(f"shape {list(value.shape)} does not fit {list(shape)} at axis {start}")
    aligned = (*value.shape, *(1,) * (rank - own - start))
    if shape_of_broadcast(aligned, shape) != tuple(shape):
        raise HloError(f"shape {list(value.shape)} does not stretch to {list(shape)} at axis {start}")
    kept = [d for d, size in enumerate(value.shape) if size != 1 or shape[start + d] == 1]
    squeezed = b.reshape(value, [value.shape[d] for d in kept])
    return squeezed if kept == list(range(rank)) else b.broadcast(squeezed, shape, [start + d for d in kept])
