"""Kernels with several outputs: a stored value and what is computed from it, or several values made of the same data.

Both save reading something that is in registers anyway.
"""

from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.indexing import DynamicUpdateSlice
from onnxla.hlo.ops.reduction import Reduce, ReduceWindow
from onnxla.hlo.ops.shape import Concatenate, Transpose
from onnxla.hlo.ops.structural import Parameter
from onnxla.hlo.types import Shape, TensorType
from onnxla.passes.fuse.kernels import MOST_INSTRUCTIONS, MOST_OUTPUTS, FusionPlan, Kernel
from onnxla.passes.fuse.traits import is_elementwise, is_scalar_constant

MOST_PIECES = 2
"""Operands of a concatenate up to which choosing one for each element costs less than a kernel of its own."""
MOST_READERS = 16
"""Of one value, to look at as partners."""


def merge_outputs(plan: FusionPlan) -> None:
    """Join loop kernels of one shape: producers with elementwise consumers first, then readers of the same value.

    Reductions of one value over the same dimensions, such as its minimum and its maximum, are readers too.
    """
    for instruction in list(plan.order):
        kernel = plan.owner.get(instruction)
        if kernel is None or not _is_plain_loop(kernel):
            continue
        for user in list(instruction.users)[:MOST_READERS]:
            if _reads_in_place(instruction, user):
                for consumer in plan.kernels_of(user):
                    if _can_merge(plan, kernel, consumer):
                        plan.merge(kernel, consumer)
    for instruction in plan.order:
        _merge_siblings(plan, instruction)


def _is_plain_loop(kernel: Kernel) -> bool:
    """Arithmetic over one shape; what is moved tile by tile, pooled or updated in place has a schedule of its own."""
    own = DynamicUpdateSlice | ReduceWindow | Transpose
    apart = any(isinstance(m.op, own) or _has_many_pieces(m) for m in kernel.members)
    return kernel.kind == "kLoop" and not apart


def _has_many_pieces(instruction: Instruction) -> bool:
    return isinstance(instruction.op, Concatenate) and len(instruction.operands) > MOST_PIECES


def _sweep(kernel: Kernel) -> tuple[Shape, tuple[int, ...]] | None:
    """What a kernel of reductions and work on their results goes through: a shape, and the dimensions reduced."""
    hero = kernel.hero
    if kernel.kind != "kInput" or kernel.is_row_kernel or not isinstance(hero.op, Reduce):
        return None
    if not all(isinstance(member.type, TensorType) for member in kernel.members):
        return None  # a tuple cannot be an output beside others
    return hero.operands[0].shape, tuple(sorted(hero.op.dimensions))


def _reads_in_place(instruction: Instruction, user: Instruction) -> bool:
    if isinstance(user.op, Reduce):
        return instruction is user.operands[0]
    return is_elementwise(user) and user.shape == instruction.shape


def _merge_siblings(plan: FusionPlan, instruction: Instruction) -> None:
    """Join kernels that read the whole of `instruction`, which is stored, element by element."""
    stored = instruction in plan.owner or isinstance(instruction.op, Parameter)
    if not stored or is_scalar_constant(instruction) or not hasattr(instruction.type, "shape"):
        return
    readers: dict[Kernel, None] = {}
    for user in list(instruction.users)[:MOST_READERS]:
        if _reads_in_place(instruction, user):
            readers.update(dict.fromkeys(plan.kernels_of(user)))
    chosen = [k for k in readers if k is not plan.owner.get(instruction)]
    for k, first in enumerate(chosen):
        for second in chosen[k + 1 :]:
            if first.members and second.members:
                if _can_merge(plan, first, second) or _can_merge_reductions(plan, first, second):
                    plan.merge(first, second)


def _can_merge_reductions(plan: FusionPlan, first: Kernel, second: Kernel) -> bool:
    """Whether the two reduce tensors of one shape over the same dimensions, in one sweep."""
    sweep = _sweep(first)
    if sweep is None or sweep != _sweep(second) or not _fits(plan, first, second):
        return False
    if _reduces_from(first, second) or _reduces_from(second, first):
        return False
    return not _path_outside(plan, first, second) and not _path_outside(plan, second, first)


def _reduces_from(source: Kernel, target: Kernel) -> bool:
    """Whether a reduction of `target` needs a member of `source`, which a second sweep would have to wait for."""
    inside = {**target.members, **target.copies}
    stack = [o for i in inside if isinstance(i.op, Reduce) for o in i.operands]
    seen = set(stack)
    while stack:
        instruction = stack.pop()
        if instruction in source.members:
            return True
        if instruction in inside:
            stack += [o for o in instruction.operands if o not in seen]
            seen.update(instruction.operands)
    return False


def _can_merge(plan: FusionPlan, first: Kernel, second: Kernel) -> bool:
    """Whether the two make one kernel: one shape, not too large, and nothing outside stands between them."""
    if first is second or not (_is_plain_loop(first) and _is_plain_loop(second)):
        return False
    if {m.shape for m in first.members} != {m.shape for m in second.members}:
        return False
    if not _fits(plan, first, second):
        return False
    return not _path_outside(plan, first, second) and not _path_outside(plan, second, first)


def _fits(plan: FusionPlan, first: Kernel, second: Kernel) -> bool:
    outputs = [o for k in (first, second) for o in plan.outputs(k)]
    return first.size + second.size <= MOST_INSTRUCTIONS and len(outputs) <= MOST_OUTPUTS


def _path_outside(plan: FusionPlan, source: Kernel, target: Kernel) -> bool:
    """Whether `target` depends on `source` through something that is in neither."""
    both = {**source.members, **target.members}
    sources: dict[Instruction, None] = {}
    for user in (user for member in source.members for user in member.users):
        homes = plan.homes.get(user)
        if homes is None and user not in both:
            sources[user] = None
        # a copy in a third kernel is read there, so that kernel stands between
        for kernel in homes or ():
            if kernel not in (source, target):
                sources.update(kernel.members)
    return plan.reaches(sources, set(target.members)) if sources else False
