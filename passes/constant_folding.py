"""Constants in place of instructions that depend on constants only, within a budget of bytes and seconds."""

from onnxla.config import CompileOptions
from onnxla.hlo.constant_evaluation import ConstantEvaluator
from onnxla.hlo.literal import Literal
from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.ops.control_flow import CustomCall, Fusion
from onnxla.hlo.ops.shape import Broadcast
from onnxla.hlo.ops.structural import Constant, Iota, Parameter
from onnxla.hlo.types import TensorType
from onnxla.passes.pass_base import ComputationPass

SMALL = 1 << 16
"""Bytes of a result that is folded whatever it is made of."""
LARGEST_GROWTH = 8
"""How many times larger than the constants it is made of another result may be: weights in 4 bits become f32."""


class FoldConstants(ComputationPass):
    """Evaluate what depends on constants only. Broadcasts and counters stay: kernels make them from nothing."""

    name = "fold-constants"

    def __init__(self, options: CompileOptions) -> None:
        super().__init__()
        self.options = options

    def run(self, module: Module) -> bool:
        self.evaluator = ConstantEvaluator(self.options.folding_bytes, self.options.folding_seconds)
        return super().run(module)

    def run_on(self, computation: Computation) -> bool:
        order = computation.instructions()
        made_of = _constant_bytes(order)
        changed = False
        for instruction in order:
            if instruction not in made_of or isinstance(instruction.op, Constant):
                continue
            wanted = instruction is computation.root or any(_needs_value(u, made_of) for u in instruction.users)
            if wanted and self._is_worth_it(instruction, made_of[instruction]):
                changed = self._fold(computation, instruction) or changed
        return changed

    def _is_worth_it(self, instruction: Instruction, bytes_of_constants: int) -> bool:
        if isinstance(instruction.op, Broadcast | Iota) or not isinstance(instruction.type, TensorType):
            return False
        return instruction.type.bytes <= max(SMALL, LARGEST_GROWTH * bytes_of_constants)

    def _fold(self, computation: Computation, instruction: Instruction) -> bool:
        value = self.evaluator.value(instruction)
        if value is None:
            self.count("beyond the budget")
            return False
        folded = Instruction(Constant(Literal(value)), name=instruction.name, source=instruction.source)
        computation.replace(instruction, folded)
        self.count("folded")
        self.count("bytes", folded.tensor_type.bytes)
        return True


def _needs_value(user: Instruction, made_of: dict[Instruction, int]) -> bool:
    """Whether `user` will read the value: it stays in the program."""
    return user not in made_of or isinstance(user.op, Broadcast)


def _constant_bytes(order: list[Instruction]) -> dict[Instruction, int]:
    """For each instruction that depends on constants only, the bytes of those constants (shared ones count again)."""
    bytes_of: dict[Instruction, int] = {}
    for instruction in order:
        op = instruction.op
        if isinstance(op, Constant):
            bytes_of[instruction] = instruction.tensor_type.bytes
        elif isinstance(op, Iota):
            bytes_of[instruction] = 0
        elif isinstance(op, Parameter | CustomCall | Fusion):
            continue
        elif instruction.operands and all(o in bytes_of for o in instruction.operands):
            bytes_of[instruction] = min(sum(bytes_of[o] for o in instruction.operands), 1 << 62)
    return bytes_of
