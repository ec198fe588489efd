"""One depthwise convolution of given sizes: its register tiles, how it is cut into tasks, and its work."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.codegen.cost import Work
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.work import LOAD, STORE, effort
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Convolution, WindowDimension

TASK_FLOPS = 200_000
MOST_TASKS = 64
MOST_TAPS = 7
"""Of a kernel row, whose weights are in registers at a time."""
BLOCK_BYTES = 256
"""Of a block of channels: whole cache lines, and of a pixel few enough that those of all lines of a window fit into the
first-level cache."""


@dataclass(frozen=True)
class Shares:
    """A task takes `line_share` of all `lines` of `block_share` of the `blocks`; the last of either may be smaller."""

    lines: int
    blocks: int
    line_share: int
    block_share: int

    @property
    def by_lines(self) -> int:
        """Tasks of the same blocks, which come one after the other."""
        return -(-self.lines // self.line_share)

    @property
    def tasks(self) -> int:
        return self.by_lines * -(-self.blocks // self.block_share)

    def lines_of(self, task: Expr) -> tuple[Expr, Expr]:
        """The first line of a task, and the one behind its last, which may lie beyond all."""
        first = task % self.by_lines * self.line_share
        return first, first + self.line_share

    def blocks_of(self, task: Expr) -> tuple[Expr, Expr]:
        """The same of blocks."""
        first = task // self.by_lines * self.block_share
        return first, first + self.block_share


class Shape:
    """Tiles of some pixels of a line by a chunk of channels; channels behind the last whole chunk are the rest."""

    def __init__(
        self, hero: Instruction, target: Target, vectors: int | None = None, pixels: int | None = None
    ) -> None:
        """Tiles of `vectors` and at most `pixels`; None for what the registers suggest."""
        assert isinstance(hero.op, Convolution)
        self.hero, self.target = hero, target
        self.compute = storage.compute_element(hero.op.element)
        self.channels = hero.shape[-1]
        self.lanes = target.vector_bytes // self.compute.bytes
        while self.lanes > 1 and self.lanes // 2 >= self.channels:
            self.lanes //= 2
        self.line = hero.shape[-2]
        self.window: Sequence[WindowDimension] = hero.op.window.dimensions
        vectors = vectors or (2 if target.vector_registers >= 32 else 1)
        self.vectors = min(vectors, -(-self.channels // self.lanes))
        # sums, the weights of a kernel row and one input are in registers
        weights = min(self.window[-1].size, MOST_TAPS)
        most = min(max((target.vector_registers - 2) // self.vectors - weights, 2), pixels or self.line)
        self.pixels = -(-self.line // -(-self.line // most))
        self.interior, self.edges = self._tiles()
        self.width = self.vectors * self.lanes
        """Channels of a chunk."""
        self.chunks, self.rest = divmod(self.channels, self.width)
        self.block = max(1, BLOCK_BYTES // (self.width * self.compute.bytes))
        """Chunks of a block."""

    @property
    def name(self) -> str:
        return f"{self.pixels}x{self.vectors}"

    @property
    def taps(self) -> int:
        return math.prod(w.size for w in self.window)

    @property
    def flops(self) -> float:
        return 2.0 * self.hero.tensor_type.size * self.taps

    @property
    def shares(self) -> Shares:
        """Tasks share out lines as long as their windows overlap little, then blocks of channels; the rest is one."""
        wanted = max(1, min(int(self.flops // TASK_FLOPS), MOST_TASKS))
        lines = math.prod(self.hero.shape[:-2])
        blocks = -(-self.chunks // self.block) + (self.rest > 0)
        overlap = self.window[-2].size if len(self.window) > 1 else 0
        apart = max(1, lines // max(2 * overlap, 1))
        by_blocks = min(blocks, -(-wanted // apart))
        by_lines = min(lines, -(-wanted // by_blocks))
        return Shares(lines, blocks, -(-lines // by_lines), -(-blocks // by_blocks))

    def work(self) -> Work:
        """What it asks of a core, epilogue apart: each tile reads the inputs under it once for each kernel row."""
        w = self.window[-1]
        tiles = self.hero.tensor_type.size / (self.lanes * self.pixels)  # of one vector
        reach = (self.pixels - 1) * w.stride + (w.size - 1) * w.window_dilation + 1
        reads = min(reach, self.pixels * w.size) + w.size
        loads = tiles * (reads * self.taps / w.size * LOAD + self.pixels * STORE)
        slots = (tiles * self.pixels * self.taps, loads, 0.0)
        moved = self.hero.operands[0].tensor_type.bytes + self.hero.tensor_type.bytes
        return Work(effort(slots, self.target), 4.0 * self.taps * self.channels, float(moved))

    def _tiles(self) -> tuple[tuple[int, int], list[tuple[int, int]]]:
        """The range of tiles whose taps all lie inside, and (start, pixels) of every other tile of a line."""
        w = self.window[-1]
        size = self.hero.operands[0].shape[-2]
        count = -(-self.line // self.pixels)
        inside = []
        for t in range(count):
            start, stop = t * self.pixels, t * self.pixels + self.pixels
            lowest = start * w.stride - w.pad_low
            highest = (stop - 1) * w.stride - w.pad_low + (w.size - 1) * w.window_dilation
            inside.append(stop <= self.line and lowest >= 0 and highest < size)
        chosen = [t for t in range(count) if inside[t]]
        edges = [
            (t * self.pixels, min(self.pixels, self.line - t * self.pixels)) for t in range(count) if not inside[t]
        ]
        return ((chosen[0], chosen[-1] + 1) if chosen else (0, 0)), edges
