"""What rules of any frontend may ask of the importer around their node; `session.py` answers most of it."""

from collections.abc import Sequence
from typing import Protocol

from onnxla.errors import Problem, SourceNode
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array


class ImportHost(Protocol):
    """What is known while compiling, and the problems of a body when one way of importing it fails and another is
    tried."""

    def known_value(self, instruction: Instruction) -> Array | None:
        """The value by constant propagation, within the folding budget; None where it is not known."""

    def blame(self, instruction: Instruction, role: str, source: SourceNode) -> Problem:
        """The problem that `instruction`, in `role`, must be known and is not: the chain and the way out."""

    def problem_count(self) -> int:
        """How many problems are noted, to take back later ones when an attempt fails."""

    def forget_problems(self, count: int) -> list[Problem]:
        """Take back, and return, the problems noted since there were `count`."""

    def note_problems(self, problems: Sequence[Problem]) -> None:
        """Note problems that belong to nodes other than the one being imported."""

    def note_origin(self, stand_in: Instruction, origin: Instruction) -> None:
        """`stand_in`, inside a body, has the value that `origin` has around it."""

    def note_varying(self, parameter: Instruction, words: str) -> None:
        """`parameter` changes with every iteration of a loop, which `words` name."""

    @property
    def unrolled_iterations(self) -> int:
        """Most iterations of a loop that may be written out."""
