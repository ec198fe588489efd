"""The arena over time: which values lie where, from which step to which."""

from typing import Any

from onnxla.codegen.plan import Buffer, Plan, Space, Steps, nested, slots_of


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

    What a loop uses and somebody outside uses too is in use through all of its rounds.
    """
    for step in steps:
        begin = number
        inner: dict[Buffer, tuple[int, int]] = {}
        for slot in slots_of(step):
            _note(inner, slot.buffer, begin, begin)
        number += 1
        outside = set(spans)
        for part in nested(step):
            number = _walk(part, number, inner)
        for buffer, (first, last) in inner.items():
            whole = nested(step) and (buffer in outside or first == begin)
            _note(spans, buffer, begin if whole else first, number - 1 if whole else last)
    return number


def _note(spans: dict[Buffer, tuple[int, int]], buffer: Buffer, first: int, last: int) -> None:
    a, b = spans.get(buffer, (first, last))
    spans[buffer] = (min(a, first), max(b, last))
