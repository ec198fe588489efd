"""LSTM, GRU and RNN: the product of W with all steps at once, then one time loop for each direction.

Half precision computes in f32 throughout and is rounded once at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.precision import wide_element
from onnxla.frontends.onnx.rules.recurrent_cells import (
    Cell,
    FloatWeights,
    GruCell,
    LstmCell,
    RnnCell,
    Weights,
    read_activations,
    rows_of,
)
from onnxla.frontends.onnx.rules.recurrent_loop import TimeLoop, all_steps
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32, ElementType

X, W, R, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES = range(8)


@dataclass(frozen=True)
class Layer:
    """What the three operators have in common, read and checked."""

    node: NodeView
    b: Builder
    gates: int
    x: Instruction
    """[steps, batch, inputs] in the element type that is computed in."""
    hidden: int
    directions: int
    batch_first: bool
    direction: str
    """`forward`, `reverse` or `bidirectional`."""

    @property
    def element(self) -> ElementType:
        return self.x.tensor_type.element

    def per_direction(self, i: int, direction: int, element: ElementType | None = None) -> Instruction | None:
        """Input `i` at `direction` of its first dimension; a constant where its value is known.

        It comes in the type that is computed in, or in `element`.
        """
        if not self.node.has_input(i):
            return None
        element = element or self.element
        known = self.node.known(i)
        if known is not None:
            name = self.node.input_name(i) + (f".{direction}" if self.directions > 1 else "")
            return self.b.constant(np.asarray(known[direction]).astype(element.dtype, copy=False), name=name)
        value = self.b.convert(self.node.input(i), element)
        rest = value.shape[1:]
        part = self.b.slice(value, [direction, *[0] * len(rest)], [direction + 1, *rest])
        return self.b.reshape(part, rest)

    def matrix(self, i: int, direction: int, element: ElementType | None = None) -> Instruction:
        """The same of an input that must be there."""
        self.node.input(i)
        found = self.per_direction(i, direction, element)
        assert found is not None
        return found

    def initial(self, i: int, direction: int) -> Instruction:
        """The initial state [batch, hidden], zero where the input is left out."""
        b, batch = self.b, self.x.shape[1]
        if not self.node.has_input(i):
            return b.full((batch, self.hidden), 0, self.element)
        value = b.convert(self.node.input(i), self.element)
        if self.batch_first:
            value = b.transpose(value, [1, 0, 2])
        if value.shape != (self.directions, batch, self.hidden):
            self.node.shape_error(
                f"input {self.node.input_name(i)} must have one row of {self.hidden} for each element"
            )
        return b.reshape(b.slice(value, [direction, 0, 0], [direction + 1, batch, self.hidden]), (batch, self.hidden))

    def lengths(self) -> Instruction | None:
        """sequence_lens as s32, or None where it is left out or known to be the full length."""
        known = self.node.known(LENGTHS)
        if not self.node.has_input(LENGTHS) or (known is not None and bool((known == self.x.shape[0]).all())):
            return None
        lengths = self.node.input(LENGTHS)
        if lengths.shape != self.x.shape[1:2]:
            self.node.shape_error("sequence_lens must have one length for each element of the batch")
        return self.b.convert(lengths, S32)


def read_layer(node: NodeView, b: Builder, gates: int) -> Layer:
    """Read X and the shapes of the weights, W [directions, gates * hidden, inputs] and R alike."""
    direction = direction_of(node)
    x, weights, recurrence = node.input(X), node.input(W), node.input(R)
    element = wide_element(x.tensor_type.element)
    batch_first = node.int("layout", 0) == 1
    x = b.convert(b.transpose(x, [1, 0, 2]) if batch_first else x, element)
    directions, hidden = recurrence.shape[0], recurrence.shape[-1]
    fits = weights.shape == (directions, gates * hidden, x.shape[2])
    if not fits or recurrence.shape != (directions, gates * hidden, hidden):
        node.shape_error(
            f"W and R must be [directions, {gates} * hidden, inputs] and [directions, {gates} * hidden, hidden]"
        )
    return checked(Layer(node, b, gates, x, hidden, directions, batch_first, direction))


def checked(layer: Layer) -> Layer:
    """The layer, its direction and hidden size agreeing with the weights."""
    node = layer.node
    if node.int("hidden_size", layer.hidden) != layer.hidden:
        node.shape_error(f"hidden_size is {node.int('hidden_size')}, the weights have {layer.hidden}")
    directions = 2 if layer.direction == "bidirectional" else 1
    if layer.directions != directions:
        node.shape_error(f"direction is {layer.direction!r}, the weights have {layer.directions} directions")
    return layer


def direction_of(node: NodeView) -> str:
    """`forward`, `reverse` or `bidirectional`. Opset 1 of GRU misspells its default."""
    direction = node.string("direction", "forward").lower()
    if direction == "foward":
        direction = "forward"
    if direction not in ("forward", "reverse", "bidirectional"):
        node.unsupported(f"direction={direction!r} is not known", "forward, reverse and bidirectional are")
    return direction


def run_layer(
    layer: Layer,
    projections: Sequence[Instruction],
    cells: Sequence[Cell],
    initial_inputs: Sequence[int],
) -> list[Instruction]:
    """Y, Y_h (and Y_c): every direction's loop over its projection [steps, batch, gates * hidden]."""
    b = layer.b
    states = [[layer.initial(i, d) for i in initial_inputs] for d in range(layer.directions)]
    outputs = all_steps(layer.x.shape[0], layer.directions, states[0][0].tensor_type, b)
    lengths = layer.lengths()
    last: list[list[Instruction]] = []
    for d, cell in enumerate(cells):
        backwards = d == 1 or layer.direction == "reverse"
        loop = TimeLoop(cell, projections[d], lengths, backwards, d)
        outputs, states_after = loop.run(b, outputs, states[d])
        last.append(states_after)
    finals = [
        b.concatenate([b.reshape(of_direction[k], (1, *of_direction[k].shape)) for of_direction in last], 0)
        for k in range(len(initial_inputs))
    ]
    if layer.batch_first:
        outputs = b.transpose(outputs, [2, 0, 1, 3])
        finals = [b.transpose(f, [1, 0, 2]) for f in finals]
    element = layer.node.input(X).tensor_type.element
    return [b.convert(value, element) for value in (outputs, *finals)]


def project(layer: Layer, weights: Weights, bias: Instruction | None) -> Instruction:
    """X W' + bias for all steps: [steps, batch, gates * hidden]."""
    product = weights.apply(layer.b, layer.x, weights.operands)
    if bias is None:
        return product
    return layer.b.add(product, layer.b.broadcast(bias, product.shape, [2]))


def summed_bias(layer: Layer, direction: int) -> Instruction | None:
    """Wb + Rb: [gates * hidden]."""
    bias = layer.per_direction(BIAS, direction)
    if bias is None:
        return None
    half = layer.gates * layer.hidden
    return layer.b.add(rows_of(layer.b, bias, 0, half), rows_of(layer.b, bias, half, 2 * half))


def lstm_cells(layer: Layer, recurrences: Sequence[Weights]) -> list[Cell]:
    """The cell of each direction by the attributes of LSTM. As in onnxruntime, `clip` leaves the cell state alone."""
    functions = read_activations(layer.node, ("Sigmoid", "Tanh", "Tanh"), layer.directions, clipped=2)
    coupled = layer.node.int("input_forget", 0) == 1
    return [
        LstmCell(recurrences[d], layer.per_direction(PEEPHOLES, d), functions[d], coupled)
        for d in range(layer.directions)
    ]


@onnx_op("LSTM")
def lstm(node: NodeView, b: Builder) -> list[Instruction]:
    layer = read_layer(node, b, 4)
    all_directions = range(layer.directions)
    projections = [project(layer, FloatWeights(layer.matrix(W, d)), summed_bias(layer, d)) for d in all_directions]
    cells = lstm_cells(layer, [FloatWeights(layer.matrix(R, d)) for d in all_directions])
    return run_layer(layer, projections, cells, (INITIAL_H, INITIAL_C))


@onnx_op("RNN")
def rnn(node: NodeView, b: Builder) -> list[Instruction]:
    layer = read_layer(node, b, 1)
    functions = read_activations(node, ("Tanh",), layer.directions)
    all_directions = range(layer.directions)
    projections = [project(layer, FloatWeights(layer.matrix(W, d)), summed_bias(layer, d)) for d in all_directions]
    cells = [RnnCell(FloatWeights(layer.matrix(R, d)), functions[d]) for d in all_directions]
    return run_layer(layer, projections, cells, (INITIAL_H,))


@onnx_op("GRU")
def gru(node: NodeView, b: Builder) -> list[Instruction]:
    layer = read_layer(node, b, 3)
    functions = read_activations(node, ("Sigmoid", "Tanh"), layer.directions)
    linear_before_reset = node.int("linear_before_reset", 0) != 0
    projections, cells = [], []
    for d in range(layer.directions):
        input_bias, candidate_bias = _gru_biases(layer, d, linear_before_reset)
        projections.append(project(layer, FloatWeights(layer.matrix(W, d)), input_bias))
        matrix, gate_rows = layer.matrix(R, d), 2 * layer.hidden
        split = [rows_of(b, matrix, 0, gate_rows), rows_of(b, matrix, gate_rows, 3 * layer.hidden)]
        cells.append(GruCell([matrix] if linear_before_reset else split, candidate_bias, functions[d]))
    return run_layer(layer, projections, cells, (INITIAL_H,))


def _gru_biases(
    layer: Layer, direction: int, linear_before_reset: bool
) -> tuple[Instruction | None, Instruction | None]:
    """What is added to the projected input, and Rbh where the reset gate multiplies it."""
    if not linear_before_reset:
        return summed_bias(layer, direction), None
    bias = layer.per_direction(BIAS, direction)
    if bias is None:
        return None, None
    b, hidden = layer.b, layer.hidden
    of_input, of_state = rows_of(b, bias, 0, 3 * hidden), rows_of(b, bias, 3 * hidden, 6 * hidden)
    gates = b.add(rows_of(b, of_input, 0, 2 * hidden), rows_of(b, of_state, 0, 2 * hidden))
    candidate = rows_of(b, of_input, 2 * hidden, 3 * hidden)
    return b.concatenate([gates, candidate], 0), rows_of(b, of_state, 2 * hidden, 3 * hidden)
