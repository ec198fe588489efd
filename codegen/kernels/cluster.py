"""What a kernel is asked to compute: the operands, the roots and the instructions between them.

A fusion and a single operation look the same from here, so every schedule starts from a `Cluster`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Buffer
from onnxla.codegen.kernels.rules import RULES
from onnxla.codegen.kernels.value import Array, Leaf, ValueEmitter
from onnxla.codegen.lowering import Argument, Operand, Result
from onnxla.errors import InternalError
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.control_flow import Fusion
from onnxla.hlo.ops.structural import Constant, Tuple
from onnxla.hlo.types import TensorType, TupleType


@dataclass(frozen=True)
class Cluster:
    """`leaves[k]` stands for operand k of `instruction`; `roots[j]` computes leaf j of its result.

    For a tuple-valued single operation (variadic reduce, sort) the one root gives all leaves.
    """

    instruction: Instruction
    leaves: tuple[Instruction, ...]
    roots: tuple[Instruction, ...]
    looks_up: bool = False
    """Whether the target has `KernelBuilder.lookup`."""

    @staticmethod
    def of(instruction: Instruction, looks_up: bool = False) -> "Cluster":
        if isinstance(instruction.op, Fusion):
            body = instruction.op.calls
            root = body.root
            roots = root.operands if isinstance(root.op, Tuple) else (root,)
            return Cluster(instruction, tuple(body.parameters), roots, looks_up)
        return Cluster(instruction, tuple(dict.fromkeys(instruction.operands)), (instruction,), looks_up)

    @cached_property
    def instructions(self) -> list[Instruction]:
        """Everything computed inside, operands first, leaves excluded."""
        order: list[Instruction] = []
        seen = set(self.leaves) if isinstance(self.instruction.op, Fusion) else set(self.instruction.operands)
        stack = [(root, False) for root in reversed(self.roots)]
        while stack:
            instruction, done = stack.pop()
            if instruction in seen:
                continue
            if done:
                seen.add(instruction)
                order.append(instruction)
            else:
                stack.append((instruction, True))
                stack += [(o, False) for o in reversed(instruction.operands)]
        return order

    @cached_property
    def results(self) -> list[TensorType]:
        """The type of each leaf of the result."""
        kind = self.instruction.type
        kinds = kind.elements if isinstance(kind, TupleType) else (kind,)
        for leaf in kinds:
            if not isinstance(leaf, TensorType):
                raise InternalError(f"{self.instruction} gives a tuple inside a tuple, which no kernel writes")
        return [leaf for leaf in kinds if isinstance(leaf, TensorType)]

    def replaced(self, hero: Instruction, *leaves: Instruction) -> tuple[Instruction, ...]:
        """Those of `leaves` that only `hero` reads: a schedule that brings their data in another form needs no
        parameter for them."""
        others = [i for i in self.instructions if i is not hero]
        return tuple(leaf for leaf in leaves if not any(leaf in i.operands for i in others))

    def operand_number(self, leaf: Instruction) -> int:
        """Which operand of the instruction a leaf stands for."""
        if isinstance(self.instruction.op, Fusion):
            return self.leaves.index(leaf)
        return self.instruction.operands.index(leaf)


class Frame:
    """The usual kernel around a cluster: a parameter for each operand and each result leaf."""

    def __init__(self, cluster: Cluster, name: str, tasks: int, omit: Sequence[Instruction] = ()) -> None:
        """Leaves in `omit` get no parameter: the schedule brings their data in another form."""
        self.cluster = cluster
        self.b = KernelBuilder(name, tasks, cluster.looks_up)
        self.arguments: list[Argument] = []
        leaves: dict[Instruction, Leaf] = {}
        for leaf in cluster.leaves:
            if leaf in omit or isinstance(leaf.op, Constant) and leaf.op.literal.array.size == 1:
                continue  # inside the kernel as a number
            leaves[leaf] = self.array(f"in{len(leaves)}", leaf.tensor_type, "input")
            self.arguments.append(Operand(cluster.operand_number(leaf)))
        self.outputs: list[Array] = []
        for j, type in enumerate(cluster.results):
            self.outputs.append(self.array(f"out{j}", type, "output"))
            self.arguments.append(Result(j))
        self.emitter = ValueEmitter(self.b, leaves, RULES)

    def array(self, name: str, type: TensorType, role: str) -> Array:
        """A parameter that holds a tensor."""
        element = storage.storage_element(type.element)
        return Array(self.b.parameter(name, element, type.size, role), type)

    def buffer_of(self, leaf: Instruction) -> Buffer | None:
        """The parameter of an operand; None for a scalar constant."""
        array = self.emitter.leaves.get(leaf)
        return array.buffer if isinstance(array, Array) else None
