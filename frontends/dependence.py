"""Why a value is not known while compiling: the chain from it back to graph inputs."""

from collections import deque
from typing import Protocol

from onnxla.errors import DynamicShapeError, Problem, SourceNode
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.structural import Constant, Iota

SPECIALISABLE_ELEMENTS = 4096
"""An input is offered for specialisation on its value up to this size; an image never decides a shape that way."""

_LONGEST_CHAIN = 12


class Provenance(Protocol):
    """What an import knows of where values come from."""

    input_names: dict[Instruction, str]
    """The graph inputs by parameter of the entry computation."""
    origins: dict[Instruction, Instruction]
    """Where a parameter of a body gets its value: an instruction of the computation around."""
    varying: dict[Instruction, str]
    """Parameters of loop bodies that change from one iteration to the next, and the words for it."""


def sources_of(session: Provenance, instruction: Instruction) -> tuple[list[Instruction], list[Instruction]]:
    """The unknown values that `instruction` is computed from (graph inputs and loop variables), nearest
    first, and the path of instructions from the nearest one to `instruction`."""
    came_from: dict[Instruction, Instruction | None] = {instruction: None}
    queue = deque([instruction])
    sources: list[Instruction] = []
    while queue:
        current = queue.popleft()
        if current in session.input_names or current in session.varying:
            sources.append(current)
            continue
        origin = session.origins.get(current)
        for operand in (origin,) if origin is not None else current.operands:
            if operand not in came_from:
                came_from[operand] = current
                queue.append(operand)
    path: list[Instruction] = []
    step: Instruction | None = sources[0] if sources else None
    while step is not None:
        path.append(step)
        step = came_from[step]
    return sources, path


def chain_text(session: Provenance, path: list[Instruction]) -> str:
    """`k (input) -> /Cast -> /Concat`: the path by its source nodes, the middle of a long one left out."""
    words: list[str] = []
    for instruction in path:
        if instruction in session.input_names:
            words.append(f"{session.input_names[instruction]} (input)")
        elif instruction in session.varying:
            words.append(session.varying[instruction])
        elif instruction.source is not None and words[-1:] != [instruction.source.name]:
            words.append(instruction.source.name)
    if len(words) > _LONGEST_CHAIN:
        middle = f"({len(words) - _LONGEST_CHAIN} more)"
        words = [*words[: _LONGEST_CHAIN // 2], middle, *words[-_LONGEST_CHAIN // 2 :]]
    return " -> ".join(words)


def blame(session: Provenance, instruction: Instruction, role: str, source: SourceNode) -> Problem:
    """The problem that `instruction`, which plays `role` at the node `source`, is not known while compiling."""
    sources, path = sources_of(session, instruction)
    names = tuple(session.input_names[s] for s in sources if s in session.input_names)
    chain = (("chain", f"{chain_text(session, path)} -> {source.name}"),) if path else ()
    loops = [session.varying[s] for s in sources if s in session.varying]
    if not sources:
        if _only_constants(instruction):
            cause = f"{role} is constant, but beyond the folding budget"
            hint = "raise folding_bytes or folding_seconds in the options"
        else:
            cause, hint = f"{role} decides a shape and is computed at run time", "make it a constant"
        return Problem(DynamicShapeError, cause, source, chain, hint)
    if loops:
        cause = f"{role} decides a shape and changes with {loops[0]}"
        return Problem(DynamicShapeError, cause, source, chain, "make the shapes in the loop's body the same each time")
    cause = f"{role} decides a shape and depends on the value of {', '.join(names)}"
    small = all(s.tensor_type.size <= SPECIALISABLE_ELEMENTS for s in sources)
    given = ", ".join(f'"{name}": ...' for name in names)
    hint = (
        f"give the value while compiling, constants={{{given}}}, or leave it to the first run"
        if small
        else "make it a constant, or export the model with a fixed shape"
    )
    return Problem(DynamicShapeError, cause, source, chain, hint, needs_constants=names if small else ())


def _only_constants(instruction: Instruction) -> bool:
    stack, seen = [instruction], {instruction}
    while stack:
        current = stack.pop()
        if not current.operands and not isinstance(current.op, (Constant, Iota)):
            return False
        new = [o for o in current.operands if o not in seen]
        seen.update(new)
        stack += new
    return True
