"""com.microsoft.DynamicTimeWarping: the cheapest way through a matrix of costs, where that is known.

How long the way is depends on the costs, so they must be known while compiling.
"""

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.data_dependent import data
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array


@onnx_op("DynamicTimeWarping", domain="com.microsoft")
def dynamic_time_warping(node: NodeView, b: Builder) -> Instruction:
    """s32 [2, steps]: rows and columns of the cheapest way from the first corner to the last."""
    cost = data(node, 0, "the way of least cost")
    if cost.ndim == 3 and cost.shape[0] == 1:
        cost = cost[0]
    if cost.ndim != 2 or 0 in cost.shape:
        node.shape_error(f"{node.input(0).tensor_type} is not a matrix of costs")
    return b.constant(_cheapest_way(cost.astype(np.float32)))


def _cheapest_way(cost: Array) -> Array:
    """Steps go one row down, one column right, or both. Of ways that cost the same, the last step is one down and
    right only where that is cheaper than both others, and one down only where that is cheaper than one right."""
    rows, columns = cost.shape
    least = np.full((rows + 1, columns + 1), np.inf, np.float32)
    came = np.full((rows + 1, columns + 1), -1, np.int8)
    least[0, 0] = 0
    for c in range(1, columns + 1):
        for r in range(1, rows + 1):
            both, down, right = least[r - 1, c - 1], least[r - 1, c], least[r, c - 1]
            came[r, c] = 0 if both < down and both < right else 1 if down < both and down < right else 2
            least[r, c] = cost[r - 1, c - 1] + (both, down, right)[came[r, c]]
    came[0, :], came[:, 0] = 2, 1
    way = []
    r, c = rows, columns
    while r > 0 or c > 0:
        way.append((r - 1, c - 1))
        step = came[r, c]
        r, c = r - (step != 2), c - (step != 1)
    return np.array(way[::-1], np.int32).T.copy()
