"""What is wrong with a node whatever it reads: its attributes and its number of inputs, by the standard's own list.

Models of opsets that the list does not have, and operators of other domains, are left to the rules.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import onnx.defs
from onnx import AttributeProto, NodeProto

from onnxla.frontends.onnx.operator_names import normal_domain


def unknown_attributes(node: NodeProto, opset: int) -> list[str]:
    """The attributes of a node that its operator does not have at this opset; none where the standard has no say."""
    schema = _schema(node.op_type, opset, normal_domain(node.domain))
    if schema is None:
        return []
    return [a.name for a in node.attribute if a.name not in schema.attributes and not a.name.startswith("__")]


def faults_of_form(node: NodeProto, attributes: Mapping[str, AttributeProto], opset: int) -> Iterator[str]:
    """Required attributes that are missing, those of another kind, too few inputs and too many.

    `attributes` are those of the node, references resolved. Inputs that are left out in the middle are the rule's
    affair: exporters leave some out that the standard requires and nothing reads.
    """
    schema = _schema(node.op_type, opset, normal_domain(node.domain))
    if schema is None:
        return
    for name, declared in schema.attributes.items():
        given = attributes.get(name)
        if given is None:
            if declared.required:
                yield f"the attribute {name} is missing"
        # Models of the first IR versions leave the type out.
        elif given.type not in (_code(declared), AttributeProto.UNDEFINED):
            yield f"the attribute {name} is {kind_name(given.type)}, not {kind_name(_code(declared))}"
    names = list(node.input)
    if len(names) < schema.min_input:
        yield f"input {len(names)} is missing"
    while names and not names[-1]:
        names.pop()
    if len(names) > schema.max_input:
        yield f"{len(names)} inputs, where at most {schema.max_input} may be"


def kind_name(code: int) -> str:
    """The name of a kind of attribute: FLOAT, INTS."""
    known = code in AttributeProto.AttributeType.values()
    return AttributeProto.AttributeType.Name(code) if known else f"of type {code}"


def _code(declared: Any) -> int:
    # onnx's type stubs leave out what the enumeration has.
    return int(declared.type.value)


@cache
def _schema(op_type: str, opset: int, domain: str) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None
