"""Check a plan without trusting how it was made: run it in thought, and see that each read finds what it expects.

Memory is a set of byte ranges, each holding a value by name. A write makes its range hold that value and forgets
whatever it overlaps; a read needs its exact range to hold the value named. A branch keeps what all its cases leave; a
loop is run until what survives a round no longer shrinks. Sizes, alignment, bounds and who may write are checked too.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NoReturn

from onnxla.codegen.plan import (
    Access,
    Branch,
    Buffer,
    Copy,
    Launch,
    Plan,
    Slot,
    Space,
    Step,
    WhileLoop,
)
from onnxla.errors import InternalError


def verify_plan(plan: Plan) -> None:
    """Raise InternalError, naming the step, unless every read of `plan` finds its value and every access is legal."""
    memory = _Memory()
    checker = _Checker(plan)
    checker.run(plan.steps, memory)
    for slot in plan.results:
        checker.read("the end of the program", slot, memory)


class _Memory:
    """What each range of the arena and of the outputs holds. Ranges of one space are disjoint and sorted."""

    def __init__(self) -> None:
        self.starts: dict[tuple[Space, int], list[int]] = {}
        self.holds: dict[tuple[Space, int], dict[int, tuple[int, str]]] = {}

    def copy(self) -> "_Memory":
        other = _Memory()
        other.starts = {key: list(starts) for key, starts in self.starts.items()}
        other.holds = {key: dict(holds) for key, holds in self.holds.items()}
        return other

    def write(self, buffer: Buffer, value: str) -> None:
        if not buffer.bytes:
            return
        area, start = _area(buffer)
        starts, holds = self.starts.setdefault(area, []), self.holds.setdefault(area, {})
        end = start + buffer.bytes
        low = bisect_left(starts, start)
        if low and holds[starts[low - 1]][0] > start:
            low -= 1
        high = bisect_left(starts, end)
        for dead in starts[low:high]:
            del holds[dead]
        starts[low:high] = [start]
        holds[start] = (end, value)

    def value(self, buffer: Buffer) -> str | None:
        """What the exact range of `buffer` holds, None when nothing or only a part."""
        area, start = _area(buffer)
        end, value = self.holds.get(area, {}).get(start, (-1, ""))
        return value if end == start + buffer.bytes else None

    def keep_common(self, other: "_Memory") -> bool:
        """Forget what `other` does not hold as well; whether anything was forgotten."""
        changed = False
        for area, holds in self.holds.items():
            for start in [s for s, held in holds.items() if other.holds.get(area, {}).get(s) != held]:
                del holds[start]
                self.starts[area].remove(start)
                changed = True
        return changed


def _area(buffer: Buffer) -> tuple[tuple[Space, int], int]:
    """The space (each input and output is one) and the first byte in it."""
    if buffer.space in (Space.INPUT, Space.OUTPUT):
        return (buffer.space, buffer.place), 0
    return (buffer.space, 0), buffer.place


def _overlap(a: Buffer, b: Buffer) -> bool:
    (area, start), (other, begin) = _area(a), _area(b)
    return area == other and start < begin + b.bytes and begin < start + a.bytes


class _Checker:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def run(self, steps: Sequence[Step], memory: _Memory) -> None:
        position = 0
        while position < len(steps):
            step = steps[position]
            if isinstance(step, Launch):
                group = [step]
                for following in steps[position + 1 :]:
                    if not (isinstance(following, Launch) and following.name == step.name and following.part):
                        break
                    group.append(following)
                self.launches(group, memory)
                position += len(group)
                continue
            if isinstance(step, Copy):
                self.copy(step, memory)
            elif isinstance(step, WhileLoop):
                self.loop(step, memory)
            else:
                self.branch(step, memory)
            position += 1

    def launches(self, group: Sequence[Launch], memory: _Memory) -> None:
        """The launches of one instruction: operands are read before, or where, results are written."""
        for launch in group:
            for slot, access in launch.accesses.items():
                if access is Access.READ:
                    self.read(launch.name, slot, memory)
                else:
                    self.may_write(launch.name, slot)
            for slot, access, parameter in zip(launch.arguments, launch.access, launch.kernel.parameters, strict=True):
                if slot.buffer.bytes < parameter.bytes:
                    self.fail(launch.name, f"{slot} is smaller than parameter {parameter}")
                if parameter.alignment > slot.buffer.alignment:
                    self.fail(launch.name, f"{slot} is not aligned to {parameter.alignment} as {parameter} needs")
                if parameter.role == "input" and access is Access.WRITE:
                    self.fail(launch.name, f"the result {slot} is parameter {parameter}, which is only read")
        written = {s for launch in group for s, access in launch.accesses.items() if access is not Access.READ}
        self.disjoint(group[0].name, written)
        for launch in group:
            for slot in {s for s, a in launch.accesses.items() if a is Access.READ}:
                rivals = [w for w in written if _overlap(w.buffer, slot.buffer)]
                if any(w.buffer != slot.buffer or (slot.value, w.value) not in launch.in_place for w in rivals):
                    self.fail(launch.name, f"reads {slot} where it writes {rivals[0]}")
        for slot in sorted(written, key=str):
            memory.write(slot.buffer, slot.value)

    def copy(self, step: Copy, memory: _Memory) -> None:
        self.may_write(step.name, step.target)
        if step.source.buffer.space is not Space.INPUT:
            self.read(step.name, step.source, memory)
        if step.source.buffer.bytes != step.target.buffer.bytes:
            self.fail(step.name, f"copies {step.source} to {step.target} of another size")
        self.disjoint(step.name, {step.source, step.target})
        memory.write(step.target.buffer, step.target.value)

    def loop(self, step: WhileLoop, memory: _Memory) -> None:
        for state in step.states:
            self.read(step.name, Slot(state.buffer, state.init), memory)
        for state in step.states:
            memory.write(state.buffer, state.parameter)
        while True:
            turn = memory.copy()
            self.run(step.condition, turn)
            self.read(step.name, step.predicate, turn)
            leaving = turn.copy()
            for state in step.states:
                self.read(f"{step.name}, leaving", Slot(state.buffer, state.parameter), turn)
            self.run(step.body, turn)
            for state in step.states:
                self.read(f"{step.name}, next round", Slot(state.buffer, state.root), turn)
            for state in step.states:
                turn.write(state.buffer, state.parameter)
            if not memory.keep_common(turn):
                break
        memory.starts, memory.holds = leaving.starts, leaving.holds
        for state in step.states:
            memory.write(state.buffer, state.result)

    def branch(self, step: Branch, memory: _Memory) -> None:
        self.read(step.name, step.index, memory)
        after = []
        for number, case in enumerate(step.cases):
            inside = memory.copy()
            self.run(case, inside)
            for result in step.results:
                self.read(f"{step.name}, case {number}", Slot(result.buffer, result.cases[number]), inside)
            for result in step.results:
                inside.write(result.buffer, result.result)
            after.append(inside)
        memory.starts, memory.holds = after[0].starts, after[0].holds
        for other in after[1:]:
            memory.keep_common(other)

    def read(self, step: str, slot: Slot, memory: _Memory) -> None:
        buffer = slot.buffer
        self.in_bounds(step, slot)
        if buffer.space in (Space.INPUT, Space.WEIGHTS) or buffer.bytes == 0:
            return
        held = memory.value(buffer)
        if held != slot.value:
            self.fail(step, f"reads {slot}, where {'nothing' if held is None else '%' + held} is")

    def may_write(self, step: str, slot: Slot) -> None:
        self.in_bounds(step, slot)
        if slot.buffer.space in (Space.INPUT, Space.WEIGHTS):
            self.fail(step, f"writes {slot}, which is only to be read")

    def in_bounds(self, step: str, slot: Slot) -> None:
        buffer = slot.buffer
        if buffer.space in (Space.INPUT, Space.OUTPUT):
            types = self.plan.inputs if buffer.space is Space.INPUT else self.plan.outputs
            legal = 0 <= buffer.place < len(types) and buffer.bytes <= types[buffer.place].bytes
        else:
            size = self.plan.arena_bytes if buffer.space is Space.ARENA else self.plan.weights_bytes
            legal = 0 <= buffer.place and buffer.place + buffer.bytes <= size and buffer.place % 64 == 0
        if not legal:
            self.fail(step, f"{slot} is outside its memory")

    def disjoint(self, step: str, slots: set[Slot]) -> None:
        """Buffers that one step writes must not overlap each other (a copy: nor what it reads)."""
        by_area: dict[tuple[Space, int], list[tuple[int, int, Slot]]] = {}
        for buffer, slot in {s.buffer: s for s in slots}.items():
            area, start = _area(buffer)
            if buffer.bytes and buffer.space is not Space.INPUT:
                by_area.setdefault(area, []).append((start, start + buffer.bytes, slot))
        for ranges in by_area.values():
            ranges.sort(key=lambda r: r[:2])
            for (_, end, first), (start, _, second) in zip(ranges, ranges[1:], strict=False):
                if start < end:
                    self.fail(step, f"{first} and {second} overlap")

    def fail(self, step: str, message: str) -> NoReturn:
        raise InternalError(f"plan {self.plan.name}: {step}: {message}")
