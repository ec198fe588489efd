"""How rules read an axis, negative ones counted from the end, and how far they count along it."""

from collections.abc import Sequence

from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.hlo.types import Shape

_MOST_PLACES = 1 << 24


def require_enumerable(node: NodeView, count: float, most: int = _MOST_PLACES) -> None:
    """A problem where `count` places, which a rule is to write out one by one, are more than it should."""
    if not count <= most:
        node.unsupported(f"{count:.0f} places along one dimension", f"up to {most} are supported")


def normal_axis(node: NodeView, axis: int, rank: int) -> int:
    """`axis` in 0..rank-1. A ShapeError problem where it is outside -rank..rank-1."""
    if not -rank <= axis < rank:
        node.shape_error(f"axis {axis} is out of range for rank {rank}")
    return axis % rank


def normal_axes(node: NodeView, axes: Sequence[int], rank: int) -> Shape:
    """Every axis in 0..rank-1, each once, in the order given."""
    return tuple(dict.fromkeys(normal_axis(node, axis, rank) for axis in axes))
