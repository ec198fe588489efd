"""Each operation of a kernel is emitted once, as far out as its operands allow.

Pure operations are numbered by value, so asking twice gives the same Value, and they are placed
in the outermost open block in which their operands exist: loop-invariant code is outside the loop
from the start. Loads from input buffers move likewise, but never out of an `If` or a loop that may
not run.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from onnxla.codegen.kernels.ir import Block, KernelType, Value


class Placement:
    """The open blocks of a kernel under construction, and what is in each."""

    def __init__(self, body: Block) -> None:
        self._blocks: list[Block] = [body]
        self._numbering: list[dict[tuple[Any, ...], Value]] = [{}]
        self._load_floor = 0

    @property
    def level(self) -> int:
        """How many blocks are open inside the body."""
        return len(self._blocks) - 1

    def _pure(
        self, opcode: str, type: KernelType, operands: Sequence[Value], attributes: tuple[Any, ...] = (), floor: int = 0
    ) -> Value:
        key = (opcode, type, tuple(id(o) for o in operands), attributes)
        for numbering in self._numbering:
            if key in numbering:
                return numbering[key]
        level = max([floor, *(o.level for o in operands)])
        value = Value(opcode, type, operands, attributes, level)
        self._blocks[level].ops.append(value)
        self._numbering[level][key] = value
        return value

    def _effect(self, opcode: str, operands: Sequence[Value], attributes: tuple[Any, ...]) -> None:
        self._blocks[-1].ops.append(Value(opcode, None, operands, attributes, self.level))

    @contextmanager
    def _open(self, block: Block, fence_loads: bool) -> Iterator[None]:
        floor = self._load_floor
        self._blocks.append(block)
        self._numbering.append({})
        if fence_loads:
            self._load_floor = self.level
        try:
            yield
        finally:
            self._blocks.pop()
            self._numbering.pop()
            self._load_floor = floor
