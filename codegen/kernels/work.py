"""How much work a kernel is, counted in its IR: vector operations and memory accesses of all tasks.

`effort` says it in floating-point operations of multiply-adds that would take as long (`codegen/cost.py`). A slot is
the time in which a core starts one multiply-add of a whole register; everything else is stated as so many slots. Rounds
of loops are found by evaluating their bounds for the task in the middle and the middle round of the loops around, or
both rounds where there are two, since the last may be shorter. What only data decides (rounds of a sort, the side of a
branch) counts once, or as the dearer side.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels.ir import INDEX, Block, For, If, Kernel, Value, walk

ARITHMETIC: Mapping[str, float] = {
    "and": 0.5,
    "or": 0.5,
    "xor": 0.5,
    "not": 0.5,
    "splat": 0.5,
    "convert": 1.5,
    "bitcast": 0.0,
    "reinterpret": 0.0,
    "step": 0.0,
    "div": 8.0,
    "rem": 20.0,
    "sqrt": 6.0,
}
"""Slots of an operation on a register; 1 for those not named. After Agner Fog's instruction tables (Zen 1 to 4,
Skylake): how many of them a core starts in a cycle, beside its multiply-adds."""
SCALAR = 0.2
"""Slots of an operation on one number: there are four units for integers, and addresses hide many of them."""
LOAD, ONE, STORE = 1.0, 0.5, 1.5
"""Slots of memory's ports: to load a register, to load or store one element, to store a register."""
MASKED = 2.0
"""How much more an access under a mask takes."""
OVERLAP = 0.2
"""Part of the lesser of arithmetic and memory accesses that does not hide behind the greater."""
Slots: TypeAlias = tuple[float, float, float]
"""Of arithmetic on registers, of memory's ports, and of integers' units: they work beside each other."""


def dot_slots(group: int, target: Target) -> float:
    """Slots of adding up `group` products in each lane: one instruction where the CPU has it, else two."""
    has_vnni = target.has("avx512vnni") or target.has("avxvnni")
    return 2.0 if group > 1 and not has_vnni else 1.0


def effort_of(kernel: Kernel, target: Target) -> float:
    """The effort of all tasks of a kernel."""
    counter = _Counter(kernel, target)
    return kernel.tasks * effort(counter.block(kernel.body, {kernel.task: kernel.tasks // 2}), target)


def effort(slots: Slots, target: Target) -> float:
    """The effort of some slots: a slot is two operations in each lane of 32 bits."""
    return (max(slots) + OVERLAP * (sum(slots) - max(slots))) * target.vector_bytes / 2


class _Counter:
    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.register, self.target = target.vector_bytes, target
        summed = [o for op in walk(kernel.body) if op.opcode in ("add", "sub") for o in op.operands]
        self.fused = {o for o in summed if o.opcode == "mul" and o.element.is_float}
        """Products that are one instruction with the sum that takes them."""

    def block(self, block: Block, known: dict[Value, int]) -> Slots:
        """Slots of one run of a block; `known` are the integers that are known around it."""
        arithmetic = memory = integer = 0.0
        for op in block.ops:
            if isinstance(op, For | If):
                a, m, i = self.loop(op, known) if isinstance(op, For) else self.branch(op, known)
                arithmetic, memory, integer = arithmetic + a, memory + m, integer + i
            elif op.opcode in ("load", "store", "prefetch"):
                memory += self.access(op)
            elif op.lanes == 1 and (op.element is INDEX or op.opcode in ("cmp", "and", "or", "not", "select")):
                _evaluate(op, known)
                integer += SCALAR
            else:
                arithmetic += self.operation(op)
        return arithmetic, memory, integer

    def loop(self, op: For, known: dict[Value, int]) -> Slots:
        low, high = (_known(v, known) for v in op.operands[:2])
        rounds = 1 if low is None or high is None else max(-(-(high - low) // op.step), 0)
        if not rounds:
            return 0.0, 0.0, 0.0
        counted = (0, 1) if rounds == 2 else (rounds // 2,)
        each = []
        for k in counted:
            if low is not None:
                known[op.body.parameters[0]] = low + k * op.step
            each.append(self.block(op.body, known))
        arithmetic, memory, integer = (rounds / len(counted) * sum(kind) for kind in zip(*each, strict=True))
        return arithmetic, memory, integer + rounds * 2 * SCALAR

    def branch(self, op: If, known: dict[Value, int]) -> Slots:
        condition = _known(op.operands[0], known)
        then, otherwise = (self.block(block, known) for block in (op.then, op.otherwise))
        if condition is None:
            return max(then, otherwise, key=sum)
        return then if condition else otherwise

    def access(self, op: Value) -> float:
        if op.opcode == "prefetch":
            return ONE
        value = op if op.opcode == "load" else op.operands[1]
        masks = op.operands[1 if op.opcode == "load" else 2 :]
        if op.operands[0].lanes > 1:  # each lane has its own element
            return 2 * ONE * value.lanes
        if value.lanes == 1:
            return ONE
        bytes_at_once: int = value.lanes * op.attributes[0].element.bytes
        registers = max(1.0, bytes_at_once / self.register)
        return registers * (LOAD if op.opcode == "load" else STORE) * (MASKED if masks else 1.0)

    def operation(self, op: Value) -> float:
        if op in self.fused or (op.opcode == "splat" and op.operands[0].opcode == "load"):
            return 0.0  # part of another instruction
        if op.opcode == "pack":
            return float(op.lanes)
        widest = max(4, *(v.element.bytes * v.lanes for v in (op, *op.operands)))
        is_dot = op.opcode == "dot_accumulate"
        slots = dot_slots(op.attributes[0], self.target) if is_dot else ARITHMETIC.get(op.opcode, 1.0)
        return max(1.0, widest / self.register) * slots


def _known(value: Value, known: Mapping[Value, int]) -> int | None:
    """The integer that a value is, where that is known."""
    if not value.is_constant:
        return known.get(value)
    number = value.attributes[0]
    return None if isinstance(number, float) else int(number)


def _evaluate(op: Value, known: dict[Value, int]) -> None:
    """Note the result of an operation on integers that are all known."""
    given = [_known(o, known) for o in op.operands]
    if op.opcode == "select" and given[0] is not None:
        chosen = given[1 if given[0] else 2]
        if chosen is not None:
            known[op] = chosen
        return
    numbers = [n for n in given if n is not None]
    if len(numbers) != len(given):
        return
    if op.opcode == "cmp":
        x, y = numbers
        truth = {"EQ": x == y, "NE": x != y, "LT": x < y, "LE": x <= y, "GT": x > y, "GE": x >= y}
        known[op] = int(truth[op.attributes[0]])
    elif op.opcode in _INTEGERS and (op.opcode not in ("div", "rem") or numbers[1]):
        known[op] = _INTEGERS[op.opcode](*numbers)


_INTEGERS: Mapping[str, Callable[..., int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1),
    "rem": lambda x, y: abs(x) % abs(y) * (1 if x >= 0 else -1),
    "min": min,
    "max": max,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "not": lambda x: int(not x),
}
