"""Winograd's convolution of 3x3 kernels: 36 products for 16 outputs, where direct takes 144; in integers also 16 for 4.

    V = B^T d B        for each 6x6 tile of the input          (input transform)
    M[k] = V[k] U[k]   for each of the 36 places               (small matrix products, the register tile)
    Y = A^T M A        for each 4x4 tile of the output         (output transform, then the epilogue)

A task takes a block of tiles through all three stages while it lies in cache. Weights are transformed while compiling.
In floats the result errs more than the direct sum's (`precision="highest"` keeps to that); sums of products of bytes
are exact, and equal to the direct sum's (`winograd_algorithm.py` says why).
"""

from collections.abc import Callable

from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.epilogue import finish
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.loop import name_of
from onnxla.codegen.kernels.register_tile import PackedRight, Place, Problem, RegisterTile, Turn, pack_panels
from onnxla.codegen.kernels.tiling import choose_tiling
from onnxla.codegen.kernels.value import Array
from onnxla.codegen.kernels.winograd_shape import Shape
from onnxla.codegen.kernels.winograd_transform import both_ways
from onnxla.codegen.lowering import KernelCall, Lowering, Packed
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Convolution
from onnxla.hlo.types import Array as NumpyArray
from onnxla.hlo.types import TensorType


def lower_winograd(cluster: Cluster, hero: Instruction, shape: Shape) -> Lowering:
    """The convolution `hero` of the cluster by the algorithm and in the blocks of `shape`."""
    return _Winograd(cluster, hero, shape).lower()


class _Winograd:
    def __init__(self, cluster: Cluster, hero: Instruction, shape: Shape) -> None:
        self.cluster, self.hero, self.shape = cluster, hero, shape
        self.kinds, self.algorithm = shape.arithmetic, shape.arithmetic.algorithm
        group, total, factor = self.kinds.group, self.kinds.total, self.kinds.factor
        self.shares = shape.shares
        self.features = shape.features // self.shares
        self.share = ix.ZERO
        self.tiling = choose_tiling((shape.block,), self.features, True, total, shape.target, group)
        tasks = shape.blocks * self.shares
        frame = Frame(cluster, name_of(cluster) + "_winograd", tasks, cluster.replaced(hero, hero.operands[1]))
        self.frame, self.e, self.b = frame, frame.emitter, frame.b
        left = frame.emitter.leaves[hero.operands[0]]
        assert isinstance(left, Array)
        self.input = left
        places, out = self.algorithm.places, self.algorithm.out
        panels = -(-self.features // self.tiling.width)
        panel = shape.channels // group * self.tiling.width
        packed = self.b.parameter("packed", factor, self.shares * places * panels * panel * group, "input", 64)
        packing = f"winograd {out}x{out} /{self.shares} x{self.tiling.width} {factor}/{group}"
        frame.arguments.append(Packed(cluster.operand_number(hero.operands[1]), packing, self._pack))
        self.right = PackedRight(packed, self.tiling.width, panel, panels * panel, group)
        self.v = self.b.scratch("v", factor, places * shape.block * shape.channels)
        self.m = self.b.scratch("m", total, places * shape.block * self.features)
        self.y = self.b.scratch("y", total, out * out * shape.lanes)

    def _pack(self, kernel: NumpyArray) -> NumpyArray:
        """Weights `[3, 3, channels, features]` transformed: panels for each share of the features and each place."""
        channels = self.shape.channels
        wide = self.algorithm.transformed(kernel).reshape(-1, channels, self.shares, self.features)
        by_share = wide.transpose(2, 0, 1, 3).reshape(-1, channels, self.features)
        return pack_panels(by_share, self.tiling.width, self.kinds.factor.dtype, self.kinds.group)

    def lower(self) -> Lowering:
        e, b, s = self.e, self.b, self.shape
        task = e.bind("task", b.task, 0, s.blocks * self.shares - 1)
        if self.shares > 1:
            self.share = e.bind("share", e.position(task % self.shares), 0, self.shares - 1)
        first = e.bind("block", e.position(task // self.shares), 0, s.blocks - 1) * s.block
        count = b.min(b.const(s.block), b.sub(b.const(s.tiles), e.position(first)))
        with b.loop(b.const(0), count) as loop, e.scope():
            self._transform_input(first, e.bind("tile", loop.index, 0, s.block - 1))
        self._multiply()
        with b.loop(b.const(0), count) as loop, e.scope():
            self._transform_output(first, e.bind("tile", loop.index, 0, s.block - 1))
        kernel = b.finish()
        kernel.flops = s.flops
        return Lowering((KernelCall(kernel, tuple(self.frame.arguments)),))

    def _place(self, first: Expr, tile: Expr) -> tuple[Expr, Expr, Expr]:
        """Image, tile row and tile column of a tile of the block."""
        e, s = self.e, self.shape
        number = e.bind("number", e.position(first + tile), 0, s.tiles - 1)
        at = ix.delinearize(number, (s.batch, s.rows, s.columns))
        image, row, column = (e.bind(f"t{k}", e.position(i), i.low, i.high) for k, i in enumerate(at))
        return image, row, column

    def _transform_input(self, first: Expr, tile: Expr) -> None:
        """A tile inside the input is read as it lies; one that hangs over the edge has zeros there."""
        e, b, s = self.e, self.b, self.shape
        op = self.hero.op
        assert isinstance(op, Convolution)
        size, lanes = self.algorithm.size, s.channel_lanes
        image, row, column = self._place(first, tile)
        above, left = (w.pad_low for w in op.window.dimensions)
        ys, xs = ([at * s.out + (i - pad) for i in range(size)] for at, pad in ((row, above), (column, left)))
        _, height, width, _ = self.input.type.shape
        rows, columns = [e.inside(y, 0, height) for y in ys], [e.inside(x, 0, width) for x in xs]
        whole = b.and_(b.and_(rows[0], rows[-1]), b.and_(columns[0], columns[-1]))
        zero = b.const(0, self.kinds.factor, lanes)

        def transform(load: Callable[[int, int, Expr], Value]) -> list[Value]:
            with e.loop("c", s.channels // lanes) as (c, _):
                grid = [[load(i, j, c * lanes) for j in range(size)] for i in range(size)]
                transformed = both_ways(b, self.algorithm.input, grid)
                for k in range(s.places):
                    at = tile * s.channels + c * lanes + k * s.block * s.channels
                    value = transformed[k // size][k % size]
                    b.store(self.v, e.position(at), value, alignment=64 if lanes * value.element.bytes == 64 else 0)
            return []

        def plain(i: int, j: int, channel: Expr) -> Value:
            at = ix.linearize((image, ys[i], xs[j], channel), self.input.type.shape)
            return b.convert(b.load(self.input.buffer, e.position(at), lanes), self.kinds.factor)

        def guarded(i: int, j: int, channel: Expr) -> Value:
            inside = b.and_(rows[i], columns[j])
            return e.choose(inside, lambda: [plain(i, j, channel)], lambda: [zero], lanes)[0]

        e.choose(whole, lambda: transform(plain), lambda: transform(guarded), 1)

    def _multiply(self) -> None:
        """The products [tiles, channels] x [channels, features] of each place, for a short block too as for a whole."""
        e, s, group = self.e, self.shape, self.kinds.group
        left = Array(self.v, TensorType(self.kinds.factor, (s.places, s.block, s.channels)))
        problem = Problem(
            self.shares * s.places,
            (s.block,),
            self.features,
            (s.channels // group,),
            left,
            lambda place, row, depth: (place - self.share * s.places, *row, *depth),
            self.kinds.total,
            lambda place, row, column: (place, *row, column),
            group,
        )
        register_tile = RegisterTile(e, problem, self.right, self.tiling.lanes)
        height = self.tiling.rows
        count = -(-s.block // height)
        tall = s.block - count * (-(-s.block // count) - 1)
        height = -(-s.block // count)
        whole, rest = divmod(self.features, self.tiling.width)
        with e.loop("place", s.places) as (number, _):
            place = self.share * s.places + number
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
                row = (place - self.share * s.places) * s.block + rows[i][0]
                at = row * self.features + panel * self.tiling.width + j * lanes
                b.store(self.m, e.position(at), sums[i * vectors + j])

    def _transform_output(self, first: Expr, tile: Expr) -> None:
        e, b, s = self.e, self.b, self.shape
        image, row, column = self._place(first, tile)
        lanes, out, size = s.lanes, self.algorithm.out, self.algorithm.size
        low = b.sub(b.const(s.height), e.position(row * out))
        far = b.sub(b.const(s.width), e.position(column * out))
        with e.loop("f", self.features // lanes) as (f, _):
            start = tile * self.features + f * lanes
            places = [[start + (i * size + j) * s.block * self.features for j in range(size)] for i in range(size)]
            feature = self.share * self.features + f * lanes
            grid = [[b.load(self.m, e.position(place), lanes) for place in line] for line in places]
            outputs = both_ways(b, self.algorithm.output, grid)
            for k in range(out * out):
                b.store(self.y, b.const(k * lanes), self._divided(outputs[k // out][k % out]))
            with b.loop(b.const(0), b.min(low, b.const(out))) as down, e.scope():
                y = e.bind("i", down.index, 0, min(out, s.height) - 1)
                with b.loop(b.const(0), b.min(far, b.const(out))) as across, e.scope():
                    x = e.bind("j", across.index, 0, min(out, s.width) - 1)
                    total = b.load(self.y, e.position(y * (out * lanes) + x * lanes), lanes)
                    with e.vector(lanes) as lane:
                        at = (image, row * out + y, column * out + x, feature + lane)
                        finish(self.cluster, self.hero, self.frame, at, total, self.kinds.total)

    def _divided(self, sums: Value) -> Value:
        """The sums divided by the algorithm's divisor, which they are multiples of, modulo 2^32."""
        b, algorithm = self.b, self.algorithm
        if algorithm.divisor == 1:
            return sums
        if algorithm.inverse != 1:
            sums = b.mul(sums, b.const(algorithm.inverse, sums.element))
        return b.binary("shr", sums, b.const(algorithm.shift, sums.element))
