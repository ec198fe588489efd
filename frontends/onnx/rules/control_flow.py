"""If, Loop and Scan.

An If with a known condition is its branch. A loop becomes HLO's while; it is written out instead when
it runs at most once, or when its shapes or sequences change from one iteration to the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.errors import DynamicShapeError, Problem, ShapeError
from onnxla.frontends.onnx.control_flow_support import (
    Carried,
    Closure,
    LoopBody,
    Stacked,
    count_from_end,
    emit_while,
    import_closed,
    over_one_tuple,
    placeholder,
    starts_at,
)
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.problems import Poisoned, ProblemFound
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import normal_axis
from onnxla.frontends.onnx.values import Value, describe
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.types import PRED, S64, TensorType


def _scalar(node: NodeView, b: Builder, i: int) -> Instruction:
    """Input `i`, a tensor of one element, as a scalar."""
    value = node.input(i)
    if value.tensor_type.size != 1:
        node.shape_error(f"input {node.input_name(i)} is {describe(value)}; one element was expected")
    return b.reshape(value, ())


def _tensors(node: NodeView, values: Sequence[Value], what: str) -> list[Instruction]:
    """`values`, which must all be tensors of numbers."""
    found = [v for v in values if isinstance(v, Instruction)]
    if len(found) != len(values):
        node.unsupported(f"{what} of {node.op_type} must be tensors of numbers")
    return found


# If


@onnx_op("If")
def if_(node: NodeView, b: Builder) -> Sequence[Value]:
    known = node.known(0)
    if known is not None and known.size == 1:
        return node.import_body("then_branch" if known.reshape(()) else "else_branch", [], b)
    condition = _scalar(node, b, 0)
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
    if problem.needs_constants and _about_shapes(branch_problems):
        raise ProblemFound(problem)
    node.host.note_problems(branch_problems)


def _about_shapes(problems: Sequence[Problem]) -> bool:
    return all(issubclass(p.kind, (DynamicShapeError, ShapeError)) for p in problems)


def _branch(node: NodeView, b: Builder, name: str) -> tuple[Computation, Instruction] | None:
    """A branch and its argument; None where a node of it failed, which is noted."""
    inner = Builder(name, node.source)
    closure = Closure(node, inner)
    try:
        results = _tensors(node, import_closed(node, name, [], inner, closure), "the results of a branch")
    except Poisoned:
        return None
    captured = closure.needed_by(results)
    return over_one_tuple(inner, [c.inner for c in captured], results), b.tuple(*(c.outer for c in captured))


# Loop


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
        return _loop_as_while(node, b, _tensors(node, carried, "carried values"), limit)
    except ProblemFound as found:
        problems = [found.problem]
        ends_by_data = isinstance(found, _EndsByData)
    except Poisoned:
        pass
    problems = node.host.forget_problems(before) + problems
    if _about_shapes(problems) or not _all_tensors(carried):
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
        stacks.append(_tensors(node, results[len(carried) :], "stacked values"))
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
    return [v.tensor_type for v in _tensors(node, results, "stacked values")]


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
    results = _tensors(node, import_closed(node, "body", arguments, inner, closure), "the results of the body")
    condition, after, each = results[0], results[1 : 1 + len(carried)], results[1 + len(carried) :]
    for before, result in zip(carried, after, strict=True):
        if before.type != result.type:
            node.dynamic_shape(
                f"a carried value is {describe(before)} before an iteration, {describe(result)} after it"
            )
    stops = node.host.known_value(condition)
    goes_on = None
    if stops is None or node.known(1) is None and node.has_input(1):
        first = _scalar(node, b, 1) if node.has_input(1) else b.constant(True, PRED)
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
    bound = limit if limit is not None or not node.has_input(0) else _scalar(node, b, 0)
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


# Scan


@dataclass(frozen=True)
class _Walk:
    """How a Scan walks along its inputs and stacks its outputs: an axis and a direction for each."""

    length: int
    input_axes: Sequence[int]
    input_reversed: Sequence[int]
    output_axes: Sequence[int]
    output_reversed: Sequence[int]


@onnx_op("Scan", since=9)
def scan(node: NodeView, b: Builder) -> Sequence[Instruction]:
    count = node.int("num_scan_inputs")
    values = node.inputs()
    states, walked = values[: len(values) - count], values[len(values) - count :]
    if not 1 <= count <= len(values):
        node.shape_error(f"num_scan_inputs is {count}; the node has {len(values)} inputs")
    stacked_count = node.output_count - len(states)
    axes = _listed(node, "scan_input_axes", count)
    axes = [normal_axis(node, axis, len(v.shape)) for axis, v in zip(axes, walked, strict=True)]
    walk = _Walk(
        _common_length(node, [v.shape[axis] for v, axis in zip(walked, axes, strict=True)]),
        axes,
        _listed(node, "scan_input_directions", count),
        _listed(node, "scan_output_axes", stacked_count),
        _listed(node, "scan_output_directions", stacked_count),
    )
    return _scan(node, b, states, walked, walk)


@onnx_op("Scan", since=8, until=8)
def scan_of_batch(node: NodeView, b: Builder) -> Sequence[Instruction]:
    """Every input has a batch dimension first, and walked ones the sequence second; the body sees neither."""
    count = node.int("num_scan_inputs")
    values = [node.input(i) for i in range(1, node.input_count)]
    if not 1 <= count <= len(values) or any(not v.shape for v in values):
        node.shape_error(f"num_scan_inputs is {count}; the node has {len(values)} inputs that it could walk along")
    states, walked = values[: len(values) - count], values[len(values) - count :]
    if any(len(v.shape) < 2 for v in walked):
        node.shape_error("a scan input needs a batch and a sequence dimension")
    length = _common_length(node, [v.shape[1] for v in walked])
    batch = _common_length(node, [v.shape[0] for v in values])
    lengths = node.optional_constant_ints(0)
    if lengths is not None and any(n != length for n in lengths):
        node.unsupported("Scan with sequence_lens shorter than the sequence", "opset 9 and later have no sequence_lens")
    if batch == 0:
        node.unsupported("Scan of opset 8 with an empty batch")
    zeros = [0] * (node.output_count - len(states))
    walk = _Walk(length, [0] * count, _listed(node, "directions", count), zeros, zeros)
    rows = [
        _scan(node, b, [_row(b, v, n) for v in states], [_row(b, v, n) for v in walked], walk) for n in range(batch)
    ]
    return [b.concatenate([b.reshape(v, (1, *v.shape)) for v in column], 0) for column in zip(*rows, strict=True)]


def _row(b: Builder, value: Instruction, n: int) -> Instruction:
    """`value[n]`."""
    starts, limits = [0] * len(value.shape), list(value.shape)
    starts[0], limits[0] = n, n + 1
    return b.reshape(b.slice(value, starts, limits), value.shape[1:])


def _listed(node: NodeView, name: str, count: int) -> Sequence[int]:
    """An attribute with one number for each of `count` values; all zero where it is left out."""
    values = node.ints(name, (0,) * count)
    if len(values) != count:
        node.shape_error(f"{name} has {len(values)} entries; {count} were expected")
    return values


def _common_length(node: NodeView, lengths: Sequence[int]) -> int:
    if len(set(lengths)) > 1:
        node.shape_error(f"the inputs that Scan walks along have different lengths: {list(lengths)}")
    return lengths[0]


def _scan(
    node: NodeView, b: Builder, states: Sequence[Instruction], walked: Sequence[Instruction], walk: _Walk
) -> Sequence[Instruction]:
    inner = Builder("scan_body", node.source)
    closure = Closure(node, inner)
    counter = placeholder(TensorType(S64), "iteration")
    node.host.note_varying(counter, f"the iteration number of {node.source.name}")
    inside = [placeholder(v.tensor_type, v.name) for v in states]
    for value in inside:
        node.host.note_varying(value, f"{value.name or 'a value'} carried by {node.source.name}")
    elements = []
    for value, axis, is_reversed in zip(walked, walk.input_axes, walk.input_reversed, strict=True):
        element_type = value.tensor_type.with_shape(value.shape[:axis] + value.shape[axis + 1 :])
        if walk.length == 0:
            elements.append(placeholder(element_type))
            continue
        position = count_from_end(inner, walk.length, counter) if is_reversed else counter
        sizes = (*value.shape[:axis], 1, *value.shape[axis + 1 :])
        part = inner.dynamic_slice(closure.bring_tensor(value), starts_at(inner, len(sizes), axis, position), sizes)
        elements.append(inner.reshape(part, element_type.shape))
    imported = import_closed(node, "body", [*inside, *elements], inner, closure)
    results = _tensors(node, imported, "the results of the body")
    after, each = results[: len(states)], results[len(states) :]
    for before, result in zip(states, after, strict=True):
        if before.type != result.type:
            node.shape_error(f"a state is {describe(before)} before an iteration and {describe(result)} after it")
    if len(each) != len(walk.output_axes):
        node.shape_error(f"the body gives {len(each)} values to stack; the node has {len(walk.output_axes)}")
    axes = [normal_axis(node, axis, len(v.shape) + 1) for axis, v in zip(walk.output_axes, each, strict=True)]
    stacked = [Stacked(*parts) for parts in zip(each, axes, map(bool, walk.output_reversed), strict=True)]
    if walk.length == 0:
        types = [s.stack_type(0) for s in stacked]
        return [*states, *(b.full(t.shape, 0, t.element) for t in types)]
    carried = [Carried(*parts) for parts in zip(states, inside, after, strict=True)]
    finals, stacks = emit_while(b, LoopBody(inner, closure, counter, carried, stacked), walk.length)
    return [*finals, *stacks]
