"""What all graphs of one import share, whatever the model's format, and what rules ask of it."""

from collections.abc import Sequence

from onnxla import watch
from onnxla.config import CompileOptions, Limits
from onnxla.errors import Problem, ResourceLimitError
from onnxla.hlo.constant_evaluation import ConstantEvaluator
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array


class ImportSession:
    """The problems found so far, known values, limits."""

    def __init__(self, options: CompileOptions, limits: Limits) -> None:
        self.limits = limits
        self.evaluator = ConstantEvaluator(options.folding_bytes, options.folding_seconds)
        self.problems: list[Problem] = []
        self.input_names: dict[Instruction, str] = {}
        """The graph inputs by parameter of the entry computation."""
        self.origins: dict[Instruction, Instruction] = {}
        """Where a parameter of a body gets its value: an instruction of the computation around."""
        self.varying: dict[Instruction, str] = {}
        """Parameters of loop bodies that change from one iteration to the next, and the words for it."""
        self.imported_nodes = 0

    def count_node(self, operator: str, name: str) -> None:
        """Raise ResourceLimitError once functions and unrolled loops have grown the model beyond the limit, and when
        the time for compiling is over."""
        watch.check()
        self.imported_nodes += 1
        if self.imported_nodes > self.limits.nodes:
            raise ResourceLimitError(
                f"the model has more than {self.limits.nodes} nodes with its functions and loops written out "
                f"(at {operator} {name}); Limits(nodes=...) allows more"
            )


class SessionHost:
    """A graph importer's answers that come from its session alone (see the `Host` of each `node_view`)."""

    session: ImportSession

    def problem_count(self) -> int:
        return len(self.session.problems)

    def forget_problems(self, count: int) -> list[Problem]:
        forgotten = self.session.problems[count:]
        del self.session.problems[count:]
        return forgotten

    def note_problems(self, problems: Sequence[Problem]) -> None:
        self.session.problems.extend(problems)

    def note_origin(self, stand_in: Instruction, origin: Instruction) -> None:
        self.session.origins[stand_in] = origin

    def note_varying(self, parameter: Instruction, words: str) -> None:
        self.session.varying[parameter] = words

    @property
    def unrolled_iterations(self) -> int:
        return self.session.limits.unrolled_iterations

    def known_value(self, instruction: Instruction) -> Array | None:
        return self.session.evaluator.value(instruction)
