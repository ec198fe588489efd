"""The optimizers of ai.onnx.preview.training: Adagrad, Adam, Momentum.

Inputs are the learning rate, the update count, then all tensors, all gradients and all states, each
group in one order; outputs are the new tensors and states alike.
"""

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction

TRAINING = "ai.onnx.preview.training"


def _groups(node: NodeView, count: int) -> list[list[Instruction]]:
    """The inputs after the first two, as `count` groups of equal size."""
    values = node.inputs()[2:]
    if not values or len(values) % count:
        node.shape_error(f"{len(values)} tensors do not divide into {count} groups")
    each = len(values) // count
    return [values[i * each : (i + 1) * each] for i in range(count)]


def _scaled(b: Builder, x: Instruction, factor: float | Instruction) -> Instruction:
    if isinstance(factor, float):
        return b.multiply(x, b.full_like(x, factor))
    return b.multiply(x, b.broadcast_scalar(b.reshape(b.convert(factor, x.tensor_type.element), ()), x.shape))


def _regularized(node: NodeView, b: Builder, x: Instruction, gradient: Instruction) -> Instruction:
    """gradient + norm_coefficient * x"""
    return b.add(_scaled(b, x, node.float("norm_coefficient", 0.0)), gradient)


def _has_started(node: NodeView, b: Builder) -> Instruction:
    """pred[]: whether the update count is above zero."""
    count = b.reshape(node.input(1), ())
    return b.compare(count, b.full_like(count, 0), "GT")


@onnx_op("Adagrad", domain=TRAINING)
def adagrad(node: NodeView, b: Builder) -> list[Instruction]:
    rate = b.reshape(node.input(0), ())
    count = b.convert(b.reshape(node.input(1), ()), rate.tensor_type.element)
    decayed = b.add(b.full_like(rate, 1), _scaled(b, count, node.float("decay_factor", 0.0)))
    rate = b.divide(rate, decayed)
    new_x, new_h = [], []
    for x, gradient, h in zip(*_groups(node, 3), strict=True):
        step = _regularized(node, b, x, gradient)
        squares = b.add(h, b.multiply(step, step))
        root = b.add(b.unary("sqrt", squares), b.full_like(h, node.float("epsilon", 1e-6)))
        new_x.append(b.subtract(x, b.divide(_scaled(b, step, rate), root)))
        new_h.append(squares)
    return [*new_x, *new_h]


@onnx_op("Adam", domain=TRAINING)
def adam(node: NodeView, b: Builder) -> list[Instruction]:
    alpha, beta = node.float("alpha", 0.9), node.float("beta", 0.999)
    rate = b.reshape(node.input(0), ())
    element = rate.tensor_type.element
    count = b.convert(b.reshape(node.input(1), ()), element)

    def one_minus_power(base: float) -> Instruction:
        return b.subtract(b.full_like(rate, 1), b.power(b.full_like(rate, base), count))

    corrected = b.divide(b.multiply(rate, b.unary("sqrt", one_minus_power(beta))), one_minus_power(alpha))
    rate = b.select(_has_started(node, b), corrected, rate)
    new_x, new_v, new_h = [], [], []
    for x, gradient, v, h in zip(*_groups(node, 4), strict=True):
        step = _regularized(node, b, x, gradient)
        mean = b.add(_scaled(b, v, alpha), _scaled(b, step, 1 - alpha))
        squares = b.add(_scaled(b, h, beta), _scaled(b, b.multiply(step, step), 1 - beta))
        root = b.add(b.unary("sqrt", squares), b.full_like(h, node.float("epsilon", 1e-6)))
        moved = b.subtract(x, b.divide(_scaled(b, mean, rate), root))
        new_x.append(_scaled(b, moved, 1 - node.float("norm_coefficient_post", 0.0)))
        new_v.append(mean)
        new_h.append(squares)
    return [*new_x, *new_v, *new_h]


@onnx_op("Momentum", domain=TRAINING)
def momentum(node: NodeView, b: Builder) -> list[Instruction]:
    alpha, mode = node.float("alpha"), node.word("mode", ("standard", "nesterov"))
    rate = node.input(0)
    one = b.full((), 1, rate.tensor_type.element)
    beta = b.select(_has_started(node, b), b.full_like(one, node.float("beta")), one)
    new_x, new_v = [], []
    for x, gradient, v in zip(*_groups(node, 3), strict=True):
        step = _regularized(node, b, x, gradient)
        velocity = b.add(_scaled(b, v, alpha), _scaled(b, step, beta))
        direction = velocity if mode == "standard" else b.add(step, _scaled(b, velocity, alpha))
        new_x.append(b.subtract(x, _scaled(b, direction, rate)))
        new_v.append(velocity)
    return [*new_x, *new_v]
