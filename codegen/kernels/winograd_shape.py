"""One of Winograd's convolutions of given sizes: what it is computed in, how it is cut into tasks, and its work.

Tasks take blocks of tiles. Where tiles are few, the tasks of a block share out the features, and each transforms the
block's input for itself.
"""

from dataclasses import dataclass

from onnxla.codegen.cost import Work
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels.winograd_algorithm import Algorithm, exact, floating
from onnxla.codegen.kernels.work import dot_slots, effort
from onnxla.hlo.types import F32, S16, S32, ElementType

SCRATCH_BYTES = 1 << 20
"""What the tiles of a block may take, transformed, before and after the products; twice as much where reading large
weights for another block costs more than the second-level cache gains."""
PRODUCTS = 0.8
"""Part of the multiply-adds' speed that the small products reach."""
MOST_TASKS = 8
FEWEST_TILES = 16
"""Tiles of a block that are not cut further: they share each weight that is read."""
REPEATED = 0.04
"""The part of the products' work that tasks may spend on transforms that others do as well."""


@dataclass(frozen=True)
class Arithmetic:
    """An algorithm and what it is computed in."""

    algorithm: Algorithm
    factor: ElementType
    """Transformed inputs and weights."""
    total: ElementType
    """Their sums."""
    group: int
    """Products that one instruction adds up."""
    input_slots: float
    """Slots (`work.py`) of transforming a tile, for as many channels as a vector has sums: loads, sums and stores."""
    output_slots: float
    """The same of a tile of one vector of sums."""
    fewest_tiles: int
    """Of a block that is worth it."""


FLOATING = (
    Arithmetic(floating(4), F32, F32, 1, 300.0, 260.0, 4),
    Arithmetic(floating(2), F32, F32, 1, 80.0, 56.0, 4),
)
EXACT = (
    Arithmetic(exact(4), S16, S32, 2, 220.0, 370.0, 8),
    Arithmetic(exact(2), S16, S32, 2, 90.0, 160.0, 8),
)
"""Transformed bytes take 3.6 or 8 times their room: where few tiles share them, the model would take more memory than
what is gained is worth."""


@dataclass(frozen=True)
class Shape:
    """The sizes of one convolution, and how tiles and features are cut into tasks."""

    arithmetic: Arithmetic
    batch: int
    height: int
    width: int
    channels: int
    features: int
    target: Target
    scratch: int = SCRATCH_BYTES

    @property
    def name(self) -> str:
        """`winograd 4x4`, `winograd 4x4 in blocks of 12 tiles`."""
        blocks = "" if self.scratch == SCRATCH_BYTES else f" in blocks of {self.block} tiles"
        return f"winograd {self.out}x{self.out}{blocks}"

    @property
    def lanes(self) -> int:
        """Of a vector of sums."""
        return self.target.vector_bytes // self.arithmetic.total.bytes

    @property
    def channel_lanes(self) -> int:
        """Channels that the input transform takes at once."""
        whole = self.target.vector_bytes // self.arithmetic.factor.bytes
        return whole if self.channels % whole == 0 else self.lanes

    @property
    def out(self) -> int:
        """Outputs of a tile, in each direction."""
        return self.arithmetic.algorithm.out

    @property
    def places(self) -> int:
        return self.arithmetic.algorithm.places

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
        """Tiles of a block: within the scratch, few enough for eight threads where that leaves enough, and even."""
        kinds = self.arithmetic
        each = self.places * (kinds.factor.bytes * self.channels + kinds.total.bytes * self.features)
        most = min(max(self.scratch // each, 1), max(-(-self.tiles // MOST_TASKS), FEWEST_TILES))
        return -(-self.tiles // -(-self.tiles // most))

    @property
    def blocks(self) -> int:
        return -(-self.tiles // self.block)

    @property
    def shares(self) -> int:
        """Tasks that share out the features of a block, where blocks are few."""
        for shares in (8, 4, 2):
            even = self.features % (shares * self.lanes) == 0 and self.blocks * shares <= MOST_TASKS
            if even and (shares - 1) * self._input_slots <= REPEATED * self._product_slots:
                return shares
        return 1

    @property
    def flops(self) -> float:
        """Of the products."""
        return 2.0 * self.places * self.tiles * self.channels * self.features

    @property
    def _product_slots(self) -> float:
        group = self.arithmetic.group
        products = self.places * self.tiles * self.channels * self.features / self.lanes
        return products / group * dot_slots(group, self.target) / PRODUCTS

    @property
    def _input_slots(self) -> float:
        return self.tiles * self.channels / self.lanes * self.arithmetic.input_slots

    def work(self, input_bytes: int) -> Work:
        """What it asks of a core, epilogue apart. `input_bytes` are those of the input."""
        transforms = self.shares * self._input_slots
        transforms += self.tiles * self.features / self.lanes * self.arithmetic.output_slots
        weights = float(self.places * self.arithmetic.factor.bytes * self.channels * self.features)
        again = self.blocks - 1 if weights > self.target.l2_bytes / 2 else 0
        moved = input_bytes * (1 + self.features / self.channels)
        slots = (self._product_slots + transforms, 0.0, 0.0)
        return Work(effort(slots, self.target), weights, moved + again * weights, self.blocks * self.shares)
