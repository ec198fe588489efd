"""Elementwise work on the result of a dot or convolution joins the kernel that computes it.

Bias, residual, activation, clip and requantisation are then applied to results while they are in registers. On a GPU
a transpose that leaves rows in one piece joins too: results are stored where it would put them.
"""

from heapq import heappop, heappush

from onnxla.hlo.module import Instruction
from onnxla.passes.fuse.kernels import FusionPlan
from onnxla.passes.fuse.producers import LONGEST_COPY
from onnxla.passes.fuse.traits import is_contraction, is_elementwise, is_expensive, is_lookup, is_loop
from onnxla.passes.fuse.views import views_after

LONGEST_EPILOGUE = 32


def fuse_epilogues(plan: FusionPlan, on_gpu: bool = False) -> None:
    """Give every contraction a kernel with the elementwise instructions of its shape that end in one output, and, with
    `on_gpu`, the transposes that follow."""
    for hero in plan.order:
        if is_contraction(hero):
            region = _end_narrow(plan, _single_output_prefixes(plan, _region(plan, hero)))
            kernel = plan.new_kernel("kOutput", hero, region)
            (output,) = plan.outputs(kernel)
            for view in views_after(output, plan.computation) if on_gpu else ():
                plan.assign(view, kernel)


def _region(plan: FusionPlan, hero: Instruction) -> list[Instruction]:
    """The hero and, in order, elementwise users of its shape whose other operands do not need the hero."""
    floor = plan.position[hero]
    trial = plan.new_kernel("kOutput", hero, [hero])
    waiting: list[tuple[int, Instruction]] = []
    queued: set[Instruction] = set()

    def offer(instruction: Instruction) -> None:
        for user in instruction.users:
            if user not in queued:
                queued.add(user)
                heappush(waiting, (plan.position[user], user))

    offer(hero)
    while waiting and len(trial.members) < LONGEST_EPILOGUE:
        _, user = heappop(waiting)
        if user in plan.owner or not (is_elementwise(user) or is_lookup(user)) or user.shape != hero.shape:
            continue
        outside = [o for o in user.operands if o not in trial.members]
        if any(plan.position[o] > floor and plan.depends(o, trial, floor) for o in outside):
            continue
        plan.assign(user, trial)
        offer(user)
    region = list(trial.members)
    for member in region:
        plan.release(member)
    return region


def _single_output_prefixes(plan: FusionPlan, region: list[Instruction]) -> list[list[Instruction]]:
    """The beginnings of `region` of which the last member only is read from outside, the longest last."""
    found = []
    inside: set[Instruction] = set()
    pending: dict[Instruction, int] = {}
    for length, member in enumerate(region, start=1):
        inside.add(member)
        for operand in dict.fromkeys(member.operands):
            if operand in pending:
                pending[operand] -= 1
                if pending[operand] == 0:
                    del pending[operand]
        pending[member] = len(member.users) + (member is plan.computation.root)
        if len(pending) == 1 or length == 1:
            found.append(region[:length])
    return found


def _end_narrow(plan: FusionPlan, prefixes: list[list[Instruction]]) -> list[Instruction]:
    """The longest of `prefixes`, or one a few cheap steps shorter that stores fewer bytes: what is dequantised right
    behind the contraction is stored as bytes. Its readers must be able to compute the rest as they read."""
    longest = prefixes[-1]
    result = longest[-1]
    if any(is_contraction(u) or not is_loop(u) for u in result.users):
        return longest
    for prefix in prefixes[:-1]:
        rest = longest[len(prefix) :]
        cheap = len(rest) <= LONGEST_COPY and not any(is_expensive(i) for i in rest)
        if cheap and prefix[-1].tensor_type.bytes < result.tensor_type.bytes:
            return prefix
    return longest
