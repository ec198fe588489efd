"""Constants, values passed on unchanged, and operations that a compiled program does without."""

from dataclasses import replace

import numpy as np

from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.values import Handle, ListValue, StringConstant, Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.literal import Literal
from onnxla.hlo.module import Instruction


@tf_op("Const", "HostConst")
def const(node: NodeView, b: Builder) -> Value:
    array = node.tensor("value")
    if array.dtype == object:
        return StringConstant(array)
    if array.size > 1 and not any(array.strides):  # one value, repeated
        return b.broadcast_scalar(b.constant(array[(0,) * array.ndim]), array.shape)
    return b.literal(Literal(np.asarray(array, order="C"), node.node.name))


@tf_op(
    "Identity",
    "StopGradient",
    "PreventGradient",
    "Snapshot",
    "CheckNumerics",
    "CheckNumericsV2",
    "Print",
    "PlaceholderWithDefault",
    "DebugGradientIdentity",
    "GuaranteeConst",
)
def identity(node: NodeView, b: Builder) -> Value:
    """A reference to a variable is read."""
    value = node.value(0)
    return node.input(0) if isinstance(value, Handle) and value.is_reference else value


@tf_op("IdentityN")
def identity_n(node: NodeView, b: Builder) -> list[Value]:
    return list(node.values())


@tf_op("EnsureShape")
def ensure_shape(node: NodeView, b: Builder) -> Instruction:
    """The input, whose shape must be one that the attribute allows."""
    x, shape = node.input(0), node.shape("shape")
    if shape is not None and (
        len(shape) != len(x.shape) or any(w not in (None, n) for w, n in zip(shape, x.shape, strict=True))
    ):
        node.shape_error(f"{x.tensor_type} is not of the shape {list(shape)}")
    return x


@tf_op("NoOp", "Assert", "PrintV2", "ControlTrigger")
def nothing(node: NodeView, b: Builder) -> None:
    """Checks and messages are left out."""


@tf_op("Placeholder", "PlaceholderV2")
def placeholder(node: NodeView, b: Builder) -> Value:
    node.unsupported(
        f"the graph reads {node.node.name}, which is not among the inputs", "name it in inputs=, or other outputs="
    )


@tf_op("ZerosLike")
def zeros_like(node: NodeView, b: Builder) -> Value:
    """Of a list too: as many zeros."""
    value = node.value(0)
    if isinstance(value, ListValue):
        return replace(value, stack=None if value.stack is None else b.full_like(value.stack, 0), uniform=None)
    return b.full_like(node.input(0), 0)


@tf_op("OnesLike")
def ones_like(node: NodeView, b: Builder) -> Instruction:
    return b.full_like(node.input(0), 1)


@tf_op("MergeV2Checkpoints", "SaveV2", "RestoreV2", "ShardedFilename")
def checkpoint_operation(node: NodeView, b: Builder) -> Value:
    node.unsupported(f"{node.op_type} reads or writes files", "compile a signature that computes")


@tf_op("IteratorV2", "IteratorGetNext", "OneShotIterator", "AnonymousIterator", "AnonymousIteratorV2", "MakeIterator")
def iterator(node: NodeView, b: Builder) -> Value:
    node.unsupported(f"{node.op_type} reads from a data pipeline", "compile the function that takes one batch")
