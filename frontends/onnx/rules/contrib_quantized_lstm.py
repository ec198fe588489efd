"""com.microsoft.DynamicQuantizeLSTM: LSTM whose W and R are s8 or u8, the other side quantised as it comes.

As in onnxruntime, X is quantised over the range of all its steps, and the hidden state at every step.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.quantized_linear import integer_matmul, scale_product
from onnxla.frontends.onnx.rules.quantized_values import dynamic_quantize, is_known_zero
from onnxla.frontends.onnx.rules.recurrent import (
    INITIAL_C,
    INITIAL_H,
    Layer,
    R,
    W,
    X,
    checked,
    direction_of,
    lstm_cells,
    project,
    run_layer,
    summed_bias,
)
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32

W_SCALE, W_ZERO, R_SCALE, R_ZERO = range(8, 12)


@dataclass(frozen=True)
class QuantizedWeights:
    """A matrix [inputs, outputs] of 8-bit integers with scales and zero points, one or one for each output."""

    matrix: Instruction
    scale: Instruction
    zero_point: Instruction | None

    @property
    def operands(self) -> Sequence[Instruction]:
        return [self.matrix, self.scale, *([self.zero_point] if self.zero_point is not None else [])]

    def apply(self, b: Builder, rows: Instruction, operands: Sequence[Instruction]) -> Instruction:
        matrix, scale = operands[:2]
        quantized, rows_scale, rows_zero = dynamic_quantize(b, rows)
        sums = integer_matmul(b, quantized, matrix, rows_zero, operands[2] if self.zero_point is not None else None)
        return b.multiply(b.convert(sums, F32), scale_product(b, [rows_scale, scale], sums.shape))


@onnx_op("DynamicQuantizeLSTM", domain="com.microsoft")
def dynamic_quantize_lstm(node: NodeView, b: Builder) -> list[Instruction]:
    """W is [directions, inputs, 4 * hidden], R [directions, hidden, 4 * hidden]: transposed, as against LSTM."""
    direction = direction_of(node)
    x, weights, recurrence = node.input(X), node.input(W), node.input(R)
    directions, hidden = recurrence.shape[0], recurrence.shape[1]
    fits = weights.shape == (directions, x.shape[2], 4 * hidden)
    if not fits or recurrence.shape != (directions, hidden, 4 * hidden):
        node.shape_error("W and R must be [directions, inputs, 4 * hidden] and [directions, hidden, 4 * hidden]")
    layer = checked(Layer(node, b, 4, x, hidden, directions, batch_first=False, direction=direction))
    all_directions = range(directions)
    projections = [
        project(layer, _weights(layer, d, W, W_SCALE, W_ZERO), summed_bias(layer, d)) for d in all_directions
    ]
    cells = lstm_cells(layer, [_weights(layer, d, R, R_SCALE, R_ZERO) for d in all_directions])
    return run_layer(layer, projections, cells, (INITIAL_H, INITIAL_C))


def _weights(layer: Layer, direction: int, matrix: int, scale: int, zero_point: int) -> QuantizedWeights:
    """Inputs by number: the matrix and its zero points keep their type."""
    element = layer.node.input(matrix).tensor_type.element
    zero = None if is_known_zero(layer.node, zero_point) else layer.matrix(zero_point, direction, element)
    return QuantizedWeights(layer.matrix(matrix, direction, element), layer.matrix(scale, direction), zero)
