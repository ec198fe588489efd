"""An operation's attributes as text, and back: the walk over the fields of its class."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from onnxla.errors import HloError
from onnxla.hlo.module import Computation
from onnxla.hlo.op import Codec, Op
from onnxla.hlo.ops.control_flow import Conditional
from onnxla.hlo.types import PRED, TensorType, Type

_TWO_BRANCHES = ("true_computation", "false_computation")
"""How XLA writes the branches of a conditional on a predicate."""


@dataclass(frozen=True)
class Attribute:
    """One attribute of a class and the fields it holds: one, or several that are written together."""

    name: str
    codec: Codec
    fields: tuple[str, ...]
    absent: Any
    """The value where the text lacks it; MISSING where it may not."""


_ATTRIBUTES: dict[type[Op], tuple[Attribute, ...]] = {}


def attributes_of(cls: type[Op]) -> tuple[Attribute, ...]:
    """The attributes of an operation's class that are written, in the order of its fields."""
    if cls not in _ATTRIBUTES:
        _ATTRIBUTES[cls] = _read_attributes(cls)
    return _ATTRIBUTES[cls]


def _read_attributes(cls: type[Op]) -> tuple[Attribute, ...]:
    groups: dict[str, list[dataclasses.Field[Any]]] = {}
    for field in dataclasses.fields(cls):
        if "attribute" in field.metadata:
            groups.setdefault(field.metadata["attribute"], []).append(field)
    return tuple(
        Attribute(
            name,
            fields[0].metadata["codec"],
            tuple(f.name for f in fields),
            fields[0].metadata.get("absent", dataclasses.MISSING),
        )
        for name, fields in groups.items()
    )


def format_attributes(op: Op, operands: Sequence[Type], name_of: Callable[[Computation], str]) -> list[str]:
    """`name=value` for each attribute that is not absent; `name_of` names a computation in this text."""
    if isinstance(op, Conditional) and operands[0] == TensorType(PRED):
        return [f"{name}=%{name_of(branch)}" for name, branch in zip(_TWO_BRANCHES, op.branches, strict=True)]
    texts = []
    for attribute in attributes_of(type(op)):
        values = tuple(getattr(op, f) for f in attribute.fields)
        value = values[0] if len(values) == 1 else values
        if attribute.absent is dataclasses.MISSING or value != attribute.absent:
            texts.append(f"{attribute.name}={_format(value, attribute.codec, name_of)}")
    return texts


def make_op(
    cls: type[Op], fields: dict[str, Any], texts: dict[str, str], type: Type, computations: dict[str, Computation]
) -> Op:
    """The operation from the fields already known, the attributes' texts and the declared result type.

    Raises HloError for an attribute that is missing, unknown or does not read.
    """
    left = dict(texts)
    if cls is Conditional and all(name in left for name in _TWO_BRANCHES):
        left["branch_computations"] = "{" + ",".join(left.pop(name) for name in _TWO_BRANCHES) + "}"
    for field in dataclasses.fields(cls):
        if "from_result" in field.metadata:
            fields[field.name] = field.metadata["from_result"](type)
    for attribute in attributes_of(cls):
        if attribute.name in left:
            value = _parse(attribute, left.pop(attribute.name), computations)
        elif attribute.absent is dataclasses.MISSING:
            raise HloError(f"{cls.opcode} needs the attribute {attribute.name}")
        else:
            value = attribute.absent
        fields.update(zip(attribute.fields, value if len(attribute.fields) > 1 else (value,), strict=True))
    if left:
        raise HloError(f"{cls.opcode} has no attribute {next(iter(left))}")
    return cls(**fields)


def _format(value: Any, codec: Codec, name_of: Callable[[Computation], str]) -> str:
    if isinstance(value, Computation):
        return f"%{name_of(value)}"
    if isinstance(value, tuple) and value and all(isinstance(c, Computation) for c in value):
        return "{" + ", ".join(f"%{name_of(c)}" for c in value) + "}"
    return codec.format(value)


def _parse(attribute: Attribute, text: str, computations: dict[str, Computation]) -> Any:
    try:
        return attribute.codec.parse(text, computations)
    except HloError as error:
        raise HloError(f"{attribute.name}={text[:60]}: {error}") from error
