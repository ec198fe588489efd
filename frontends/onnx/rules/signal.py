"""MelWeightMatrix: the triangular filters from linear frequencies to the mel scale."""

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, Array


@onnx_op("MelWeightMatrix", since=17)
def mel_weight_matrix(node: NodeView, b: Builder) -> Instruction:
    """[spectrum bins, mel bins], computed while importing; all inputs must be known."""
    element = node.element("output_datatype", F32)
    bins, length, rate = (int(node.constant(i).reshape(())) for i in range(3))
    low, high = (float(node.constant(i).reshape(())) for i in (3, 4))
    if bins < 1 or length < 1 or rate < 1 or not 0 <= low < high:
        node.shape_error(f"{bins} bins of a transform of {length} at {rate} Hz from {low} to {high} Hz")
    node.require_table(bins * (length // 2 + 1))
    matrix = triangles(bins, length, rate, low, high)
    return b.constant(matrix, element)


def triangles(bins: int, length: int, rate: int, low: float, high: float) -> Array:
    """The filters of ONNX's reference: corners at whole bins of the spectrum, evenly spaced in mel."""
    spectrum = length // 2 + 1
    edges = 2595 * np.log10(1 + np.array([low, high]) / 700)
    step = (edges[1] - edges[0]) / (bins + 2)
    mel = np.arange(bins + 2) * step + edges[0]
    hertz = 700 * (10 ** (mel / 2595) - 1)
    corner = ((length + 1) * hertz // rate).astype(np.int64)
    result = np.zeros((spectrum, bins))
    for i in range(bins):
        lower, centre, upper = (int(c) for c in corner[i : i + 3])
        if lower == centre:
            result[min(centre, spectrum - 1), i] = 1
        else:
            rising = np.arange(lower, min(centre + 1, spectrum))
            result[rising, i] = (rising - lower) / (centre - lower)
        if upper > centre:
            falling = np.arange(centre, min(upper, spectrum))
            result[falling, i] = (upper - falling) / (upper - centre)
    return result
