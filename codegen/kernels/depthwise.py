"""Depthwise convolution, channels last: each channel has its own window, and lanes are channels.

    for each block of channels         (a few cache lines: the input lines of a window stay in the first-level cache)
      for each line
        for each tile of pixels, for each chunk of the block
          sums = the tile; store epilogue(sums)

A tile is a few neighbouring pixels of a line by a chunk, a few vectors of channels; every tap is one
multiply-add with the input straight from cache. Nothing is padded: lines outside the input shorten
the loop over kernel rows, and the tiles at both ends of a line, whose place is known, leave out
the taps that fall outside. The weights of a chunk lie together.
Tasks share out lines and blocks of channels (`depthwise_shape.py`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from onnxla.codegen.choices import Way
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.depthwise_shape import MOST_TAPS, Shape
from onnxla.codegen.kernels.epilogue import TileEpilogue
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.loop import name_of
from onnxla.codegen.kernels.value import Array, Index
from onnxla.codegen.lowering import KernelCall, Lowering, Packed
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Convolution
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import Array as NumpyArray

MOST_EDGE_TILES = 8


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
    own = Shape(hero, target)
    shapes: dict[str, Shape] = {}
    for vectors in dict.fromkeys((own.vectors, 1, 2)):
        for pixels in (own.pixels if vectors == own.vectors else None, *_fewer(own.pixels)):
            shape = Shape(hero, target, vectors, pixels)
            if len(shape.edges) <= MOST_EDGE_TILES:
                shapes.setdefault(shape.name, shape)

    def lower(shape: Shape) -> Lowering:
        return _Depthwise(cluster, hero, number, shape).lower()

    return [Way(shape.name, shape.work(), partial(lower, shape)) for shape in shapes.values()]


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
    def __init__(self, cluster: Cluster, hero: Instruction, number: int, shape: Shape) -> None:
        """`number` is the operand that holds the kernel."""
        assert isinstance(hero.op, Convolution)
        self.cluster, self.hero, self.op, self.number, self.shape = cluster, hero, hero.op, number, shape
        shares = shape.shares
        self.frame = Frame(cluster, name_of(cluster), shares.tasks, cluster.replaced(hero, hero.operands[1]))
        sums = shape.pixels * shape.vectors
        self.epilogue = TileEpilogue(cluster, hero, self.frame, hero.op.element, shape.lanes, sums)
        self.packed = self.frame.b.parameter("packed", shape.compute, shape.taps * shape.channels, "input", 64)
        packing = f"depthwise {self.op.dimensions} x{shape.width} {shape.compute}"
        self.frame.arguments.append(Packed(number, packing, self._pack))

    def lower(self) -> Lowering:
        e, b, s = self.frame.emitter, self.frame.b, self.shape
        shares = s.shares
        task = e.bind("task", b.task, 0, shares.tasks - 1)
        first, last = (b.min(e.position(at), b.const(shares.lines)) for at in shares.lines_of(task))
        start, stop = (e.position(at) for at in shares.blocks_of(task))
        if s.chunks:
            behind = b.min(b.mul(stop, b.const(s.block)), b.const(s.chunks))
            with b.loop(b.mul(start, b.const(s.block)), behind, s.block) as loop, e.scope():
                end = b.min(b.add(loop.index, b.const(s.block)), b.const(s.chunks))
                self._lines(first, last, self._whole(loop.index, end))
        if s.rest:
            # the last of the blocks
            with b.if_(b.compare("GE", stop, b.const(shares.blocks))) as branch:
                with branch.then(), e.scope():
                    self._lines(first, last, self._rest())
                with branch.otherwise():
                    pass
        kernel = b.finish()
        kernel.flops = s.flops
        return Lowering((KernelCall(kernel, tuple(self.frame.arguments)),))

    def _pack(self, kernel: NumpyArray) -> NumpyArray:
        """All taps of a chunk, then those of the next."""
        dims, s = self.op.dimensions, self.shape
        order = (*dims.kernel_spatial, dims.kernel_input_feature, dims.kernel_output_feature)
        flat = kernel.transpose(order).astype(s.compute.dtype).reshape(s.taps, s.channels)
        whole = s.chunks * s.width
        chunks = flat[:, :whole].reshape(s.taps, s.chunks, s.width).transpose(1, 0, 2)
        return np.concatenate((chunks.ravel(), flat[:, whole:].ravel()))

    def _lines(self, first: Value, last: Value, emit: _Emit) -> None:
        """`emit` for all tiles of the lines [first, last)."""
        e, lines = self.frame.emitter, self.hero.shape[:-2]
        with self.frame.b.loop(first, last) as loop, e.scope():
            line = e.bind("line", loop.index, 0, math.prod(lines) - 1)
            place = ix.delinearize(line, lines)
            at = tuple(e.bind(f"at{d}", e.position(i), i.low, i.high) for d, i in enumerate(place))
            for edge, pixels in self.shape.edges:
                with e.scope():
                    emit(at, ix.constant(edge), pixels)
            first_whole, behind = self.shape.interior
            if behind > first_whole:
                with e.loop("tile", behind - first_whole) as (tile, _):
                    emit(at, (tile + first_whole) * self.shape.pixels, self.shape.pixels)

    def _whole(self, start: Value, stop: Value) -> _Emit:
        """The chunks [start, stop) of some pixels: the input is read in the order it lies in memory."""
        e, b, s = self.frame.emitter, self.frame.b, self.shape

        def emit(at: Index, pixel: Expr, pixels: int) -> None:
            with b.loop(start, stop) as loop, e.scope():
                channel = e.bind("chunk", loop.index, 0, s.chunks - 1) * s.width
                self._tile(_Tile(at, pixel, pixels, channel, s.width, s.vectors, s.lanes))

        return emit

    def _rest(self) -> _Emit:
        """The channels behind the last whole chunk."""
        s = self.shape
        vectors = -(-s.rest // s.lanes)
        active, channel = s.rest - (vectors - 1) * s.lanes, ix.constant(s.chunks * s.width)
        return lambda at, pixel, pixels: self._tile(_Tile(at, pixel, pixels, channel, s.rest, vectors, active))

    def _tile(self, tile: _Tile) -> None:
        zero = self.frame.b.const(0, self.shape.compute, self.shape.lanes)
        sums = self._rows(tile, (), [zero] * (tile.pixels * tile.vectors))

        def at(pixel: Expr, column: Expr) -> Index:
            return (*tile.at, tile.start + pixel, tile.channel + column)

        self.epilogue.apply(sums, tile.pixels, tile.vectors, tile.active, at)

    def _rows(self, tile: _Tile, taps: Index, carried: Sequence[Value]) -> list[Value]:
        """Loops over all kernel dimensions but the last, bounded to where the input is."""
        e, b = self.frame.emitter, self.frame.b
        level = len(taps)
        if level == len(self.shape.window) - 1:
            return self._columns(tile, taps, carried)
        w, size = self.shape.window[level], self.hero.operands[0].shape[1 + level]
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
        sums, size = list(carried), self.shape.window[-1].size
        for first in range(0, size, MOST_TAPS):
            for j in range(tile.vectors):
                self._some_columns(tile, taps, range(first, min(first + MOST_TAPS, size)), j, sums)
        return sums

    def _some_columns(self, tile: _Tile, taps: Index, columns: range, j: int, sums: list[Value]) -> None:
        """Vector `j` of the sums after some taps of one kernel row."""
        e, b = self.frame.emitter, self.frame.b
        left = e.leaves[self.hero.operands[0]]
        assert isinstance(left, Array)
        (*outer, w), size = self.shape.window, left.type.shape[-2]
        above = tuple(tile.at[1 + d] * v.stride - v.pad_low + taps[d] * v.window_dilation for d, v in enumerate(outer))
        row = ix.linearize(taps, tuple(v.size for v in outer))
        users: dict[int, list[tuple[int, int]]] = {}
        for pixel in range(tile.pixels):
            for tap in columns:
                users.setdefault(pixel * w.stride + tap * w.window_dilation, []).append((pixel, tap))
        with e.vector(self.shape.lanes, tile.active if j == tile.vectors - 1 else None) as lane:
            channel = tile.channel + j * self.shape.lanes
            weights = {}
            for tap in columns:
                base = tile.channel * self.shape.taps + (row * w.size + tap) * tile.channels + j * self.shape.lanes
                weights[tap] = b.load(self.packed, e.position(base), self.shape.lanes, e.mask)
            for offset, pairs in sorted(users.items()):
                x = tile.start * w.stride + (offset - w.pad_low)
                if not e.inside(x, 0, size).attributes[0]:
                    continue
                value = e.load(left, (tile.at[0], *above, x, channel + lane))
                value = storage.convert(b, value, left.type.element, self.op.element)
                for pixel, tap in pairs:
                    k = pixel * tile.vectors + j
                    if self.shape.compute.is_float:
                        sums[k] = b.multiply_add(value, weights[tap], sums[k])
                    else:
                        sums[k] = b.add(b.mul(value, weights[tap]), sums[k])
