"""What Switch and Merge of TensorFlow 1 have become (choices.py)."""

from onnxla.frontends.tensorflow.choices import CHOOSE, CONDITIONAL, PASS
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.values import Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import PRED, S32


@tf_op(PASS)
def pass_on(node: NodeView, b: Builder) -> list[Value]:
    """The value for every branch."""
    return [node.value(0)] * node.int("num_outs", 2)


@tf_op(CHOOSE)
def choose(node: NodeView, b: Builder) -> list[Instruction]:
    """The condition's value, then which one it is; an index out of range takes the last."""
    condition, values = b.reshape(node.input(0), ()), node.inputs(1)
    if any(v.type != values[0].type for v in values):
        node.dynamic_shape(
            "the branches give different types, and which is taken is known at run time only",
            "make the condition a constant, or let both branches give the same shapes",
            data=0,
        )
    index = b.convert(condition, S32)
    result = values[-1]
    for k, value in reversed(list(enumerate(values[:-1]))):
        if condition.tensor_type.element is PRED:
            taken = b.not_(condition)
        else:
            taken = b.compare(index, b.full_like(index, k), "EQ")
        result = b.select(taken, value, result)
    return [result, index]


@tf_op(CONDITIONAL)
def conditional_effect(node: NodeView, b: Builder) -> Value:
    node.unsupported(
        "an assignment or a loop inside of a conditional of TensorFlow 1",
        "export the model with TensorFlow 2",
    )
