"""Make the plan of a module: flatten it, find lifetimes, share memory, pack the arena, and write down the steps."""

from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.codegen.arena import Lifetime, live_bytes, pack_arena
from onnxla.codegen.buffers import Home, Timeline, assign_homes, in_place_pairs, lifetime_of, make_timeline
from onnxla.codegen.dataflow import Compute, Dataflow, Loop, Lower, Move, Region, Select, Value, build_dataflow, walk
from onnxla.codegen.lowering import Argument, KernelCall, Operand, Packed, Result, Table, Temporary
from onnxla.codegen.plan import (
    Access,
    Branch,
    BranchResult,
    Buffer,
    Copy,
    Launch,
    LoopState,
    Plan,
    Slot,
    Space,
    Step,
    Steps,
    WhileLoop,
    slots_of,
    walk_steps,
)
from onnxla.codegen.plan_verifier import verify_plan
from onnxla.codegen.weights import WeightsImage
from onnxla.errors import InternalError, SourceNode
from onnxla.hlo.module import Module
from onnxla.hlo.types import PRED


def make_plan(module: Module, lower: Lower, weights: WeightsImage) -> Plan:
    """The verified plan of an optimised module. Constants that its kernels read are added to `weights`."""
    dataflow = build_dataflow(module, lower)
    plan = _Planner(module.name, dataflow, weights).plan()
    verify_plan(plan)
    return plan


@dataclass(frozen=True)
class _Transfer:
    """One copy: `value` moves into `target`. `source` is where it lies, or None for a constant."""

    value: Value
    source: Home | None
    target: Home


class _Planner:
    def __init__(self, name: str, dataflow: Dataflow, weights: WeightsImage) -> None:
        self.name = name
        self.dataflow = dataflow
        self.weights = weights
        self.timeline: Timeline = make_timeline(dataflow)
        self.homes = assign_homes(dataflow, self.timeline)
        self.outputs = self.output_homes()
        self.transfers: dict[int, list[_Transfer]] = {}
        """Copies by position, in an order that never overwrites what a later one reads."""
        self.scratch: dict[tuple[Compute, int], Home] = {}
        self.buffers: dict[Home, Buffer] = {}

    def plan(self) -> Plan:
        homes = dict.fromkeys(self.homes.values())
        self.plan_transfers()
        for node in walk(self.dataflow.body):
            if isinstance(node, Compute):
                for index, size in enumerate(node.lowering.temporaries):
                    home = Home(Space.ARENA, size, written=[self.timeline.steps[node]])
                    self.scratch[node, index] = home
                    homes[home] = None
        homes.update(dict.fromkeys(t.target for moves in self.transfers.values() for t in moves))
        arena = [home for home in homes if home.space is Space.ARENA]
        lifetimes = [lifetime_of(home, self.timeline) for home in arena]
        packing = pack_arena(lifetimes)
        for home, life, offset in zip(arena, lifetimes, packing.offsets, strict=True):
            self.buffers[home] = self.buffer(home, life, offset)
        for home in homes:
            if home.space is not Space.ARENA:
                self.buffers[home] = self.buffer(home, lifetime_of(home, self.timeline), home.place)
        steps = (*self.steps(self.dataflow.body), *self.copies(self.timeline.end, "outputs", None))
        results = tuple(
            Slot(self.buffers[home], value.name)
            for home, value in zip(self.outputs, self.dataflow.outputs, strict=True)
        )
        return Plan(
            name=self.name,
            inputs=tuple(v.type for v in self.dataflow.inputs),
            outputs=tuple(self.dataflow.output_types),
            steps=steps,
            buffers=_in_use(steps, results),
            results=results,
            arena_bytes=packing.bytes,
            weights_bytes=self.weights.bytes,
            intermediate_bytes=sum(v.bytes for v in self.dataflow.values),
            live_bytes=live_bytes(lifetimes),
            instructions={node.name: node.instruction for node in walk(self.dataflow.body)},
        )

    def buffer(self, home: Home, life: Lifetime, place: int) -> Buffer:
        """The buffer of a home, named after the first value that lies in it."""
        first = min(home.members, key=self.timeline.first.__getitem__, default=None)
        name = first.name if first is not None else home.space.value
        return Buffer(name, home.space, place, home.bytes, life.first, life.last, home.alignment)

    # Copies

    def output_homes(self) -> list[Home]:
        """The home of each model output: a value's own, where it was given to that output."""
        homes = []
        for number, (value, type) in enumerate(zip(self.dataflow.outputs, self.dataflow.output_types, strict=True)):
            home = self.homes.get(value)
            if home is None or home.space is not Space.OUTPUT or home.place != number:
                home = Home(Space.OUTPUT, type.bytes, number, written=[self.timeline.end], alignment=type.element.bytes)
            homes.append(home)
        return homes

    def plan_transfers(self) -> None:
        for node in walk(self.dataflow.body):
            if isinstance(node, Loop):
                times = self.timeline.loops[node]
                self.transfer(times.enter, [(s.init, self.homes[s.parameter]) for s in node.states])
                self.transfer(times.turned, [(s.root, self.homes[s.parameter]) for s in node.states])
            elif isinstance(node, Select):
                for end, values in zip(self.timeline.selects[node].ends, node.case_values, strict=True):
                    targets = [self.homes[r] for r in node.results]
                    self.transfer(end, list(zip(values, targets, strict=True)))
        self.transfer(self.timeline.end, list(zip(self.dataflow.outputs, self.outputs, strict=True)))

    def transfer(self, position: int, wishes: Sequence[tuple[Value, Home]]) -> None:
        """Plan the copies that are needed at `position`, all at once in effect, one by one in fact."""
        waiting = [_Transfer(v, self.homes.get(v), home) for v, home in wishes if self.homes.get(v) is not home]
        done = self.transfers.setdefault(position, [])
        while waiting:
            read = {t.source for t in waiting}
            ready = next((t for t in waiting if t.target not in read), None)
            if ready is None:
                # Every target is still to be read: a cycle. Save what the first one would overwrite.
                blocked = waiting[0].target
                value = next(t.value for t in waiting if t.source is blocked)
                saved = Home(Space.ARENA, blocked.bytes, written=[position])
                done.append(_Transfer(value, blocked, saved))
                waiting = [_Transfer(t.value, saved, t.target) if t.source is blocked else t for t in waiting]
                continue
            waiting.remove(ready)
            ready.target.written.append(position)
            done.append(ready)

    def copies(self, position: int, name: str, node: SourceNode | None) -> Steps:
        return tuple(
            Copy(f"{name}:copy", node, self.slot(t.value, t.source), Slot(self.buffers[t.target], t.value.name))
            for t in self.transfers.get(position, ())
            if t.value.bytes
        )

    # Steps

    def steps(self, region: Region) -> Steps:
        return tuple(step for node in region for step in self.steps_of(node))

    def steps_of(self, node: Compute | Move | Loop | Select) -> Steps:
        if isinstance(node, Compute):
            launches = (self.launch(node, part, call) for part, call in enumerate(node.lowering.calls))
            return (*self.starting_copies(node), *launches)
        if isinstance(node, Loop):
            return self.loop(node)
        if isinstance(node, Select):
            return (self.branch(node),)
        source, target = self.slot(node.source), self.slot(node.result)
        return (Copy(node.name, node.instruction.source, source, target),) if node.result.bytes else ()

    def starting_copies(self, node: Compute) -> Steps:
        """The operands that `node` updates in place, copied to where it does unless they lie there."""
        pairs = ((node.operands[index][0], node.results[leaf]) for index, leaf in node.lowering.copies)
        return tuple(
            Copy(f"{node.name}:copy", node.instruction.source, self.slot(operand), self.slot(result))
            for operand, result in pairs
            if self.homes.get(operand) is not self.homes[result] and result.bytes
        )

    def launch(self, node: Compute, part: int, call: KernelCall) -> Launch:
        if len(call.arguments) != len(call.kernel.parameters):
            raise InternalError(
                f"{node.name}: kernel {call.kernel.name} has {len(call.kernel.parameters)} parameters "
                f"and is given {len(call.arguments)}"
            )
        placed = [self.argument(node, argument) for argument in call.arguments]
        others = [self.argument(node, argument) for argument in call.library.arguments] if call.library else []
        return Launch(
            node.name,
            node.instruction.op.opcode,
            node.instruction.source,
            call.kernel,
            tuple(slot for slot, _ in placed),
            tuple(access for _, access in placed),
            tuple(dict.fromkeys((old.name, new.name) for old, new in in_place_pairs(node))),
            part,
            call.library,
            tuple(slot for slot, _ in others),
            tuple(access for _, access in others),
        )

    def argument(self, node: Compute, argument: Argument) -> tuple[Slot, Access]:
        if isinstance(argument, Operand):
            return self.slot(node.operands[argument.index][argument.leaf]), Access.READ
        if isinstance(argument, Result):
            return self.slot(node.results[argument.leaf]), Access.WRITE
        if isinstance(argument, Temporary):
            name = f"{node.name}:temporary:{argument.index}"
            return Slot(self.buffers[self.scratch[node, argument.index]], name), Access.SCRATCH
        if isinstance(argument, Table):
            return _weight(f"{node.name}:table", self.weights.add_table(argument.array)), Access.READ
        return self.packed(node, argument), Access.READ

    def packed(self, node: Compute, argument: Packed) -> Slot:
        (value,) = node.operands[argument.index]
        if value.literal is None:
            raise InternalError(f"{node.name}: operand {argument.index} is to be packed and is not a constant")
        type = node.instruction.operands[argument.index].tensor_type
        place = self.weights.add_packed(value.literal, type, argument.packing, argument.pack)
        return _weight(f"{value.name}:{argument.packing}", place)

    def loop(self, node: Loop) -> Steps:
        times, source = self.timeline.loops[node], node.instruction.source
        states = tuple(
            LoopState(self.buffers[self.homes[s.parameter]], s.init.name, s.parameter.name, s.root.name, s.result.name)
            for s in node.states
        )
        body = (*self.steps(node.body), *self.copies(times.turned, node.name, source))
        condition, predicate = self.steps(node.condition), self.slot(node.predicate)
        loop = WhileLoop(node.instruction, node.name, source, states, condition, predicate, body)
        return (*self.copies(times.enter, node.name, source), loop)

    def branch(self, node: Select) -> Branch:
        times, source = self.timeline.selects[node], node.instruction.source
        cases = tuple(
            (*self.steps(case), *self.copies(end, node.name, source))
            for case, end in zip(node.cases, times.ends, strict=True)
        )
        results = tuple(
            BranchResult(self.buffers[self.homes[r]], tuple(v[k].name for v in node.case_values), r.name)
            for k, r in enumerate(node.results)
        )
        is_pred = node.instruction.operands[0].tensor_type.element is PRED
        return Branch(node.name, source, self.slot(node.index), is_pred, cases, results)

    def slot(self, value: Value, home: Home | None = None) -> Slot:
        """Where `value` lies (in `home`, if given); a constant is stored with the weights when it is first read."""
        if value.literal is not None and home is None:
            return _weight(value.name, self.weights.add(value.literal))
        return Slot(self.buffers[home or self.homes[value]], value.name)


def _weight(name: str, place: tuple[int, int]) -> Slot:
    return Slot(Buffer(name, Space.WEIGHTS, *place), name)


def _in_use(steps: Sequence[Step], results: Sequence[Slot]) -> tuple[Buffer, ...]:
    used = [slot.buffer for step in walk_steps(steps) for slot in slots_of(step)]
    return tuple(dict.fromkeys([*used, *(slot.buffer for slot in results)]))
