"""Views inside a product's kernel (`passes/fuse/views.py`): where an operand's elements lie, and where results go."""

import math
from collections.abc import Sequence

from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.value import Array, Index, Leaf
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.elementwise import Convert
from onnxla.hlo.ops.shape import Reshape, Slice, Transpose
from onnxla.hlo.types import Shape


class Viewed:
    """An operand that lies in memory, seen through slices, reshapes and transposes, or through nothing."""

    def __init__(self, array: Array, views: Sequence[Instruction]) -> None:
        """`views` from the one that is read to the one that reads `array`."""
        self.array, self.views = array, views

    @staticmethod
    def of(value: Instruction, leaves: dict[Instruction, Leaf]) -> "Viewed | None":
        """None where the value does not lie in memory as it is read."""
        views = []
        while value not in leaves and isinstance(value.op, Slice | Reshape | Transpose):
            views.append(value)
            (value,) = value.operands
        leaf = leaves.get(value)
        return Viewed(leaf, views) if isinstance(leaf, Array) else None

    def position(self, index: Index) -> Expr:
        """In the array, of what the operand has at an index."""
        for view in self.views:
            op, (operand,) = view.op, view.operands
            if isinstance(op, Slice):
                index = tuple(i * step + start for i, start, step in zip(index, op.starts, op.strides, strict=True))
            elif isinstance(op, Transpose):
                source = [ix.ZERO] * len(index)
                for place, dimension in zip(index, op.permutation, strict=True):
                    source[dimension] = place
                index = tuple(source)
            else:
                index = ix.reshape(index, view.shape, operand.shape)
        return ix.linearize(index, self.array.type.shape)

    def run(self, run: int) -> int:
        """How many places lie together in the array, from one multiple of this to the next and the first at a multiple
        of it, where `run` do so in the operand's own order."""
        for view in self.views:
            op, shape, source = view.op, view.shape, view.operands[0].shape
            if isinstance(op, Transpose):
                run = math.gcd(run, math.prod(shape[_moved(op.permutation) :]))
            elif isinstance(op, Slice):
                cut = max((d for d in range(len(shape)) if shape[d] != source[d]), default=None)
                if cut is not None:
                    whole = math.prod(shape[cut + 1 :])
                    parts = (shape[cut], source[cut], op.starts[cut]) if op.strides[cut] == 1 else (1,)
                    run = math.gcd(run, *(whole * part for part in parts))
        return run


def _moved(permutation: Sequence[int]) -> int:
    """How many leading dimensions the others lie behind, which stay where they are."""
    kept = len(permutation)
    while kept and permutation[kept - 1] == kept - 1:
        kept -= 1
    return kept


def landing(root: Instruction, index: Index, shape: Shape) -> Index:
    """Where `root` has what a product, of `shape`, has at `index`: behind the transposes that it stores through."""
    views = []
    while isinstance(root.op, Transpose | Reshape | Convert):
        views.append(root)
        (root,) = root.operands
    for view in reversed(views):
        if isinstance(view.op, Transpose):
            index = tuple(ix.reshape(index, shape, view.operands[0].shape)[d] for d in view.op.permutation)
            shape = view.shape
    final = views[0].shape if views else root.shape
    return ix.reshape(index, shape, final)
