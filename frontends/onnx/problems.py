"""How a rule stops: it raises, the importer notes the problem, poisons the node's outputs and goes on."""

from typing import NoReturn, Protocol

from onnxla.errors import Problem


class ProblemFound(Exception):
    """A node cannot be imported; `problem` says why. Caught by the importer, never seen by users."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


class Poisoned(Exception):
    """A node needs a value that failed to import; its root cause is noted already."""


class Complaints(Protocol):
    """A node that can say what is wrong with it: the node view of either frontend."""

    def shape_error(self, cause: str, hint: str = "") -> NoReturn:
        """Shapes or element types do not fit together."""

    def unsupported(self, cause: str, hint: str = "") -> NoReturn:
        """This case of the operation has no import rule."""
