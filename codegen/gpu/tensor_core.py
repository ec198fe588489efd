"""Contractions on tensor cores: `mma` over slices in shared memory, f32 sums, half precision or TF32 operands.

A block has two slices of each operand: while warps multiply one, the other is on its way. What lies in memory as it is
multiplied is copied without passing registers, up to 16 bytes at a time; the rest (fused producers, odd sizes) goes
through `value`, element by element.

Shared memory holds slices in chunks of 16 bytes, along depth or across it as the operand lies in memory. Chunk c of row
r is at place c xor (r / rows in 128 bytes), so that neither the eight rows of a tile that `load_matrix` reads nor the
chunks that eight threads write share a bank. Sums leave through shared memory too, so that neighbouring threads store
neighbouring results.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.codegen.gpu.product import Product, Tile, View
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Buffer, Value
from onnxla.codegen.kernels.value import Array
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import BF16, F16, F32, ElementType

WARP = 32
STAGES = 2
"""Slices of an operand: one is multiplied while the next is brought."""
CHUNK_BYTES = 16
ROW_BYTES = 64
"""Of a slice along depth."""
STRIP_BYTES = 16 << 10
"""Shared memory through which sums leave."""
FEWEST = 16
"""Depth, and rows or columns, below which tiles would be mostly empty."""
ENOUGH_BLOCKS = 64
"""Blocks of the largest tile that occupy a GPU."""
_KINDS = {F16: "f16", BF16: "bf16", F32: "tf32"}


@dataclass(frozen=True)
class WarpTile(Tile):
    """A tile of `down` by `across` warps; each has a multiple of 16 rows and of 16 columns."""

    down: int
    across: int

    @property
    def threads(self) -> int:
        return self.down * self.across * WARP


def lower_on_tensor_cores(
    cluster: Cluster, hero: Instruction, view: View, element: ElementType, target: GpuTarget
) -> Lowering | None:
    """None where the target has no fitting tensor cores, and for products too small to fill a tile."""
    kinds = {o.tensor_type.element for o in hero.operands}
    held = kinds.pop()
    if kinds or element not in (held, F32) or not target.multiplies(held):
        return None
    if view.depth < FEWEST or max(view.rows, view.columns) < FEWEST:
        return None
    return _TensorCore(cluster, hero, view, element, _tile(view), held).lower()


def _tile(view: View) -> WarpTile:
    """The largest tile that leaves enough blocks for a GPU, or one that fits few rows or columns."""
    if view.rows <= 16:
        return WarpTile(16, 64, 1, 4)
    if view.columns <= 32:
        return WarpTile(64, 32, 4, 1)
    blocks = view.batches * (view.rows // 128) * (view.columns // 128)
    return WarpTile(128, 128, 2, 4) if blocks >= ENOUGH_BLOCKS else WarpTile(64, 64, 2, 2)


class _Slices:
    """The slices of one operand in shared memory."""

    def __init__(self, product: "_TensorCore", width: int, is_left: bool) -> None:
        view, self.product, self.is_left = product.view, product, is_left
        self.width = width
        self.first = product.first_row if is_left else product.first_column
        self.in_memory_along_depth = view.left_runs_along_depth if is_left else view.right_runs_along_depth
        # only 16-bit elements are transposed on their way to registers
        self.along_depth = self.in_memory_along_depth or product.held is F32
        self.rows, self.row = (width, product.step) if self.along_depth else (product.step, width)
        self.buffer: Buffer = product.b.shared(
            "left" if is_left else "right",
            storage.storage_element(product.held),
            STAGES * width * product.step,
            CHUNK_BYTES,
        )
        self.array = product.e.leaves.get(product.hero.operands[0 if is_left else 1])
        run = view.left_run if is_left else view.right_run
        copied = isinstance(self.array, Array) and self.along_depth == self.in_memory_along_depth
        self.run = math.gcd(run, product.chunk) if copied else 1
        """Elements that are brought together."""
        self.is_copied = copied and self.run * product.held.bytes >= 4
        """Without passing registers; the hardware does not copy less than 4 bytes."""

    def place(self, stage: Expr, row: Expr, chunk: Expr) -> Expr:
        """Of the first element of a chunk."""
        e, b, size = self.product.e, self.product.b, self.product.chunk
        chunks = self.row // size
        within = min(chunks, 8)
        turn = (row // max(8 // chunks, 1)) % within
        turned = e.bind("turned", b.binary("xor", e.position(chunk), e.position(turn)), 0, chunks - 1)
        return stage * (self.rows * self.row) + row * self.row + turned * size

    def bring(self, stage: Expr, step: Expr) -> None:
        """All threads bring a slice; zeros around the operand."""
        product, e, b = self.product, self.product.e, self.product.b
        parcels = self.rows * self.row // self.run
        for part in range(-(-parcels // product.threads)):
            number = product.thread + part * product.threads
            if (part + 1) * product.threads <= parcels:
                self._parcel(number, stage, step)
                continue
            with b.if_(b.compare("LT", e.position(number), b.const(parcels))) as branch:
                with branch.then(), e.scope():
                    self._parcel(e.bind("number", e.position(number), 0, parcels - 1), stage, step)
                with branch.otherwise():
                    pass

    def _parcel(self, number: Expr, stage: Expr, step: Expr) -> None:
        product, e, b = self.product, self.product.e, self.product.b
        if self.along_depth == self.in_memory_along_depth:
            row, element = number // (self.row // self.run), number % (self.row // self.run) * self.run
        else:
            # a warp reads four times eight neighbours, and writes eight chunks
            row = number % 8 + number // 32 % (self.rows // 8) * 8
            element = number // 8 % 4 + number // (4 * self.rows) * 4
        line, depth = (row, element) if self.along_depth else (element, row)
        line, depth = self.first + line, step * product.step + depth
        chunk = element // product.chunk
        place = self.place(stage, row, chunk) + element % product.chunk
        if self.is_copied:
            self._copy(place, depth, line)
        else:
            value = product.operand(depth, line, self.is_left)
            b.store(self.buffer, e.position(place), storage.encode(b, value, product.held))

    def _copy(self, place: Expr, depth: Expr, line: Expr) -> None:
        product, e, b, view, array = self.product, self.product.e, self.product.b, self.product.view, self.array
        assert isinstance(array, Array)
        size = view.rows if self.is_left else view.columns
        # beyond the operand the last parcel stands in, and nothing of it is read
        last_depth, last_line = view.depth - 1, size - 1
        if self.along_depth:
            last_depth = view.depth - self.run
        else:
            last_line = size - self.run
        inside = b.and_(e.inside(depth, 0, view.depth), e.inside(line, 0, size))
        present, index = product.located(self._within(depth, last_depth), self._within(line, last_line), self.is_left)
        at = ix.linearize(index, array.type.shape)
        condition = b.and_(inside, present)
        position = e.position(at)
        if at.low < 0 or at.high >= array.type.size:
            position = b.select(condition, position, b.const(0))
        b.copy_async(self.buffer, e.position(place), array.buffer, position, self.run, condition)

    def _within(self, expr: Expr, last: int) -> Expr:
        e, b = self.product.e, self.product.b
        if expr.high <= last:
            return expr
        return e.bind("within", b.min(e.position(expr), b.const(last)), 0, last)

    def load(self, stage: Expr, lines: Expr, pair: int, lane: Expr) -> Value:
        """16 lines by two chunks of depth as `mma` takes them: of the left operand first all lines, of the right one
        first all depth."""
        product, e = self.product, self.product.e
        low, high = lane // 8 % 2, lane // 16
        along_lines, along_chunks = (low, high) if self.is_left else (high, low)
        if self.along_depth:
            row, chunk = lines + along_lines * 8 + lane % 8, along_chunks + pair * 2
        else:
            row, chunk = along_chunks * 8 + lane % 8 + pair * 16, lines // 8 + along_lines
        b, place = product.b, e.position(self.place(stage, row, chunk))
        loaded = b.load_matrix(self.buffer, place, transposed=not self.along_depth)
        return b.pack([b.round_to_tf32(b.extract(loaded, k)) for k in range(4)]) if product.held is F32 else loaded


class _TensorCore(Product):
    tile: WarpTile

    def __init__(
        self, cluster: Cluster, hero: Instruction, view: View, element: ElementType, tile: WarpTile, held: ElementType
    ) -> None:
        super().__init__(cluster, hero, view, element, tile, tile.threads)
        self.held = held
        self.chunk, self.step = CHUNK_BYTES // held.bytes, ROW_BYTES // held.bytes
        self.left = _Slices(self, tile.rows, is_left=True)
        self.right = _Slices(self, tile.columns, is_left=False)
        self.lane, warp = self.thread % WARP, self.thread // WARP
        self.warp_row, self.warp_column = warp // tile.across, warp % tile.across
        self.height, self.width = tile.rows // tile.down, tile.columns // tile.across

    def lower(self) -> Lowering:
        e, b = self.e, self.b
        zero = b.const(0.0, F32, 4)
        count = self.height // 16 * (self.width // 8)
        self.bring(ix.ZERO, ix.ZERO)
        with e.loop("step", -(-self.view.depth // self.step), carry=[zero] * count) as (step, loop):
            b.wait_for_copies()
            b.barrier()  # this slice is there, and nobody multiplies the one before any more
            self.bring((step + 1) % STAGES, step + 1)
            loop.next = self.multiply(step % STAGES, loop.carried)
        self.leave(loop.results)
        return Lowering((KernelCall(b.finish(), tuple(self.frame.arguments)),))

    def bring(self, stage: Expr, step: Expr) -> None:
        for slices in (self.left, self.right):
            slices.bring(stage, step)

    def multiply(self, stage: Expr, totals: Sequence[Value]) -> list[Value]:
        b, across = self.b, self.width // 8
        sums = list(totals)
        for pair in range(ROW_BYTES // CHUNK_BYTES // 2):
            lefts = [
                self.left.load(stage, self.warp_row * self.height + 16 * i, pair, self.lane)
                for i in range(self.height // 16)
            ]
            for j in range(0, across, 2):
                right = self.right.load(stage, self.warp_column * self.width + 8 * j, pair, self.lane)
                words = [b.extract(right, k) for k in range(4)]
                for i, left in enumerate(lefts):
                    for k in range(2):
                        at = i * across + j + k
                        sums[at] = b.mma(left, (words[2 * k], words[2 * k + 1]), sums[at], _KINDS[self.held])
        return sums

    def leave(self, sums: Sequence[Value]) -> None:
        """Sums to results, through shared memory by strips of as many rows of each warp as fit."""
        e, b, tile = self.e, self.b, self.tile
        across, heights = self.width // 8, self.height // 16
        at_once = max(1, min(heights, STRIP_BYTES // (tile.down * 16 * tile.columns * F32.bytes)))
        rows = tile.down * at_once * 16
        strip = b.shared("strip", F32, rows * tile.columns)

        def place(row: Expr, column: Expr) -> Value:
            # the even columns of eight rows, which a warp stores together, are 32 banks
            turned = b.binary("xor", e.position(column), e.position(row % 4 * 8 + row // 4 % 2))
            return b.add(e.position(row * tile.columns), turned)

        for first in range(0, heights, at_once):
            if first:
                b.barrier()
            for i in range(at_once):
                for j in range(across):
                    total = sums[(first + i) * across + j]
                    for k in range(4):
                        row = (self.warp_row * at_once + i) * 16 + k // 2 * 8 + self.lane // 4
                        column = self.warp_column * self.width + j * 8 + self.lane % 4 * 2 + k % 2
                        b.store(strip, place(row, column), b.extract(total, k))
            b.barrier()
            with e.loop("part", rows * tile.columns // self.threads) as (part, _):
                number = part * self.threads + self.thread
                row, column = number // tile.columns, number % tile.columns
                warp_row, inner = row // (at_once * 16), row % (at_once * 16)
                total = b.load(strip, place(row, column))
                self.finish(
                    self.first_row + warp_row * self.height + first * 16 + inner, self.first_column + column, total
                )
