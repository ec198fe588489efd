"""Functions: those a model defines, and the bodies that the standard gives for its composite operators."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx.defs
from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto, helper

from onnxla.frontends.onnx.element_types import code_of_element
from onnxla.frontends.onnx.failed_values import Binding
from onnxla.frontends.onnx.operator_names import normal_domain
from onnxla.frontends.onnx.values import (
    ChosenStrings,
    MapsValue,
    OptionalValue,
    SequenceValue,
    StringConstant,
)
from onnxla.frontends.poison import Poison
from onnxla.frontends.problems import Poisoned


@dataclass(frozen=True)
class FunctionCall:
    """A function body and the attributes it is called with."""

    body: FunctionProto
    attributes: Mapping[str, AttributeProto]
    key: tuple[str, ...]
    """Names the function, to notice recursion."""

    @property
    def opsets(self) -> dict[str, int]:
        return {normal_domain(o.domain): o.version for o in self.body.opset_import}


def attributes_of(node: NodeProto, bindings: Mapping[str, AttributeProto]) -> dict[str, AttributeProto]:
    """A node's attributes by name, references to attributes of the function around replaced by `bindings`.

    A reference to an attribute that the caller left out leaves the node without it, as the standard says.
    """
    found: dict[str, AttributeProto] = {}
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            found[attribute.name] = attribute
        elif attribute.ref_attr_name in bindings:
            found[attribute.name] = bindings[attribute.ref_attr_name]
    return found


def local_call(function: FunctionProto, attributes: Mapping[str, AttributeProto]) -> FunctionCall:
    """The call of a model-local function, the defaults of its attributes filled in."""
    defaults = {a.name: a for a in function.attribute_proto}
    key = (normal_domain(function.domain), function.name, function.overload)
    return FunctionCall(function, {**defaults, **attributes}, key)


def has_standard_body(op_type: str, domain: str, opset: int) -> bool:
    """Whether the standard gives a body for an operator, for some inputs at least."""
    try:
        schema: Any = onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def standard_call(
    node: NodeProto, attributes: Mapping[str, AttributeProto], opset: int, inputs: Sequence[Binding]
) -> FunctionCall | None:
    """The call of the body that the standard gives for an operator at an opset, or None where it gives none.

    Raises Poisoned where the body depends on the type of an input that failed.
    """
    domain = normal_domain(node.domain)
    try:
        # onnx's type stubs leave out the methods about function bodies.
        schema: Any = onnx.defs.get_schema(node.op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None
    defaults = {n: a.default_value for n, a in schema.attributes.items() if a.default_value.type}
    merged = {**defaults, **attributes}
    body = FunctionProto()
    plain = [v for v in schema.function_opset_versions if v <= opset]
    contextual = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
    if plain:
        body.ParseFromString(schema.get_function_with_opset_version(max(plain)))
    elif contextual:
        context = NodeProto()
        context.CopyFrom(node)
        del context.attribute[:]
        context.attribute.extend(merged.values())
        types = [_type_proto(value).SerializeToString() for value in inputs]
        built = schema.get_context_dependent_function_with_opset_version(
            max(contextual), context.SerializeToString(), types
        )
        body.ParseFromString(built)
    else:
        return None
    return FunctionCall(body, merged, ("standard", domain, node.op_type))


def _type_proto(value: Binding) -> TypeProto:
    """The type of an input as the standard's function builders read it; empty for one left out."""
    if isinstance(value, Poison):
        raise Poisoned
    if value is None or isinstance(value, OptionalValue):
        return TypeProto()
    if isinstance(value, StringConstant):
        return helper.make_tensor_type_proto(onnx.TensorProto.STRING, value.array.shape)
    if isinstance(value, ChosenStrings):
        return helper.make_tensor_type_proto(onnx.TensorProto.STRING, value.places.shape)
    if isinstance(value, MapsValue):
        return TypeProto()
    if isinstance(value, SequenceValue):
        inner = _type_proto(value.elements[0]) if value.elements else TypeProto()
        return helper.make_sequence_type_proto(inner)
    type = value.tensor_type
    return helper.make_tensor_type_proto(code_of_element(type.element), type.shape)
