"""The window that convolution and pooling slide over the spatial dimensions: strides, dilations and padding."""

from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.hlo.window import Window, WindowDimension


@dataclass(frozen=True)
class Sliding:
    """One spatial dimension: the input's size and how a kernel of `kernel` taps slides over it."""

    size: int
    kernel: int
    stride: int
    dilation: int
    pad_low: int
    pad_high: int
    output: int
    """How many positions the window takes; with ceil_mode the last may reach past `pad_high`."""

    @property
    def extent(self) -> int:
        """Elements from the first tap to the last."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def reach(self) -> int:
        """The padding after the input that all `output` positions need, which is `pad_high` or more."""
        return max(self.pad_high, (self.output - 1) * self.stride + self.extent - self.size - self.pad_low)

    @property
    def dimension(self) -> WindowDimension:
        return WindowDimension(
            size=self.kernel,
            stride=self.stride,
            pad_low=self.pad_low,
            pad_high=self.reach,
            window_dilation=self.dilation,
        )


def read_auto_pad(node: NodeView) -> str:
    """How much is padded: as the attribute pads says, nothing, or for as many positions as there are strides."""
    return node.word("auto_pad", ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"), "NOTSET")


def read_sliding(node: NodeView, kernel: Sequence[int], sizes: Sequence[int]) -> list[Sliding]:
    """The node's strides, dilations, pads, auto_pad and ceil_mode, for spatial `sizes`."""
    rank = len(sizes)
    strides = per_dimension(node, "strides", rank)
    dilations = per_dimension(node, "dilations", rank)
    if len(kernel) != rank or min((*kernel, *strides, *dilations), default=1) < 1:
        node.shape_error(f"kernel {list(kernel)}, strides and dilations must be positive, one for each of {rank}")
    pads = node.ints("pads", (0,) * (2 * rank))
    if len(pads) != 2 * rank:
        node.shape_error(f"{len(pads)} pads do not fit {rank} spatial dimensions")
    auto_pad, ceil_mode = read_auto_pad(node), bool(node.int("ceil_mode", 0))
    result = []
    for d, (size, taps, stride, dilation) in enumerate(zip(sizes, kernel, strides, dilations, strict=True)):
        extent = (taps - 1) * dilation + 1
        match auto_pad:
            case "NOTSET":
                low, high = pads[d], pads[rank + d]
            case "VALID":
                low = high = 0
            case _:
                total = max((-(-size // stride) - 1) * stride + extent - size, 0)
                low = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
                high = total - low
        output = _positions(size + low + high - extent, stride, ceil_mode, size + low)
        if output < 1 and size > 0:
            node.shape_error(f"a window of {extent} does not fit spatial dimension {d} of {size} padded")
        result.append(Sliding(size, taps, stride, dilation, low, high, max(output, 0)))
    return result


def _positions(free: int, stride: int, ceil_mode: bool, before_end_padding: int) -> int:
    """Window positions in `free` steps; with ceil_mode none that starts in the padding at the end."""
    if not ceil_mode:
        return free // stride + 1
    positions = -(-free // stride) + 1
    return positions - 1 if (positions - 1) * stride >= before_end_padding else positions


def per_dimension(node: NodeView, name: str, rank: int) -> tuple[int, ...]:
    """An attribute with one positive number for each spatial dimension, all 1 where it is left out."""
    values = node.ints(name, None) or (1,) * rank
    if len(values) != rank:
        node.shape_error(f"{name} {list(values)} do not fit {rank} spatial dimensions")
    return values


def window_over_image(sliding: Sequence[Sliding]) -> Window:
    """A window for reduce-window over [N, C, spatial...], of size 1 in N and C."""
    return Window((WindowDimension(), WindowDimension(), *(s.dimension for s in sliding)))
