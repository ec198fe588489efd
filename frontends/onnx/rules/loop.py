"""Loop: HLO's while; written out where it runs at most once, or where its shapes or sequences change
from one iteration to the next."""

from collections.abc import Sequence

from onnxla.errors import DynamicShapeError, Problem
from onnxla.frontends.onnx.control_flow_support import (
    Carried,
    Closure,
    LoopBody,
    Stacked,
    about_shapes,
    emit_while,
    import_closed,
    placeholder,
    scalar,
    tensors,
)
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.values import Value, describe
from onnxla.frontends.problems import Poisoned, ProblemFound
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import PRED, S64, TensorType


@onnx_op("Loop")
def loop(node: NodeView, b: Builder) -> Sequence[Value]:
    """Inputs: most iterations, first condition, carried values. The body maps (iteration, condition,
    carried) to (condition, carried, values to stack)."""
    carried = [node.value(i) for i in range(2, node.input_count)]
    most, first = node.known(0), node.known(1)
    limit = None if most is None else max(0, int(most.reshape(-1)[0]))
    if first is not None and not first.reshape(-1)[0]:
        limit = 0
    if (first is not None or not node.has_input(1)) and limit is not None and limit <= 1:
        return _written_out(node, b, carried, limit)
    before = node.host.problem_count()
    problems: list[Problem] = []
    ends_by_data = False
    try:
        return _loop_as_while(node, b, tensors(node, carried, "carried values"), limit)
    except ProblemFound as found:
        problems = [found.problem]
        ends_by_data = isinstance(found, _EndsByData)
    except Poisoned:
        pass
    problems = node.host.forget_problems(before) + problems
    if about_shapes(problems) or not _all_tensors(carried):
        for i in (0, 1) if not ends_by_data else ():
            _blame_if_inputs_would_help(node, i)
        try:
            return _written_out(node, b, carried, limit)
        except _NotStatic:
            node.host.forget_problems(before)
    node.host.note_problems(problems)
    raise Poisoned


def _blame_if_inputs_would_help(node: NodeView, i: int) -> None:
    """Raise the problem that input `i` is not known, where the values of small graph inputs would tell it."""
    if node.has_input(i) and node.known(i) is None:
        problem = node.host.blame(node.input(i), f"input {i} ({node.input_name(i)}) of {node.op_type}", node.source)
        if problem.needs_constants:
            raise ProblemFound(problem)


def _all_tensors(values: Sequence[Value]) -> bool:
    return all(isinstance(v, Instruction) for v in values)


class _EndsByData(ProblemFound):
    """The body's own condition ends the loop, whatever its first condition and its limit are."""


class _NotStatic(Exception):
    """A loop cannot be written out: it runs too often, or its end is decided at run time."""


def _written_out(node: NodeView, b: Builder, carried: Sequence[Value], limit: int | None) -> Sequence[Value]:
    """The loop with its body repeated. Raises _NotStatic where the number of iterations is not known or too large."""
    if any(node.has_input(i) and node.known(i) is None for i in (0, 1)):
        raise _NotStatic
    goes_on, iteration = True, 0
    stacks: list[list[Instruction]] = []
    while goes_on and (limit is None or iteration < limit):
        if iteration >= node.host.unrolled_iterations:
            raise _NotStatic
        arguments = [b.constant(iteration, S64), b.constant(True, PRED), *carried]
        condition, *results = node.import_body("body", arguments, b)
        known = node.host.known_value(condition) if isinstance(condition, Instruction) else None
        last = limit is not None and iteration + 1 >= limit
        if known is None and not last:
            raise _NotStatic
        goes_on = known is None or bool(known.reshape(-1)[0])
        stacks.append(tensors(node, results[len(carried) :], "stacked values"))
        carried = results[: len(carried)]
        iteration += 1
    if not stacks:
        types = _types_of_stacked(node, carried)
        return [*carried, *(b.full((0, *t.shape), 0, t.element) for t in types)]
    return [*carried, *(_stack(node, b, column) for column in zip(*stacks, strict=True))]


def _stack(node: NodeView, b: Builder, values: Sequence[Instruction]) -> Instruction:
    if any(v.type != values[0].type for v in values):
        kinds = ", ".join(dict.fromkeys(describe(v) for v in values))
        node.shape_error(f"the iterations give stacked values of different types: {kinds}")
    return b.concatenate([b.reshape(v, (1, *v.shape)) for v in values], 0)


def _types_of_stacked(node: NodeView, carried: Sequence[Value]) -> list[TensorType]:
    """The types of the values to stack of a loop that never runs."""
    inner = Builder("loop_body", node.source)
    closure = Closure(node, inner)
    arguments = [placeholder(TensorType(S64)), inner.constant(True, PRED), *(closure.bring(v) for v in carried)]
    results = import_closed(node, "body", arguments, inner, closure)[1 + len(carried) :]
    return [v.tensor_type for v in tensors(node, results, "stacked values")]


def _loop_as_while(
    node: NodeView, b: Builder, carried: Sequence[Instruction], limit: int | None
) -> Sequence[Instruction]:
    inner = Builder("loop_body", node.source)
    closure = Closure(node, inner)
    counter = placeholder(TensorType(S64), "iteration")
    node.host.note_varying(counter, f"the iteration number of {node.source.name}")
    inside = [placeholder(v.tensor_type, v.name) for v in carried]
    for value in inside:
        node.host.note_varying(value, f"{value.name or 'a value'} carried by {node.source.name}")
    # The condition is true wherever the body runs.
    arguments = [counter, inner.constant(True, PRED), *inside]
    results = tensors(node, import_closed(node, "body", arguments, inner, closure), "the results of the body")
    condition, after, each = results[0], results[1 : 1 + len(carried)], results[1 + len(carried) :]
    for before, result in zip(carried, after, strict=True):
        if before.type != result.type:
            node.dynamic_shape(
                f"a carried value is {describe(before)} before an iteration, {describe(result)} after it",
                "make the shapes in the loop's body the same each time",
            )
    stops = node.host.known_value(condition)
    goes_on = None
    if stops is None or node.known(1) is None and node.has_input(1):
        first = scalar(node, b, 1) if node.has_input(1) else b.constant(True, PRED)
        goes_on = Carried(first, placeholder(TensorType(PRED), "goes_on"), inner.reshape(condition, ()))
    elif not stops.reshape(-1)[0]:
        limit = 1
    if each and stops is not None and goes_on is not None:
        node.constant(1)  # raises the problem that the first condition must be known
    if each and goes_on is not None:
        cause = "a loop stacks values, and data decides how often it runs"
        raise _EndsByData(
            Problem(DynamicShapeError, cause, node.source, node.details(), "stack a fixed number of values")
        )
    if each and limit is None:
        node.constant(0)  # raises the problem that the count must be known
    bound = limit if limit is not None or not node.has_input(0) else scalar(node, b, 0)
    body = LoopBody(
        inner,
        closure,
        counter,
        [Carried(*parts) for parts in zip(carried, inside, after, strict=True)],
        [Stacked(value) for value in each],
        goes_on,
    )
    finals, stacks = emit_while(b, body, bound)
    return [*finals, *stacks]
