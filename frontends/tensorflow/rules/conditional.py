"""If and Case: the branch where the condition is known, HLO's conditional otherwise."""

from collections.abc import Mapping, Sequence
from typing import Any

from onnxla.frontends.problems import Poisoned
from onnxla.frontends.tensorflow.bodies import (
    Inner,
    import_inner,
    inner_of,
    not_uniform,
    over_one_tuple,
    same_type,
    tensors_of,
    travels,
    with_tensors,
)
from onnxla.frontends.tensorflow.graph import Body
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.values import Value, describe
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.types import PRED, S32

Called = tuple[Body, Mapping[str, Any]]


@tf_op("If", "StatelessIf")
def if_(node: NodeView, b: Builder) -> list[Value]:
    """A number is true unless it is 0."""
    branches = [node.function("then_branch"), node.function("else_branch")]
    _import_behind_failure(node, branches)
    known = node.known(0)
    if known is not None and known.size == 1:
        return _inlined(node, b, branches[0 if known.reshape(()) else 1])
    condition = _scalar(node, b)
    if condition.tensor_type.element is not PRED:
        condition = b.compare(condition, b.full_like(condition, 0), "NE")
    return choose(node, b, condition, branches)


@tf_op("Case", "StatelessCase")
def case(node: NodeView, b: Builder) -> list[Value]:
    """An index out of range takes the last branch."""
    branches = node.functions("branches")
    _import_behind_failure(node, branches)
    known = node.known(0)
    if known is not None and known.size == 1:
        index = int(known.reshape(()))
        return _inlined(node, b, branches[index if 0 <= index < len(branches) else -1])
    return choose(node, b, b.convert(_scalar(node, b), S32), branches)


def _scalar(node: NodeView, b: Builder) -> Instruction:
    value = node.input(0)
    if value.tensor_type.size != 1:
        node.shape_error(f"the condition is {value.tensor_type}; one element was expected")
    return b.reshape(value, ())


def _inlined(node: NodeView, b: Builder, called: Called) -> list[Value]:
    body, attributes = called
    return node.host.import_body(body, node.arguments()[1:], b, node.host.state, attributes)


def _import_behind_failure(node: NodeView, branches: Sequence[Called]) -> None:
    """Import all branches for their problems, where the condition failed and is computed. Raises Poisoned then."""
    if node.failed_but_computed(0):
        _imported(node, branches)
        raise Poisoned


def _imported(node: NodeView, branches: Sequence[Called]) -> list[Inner]:
    """The branches as computations of their own. Raises Poisoned where one failed, once all are imported."""
    values = node.arguments()[1:]
    inners: list[Inner] = []
    failed = False
    for number, (body, attributes) in enumerate(branches):
        inner = inner_of(node, f"branch_{number}", values, [False] * len(values))
        try:
            import_inner(node, body, attributes, inner)
        except Poisoned:
            failed = True
        inners.append(inner)
    if failed:
        raise Poisoned
    return inners


def choose(node: NodeView, b: Builder, index: Instruction, branches: Sequence[Called]) -> list[Value]:
    """HLO's conditional over branches that take the inputs after the first."""
    inners = _imported(node, branches)
    first = inners[0]
    for inner in inners[1:]:
        _require_same(node, first.results, inner.results)
    written = list(dict.fromkeys(name for inner in inners for name in inner.state.written))
    moving = [i for i, r in enumerate(first.results) if travels(r)]
    counts = [len(tensors_of(first.results[i])) for i in moving]
    bodies, arguments = [], []
    for inner in inners:
        computation, argument = _branch(node, b, inner, moving, written)
        bodies.append(computation)
        arguments.append(argument)
    result = b.conditional(index, arguments, bodies)
    elements = iter([b.get_tuple_element(result, k) for k in range(sum(counts) + len(written))])
    outputs = list(first.results)
    for i, count in zip(moving, counts, strict=True):
        outputs[i] = not_uniform(with_tensors(first.results[i], [next(elements) for _ in range(count)]))
    for name in written:
        node.host.state.write(name, next(elements))
    return outputs


def _branch(
    node: NodeView, b: Builder, inner: Inner, moving: Sequence[int], written: Sequence[str]
) -> tuple[Computation, Instruction]:
    """A branch, and the tuple that it is called with."""
    results: list[Instruction] = []
    for i in moving:
        tensors = tensors_of(inner.results[i])
        if not tensors:
            node.dynamic_shape("a branch gives a list to which nothing was written", "write to it in each branch")
        results += tensors
    results += [inner.state.read(name) for name in written]
    outer = {inside: tensors_of(node.value(1 + i))[k] for (i, k), inside in inner.stand_ins.items()}
    outer |= {inside: node.host.state.read(name) for name, inside in inner.state.stand_ins.items()}
    return over_one_tuple(inner.builder, list(outer), results), b.tuple(*outer.values())


def _require_same(node: NodeView, ours: Sequence[Value], theirs: Sequence[Value]) -> None:
    """A DynamicShapeError problem where two branches give different types."""
    for k, (a, c) in enumerate(zip(ours, theirs, strict=True)):
        if not same_type(a, c):
            node.dynamic_shape(
                f"the branches give different types as result {k}, {describe(a)} and {describe(c)}, and which one runs "
                "is known at run time only",
                "make the condition a constant, or let both branches give the same shapes",
                data=0,
            )
