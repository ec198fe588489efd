"""Reading an image at places that are computed at run time, for GridSample and DeformConv.

An image batch is [N, C, S] with its spatial dimensions flattened to S; places are one [N, P] tensor
for each spatial dimension.
"""

import itertools
import math
from collections.abc import Callable, Sequence

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.indexing import Gather
from onnxla.hlo.types import S32, Shape, row_major_strides

Clip = Callable[[Instruction, int], tuple[Instruction, Instruction | None]]
"""From whole-numbered places along spatial dimension d (any float type): the place to read, which may still
lie outside, and where what is read there counts (None: everywhere)."""


def pixels(b: Builder, image: Instruction, places: Sequence[Instruction], sizes: Shape) -> Instruction:
    """[N, C, P]: the image at s32 `places` [N, P], clamped to the spatial `sizes`."""
    flat: Instruction | None = None
    for place, size, stride in zip(places, sizes, row_major_strides(sizes), strict=True):
        inside = b.clamp(b.constant(0, S32), place, b.constant(size - 1, S32))
        step = inside if stride == 1 else b.multiply(inside, b.full_like(inside, stride))
        flat = step if flat is None else b.add(flat, step)
    assert flat is not None
    shape = (*image.shape[:2], *flat.shape[1:])
    if 0 in shape:
        return b.full(shape, 0, image.tensor_type.element)
    op = Gather(
        offset_dims=(1,),
        collapsed_slice_dims=(2,),
        start_index_map=(2,),
        operand_batching_dims=(0,),
        start_indices_batching_dims=(0,),
        index_vector_dim=2,
        slice_sizes=(1, image.shape[1], 1),
    )
    return b.gather(image, flat, op)


def interpolate(
    b: Builder,
    image: Instruction,
    taps: Sequence[Sequence[tuple[Instruction, Instruction]]],
    sizes: Shape,
    clip: Clip,
) -> Instruction:
    """[N, C, P]: the sum over all combinations of one tap per dimension of pixel times weights.

    `taps[d]` holds (whole-numbered place, weight) pairs, [N, P] each, in the image's float type.
    """
    total: Instruction | None = None
    prepared = [[_prepare(b, place, weight, d, clip) for place, weight in pairs] for d, pairs in enumerate(taps)]
    for combination in itertools.product(*prepared):
        weight = combination[0][1]
        for _, factor in combination[1:]:
            weight = b.multiply(weight, factor)
        pixel = pixels(b, image, [place for place, _ in combination], sizes)
        part = b.multiply(pixel, b.broadcast(weight, pixel.shape, [0, 2]))
        total = part if total is None else b.add(total, part)
    assert total is not None
    return total


def _prepare(
    b: Builder, place: Instruction, weight: Instruction, d: int, clip: Clip
) -> tuple[Instruction, Instruction]:
    """The tap to read as s32, with no weight where it does not count."""
    read, counts = clip(place, d)
    whole = b.convert(read, S32)
    return whole, weight if counts is None else b.select(counts, weight, b.full_like(weight, 0))


def linear_taps(b: Builder, place: Instruction) -> list[tuple[Instruction, Instruction]]:
    """The neighbours below and above a place, with their weights."""
    below, one = b.unary("floor", place), b.full_like(place, 1)
    fraction = b.subtract(place, below)
    return [(below, b.subtract(one, fraction)), (b.add(below, one), fraction)]


def zero_outside(b: Builder, sizes: Shape) -> Clip:
    """Everything outside of the image counts as zero."""

    def clip(place: Instruction, d: int) -> tuple[Instruction, Instruction | None]:
        above = b.compare(place, b.full_like(place, 0), "GE")
        return place, b.and_(above, b.compare(place, b.full_like(place, sizes[d] - 1), "LE"))

    return clip


def flattened(b: Builder, image: Instruction) -> Instruction:
    """[N, C, spatial...] as [N, C, S]."""
    return b.reshape(image, (*image.shape[:2], math.prod(image.shape[2:])))
