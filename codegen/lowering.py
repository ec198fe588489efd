"""What one HLO instruction becomes: kernel calls over its operands, results and temporaries.

This is the seam between kernels and the plan. A schedule knows an instruction and a target and
returns a `Lowering`; the plan places the buffers, and never looks inside a kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from onnxla.codegen.kernels.ir import Kernel
from onnxla.hlo.types import Array


@dataclass(frozen=True)
class Operand:
    """The buffer of operand `index` of the instruction (a leaf of it, where it is a tuple)."""

    index: int
    leaf: int = 0


@dataclass(frozen=True)
class Result:
    """The buffer of leaf `leaf` of the instruction's result (0 for a tensor)."""

    leaf: int = 0


@dataclass(frozen=True)
class Temporary:
    """Scratch that lives while this instruction runs: entry `index` of `Lowering.temporaries`."""

    index: int


@dataclass(frozen=True)
class Packed:
    """Operand `index`, a constant, rearranged at compile time into the layout the kernel reads.

    `packing` names the layout in full (equal names on equal constants share one copy) and
    `pack` makes it; the result's bytes go to the weights section, aligned to 64 bytes.
    """

    index: int
    packing: str
    pack: Callable[[Array], Array] = field(compare=False)


@dataclass(frozen=True)
class Table:
    """Data that the schedule itself needs at run time (offsets, coefficients), kept with the weights."""

    array: Array = field(compare=False)


Argument: TypeAlias = Operand | Result | Temporary | Packed | Table


@dataclass(frozen=True)
class Matrix:
    """`rows` by `columns`, column by column: a column begins `line` elements behind the one before it, and the matrix
    of a batch `batch` elements behind that of the batch before it."""

    argument: Argument
    element: str
    """HLO's name of the type."""
    rows: int
    columns: int
    line: int
    batch: int
    offset: int = 0
    """Elements before the first one."""
    is_transposed: bool = False
    """Whether its transpose is multiplied."""


@dataclass(frozen=True)
class LibraryCall:
    """A product that a library of the GPU's maker may compute: result = left right + bias in each of `batches`, summed
    in f32, with a number of `bias` for each row of the result."""

    batches: int
    left: Matrix
    right: Matrix
    result: Matrix
    bias: Argument | None
    tf32: bool
    """Whether factors of f32 are rounded to TF32."""
    workspace: Argument
    workspace_bytes: int

    @property
    def arguments(self) -> tuple[Argument, ...]:
        matrices = (self.left, self.right, self.result)
        bias = () if self.bias is None else (self.bias,)
        return (*(m.argument for m in matrices), self.workspace, *bias)


@dataclass(frozen=True)
class KernelCall:
    """Run `kernel` once for each of its tasks, in any order and on any threads."""

    kernel: Kernel
    arguments: tuple[Argument, ...]
    """One for each parameter of the kernel."""
    library: LibraryCall | None = None
    """What may be done in place of the kernel, with the same result up to rounding."""


@dataclass(frozen=True)
class Lowering:
    """The calls of one instruction, in order; each starts when the one before has ended.

    `in_place` lists the (operand index, result leaf) pairs that may share one buffer: the
    kernels read every element of the operand before, or when, they write it.
    """

    calls: tuple[KernelCall, ...]
    temporaries: tuple[int, ...] = ()
    """Bytes of each temporary."""
    in_place: tuple[tuple[int, int], ...] = ()
    copies: tuple[tuple[int, int], ...] = ()
    """(operand index, result leaf) pairs: the calls update the result in place, so the operand is copied
    there first, unless the plan lets the two share one buffer (always allowed when the operand dies here)."""
