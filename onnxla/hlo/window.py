"""Windows that slide over dimensions, and the roles of a convolution's dimensions, with their HLO text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnxla.errors import HloError
from onnxla.hlo.attributes import read_int
from onnxla.hlo.types import Shape


@dataclass(frozen=True)
class WindowDimension:
    """How a window slides along one dimension. Pads are at the edges of the base after dilation; negative ones crop."""

    size: int = 1
    stride: int = 1
    pad_low: int = 0
    pad_high: int = 0
    base_dilation: int = 1
    """`base_dilation - 1` holes between neighbours of the base: XLA's lhs_dilate."""
    window_dilation: int = 1
    """`window_dilation - 1` holes between neighbours of the window: XLA's rhs_dilate."""
    reversal: bool = False
    """The window is read backwards."""

    @property
    def span(self) -> int:
        """Extent of the dilated window."""
        return (self.size - 1) * self.window_dilation + 1 if self.size else 0

    def padded(self, base: int) -> int:
        """Extent of a base of `base` elements after dilation and padding."""
        dilated = (base - 1) * self.base_dilation + 1 if base else 0
        return dilated + self.pad_low + self.pad_high

    def output(self, base: int) -> int:
        """Number of places where the window fits."""
        room = self.padded(base)
        return 0 if room < self.span or room <= 0 else (room - self.span) // self.stride + 1

    @property
    def is_trivial(self) -> bool:
        """Whether the window is one element that visits every element of the base once."""
        return self == WindowDimension()


_PARTS = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")


@dataclass(frozen=True)
class Window:
    """One entry for each dimension the window slides along."""

    dimensions: tuple[WindowDimension, ...] = ()

    @staticmethod
    def of(
        sizes: Sequence[int],
        strides: Sequence[int] | None = None,
        pads_low: Sequence[int] | None = None,
        pads_high: Sequence[int] | None = None,
        base_dilations: Sequence[int] | None = None,
        window_dilations: Sequence[int] | None = None,
    ) -> "Window":
        """A window from one list for each property; all have the length of `sizes`."""
        ones, zeros = [1] * len(sizes), [0] * len(sizes)
        columns = (strides or ones, pads_low or zeros, pads_high or zeros, base_dilations or ones)
        rows = zip(sizes, *columns, window_dilations or ones, strict=True)
        return Window(tuple(WindowDimension(*row) for row in rows))

    def output_shape(self, base: Sequence[int]) -> Shape:
        """Number of window places along each dimension of `base`."""
        return tuple(d.output(n) for d, n in zip(self.dimensions, base, strict=True))

    def check(self) -> None:
        """Raise HloError unless every dimension is in range."""
        for d in self.dimensions:
            if d.size < 1 or d.stride < 1 or d.base_dilation < 1 or d.window_dilation < 1:
                raise HloError(f"window sizes, strides and dilations must be positive: window={self}")

    def __str__(self) -> str:
        columns = {
            "size": [str(d.size) for d in self.dimensions],
            "stride": [str(d.stride) for d in self.dimensions],
            "pad": [f"{d.pad_low}_{d.pad_high}" for d in self.dimensions],
            "lhs_dilate": [str(d.base_dilation) for d in self.dimensions],
            "rhs_dilate": [str(d.window_dilation) for d in self.dimensions],
            "rhs_reversal": [str(int(d.reversal)) for d in self.dimensions],
        }
        neutral = {"stride": "1", "pad": "0_0", "lhs_dilate": "1", "rhs_dilate": "1", "rhs_reversal": "0"}
        shown = [(n, c) for n, c in columns.items() if c and any(cell != neutral.get(n) for cell in c)]
        return "{" + " ".join(f"{name}={'x'.join(cells)}" for name, cells in shown) + "}"

    @classmethod
    def parse(cls, text: str) -> "Window":
        """The window of a text such as `{size=3x3 stride=2x2 pad=1_1x1_1}`. Raises HloError."""
        if not (text.startswith("{") and text.endswith("}")):
            raise HloError(f"expected window={{...}}, got {text!r}")
        columns: dict[str, list[str]] = {}
        for part in text[1:-1].split():
            name, equals, cells = part.partition("=")
            if name not in _PARTS or not equals or name in columns:
                raise HloError(f"unexpected {part!r} in window={text}")
            columns[name] = cells.split("x")
        rank = len(columns.get("size", next(iter(columns.values()), [])))
        if any(len(cells) != rank for cells in columns.values()):
            raise HloError(f"the parts of window={text} differ in length")
        return cls(tuple(_dimension({name: cells[i] for name, cells in columns.items()}) for i in range(rank)))


def _dimension(cells: dict[str, str]) -> WindowDimension:
    result = WindowDimension()
    names = {"size": "size", "stride": "stride", "lhs_dilate": "base_dilation", "rhs_dilate": "window_dilation"}
    for part, field in names.items():
        if part in cells:
            result = replace(result, **{field: read_int(cells[part])})  # type: ignore[arg-type]
    if "pad" in cells:
        low, _, high = cells["pad"].partition("_")
        result = replace(result, pad_low=read_int(low), pad_high=read_int(high))
    if "rhs_reversal" in cells:
        result = replace(result, reversal=read_int(cells["rhs_reversal"]) != 0)
    return result


@dataclass(frozen=True)
class ConvolutionDimensions:
    """Which dimension of the input, the kernel and the output has which role."""

    input_batch: int
    input_feature: int
    input_spatial: tuple[int, ...]
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]

    @staticmethod
    def nchw(spatial: int) -> "ConvolutionDimensions":
        """`bf01_oi01->bf01` for two spatial dimensions: ONNX's order."""
        places = tuple(range(2, spatial + 2))
        return ConvolutionDimensions(0, 1, places, 1, 0, places, 0, 1, places)

    @staticmethod
    def nhwc(spatial: int) -> "ConvolutionDimensions":
        """`b01f_01io->b01f` for two spatial dimensions: channels last."""
        places = tuple(range(1, spatial + 1))
        kernel = tuple(range(spatial))
        return ConvolutionDimensions(0, spatial + 1, places, spatial, spatial + 1, kernel, 0, spatial + 1, places)

    @property
    def rank(self) -> int:
        return len(self.input_spatial) + 2

    @property
    def input_permutation(self) -> tuple[int, ...]:
        """Input dimensions in the order batch, feature, spatial."""
        return (self.input_batch, self.input_feature, *self.input_spatial)

    @property
    def kernel_permutation(self) -> tuple[int, ...]:
        """Kernel dimensions in the order output feature, input feature, spatial."""
        return (self.kernel_output_feature, self.kernel_input_feature, *self.kernel_spatial)

    @property
    def output_permutation(self) -> tuple[int, ...]:
        """Output dimensions in the order batch, feature, spatial."""
        return (self.output_batch, self.output_feature, *self.output_spatial)

    def __str__(self) -> str:
        inputs = _labels(self.input_permutation, "bf")
        kernel = _labels(self.kernel_permutation, "oi")
        output = _labels(self.output_permutation, "bf")
        return f"{inputs}_{kernel}->{output}"

    @classmethod
    def parse(cls, text: str) -> "ConvolutionDimensions":
        """The roles of a text such as `b01f_01io->b01f`. Raises HloError."""
        operands, arrow, output = text.partition("->")
        inputs, underscore, kernel = operands.partition("_")
        if not arrow or not underscore:
            raise HloError(f"expected dim_labels such as b01f_01io->b01f, got {text!r}")
        (ib, if_, *is_), (ko, ki, *ks), (ob, of, *os) = (
            _places(labels, pair, text) for labels, pair in ((inputs, "bf"), (kernel, "oi"), (output, "bf"))
        )
        if not len(inputs) == len(kernel) == len(output):
            raise HloError(f"the parts of dim_labels={text} differ in length")
        return cls(ib, if_, tuple(is_), ki, ko, tuple(ks), ob, of, tuple(os))


def _labels(permutation: Sequence[int], pair: str) -> str:
    """The label of each dimension, where `permutation` lists the dimensions of `pair` and then the spatial ones."""
    labels = [*pair, *map(str, range(len(permutation) - 2))]
    return "".join(label for _, label in sorted(zip(permutation, labels, strict=True)))


def _places(labels: str, pair: str, text: str) -> list[int]:
    wanted = [*pair, *map(str, range(len(labels) - 2))]
    if sorted(labels) != sorted(wanted):
        raise HloError(f"bad labels {labels!r} in dim_labels={text}")
    return [labels.index(label) for label in wanted]
