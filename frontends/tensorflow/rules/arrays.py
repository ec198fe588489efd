"""TensorArray of TensorFlow 1 (`TensorArrayV3` and its kin) as a list: the handle is nothing, the flow is the list."""

from dataclasses import replace

import numpy as np

from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.rules.lists import concatenated, item_at, with_item, written_out
from onnxla.frontends.tensorflow.values import ListValue, Nothing, Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32, S64


@tf_op("TensorArrayV3", outputs=("handle", "flow"))
def tensor_array(node: NodeView, b: Builder) -> list[Value]:
    shape = node.shape("element_shape")
    return [Nothing("tensor array"), ListValue(node.constant_int(0), node.element("dtype"), None, shape)]


@tf_op("TensorArrayReadV3")
def read(node: NodeView, b: Builder) -> Instruction:
    return item_at(node, b, node.tensor_list(2), node.input(1))


@tf_op("TensorArrayWriteV3")
def write(node: NodeView, b: Builder) -> ListValue:
    return with_item(node, b, node.tensor_list(3), node.input(1), node.input(2))


@tf_op("TensorArrayScatterV3")
def scatter(node: NodeView, b: Builder) -> ListValue:
    """All rows in order, as unstacking writes them."""
    flow, rows = node.tensor_list(3), node.input(2)
    if node.constant_ints(1) != tuple(range(flow.length)) or rows.shape[0] != flow.length:
        node.unsupported("writing some of a TensorArray's elements, or in another order", "write all in order")
    return replace(flow, stack=rows)


@tf_op("TensorArrayGatherV3")
def gather(node: NodeView, b: Builder) -> Instruction:
    """All rows in order are the stack itself."""
    stack, places = written_out(node, b, node.tensor_list(2)), node.known(1)
    if places is not None and np.array_equal(places, np.arange(stack.shape[0])):
        return stack
    return b.take(stack, node.input(1), 0)


@tf_op("TensorArrayConcatV3", outputs=("value", "lengths"))
def concat(node: NodeView, b: Builder) -> list[Instruction]:
    stack = written_out(node, b, node.tensor_list(1))
    return [concatenated(node, b, stack), b.constant([stack.shape[1]] * stack.shape[0], S64)]


@tf_op("TensorArraySizeV3")
def size(node: NodeView, b: Builder) -> Instruction:
    return b.constant(node.tensor_list(1).length, S32)


@tf_op("TensorArrayCloseV3")
def close(node: NodeView, b: Builder) -> None:
    """Nothing is held."""
