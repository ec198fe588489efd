"""Depthwise convolution, channels last: each channel has its own window, and lanes are channels.

    for each block of channels         (a few cache lines: the input lines of a window stay in the first-level cache)
      for each line of the task
        for each tile of pixels, for each chunk of the block
          sums = the tile; store epilogue(sums)

A tile is a few neighbouring pixels of a line by a chunk, a few vectors of channels; every tap is one
multiply-add with the input straight from cache. Nothing is padded: lines outside the input shorten
the loop over kernel rows, and the tiles at both ends of a line, whose place is known, leave out
the taps that fall outside. The weights of a chunk lie together.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from onnxla.codegen.choices import Way
from onnxla.codegen.cost import Work
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.epilogue import TileEpilogue
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.loop import name_of
from onnxla.codegen.kernels.value import Array, Index
from onnxla.codegen.kernels.work import LOAD, STORE, effort
from onnxla.codegen.lowering import KernelCall, Lowering, Packed
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Convolution, WindowDimension
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import Array as NumpyArray

TASK_FLOPS = 200_000
MOST_TASKS = 64
MOST_EDGE_TILES = 8
MOST_TAPS = 7
"""Of a kernel row, whose weights are in registers at a time."""
BLOCK_BYTES = 256
"""Of a block of channels: whole cache lines, and of a pixel few enough that those of all lines of a window fit into the
first-level cache."""


def depthwise_ways(cluster: Cluster, hero: Instruction, target: Target) -> list[Way]:
    """Empty where the convolution is not depthwise with channels last and a constant kernel."""
    op = hero.op
    assert isinstance(op, Convolution)
    dims, windows = op.dimensions, op.window.dimensions
    lhs, kernel = (o.tensor_type for o in hero.operands)
    rank = lhs.rank
    channels = op.feature_group_count
    last = (dims.input_feature, dims.output_feature) == (rank - 1, rank - 1)
    order = (dims.input_batch, *dims.input_spatial) == tuple(range(rank - 1))
    order = order and (dims.output_batch, *dims.output_spatial) == tuple(range(rank - 1))
    number = cluster.operand_number(hero.operands[1])
    single = lhs.shape[dims.input_feature] == channels == kernel.shape[dims.kernel_output_feature]
    simple = all(w.base_dilation == 1 and not w.reversal for w in windows)
    constant = isinstance(cluster.instruction.operands[number].op, Constant)
    if not (windows and last and order and single and simple and constant) or channels == 1:
        return []
    own = _Depthwise(cluster, hero, target, number)
    ways: dict[str, _Depthwise] = {}
    for vectors in dict.fromkeys((own.vectors, 1, 2)):
        for pixels in (own.pixels if vectors == own.vectors else None, *_fewer(own.pixels)):
            shape = _Depthwise(cluster, hero, target, number, vectors, pixels)
            if len(shape.edges) <= MOST_EDGE_TILES:
                ways.setdefault(f"{shape.pixels}x{shape.vectors}", shape)
    return [Way(name, shape.work(target), shape.lower) for name, shape in ways.items()]


def _fewer(pixels: int) -> tuple[int, ...]:
    """Smaller tiles, which read some inputs twice and need fewer registers."""
    return (pixels // 2,) if pixels >= 4 else ()


_Emit: TypeAlias = Callable[[Index, Expr, int], None]
"""Emits some channels of so many pixels of the line `at`, from the one at `start`."""


@dataclass(frozen=True)
class _Tile:
    """Some pixels of the line `at`, from `start`, by some vectors of channels, the last with `active` lanes."""

    at: Index
    start: Expr
    pixels: int
    channel: Expr
    channels: int
    vectors: int
    active: int


class _Depthwise:
    def __init__(
        self,
        cluster: Cluster,
        hero: Instruction,
        target: Target,
        number: int,
        vectors: int | None = None,
        pixels: int | None = None,
    ) -> None:
        """Tiles of `vectors` and at most `pixels`; None for what the registers suggest."""
        assert isinstance(hero.op, Convolution)
        self.cluster, self.hero, self.op, self.number = cluster, hero, hero.op, number
        self.element = hero.op.element
        self.compute = storage.compute_element(self.element)
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

    @property
    def width(self) -> int:
        """Channels of a chunk."""
        return self.vectors * self.lanes

    @property
    def taps(self) -> int:
        return math.prod(w.size for w in self.window)

    def work(self, target: Target) -> Work:
        """What it asks of a core, epilogue apart: each tile reads the inputs under it once for each kernel row."""
        w = self.window[-1]
        tiles = self.hero.tensor_type.size / (self.lanes * self.pixels)  # of one vector
        reach = (self.pixels - 1) * w.stride + (w.size - 1) * w.window_dilation + 1
        reads = min(reach, self.pixels * w.size) + w.size
        loads = tiles * (reads * self.taps / w.size * LOAD + self.pixels * STORE)
        slots = (tiles * self.pixels * self.taps, loads, 0.0)
        moved = self.hero.operands[0].tensor_type.bytes + self.hero.tensor_type.bytes
        return Work(effort(slots, target), 4.0 * self.taps * self.channels, float(moved))

    def lower(self) -> Lowering:
        lines = math.prod(self.hero.shape[:-2])
        taps = self.taps
        flops = 2.0 * self.hero.tensor_type.size * taps
        tasks = max(1, min(int(flops // TASK_FLOPS), MOST_TASKS, lines))
        share = -(-lines // tasks)
        tasks = -(-lines // share)
        frame = Frame(
            self.cluster, name_of(self.cluster), tasks, self.cluster.replaced(self.hero, self.hero.operands[1])
        )
        e, b = frame.emitter, frame.b
        self.frame = frame
        self.epilogue = TileEpilogue(
            self.cluster, self.hero, frame, self.element, self.lanes, self.pixels * self.vectors
        )
        self.packed = b.parameter("packed", self.compute, taps * self.channels, "input", 64)
        packing = f"depthwise {self.op.dimensions} x{self.width} {self.compute}"
        frame.arguments.append(Packed(self.number, packing, self._pack))
        first = b.mul(b.task, b.const(share))
        last = b.min(b.add(first, b.const(share)), b.const(lines))
        chunks, rest = divmod(self.channels, self.width)
        block = max(1, BLOCK_BYTES // (self.width * self.compute.bytes))
        if chunks:
            with b.loop(0, chunks, block) as loop, e.scope():
                stop = b.min(b.add(loop.index, b.const(block)), b.const(chunks))
                self._lines(first, last, self._whole(loop.index, stop, chunks))
        if rest:
            with e.scope():
                self._lines(first, last, self._rest(chunks * self.width, rest))
        kernel = b.finish()
        kernel.flops = flops
        return Lowering((KernelCall(kernel, tuple(frame.arguments)),))

    def _pack(self, kernel: NumpyArray) -> NumpyArray:
        """All taps of a chunk, then those of the next."""
        dims = self.op.dimensions
        order = (*dims.kernel_spatial, dims.kernel_input_feature, dims.kernel_output_feature)
        flat = kernel.transpose(order).astype(self.compute.dtype).reshape(self.taps, self.channels)
        whole = self.channels // self.width * self.width
        chunks = flat[:, :whole].reshape(self.taps, -1, self.width).transpose(1, 0, 2)
        return np.concatenate((chunks.ravel(), flat[:, whole:].ravel()))

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

    def _lines(self, first: Value, last: Value, emit: _Emit) -> None:
        """`emit` for all tiles of the lines [first, last)."""
        e, lines = self.frame.emitter, self.hero.shape[:-2]
        with self.frame.b.loop(first, last) as loop, e.scope():
            line = e.bind("line", loop.index, 0, math.prod(lines) - 1)
            place = ix.delinearize(line, lines)
            at = tuple(e.bind(f"at{d}", e.position(i), i.low, i.high) for d, i in enumerate(place))
            for edge, pixels in self.edges:
                with e.scope():
                    emit(at, ix.constant(edge), pixels)
            first_whole, behind = self.interior
            if behind > first_whole:
                with e.loop("tile", behind - first_whole) as (tile, _):
                    emit(at, (tile + first_whole) * self.pixels, self.pixels)

    def _whole(self, start: Value, stop: Value, chunks: int) -> _Emit:
        """The chunks [start, stop) of some pixels: the input is read in the order it lies in memory."""

        def emit(at: Index, pixel: Expr, pixels: int) -> None:
            e = self.frame.emitter
            with self.frame.b.loop(start, stop) as loop, e.scope():
                channel = e.bind("chunk", loop.index, 0, chunks - 1) * self.width
                self._tile(_Tile(at, pixel, pixels, channel, self.width, self.vectors, self.lanes))

        return emit

    def _rest(self, channel: int, channels: int) -> _Emit:
        """The channels behind the last whole chunk."""
        vectors = -(-channels // self.lanes)
        active = channels - (vectors - 1) * self.lanes
        return lambda at, pixel, pixels: self._tile(
            _Tile(at, pixel, pixels, ix.constant(channel), channels, vectors, active)
        )

    def _tile(self, tile: _Tile) -> None:
        zero = self.frame.b.const(0, self.compute, self.lanes)
        sums = self._rows(tile, (), [zero] * (tile.pixels * tile.vectors))

        def at(pixel: Expr, column: Expr) -> Index:
            return (*tile.at, tile.start + pixel, tile.channel + column)

        self.epilogue.apply(sums, tile.pixels, tile.vectors, tile.active, at)

    def _rows(self, tile: _Tile, taps: Index, carried: Sequence[Value]) -> list[Value]:
        """Loops over all kernel dimensions but the last, bounded to where the input is."""
        e, b = self.frame.emitter, self.frame.b
        level = len(taps)
        if level == len(self.window) - 1:
            return self._columns(tile, taps, carried)
        w, size = self.window[level], self.hero.operands[0].shape[1 + level]
        origin = tile.at[1 + level] * w.stride - w.pad_low
        low: Value | int = 0
        high: Value | int = w.size
        if origin.low < 0:
            missing = b.max(b.sub(b.const(0), e.position(origin)), b.const(0))
            low = b.div(b.add(missing, b.const(w.window_dilation - 1)), b.const(w.window_dilation))
        if origin.high + (w.size - 1) * w.window_dilation >= size:
            room = b.sub(b.const(size - 1 + w.window_dilation), e.position(origin))
            high = b.min(b.div(b.max(room, b.const(0)), b.const(w.window_dilation)), b.const(w.size))
        with b.loop(low, high, carry=carried) as loop, e.scope():
            tap = e.bind(f"k{level}", loop.index, 0, w.size - 1)
            loop.yield_(*self._rows(tile, (*taps, tap), loop.carried))
        return list(loop.results)

    def _columns(self, tile: _Tile, taps: Index, carried: Sequence[Value]) -> list[Value]:
        """All taps of one kernel row: each input is read once, for every pixel that it counts for."""
        sums = list(carried)
        for first in range(0, self.window[-1].size, MOST_TAPS):
            for j in range(tile.vectors):
                self._some_columns(tile, taps, range(first, min(first + MOST_TAPS, self.window[-1].size)), j, sums)
        return sums

    def _some_columns(self, tile: _Tile, taps: Index, columns: range, j: int, sums: list[Value]) -> None:
        """Vector `j` of the sums after some taps of one kernel row."""
        e, b = self.frame.emitter, self.frame.b
        left = e.leaves[self.hero.operands[0]]
        assert isinstance(left, Array)
        w, size = self.window[-1], left.type.shape[-2]
        above = tuple(
            tile.at[1 + d] * v.stride - v.pad_low + taps[d] * v.window_dilation for d, v in enumerate(self.window[:-1])
        )
        row = ix.linearize(taps, tuple(v.size for v in self.window[:-1]))
        users: dict[int, list[tuple[int, int]]] = {}
        for pixel in range(tile.pixels):
            for tap in columns:
                users.setdefault(pixel * w.stride + tap * w.window_dilation, []).append((pixel, tap))
        with e.vector(self.lanes, tile.active if j == tile.vectors - 1 else None) as lane:
            channel = tile.channel + j * self.lanes
            weights = {}
            for tap in columns:
                base = tile.channel * self.taps + (row * w.size + tap) * tile.channels + j * self.lanes
                weights[tap] = b.load(self.packed, e.position(base), self.lanes, e.mask)
            for offset, pairs in sorted(users.items()):
                x = tile.start * w.stride + (offset - w.pad_low)
                if not e.inside(x, 0, size).attributes[0]:
                    continue
                value = e.load(left, (tile.at[0], *above, x, channel + lane))
                value = storage.convert(b, value, left.type.element, self.element)
                for pixel, tap in pairs:
                    k = pixel * tile.vectors + j
                    if self.compute.is_float:
                        sums[k] = b.multiply_add(value, weights[tap], sums[k])
                    else:
                        sums[k] = b.add(b.mul(value, weights[tap]), sums[k])
