"""What is said of an operation that nothing imports: neither a rule nor a function of the model."""

from difflib import get_close_matches

from onnxla.errors import Problem, SourceNode, UnsupportedOpError
from onnxla.frontends.problems import FOR_TENSORFLOW
from onnxla.frontends.tensorflow.registry import coverage

_SPELLING_CUTOFF, _LONGEST_NAME = 0.85, 64


def unknown_operation(node: SourceNode, details: tuple[tuple[str, str], ...]) -> Problem:
    """The problem that a node has no import rule, and the way out."""
    name = node.op_type
    close = get_close_matches(name[:_LONGEST_NAME], [e.name for e in coverage()], 1, _SPELLING_CUTOFF)
    like = f"{close[0]} has one; " if close else ""
    hint = like + FOR_TENSORFLOW[UnsupportedOpError]
    return Problem(UnsupportedOpError, f"{name} has no import rule", node, details, hint)
