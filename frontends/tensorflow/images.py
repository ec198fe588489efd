"""How operations on images say which dimension is what, and how their windows slide.

`data_format` orders the dimensions, channels last by default; `padding` is SAME, VALID or EXPLICIT.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.frontends.onnx.rules.windows import Sliding
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.hlo.window import Window, WindowDimension

CHANNELS_FIRST = ("NCHW", "NCDHW")
CHANNELS_LAST = ("NHWC", "NDHWC", "NWC")


def feature_dimension(node: NodeView, rank: int) -> int:
    """Where the channels stand."""
    data_format = node.string("data_format", "NHWC")
    if data_format not in (*CHANNELS_FIRST, *CHANNELS_LAST):
        node.unsupported(f"data_format={data_format!r} is not known", "channels stand first or last")
    return 1 if data_format in CHANNELS_FIRST and rank > 1 else rank - 1


def spatial_dimensions(node: NodeView, rank: int) -> tuple[int, ...]:
    """Where height and width stand."""
    feature = feature_dimension(node, rank)
    return tuple(d for d in range(1, rank) if d != feature)


@dataclass(frozen=True)
class Image:
    """The dimensions of an operand, and how a window slides over the spatial ones."""

    rank: int
    feature: int
    spatial: tuple[int, ...]
    sliding: tuple[Sliding, ...]
    """One for each spatial dimension."""

    @property
    def window(self) -> Window:
        """Over the spatial dimensions."""
        return Window(tuple(s.dimension for s in self.sliding))

    @property
    def whole_window(self) -> Window:
        """Over all dimensions, of size 1 for batch and channels."""
        by_dimension = dict(zip(self.spatial, self.sliding, strict=True))
        return Window(
            tuple(by_dimension[d].dimension if d in by_dimension else WindowDimension() for d in range(self.rank))
        )


def image_of(
    node: NodeView, shape: Sequence[int], kernel: Sequence[int], strides: Sequence[int] | None = None
) -> Image:
    """The window that the node's strides, dilations and padding make for an operand of `shape`.

    `kernel` has one size for each spatial dimension. A ShapeError problem where they do not fit.
    """
    rank = len(shape)
    spatial = spatial_dimensions(node, rank)
    steps = _spatial(node, "strides", rank, spatial) if strides is None else strides
    dilations = _spatial(node, "dilations", rank, spatial)
    padding = node.string("padding")
    explicit = node.ints("explicit_paddings", ())
    if len(kernel) != len(spatial) or (padding == "EXPLICIT" and len(explicit) != 2 * rank):
        node.shape_error(f"a window of {list(kernel)} does not slide over {len(spatial)} spatial dimensions")
    sliding = []
    for d, taps, stride, dilation in zip(spatial, kernel, steps, dilations, strict=True):
        size, extent = shape[d], (taps - 1) * dilation + 1
        match padding:
            case "VALID":
                low = high = 0
            case "SAME":
                total = max((-(-size // stride) - 1) * stride + extent - size, 0)
                low, high = total // 2, total - total // 2
            case "EXPLICIT":
                low, high = explicit[2 * d], explicit[2 * d + 1]
            case other:
                node.unsupported(f"padding={other!r} is not known", "SAME, VALID and EXPLICIT are")
        output = max((size + low + high - extent) // stride + 1, 0)
        # Windows end where the last one does: what no window reaches is no padding.
        reach = max((output - 1) * stride + extent - size - low, -size) if output else 0
        sliding.append(Sliding(size, taps, stride, dilation, low, min(high, max(reach, 0)), output))
    return Image(rank, feature_dimension(node, rank), spatial, tuple(sliding))


def _spatial(node: NodeView, name: str, rank: int, spatial: Sequence[int]) -> tuple[int, ...]:
    """The spatial entries of an attribute with one entry for each dimension; all 1 where it is left out."""
    values = node.ints(name, ()) or (1,) * rank
    if len(values) == 1:
        values = values * rank
    if len(values) != rank or min(values) < 1:
        node.shape_error(f"{name} {list(values)} do not fit rank {rank}")
    if any(values[d] != 1 for d in range(rank) if d not in spatial):
        node.unsupported(f"{name} {list(values)} reach over batch or channels", "windows slide over the image only")
    return tuple(values[d] for d in spatial)


def kernel_sizes(node: NodeView, ksize: Sequence[int], rank: int) -> tuple[int, ...]:
    """The spatial entries of a pooling window's size."""
    spatial = spatial_dimensions(node, rank)
    if len(ksize) != rank or min(ksize) < 1:
        node.shape_error(f"ksize {list(ksize)} does not fit rank {rank}")
    if any(ksize[d] != 1 for d in range(rank) if d not in spatial):
        node.unsupported(f"ksize {list(ksize)} reaches over batch or channels", "windows slide over the image only")
    return tuple(ksize[d] for d in spatial)
