"""The kernel IR: typed scalars and vectors, loads and stores, loops with carried values.

A kernel is one native function that runs once for each of its tasks. It is in SSA form with
structured control flow: a `For` carries values, an `If` yields values, and nothing else branches.
Both targets print it: LLVM IR (`codegen/cpu/emit_llvm.py`) and CUDA C++ (`codegen/gpu/emit_cuda.py`).
On a GPU a task is a block of `threads` threads, which the operations `thread`, `shuffle_xor`, `barrier`,
`load_matrix`, `mma` and `copy_async` and memory with the role `shared` speak of; on a CPU a task is one thread.

Types are HLO's element types. Arithmetic exists for pred, s8..s64, u8..u64, f32 and f64 and for
INDEX, which counts elements; the narrow floats and integers are only loaded, stored and converted.
pred is a bit in a register and a byte in memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onnxla.hlo.types import PRED, ElementType, Kind

INDEX = ElementType("index", Kind.SIGNED, 64, np.dtype(np.int64))
"""The type of positions: signed, 64 bits on a CPU."""


@dataclass(frozen=True, slots=True)
class KernelType:
    """A scalar (`lanes == 1`) or a vector of an element type."""

    element: ElementType
    lanes: int = 1

    def with_lanes(self, lanes: int) -> "KernelType":
        return KernelType(self.element, lanes)

    def with_element(self, element: ElementType) -> "KernelType":
        return KernelType(element, self.lanes)

    def __str__(self) -> str:
        return str(self.element) if self.lanes == 1 else f"{self.element}x{self.lanes}"


@dataclass(eq=False)
class Buffer:
    """Memory of `size` elements: a parameter of the kernel, or scratch that one task owns."""

    name: str
    element: ElementType
    size: int
    role: str
    """`input` (only read), `output` (written, and read back only where noted), `scratch` or, between the threads
    of a GPU block, `shared`."""
    alignment: int = 0
    """Bytes the start is known to be aligned to; 0 means the element's own size."""

    @property
    def bytes(self) -> int:
        return self.size * self.element.bytes

    def __str__(self) -> str:
        return f"{self.name}: {self.element}[{self.size}]"


class Value:
    """One operation and its result. `attributes` is what the opcode needs besides operands."""

    __slots__ = ("attributes", "level", "opcode", "operands", "type")

    def __init__(
        self,
        opcode: str,
        type: KernelType | None,
        operands: Sequence["Value"] = (),
        attributes: tuple[Any, ...] = (),
        level: int = 0,
    ) -> None:
        self.opcode = opcode
        self.type: KernelType = type  # type: ignore[assignment]  # stores and regions have no result and are never read
        self.operands = tuple(operands)
        self.attributes = attributes
        self.level = level
        """How many blocks were open around it: where it may be used."""

    @property
    def lanes(self) -> int:
        return self.type.lanes

    @property
    def element(self) -> ElementType:
        return self.type.element

    @property
    def is_constant(self) -> bool:
        return self.opcode == "const"

    def __repr__(self) -> str:
        return f"<{self.opcode} {self.type}>"


@dataclass(eq=False)
class Block:
    """Operations in order. `parameters` are defined on entry, `results` are yielded at the end."""

    parameters: list[Value] = field(default_factory=list)
    ops: list[Value] = field(default_factory=list)
    results: tuple[Value, ...] = ()


class For(Value):
    """`for i in range(lower, upper, step)` with carried values.

    `body.parameters` are the induction variable and the carried values; `body.results` the
    carried values of the next round; `results` what they are after the last one.
    """

    __slots__ = ("body", "results", "step")

    def __init__(self, lower: Value, upper: Value, step: int, inits: Sequence[Value], level: int) -> None:
        super().__init__("for", None, (lower, upper, *inits), (), level)
        self.step = step
        induction = Value("induction", KernelType(INDEX), level=level + 1)
        carried = [Value("carried", v.type, level=level + 1) for v in inits]
        self.body = Block([induction, *carried])
        self.results = [Value("result", v.type, (self,), (k,), level) for k, v in enumerate(inits)]


class If(Value):
    """`if condition: ... else: ...`, each side yielding values of the same types."""

    __slots__ = ("otherwise", "results", "then")

    def __init__(self, condition: Value, level: int) -> None:
        super().__init__("if", None, (condition,), (), level)
        self.then = Block()
        self.otherwise = Block()
        self.results: list[Value] = []


@dataclass(eq=False)
class Kernel:
    """A native function over `parameters`, run once for each task in `range(tasks)`."""

    name: str
    parameters: list[Buffer]
    tasks: int
    body: Block
    scratch: list[Buffer] = field(default_factory=list)
    threads: int = 1
    """Threads of a task; above 1 only for GPUs."""
    flops: float = 0.0
    """Floating-point operations of all tasks together, for profiles; 0 where nobody counted."""

    @property
    def task(self) -> Value:
        """The number of the running task, an INDEX."""
        return self.body.parameters[0]


def blocks_of(op: Value) -> tuple[Block, ...]:
    """The blocks that belong to an operation."""
    if isinstance(op, For):
        return (op.body,)
    if isinstance(op, If):
        return (op.then, op.otherwise)
    return ()


def results_of(op: Value) -> list[Value]:
    """The values an operation defines outside its own blocks."""
    if isinstance(op, For | If):
        return op.results
    return [] if op.opcode in EFFECTS else [op]


def walk(block: Block) -> Iterator[Value]:
    """Every operation of a block and of the blocks inside it, in order."""
    for op in block.ops:
        yield op
        for inner in blocks_of(op):
            yield from walk(inner)


EFFECTS = frozenset({"store", "barrier", "prefetch", "copy_async", "wait_for_copies"})
"""Opcodes without a result."""

UNARY = frozenset({"neg", "abs", "sqrt", "floor", "ceil", "trunc", "rint", "not", "popcnt", "clz"})
BINARY = frozenset({"add", "sub", "mul", "div", "rem", "min", "max", "and", "or", "xor", "shl", "shr"})
"""`min` and `max` of floats are `a < b ? a : b` and `a > b ? a : b`: the second operand when either is NaN.
Integer `div` and `rem` truncate and their divisor must not be zero; `shr` follows the type's sign."""
COMPARISONS = frozenset({"EQ", "NE", "LT", "LE", "GT", "GE"})
"""False when either side is NaN, but NE is true."""

MASK = KernelType(PRED)
