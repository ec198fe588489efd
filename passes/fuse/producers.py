"""Producers move into the kernels of their consumers, so that what is between them is never stored.

Consumers are decided first (the walk goes backwards), so when a producer's turn comes it is known which kernels its
users ended up in. In one kernel: it joins. In several: it is copied into each when recomputing it costs no more than
reading it; otherwise it is stored, by a kernel of its own.
"""

import math

from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.elementwise import Convert
from onnxla.hlo.ops.indexing import DynamicSlice, DynamicUpdateSlice
from onnxla.hlo.ops.reduction import Reduce, ReduceWindow, adds_parts
from onnxla.hlo.ops.shape import Broadcast, Concatenate, Pad, Reshape, Reverse, Slice, Transpose
from onnxla.hlo.ops.structural import Constant, Iota, Parameter
from onnxla.hlo.types import TensorType
from onnxla.passes.fuse.kernels import MOST_INSTRUCTIONS, FusionPlan, Kernel
from onnxla.passes.fuse.traits import (
    is_contraction,
    is_elementwise,
    is_expensive,
    is_loop,
    is_scalar_constant,
    keeps_rows,
    repeats,
)
from onnxla.passes.fuse.views import is_view

LONGEST_COPY = 6
"""Cheap operations that may be computed anew by each reader."""
LARGEST_STRIDED = 1 << 12
"""Elements of a transpose that a loop may read across its rows; a larger one is a kernel of its own, in tiles."""
MOST_PIECES = 2
"""Operands of a concatenate along rows that may be computed in place of being copied."""
MOST_PATHS = 4
"""Different indices at which one kernel may compute the same instruction."""

Path = tuple[int, ...]
"""How a kernel comes to an instruction: the data movements on the way from its outputs."""


def fuse_producers(plan: FusionPlan, on_gpu: bool = False) -> None:
    """Give every remaining loop or reduction instruction a kernel, its own or those of its users. With `on_gpu`
    contractions read views where what they show lies, and rows add up parts of products."""
    _ProducerFusion(plan, on_gpu).run()


class _ProducerFusion:
    def __init__(self, plan: FusionPlan, on_gpu: bool) -> None:
        self.plan, self.on_gpu = plan, on_gpu
        self.copy_cost = _copy_costs(plan)
        self.paths: dict[Instruction, frozenset[Path]] = {}

    def run(self) -> None:
        for instruction in reversed(self.plan.order):
            if instruction in self.plan.owner:
                self.paths[instruction] = frozenset({()})
            elif is_scalar_constant(instruction):
                continue
            elif isinstance(instruction.op, Reshape):
                self._try_inline(instruction)
            elif is_loop(instruction) or isinstance(instruction.op, Reduce):
                if not self._try_inline(instruction):
                    kind = "kInput" if isinstance(instruction.op, Reduce) else "kLoop"
                    self.plan.new_kernel(kind, instruction, [instruction])
                    self.paths[instruction] = frozenset({()})
        self._lift_reshapes()

    def _try_inline(self, producer: Instruction) -> bool:
        plan = self.plan
        if producer is plan.computation.root or isinstance(producer.op, DynamicUpdateSlice):
            return False
        if not isinstance(producer.type, TensorType):
            return False
        homes: dict[Kernel, None] = {}
        paths: set[Path] = set()
        repeated = False
        for user in producer.users:
            kernels = plan.kernels_of(user)
            if not kernels or not all(self._accepts(k, user, producer) for k in kernels):
                return False
            homes.update(dict.fromkeys(kernels))
            step = () if is_elementwise(user) and producer.shape == user.shape else (plan.position[user],)
            paths |= {path + step for path in self.paths[user]} if step else self.paths[user]
            repeated = repeated or repeats(user, producer)
        copied = len(homes) > 1 or len(paths) > 1 or repeated
        cost = self.copy_cost.get(producer)
        if copied and (cost is None or len(paths) > MOST_PATHS):
            return False
        if cost is not None and cost > self._affordable(producer):
            return False
        if len(homes) > 8 and cost != 0:
            return False
        if any(k.size >= MOST_INSTRUCTIONS for k in homes) and not _is_nothing(producer):
            return False
        plan.copy_into(producer, homes)
        self.paths[producer] = frozenset(paths)
        for kernel in homes:
            if isinstance(producer.op, Reduce) and not kernel.is_row_kernel:
                # the reduction decides the schedule of what follows from it
                kernel.kind, kernel.hero = "kInput", producer
        return True

    @staticmethod
    def _affordable(producer: Instruction) -> int:
        """How many cheap operations may be repeated for every element that a user reads more than once."""
        repeating = [u for u in producer.users if repeats(u, producer)]
        if not repeating:
            return LONGEST_COPY
        return 2 if any(isinstance(u.op, Broadcast) or is_elementwise(u) for u in repeating) else 4

    def _accepts(self, kernel: Kernel, user: Instruction, producer: Instruction) -> bool:
        """Whether `kernel` may compute `producer` where `user`, in the kernel, reads it."""
        op = producer.op
        if is_contraction(user):
            return self.on_gpu and is_view(producer)
        if _is_nothing(producer):
            return True
        if kernel.kind == "kOutput":
            return self._accepts_in_epilogue(kernel, user, producer)
        if isinstance(user.op, ReduceWindow) or isinstance(user.op, Pad) and _narrows(producer):
            return False
        if isinstance(user.op, Concatenate) and not keeps_rows(user) and len(user.operands) > MOST_PIECES:
            return False
        if isinstance(user.op, Transpose) and not keeps_rows(user) and user.tensor_type.size > LARGEST_STRIDED:
            return False
        if isinstance(op, Reduce):
            return self._accepts_reduce(kernel, user, producer)
        if isinstance(op, ReduceWindow):
            return is_elementwise(user) and kernel.kind == "kLoop" and self.paths[user] == {()}
        if isinstance(op, Transpose) and not keeps_rows(producer):
            return producer.tensor_type.size <= LARGEST_STRIDED
        if isinstance(op, Concatenate):
            small = producer.tensor_type.size <= LARGEST_STRIDED and len(producer.operands) <= 4
            return small and is_elementwise(user) and kernel.kind == "kLoop"
        if isinstance(user.op, DynamicUpdateSlice):
            # the operand is updated in place
            return user.operands[0] is not producer
        if kernel.kind == "kInput" and isinstance(kernel.hero.op, Reduce):
            return self._accepts_in_reduction(kernel, producer)
        return True

    def _accepts_in_epilogue(self, kernel: Kernel, user: Instruction, producer: Instruction) -> bool:
        """Elementwise work and broadcasts, and blocks of larger tensors such as a time step, read where they are."""
        block = isinstance(producer.op, DynamicSlice | Slice) and keeps_rows(producer)
        if is_view(user) and self.on_gpu and is_view(producer):
            return True
        if isinstance(user.op, Reshape):
            return block
        if not is_elementwise(user):
            return False
        pointwise = is_elementwise(producer) and producer.shape == user.shape == kernel.hero.shape
        return pointwise or block or isinstance(producer.op, Broadcast | Reshape)

    def _accepts_reduce(self, kernel: Kernel, user: Instruction, producer: Instruction) -> bool:
        """A reduction joins the elementwise work on its result, next to others of one shape over equal dimensions."""
        if not is_elementwise(user) or user.shape != producer.shape or self.paths[user] != {()}:
            return False
        if kernel.is_row_kernel:
            return self.on_gpu and adds_parts(producer)
        if kernel.kind == "kLoop":
            return True
        other, op = kernel.hero.op, producer.op
        if kernel.kind != "kInput" or not isinstance(other, Reduce) or not isinstance(op, Reduce):
            return False
        same = kernel.hero.operands[0].shape == producer.operands[0].shape
        return same and sorted(other.dimensions) == sorted(op.dimensions)

    def _accepts_in_reduction(self, kernel: Kernel, producer: Instruction) -> bool:
        """A row kernel sweeps over rows in memory order, and a reduction reads along them."""
        if kernel.is_row_kernel and isinstance(producer.op, Reshape | Pad | Concatenate):
            return False
        return keeps_rows(producer) or producer.tensor_type.size <= LARGEST_STRIDED

    def _lift_reshapes(self) -> None:
        """A reshape whose operand is stored anyway is a name for that memory, not work inside a kernel."""
        plan = self.plan
        for instruction in plan.order:
            if isinstance(instruction.op, Reshape) and instruction in plan.homes:
                if not plan.homes.get(instruction.operands[0]):
                    plan.withdraw(instruction)


def _is_nothing(instruction: Instruction) -> bool:
    """Whether it costs nothing to compute anywhere: a counter, or one number for all elements."""
    op = instruction.op
    return isinstance(op, Iota) or isinstance(op, Broadcast) and instruction.operands[0].tensor_type.size == 1


def _narrows(instruction: Instruction) -> bool:
    """Whether it makes bytes of wider numbers. What is to be padded is then better stored: whole lines are copied, and
    no element asks whether it is there."""
    op = instruction.op
    return isinstance(op, Convert) and op.element.bytes == 1 < instruction.operands[0].tensor_type.element.bytes


def _copy_costs(plan: FusionPlan) -> dict[Instruction, int]:
    """Cheap operations between stored values and an instruction, for those that may be computed anew by every reader.

    Those are short chains of cheap operations that read no more bytes than their result has.
    """
    costs: dict[Instruction, int] = {}
    reads: dict[Instruction, frozenset[Instruction]] = {}
    for instruction in plan.order:
        if instruction in plan.owner or not isinstance(instruction.type, TensorType):
            continue
        op = instruction.op
        moves = isinstance(op, Broadcast | Slice | Reverse | Reshape) or isinstance(op, Transpose | Pad)
        if not (is_elementwise(instruction) or moves or isinstance(op, Iota)) or is_expensive(instruction):
            continue
        cost = 0 if moves or isinstance(op, Iota) else 1
        leaves: set[Instruction] = set()
        for operand in instruction.operands:
            if is_scalar_constant(operand):
                continue
            stored = operand in plan.owner or isinstance(operand.op, Parameter | Constant) or operand not in costs
            cost += 0 if stored else costs[operand]
            leaves |= {operand} if stored else reads[operand]
        bytes_read = math.fsum(leaf.tensor_type.bytes for leaf in leaves)
        if cost > LONGEST_COPY or len(leaves) > LONGEST_COPY or bytes_read > instruction.tensor_type.bytes:
            continue
        costs[instruction], reads[instruction] = cost, frozenset(leaves)
    return costs
