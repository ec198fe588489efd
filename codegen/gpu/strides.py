"""Tensors in memory by strides, seen through slices, transposes and reshapes, as libraries take them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.shape import Reshape, Slice, Transpose
from onnxla.hlo.types import Shape, row_major_strides


@dataclass(frozen=True)
class Strided:
    """The element at an index is `offset` + the sum of index times stride behind the first of what is stored."""

    shape: Shape
    strides: Shape
    offset: int = 0

    @staticmethod
    def dense(shape: Shape) -> "Strided":
        return Strided(shape, row_major_strides(shape))

    def through(self, view: Instruction) -> "Strided | None":
        """This operand of a view, seen through it; None where no strides say where its elements are."""
        op = view.op
        if isinstance(op, Transpose):
            return self.transposed(op.permutation)
        if isinstance(op, Slice):
            offset = self.offset + sum(start * s for start, s in zip(op.starts, self.strides, strict=True))
            strides = tuple(step * s for step, s in zip(op.strides, self.strides, strict=True))
            return Strided(view.shape, strides, offset)
        assert isinstance(op, Reshape), view
        return self.reshaped(view.shape)

    def transposed(self, permutation: Sequence[int]) -> "Strided":
        shape, strides = (tuple(x[d] for d in permutation) for x in (self.shape, self.strides))
        return Strided(shape, strides, self.offset)

    def reshaped(self, shape: Shape) -> "Strided | None":
        """None where dimensions become one whose elements do not follow one another evenly."""
        if math.prod(shape) != math.prod(self.shape) or 0 in shape:
            return None
        strides: list[int] = []
        left = [(n, s) for n, s in zip(self.shape, self.strides, strict=True) if n != 1]
        # from the last dimension on: as many of ours as make up one, or several, of theirs
        run, stride = 1, 1
        for size in reversed(shape):
            if size == 1:
                strides.append(run * stride)
                continue
            if run == 1:
                run, stride = left.pop()
            while run % size and left:
                outer, step = left.pop()
                if step != run * stride:
                    return None
                run *= outer
            if run % size:
                return None
            strides.append(stride)
            run, stride = run // size, stride * size
        return Strided(shape, tuple(reversed(strides)), self.offset)
