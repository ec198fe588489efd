"""Measure the ways to compute one instruction, in compiled code on this machine.

One plan holds them all, one behind the other. Before each way the operands are written, as the kernel before would have
done, and other memory is, so that weights come from where they come from in a model: the rest of a large one has taken
the caches. Ways take turns, so that whatever else the machine does meets all of them.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from onnxla import watch
from onnxla.codegen.arena import aligned
from onnxla.codegen.choices import Site
from onnxla.codegen.cpu.compile_llvm import LAUNCH_LEVEL, compile_module
from onnxla.codegen.cpu.compile_parallel import compile_modules
from onnxla.codegen.cpu.emit_llvm import emitter
from onnxla.codegen.cpu.emit_plan import emit_plan
from onnxla.codegen.cpu.generate import distinct_functions, kernel_modules
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Kernel
from onnxla.codegen.lowering import Argument, KernelCall, Lowering, Operand, Packed, Result, Table, Temporary
from onnxla.codegen.plan import Access, Buffer, Launch, Plan, Slot, Space
from onnxla.codegen.weights import WeightsImage
from onnxla.errors import InternalError
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import F32, TensorType, TupleType
from onnxla.runtime.executable import Executable
from onnxla.runtime.profiler import new_profile, profile_of
from onnxla.runtime.program import Program, Step
from onnxla.runtime.tensors import Array
from onnxla.runtime.thread_pool_code import assemble_thread_pool

MOST_OTHER_BYTES = 64 << 20
"""Most memory that is written to take the caches from the weights."""
_TASKS = 32
_FIRST_ROUNDS, _LEAST_ROUNDS, _MOST_ROUNDS = 3, 9, 60
_CLOSE = 1.15
"""How much slower than the fastest a way may look in the first rounds to stay in the race."""
_SECONDS = 0.25
"""How long the further rounds of one instruction may take, beyond the least number of them."""


@dataclass(frozen=True)
class _Race:
    """One instruction's ways as a plan: which of its steps are the way, by its name."""

    plan: Plan
    weights: Array
    ways: dict[str, range]
    """The steps of each way, its preparations included, of which there are `preparations`."""
    preparations: int


def measure(sites: Sequence[Site], target: Target, threads: int, cold: bool, level: int) -> list[dict[str, float]]:
    """Seconds of each way, by name, for each of `sites`, which are compiled together.

    `cold` says that the model has more weights than the caches hold, so that they come from memory in each run.
    """
    with watch.span("", 0.0, 0.1):
        races = [_race(site, target, cold) for site in sites]
        found = [distinct_functions(race.plan, emitter(target)) for race in races]
    modules = [kernel_modules(list(functions.values()), target) for _, functions in found]
    with watch.span("", 0.1, 0.6):
        objects = iter(compile_modules([(text, level) for texts in modules for text in texts], target))
    times = []
    for k, (race, texts, (symbols, _)) in enumerate(zip(races, modules, found, strict=True)):
        with watch.span("", 0.6 + 0.4 * k / len(races), 0.6 + 0.4 * (k + 1) / len(races)):
            own = tuple(next(objects) for _ in texts)
            times.append(_Runner(race, own, symbols, target, threads).seconds())
    return times


class _Runner:
    """Runs ways of one race in turns."""

    def __init__(
        self, race: _Race, objects: tuple[bytes, ...], symbols: dict[Kernel, str], target: Target, threads: int
    ) -> None:
        self.race, self.objects, self.symbols = race, objects, symbols
        self.target, self.threads = target, threads

    def seconds(self) -> dict[str, float]:
        """First all ways; those that are close to the fastest more often; and who beats the model's own way meets it
        again, since the best of several measurements is partly the luckiest."""
        names = list(self.race.ways)
        own = names[0]
        times = self.rounds(names, _FIRST_ROUNDS)
        ratio = {name: _ratio(times[name], times[own]) for name in names}
        close = [n for n in names if n == own or ratio[n] <= _CLOSE * min(ratio.values())]
        if len(close) > 1:
            for name, further in self.rounds(close, self._affordable(times, close)).items():
                times[name] += further
            ratio |= {name: _ratio(times[name], times[own]) for name in close}
        met = {own}
        while (best := min(names, key=ratio.__getitem__)) not in met:
            met.add(best)
            again = self.rounds([own, best], self._affordable(times, [own, best]))
            ratio[best] = _ratio(again[best], again[own])
            times[own] += again[own]
        return {name: ratio[name] * typical(times[own]) for name in names}

    def _affordable(self, times: Mapping[str, Sequence[float]], names: Sequence[str]) -> int:
        one_round = sum(min(times[name]) for name in names)
        return int(min(max(_SECONDS / max(one_round, 1e-6), _LEAST_ROUNDS), _MOST_ROUNDS))

    def rounds(self, names: Sequence[str], count: int) -> dict[str, list[float]]:
        """The times of some ways, in turns, after one round that does not count."""
        steps = [k for name in names for k in self.race.ways[name]]
        plan = replace(self.race.plan, steps=tuple(self.race.plan.steps[k] for k in steps))
        run = self.program(plan)
        times: dict[str, list[float]] = {name: [] for name in names}
        for k in range(count + 1):
            watch.part_done(k / (count + 1))
            row = iter(run())
            for name in names:
                own = [next(row) for _ in self.race.ways[name]]
                if k:
                    times[name].append(sum(own[self.race.preparations :]))
        return times

    def program(self, plan: Plan) -> Callable[[], list[float]]:
        """A function that runs the plan once and gives the time of each step."""
        entry = compile_module(emit_plan(plan, self.symbols.__getitem__, self.target.triple), self.target, LAUNCH_LEVEL)
        program = Program(
            inputs=(),
            outputs=(),
            objects=(*self.objects, entry),
            thread_pool=assemble_thread_pool(self.target.triple),
            weights=self.race.weights,
            arena_bytes=plan.arena_bytes,
            steps=tuple(Step(s.name, "", "") for s in plan.steps),
            triple=self.target.triple,
            cpu=self.target.cpu,
            features=self.target.features,
        )
        executable = Executable(program)

        def run() -> list[float]:
            profile = new_profile(len(plan.steps))
            executable.run([], self.threads, profile=profile)
            return [row.seconds for row in profile_of(program.steps, profile).rows]

        return run


def typical(times: Sequence[float]) -> float:
    """The mean of the fastest quarter: what the code takes while nobody else has the core."""
    fast = sorted(times)[: -(-len(times) // 4)]
    return max(sum(fast) / len(fast), 1e-9)


def _ratio(times: Sequence[float], own: Sequence[float]) -> float:
    """How long a way takes compared with the model's own, in the same rounds: the median of what each of them says."""
    return statistics.median(t / max(o, 1e-9) for t, o in zip(times, own, strict=False))


def _race(site: Site, target: Target, cold: bool) -> _Race:
    image = WeightsImage()
    layout = _Layout(site.instruction, image, min(2 * target.l3_bytes, MOST_OTHER_BYTES) if cold else 0)
    lowerings = {way.name: way.lower() for way in site.ways}
    layout.reserve(lowerings.values())
    steps: list[Launch] = []
    ways = {}
    for number, (name, lowering) in enumerate(lowerings.items()):
        begin = len(steps)
        steps += layout.preparations(number)
        steps += [layout.launch(f"way{number}.{k}", call) for k, call in enumerate(lowering.calls)]
        ways[name] = range(begin, len(steps))
    plan = Plan("race", (), (), tuple(steps), (), (), layout.bytes, image.bytes)
    return _Race(plan, image.finish(), ways, len(layout.preparations(0)))


class _Layout:
    """Where the operands, results and temporaries of an instruction lie in the arena."""

    def __init__(self, instruction: Instruction, image: WeightsImage, other_bytes: int) -> None:
        self.instruction, self.image = instruction, image
        self.bytes = 0
        self.operands = [self._operand(o) for o in instruction.operands]
        kind = instruction.type
        leaves = kind.elements if isinstance(kind, TupleType) else (kind,)
        self.results = [self._arena("result", leaf.bytes) for leaf in leaves if isinstance(leaf, TensorType)]
        self.temporaries: list[Buffer] = []
        self.other = self._arena("other", other_bytes) if other_bytes else None
        written = [b for b in self.operands if b.space is Space.ARENA]
        self.fills = [(b, _fill(b.bytes)) for b in [*([self.other] if self.other else []), *written] if b.bytes >= 4]

    def reserve(self, lowerings: Iterable[Lowering]) -> None:
        """Room for the temporaries of any of the ways."""
        sizes: list[int] = []
        for lowering in lowerings:
            if lowering.copies:
                raise InternalError("a way that updates an operand in place cannot be measured")
            sizes = [max(pair) for pair in zip_longest(sizes, lowering.temporaries, fillvalue=0)]
        self.temporaries = [self._arena(f"temporary{k}", size) for k, size in enumerate(sizes)]

    def preparations(self, number: int) -> list[Launch]:
        """Other memory, then the operands, are written."""
        return [
            Launch(f"prepare{number}.{k}", "prepare", None, kernel, (Slot(buffer, buffer.name),), (Access.WRITE,))
            for k, (buffer, kernel) in enumerate(self.fills)
        ]

    def launch(self, name: str, call: KernelCall) -> Launch:
        placed = [self._place(argument) for argument in call.arguments]
        slots = tuple(Slot(buffer, buffer.name) for buffer, _ in placed)
        return Launch(name, "way", None, call.kernel, slots, tuple(access for _, access in placed))

    def _operand(self, operand: Instruction) -> Buffer:
        if isinstance(operand.op, Constant):
            return Buffer("weight", Space.WEIGHTS, *self.image.add(operand.op.literal))
        return self._arena("operand", operand.tensor_type.bytes)

    def _arena(self, name: str, size: int) -> Buffer:
        buffer = Buffer(f"{name}.{self.bytes}", Space.ARENA, self.bytes, size)
        self.bytes += aligned(size)
        return buffer

    def _place(self, argument: Argument) -> tuple[Buffer, Access]:
        if isinstance(argument, Operand):
            return self.operands[argument.index], Access.READ
        if isinstance(argument, Result):
            return self.results[argument.leaf], Access.WRITE
        if isinstance(argument, Temporary):
            return self.temporaries[argument.index], Access.SCRATCH
        if isinstance(argument, Table):
            return Buffer("table", Space.WEIGHTS, *self.image.add_table(argument.array)), Access.READ
        assert isinstance(argument, Packed)
        operand = self.instruction.operands[argument.index]
        assert isinstance(operand.op, Constant)
        place = self.image.add_packed(operand.op.literal, operand.tensor_type, argument.packing, argument.pack)
        return Buffer("packed", Space.WEIGHTS, *place), Access.READ


def _fill(size: int) -> Kernel:
    """Write `size` bytes: numbers that are ordinary in every type."""
    count = size // 4
    share = -(-count // _TASKS)
    b = KernelBuilder("fill", _TASKS)
    out = b.parameter("out", F32, count, "output", 64)
    first = b.min(b.mul(b.task, b.const(share)), b.const(count))
    last = b.min(b.add(first, b.const(share)), b.const(count))
    whole = b.add(first, b.mul(b.div(b.sub(last, first), b.const(8)), b.const(8)))
    with b.loop(first, whole, 8) as loop:
        b.store(out, loop.index, b.const(0.5, F32, 8))
    with b.loop(whole, last) as loop:
        b.store(out, loop.index, b.const(0.5, F32))
    return b.finish()
