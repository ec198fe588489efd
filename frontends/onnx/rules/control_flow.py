"""If: its branch where the condition is known, HLO's conditional otherwise."""

from collections.abc import Sequence

from onnxla.frontends.onnx.control_flow_support import (
    Closure,
    about_shapes,
    import_closed,
    over_one_tuple,
    scalar,
    tensors,
)
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.values import Value
from onnxla.frontends.problems import Poisoned, ProblemFound
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction


@onnx_op("If")
def if_(node: NodeView, b: Builder) -> Sequence[Value]:
    known = node.known(0)
    if known is not None and known.size == 1:
        return node.import_body("then_branch" if known.reshape(()) else "else_branch", [], b)
    condition = scalar(node, b, 0)
    before = node.host.problem_count()
    then, other = (_branch(node, b, name) for name in ("then_branch", "else_branch"))
    if then is None or other is None:
        _blame_condition(node, condition, before)
        raise Poisoned
    (then_body, then_argument), (other_body, other_argument) = then, other
    if then_body.result_type != other_body.result_type:
        _blame_condition(node, condition, before)
        node.dynamic_shape(
            f"the branches give different types, {then_body.result_type} and {other_body.result_type}, "
            "and which one runs is known at run time only",
            "make the condition a constant, or let both branches give the same shapes",
            data=0,
        )
    result = b.conditional(condition, [then_argument, other_argument], [then_body, other_body])
    return [b.get_tuple_element(result, i) for i in range(node.output_count)]


def _blame_condition(node: NodeView, condition: Instruction, before: int) -> None:
    """Where only shapes are wrong in the branches, and the condition would be known from the values of small
    inputs, say so instead: a branch that cannot run may well have impossible shapes."""
    problem = node.host.blame(condition, "the condition of If", node.source)
    branch_problems = node.host.forget_problems(before)
    if problem.needs_constants and about_shapes(branch_problems):
        raise ProblemFound(problem)
    node.host.note_problems(branch_problems)


def _branch(node: NodeView, b: Builder, name: str) -> tuple[Computation, Instruction] | None:
    """A branch and its argument; None where a node of it failed, which is noted."""
    inner = Builder(name, node.source)
    closure = Closure(node, inner)
    try:
        values = import_closed(node, name, [], inner, closure)
        if not all(isinstance(v, Instruction) for v in values):
            node.constant(0)  # which branch runs decides the structure of a sequence or optional
        results = tensors(node, values, "the results of a branch")
    except Poisoned:
        return None
    captured = closure.needed_by(results)
    return over_one_tuple(inner, [c.inner for c in captured], results), b.tuple(*(c.outer for c in captured))
