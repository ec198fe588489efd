"""Subgraphs as HLO computations: closing over outer values, and the while loop that Loop and Scan share.

A body is imported once, with free-standing placeholders for its arguments and for the outer values it
reads. Only then is it known which of those it needs and what types its results have, so the placeholders
are exchanged for elements of the one tuple parameter that HLO's while and conditional pass around.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import overload

from onnxla.errors import DynamicShapeError, Problem, ShapeError
from onnxla.frontends.dependence import SPECIALISABLE_ELEMENTS
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.values import (
    ChosenStrings,
    MapsValue,
    OptionalValue,
    SequenceValue,
    Value,
    describe,
)
from onnxla.frontends.poison import Poison
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.structural import Constant, Parameter
from onnxla.hlo.types import PRED, S64, TensorType, TupleType


def placeholder(type: TensorType, name: str = "") -> Instruction:
    """An instruction of `type` that belongs to no computation yet."""
    return Instruction(Parameter(0, type), name=name)


@dataclass(frozen=True)
class Captured:
    """An outer value that a body reads, and what stands for it inside."""

    outer: Instruction
    inner: Instruction


class Closure:
    """Brings outer values into the computation that `inner` builds: constants again as constants, others
    as placeholders, each once."""

    def __init__(self, node: NodeView, inner: Builder) -> None:
        self._node = node
        self._inner = inner
        self._captured: dict[Instruction, Instruction] = {}

    @overload
    def bring(self, outer: Value) -> Value: ...
    @overload
    def bring(self, outer: Value | Poison) -> Value | Poison: ...
    def bring(self, outer: Value | Poison) -> Value | Poison:
        """The stand-in for an outer value; what failed failed inside as well."""
        if isinstance(outer, SequenceValue):
            return SequenceValue(tuple(self.bring(e) for e in outer.elements))
        if isinstance(outer, OptionalValue):
            return OptionalValue(None if outer.value is None else self.bring(outer.value))
        if isinstance(outer, ChosenStrings):
            return replace(outer, places=self.bring_tensor(outer.places))
        if isinstance(outer, MapsValue):
            return replace(outer, scores=self.bring_tensor(outer.scores))
        if isinstance(outer, Instruction):
            return self.bring_tensor(outer)
        return outer

    def bring_tensor(self, outer: Instruction) -> Instruction:
        """The stand-in for an outer tensor."""
        if outer not in self._captured:
            self._captured[outer] = self._stand_in(outer)
        return self._captured[outer]

    def _stand_in(self, outer: Instruction) -> Instruction:
        if isinstance(outer.op, Constant):
            return self._inner.literal(outer.op.literal)
        if outer.tensor_type.size <= SPECIALISABLE_ELEMENTS:
            value = self._node.host.known_value(outer)
            if value is not None:
                return self._inner.constant(value)
        stand_in = placeholder(outer.tensor_type, outer.name)
        self._node.host.note_origin(stand_in, outer)
        return stand_in

    def needed_by(self, results: Sequence[Instruction]) -> list[Captured]:
        """The outer values that `results` are computed from."""
        used = set(Computation("results", [], self._inner.tuple(*results)).instructions())
        return [
            Captured(outer, inner)
            for outer, inner in self._captured.items()
            if inner in used and isinstance(inner.op, Parameter)
        ]


def import_closed(
    node: NodeView, name: str, arguments: Sequence[Value], inner: Builder, closure: Closure
) -> list[Value]:
    """Import the subgraph attribute `name` into `inner`, which builds another computation."""
    captured = {outer_name: closure.bring(value) for outer_name, value in node.captures(name).items()}
    return node.import_body(name, arguments, inner, captured)


def over_one_tuple(inner: Builder, placeholders: Sequence[Instruction], results: Sequence[Instruction]) -> Computation:
    """The computation from a tuple, element i standing for placeholder i, to the tuple of `results`."""
    state = inner.parameter(TupleType(tuple(p.type for p in placeholders)), "state")
    element_of = {p: inner.get_tuple_element(state, i) for i, p in enumerate(placeholders)}
    for p, element in element_of.items():
        element.name = p.name
        p.replace_uses_with(element)
    return inner.build(inner.tuple(*(element_of.get(r, r) for r in results)))


@dataclass(frozen=True)
class Carried:
    """A value that each iteration replaces: before the loop, inside it, and what the body makes of it."""

    initial: Instruction
    inside: Instruction
    result: Instruction


@dataclass(frozen=True)
class Stacked:
    """A value that each iteration adds to a stack along `axis`, from the end when `reverse`."""

    each: Instruction
    axis: int = 0
    reverse: bool = False

    def stack_type(self, count: int) -> TensorType:
        shape = self.each.shape
        return self.each.tensor_type.with_shape((*shape[: self.axis], count, *shape[self.axis :]))


@dataclass(frozen=True)
class LoopBody:
    """An imported loop body, ready to become a while."""

    builder: Builder
    closure: Closure
    counter: Instruction
    """Placeholder of the iteration number, s64."""
    carried: Sequence[Carried]
    stacked: Sequence[Stacked]
    goes_on: Carried | None = None
    """pred: whether another iteration follows; None where that depends on the count only."""


def count_from_end(b: Builder, count: int, counter: Instruction) -> Instruction:
    """`count - 1 - counter`."""
    return b.subtract(b.constant(count - 1, S64), counter)


def starts_at(b: Builder, rank: int, axis: int, position: Instruction) -> list[Instruction]:
    """Start indices of a dynamic slice: `position` at `axis`, zero elsewhere."""
    zero = b.constant(0, S64)
    return [position if d == axis else zero for d in range(rank)]


def emit_while(b: Builder, body: LoopBody, limit: Instruction | int | None) -> tuple[list[Instruction], ...]:
    """The loop as an HLO while: the final carried values, and the stacks.

    It ends after `limit` iterations (an s64 scalar or a number; None is no limit) or when the body says
    so. Stacks need `limit` as a number.
    """
    inner = body.builder
    one_more = inner.add(body.counter, inner.constant(1, S64))
    state = [Carried(b.constant(0, S64), body.counter, one_more), *body.carried]
    if body.goes_on is not None:
        state.append(body.goes_on)
    first_stack = len(state)
    for stacked in body.stacked:
        assert isinstance(limit, int)
        type = stacked.stack_type(limit)
        inside = placeholder(type, stacked.each.name)
        position = count_from_end(inner, limit, body.counter) if stacked.reverse else body.counter
        update = inner.reshape(stacked.each, stacked.stack_type(1).shape)
        written = inner.dynamic_update_slice(inside, update, starts_at(inner, type.rank, stacked.axis, position))
        state.append(Carried(b.full(type.shape, 0, type.element), inside, written))
    invariants = body.closure.needed_by([c.result for c in state])
    if isinstance(limit, Instruction):
        invariants.append(Captured(limit, placeholder(limit.tensor_type, "limit")))
    state += [Carried(c.outer, c.inner, c.inner) for c in invariants]

    computation = over_one_tuple(inner, [c.inside for c in state], [c.result for c in state])
    condition = _condition(state, limit, first_stack - 1 if body.goes_on is not None else None)
    loop = b.while_(b.tuple(*(c.initial for c in state)), condition, computation)
    carried = [b.get_tuple_element(loop, 1 + i) for i in range(len(body.carried))]
    stacks = [b.get_tuple_element(loop, first_stack + i) for i in range(len(body.stacked))]
    return carried, stacks


def _condition(state: Sequence[Carried], limit: Instruction | int | None, goes_on: int | None) -> Computation:
    """Whether another iteration follows: the counter is below the limit, and the body agreed."""
    c = Builder("loop_condition")
    values = c.parameter(TupleType(tuple(s.inside.type for s in state)), "state")
    checks: list[Instruction] = []
    if limit is not None:
        # A limit that is an instruction is the last invariant.
        bound = c.constant(limit, S64) if isinstance(limit, int) else c.get_tuple_element(values, len(state) - 1)
        checks.append(c.compare(c.get_tuple_element(values, 0), bound, "LT"))
    if goes_on is not None:
        checks.append(c.get_tuple_element(values, goes_on))
    if not checks:
        return c.build(c.constant(True, PRED))
    return c.build(checks[0] if len(checks) == 1 else c.and_(*checks))


def scalar(node: NodeView, b: Builder, i: int) -> Instruction:
    """Input `i`, a tensor of one element, as a scalar."""
    value = node.input(i)
    if value.tensor_type.size != 1:
        node.shape_error(f"input {node.input_name(i)} is {describe(value)}; one element was expected")
    return b.reshape(value, ())


def tensors(node: NodeView, values: Sequence[Value], what: str) -> list[Instruction]:
    """`values`, which must all be tensors of numbers."""
    found = [v for v in values if isinstance(v, Instruction)]
    if len(found) != len(values):
        node.unsupported(f"{what} of {node.op_type} must be tensors of numbers")
    return found


def about_shapes(problems: Sequence[Problem]) -> bool:
    return all(issubclass(p.kind, (DynamicShapeError, ShapeError)) for p in problems)
