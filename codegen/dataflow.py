"""A module as the plan needs it: single-assignment tensors and nested lists of nodes, in the order they run.

Everything that costs nothing is gone: tuples, tuple elements, reshapes and same-width bit casts are other names of a
tensor they read; calls are inlined; a loop carries only what its body changes, the rest it reads from outside.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from onnxla import watch
from onnxla.codegen.lowering import Lowering
from onnxla.codegen.order import order_instructions
from onnxla.codegen.sharing import lowering_key
from onnxla.errors import InternalError
from onnxla.hlo.literal import Literal
from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.names import UniqueNames
from onnxla.hlo.ops.control_flow import Call, Conditional, While
from onnxla.hlo.ops.elementwise import BitcastConvert
from onnxla.hlo.ops.shape import Reshape
from onnxla.hlo.ops.structural import Constant, GetTupleElement, Parameter, Tuple
from onnxla.hlo.types import TensorType, Type

T = TypeVar("T")
Lower: TypeAlias = Callable[[Instruction], Lowering]


@dataclass(eq=False)
class Value:
    """One tensor, assigned once (once a round, inside a loop). Its type is that of its first name."""

    name: str
    type: TensorType
    input: int | None = None
    """The model input it is, if it is one."""
    literal: Literal | None = None
    """Its value, where it is a constant."""

    @property
    def bytes(self) -> int:
        return self.type.bytes

    def __repr__(self) -> str:
        return f"<{self.name} {self.type}>"


Leaves: TypeAlias = tuple[Value, ...]


@dataclass(eq=False)
class Compute:
    """One instruction that runs kernels."""

    instruction: Instruction
    name: str
    operands: tuple[Leaves, ...]
    results: Leaves
    lowering: Lowering


@dataclass(eq=False)
class Move:
    """A plain copy: a bit cast to wider elements, which the memory may not be aligned for."""

    instruction: Instruction
    name: str
    source: Value
    result: Value


@dataclass(eq=False)
class State:
    """A tensor that a loop changes: what it starts with, what a round sees, what a round leaves, what comes out."""

    init: Value
    parameter: Value
    root: Value
    result: Value


@dataclass(eq=False)
class Loop:
    """While `condition` leaves true in `predicate`, run `body`."""

    instruction: Instruction
    name: str
    states: list[State]
    condition: "Region"
    predicate: Value
    body: "Region"


@dataclass(eq=False)
class Select:
    """Run one of `cases`; case `c` leaves `case_values[c][k]`, which becomes `results[k]`."""

    instruction: Instruction
    name: str
    index: Value
    cases: list["Region"]
    case_values: list[list[Value]]
    results: list[Value]


Node: TypeAlias = Compute | Move | Loop | Select
Region: TypeAlias = list[Node]


@dataclass(eq=False)
class Dataflow:
    """The whole program: one region, its inputs and its outputs."""

    inputs: list[Value]
    body: Region
    outputs: list[Value]
    output_types: list[TensorType]
    """Of the outputs; the value itself may have another shape, or elements of another type and width."""
    values: list[Value]
    """Every value that the program computes, each once."""


def leaves_of(type: Type) -> list[TensorType]:
    """The tensors of a type, depth first."""
    return [type] if isinstance(type, TensorType) else [leaf for e in type.elements for leaf in leaves_of(e)]


def build_dataflow(module: Module, lower: Lower) -> Dataflow:
    """Flatten `module`; `lower` is asked once for all instructions that may share its answer."""
    return _Flattener(lower).module(module)


def is_free(instruction: Instruction) -> bool:
    """Whether the instruction only gives another name to memory that exists."""
    op = instruction.op
    if isinstance(op, BitcastConvert):
        return instruction.tensor_type.bytes == instruction.operands[0].tensor_type.bytes
    return isinstance(op, Parameter | Constant | Tuple | GetTupleElement | Reshape)


class _Flattener:
    def __init__(self, lower: Lower) -> None:
        self.lower = lower
        self.entry: Computation | None = None
        self.names = UniqueNames()
        self.values: list[Value] = []
        self.orders: dict[Computation, list[Instruction]] = {}
        self.kept: dict[Computation, list[int | None]] = {}
        self.lowered: dict[Hashable, Lowering] = {}

    def module(self, module: Module) -> Dataflow:
        inputs: list[Value] = []
        arguments: list[Leaves] = []
        for parameter in module.entry.parameters:
            leaves: list[Value] = []
            for type in leaves_of(parameter.type):
                name = self.names.give(parameter.name or "input")
                leaves.append(Value(name, type, input=len(inputs) + len(leaves)))
            inputs += leaves
            arguments.append(tuple(leaves))
        self.entry = module.entry
        body, outputs = self.computation(module.entry, arguments)
        return Dataflow(inputs, body, list(outputs), leaves_of(module.entry.result_type), self.values)

    def computation(self, computation: Computation, arguments: Sequence[Leaves]) -> tuple[Region, Leaves]:
        """The nodes of one call of `computation` and the values of its root."""
        known: dict[Instruction, Leaves] = dict(zip(computation.parameters, arguments, strict=True))
        region: Region = []
        order = self.order(computation)
        for place, instruction in enumerate(order):
            if computation is self.entry:
                watch.part_done(place / len(order))
            if instruction not in known:
                known[instruction] = self.instruction(instruction, [known[o] for o in instruction.operands], region)
        return region, known[computation.root]

    def order(self, computation: Computation) -> list[Instruction]:
        if computation not in self.orders:
            self.orders[computation] = order_instructions(computation)
        return self.orders[computation]

    def instruction(self, instruction: Instruction, operands: list[Leaves], region: Region) -> Leaves:
        op = instruction.op
        if isinstance(op, Constant):
            name = self.names.give(instruction.name or "constant")
            return (Value(name, instruction.tensor_type, literal=op.literal),)
        if isinstance(op, Tuple):
            return tuple(leaf for operand in operands for leaf in operand)
        if isinstance(op, GetTupleElement):
            return _element(instruction, operands[0])
        if isinstance(op, While):
            return self.loop(instruction, op, operands[0], region)
        if isinstance(op, Conditional):
            return self.select(instruction, op, operands, region)
        if isinstance(op, Call):
            nodes, result = self.computation(op.to_apply, operands)
            region += nodes
            return result
        if isinstance(op, BitcastConvert) and is_free(instruction):
            return self.bitcast(instruction, operands[0][0], region)
        if is_free(instruction):
            return operands[0]
        name = self.names.give(instruction.name or op.opcode)
        results = self.fresh(name, leaves_of(instruction.type))
        region.append(Compute(instruction, name, tuple(operands), results, self.lowering(instruction)))
        return results

    def lowering(self, instruction: Instruction) -> Lowering:
        key = lowering_key(instruction)
        if key not in self.lowered:
            try:
                self.lowered[key] = self.lower(instruction)
            except InternalError as error:
                where = f"{instruction!r}" + (f", from node {instruction.source}" if instruction.source else "")
                raise InternalError(f"{error}\n  in    {where}") from error
        return self.lowered[key]

    def bitcast(self, instruction: Instruction, source: Value, region: Region) -> Leaves:
        if source.literal or source.type.element.bytes >= instruction.tensor_type.element.bytes:
            return (source,)
        name = self.names.give(instruction.name or "bitcast-convert")
        (result,) = self.fresh(name, [instruction.tensor_type])
        region.append(Move(instruction, name, source, result))
        return (result,)

    def loop(self, instruction: Instruction, op: While, inits: Leaves, region: Region) -> Leaves:
        name = self.names.give(instruction.name or "while")
        types = leaves_of(instruction.type)
        changed = [k for k, source in enumerate(self.passed_through(op.body)) if source != k]
        results, parameters = list(inits), list(inits)
        for k, result, parameter in zip(
            changed,
            self.fresh(name, [types[k] for k in changed]),
            self.fresh(f"{name}:state", [types[k] for k in changed]),
            strict=True,
        ):
            results[k], parameters[k] = result, parameter
        condition, (predicate,) = self.computation(op.condition, [tuple(parameters)])
        body, roots = self.computation(op.body, [tuple(parameters)])
        states = [State(inits[k], parameters[k], roots[k], results[k]) for k in changed]
        region.append(Loop(instruction, name, states, condition, predicate, body))
        return tuple(results)

    def select(self, instruction: Instruction, op: Conditional, operands: list[Leaves], region: Region) -> Leaves:
        (index,), *arguments = operands
        name = self.names.give(instruction.name or "conditional")
        done = [self.computation(c, [a]) for c, a in zip(op.branches, arguments, strict=True)]
        if len(done) == 1:
            region += done[0][0]
            return done[0][1]
        results = list(done[0][1])
        differ = [k for k in range(len(results)) if any(roots[k] is not results[k] for _, roots in done)]
        types = leaves_of(instruction.type)
        for k, result in zip(differ, self.fresh(name, [types[k] for k in differ]), strict=True):
            results[k] = result
        case_values = [[roots[k] for k in differ] for _, roots in done]
        cases = [nodes for nodes, _ in done]
        region.append(Select(instruction, name, index, cases, case_values, [results[k] for k in differ]))
        return tuple(results)

    def fresh(self, name: str, types: Sequence[TensorType]) -> Leaves:
        """New computed values named after one instruction."""
        single = len(types) == 1
        values = tuple(Value(name if single else f"{name}:{k}", type) for k, type in enumerate(types))
        self.values += values
        return values

    def passed_through(self, computation: Computation) -> list[int | None]:
        """For each leaf of the root, the parameter leaf (counted through all parameters) that it is, if it is one."""
        if computation not in self.kept:
            known: dict[Instruction, list[int | None]] = {}
            count = 0
            for instruction in computation.instructions():
                operands = [known[o] for o in instruction.operands]
                if isinstance(instruction.op, Parameter):
                    size = len(leaves_of(instruction.type))
                    known[instruction] = list(range(count, count + size))
                    count += size
                else:
                    known[instruction] = self.pass_on(instruction, operands)
            self.kept[computation] = known[computation.root]
        return self.kept[computation]

    def pass_on(self, instruction: Instruction, operands: list[list[int | None]]) -> list[int | None]:
        op = instruction.op
        if isinstance(op, Tuple):
            return [leaf for operand in operands for leaf in operand]
        if isinstance(op, GetTupleElement):
            return list(_element(instruction, operands[0]))
        if isinstance(op, Reshape):
            return operands[0]
        if isinstance(op, While):
            kept = self.passed_through(op.body)
            return [s if k == p else None for k, (s, p) in enumerate(zip(operands[0], kept, strict=True))]
        if isinstance(op, Call):
            given = [leaf for operand in operands for leaf in operand]
            return [None if p is None else given[p] for p in self.passed_through(op.to_apply)]
        return [None] * len(leaves_of(instruction.type))


def _element(instruction: Instruction, leaves: Sequence[T]) -> tuple[T, ...]:
    """The leaves of one element of a tuple."""
    op, operand = instruction.op, instruction.operands[0].type
    assert isinstance(op, GetTupleElement) and not isinstance(operand, TensorType)
    start = sum(len(leaves_of(e)) for e in operand.elements[: op.index])
    return tuple(leaves[start : start + len(leaves_of(operand.elements[op.index]))])


def walk(region: Region) -> Iterator[Node]:
    """Every node of a region and of the regions inside it, in order."""
    for node in region:
        yield node
        if isinstance(node, Loop):
            yield from walk(node.condition)
            yield from walk(node.body)
        elif isinstance(node, Select):
            for case in node.cases:
                yield from walk(case)
