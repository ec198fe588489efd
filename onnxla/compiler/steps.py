"""The rows of a profile: the steps of a plan, with what each reads, writes and computes."""

from collections.abc import Iterator, Mapping

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.kernels.ir import Kernel
from onnxla.codegen.kernels.work import effort_of
from onnxla.codegen.plan import Branch, Copy, Launch, Plan, Space, Steps, WhileLoop, nested, slots_of
from onnxla.codegen.traffic import bytes_moved
from onnxla.hlo.module import sources_of
from onnxla.runtime.program import Step

_OPERATIONS = {Copy: "copy", WhileLoop: "while", Branch: "conditional"}
"""What a step without a kernel does, in HLO's words."""


def profile_steps(plan: Plan, symbols: Mapping[Kernel, str], target: Target | GpuTarget) -> Iterator[Step]:
    """The rows of a profile: every step, and those inside it behind it, in the order of `walk_steps`."""
    efforts = {k: int(effort_of(k, target)) if isinstance(target, Target) else 0 for k in set(plan.kernels())}

    def rows(steps: Steps, depth: int) -> Iterator[Step]:
        for step in steps:
            kernel = step.kernel if isinstance(step, Launch) else None
            instruction = plan.instructions.get(step.name)
            nodes = sources_of(instruction) if kernel and instruction else []
            weights = {
                s.buffer: s.buffer.bytes
                for s in (() if nested(step) else slots_of(step))
                if s.buffer.space is Space.WEIGHTS
            }
            whole = 0 if nested(step) else sum(slot.buffer.bytes for slot in slots_of(step))
            moved = bytes_moved(step, instruction) if isinstance(step, Launch) else whole
            yield Step(
                name=step.name,
                op=step.opcode if isinstance(step, Launch) else _OPERATIONS[type(step)],
                source=str(step.node) if step.node else "",
                bytes=moved,
                flops=int(kernel.flops) if kernel else 0,
                depth=depth,
                kernel=symbols[kernel] if kernel else "",
                tasks=kernel.tasks if kernel else 0,
                effort=efforts[kernel] if kernel else 0,
                weight_bytes=min(sum(weights.values()), moved),
                also=tuple(str(node) for node in nodes if node != step.node),
            )
            for inner in nested(step):
                yield from rows(inner, depth + 1)

    return rows(plan.steps, 0)
