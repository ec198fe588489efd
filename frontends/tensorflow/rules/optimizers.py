"""The steps of optimizers: variables and their slots change by a gradient (tensorflow/core/kernels/training_ops.cc).

`ResourceApplyX` takes handles, `ApplyX` references; the numbers that follow them are scalars.
"""

from collections.abc import Callable, Sequence

from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.rules.variables import rows_combined
from onnxla.frontends.tensorflow.values import Handle
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction

Values = Sequence[Instruction]
Step = Callable[[NodeView, Builder, Values, Values], Values]
"""From the variables now and the other operands, which are spread to the shape of the first, to their new values."""


def _register(name: str, slots: int) -> Callable[[Step], Step]:
    """The rule of an optimizer whose first `slots` inputs are variables."""

    def register(step: Step) -> Step:
        @tf_op(f"ResourceApply{name}", f"Apply{name}")
        def rule(node: NodeView, b: Builder) -> Handle:
            state, names = node.host.state, [node.handle(i) for i in range(slots)]
            now = [state.read(n) for n in names]
            others = [
                x if x.shape == now[0].shape else b.broadcast_scalar(b.reshape(x, ()), now[0].shape)
                for x in node.inputs(slots)
            ]
            for n, value in zip(names, step(node, b, now, others), strict=True):
                state.write(n, value)
            return Handle(names[0], is_reference=True)

        return step

    return register


def _one_minus(b: Builder, x: Instruction) -> Instruction:
    return b.subtract(b.full_like(x, 1), x)


def _towards(b: Builder, old: Instruction, new: Instruction, decay: Instruction) -> Instruction:
    """decay * old + (1 - decay) * new, as TensorFlow rounds it: old + (new - old) * (1 - decay)."""
    return b.add(old, b.multiply(b.subtract(new, old), _one_minus(b, decay)))


@_register("GradientDescent", 1)
def gradient_descent(node: NodeView, b: Builder, now: Values, others: Values) -> Values:
    (x,), (rate, g) = now, others
    return [b.subtract(x, b.multiply(g, rate))]


@_register("Momentum", 2)
def momentum(node: NodeView, b: Builder, now: Values, others: Values) -> Values:
    (x, velocity), (rate, g, factor) = now, others
    velocity = b.add(b.multiply(velocity, factor), g)
    if node.bool("use_nesterov", False):
        move = b.add(b.multiply(g, rate), b.multiply(b.multiply(velocity, factor), rate))
    else:
        move = b.multiply(velocity, rate)
    return [b.subtract(x, move), velocity]


@_register("KerasMomentum", 2)
def keras_momentum(node: NodeView, b: Builder, now: Values, others: Values) -> Values:
    (x, velocity), (rate, g, factor) = now, others
    velocity = b.subtract(b.multiply(velocity, factor), b.multiply(g, rate))
    if node.bool("use_nesterov", False):
        return [b.subtract(b.add(x, b.multiply(velocity, factor)), b.multiply(g, rate)), velocity]
    return [b.add(x, velocity), velocity]


@_register("Adam", 3)
def adam(node: NodeView, b: Builder, now: Values, others: Values) -> Values:
    """Kingma and Ba 2014, with the correction of both means folded into the rate."""
    x, mean, square = now
    power1, power2, rate, beta1, beta2, epsilon, g = others
    corrected = b.divide(b.multiply(rate, b.unary("sqrt", _one_minus(b, power2))), _one_minus(b, power1))
    mean = _towards(b, mean, g, beta1)
    square = _towards(b, square, b.multiply(g, g), beta2)
    direction = b.add(b.multiply(g, _one_minus(b, beta1)), b.multiply(beta1, mean)) if _nesterov(node) else mean
    move = b.divide(b.multiply(direction, corrected), b.add(b.unary("sqrt", square), epsilon))
    return [b.subtract(x, move), mean, square]


def _nesterov(node: NodeView) -> bool:
    return node.bool("use_nesterov", False)


@_register("AdaMax", 3)
def ada_max(node: NodeView, b: Builder, now: Values, others: Values) -> Values:
    x, mean, largest = now
    power1, rate, beta1, beta2, epsilon, g = others
    mean = _towards(b, mean, g, beta1)
    largest = b.maximum(b.multiply(beta2, largest), b.unary("abs", g))
    step = b.divide(rate, _one_minus(b, power1))
    return [b.subtract(x, b.multiply(step, b.divide(mean, b.add(largest, epsilon)))), mean, largest]


@_register("RMSProp", 3)
def rms_prop(node: NodeView, b: Builder, now: Values, others: Values) -> Values:
    x, square, velocity = now
    rate, decay, factor, epsilon, g = others
    square = _towards(b, square, b.multiply(g, g), decay)
    root = b.unary("sqrt", b.add(square, epsilon))
    velocity = b.add(b.multiply(velocity, factor), b.divide(b.multiply(g, rate), root))
    return [b.subtract(x, velocity), square, velocity]


@_register("CenteredRMSProp", 4)
def centered_rms_prop(node: NodeView, b: Builder, now: Values, others: Values) -> Values:
    x, mean, square, velocity = now
    rate, decay, factor, epsilon, g = others
    square = _towards(b, square, b.multiply(g, g), decay)
    mean = _towards(b, mean, g, decay)
    root = b.unary("sqrt", b.add(b.subtract(square, b.multiply(mean, mean)), epsilon))
    velocity = b.add(b.multiply(velocity, factor), b.divide(b.multiply(g, rate), root))
    return [b.subtract(x, velocity), mean, square, velocity]


@_register("Adagrad", 2)
def adagrad(node: NodeView, b: Builder, now: Values, others: Values) -> Values:
    (x, squares), (rate, g) = now, others
    squares = b.add(squares, b.multiply(g, g)) if node.bool("update_slots", True) else squares
    return [b.subtract(x, b.multiply(b.multiply(g, rate), b.unary("rsqrt", squares))), squares]


@_register("AdagradV2", 2)
def adagrad_v2(node: NodeView, b: Builder, now: Values, others: Values) -> Values:
    (x, squares), (rate, epsilon, g) = now, others
    squares = b.add(squares, b.multiply(g, g)) if node.bool("update_slots", True) else squares
    move = b.divide(b.multiply(g, rate), b.add(b.unary("sqrt", squares), epsilon))
    return [b.subtract(x, move), squares]


@_register("Adadelta", 3)
def adadelta(node: NodeView, b: Builder, now: Values, others: Values) -> Values:
    x, squares, moves = now
    rate, decay, epsilon, g = others
    squares = b.add(b.multiply(squares, decay), b.multiply(b.multiply(g, g), _one_minus(b, decay)))
    root = b.unary("sqrt", b.add(moves, epsilon))
    move = b.multiply(b.multiply(root, b.unary("rsqrt", b.add(squares, epsilon))), g)
    moves = b.add(b.multiply(moves, decay), b.multiply(b.multiply(move, move), _one_minus(b, decay)))
    return [b.subtract(x, b.multiply(move, rate)), squares, moves]


@tf_op("ResourceSparseApplyAdagradV2", "ResourceSparseApplyAdagrad")
def sparse_adagrad(node: NodeView, b: Builder) -> None:
    """Only the rows that are numbered; a row that is numbered twice counts as the sum of its gradients."""
    state, names = node.host.state, [node.handle(0), node.handle(1)]
    x, squares = (state.read(n) for n in names)
    rate = node.input(2)
    has_epsilon = node.op_type == "ResourceSparseApplyAdagradV2"
    g, rows = node.input(4 if has_epsilon else 3), node.input(5 if has_epsilon else 4)
    summed = rows_combined(b, b.full_like(x, 0), rows, g, "add")
    squares = b.add(squares, b.multiply(summed, summed))
    root = b.unary("sqrt", squares)
    if has_epsilon:
        root = b.add(root, b.broadcast_scalar(b.reshape(node.input(3), ()), x.shape))
    move = b.divide(b.multiply(summed, b.broadcast_scalar(b.reshape(rate, ()), x.shape)), root)
    untouched = b.compare(summed, b.full_like(summed, 0), "EQ")
    state.write(names[0], b.subtract(x, b.select(untouched, b.full_like(move, 0), move)))
    state.write(names[1], squares)
