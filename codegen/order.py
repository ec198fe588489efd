"""The order in which a computation's instructions run: any order is right, some need much less memory.

Two candidates are tried, and the one with the lower peak of live bytes wins: the order of `Computation.instructions()`
(near the model's own), and the one that visits the operand whose subtree needs the most memory first, so that little
else is alive while the costly part runs (Sethi and Ullman's rule, on a graph instead of a tree).
"""

from collections.abc import Sequence

from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.shape import Reshape
from onnxla.hlo.ops.structural import Constant, GetTupleElement, Parameter, Tuple
from onnxla.hlo.types import TensorType, Type


def order_instructions(computation: Computation) -> list[Instruction]:
    """Every instruction of `computation`, operands first, parameters leading. Deterministic."""
    plain = computation.instructions()
    heavy = _heaviest_first(computation, plain)
    return heavy if peak_bytes(heavy) < peak_bytes(plain) else plain


def peak_bytes(order: Sequence[Instruction]) -> int:
    """The largest sum of live intermediate values while instructions run in `order`, nothing being reused in place."""
    origins: dict[Instruction, frozenset[Instruction]] = {}
    last: dict[Instruction, int] = {}
    for position, instruction in enumerate(order):
        read = frozenset[Instruction]().union(*(origins[o] for o in instruction.operands))
        origins[instruction] = read if _is_view(instruction) else frozenset({instruction})
        for origin in read:
            last[origin] = position
    for origin in origins[order[-1]]:
        last[origin] = len(order)
    ends: dict[int, int] = {}
    for origin, position in last.items():
        ends[position] = ends.get(position, 0) + _stored_bytes(origin)
    live = peak = 0
    for position, instruction in enumerate(order):
        live += _stored_bytes(instruction) if instruction in last else 0
        peak = max(peak, live)
        live -= ends.get(position, 0)
    return peak


def _heaviest_first(computation: Computation, plain: Sequence[Instruction]) -> list[Instruction]:
    needs: dict[Instruction, int] = {}
    children: dict[Instruction, list[Instruction]] = {}
    for instruction in plain:
        operands = dict.fromkeys(instruction.operands)
        ranked = sorted(operands, key=lambda o: _stored_bytes(o) - needs[o])
        held = most = 0
        for operand in ranked:
            most = max(most, held + needs[operand])
            held += _stored_bytes(operand)
        needs[instruction] = max(most, held + _stored_bytes(instruction))
        children[instruction] = ranked
    order = list(computation.parameters)
    seen = set(order)
    stack = [(computation.root, 0)]
    while stack:
        instruction, next_child = stack.pop()
        if instruction in seen:
            continue
        if next_child < len(children[instruction]):
            stack += [(instruction, next_child + 1), (children[instruction][next_child], 0)]
        else:
            seen.add(instruction)
            order.append(instruction)
    return order


def _is_view(instruction: Instruction) -> bool:
    return isinstance(instruction.op, Tuple | GetTupleElement | Reshape)


def _stored_bytes(instruction: Instruction) -> int:
    """Arena bytes that the instruction's own result takes."""
    if _is_view(instruction) or isinstance(instruction.op, Parameter | Constant):
        return 0
    return _bytes(instruction.type)


def _bytes(type: Type) -> int:
    return type.bytes if isinstance(type, TensorType) else sum(_bytes(e) for e in type.elements)
