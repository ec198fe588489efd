"""Variables: made, read, assigned. TensorFlow 2's are resources, TensorFlow 1's are references to values."""

import numpy as np

from onnxla.frontends.onnx.rules.indexing import replacement
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.values import Handle
from onnxla.frontends.tensorflow.variables import variable_name
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.indexing import Scatter

_INT32 = 3


@tf_op("VarHandleOp")
def var_handle(node: NodeView, b: Builder) -> Handle:
    return Handle(variable_name(node.node))


@tf_op("VariableV2", "Variable")
def variable(node: NodeView, b: Builder) -> Handle:
    return Handle(variable_name(node.node), is_reference=True)


@tf_op("ReadVariableOp")
def read_variable(node: NodeView, b: Builder) -> Instruction:
    return node.host.state.read(node.handle(0))


@tf_op("DisableCopyOnRead", "DestroyResourceOp")
def nothing(node: NodeView, b: Builder) -> None:
    """How variables are kept is another matter here."""


@tf_op("VarIsInitializedOp", "IsVariableInitialized")
def var_is_initialized(node: NodeView, b: Builder) -> Instruction:
    return b.constant(True)


@tf_op("VariableShape")
def variable_shape(node: NodeView, b: Builder) -> Instruction:
    shape = node.host.state.read(node.handle(0)).shape
    return b.constant(np.array(shape), node.element("out_type", _INT32))


@tf_op("AssignVariableOp")
def assign_variable(node: NodeView, b: Builder) -> None:
    node.host.state.write(node.handle(0), node.input(1))


@tf_op("Assign")
def assign(node: NodeView, b: Builder) -> Handle:
    return _assigned(node, node.input(1))


def _assigned(node: NodeView, value: Instruction) -> Handle:
    """The reference, after its variable became `value`."""
    node.host.state.write(node.handle(0), value)
    return Handle(node.handle(0), is_reference=True)


def _register_update(name: str, reference_name: str, opcode: str) -> None:
    @tf_op(name, reference_name)
    def rule(node: NodeView, b: Builder) -> Handle:
        return _assigned(node, b.binary(opcode, node.host.state.read(node.handle(0)), node.input(1)))


_register_update("AssignAddVariableOp", "AssignAdd", "add")
_register_update("AssignSubVariableOp", "AssignSub", "subtract")


@tf_op("ResourceGather")
def resource_gather(node: NodeView, b: Builder) -> Instruction:
    """Rows of a variable."""
    if node.int("batch_dims", 0):
        node.unsupported("ResourceGather with batch_dims", "a gather without batch dimensions is supported")
    return b.take(node.host.state.read(node.handle(0)), node.input(1), 0)


def _register_scatter(name: str, opcode: str | None) -> None:
    @tf_op(name)
    def rule(node: NodeView, b: Builder) -> Handle:
        """Rows of a variable, by number."""
        now = node.host.state.read(node.handle(0))
        return _assigned(node, rows_combined(b, now, node.input(1), node.input(2), opcode))


for _name, _opcode in {"Update": None, "Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide"}.items():
    _register_scatter(f"ResourceScatter{_name}", _opcode)
    _register_scatter(f"Scatter{_name}", _opcode)


def rows_combined(
    b: Builder, x: Instruction, rows: Instruction, updates: Instruction, opcode: str | None
) -> Instruction:
    """`x` with updates combined into the rows that are numbered; without an opcode they replace."""
    rank, element = len(rows.shape), x.tensor_type.element
    updates = b.numpy_broadcast(updates, (*rows.shape, *x.shape[1:]))
    op = Scatter(
        update_window_dims=tuple(range(rank, len(updates.shape))),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        input_batching_dims=(),
        scatter_indices_batching_dims=(),
        index_vector_dim=rank,
        indices_are_sorted=False,
        unique_indices=False,
        to_apply=replacement(element) if opcode is None else b.combiner(opcode, element),
    )
    return b.scatter(x, rows, updates, op)
