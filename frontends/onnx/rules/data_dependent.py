"""Operators whose output shape is decided by data: they fold where the data is constant, and are
DynamicShapeError problems otherwise."""

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import normal_axis
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S64, Array

_WAY_OUT = (
    "make the data a constant, end the model before this node and do the rest outside, or leave what cannot be "
    'compiled to onnxruntime: fallback="onnxruntime", --fallback onnxruntime'
)


def data(node: NodeView, i: int, what: str) -> Array:
    """The value of input `i`, or a DynamicShapeError problem: `what` decides the output's shape. Nothing is known."""
    value = None if node.failed_but_computed(i) else node.known(i)
    if value is None:
        cause = f"{what} decides the shape of {node.op_type}'s output, and is computed at run time"
        node.dynamic_shape(cause, _WAY_OUT, data=i)
    return value


@onnx_op("NonZero", since=9)
def non_zero(node: NodeView, b: Builder) -> Instruction:
    value = np.atleast_1d(data(node, 0, "which elements are not zero"))
    return b.constant(np.stack(np.nonzero(value)).astype(np.int64))


@onnx_op("Compress", since=9)
def compress(node: NodeView, b: Builder) -> Instruction:
    """Only the condition must be constant: the data may be anything."""
    kept = np.flatnonzero(data(node, 1, "the condition"))
    x = node.input(0)
    axis = node.int("axis", None)
    if axis is None:
        x, axis = b.reshape(x, [x.tensor_type.size]), 0
    axis = normal_axis(node, axis, len(x.shape))
    if kept.size and kept[-1] >= x.shape[axis]:
        node.shape_error(f"the condition keeps element {kept[-1]} of dimension {axis}, whose size is {x.shape[axis]}")
    return b.take(x, b.constant(kept, S64), axis)


@onnx_op("Unique", since=11)
def unique(node: NodeView, b: Builder) -> list[Instruction]:
    axis = node.int("axis", None)
    values, first, inverse, counts = np.unique(
        data(node, 0, "how many values differ"), return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not node.int("sorted", 1):
        order = np.argsort(first)  # in the order of first occurrence
        position = np.empty_like(order)
        position[order] = np.arange(len(order))
        values, first, counts = np.take(values, order, axis or 0), first[order], counts[order]
        inverse = position[inverse]
    return [b.constant(values), *(b.constant(a, S64) for a in (first, inverse, counts))]


@onnx_op("NonMaxSuppression", since=10)
def non_max_suppression(node: NodeView, b: Builder) -> Instruction:
    if not any(map(node.failed_but_computed, (0, 1))) and 0 in (node.input(i).tensor_type.size for i in (0, 1)):
        return b.constant(np.zeros((0, 3), np.int64))
    boxes, scores = data(node, 0, "the overlap of boxes"), data(node, 1, "the scores")
    most = int(data(node, 2, "the most boxes of a class").reshape(())) if node.has_input(2) else 0
    iou_threshold = float(data(node, 3, "iou_threshold").reshape(())) if node.has_input(3) else 0.0
    score_threshold = float(data(node, 4, "score_threshold").reshape(())) if node.has_input(4) else -np.inf
    centered = bool(node.int("center_point_box", 0))
    selected = [
        (batch, kind, box)
        for batch in range(scores.shape[0])
        for kind in range(scores.shape[1])
        for box in _selected_boxes(
            _corners(boxes[batch], centered), scores[batch, kind], most, iou_threshold, score_threshold
        )
    ]
    return b.constant(np.array(selected, np.int64).reshape(-1, 3))


@onnx_op("ImageDecoder", since=20)
def image_decoder(node: NodeView, b: Builder) -> Instruction:
    node.dynamic_shape("the encoded image decides the size of the picture", "decode it outside the model", data=0)


def _corners(boxes: Array, centered: bool) -> Array:
    """Boxes as [low0, low1, high0, high1] from either of the standard's two forms."""
    if centered:
        center, half = boxes[:, :2], boxes[:, 2:] / 2
        return np.concatenate([center - half, center + half], axis=1)
    first, second = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=1)


def _selected_boxes(boxes: Array, scores: Array, most: int, iou_threshold: float, score_threshold: float) -> list[int]:
    """Greedy: the best box, then each next one that overlaps none of those selected by more than the threshold."""
    selected: list[int] = []
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    for box in np.argsort(-scores, kind="stable"):
        if len(selected) >= most:
            break
        if not scores[box] > score_threshold:
            continue
        low = np.maximum(boxes[selected, :2], boxes[box, :2])
        high = np.minimum(boxes[selected, 2:], boxes[box, 2:])
        common = np.prod(np.maximum(high - low, 0), axis=1)
        union = area[selected] + area[box] - common
        if not (common > iou_threshold * union).any():
            selected.append(int(box))
    return selected
