"""How a rule stops: it raises, the importer notes the problem, poisons the node's outputs and goes on."""

from typing import NoReturn, Protocol

from onnxla.errors import Problem, SourceNode, UnsupportedOpError


class ProblemFound(Exception):
    """A node cannot be imported; `problem` says why. Caught by the importer, never seen by users."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


class UnknownOperation(ProblemFound):
    """Nothing imports the operation of a node."""


class Poisoned(Exception):
    """A node needs a value that failed to import; its root cause is noted already."""


class Complaints(Protocol):
    """A node that can say what is wrong with it: the node view of either frontend."""

    def shape_error(self, cause: str, hint: str = "") -> NoReturn:
        """Shapes or element types do not fit together."""

    def unsupported(self, cause: str, hint: str = "") -> NoReturn:
        """This case of the operation has no import rule."""


def value_of(name: str) -> str:
    """The way out where the value of an input must be known."""
    return f'give its value while compiling, constants={{"{name}": ...}} (--constant), or leave it to the first run'


def text_problem(name: str, node: SourceNode | None = None) -> Problem:
    """The strings of an input are needed, not only which of those the model knows they are."""
    who = f"{node.op_type} needs" if node else "an output gives"
    return Problem(
        UnsupportedOpError,
        f"{who} the strings of the input {name}, which are not known before the model runs",
        node,
        hint=value_of(name),
        needs_constants=(name,),
    )
