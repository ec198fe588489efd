"""An instruction whose value a schedule holds in registers, at one index."""

from collections.abc import Sequence

from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.value import Emitted, Index, ValueEmitter
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Shape, TensorType


class ReadElsewhere(Exception):
    """The cluster reads the instruction at another index than the one whose value is held."""


def settle(e: ValueEmitter, hero: Instruction, values: Sequence[Value], index: Index, shape: Shape) -> None:
    """From here on `hero`, whose result leaves have `shape`, has these values at `index`."""
    expected = ix.linearize(index, shape)

    def read(asked: Index) -> Emitted:
        if ix.linearize(asked, shape) != expected:
            raise ReadElsewhere
        return values[0] if isinstance(hero.type, TensorType) else list(values)

    e.leaves[hero] = read
