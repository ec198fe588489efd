"""How a rule stops: it raises, the importer notes the problem, poisons the node's outputs and goes on."""

from collections.abc import Mapping
from typing import NoReturn, Protocol

from onnxla.errors import CompileError, DynamicShapeError, Problem, ShapeError, SourceNode, UnsupportedOpError

_SIZES = "correct the model, or the sizes that its inputs are given"
_FIXED = "make it a constant, or export the model with fixed shapes"

FOR_ONNX: Mapping[type[CompileError], str] = {
    UnsupportedOpError: 'leave the node to onnxruntime: fallback="onnxruntime", --fallback onnxruntime',
    ShapeError: _SIZES,
    DynamicShapeError: _FIXED,
    CompileError: "correct the model: onnx.checker.check_model names such faults",
}
"""The way out by kind of problem, where a rule knows no better one."""
FOR_TENSORFLOW: Mapping[type[CompileError], str] = {
    UnsupportedOpError: "write it in other operations, "
    "or end the graph before it, outputs=[...] (--to), and do the rest outside",
    ShapeError: _SIZES,
    DynamicShapeError: _FIXED,
    CompileError: "correct the graph, or export it again",
}
FOR_HLO: Mapping[type[CompileError], str] = {
    UnsupportedOpError: "write it in other operations: docs/hlo.md says what is read",
    ShapeError: "correct the text, or the sizes that its inputs are given",
    DynamicShapeError: "make it a constant, or a size of an input",
}


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
