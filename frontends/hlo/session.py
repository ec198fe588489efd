"""What all computations of one StableHLO program share."""

from onnxla.config import CompileOptions, Limits
from onnxla.errors import Problem
from onnxla.frontends.hlo.syntax import Program
from onnxla.frontends.session import ImportSession
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.types import Array


class Session(ImportSession):
    """The state of one import: the program, and the functions that are computations already."""

    def __init__(self, program: Program, options: CompileOptions, limits: Limits) -> None:
        super().__init__(options, limits)
        self.program = program
        self.functions: dict[str, Computation | None] = {}
        """None for one that was rejected."""
        self.calling: list[str] = []

    def known_value(self, instruction: Instruction) -> Array | None:
        return self.evaluator.value(instruction)

    def note(self, problem: Problem | None) -> None:
        if problem is not None and problem not in self.problems:
            self.problems.append(problem)
