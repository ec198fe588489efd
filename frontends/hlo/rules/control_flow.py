"""Loops, branches and calls. What a region reads from around it is passed to it."""

from onnxla.frontends.hlo.operation_view import OperationView, Rejected
from onnxla.frontends.hlo.registry import lookup, stablehlo_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.types import PRED, TensorType


@stablehlo_op("while")
def while_(node: OperationView, b: Builder) -> list[Instruction]:
    """The captured values travel with the carried ones, and come back as they were."""
    host, count = node.host, len(node.operands)
    regions = [node.region(0), node.region(1)]
    captured = host.captured(regions)
    carried = [o.type for o in node.operands]
    parts: list[Computation] = []
    for region, name in zip(regions, ("condition", "body"), strict=True):
        inner, results, taken = host.over_tuple(node, region, carried, captured, name)
        if name == "condition":
            if len(results) != 1 or results[0].type != TensorType(PRED):
                node.shape_error("the condition of a loop gives one pred")
            parts.append(inner.builder.build(results[0]))
        else:
            if [r.type for r in results] != carried:
                node.shape_error("the body of a loop gives other types than it takes")
            parts.append(inner.builder.build(inner.builder.tuple(*results, *taken)))
    init = b.tuple(*node.operands, *(host.lookup(n, node.operation.at) for n in captured))
    loop = b.while_(init, parts[0], parts[1])
    return [b.get_tuple_element(loop, k) for k in range(count)]


@stablehlo_op("if", "case")
def case(node: OperationView, b: Builder) -> list[Instruction]:
    """The first region of an `if` is taken when true; an index out of range takes the last of a `case`."""
    host = node.host
    count = len(node.forms)
    branches: list[Computation] = []
    arguments: list[Instruction] = []
    rejected = False
    for k, region in enumerate(node.operation.regions):
        captured = host.captured([region])
        try:
            inner, results, _ = host.over_tuple(node, region, [], captured, f"branch_{k}")
        except Rejected as found:
            host.session.note(found.problem)
            rejected = True
            continue
        branches.append(inner.builder.build(inner.builder.tuple(*results)))
        arguments.append(b.tuple(*(host.lookup(n, node.operation.at) for n in captured)))
    if rejected:
        raise Rejected(None)
    if len(branches) == 1:
        chosen = b.call(branches[0], arguments[0])
    else:
        chosen = b.conditional(node.operand(0), arguments, branches)
    return [b.get_tuple_element(chosen, k) for k in range(count)]


@stablehlo_op("func.call")
def call(node: OperationView, b: Builder) -> list[Instruction]:
    function = node.function(node.symbol("callee", "symbol"))
    return node.host.call(node, function, node.given)


@stablehlo_op("composite")
def composite(node: OperationView, b: Builder) -> list[Instruction]:
    """The operation of that name where HLO has it, else the function that defines it."""
    name = node.symbol("name")
    attributes = node.attribute("composite_attributes", default={})
    rule = lookup(name) if name.startswith("chlo.") else None
    real = all(isinstance(o.type, TensorType) and not o.tensor_type.element.is_complex for o in node.operands)
    if rule is None or not real:
        return node.host.call(node, node.function(node.symbol("decomposition")), node.operands)
    node.operation.attributes |= attributes
    made = rule(node, b)
    return [made] if isinstance(made, Instruction) else list(made)
