"""Winograd's convolutions: F(4x4, 3x3), 36 products for 16 outputs of a 3x3 window where direct takes 144, and
F(2x2, 3x3), 16 products for 4 outputs, whose transformed weights are smaller.

    V = B^T d B        for each 6x6 (4x4) tile of the input            (input transform)
    M[k] = V[k] U[k]   for each of the 36 (16) places                  (small matrix products, the register tile)
    Y = A^T M A        for each 4x4 (2x2) tile of the output           (output transform, then the epilogue)

A task takes a block of tiles through all three stages while it lies in cache. Weights are transformed
in float64 while compiling. Interpolation points are 0, 1, -1, 1/2, -2 and infinity, which err by about
1.7e-6 norm-wise at 256 channels (direct: 2e-7); the first three and infinity for 2x2, which err less.
`precision="highest"` keeps to direct convolution.
(Lavin, Gray 2016; the points after Barabasz et al. 2020.)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial

import numpy as np

from onnxla.codegen.choices import Way
from onnxla.codegen.cost import Work
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.epilogue import finish
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.loop import name_of
from onnxla.codegen.kernels.register_tile import PackedRight, Place, Problem, RegisterTile, Turn, pack_panels
from onnxla.codegen.kernels.tiling import choose_tiling
from onnxla.codegen.kernels.value import Array
from onnxla.codegen.kernels.work import effort
from onnxla.codegen.lowering import KernelCall, Lowering, Packed
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Convolution
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import F32, TensorType
from onnxla.hlo.types import Array as NumpyArray

OUTPUTS = (4, 2)
"""Outputs of a tile in each direction, of the two convolutions."""
SCRATCH_BYTES = 1 << 20
"""What the tiles of a block may take, transformed, before and after the products; twice as much where reading large
weights for another block costs more than the second-level cache gains."""
INPUT_SLOTS, OUTPUT_SLOTS = {4: 300, 2: 80}, {4: 260, 2: 56}
"""Slots (`work.py`) of transforming a tile of one vector of channels: loads, sums and stores."""
PRODUCTS = 0.8
"""Part of the multiply-adds' speed that the small products reach."""
GAIN = 0.9
"""Part of direct convolution's predicted time below which the model prefers this, which errs more."""


@cache
def matrices(out: int = 4) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """A^T, G and B^T of Cook and Toom's construction for `out` outputs: 4x6, 6x3 and 6x6, or 2x4, 4x3 and 4x4."""
    points = [Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 2), Fraction(-2)][: out + 1]
    count = len(points)

    def product(roots: list[Fraction]) -> list[Fraction]:
        """The coefficients of the polynomial with these roots, constant first."""
        coefficients = [Fraction(1)]
        for root in roots:
            shifted = [Fraction(0), *coefficients]
            coefficients = [s - root * c for s, c in zip(shifted, [*coefficients, Fraction(0)], strict=True)]
        return coefficients

    others = [[q for q in points if q != p] for p in points]
    scales = [math.prod((p - q for q in rest), start=Fraction(1)) for p, rest in zip(points, others, strict=True)]
    a = [[p**i for p in points] + [Fraction(i == out - 1)] for i in range(out)]
    g = [[p**j / s for j in range(3)] for p, s in zip(points, scales, strict=True)] + [[0, 0, 1]]
    b = [[*product(rest), *[Fraction(0)] * (out + 2 - count)] for rest in others] + [product(points)]
    return tuple(tuple(tuple(float(x) for x in row) for row in m) for m in (a, g, b))


@dataclass(frozen=True)
class _Shape:
    """The sizes of one convolution and how its tiles are cut into blocks."""

    batch: int
    height: int
    width: int
    channels: int
    features: int
    lanes: int
    out: int
    scratch: int = SCRATCH_BYTES

    @property
    def size(self) -> int:
        """Inputs of a tile in each direction."""
        return self.out + 2

    @property
    def places(self) -> int:
        return self.size * self.size

    @property
    def rows(self) -> int:
        return -(-self.height // self.out)

    @property
    def columns(self) -> int:
        return -(-self.width // self.out)

    @property
    def tiles(self) -> int:
        return self.batch * self.rows * self.columns

    @property
    def block(self) -> int:
        """Tiles of a block: within the scratch, few enough for eight threads where that leaves a dozen, and even."""
        most = max(self.scratch // (self.places * 4 * (self.channels + self.features)), 1)
        most = min(most, max(-(-self.tiles // 8), 12))
        return -(-self.tiles // -(-self.tiles // most))

    @property
    def name(self) -> str:
        """`winograd 4x4`, `winograd 4x4 in blocks of 12 tiles`."""
        blocks = "" if self.scratch == SCRATCH_BYTES else f" in blocks of {self.block} tiles"
        return f"winograd {self.out}x{self.out}{blocks}"

    def work(self, target: Target) -> Work:
        """What it asks of a core, epilogue apart."""
        channels, features = self.channels / self.lanes, self.features / self.lanes
        products = self.places * self.tiles * self.channels * features / PRODUCTS
        transforms = self.tiles * (channels * INPUT_SLOTS[self.out] + features * OUTPUT_SLOTS[self.out])
        weights = self.places * 4.0 * self.channels * self.features
        again = -(-self.tiles // self.block) - 1 if weights > target.l2_bytes / 2 else 0
        moved = 4.0 * self.batch * self.height * self.width * (self.channels + self.features)
        return Work(effort((products + transforms, 0.0, 0.0), target), weights, moved + again * weights)


def winograd_ways(cluster: Cluster, hero: Instruction, target: Target) -> list[Way]:
    """Empty where the convolution is of another kind."""
    op = hero.op
    assert isinstance(op, Convolution)
    lhs, kernel = (o.tensor_type for o in hero.operands)
    number = cluster.operand_number(hero.operands[1])
    plain = all(
        (w.size, w.stride, w.window_dilation, w.base_dilation, w.reversal) == (3, 1, 1, 1, False)
        for w in op.window.dimensions
    )
    if not plain or str(op.dimensions) != "b01f_01io->b01f" or op.feature_group_count * op.batch_group_count > 1:
        return []
    constant = isinstance(cluster.instruction.operands[number].op, Constant)
    if {lhs.element, kernel.element, op.element} != {F32} or not constant:
        return []
    lanes = target.vector_bytes // 4
    batch, height, width, features = hero.shape
    if lhs.shape[3] % lanes or features % lanes:
        return []
    shapes: dict[tuple[int, int], _Shape] = {}
    for out in OUTPUTS:
        for scratch in (SCRATCH_BYTES, 2 * SCRATCH_BYTES):
            shape = _Shape(batch, height, width, lhs.shape[3], features, lanes, out, scratch)
            shapes.setdefault((out, shape.block), shape)
    return [
        Way(s.name, s.work(target), partial(lower_winograd, cluster, hero, target, s, number))
        for s in shapes.values()
        if s.block >= 4
    ]


def lower_winograd(cluster: Cluster, hero: Instruction, target: Target, shape: _Shape, number: int) -> Lowering:
    """One of the ways; `number` is the operand that is the kernel."""
    return _Winograd(cluster, hero, target, shape, number).lower()


class _Winograd:
    def __init__(self, cluster: Cluster, hero: Instruction, target: Target, shape: _Shape, number: int) -> None:
        self.cluster, self.hero, self.target, self.shape, self.number = cluster, hero, target, shape, number
        self.tiling = choose_tiling((shape.block,), shape.features, True, F32, target)
        blocks = -(-shape.tiles // shape.block)
        frame = Frame(cluster, name_of(cluster) + "_winograd", blocks, cluster.replaced(hero, hero.operands[1]))
        self.frame, self.e, self.b = frame, frame.emitter, frame.b
        left = frame.emitter.leaves[hero.operands[0]]
        assert isinstance(left, Array)
        self.input = left
        panels = -(-shape.features // self.tiling.width)
        panel = shape.channels * self.tiling.width
        packed = self.b.parameter("packed", F32, shape.places * panels * panel, "input", 64)
        packing = f"winograd {shape.out}x{shape.out} x{self.tiling.width}"
        frame.arguments.append(Packed(number, packing, self._pack))
        self.right = PackedRight(packed, self.tiling.width, panel, panels * panel)
        self.panels = panels
        self.v = self.b.scratch("v", F32, shape.places * shape.block * shape.channels)
        self.m = self.b.scratch("m", F32, shape.places * shape.block * shape.features)
        self.y = self.b.scratch("y", F32, shape.out * shape.out * shape.lanes)

    def _pack(self, kernel: NumpyArray) -> NumpyArray:
        """Weights `[3, 3, channels, features]` transformed: panels for each of the places."""
        g = np.array(matrices(self.shape.out)[1])
        wide = np.einsum("ij,jlck,ml->imck", g, kernel.astype(np.float64), g)
        flat = wide.reshape(self.shape.places, self.shape.channels, self.shape.features)
        return pack_panels(flat, self.tiling.width, np.dtype(np.float32))

    def lower(self) -> Lowering:
        e, b, s = self.e, self.b, self.shape
        first = e.bind("block", b.task, 0, -(-s.tiles // s.block) - 1) * s.block
        count = b.min(b.const(s.block), b.sub(b.const(s.tiles), e.position(first)))
        with b.loop(b.const(0), count) as loop, e.scope():
            self._transform_input(first, e.bind("tile", loop.index, 0, s.block - 1))
        self._multiply()
        with b.loop(b.const(0), count) as loop, e.scope():
            self._transform_output(first, e.bind("tile", loop.index, 0, s.block - 1))
        kernel = b.finish()
        kernel.flops = 2.0 * s.places * s.tiles * s.channels * s.features
        return Lowering((KernelCall(kernel, tuple(self.frame.arguments)),))

    def _place(self, first: Expr, tile: Expr) -> tuple[Expr, Expr, Expr]:
        """Image, tile row and tile column of a tile of the block."""
        e, s = self.e, self.shape
        number = e.bind("number", e.position(first + tile), 0, s.tiles - 1)
        at = ix.delinearize(number, (s.batch, s.rows, s.columns))
        image, row, column = (e.bind(f"t{k}", e.position(i), i.low, i.high) for k, i in enumerate(at))
        return image, row, column

    def _combine(self, coefficients: tuple[float, ...], values: list[Value]) -> Value:
        """The linear combination, without products by 0, 1 and -1."""
        b = self.b
        total: Value | None = None
        for c, v in sorted(zip(coefficients, values, strict=True), key=lambda pair: pair[0] != 1.0):
            if c == 0:
                continue
            if total is None:
                total = v if c == 1 else b.mul(v, b.const(c, F32))
            elif abs(c) == 1:
                total = b.add(total, v) if c == 1 else b.sub(total, v)
            else:
                total = b.multiply_add(v, b.const(c, F32), total)
        assert total is not None
        return total

    def _both_ways(self, matrix: tuple[tuple[float, ...], ...], grid: list[list[Value]]) -> list[list[Value]]:
        """matrix * grid * matrix^T, on vectors."""
        size = len(grid)
        half = [[self._combine(row, [grid[k][j] for k in range(size)]) for j in range(size)] for row in matrix]
        return [[self._combine(row, line) for row in matrix] for line in half]

    def _transform_input(self, first: Expr, tile: Expr) -> None:
        """A tile inside the input is read as it lies; one that hangs over the edge has zeros there."""
        e, b, s = self.e, self.b, self.shape
        op = self.hero.op
        assert isinstance(op, Convolution)
        image, row, column = self._place(first, tile)
        above, left = (w.pad_low for w in op.window.dimensions)
        ys, xs = (
            [row * s.out + (i - above) for i in range(s.size)],
            [column * s.out + (j - left) for j in range(s.size)],
        )
        _, height, width, _ = self.input.type.shape
        rows, columns = [e.inside(y, 0, height) for y in ys], [e.inside(x, 0, width) for x in xs]
        whole = b.and_(b.and_(rows[0], rows[-1]), b.and_(columns[0], columns[-1]))
        zero = b.const(0, F32, s.lanes)

        def transform(load: Callable[[int, int, Expr], Value]) -> list[Value]:
            with e.loop("c", s.channels // s.lanes) as (c, _):
                grid = [[load(i, j, c * s.lanes) for j in range(s.size)] for i in range(s.size)]
                transformed = self._both_ways(matrices(s.out)[2], grid)
                for k in range(s.places):
                    at = tile * s.channels + c * s.lanes + k * s.block * s.channels
                    value = transformed[k // s.size][k % s.size]
                    b.store(self.v, e.position(at), value, alignment=64 if s.lanes == 16 else 0)
            return []

        def plain(i: int, j: int, channel: Expr) -> Value:
            at = ix.linearize((image, ys[i], xs[j], channel), self.input.type.shape)
            return b.load(self.input.buffer, e.position(at), s.lanes)

        def guarded(i: int, j: int, channel: Expr) -> Value:
            inside = b.and_(rows[i], columns[j])
            return e.choose(inside, lambda: [plain(i, j, channel)], lambda: [zero], s.lanes)[0]

        e.choose(whole, lambda: transform(plain), lambda: transform(guarded), 1)

    def _multiply(self) -> None:
        """The products [tiles, channels] x [channels, features], also for tiles that a short block lacks."""
        e, s = self.e, self.shape
        left = Array(self.v, TensorType(F32, (s.places, s.block, s.channels)))
        problem = Problem(
            s.places,
            (s.block,),
            s.features,
            (s.channels,),
            left,
            lambda batch, row, depth: (batch, *row, *depth),
            F32,
            lambda batch, row, column: (batch, *row, column),
        )
        register_tile = RegisterTile(e, problem, self.right, self.tiling.lanes)
        height = self.tiling.rows
        count = -(-s.block // height)
        tall = s.block - count * (-(-s.block // count) - 1)
        height = -(-s.block // count)
        whole, rest = divmod(s.features, self.tiling.width)
        with e.loop("place", s.places) as (place, _):
            if whole:
                with e.loop("panel", whole) as (panel, _):
                    self._tiles(register_tile, place, panel, self.tiling.vectors, tall, count, height)
            if rest:
                vectors = rest // self.tiling.lanes
                with e.scope():
                    self._tiles(register_tile, place, ix.constant(whole), vectors, tall, count, height)

    def _tiles(
        self, register_tile: RegisterTile, place: Expr, panel: Expr, vectors: int, tall: int, count: int, height: int
    ) -> None:
        e = self.e
        for name, amount, size, before in (("tall", tall, height, 0), ("short", count - tall, height - 1, tall)):
            if amount:
                with e.loop(name, amount) as (t, _):
                    turn = Turn(t + before, count)
                    self._tile(register_tile, place, panel, vectors, t * size + before * height, size, turn)

    def _tile(
        self,
        register_tile: RegisterTile,
        place: Expr,
        panel: Expr,
        vectors: int,
        start: Expr,
        height: int,
        turn: Turn,
    ) -> None:
        e, b, s, lanes = self.e, self.b, self.shape, self.tiling.lanes
        rows = [(start + i,) for i in range(height)]
        sums = register_tile.sums(Place(place, panel, rows, vectors, lanes, turn))
        for i in range(height):
            for j in range(vectors):
                at = place * (s.block * s.features) + rows[i][0] * s.features + panel * self.tiling.width + j * lanes
                b.store(self.m, e.position(at), sums[i * vectors + j])

    def _transform_output(self, first: Expr, tile: Expr) -> None:
        e, b, s = self.e, self.b, self.shape
        image, row, column = self._place(first, tile)
        lanes = s.lanes
        low = b.sub(b.const(s.height), e.position(row * s.out))
        far = b.sub(b.const(s.width), e.position(column * s.out))
        with e.loop("f", s.features // lanes) as (f, _):
            start = tile * s.features + f * lanes
            places = [[start + (i * s.size + j) * s.block * s.features for j in range(s.size)] for i in range(s.size)]
            grid = [[b.load(self.m, e.position(place), lanes) for place in line] for line in places]
            outputs = self._both_ways(matrices(s.out)[0], grid)
            for k in range(s.out * s.out):
                b.store(self.y, b.const(k * lanes), outputs[k // s.out][k % s.out])
            with b.loop(b.const(0), b.min(low, b.const(s.out))) as down, e.scope():
                y = e.bind("i", down.index, 0, min(s.out, s.height) - 1)
                with b.loop(b.const(0), b.min(far, b.const(s.out))) as across, e.scope():
                    x = e.bind("j", across.index, 0, min(s.out, s.width) - 1)
                    total = b.load(self.y, e.position(y * (s.out * lanes) + x * lanes), lanes)
                    with e.vector(lanes) as lane:
                        at = (image, row * s.out + y, column * s.out + x, f * lanes + lane)
                        finish(self.cluster, self.hero, self.frame, at, total, F32)
