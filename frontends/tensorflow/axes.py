"""How rules read an axis: TensorFlow counts negative ones from the end."""

from collections.abc import Sequence

from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.hlo.types import Shape


def normal_axis(node: NodeView, axis: int, rank: int) -> int:
    """`axis` in 0..rank-1. A ShapeError problem where it is outside -rank..rank-1."""
    if not -rank <= axis < rank:
        node.shape_error(f"axis {axis} is out of range for rank {rank}")
    return axis % rank


def normal_axes(node: NodeView, axes: Sequence[int], rank: int) -> Shape:
    """Every axis in 0..rank-1, each once, in the order given."""
    return tuple(dict.fromkeys(normal_axis(node, axis, rank) for axis in axes))
