"""While: HLO's while over a tuple; where shapes change and the number of iterations is known, one after another."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from onnxla.errors import DynamicShapeError, Problem
from onnxla.frontends.poison import Poison
from onnxla.frontends.problems import Poisoned, ProblemFound
from onnxla.frontends.tensorflow.bodies import (
    Inner,
    Place,
    about_shapes,
    import_inner,
    inner_of,
    not_uniform,
    over_one_tuple,
    passed_through,
    same_type,
    stand_in,
    tensors_of,
    to_one_result,
    with_tensors,
)
from onnxla.frontends.tensorflow.graph import Body
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.rules.lists import empty_stack
from onnxla.frontends.tensorflow.values import ListValue, Value, describe
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import PRED

Called = tuple[Body, Mapping[str, Any]]


@tf_op("While", "StatelessWhile")
def while_(node: NodeView, b: Builder) -> list[Value]:
    condition, body = node.function("cond"), node.function("body")
    if any(isinstance(value, Poison) for value in node.arguments()):
        _import_behind_failure(node, b, condition, body)
        raise Poisoned
    return run_while(node, b, condition, body, list(node.values()))


def _import_behind_failure(node: NodeView, b: Builder, condition: Called, body: Called) -> None:
    """Import the body for its problems alone, since a loop variable failed; not where it may never run.

    Problems of shapes do not count: a loop that is written out may not have them. Raises Poisoned where the condition
    reads what failed.
    """
    values, before = node.arguments(), node.host.problem_count()
    (test,) = node.host.import_body(condition[0], values, b, node.host.state, condition[1])
    known = node.host.known_value(test) if isinstance(test, Instruction) else None
    if known is not None and not known.reshape(-1)[0]:
        return
    inner = inner_of(node, "loop_body", values, [place != i for i, place in enumerate(passed_through(body[0]))])
    with contextlib.suppress(Poisoned):
        import_inner(node, *body, inner)
    node.host.note_problems([p for p in node.host.forget_problems(before) if not about_shapes([p])])


def run_while(node: NodeView, b: Builder, condition: Called, body: Called, values: Sequence[Value]) -> list[Value]:
    """The loop variables after the loop that begins with `values`."""
    through = passed_through(body[0])
    changing = [through[i] != i for i in range(len(values))]
    values = _with_known_lists(node, b, body, values, changing)
    before = node.host.problem_count()
    inner = inner_of(node, "loop_body", values, changing)
    try:
        import_inner(node, *body, inner)
        changed = _changed_type(inner, values)
        if changed is None and not _stay_uniform(values, inner.results):
            inner = inner_of(node, "loop_body", [not_uniform(v) for v in values], changing)
            import_inner(node, *body, inner)
    except Poisoned:
        changed = "a shape in its body"
    if changed is None:
        return _as_while(node, b, condition, inner, values, changing)
    problems = node.host.forget_problems(before)
    return _unrolled(node, b, condition, body, values, changed, problems)


def _with_known_lists(
    node: NodeView, b: Builder, body: Called, values: Sequence[Value], changing: Sequence[bool]
) -> list[Value]:
    """Lists that nothing was written to get a stack of zeros, of the shape that one iteration writes."""
    found = list(values)
    for i, value in enumerate(found):
        if isinstance(value, ListValue) and value.stack is None and value.shape and None not in value.shape:
            shape = tuple(n for n in value.shape if n is not None)
            found[i] = replace(value, stack=empty_stack(b, value, shape))
    open_lists = [i for i, v in enumerate(found) if isinstance(v, ListValue) and v.stack is None and changing[i]]
    if not open_lists:
        return found
    before = node.host.problem_count()
    trial = inner_of(node, "trial", found, changing)
    try:
        import_inner(node, *body, trial)
    except Poisoned:
        return found
    finally:
        node.host.forget_problems(before)
    for i in open_lists:
        result, value = trial.results[i], found[i]
        if isinstance(result, ListValue) and result.stack is not None and isinstance(value, ListValue):
            found[i] = replace(value, stack=empty_stack(b, value, result.stack.shape[1:]))
    return found


def _stay_uniform(values: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether what is known of the elements of lists, which the body may have used, holds for every iteration."""
    for value, result in zip(values, results, strict=True):
        known = value.uniform.value if isinstance(value, ListValue) and value.uniform is not None else None
        if known is None:
            continue
        after = result.uniform.value if isinstance(result, ListValue) and result.uniform is not None else None
        if after is None or not np.array_equal(known, after):
            return False
    return True


def _changed_type(inner: Inner, values: Sequence[Value]) -> str | None:
    """What an iteration gives back as another type than it took; None where nothing."""
    for k, (value, result) in enumerate(zip(values, inner.results, strict=True)):
        if not same_type(value, result):
            return f"loop variable {k}, {describe(value)}, becomes {describe(result)}"
    return None


def _as_while(
    node: NodeView, b: Builder, condition: Called, inner: Inner, values: Sequence[Value], changing: Sequence[bool]
) -> list[Value]:
    """HLO's while. Its tuple: the loop variables that travel and change, variables, and what stays the same."""
    test = inner_of(node, "loop_condition", values, changing)
    import_inner(node, *condition, test)
    goes_on = test.results[0]
    if not isinstance(goes_on, Instruction) or goes_on.tensor_type.size != 1:
        node.shape_error(f"the condition gives {describe(goes_on)}; one element was expected")
    goes_on = test.builder.reshape(goes_on, ())
    if goes_on.tensor_type.element is not PRED:
        goes_on = test.builder.compare(goes_on, test.builder.full_like(goes_on, 0), "NE")

    initial: list[Instruction] = []
    in_body: list[Instruction] = []
    in_test: list[Instruction] = []
    results: list[Instruction] = []

    def carry(outer: Instruction, body: Instruction | None, tested: Instruction | None, new: Instruction | None) -> int:
        """Another element of the tuple; a missing stand-in is one that nobody reads."""
        inside = body if body is not None else stand_in(outer.tensor_type, outer.name)
        initial.append(outer)
        in_body.append(inside)
        in_test.append(tested if tested is not None else stand_in(outer.tensor_type, outer.name))
        results.append(inside if new is None else new)
        return len(initial) - 1

    places: dict[Place, int] = {}
    for i, k in {**inner.stand_ins, **test.stand_ins}:
        new = tensors_of(inner.results[i])[k] if changing[i] else None
        places[i, k] = carry(tensors_of(values[i])[k], inner.stand_ins.get((i, k)), test.stand_ins.get((i, k)), new)
    names = {**inner.state.stand_ins, **test.state.stand_ins, **inner.state.written}
    variables = {}
    for name in names:
        outer = node.host.state.read(name)
        new = inner.state.current[name] if name in inner.state.written else None
        variables[name] = carry(outer, inner.state.stand_ins.get(name), test.state.stand_ins.get(name), new)
    loop = b.while_(
        b.tuple(*initial),
        to_one_result(test.builder, in_test, goes_on),
        over_one_tuple(inner.builder, in_body, results),
    )
    for name in inner.state.written:
        node.host.state.write(name, b.get_tuple_element(loop, variables[name]))
    outputs = list(values)
    for i, changes in enumerate(changing):
        if changes:
            tensors = [b.get_tuple_element(loop, places[i, k]) for k in range(len(tensors_of(values[i])))]
            outputs[i] = with_tensors(inner.results[i], tensors)
    return outputs


def _unrolled(
    node: NodeView,
    b: Builder,
    condition: Called,
    body: Called,
    values: Sequence[Value],
    changed: str,
    problems: Sequence[Problem],
) -> list[Value]:
    """One iteration after another, as long as the condition is known to hold."""
    current = list(values)
    for _ in range(node.host.unrolled_iterations + 1):
        (test,) = node.host.import_body(condition[0], current, b, node.host.state, condition[1])
        known = node.host.known_value(test) if isinstance(test, Instruction) else None
        if known is None:
            _refuse(node, test, changed, problems)
        if not known.reshape(-1)[0]:
            return current
        current = node.host.import_body(body[0], current, b, node.host.state, body[1])
    node.unsupported(
        f"{changed}, so the loop is written out, and it takes more than {node.host.unrolled_iterations} iterations",
        "Limits(unrolled_iterations=...) allows more",
    )


def _refuse(node: NodeView, test: Value, changed: str, problems: Sequence[Problem]) -> NoReturn:
    """The body's own problems where they are not about shapes; else that a shape depends on how often it runs."""
    if problems and not about_shapes(problems):
        node.host.note_problems(problems)
        raise Poisoned
    cause = f"{changed}, and how often the loop runs is known at run time only"
    hint = "make the shapes in the loop's body the same each time"
    details = node.details()
    if isinstance(test, Instruction):
        blame = node.host.blame(test, "the condition", node.source)
        details += blame.details
        if blame.needs_constants:
            given = ", ".join(f'"{name}": ...' for name in blame.needs_constants)
            hint = f"give the value while compiling, constants={{{given}}}; or {hint}"
    raise ProblemFound(Problem(DynamicShapeError, cause, node.source, details, hint))
