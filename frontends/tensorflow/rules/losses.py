"""Losses that come with their own gradient."""

from onnxla.frontends.onnx.rules.precision import widen
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.rules.activation import log_softmax_of
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import TensorType

OUTPUTS = ("loss", "backprop")


@tf_op("SoftmaxCrossEntropyWithLogits", outputs=OUTPUTS)
def softmax_cross_entropy(node: NodeView, b: Builder) -> list[Instruction]:
    """-sum(labels * log_softmax(logits)) of each row, and softmax(logits) - labels."""
    logits, labels = node.input(0), node.input(1)
    shape = tuple(max(m, n) for m, n in zip(logits.shape, labels.shape, strict=True))
    return _loss_and_gradient(b, b.numpy_broadcast(logits, shape), b.numpy_broadcast(labels, shape))


@tf_op("SparseSoftmaxCrossEntropyWithLogits", outputs=OUTPUTS)
def sparse_softmax_cross_entropy(node: NodeView, b: Builder) -> list[Instruction]:
    """The labels are numbers of classes."""
    logits, labels = node.input(0), node.input(1)
    if len(logits.shape) != 2 or labels.shape != logits.shape[:1]:
        node.shape_error("the logits must be [batch, classes] and the labels [batch]")
    classes = b.iota(TensorType(labels.tensor_type.element, logits.shape), 1)
    hot = b.compare(b.broadcast(labels, logits.shape, [0]), classes, "EQ")
    return _loss_and_gradient(b, logits, b.convert(hot, logits.tensor_type.element))


def _loss_and_gradient(b: Builder, given: Instruction, labels: Instruction) -> list[Instruction]:
    element = given.tensor_type.element
    logs = log_softmax_of(b, widen(b, given))
    wanted = widen(b, labels)
    # A label of 0 counts nothing, even where the logarithm is infinite.
    zero = b.full_like(logs, 0)
    terms = b.select(b.compare(wanted, zero, "EQ"), zero, b.multiply(wanted, logs))
    loss = b.negate(b.reduce_by("add", terms, [len(logs.shape) - 1]))
    gradient = b.subtract(b.exponential(logs), wanted)
    return [b.convert(loss, element), b.convert(gradient, element)]
