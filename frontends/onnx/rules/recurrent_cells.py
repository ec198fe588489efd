"""One step of LSTM, GRU and RNN: gates, activation functions and the products with their weights.

A cell sees the input already multiplied by W with the biases added, so a step is one product of the
hidden state with R and the elementwise rest. Nothing here knows about time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.structural import Constant

Function: TypeAlias = Callable[[Builder, Instruction], Instruction]
"""An activation function with its alpha and beta bound."""
Values: TypeAlias = Sequence[Instruction]


def _times(b: Builder, x: Instruction, factor: float) -> Instruction:
    return b.multiply(x, b.full_like(x, factor))


def _affine(b: Builder, x: Instruction, alpha: float, beta: float) -> Instruction:
    return b.add(_times(b, x, alpha), b.full_like(x, beta))


def _hard_sigmoid(b: Builder, x: Instruction, alpha: float, beta: float) -> Instruction:
    line = _affine(b, x, alpha, beta)
    return b.minimum(b.maximum(line, b.full_like(x, 0)), b.full_like(x, 1))


def _where(b: Builder, x: Instruction, direction: str, bound: float, otherwise: Instruction) -> Instruction:
    """x where `x direction bound` holds."""
    return b.select(b.compare(x, b.full_like(x, bound), direction), x, otherwise)


def _softplus(b: Builder, x: Instruction) -> Instruction:
    decay = b.exponential(b.negate(b.unary("abs", x)))
    return b.add(b.maximum(x, b.full_like(x, 0)), b.unary("log-plus-one", decay))


@dataclass(frozen=True)
class _Activation:
    """A function of x, alpha and beta. A default of None says that the parameter is not used."""

    apply: Callable[[Builder, Instruction, float, float], Instruction]
    alpha: float | None = None
    beta: float | None = None


_ACTIVATIONS = {
    "relu": _Activation(lambda b, x, alpha, beta: b.maximum(x, b.full_like(x, 0))),
    "tanh": _Activation(lambda b, x, alpha, beta: b.unary("tanh", x)),
    "sigmoid": _Activation(lambda b, x, alpha, beta: b.unary("logistic", x)),
    "affine": _Activation(_affine, 1.0, 0.0),
    "leakyrelu": _Activation(lambda b, x, alpha, beta: _where(b, x, "GE", 0, _times(b, x, alpha)), 0.01),
    "thresholdedrelu": _Activation(lambda b, x, alpha, beta: _where(b, x, "GE", alpha, b.full_like(x, 0)), 1.0),
    "scaledtanh": _Activation(
        lambda b, x, alpha, beta: _times(b, b.unary("tanh", _times(b, x, beta)), alpha), 1.0, 1.0
    ),
    "hardsigmoid": _Activation(_hard_sigmoid, 0.2, 0.5),
    "elu": _Activation(
        lambda b, x, alpha, beta: _where(b, x, "GE", 0, _times(b, b.unary("exponential-minus-one", x), alpha)), 1.0
    ),
    "softsign": _Activation(lambda b, x, alpha, beta: b.divide(x, _affine(b, b.unary("abs", x), 1, 1))),
    "softplus": _Activation(lambda b, x, alpha, beta: _softplus(b, x)),
}


def read_activations(
    node: NodeView, defaults: Sequence[str], directions: int, clipped: int | None = None
) -> list[list[Function]]:
    """The activation functions of each direction.

    `activation_alpha` and `activation_beta` are consumed in the order of the functions by those that
    have such a parameter, as onnxruntime does; missing values take the defaults of the ONNX operators.
    `clip` bounds the input of the first `clipped` functions, or of all.
    """
    names = node.strings("activations", None) or tuple(defaults) * directions
    if len(names) == len(defaults) < len(defaults) * directions:
        names *= directions
    if len(names) != len(defaults) * directions:
        node.unsupported(
            f"{len(names)} activations are given; {len(defaults) * directions} are needed",
            "list those of each direction, or none",
        )
    alphas, betas = list(node.floats("activation_alpha", ())), list(node.floats("activation_beta", ()))
    clip = node.float("clip", None)
    functions = []
    each = len(defaults)
    for k, name in enumerate(names):
        activation = _ACTIVATIONS.get(name.lower())
        if activation is None:
            node.unsupported(f"the activation {name!r} is not known", f"known are {', '.join(sorted(_ACTIVATIONS))}")
        alpha = _next_value(alphas, activation.alpha)
        beta = _next_value(betas, activation.beta)
        is_clipped = clipped is None or k % each < clipped
        functions.append(_bound(activation, alpha, beta, clip if clip and is_clipped else None))
    return [functions[d * each : (d + 1) * each] for d in range(directions)]


def _next_value(values: list[float], default: float | None) -> float:
    if default is None:
        return 0.0
    return values.pop(0) if values else default


def _bound(activation: _Activation, alpha: float, beta: float, clip: float | None) -> Function:
    def apply(b: Builder, x: Instruction) -> Instruction:
        if clip is not None:
            x = b.minimum(b.maximum(x, b.full_like(x, -clip)), b.full_like(x, clip))
        return activation.apply(b, x, alpha, beta)

    return apply


class Weights(Protocol):
    """A matrix that rows are multiplied by, as R or W."""

    @property
    def operands(self) -> Values:
        """What `apply` reads, in the computation that made the weights."""

    def apply(self, b: Builder, rows: Instruction, operands: Values) -> Instruction:
        """`rows` [..., inputs] to [..., outputs]; `operands` are the weights in the computation of `b`."""


@dataclass(frozen=True)
class FloatWeights:
    """A matrix of [outputs, inputs]."""

    matrix: Instruction

    @property
    def operands(self) -> Values:
        return [self.matrix]

    def apply(self, b: Builder, rows: Instruction, operands: Values) -> Instruction:
        return b.dot(rows, operands[0], [len(rows.shape) - 1], [1])


def rows_of(b: Builder, value: Instruction, start: int, limit: int) -> Instruction:
    """value[start:limit]. A constant stays a constant, so that it can stand inside a loop body."""
    if isinstance(value.op, Constant):
        return b.constant(value.op.literal.array[start:limit])
    rest = value.shape[1:]
    return b.slice(value, [start, *[0] * len(rest)], [limit, *rest])


class Cell(Protocol):
    """One direction's step."""

    @property
    def operands(self) -> Values:
        """Loop invariants of `step`, in the computation that made the cell."""

    def step(self, b: Builder, x: Instruction, states: Values, operands: Values) -> list[Instruction]:
        """The states after a step on `x` [batch, gates * hidden]. The hidden state comes first."""


def _gates(b: Builder, value: Instruction, hidden: int) -> list[Instruction]:
    batch, width = value.shape
    return [b.slice(value, [0, at], [batch, at + hidden]) for at in range(0, width, hidden)]


@dataclass(frozen=True)
class LstmCell:
    """i, o, f, g: input, output and forget gate, and the candidate. States: hidden, cell."""

    recurrence: Weights
    peepholes: Instruction | None
    """Weights [3 * hidden] by which the gates i, o, f see the cell state."""
    functions: Sequence[Function]
    input_forget: bool
    """Whether the forget gate is 1 - i."""

    @property
    def operands(self) -> Values:
        return [*self.recurrence.operands, *([self.peepholes] if self.peepholes is not None else [])]

    def step(self, b: Builder, x: Instruction, states: Values, operands: Values) -> list[Instruction]:
        h, c = states
        squash, candidate, output = self.functions
        hidden = h.shape[1]
        gates = b.add(x, self.recurrence.apply(b, h, operands))
        i, o, f, g = _gates(b, gates, hidden)

        def peek(gate: Instruction, k: int, cell: Instruction) -> Instruction:
            if self.peepholes is None:
                return gate
            weights = rows_of(b, operands[-1], k * hidden, (k + 1) * hidden)
            return b.add(gate, b.multiply(b.broadcast(weights, gate.shape, [1]), cell))

        i = squash(b, peek(i, 0, c))
        f = b.subtract(b.full_like(i, 1), i) if self.input_forget else squash(b, peek(f, 2, c))
        c = b.add(b.multiply(f, c), b.multiply(i, candidate(b, g)))
        o = squash(b, peek(o, 1, c))
        return [b.multiply(o, output(b, c)), c]


@dataclass(frozen=True)
class GruCell:
    """z, r, h: update and reset gate, and the candidate. State: hidden."""

    matrices: Sequence[Instruction]
    """R [3 * hidden, hidden] where the reset gate applies after the product; otherwise R of the gates
    z and r, and R of the candidate."""
    candidate_bias: Instruction | None
    """Rbh [hidden] where the reset gate applies after the product; otherwise it is part of the input."""
    functions: Sequence[Function]

    @property
    def operands(self) -> Values:
        return [*self.matrices, *([self.candidate_bias] if self.candidate_bias is not None else [])]

    def step(self, b: Builder, x: Instruction, states: Values, operands: Values) -> list[Instruction]:
        (h,) = states
        squash, candidate = self.functions
        batch, hidden = h.shape
        x_gates = b.slice(x, [0, 0], [batch, 2 * hidden])
        x_candidate = b.slice(x, [0, 2 * hidden], [batch, 3 * hidden])
        if len(self.matrices) == 1:
            product = b.dot(h, operands[0], [1], [1])
            gates = b.add(x_gates, b.slice(product, [0, 0], [batch, 2 * hidden]))
            z, r = _gates(b, squash(b, gates), hidden)
            inner = b.slice(product, [0, 2 * hidden], [batch, 3 * hidden])
            if self.candidate_bias is not None:
                inner = b.add(inner, b.broadcast(operands[1], inner.shape, [1]))
            new = candidate(b, b.add(x_candidate, b.multiply(r, inner)))
        else:
            z, r = _gates(b, squash(b, b.add(x_gates, b.dot(h, operands[0], [1], [1]))), hidden)
            new = candidate(b, b.add(x_candidate, b.dot(b.multiply(r, h), operands[1], [1], [1])))
        kept = b.multiply(z, h)
        return [b.add(b.multiply(b.subtract(b.full_like(z, 1), z), new), kept)]


@dataclass(frozen=True)
class RnnCell:
    """State: hidden."""

    recurrence: Weights
    functions: Sequence[Function]

    @property
    def operands(self) -> Values:
        return self.recurrence.operands

    def step(self, b: Builder, x: Instruction, states: Values, operands: Values) -> list[Instruction]:
        return [self.functions[0](b, b.add(x, self.recurrence.apply(b, states[0], operands)))]
