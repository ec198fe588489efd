"""Instructions, computations and modules: the graph that passes rewrite.

A computation is what its root needs: `instructions()` walks from the root, so an instruction
that nothing uses is not part of the program, and there is no list to keep in order.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from onnxla.errors import SourceNode
from onnxla.hlo.op import Op, infer_type, require, require_tensor
from onnxla.hlo.types import TensorType, Type, Value


class Instruction:
    """One value: an operation applied to operands. Identity is object identity."""

    __slots__ = ("name", "op", "operands", "source", "type", "users")

    def __init__(
        self, op: Op, operands: Sequence["Instruction"] = (), *, name: str = "", source: SourceNode | None = None
    ) -> None:
        self.op = op
        self.operands: tuple[Instruction, ...] = tuple(operands)
        self.type: Type = infer_type(op, [o.type for o in self.operands])
        self.name = name
        """A wish: the printer makes it unique."""
        self.source = source
        self.users: dict[Instruction, None] = {}
        """Instructions that have this one as an operand, in the order they were made."""
        for operand in self.operands:
            operand.users[self] = None

    @property
    def tensor_type(self) -> TensorType:
        """The type, which must be a tensor's."""
        return require_tensor(self.type)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor_type.shape

    def set_operands(self, operands: Sequence["Instruction"]) -> None:
        """Replace the operands; the result type must stay as it is."""
        for operand in self.operands:
            operand.users.pop(self, None)
        self.operands = tuple(operands)
        for operand in self.operands:
            operand.users[self] = None

    def replace_uses_with(self, other: "Instruction") -> None:
        """Let every user read `other` instead. Types must agree; a root is moved by the computation."""
        require(self.type == other.type, f"cannot replace {self.type} by {other.type}")
        for user in list(self.users):
            if user is not other:
                user.set_operands([other if o is self else o for o in user.operands])

    def __repr__(self) -> str:
        operands = ", ".join(f"%{o.name or '?'}" for o in self.operands)
        return f"%{self.name or '?'} = {self.type} {self.op.opcode}({operands})"


class Computation:
    """Parameters and a root: a function of the module. Equality is identity."""

    def __init__(self, name: str, parameters: Sequence[Instruction], root: Instruction) -> None:
        self.name = name
        self.parameters: list[Instruction] = list(parameters)
        self.root = root

    def instructions(self) -> list[Instruction]:
        """Every instruction in an order where operands come first; parameters lead.

        The order is the depth-first post-order from the root, the same for the same graph.
        Dead users of what is returned are forgotten.
        """
        order: list[Instruction] = list(self.parameters)
        seen = set(order)
        stack: list[tuple[Instruction, int]] = [(self.root, 0)]
        while stack:
            instruction, next_operand = stack.pop()
            if instruction in seen:
                continue
            if next_operand < len(instruction.operands):
                stack.append((instruction, next_operand + 1))
                stack.append((instruction.operands[next_operand], 0))
            else:
                seen.add(instruction)
                order.append(instruction)
        for instruction in order:
            for user in [u for u in instruction.users if u not in seen]:
                del instruction.users[user]
        return order

    def replace(self, old: Instruction, new: Instruction) -> None:
        """Let `new` stand wherever `old` stood in this computation, as the root too."""
        old.replace_uses_with(new)
        if self.root is old:
            self.root = new
        if new.source is None:
            new.source = old.source

    @property
    def parameter_types(self) -> tuple[Type, ...]:
        return tuple(p.type for p in self.parameters)

    @property
    def result_type(self) -> Type:
        return self.root.type

    def evaluate(self, *arguments: Value) -> Value:
        """Run the computation in numpy through each operation's `evaluate`: the interpreter."""
        values: dict[Instruction, Any] = dict(zip(self.parameters, arguments, strict=True))
        order = self.instructions()
        last_use = {operand: i for i, instruction in enumerate(order) for operand in instruction.operands}
        for i, instruction in enumerate(order):
            if instruction not in values:
                values[instruction] = instruction.op.evaluate(*(values[o] for o in instruction.operands))
            for operand in instruction.operands:
                if last_use[operand] == i and operand is not self.root:
                    values.pop(operand, None)
        return values[self.root]

    def __repr__(self) -> str:
        return f"<Computation {self.name}>"


class Module:
    """A program: the entry computation and, through its instructions, all that it calls."""

    def __init__(self, name: str, entry: Computation) -> None:
        self.name = name
        self.entry = entry

    def computations(self) -> list[Computation]:
        """Every computation, callees before callers, the entry last; each once."""
        return callees_first(self.entry, lambda computation: called_by(computation.instructions())[::-1])

    def __repr__(self) -> str:
        return f"<Module {self.name}>"


def callees_first(entry: Computation, calls: Callable[[Computation], Iterable[Computation]]) -> list[Computation]:
    """Every computation that `entry` leads to by `calls`, itself last; each once."""
    order: dict[Computation, None] = {}
    stack: list[tuple[Computation, bool]] = [(entry, False)]
    while stack:
        computation, expanded = stack.pop()
        if computation in order:
            continue
        if expanded:
            order[computation] = None
        else:
            stack.append((computation, True))
            stack += [(c, False) for c in calls(computation)]
    return list(order)


def called_by(instructions: Iterable[Instruction]) -> list[Computation]:
    """The computations that `instructions` call, each once, in order."""
    return list(dict.fromkeys(c for i in instructions for c in i.op.computations))


def sources_of(instruction: Instruction) -> list[SourceNode]:
    """The nodes of the user's model that an instruction comes from, its own first, then those of what it calls.

    Numbers that are spread out stand wherever equal ones were merged, and tell nothing.
    """
    found = {instruction.source: None}
    for computation in called_by([instruction]):
        for inner in computation.instructions():
            if inner.op.opcode not in ("parameter", "constant", "broadcast", "iota"):
                found |= dict.fromkeys(sources_of(inner))
    return [source for source in found if source is not None]
