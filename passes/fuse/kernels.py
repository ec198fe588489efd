"""The plan of a fusion pass over one computation: kernels under construction and who computes what."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from onnxla.hlo.module import Computation, Instruction
from onnxla.passes.fuse.traits import is_free

MOST_INSTRUCTIONS = 100
"""In one kernel; beyond it compile time grows faster than traffic shrinks."""
MOST_OUTPUTS = 4


@dataclass(eq=False)
class Kernel:
    """One future fusion."""

    kind: str
    hero: Instruction
    """The instruction that decides how the kernel is scheduled."""
    members: dict[Instruction, None] = field(default_factory=dict)
    """Instructions that only this kernel computes, and that others may read."""
    copies: dict[Instruction, None] = field(default_factory=dict)
    """Instructions that it computes for itself; other kernels may do so too."""
    is_row_kernel: bool = False
    """Whether it sweeps over rows: reductions and full-size members."""

    @property
    def size(self) -> int:
        return len(self.members) + len(self.copies)


class FusionPlan:
    """Who computes each instruction of `computation`.

    An owned instruction is computed once, by its owner. An instruction in `homes` is stored nowhere: every kernel
    listed there computes it for itself. What is in neither is computed alone, or needs no kernel.
    """

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.order = computation.instructions()
        self.position = {instruction: i for i, instruction in enumerate(self.order)}
        self.owner: dict[Instruction, Kernel] = {}
        self.homes: dict[Instruction, tuple[Kernel, ...]] = {}

    def new_kernel(self, kind: str, hero: Instruction, members: Iterable[Instruction]) -> Kernel:
        kernel = Kernel(kind, hero)
        for member in members:
            self.assign(member, kernel)
        return kernel

    def assign(self, instruction: Instruction, kernel: Kernel) -> None:
        """Let `kernel` alone compute `instruction`."""
        kernel.members[instruction] = None
        self.owner[instruction] = kernel

    def release(self, instruction: Instruction) -> None:
        """Undo `assign`."""
        del self.owner.pop(instruction).members[instruction]

    def copy_into(self, instruction: Instruction, kernels: Iterable[Kernel]) -> None:
        """Let each of `kernels` compute `instruction` for itself."""
        self.homes[instruction] = tuple(kernels)
        for kernel in self.homes[instruction]:
            kernel.copies[instruction] = None

    def withdraw(self, instruction: Instruction) -> None:
        """Undo `copy_into`."""
        for kernel in self.homes.pop(instruction):
            del kernel.copies[instruction]

    def merge(self, into: Kernel, other: Kernel) -> None:
        """Move everything from `other` to `into`."""
        for member in list(other.members):
            self.assign(member, into)
        for copy in other.copies:
            homes = (into if k is other else k for k in self.homes[copy])
            self.homes[copy] = tuple(dict.fromkeys(homes))
            into.copies[copy] = None
        other.members.clear()
        other.copies.clear()

    def kernels_of(self, instruction: Instruction) -> tuple[Kernel, ...]:
        """The kernels that compute `instruction`: its owner, its homes, or none."""
        owner = self.owner.get(instruction)
        return (owner,) if owner is not None else self.homes.get(instruction, ())

    def outputs(self, kernel: Kernel) -> list[Instruction]:
        """Members that something outside the kernel reads, in order."""
        found = []
        for member in kernel.members:
            outside = any(kernel not in self.kernels_of(u) or len(self.kernels_of(u)) > 1 for u in member.users)
            if outside or member is self.computation.root:
                found.append(member)
        return sorted(found, key=self.position.__getitem__)

    def single(self) -> list[Instruction]:
        """Instructions that need a kernel and are in none."""
        return [i for i in self.order if i not in self.owner and i not in self.homes and not is_free(i)]

    def reaches(self, sources: Iterable[Instruction], targets: set[Instruction], budget: int = 400) -> bool:
        """Whether a target depends on a source, kernels counting as one node; True also when the budget runs out."""
        last = max(self.position[t] for t in targets)
        stack = list(sources)
        seen = set(stack)
        while stack:
            instruction = stack.pop()
            budget -= 1
            if instruction in targets or budget < 0:
                return True
            owner = self.owner.get(instruction)
            group = owner.members if owner is not None else (instruction,)
            for member in group:
                if member in targets:
                    return True
                for user in member.users:
                    if user in self.position and user not in seen and self._first(user) <= last:
                        seen.add(user)
                        stack.append(user)
        return False

    def depends(self, instruction: Instruction, on: Kernel, floor: int, budget: int = 200) -> bool:
        """Whether `instruction` needs a member of `on`, kernels counting as one node; True when the budget runs out.

        `floor` is the position of the first member.
        """
        stack = [instruction]
        seen = set(stack)
        while stack:
            current = stack.pop()
            budget -= 1
            owner = self.owner.get(current)
            if owner is on or budget < 0:
                return True
            for member in owner.members if owner is not None else (current,):
                for operand in member.operands:
                    if operand not in seen and self._last(operand) >= floor:
                        seen.add(operand)
                        stack.append(operand)
        return False

    def _first(self, instruction: Instruction) -> int:
        owner = self.owner.get(instruction)
        if owner is None:
            return self.position[instruction]
        return min(self.position[m] for m in owner.members)

    def _last(self, instruction: Instruction) -> int:
        owner = self.owner.get(instruction)
        if owner is None:
            return self.position[instruction]
        return max(self.position[m] for m in owner.members)
