"""The arena over time: which values lie where, from which step to which."""

from typing import Any

from onnxla.codegen.plan import Buffer, Plan, Space, Steps, WhileLoop, nested, slots_of


def memory_document(plan: Plan) -> dict[str, Any]:
    """Buffers as [value, first step, last step, offset, bytes], steps in the order of `walk_steps`; bytes in use."""
    spans: dict[Buffer, tuple[int, int]] = {}
    count = _walk(plan.steps, 0, spans)
    arena = sorted(((*span, b.place, b.bytes, b.name) for b, span in spans.items() if b.space is Space.ARENA))
    used = [0] * count
    for first, last, _, size, _ in arena:
        for k in range(first, last + 1):
            used[k] += size
    buffers = [[name, first, last, place, size] for first, last, place, size, name in arena]
    return {"steps": count, "bytes": plan.arena_bytes, "all": plan.intermediate_bytes, "buffers": buffers, "used": used}


def _walk(steps: Steps, number: int, spans: dict[Buffer, tuple[int, int]]) -> int:
    """Note the steps between which each buffer is used; returns the number of the next step.

    What a loop or branch uses and somebody before it too, and what a loop carries, is in use until it ends.
    """
    for step in steps:
        begin = number
        carried = {state.buffer for state in step.states} if isinstance(step, WhileLoop) else set()
        inner: dict[Buffer, tuple[int, int]] = {}
        number += 1
        for k, part in enumerate(nested(step)):
            number = _walk(part, number, inner)
            if isinstance(step, WhileLoop) and k == 0:
                _note(inner, step.predicate.buffer, number - 1, number - 1)
        if not isinstance(step, WhileLoop):
            for slot in slots_of(step):
                _note(inner, slot.buffer, begin, begin)
        for buffer, (first, last) in inner.items():
            whole = bool(nested(step)) and (buffer in spans or buffer in carried)
            _note(spans, buffer, begin if whole else first, number - 1 if whole else last)
        for buffer in carried:
            _note(spans, buffer, begin, number - 1)
    return number


def _note(spans: dict[Buffer, tuple[int, int]], buffer: Buffer, first: int, last: int) -> None:
    a, b = spans.get(buffer, (first, last))
    spans[buffer] = (min(a, first), max(b, last))
