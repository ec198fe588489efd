"""Variables: made, read, assigned."""

import numpy as np

from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.values import Handle, Value
from onnxla.frontends.tensorflow.variables import variable_name
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction


@tf_op("VarHandleOp")
def var_handle(node: NodeView, b: Builder) -> Handle:
    return Handle(variable_name(node.node))


@tf_op("ReadVariableOp")
def read_variable(node: NodeView, b: Builder) -> Instruction:
    return node.host.state.read(node.handle(0))


@tf_op("AssignVariableOp")
def assign_variable(node: NodeView, b: Builder) -> None:
    node.host.state.write(node.handle(0), node.input(1))


@tf_op("AssignAddVariableOp")
def assign_add_variable(node: NodeView, b: Builder) -> None:
    _update(node, b, "add")


@tf_op("AssignSubVariableOp")
def assign_sub_variable(node: NodeView, b: Builder) -> None:
    _update(node, b, "subtract")


def _update(node: NodeView, b: Builder, opcode: str) -> None:
    state, name = node.host.state, node.handle(0)
    state.write(name, b.binary(opcode, state.read(name), node.input(1)))


@tf_op("VarIsInitializedOp")
def var_is_initialized(node: NodeView, b: Builder) -> Instruction:
    return b.constant(True)


@tf_op("VariableShape")
def variable_shape(node: NodeView, b: Builder) -> Value:
    shape = node.host.state.read(node.handle(0)).shape
    return b.constant(np.array(shape), node.element("out_type", 3))


@tf_op("ResourceGather")
def resource_gather(node: NodeView, b: Builder) -> Instruction:
    if node.int("batch_dims", 0):
        node.unsupported("ResourceGather with batch_dims", "a gather without batch dimensions is supported")
    return b.take(node.host.state.read(node.handle(0)), node.input(1), 0)
