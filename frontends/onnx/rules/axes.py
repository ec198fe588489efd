"""How rules read an axis: ONNX counts negative ones from the end."""

from collections.abc import Sequence

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.hlo.types import Shape


def normal_axis(node: NodeView, axis: int, rank: int) -> int:
    """`axis` in 0..rank-1. A ShapeError problem where it is outside -rank..rank-1."""
    if not -rank <= axis < rank:
        node.shape_error(f"axis {axis} is out of range for rank {rank}")
    return axis % rank


def normal_axes(node: NodeView, axes: Sequence[int], rank: int) -> Shape:
    """Every axis in 0..rank-1, in the order given. A ShapeError problem where one is named twice."""
    normal = tuple(normal_axis(node, axis, rank) for axis in axes)
    if len(set(normal)) != len(normal):
        node.shape_error(f"axes {list(axes)} name a dimension twice")
    return normal


def kept_shape(shape: Sequence[int], axes: Sequence[int]) -> Shape:
    """`shape` with size 1 at `axes`: what a reduction that keeps its dimensions gives."""
    return tuple(1 if d in axes else n for d, n in enumerate(shape))


def dropped_shape(shape: Sequence[int], axes: Sequence[int]) -> Shape:
    """`shape` without the dimensions `axes`."""
    return tuple(n for d, n in enumerate(shape) if d not in axes)
