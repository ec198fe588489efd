"""From the plan to the program: each kernel of more than one instruction becomes a `fusion`."""

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.control_flow import Fusion
from onnxla.hlo.ops.structural import GetTupleElement
from onnxla.passes.fuse.kernels import FusionPlan, Kernel
from onnxla.passes.fuse.traits import is_scalar_constant


def emit_fusions(plan: FusionPlan) -> int:
    """Replace every kernel that holds more than its hero, or is of its own kind, by a fusion; how many were made."""
    made = 0
    for kernel in dict.fromkeys(plan.owner.values()):
        if kernel.size > 1 or kernel.kind == "kCustom":
            _emit(plan, kernel)
            made += 1
    return made


def _emit(plan: FusionPlan, kernel: Kernel) -> None:
    outputs = plan.outputs(kernel)
    operands: dict[Instruction, Instruction] = {}
    hero = kernel.hero
    body = Builder(f"fused_{hero.op.opcode.replace('-', '_')}", hero.source)
    clones: dict[Instruction, Instruction] = {}
    for instruction in _inside(kernel, outputs):
        arguments = []
        for operand in instruction.operands:
            if operand not in clones:
                # not computed inside, so it comes in
                clones[operand] = operands[operand] = body.parameter(operand.type, operand.name)
            arguments.append(clones[operand])
        clone = Instruction(instruction.op, arguments, name=instruction.name, source=instruction.source)
        clones[instruction] = clone
    roots = [clones[o] for o in outputs]
    computation = body.build(roots[0] if len(roots) == 1 else body.tuple(*roots))
    source = outputs[-1].source or hero.source
    name = f"{hero.op.opcode}_fusion"
    fusion = Instruction(Fusion(kernel.kind, computation), list(operands), name=name, source=source)
    if len(outputs) == 1:
        plan.computation.replace(outputs[0], fusion)
        return
    for k, output in enumerate(outputs):
        element = Instruction(GetTupleElement(k), [fusion], name=output.name, source=output.source)
        plan.computation.replace(output, element)


def _inside(kernel: Kernel, outputs: list[Instruction]) -> list[Instruction]:
    """What the kernel computes, scalar constants among it, operands first."""
    order: dict[Instruction, None] = {}
    stack = [(output, False) for output in reversed(outputs)]
    while stack:
        instruction, expanded = stack.pop()
        if instruction in order:
            continue
        if expanded:
            order[instruction] = None
        elif instruction in kernel.members or instruction in kernel.copies or is_scalar_constant(instruction):
            stack.append((instruction, True))
            stack += [(o, False) for o in reversed(instruction.operands)]
    return list(order)
