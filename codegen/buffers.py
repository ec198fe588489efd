"""Buffer assignment: which values share one piece of memory, and for how long each piece is in use.

Every value has a lifetime on one line of positions, where the steps inside loops and branches count too. A `Home` is
memory for a set of values whose lifetimes do not meet. Homes are joined, in this order:

    a loop state's value in a round and its final value            always: it is one buffer
    a value and the model output it becomes                        so outputs are written where the caller wants them
    a loop state and the value a round leaves for it               so that no copy closes the round
    a loop state and its initial value; a case's value and the branch's result
    an operand and a result that may overwrite it                  as `Lowering.in_place` and `copies` allow

A join that would let two live values meet is refused; where the values must still flow, the plan copies.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from onnxla.codegen.arena import Lifetime
from onnxla.codegen.dataflow import Compute, Dataflow, Loop, Move, Node, Region, Select, Value, walk
from onnxla.codegen.plan import Space


@dataclass(frozen=True)
class LoopTimes:
    """Positions of a loop: entry, end of the condition, end of a round, exit."""

    enter: int
    checked: int
    turned: int
    leave: int


@dataclass(frozen=True)
class SelectTimes:
    """Positions of a branch: reading the index, the end of each case, the join."""

    enter: int
    ends: tuple[int, ...]
    join: int


@dataclass
class Timeline:
    """When each node runs and each value is alive."""

    first: dict[Value, int] = field(default_factory=dict)
    last: dict[Value, int] = field(default_factory=dict)
    steps: dict[Node, int] = field(default_factory=dict)
    loops: dict[Loop, LoopTimes] = field(default_factory=dict)
    selects: dict[Select, SelectTimes] = field(default_factory=dict)
    end: int = 0


@dataclass(eq=False)
class Home:
    """Memory that its members use in turn."""

    space: Space
    bytes: int
    place: int = 0
    """The number of the input or output it is."""
    members: list[Value] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    """Positions of copies into it, besides its members' lifetimes."""
    alignment: int = 64
    """The start is a multiple of this."""


Handover = set[tuple[Value, Value]]
"""Pairs (old, new): `new` may start in the memory of `old` at the very position where `old` ends."""


def make_timeline(dataflow: Dataflow) -> Timeline:
    """Number all positions, find every lifetime. What a loop reads from outside lives until the loop ends."""
    return _Clock(dataflow).timeline


def assign_homes(dataflow: Dataflow, timeline: Timeline) -> dict[Value, Home]:
    """A home for every value that the program computes, and for every input."""
    joiner = _Joiner(timeline)
    for number, value in enumerate(dataflow.inputs):
        joiner.homes[value] = Home(Space.INPUT, value.bytes, number, [value], alignment=value.type.element.bytes)
    for value in dataflow.values:
        joiner.homes[value] = Home(Space.ARENA, value.bytes, members=[value])
    nodes = list(walk(dataflow.body))
    loops = [n for n in nodes if isinstance(n, Loop)]
    selects = [n for n in nodes if isinstance(n, Select)]
    pairs = [pair for n in nodes if isinstance(n, Compute) for pair in in_place_pairs(n)]
    joiner.handover = {*pairs, *((s.init, s.parameter) for loop in loops for s in loop.states)}
    for loop in loops:
        for state in loop.states:
            joiner.join(state.parameter, state.result)
    for number, (value, type) in enumerate(zip(dataflow.outputs, dataflow.output_types, strict=True)):
        joiner.make_output(value, number, type.element.bytes)
    for loop in loops:
        for state in loop.states:
            joiner.join(state.root, state.parameter)
    for loop in loops:
        for state in loop.states:
            joiner.join(state.init, state.parameter)
    for select in selects:
        for values in select.case_values:
            for value, result in zip(values, select.results, strict=True):
                joiner.join(value, result)
    for operand, result in reversed(pairs):
        joiner.join(operand, result)
    return joiner.homes


def lifetime_of(home: Home, timeline: Timeline) -> Lifetime:
    """From the first to the last position at which the home is in use."""
    first = min([*(timeline.first[v] for v in home.members), *home.written])
    last = max([*(timeline.last[v] for v in home.members), *home.written])
    return Lifetime(first, last, home.bytes)


def in_place_pairs(node: Compute) -> Iterator[tuple[Value, Value]]:
    """Pairs (operand, result) that may share memory: every use of the operand in the node must allow it.

    A result that starts as a copy of an operand shares with no other operand: the copy would destroy it unread.
    An update of nothing launches no kernel; the copy alone makes its result.
    """
    if not node.lowering.calls:
        return
    started = {leaf for _, leaf in node.lowering.copies}
    allowed = (*(p for p in node.lowering.in_place if p[1] not in started), *node.lowering.copies)
    for index, leaf in allowed:
        operand = node.operands[index][0]
        uses = [k for k, leaves in enumerate(node.operands) if operand in leaves]
        if len(node.operands[index]) == 1 and all((k, leaf) in allowed for k in uses):
            yield operand, node.results[leaf]


class _Joiner:
    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.homes: dict[Value, Home] = {}
        self.handover: Handover = set()

    def make_output(self, value: Value, number: int, alignment: int) -> None:
        """Let the home of `value` be output `number`, if it is still free to be anywhere."""
        home = self.homes.get(value)
        if home is not None and home.space is Space.ARENA and value.type.element.bytes <= alignment:
            home.space, home.place, home.alignment = Space.OUTPUT, number, alignment

    def join(self, a: Value, b: Value) -> None:
        """Let `a` and `b` share a home, if all of their homes' members can."""
        ours, theirs = self.homes.get(a), self.homes.get(b)
        if ours is None or theirs is None or ours is theirs or ours.bytes != theirs.bytes:
            return
        if ours.space is not Space.ARENA:
            ours, theirs = theirs, ours
        if ours.space is not Space.ARENA or theirs.space is Space.INPUT:
            return
        if any(v.type.element.bytes > theirs.alignment for v in ours.members):
            return
        if any(self.meet(x, y) for x in ours.members for y in theirs.members):
            return
        theirs.members += ours.members
        for value in ours.members:
            self.homes[value] = theirs

    def meet(self, x: Value, y: Value) -> bool:
        """Whether the two are alive at the same time, beyond one handing its memory over to the other."""
        first, last = self.timeline.first, self.timeline.last
        if last[x] < first[y] or last[y] < first[x]:
            return False
        if last[x] == first[y] and (x, y) in self.handover:
            return False
        return not (last[y] == first[x] and (y, x) in self.handover)


class _Clock:
    """Walks the program once, in order."""

    def __init__(self, dataflow: Dataflow) -> None:
        self.timeline = Timeline()
        self.now = 0
        self.captured: list[set[Value]] = []
        """For each open loop, the values that it reads from outside."""
        self.depth: dict[Value, int] = {}
        for value in dataflow.inputs:
            self.define(value, 0)
        self.region(dataflow.body)
        self.timeline.end = self.tick()
        self.use(dataflow.outputs, self.timeline.end)

    def tick(self) -> int:
        self.now += 1
        return self.now

    def define(self, value: Value, position: int) -> None:
        self.timeline.first[value] = self.timeline.last[value] = position
        self.depth[value] = len(self.captured)

    def use(self, values: Sequence[Value], position: int) -> None:
        for value in values:
            if value.literal is None:
                self.timeline.last[value] = max(self.timeline.last[value], position)
                if self.depth[value] < len(self.captured):
                    self.captured[self.depth[value]].add(value)

    def region(self, region: Region) -> None:
        for node in region:
            if isinstance(node, Loop):
                self.loop(node)
            elif isinstance(node, Select):
                self.select(node)
            else:
                self.step(node)

    def step(self, node: Compute | Move) -> None:
        position = self.timeline.steps[node] = self.tick()
        if isinstance(node, Move):
            self.use([node.source], position)
            self.define(node.result, position)
            return
        self.use([leaf for operand in node.operands for leaf in operand], position)
        for result in node.results:
            self.define(result, position)

    def loop(self, loop: Loop) -> None:
        enter = self.tick()
        self.use([s.init for s in loop.states], enter)
        self.captured.append(set())
        for state in loop.states:
            self.define(state.parameter, enter)
        self.region(loop.condition)
        checked = self.tick()
        # A final value is what the state holds when the condition has been checked.
        self.use([loop.predicate, *(s.parameter for s in loop.states)], checked)
        self.region(loop.body)
        turned = self.tick()
        self.use([s.root for s in loop.states], turned)
        leave = self.tick()
        for value in self.captured.pop():
            self.timeline.last[value] = leave
        for state in loop.states:
            self.define(state.result, leave)
        self.timeline.loops[loop] = LoopTimes(enter, checked, turned, leave)

    def select(self, select: Select) -> None:
        enter = self.tick()
        self.use([select.index], enter)
        ends = []
        for case, values in zip(select.cases, select.case_values, strict=True):
            self.region(case)
            ends.append(self.tick())
            self.use(values, ends[-1])
        join = self.tick()
        for result in select.results:
            self.define(result, join)
        self.timeline.selects[select] = SelectTimes(enter, tuple(ends), join)
