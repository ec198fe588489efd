"""Attention as HLO spells it: a product, elementwise work on it, softmax along its last dimension, another product.

    scores = f(dot(q, k))      out = dot(exp(scores - max(scores)) / sum(exp(...)), v)

Passes ask what belongs together, and codegen asks the same of what was put together.
"""

from dataclasses import dataclass

from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Dot
from onnxla.hlo.ops.elementwise import Convert, Elementwise
from onnxla.hlo.ops.reduction import Reduce, simple_combiner
from onnxla.hlo.ops.shape import Broadcast
from onnxla.hlo.ops.structural import Constant


@dataclass(frozen=True)
class Attention:
    """The parts of one attention."""

    first: Instruction
    """The dot of q and k."""
    scores: Instruction
    """What is put through softmax: `first`, or elementwise work on it."""
    exponential: Instruction
    second: Instruction
    """The dot with v."""
    members: tuple[Instruction, ...]
    """Everything from `first` to `second`, which nothing else reads."""
    copies: tuple[Instruction, ...]
    """Broadcasts that members read, and others may read as well, such as of a mask that all layers share."""

    @property
    def factors(self) -> tuple[Instruction, Instruction, Instruction]:
        """Queries, keys and values."""
        return (*self.first.operands, self.second.operands[1])  # type: ignore[return-value]  # a dot has two


def attention_of(second: Instruction) -> Attention | None:
    """The attention that ends in this dot; None where it is none, or where something else reads a part of it."""
    op = second.op
    if not isinstance(op, Dot):
        return None
    weights = second.operands[0]
    rank = weights.tensor_type.rank
    if op.lhs_contracting != (rank - 1,) or op.lhs_batch != tuple(range(len(op.lhs_batch))):
        return None
    members = {second: None}
    if isinstance(weights.op, Convert):
        members[weights] = None
        (weights,) = weights.operands
    softmax = _softmax(weights)
    if softmax is None:
        return None
    scores, exponential, inside = softmax
    members |= dict.fromkeys(inside)
    found = _elementwise_to_a_dot(scores)
    if found is None:
        return None
    first, between = found
    members |= dict.fromkeys(between)
    copies = {
        o: None for member in members for o in member.operands if isinstance(o.op, Broadcast) and o not in members
    }
    if any(user not in members for member in members if member is not second for user in member.users):
        return None
    return Attention(first, scores, exponential, second, tuple(members), tuple(copies))


def _softmax(weights: Instruction) -> tuple[Instruction, Instruction, list[Instruction]] | None:
    """Scores, their exponential and all between, of a softmax along the last dimension."""
    if weights.op.opcode not in ("multiply", "divide"):
        return None
    exponential, spread = weights.operands
    if weights.op.opcode == "multiply" and exponential.op.opcode != "exponential":
        exponential, spread = spread, exponential
    if exponential.op.opcode != "exponential" or exponential.operands[0].op.opcode != "subtract":
        return None
    members = [weights, exponential, exponential.operands[0]]
    scores, shift = exponential.operands[0].operands
    highest, total = _along_rows(shift), _along_rows(spread)
    if highest is None or total is None:
        return None
    members += [shift, highest, spread, total]
    if weights.op.opcode == "multiply":
        if total.op.opcode != "divide" or not _is_one(total.operands[0]):
            return None
        total = total.operands[1]
        members.append(total)
    if not _reduces(highest, scores, "maximum") or not _reduces(total, exponential, "add"):
        return None
    return scores, exponential, members


def _along_rows(spread: Instruction) -> Instruction | None:
    """What a broadcast repeats along the last dimension."""
    op = spread.op
    if not isinstance(op, Broadcast) or op.dimensions != tuple(range(spread.tensor_type.rank - 1)):
        return None
    return spread.operands[0]


def _reduces(instruction: Instruction, operand: Instruction, opcode: str) -> bool:
    op = instruction.op
    return (
        isinstance(op, Reduce)
        and len(instruction.operands) == 2
        and instruction.operands[0] is operand
        and op.dimensions == (operand.tensor_type.rank - 1,)
        and simple_combiner(op.to_apply) == opcode
        and isinstance(instruction.operands[1].op, Constant)
    )


def _is_one(value: Instruction) -> bool:
    if isinstance(value.op, Broadcast):
        (value,) = value.operands
    return isinstance(value.op, Constant) and value.op.literal.array.size == 1 and value.op.literal.array.item() == 1


def _elementwise_to_a_dot(value: Instruction, steps: int = 8) -> tuple[Instruction, list[Instruction]] | None:
    """The one dot that a value is elementwise work on, in so many steps, and that work."""
    if isinstance(value.op, Dot):
        return value, [value]
    if not isinstance(value.op, Elementwise) or not steps:
        return None
    ways = [o for o in value.operands if o.shape == value.shape and not isinstance(o.op, Broadcast | Constant)]
    found = [way for way in (_elementwise_to_a_dot(w, steps - 1) for w in ways) if way is not None]
    if len(found) != 1:
        return None
    first, between = found[0]
    return first, [*between, value]
