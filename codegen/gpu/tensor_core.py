"""Contractions on tensor cores: `mma` over slices in shared memory; half precision or TF32 with f32 sums, 8-bit
integers with s32 sums, which are exact.

A block has two slices of each operand: while warps multiply one, the other is on its way. Sums leave through shared
memory too, so that neighbouring threads store neighbouring results.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.codegen.gpu.product import Product, Tile, View
from onnxla.codegen.gpu.slices import CHUNK_BYTES, Factor, Slices
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.gpu.views import Viewed
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import BF16, F16, F32, S8, S32, U8, ElementType

WARP = 32
STAGES = 2
"""Slices of an operand: one is multiplied while the next is brought."""
ROW_BYTES = 64
"""Of a slice along depth."""
STRIP_BYTES = 16 << 10
"""Shared memory through which sums leave."""
FEWEST = 16
"""Depth, and rows or columns, below which tiles would be mostly empty."""
ENOUGH_BLOCKS = 64
"""Blocks of the largest tile that occupy a GPU."""
KINDS = {F16: "f16", BF16: "bf16", F32: "tf32", U8: "u8", S8: "s8"}


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
    left, right = (o.tensor_type.element for o in hero.operands)
    whole = element is S32 and {left, right} <= {U8, S8}
    if not (whole or left is right and left.is_float and element in (left, F32)) or not target.multiplies(left):
        return None
    if view.depth < FEWEST or max(view.rows, view.columns) < FEWEST:
        return None
    return _TensorCore(cluster, hero, view, element, _tile(view)).lower()


def _tile(view: View) -> WarpTile:
    """The largest tile that leaves enough blocks for a GPU, or one that fits few rows or columns."""
    if view.rows <= 16:
        return WarpTile(16, 64, 1, 4)
    if view.columns <= 32:
        return WarpTile(64, 32, 4, 1)
    blocks = view.batches * (view.rows // 128) * (view.columns // 128)
    return WarpTile(128, 128, 2, 4) if blocks >= ENOUGH_BLOCKS else WarpTile(64, 64, 2, 2)


class _TensorCore(Product):
    tile: WarpTile

    def __init__(self, cluster: Cluster, hero: Instruction, view: View, element: ElementType, tile: WarpTile) -> None:
        super().__init__(cluster, hero, view, element, tile, tile.threads)
        self.held = tuple(o.tensor_type.element for o in hero.operands)
        kinds = [KINDS[held] for held in self.held]
        self.kind = ".".join(kinds) if element is S32 else kinds[0]
        self.sums = S32 if element is S32 else F32
        self.step = ROW_BYTES // self.held[0].bytes
        self.left, self.right = (
            Slices(self.e, self.thread, self.threads, self.factor(is_left), width, self.step, is_left, STAGES)
            for width, is_left in ((tile.rows, True), (tile.columns, False))
        )
        self.lane, warp = self.thread % WARP, self.thread // WARP
        self.warp_row, self.warp_column = warp // tile.across, warp % tile.across
        self.height, self.width = tile.rows // tile.down, tile.columns // tile.across

    def lower(self) -> Lowering:
        e, b = self.e, self.b
        zero = b.const(0, self.sums, 4)
        count = self.height // 16 * (self.width // 8)
        self.bring(ix.ZERO, ix.ZERO)
        with e.loop("step", -(-self.view.depth // self.step), carry=[zero] * count) as (step, loop):
            b.wait_for_copies()
            b.barrier()  # this slice is there, and nobody multiplies the one before any more
            self.bring((step + 1) % STAGES, step + 1)
            loop.next = self.multiply(step % STAGES, loop.carried)
        self.leave(loop.results)
        return Lowering((KernelCall(b.finish(), tuple(self.frame.arguments)),))

    def factor(self, is_left: bool) -> Factor:
        view, operand = self.view, self.hero.operands[0 if is_left else 1]
        held = self.held[0 if is_left else 1]

        def value(depth: Expr, line: Expr) -> Value:
            found = self.operand(depth, line, is_left)
            return self.b.convert(found, held) if held.is_integer else found

        return Factor(
            held,
            view.rows if is_left else view.columns,
            view.depth,
            view.left_runs_along_depth if is_left else view.right_runs_along_depth,
            view.left_run if is_left else view.right_run,
            Viewed.of(operand, self.e.leaves),
            lambda depth, line: self.located(depth, line, is_left),
            value,
        )

    def bring(self, stage: Expr, step: Expr) -> None:
        self.left.bring(stage, self.first_row, step * self.step)
        self.right.bring(stage, self.first_column, step * self.step)

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
                        sums[at] = b.mma(left, (words[2 * k], words[2 * k + 1]), sums[at], self.kind)
        return sums

    def leave(self, sums: Sequence[Value]) -> None:
        """Sums to results, through shared memory by strips of as many rows of each warp as fit."""
        e, b, tile = self.e, self.b, self.tile
        across, heights = self.width // 8, self.height // 16
        at_once = max(1, min(heights, STRIP_BYTES // (tile.down * 16 * tile.columns * F32.bytes)))
        rows = tile.down * at_once * 16
        strip = b.shared("strip", self.sums, rows * tile.columns)

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
