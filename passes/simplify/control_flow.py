"""Tuples that are taken apart again, branches that are known, loops that never run."""

from onnxla.hlo.builder import Builder
from onnxla.hlo.constant_evaluation import ConstantEvaluator
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.control_flow import Conditional, While
from onnxla.hlo.ops.structural import Constant, GetTupleElement, Tuple
from onnxla.hlo.types import PRED
from onnxla.passes.pattern import any_of, operation, splat_value, variables
from onnxla.passes.rewrite import NoMatch, Replacement, RuleTable

CONTROL_FLOW = RuleTable()
rule = CONTROL_FLOW.rule

i, x = variables("i x")


@rule(operation("get-tuple-element", 1)(x, i))
def element_of_tuple(x: Instruction, i: int) -> Replacement:
    """Element i of a tuple being made is its operand i."""
    return x.operands[i] if isinstance(x.op, Tuple) else NoMatch("made elsewhere")


@rule(any_of("tuple"))
def tuple_of_all_elements(root: Instruction) -> Replacement:
    """A tuple of all the elements of a tuple, in order, is that tuple."""
    if not root.operands or not all(isinstance(o.op, GetTupleElement) for o in root.operands):
        return NoMatch("not elements")
    source = root.operands[0].operands[0]
    in_order = all(o.op == GetTupleElement(k) and o.operands[0] is source for k, o in enumerate(root.operands))
    return source if in_order and source.type == root.type else NoMatch("not all of one tuple")


@rule(any_of("conditional"))
def known_branch(b: Builder, root: Instruction) -> Replacement:
    """A conditional whose index is constant is a call of one branch."""
    op = root.op
    assert isinstance(op, Conditional)
    value = splat_value(root.operands[0])
    if value is None:
        return NoMatch("unknown index")
    number = int(not value) if root.operands[0].tensor_type.element is PRED else int(value)
    number = number if 0 <= number < len(op.branches) else len(op.branches) - 1
    return b.call(op.branches[number], root.operands[1 + number])


@rule(any_of("while"))
def loop_that_never_runs(root: Instruction) -> Replacement:
    """A loop whose condition is false at the start is its initial value."""
    op, (init,) = root.op, root.operands
    assert isinstance(op, While)
    if isinstance(op.condition.root.op, Constant):
        return init if not op.condition.root.op.literal.array else NoMatch("it never ends")
    if not isinstance(init.op, Tuple):
        return NoMatch("unknown start")
    at_start = _condition_at_start(op, init)
    if at_start is None:
        return NoMatch("unknown condition")
    return NoMatch("it runs") if at_start else init


def _condition_at_start(op: While, init: Instruction) -> bool | None:
    """The condition's value before the first round, where it depends on constants only."""
    copies: dict[Instruction, Instruction] = {op.condition.parameters[0]: init}
    order = op.condition.instructions()
    if len(order) > 50:
        return None
    for instruction in order:
        if instruction not in copies:
            copies[instruction] = Instruction(instruction.op, [copies[o] for o in instruction.operands])
    value = ConstantEvaluator(1 << 16, 0.1).value(copies[op.condition.root])
    for copy in reversed([c for c in copies.values() if c is not init]):
        copy.set_operands(())
    return None if value is None else bool(value)
