"""Row kernels: reductions over the innermost dimensions and the full-size work around them.

Softmax, layer and RMS normalisation, log-softmax and whatever looks like them: a reduction gives one value for each
row, the value goes back to the whole row, perhaps into another reduction. While a row lies in cache all of it costs
one read and one write.
"""

from heapq import heappop, heappush

from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.reduction import Reduce
from onnxla.hlo.ops.shape import Broadcast
from onnxla.hlo.types import Shape, TensorType
from onnxla.passes.fuse.kernels import MOST_INSTRUCTIONS, MOST_OUTPUTS, FusionPlan, Kernel
from onnxla.passes.fuse.traits import is_elementwise

LARGEST_ROW = 256 << 10
"""Bytes of a row that stays in a core's cache from one sweep to the next."""
FEW_ROWS = 16
"""Fewer rows leave threads without work, or with one row more than others."""


def fuse_rows(plan: FusionPlan) -> None:
    """Grow a kernel from every reduction over trailing dimensions whose result is spread over its row again."""
    for hero in plan.order:
        if hero not in plan.owner and reduces_rows(hero) and not _is_for_all_threads(hero):
            kernel = _grow(plan, hero)
            if kernel is not None:
                _absorb_shared_producers(plan, kernel)


def reduces_rows(instruction: Instruction) -> bool:
    """Whether it reduces one tensor over its last dimensions, and more than one element for each result."""
    op = instruction.op
    if not isinstance(op, Reduce) or not isinstance(instruction.type, TensorType):
        return False
    rank = len(instruction.operands[0].shape)
    trailing = tuple(range(rank - len(op.dimensions), rank))
    return tuple(sorted(op.dimensions)) == trailing and instruction.operands[0].tensor_type.size > instruction.type.size


def _is_for_all_threads(hero: Instruction) -> bool:
    """Whether it reduces few rows, each too large to be kept: threads should share out the columns, step by step.

    The range that DynamicQuantizeLinear takes of a whole tensor is one. A row kernel would run in one thread, and
    compute anew for its last sweep what no longer lies in cache.
    """
    full = hero.operands[0].tensor_type
    return hero.tensor_type.size < FEW_ROWS and full.bytes > LARGEST_ROW * hero.tensor_type.size


def full_shape(kernel: Kernel) -> Shape:
    """The shape of the rows of a row kernel, columns included."""
    return kernel.hero.operands[0].shape


def _fits(plan: FusionPlan, kernel: Kernel, user: Instruction) -> bool:
    """Whether `user`, which reads a member, may run in the kernel's sweeps."""
    full, rows = full_shape(kernel), kernel.hero.shape
    if is_elementwise(user):
        return user.shape in (full, rows) and all(o.shape in (user.shape, ()) for o in user.operands)
    if isinstance(user.op, Broadcast):
        (operand,) = user.operands
        return operand.shape == rows and user.shape == full and user.op.dimensions == tuple(range(len(rows)))
    if reduces_rows(user):
        same = user.operands[0].shape == full and user.shape == rows
        return same and not any(i in kernel.members for i in user.operands[1:])
    return False


def _grow(plan: FusionPlan, hero: Instruction) -> Kernel | None:
    """A kernel of the hero and what follows from it; None, and nothing claimed, where no full row follows."""
    floor = plan.position[hero]
    kernel = plan.new_kernel("kInput", hero, [hero])
    full = full_shape(kernel)
    waiting: list[tuple[int, Instruction]] = []
    queued: set[Instruction] = set()

    def offer(instruction: Instruction) -> None:
        for user in instruction.users:
            if user not in queued:
                queued.add(user)
                heappush(waiting, (plan.position[user], user))

    offer(hero)
    while waiting and kernel.size < MOST_INSTRUCTIONS:
        _, user = heappop(waiting)
        if user in plan.owner or not _fits(plan, kernel, user):
            continue
        outside = [o for o in user.operands if o not in kernel.members]
        if any(plan.depends(o, kernel, floor) for o in outside):
            continue
        plan.assign(user, kernel)
        offer(user)
    while len(plan.outputs(kernel)) > MOST_OUTPUTS:
        plan.release(max(kernel.members, key=plan.position.__getitem__))
    kernel.is_row_kernel = any(m.shape == full and not isinstance(m.op, Broadcast) for m in kernel.members)
    if kernel.is_row_kernel:
        return kernel
    for member in list(kernel.members):
        plan.release(member)
    return None


def _absorb_shared_producers(plan: FusionPlan, kernel: Kernel) -> None:
    """Take in full-size elementwise producers, those too that others read: they become further outputs.

    The kernel then reads what they are made of, instead of a kernel of their own writing them for this one to read.
    """
    full, rows = full_shape(kernel), kernel.hero.shape
    members = sorted(kernel.members, key=plan.position.__getitem__, reverse=True)
    waiting = [(-plan.position[o], o) for o in {o for m in members for o in m.operands}]
    waiting.sort()
    queued = {o for _, o in waiting}
    while waiting and kernel.size < MOST_INSTRUCTIONS:
        _, producer = heappop(waiting)
        if producer in plan.owner or not (_sweeps(producer, full, rows)):
            continue
        others = [u for u in producer.users if u not in kernel.members]
        if others and (
            producer.shape != full
            or len(plan.outputs(kernel)) >= MOST_OUTPUTS
            or plan.reaches(others, set(kernel.members))
        ):
            continue
        plan.assign(producer, kernel)
        for operand in producer.operands:
            if operand not in queued:
                queued.add(operand)
                heappush(waiting, (-plan.position[operand], operand))


def _sweeps(producer: Instruction, full: Shape, rows: Shape) -> bool:
    """Whether a producer has one value for each element or row, of elements at the same place."""
    if reduces_rows(producer):
        return producer.operands[0].shape == full and producer.shape == rows
    return is_elementwise(producer) and producer.shape in (full, rows)
