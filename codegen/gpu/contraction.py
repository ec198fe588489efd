"""The contraction cores of a GPU: a block computes a tile of rows by columns, depth step by depth step.

Each step brings a slice of either operand into shared memory and lets every thread multiply what it needs of them.
Half precision goes to tensor cores (`tensor_core.py`); here a thread sums `tile.rows / 16` by `tile.columns / 16`
results in registers.
"""

from onnxla.codegen.gpu.product import Product, Tile, View
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.gpu.tensor_core import lower_on_tensor_cores
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Buffer, Value
from onnxla.codegen.lowering import KernelCall, Lowering
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import PRED, ElementType

SIDE = 16
"""Threads along the rows, and along the columns, of a tile."""
THREADS = SIDE * SIDE
STEP = 16
"""Depth of a slice in shared memory."""
APART = 2
"""Elements more in a row of a slice, so that two neighbours at all depths, which a warp writes, lie in all banks."""


def lower_contraction(
    cluster: Cluster, hero: Instruction, view: View, element: ElementType, target: GpuTarget
) -> Lowering | None:
    """`hero` is the only contraction of the cluster and sums in the compute type of `element`. None for pred."""
    compute = storage.compute_element(element)
    if compute is PRED or element.is_complex:
        return None
    on_tensor_cores = lower_on_tensor_cores(cluster, hero, view, element, target)
    if on_tensor_cores is not None:
        return on_tensor_cores
    tile = Tile(*(64 if size > SIDE else SIDE for size in (view.rows, view.columns)))
    return _Contraction(cluster, hero, view, element, tile, THREADS).lower()


class _Contraction(Product):
    def lower(self) -> Lowering:
        e, b, tile = self.e, self.b, self.tile
        left = b.shared("left", self.compute, STEP * (tile.rows + APART))
        right = b.shared("right", self.compute, STEP * (tile.columns + APART))
        row, column = self.thread // SIDE, self.thread % SIDE
        heights, widths = range(tile.rows // SIDE), range(tile.columns // SIDE)
        zero = e.literal(0, self.element)
        with e.loop("step", -(-self.view.depth // STEP), carry=[zero] * (len(heights) * len(widths))) as (step, loop):
            self.bring(left, step, is_left=True)
            self.bring(right, step, is_left=False)
            b.barrier()
            with e.loop("k", STEP, carry=loop.carried) as (k, inner):
                lefts = [self.shared(left, k, row + SIDE * i, tile.rows) for i in heights]
                rights = [self.shared(right, k, column + SIDE * j, tile.columns) for j in widths]
                inner.next = [
                    self.multiply_add(lefts[i], rights[j], inner.carried[i * len(widths) + j])
                    for i in heights
                    for j in widths
                ]
            b.barrier()
            loop.next = inner.results
        for i in heights:
            for j in widths:
                at = (self.first_row + row + SIDE * i, self.first_column + column + SIDE * j)
                self.finish(*at, loop.results[i * len(widths) + j])
        return Lowering((KernelCall(b.finish(), tuple(self.frame.arguments)),))

    def bring(self, shared: Buffer, step: Expr, is_left: bool) -> None:
        """All threads copy a slice of an operand to shared memory, neighbours what lies together; zeros around it."""
        e, b, view = self.e, self.b, self.view
        width = self.tile.rows if is_left else self.tile.columns
        start = self.first_row if is_left else self.first_column
        along_depth = view.left_runs_along_depth if is_left else view.right_runs_along_depth
        for part in range(STEP * width // THREADS):
            number = self.thread + part * THREADS
            k, at = (number % STEP, number // STEP) if along_depth else (number // width, number % width)
            value = self.operand(step * STEP + k, start + at, is_left)
            b.store(shared, e.position(k * (width + APART) + at), value)

    def shared(self, buffer: Buffer, k: Expr, at: Expr, width: int) -> Value:
        return self.b.load(buffer, self.e.position(k * (width + APART) + at))

    def multiply_add(self, x: Value, y: Value, total: Value) -> Value:
        b = self.b
        return b.fma(x, y, total) if self.compute.is_float else storage.wrap(b, b.add(b.mul(x, y), total), self.element)
