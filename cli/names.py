"""The names in a model, which somebody else has chosen: all that may break a line of what a command prints."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from onnxla.runtime.mixed_model import MixedModel
from onnxla.runtime.model import CompiledModel

if TYPE_CHECKING:
    from onnxla.frontends.tensorflow.model_file import TensorFlowModel


def names_in_message(message: Message) -> Iterator[str]:
    """Every text in a protobuf message, at any depth; no bytes, so no values of tensors."""
    left = [message]
    while left:
        for field, value in left.pop().ListFields():
            if field.type == FieldDescriptor.TYPE_STRING:
                yield from [value] if isinstance(value, str) else value
            elif field.type == FieldDescriptor.TYPE_MESSAGE:
                left.extend([value] if isinstance(value, Message) else _messages(value))


def _messages(value: Any) -> list[Message]:
    """Of a repeated field; a map gives its values."""
    items = value.values() if hasattr(value, "values") else value
    return [item for item in items if isinstance(item, Message)]


def names_in_tensorflow(model: "TensorFlowModel") -> Iterator[str]:
    """Of nodes, operations, edges, functions and signatures."""
    yield from (*model.functions, *model.signatures)
    for body in (model.body, *model.functions.values()):
        for node in body.nodes.values():
            yield from (node.name, node.op)
    for signature in model.signatures.values():
        if isinstance(signature, Message):
            yield from names_in_message(signature)
            yield from (*signature.inputs, *signature.outputs)


def names_in_compiled(model: CompiledModel) -> Iterator[str]:
    """Of inputs, outputs and their dimensions, of variables, and of the nodes that its steps come from."""
    for tensor in (*model.get_inputs(), *model.get_outputs()):
        yield tensor.name
        yield from (n for n in tensor.shape or () if isinstance(n, str))
    yield from (signature.name for signature in model.state.signatures())
    clusters = model.clusters if isinstance(model, MixedModel) else None
    for cluster in () if clusters is None else clusters.clusters:
        yield from (*cluster.nodes, *cluster.operators, *cluster.inputs, *cluster.outputs)
    for program in model.programs:
        yield from program.constants
        for step in program.steps:
            yield from (step.name, step.source, *step.also)
