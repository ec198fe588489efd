"""Functions as HLO computations: the arguments of a branch or of a loop's body, flat.

HLO's while and conditional pass one tuple of tensors around. Lists travel as their stacks; handles and strings do not
travel, since they are known; variables that a body reads or writes join the tuple.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from onnxla.errors import DynamicShapeError, Problem, ShapeError
from onnxla.frontends.dependence import SPECIALISABLE_ELEMENTS
from onnxla.frontends.poison import Poison
from onnxla.frontends.tensorflow.graph import Body
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.state import InnerState
from onnxla.frontends.tensorflow.values import Binding, Handle, ListValue, Nothing, StringConstant, TableHandle, Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.structural import Constant, Parameter
from onnxla.hlo.types import TensorType, TupleType


def stand_in(type: TensorType, name: str = "") -> Instruction:
    """An instruction of `type` that belongs to no computation yet."""
    return Instruction(Parameter(0, type), name=name)


def tensors_of(value: Value) -> tuple[Instruction, ...]:
    """The tensors that carry a value: a list's stack, and its count where it grows; none for what does not travel."""
    if isinstance(value, ListValue):
        if value.stack is None:
            return ()
        return (value.stack,) if value.count is None else (value.stack, value.count)
    return (value,) if isinstance(value, Instruction) else ()


def with_tensors(value: Value, tensors: Sequence[Instruction]) -> Value:
    """The same kind of value, carried by `tensors`."""
    if not tensors:
        return value
    if isinstance(value, ListValue):
        return replace(value, stack=tensors[0], count=tensors[1] if len(tensors) > 1 else None)
    return tensors[0]


def not_uniform(value: Value) -> Value:
    """The value, of whose elements nothing is known where it is a list."""
    return replace(value, uniform=None) if isinstance(value, ListValue) else value


def travels(value: Value) -> bool:
    """Whether it is carried by tensors, now or once it was written to."""
    return isinstance(value, (Instruction, ListValue))


def same_type(a: Value, b: Value) -> bool:
    """Whether two values could stand in each other's place."""
    ours, theirs = tensors_of(a), tensors_of(b)
    if ours and theirs:
        return [t.type for t in ours] == [t.type for t in theirs]
    if travels(a) or travels(b):
        return isinstance(a, ListValue) and isinstance(b, ListValue)
    return same_known(a, b)


Place: TypeAlias = tuple[int, int]
"""An argument, or a result, and one of its tensors."""


@dataclass
class Inner:
    """A function being imported as a computation of its own."""

    builder: Builder
    state: InnerState
    arguments: list[Binding] = field(default_factory=list)
    """What the function's arguments are inside."""
    stand_ins: dict[Place, Instruction] = field(default_factory=dict)
    """What stands for the tensors of arguments; none where a tensor is known inside."""
    results: list[Value] = field(default_factory=list)


def inner_of(node: NodeView, name: str, values: Sequence[Binding], changing: Sequence[bool]) -> Inner:
    """A computation whose arguments stand for `values`: those that do not change and are known come in as constants.

    `changing` says which are replaced from one iteration to the next.
    """
    builder = Builder(name, node.source)
    inner = Inner(builder, InnerState(node.host.state, builder))
    for i, (value, changes) in enumerate(zip(values, changing, strict=True)):
        if isinstance(value, Poison):
            inner.arguments.append(value)
            continue
        inside: list[Instruction] = []
        for k, tensor in enumerate(tensors_of(value)):
            known = None if changes else _as_constant(node, inner.builder, tensor)
            if known is None:
                known = inner.stand_ins[i, k] = stand_in(tensor.tensor_type, tensor.name)
                if changes:
                    node.host.note_varying(known, f"every iteration of {node.source.name}")
                else:
                    node.host.note_origin(known, tensor)
            inside.append(known)
        inner.arguments.append(with_tensors(value, inside))
    return inner


def _as_constant(node: NodeView, b: Builder, tensor: Instruction) -> Instruction | None:
    if isinstance(tensor.op, Constant):
        return b.literal(tensor.op.literal)
    if tensor.tensor_type.size > SPECIALISABLE_ELEMENTS:
        return None
    value = node.host.known_value(tensor)
    return None if value is None else b.constant(value)


def import_inner(node: NodeView, body: Body, attributes: Mapping[str, Any], inner: Inner) -> None:
    """Import a function into its computation."""
    inner.results = node.host.import_body(body, inner.arguments, inner.builder, inner.state, attributes)


def over_one_tuple(inner: Builder, stand_ins: Sequence[Instruction], results: Sequence[Instruction]) -> Computation:
    """The computation from a tuple, element i standing for `stand_ins[i]`, to the tuple of `results`."""
    element_of = _over_parameter(inner, stand_ins)
    return inner.build(inner.tuple(*(element_of.get(r, r) for r in results)))


def to_one_result(inner: Builder, stand_ins: Sequence[Instruction], result: Instruction) -> Computation:
    """As `over_one_tuple`, to a single result that is no tuple."""
    element_of = _over_parameter(inner, stand_ins)
    return inner.build(element_of.get(result, result))


def _over_parameter(inner: Builder, stand_ins: Sequence[Instruction]) -> dict[Instruction, Instruction]:
    state = inner.parameter(TupleType(tuple(s.type for s in stand_ins)), "state")
    element_of = {s: inner.get_tuple_element(state, i) for i, s in enumerate(stand_ins)}
    for s, element in element_of.items():
        element.name = s.name
        s.replace_uses_with(element)
    return element_of


def passed_through(body: Body) -> list[int | None]:
    """For each result of a function the argument that it is, unchanged; None for what the function computes."""
    places = {a.name: i for i, a in enumerate(body.arguments)}
    found: list[int | None] = []
    for edge in body.results:
        seen: set[str] = set()
        while edge.node in body.nodes and edge.node not in seen:
            seen.add(edge.node)
            node = body.nodes[edge.node]
            if node.op != "Identity" or not node.inputs:
                break
            edge = node.inputs[0]
        found.append(places.get(edge.node))
    return found


def about_shapes(problems: Sequence[Problem]) -> bool:
    return all(issubclass(p.kind, (DynamicShapeError, ShapeError)) for p in problems)


def same_known(a: Value, b: Value) -> bool:
    """Whether two values that do not travel are the same."""
    if isinstance(a, StringConstant) and isinstance(b, StringConstant):
        return a.array.shape == b.array.shape and bool((a.array == b.array).all())
    return a == b if isinstance(a, (Handle, Nothing, TableHandle)) else a is b
