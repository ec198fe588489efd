"""Run PTX on a machine without a GPU: every thread of a wave of blocks in lockstep, one numpy element a thread.

Threads that stand at the same instruction run together, those furthest behind first, so branches meet again as early
as they can. Results are those of the hardware up to the rounding of `fma.f32` in rare double-rounding cases. What the
hardware leaves undefined is reported: what `tests/gpu/ptx_memory.py` lists, barriers that not all threads of a block
reach, shuffles from threads that are elsewhere, and shared memory that is read before anyone wrote it. Asynchronous
copies arrive when they are waited for and not before, but are taken to write from the moment they are asked for.
"""

import heapq
import re
from collections.abc import Callable, Sequence

import numpy as np

from tests.gpu.ptx_matrix import multiply, spread_tile
from tests.gpu.ptx_memory import Array, GlobalMemory, RaceLog, Reports, bank_conflicts, sectors
from tests.gpu.ptx_operations import DTYPES, operation
from tests.gpu.ptx_text import PtxInstruction, PtxKernel, UnsupportedPtx

WAVE = 1 << 15
"""Most threads that run at a time."""

_MEMORY = re.compile(r"(ld|st)\.(global|shared|local)(?:\.v([24]))?\.([subf](?:8|16|32|64))")
_MMA = re.compile(
    r"mma\.sync\.aligned\.(?:m16n8k16\.row\.col\.f32\.(f16|bf16)\.\1\.f32|m16n8k8\.row\.col\.f32\.(tf32)\.\2\.f32"
    r"|m16n8k32\.row\.col\.s32\.([us]8\.[us]8)\.s32)"
)
_COPY = re.compile(r"cp\.async\.(?:ca|cg)\.shared\.global")
Read = Callable[["_Wave", Array], Array]
Run = Callable[["_Wave", Array], None]


class DeadlockError(Exception):
    """Threads wait at a barrier that others never reach."""


def simulate(
    kernel: PtxKernel,
    memory: GlobalMemory,
    blocks: int,
    threads: int,
    arguments: Sequence[int],
    only: Sequence[int] | None = None,
    measures: bool = False,
) -> Reports:
    """Run `blocks` blocks of `threads` threads, or those in `only`; `arguments` are addresses. Returns the faults, none
    for a clean run. `measures` counts sectors too.

    Raises UnsupportedPtx for what is not simulated and DeadlockError.
    """
    if len(arguments) != len(kernel.parameters):
        raise ValueError(f"{kernel.name} takes {len(kernel.parameters)} arguments, {len(arguments)} given")
    reports = Reports()
    parameters = dict(zip(kernel.parameters, arguments, strict=True))
    code = [_compile(kernel, parameters, i) for i in kernel.instructions]
    log = RaceLog(memory.data.size, threads)
    share = max(WAVE // threads, 1)
    with np.errstate(all="ignore"):
        numbers = np.arange(blocks) if only is None else np.asarray(only)
        for first in range(0, len(numbers), share):
            _Wave(kernel, memory, log, reports, numbers[first : first + share], threads, measures).run(code)
    return reports


class _Wave:
    """Some blocks that run together."""

    def __init__(
        self,
        kernel: PtxKernel,
        memory: GlobalMemory,
        log: RaceLog,
        reports: Reports,
        numbers: Array,
        threads: int,
        measures: bool,
    ) -> None:
        """`numbers` of the blocks."""
        self.kernel, self.memory, self.log, self.reports, self.measures = kernel, memory, log, reports, measures
        blocks = len(numbers)
        self.blocks, self.threads, self.count = blocks, threads, blocks * threads
        number = np.arange(self.count)
        self.block = number // threads
        self.thread = number % threads + numbers[self.block] * threads
        """Numbers through all blocks of the launch."""
        self.lane = number % threads % 32
        self.special = {
            "%tid.x": (number % threads).astype("u4"),
            "%ctaid.x": numbers[self.block].astype("u4"),
            "%ntid.x": np.full(self.count, threads, "u4"),
        }
        self.registers = {
            name: np.zeros(self.count, bool if kind == "pred" else f"u{DTYPES[kind].itemsize}")
            for name, kind in kernel.registers.items()
        }
        self.shared = np.zeros(max(blocks * kernel.shared_bytes, 1), np.uint8)
        self.initialised = np.zeros(self.shared.size, bool)
        self.shared_log = RaceLog(self.shared.size, threads)
        self.under_way = np.zeros(self.shared.size, bool)
        """Bytes that asynchronous copies will write."""
        self.copies: list[tuple[Array, Array, Array]] = []
        """Threads, places in shared memory, and the bytes that come there."""
        self.local = np.zeros(max(self.count * kernel.local_bytes, 1), np.uint8)
        self.epoch = np.zeros(self.count, np.int32)
        """Barriers that each thread has passed."""
        self.alive = np.ones(self.count, bool)
        self.groups: dict[int, list[Array]] = {0: [number]}
        self.heap = [0]
        self.waiting: list[tuple[int, Array]] = []

    def run(self, code: Sequence[Run | None]) -> None:
        while self.heap or self.waiting:
            if not self.heap:
                self.release()
                continue
            at = heapq.heappop(self.heap)
            group = self.groups.pop(at)
            who = group[0] if len(group) == 1 else np.sort(np.concatenate(group))
            self.advance(code, at, who)

    def advance(self, code: Sequence[Run | None], at: int, who: Array) -> None:
        """Run a group until it splits, ends, waits, or has caught up with the next one."""
        limit = self.heap[0] if self.heap else None
        while len(who):
            instruction = self.kernel.instructions[at]
            taken, others = who, who[:0]
            if instruction.guard is not None:
                holds = self.registers[instruction.guard][who] ^ instruction.negated
                taken, others = who[holds], who[~holds]
            base = instruction.opcode.split(".")[0]
            if base == "bra":
                self.arrive(self.kernel.labels[instruction.operands[0]], taken)
                self.arrive(at + 1, others)
                return
            if base == "ret":
                self.alive[taken] = False
                self.arrive(at + 1, others)
                return
            if base == "bar":
                self.waiting.append((at, taken))
                self.arrive(at + 1, others)
                return
            run = code[at]
            if len(taken) and run is not None:
                run(self, taken)
            at += 1
            if limit is not None and limit <= at:
                self.arrive(at, who)
                return

    def arrive(self, at: int, who: Array) -> None:
        if not len(who):
            return
        if at not in self.groups:
            self.groups[at] = []
            heapq.heappush(self.heap, at)
        self.groups[at].append(who)

    def release(self) -> None:
        """Let the blocks go on whose living threads all wait."""
        text = self.kernel.instructions[self.waiting[0][0]].text
        everyone = np.concatenate([who for _, who in self.waiting])
        places = np.concatenate([np.full(len(who), at) for at, who in self.waiting])
        here = np.bincount(self.block[everyone], minlength=self.blocks)
        alive = np.bincount(self.block[self.alive], minlength=self.blocks)
        low, high = np.full(self.blocks, 1 << 30), np.full(self.blocks, -1)
        np.minimum.at(low, self.block[everyone], places)
        np.maximum.at(high, self.block[everyone], places)
        self.reports.note("threads of a block at different barriers", text, (high >= 0) & (low != high))
        self.reports.note("barrier that some threads never reach", text, (here > 0) & (alive != self.threads))
        complete = (here == alive) & (here > 0)
        if not complete.any():
            raise DeadlockError(text)
        self.waiting, waiting = [], self.waiting
        for at, who in waiting:
            free = complete[self.block[who]]
            self.epoch[who[free]] += 1
            self.arrive(at + 1, who[free])
            if not free.all():
                self.waiting.append((at, who[~free]))

    def place(self, space: str, address: Array, who: Array, size: int, writes: bool, text: str) -> tuple[Array, Array]:
        """The memory of a space and the checked offsets in it."""
        if space == "global":
            offset = self.memory.checked(address, size, text, self.reports)
            if self.measures:
                touched, full = sectors(offset, who // 32, size)
                self.reports.sectors[text] += touched
                self.reports.full_sectors[text] += full
            self.note_races(self.log, offset, who, size, writes, text, "global")
            return self.memory.data, offset
        if space == "local":
            return self.local, who * self.kernel.local_bytes + address
        self.reports.note("misaligned shared access", text, address % size != 0)
        outside = (address < 0) | (address + size > self.kernel.shared_bytes)
        self.reports.note("out-of-bounds shared access", text, outside)
        offset = self.block[who] * self.kernel.shared_bytes + np.where(outside, 0, address)
        lost = bank_conflicts(offset, who // 32, self.lane[who], size)
        if lost:
            self.reports.conflicts[text] += lost
        self.reports.note("shared access to a copy that is under way", text, self.under_way[offset])
        if writes:
            for k in range(size):
                self.initialised[offset + k] = True
        else:
            self.reports.note("uninitialised shared read", text, ~self.initialised[offset])
        self.note_races(self.shared_log, offset, who, size, writes, text, "shared")
        return self.shared, offset

    def note_races(
        self, log: RaceLog, offset: Array, who: Array, size: int, writes: bool, text: str, space: str
    ) -> None:
        """Elements are aligned, so their first byte speaks for all; a wide access touches several elements."""
        step = min(size, 4)
        for k in range(0, size, step):
            race = log.access(offset + k, self.thread[who], self.epoch[who], writes)
            self.reports.note(f"{space} race", text, race)

    def wait(self, who: Array) -> None:
        """Let the copies arrive that these threads asked for."""
        waiting = np.zeros(self.count, bool)
        waiting[who] = True
        copies, self.copies = self.copies, []
        for threads, offset, data in copies:
            done = waiting[threads]
            for k in range(data.shape[1]):
                at = offset[done] + k
                self.shared[at] = data[done, k]
                self.initialised[at], self.under_way[at] = True, False
            size = data.shape[1]
            text = "cp.async.wait_all"
            self.note_races(self.shared_log, offset[done], threads[done], size, True, text, "shared")
            if not done.all():
                self.copies.append((threads[~done], offset[~done], data[~done]))

    def warps(self, who: Array, text: str) -> Array:
        """The threads of the warps in `who`, a row a warp; a warp that is not whole is reported."""
        numbers = np.unique(who // 32)
        whole = numbers[:, None] * 32 + np.arange(32)
        here = np.isin(whole, who)
        self.reports.note("matrix instruction without some threads of a warp", text, ~here)
        return whole


# Instructions


def _compile(kernel: PtxKernel, parameters: dict[str, int], instruction: PtxInstruction) -> Run | None:
    opcode, operands, text = instruction.opcode, instruction.operands, instruction.text
    if opcode in ("bra", "bra.uni", "ret") or (opcode == "bar.sync" and operands == ("0",)):
        return None
    if opcode == "ld.param.u64":
        value = np.uint64(parameters[operands[1].strip("[]")])
        write = _writer(kernel, operands[0])
        return lambda wave, who: write(wave, who, value)
    if opcode in ("cvta.to.global.u64", "cvta.to.local.u64", "cvta.local.u64"):
        opcode = "mov.u64"  # global and local addresses are never mixed in one pointer
    if match := _MEMORY.fullmatch(opcode):
        return _memory(kernel, operands, text, *match.groups())
    if opcode == "cp.async.wait_all":
        return lambda wave, who: wave.wait(who)
    if _COPY.fullmatch(opcode):
        return _copy(kernel, operands, text)
    if match := re.fullmatch(r"ldmatrix\.sync\.aligned\.m8n8\.x4(\.trans)?\.shared\.b16", opcode):
        return _load_matrix(kernel, operands, text, match[1] is not None)
    if match := _MMA.fullmatch(opcode):
        return _mma(kernel, operands, text, match[1] or match[2] or match[3])
    if opcode == "shfl.sync.bfly.b32":
        return _butterfly(kernel, operands, text)
    op = operation(opcode)
    reads = [_reader(kernel, o, d) for o, d in zip(operands[1:], op.operands, strict=True)]
    write = _writer(kernel, operands[0])
    function, result = op.function, op.result

    def run(wave: _Wave, who: Array) -> None:
        write(wave, who, np.asarray(function(*(read(wave, who) for read in reads))).astype(result, copy=False))

    return run


def _reader(kernel: PtxKernel, text: str, dtype: np.dtype[np.generic]) -> Read:
    """The value of an operand in each thread: a register, a special register, a symbol's address, a number."""
    if text in kernel.registers:
        stored = DTYPES[kernel.registers[text]]
        if stored.itemsize == dtype.itemsize:
            return lambda wave, who: wave.registers[text].view(dtype)[who]
        # a wider register gives its low bits
        return lambda wave, who: wave.registers[text][who].astype(f"u{dtype.itemsize}").view(dtype)
    if text.startswith("{"):
        # registers side by side, the first one in the low bits
        names = [n.strip() for n in text.strip("{}").split(",")]
        part = np.dtype(f"u{dtype.itemsize // len(names)}")
        reads = [_reader(kernel, n, part) for n in names]
        return lambda wave, who: np.stack([read(wave, who) for read in reads], axis=-1).view(dtype)[..., 0]
    if text.startswith("%"):
        if text not in ("%tid.x", "%ctaid.x", "%ntid.x"):
            raise UnsupportedPtx(text)
        return lambda wave, who: wave.special[text][who].astype(dtype)
    if text in kernel.symbols:
        constant = np.asarray(kernel.symbols[text]).astype(dtype)
    elif match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})", text):
        bits = np.uint32(int(match[1], 16)) if match[1] else np.uint64(int(match[2], 16))
        constant = np.asarray(bits).view("f4" if match[1] else "f8").astype(dtype)
    else:
        number = int(text.rstrip("U"), 0)
        if dtype == np.dtype(bool):
            constant = np.asarray(bool(number))
        else:
            constant = np.asarray(number % (1 << 8 * dtype.itemsize), f"u{dtype.itemsize}").view(dtype)
    return lambda wave, who: np.broadcast_to(constant, who.shape)


def _writer(kernel: PtxKernel, text: str) -> Callable[[_Wave, Array, Array | np.generic], None]:
    if text == "_":
        return lambda wave, who, value: None
    if text not in kernel.registers:
        raise UnsupportedPtx(f"a result in {text}")

    def write(wave: _Wave, who: Array, value: Array | np.generic) -> None:
        register, value = wave.registers[text], np.asarray(value)
        if value.dtype != bool:
            if value.dtype.kind == "i" and value.dtype.itemsize < register.dtype.itemsize:
                value = value.astype(f"i{register.dtype.itemsize}")  # narrow signed values fill the register
            value = value.view(f"u{value.dtype.itemsize}")
        register[who] = value

    return write


def _address(kernel: PtxKernel, text: str) -> Read:
    match = re.fullmatch(r"\[\s*([%\w]+)\s*(?:\+\s*(-?\d+))?\s*\]", text)
    if match is None:
        raise UnsupportedPtx(f"the address {text}")
    base, offset = match[1], int(match[2] or 0)
    narrow = base in kernel.registers and DTYPES[kernel.registers[base]].itemsize == 4
    read = _reader(kernel, base, np.dtype("u4" if narrow else "u8"))
    return lambda wave, who: read(wave, who).astype(np.int64) + offset


def _memory(
    kernel: PtxKernel, operands: Sequence[str], text: str, name: str, space: str, vector: str | None, kind: str
) -> Run:
    dtype, count, loads = DTYPES[kind], int(vector or 1), name == "ld"
    size = dtype.itemsize * count
    address = _address(kernel, operands[1 if loads else 0])
    names = [n.strip() for n in operands[0 if loads else 1].strip("{}").split(",")]
    writes = [_writer(kernel, n) for n in names] if loads else []
    reads = [] if loads else [_reader(kernel, n, dtype) for n in names]

    def run(wave: _Wave, who: Array) -> None:
        memory, offset = wave.place(space, address(wave, who), who, size, not loads, text)
        elements = memory[: memory.size // dtype.itemsize * dtype.itemsize].view(dtype)
        first = offset // dtype.itemsize
        for k, write in enumerate(writes):
            write(wave, who, elements[first + k])
        for k, read in enumerate(reads):
            elements[first + k] = read(wave, who)

    return run


def _butterfly(kernel: PtxKernel, operands: Sequence[str], text: str) -> Run:
    """Exchange with the lane whose number differs in the given bits; the whole warp must take part."""
    target, present = operands[0].split("|")
    write, write_present = _writer(kernel, target), _writer(kernel, present)
    value = _reader(kernel, operands[1], np.dtype("u4"))
    distance = _reader(kernel, operands[2], np.dtype("u4"))

    def run(wave: _Wave, who: Array) -> None:
        here = np.zeros(wave.count, bool)
        here[who] = True
        other = who - wave.lane[who] + (wave.lane[who] ^ distance(wave, who).astype(np.int64))
        wave.reports.note("shuffle from a thread that is elsewhere", text, ~here[np.minimum(other, wave.count - 1)])
        every = np.zeros(wave.count, "u4")
        every[who] = value(wave, who)
        write(wave, who, every[np.minimum(other, wave.count - 1)])
        write_present(wave, who, np.ones(len(who), bool))

    return run


def _copy(kernel: PtxKernel, operands: Sequence[str], text: str) -> Run:
    """cp.async: bytes on their way from global to shared memory; zeros beyond the given size."""
    target, source, size = _address(kernel, operands[0]), _address(kernel, operands[1]), int(operands[2])
    given = _reader(kernel, operands[3], np.dtype("u4"))

    def run(wave: _Wave, who: Array) -> None:
        read = given(wave, who).astype(np.int64)
        wave.reports.note("a copy of a part", text, (read != 0) & (read != size))
        data = np.zeros((len(who), size), np.uint8)
        some = read == size
        address = source(wave, who)
        if some.any():
            memory, start = wave.place("global", address[some], who[some], size, False, text)
            data[some] = memory[start[:, None] + np.arange(size)]
        _, offset = wave.place("shared", target(wave, who), who, size, True, text)
        for k in range(size):
            wave.under_way[offset + k] = True
        wave.copies.append((who, offset, data))

    return run


def _load_matrix(kernel: PtxKernel, operands: Sequence[str], text: str, transposed: bool) -> Run:
    writes = [_writer(kernel, n.strip()) for n in operands[0].strip("{}").split(",")]
    address = _address(kernel, operands[1])

    def run(wave: _Wave, who: Array) -> None:
        whole = wave.warps(who, text)
        memory, offset = wave.place("shared", address(wave, who), who, 16, False, text)
        # a row goes to four threads: someone else reads it too
        wave.note_races(wave.shared_log, offset, who ^ 1, 16, False, text, "shared")
        rows = np.zeros((wave.count, 8), "u2")
        rows[who] = memory[offset[:, None] + np.arange(16)].view("u2")
        for t, write in enumerate(writes):
            write(wave, whole.ravel(), spread_tile(rows[whole[:, 8 * t : 8 * t + 8]], transposed).ravel())

    return run


def _mma(kernel: PtxKernel, operands: Sequence[str], text: str, kind: str) -> Run:
    groups = [[n.strip() for n in o.strip("{}").split(",")] for o in operands]
    writes = [_writer(kernel, n) for n in groups[0]]
    words = [[_reader(kernel, n, np.dtype("u4")) for n in group] for group in groups[1:3]]
    totals = [_reader(kernel, n, np.dtype("i4" if kind[-1] == "8" else "f4")) for n in groups[3]]

    def run(wave: _Wave, who: Array) -> None:
        whole = wave.warps(who, text)
        every = whole.ravel()
        a, b = ([read(wave, every).reshape(whole.shape) for read in group] for group in words)
        results = multiply(kind, a, b, [read(wave, every).reshape(whole.shape) for read in totals])
        for write, value in zip(writes, results, strict=True):
            write(wave, every, value.ravel())

    return run
