"""The plan: which kernels run, in what order, over which memory. Everything that happens at run time is in here.

    launch   run a kernel's tasks, in any order and on any threads
    copy     bytes from one buffer to another
    loop     condition steps, a pred buffer, body steps
    branch   an index buffer, the steps of each case

A step follows the one before when that one has ended. Each keeps its HLO instruction's name and the node of the
user's model. The CPU target prints a plan as one native function, a GPU target as a launch list; profiles, memory
reports and `inspect` read it as it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from onnxla.codegen.kernels.ir import Kernel
from onnxla.codegen.lowering import LibraryCall
from onnxla.errors import SourceNode, harmless_line
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import TensorType


class Space(Enum):
    """Where a buffer lies."""

    INPUT = "input"
    """Input `place` of the model, the caller's memory; never written. Aligned to its element only."""
    OUTPUT = "output"
    """Output `place` of the model, the caller's memory. Aligned to its element only."""
    WEIGHTS = "weights"
    """Byte `place` of the weights; never written. Aligned to 64."""
    ARENA = "arena"
    """Byte `place` of the scratch memory of one run. Aligned to 64."""


@dataclass(frozen=True)
class Buffer:
    """A range of memory and the steps between which it is in use (positions count nested steps too)."""

    name: str
    space: Space
    place: int
    bytes: int
    first: int = 0
    last: int = 0
    alignment: int = 64

    def __str__(self) -> str:
        if self.space in (Space.INPUT, Space.OUTPUT):
            return f"{self.space.value}[{self.place}]"
        return f"{self.space.value}+{self.place}[{self.bytes}]"


@dataclass(frozen=True)
class Slot:
    """A buffer at a moment when it holds (or receives) the value of that name; several may share one in turn."""

    buffer: Buffer
    value: str

    def __str__(self) -> str:
        return f"%{self.value}@{self.buffer}"


class Access(Enum):
    """What a launch does with an argument."""

    READ = "read"
    WRITE = "write"
    SCRATCH = "scratch"
    """Written and read inside one instruction, by its own launches."""


@dataclass(frozen=True)
class Launch:
    """Run `kernel` over `arguments`, one for each of its parameters."""

    name: str
    opcode: str
    node: SourceNode | None
    kernel: Kernel
    arguments: tuple[Slot, ...]
    access: tuple[Access, ...]
    in_place: tuple[tuple[str, str], ...] = ()
    """Pairs of values (read, written) that may be the same memory."""
    part: int = 0
    """Which of the calls of its instruction it is; they follow each other."""
    library: LibraryCall | None = None
    """What may be done in place of the kernel."""
    library_arguments: tuple[Slot, ...] = ()
    """Of `library.arguments`."""
    library_access: tuple[Access, ...] = ()

    @property
    def accesses(self) -> dict[Slot, Access]:
        """What the kernel, or the library in its place, does with memory."""
        slots = (*self.arguments, *self.library_arguments)
        return dict(zip(slots, (*self.access, *self.library_access), strict=True))


@dataclass(frozen=True)
class Copy:
    """Copy `target.buffer.bytes` bytes; the two buffers do not overlap."""

    name: str
    node: SourceNode | None
    source: Slot
    target: Slot


@dataclass(frozen=True)
class LoopState:
    """One buffer that a loop carries, and the names of what it holds: before, in a round, after a round, at the end."""

    buffer: Buffer
    init: str
    parameter: str
    root: str
    result: str


@dataclass(frozen=True)
class WhileLoop:
    """Run `condition`; while it leaves true in `predicate`, run `body` and `condition` again."""

    instruction: Instruction
    name: str
    node: SourceNode | None
    states: tuple[LoopState, ...]
    condition: "Steps"
    predicate: Slot
    body: "Steps"


@dataclass(frozen=True)
class BranchResult:
    """One buffer that every case of a branch leaves filled, and the name of what it holds after each and behind all."""

    buffer: Buffer
    cases: tuple[str, ...]
    result: str


@dataclass(frozen=True)
class Branch:
    """Run one of `cases`: a pred index takes case 0 when true; an s32 index out of range takes the last."""

    name: str
    node: SourceNode | None
    index: Slot
    index_is_pred: bool
    cases: tuple["Steps", ...]
    results: tuple[BranchResult, ...]


Step: TypeAlias = Launch | Copy | WhileLoop | Branch
Steps: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True)
class Plan:
    """A whole program. `steps` are the rows of its profile."""

    name: str
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    steps: Steps
    buffers: tuple[Buffer, ...]
    """Every buffer that a step uses, in order of first use."""
    results: tuple[Slot, ...]
    """The output buffers and the values they hold at the end."""
    arena_bytes: int
    weights_bytes: int
    intermediate_bytes: int = 0
    """Sum of the sizes of all values that the program computes: the memory a run without reuse would take."""
    live_bytes: int = 0
    """The most arena bytes in use at one step: no arena for this order is smaller."""
    instructions: Mapping[str, Instruction] = field(default_factory=dict, compare=False, repr=False)
    """What each step does, by the step's name; copies for other steps' sake have none."""

    def kernels(self) -> list[Kernel]:
        """Every kernel that is launched, each object once, in order."""
        return list(dict.fromkeys(s.kernel for s in walk_steps(self.steps) if isinstance(s, Launch)))

    def __str__(self) -> str:
        head = [
            f"plan {harmless_line(self.name)}",
            f"  arena {self.arena_bytes} bytes (live at most {self.live_bytes}, all values {self.intermediate_bytes})",
            f"  weights {self.weights_bytes} bytes",
            *(f"  input {k} {type}" for k, type in enumerate(self.inputs)),
            *(f"  output {k} {type} = {self.results[k]}" for k, type in enumerate(self.outputs)),
        ]
        return "\n".join([*head, *_lines(self.steps, 0)]) + "\n"


def walk_steps(steps: Sequence[Step]) -> Iterator[Step]:
    """Every step of `steps` and inside them, in order."""
    for step in steps:
        yield step
        for inner in nested(step):
            yield from walk_steps(inner)


def nested(step: Step) -> tuple[Steps, ...]:
    """The lists of steps that belong to a loop or a branch."""
    if isinstance(step, WhileLoop):
        return (step.condition, step.body)
    return step.cases if isinstance(step, Branch) else ()


def slots_of(step: Step) -> tuple[Slot, ...]:
    """The slots that a step itself (not the steps inside it) reads or writes."""
    if isinstance(step, Launch):
        return tuple(step.accesses) if step.library is not None else step.arguments
    if isinstance(step, Copy):
        return (step.source, step.target)
    if isinstance(step, WhileLoop):
        return (step.predicate, *(Slot(s.buffer, s.parameter) for s in step.states))
    return (step.index, *(Slot(r.buffer, r.result) for r in step.results))


def memory_table(plan: Plan) -> str:
    """One line for each arena buffer: steps of first and last use, offset, bytes, the first value it holds."""
    rows = [b for b in plan.buffers if b.space is Space.ARENA]
    rows.sort(key=lambda b: (b.first, b.place))
    lines = ["first  last      offset       bytes  value"]
    lines += [f"{b.first:5d} {b.last:5d} {b.place:11d} {b.bytes:11d}  {b.name}" for b in rows]
    lines.append(f"arena {plan.arena_bytes} bytes, all values {plan.intermediate_bytes} bytes")
    return "\n".join(lines) + "\n"


def _lines(steps: Sequence[Step], depth: int) -> Iterator[str]:
    indent = "  " * (depth + 1)
    for step in steps:
        yield f"{indent}{_line(step)}"
        if isinstance(step, WhileLoop):
            yield f"{indent}condition"
            yield from _lines(step.condition, depth + 1)
            yield f"{indent}body"
            yield from _lines(step.body, depth + 1)
        elif isinstance(step, Branch):
            for number, case in enumerate(step.cases):
                yield f"{indent}case {number}"
                yield from _lines(case, depth + 1)


def _line(step: Step) -> str:
    comment = f"  ; {step.node}" if step.node else ""
    if isinstance(step, Launch):
        marks = {Access.READ: "", Access.WRITE: "out ", Access.SCRATCH: "tmp "}
        arguments = ", ".join(f"{marks[a]}{slot}" for a, slot in zip(step.access, step.arguments, strict=True))
        library = " or a library" if step.library is not None else ""
        return f"launch {step.name} = {step.kernel.name} x{step.kernel.tasks}{library} ({arguments}){comment}"
    if isinstance(step, Copy):
        return f"copy {step.name}: {step.target} <- {step.source}{comment}"
    if isinstance(step, WhileLoop):
        states = ", ".join(f"%{s.parameter}@{s.buffer} = %{s.init}, next %{s.root}" for s in step.states)
        return f"loop {step.name} ({states}) while {step.predicate}{comment}"
    results = ", ".join(f"%{r.result}@{r.buffer}" for r in step.results)
    return f"branch {step.name} on {step.index} -> ({results}){comment}"
