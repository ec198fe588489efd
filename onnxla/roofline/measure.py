"""Measure this machine with kernels of our own: fp32 multiply-adds, reads from each level of memory, empty steps.

One plan runs them all, as it would a model's: the same code generator, thread pool and profile. It takes about half a
second; the best of a few runs counts, because nothing makes a machine faster than it is.
"""

from collections.abc import Sequence

import numpy as np

from onnxla.codegen.cpu.emit_llvm import emitter
from onnxla.codegen.cpu.generate import generate_code
from onnxla.codegen.cpu.target import Target, host_target
from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Kernel
from onnxla.codegen.plan import Access, Buffer, Launch, Plan, Slot, Space
from onnxla.hlo.types import F32
from onnxla.roofline.limits import Limits, Memory
from onnxla.runtime.executable import Executable
from onnxla.runtime.profiler import Profile, new_profile, profile_of
from onnxla.runtime.program import Program, Step
from onnxla.runtime.thread_pool_code import assemble_thread_pool

_ACCUMULATORS = 12
"""Independent sums: more than the multiply-adds that are under way at any time, fewer than registers."""
_ROUNDS = 40_000
_SUMS = 8
"""Vectors that are read before the next round: their additions wait for nothing but the loads."""
_TASKS = 32
_LARGEST_READ = 256 << 20
_STARTS = 24
_RUNS = 5


def measure_limits(threads: int, target: Target | None = None) -> Limits:
    """What `threads` threads of this machine can do together."""
    target = target or host_target()
    reads = _reads(target, threads)
    kernels = [
        _multiply_adds(target, threads),
        _fill(target, reads[-1][1]),
        *(_read(target, size, rounds, threads) for _, size, rounds in reads),
        *[_nothing(1)] * _STARTS,
        *[_nothing(_TASKS)] * _STARTS,
    ]
    steps = _best(_run(kernels, max(size for _, size, _ in reads), target, threads))
    speeds = [1e-9 * size * rounds / steps[2 + k] for k, (_, size, rounds) in enumerate(reads)]
    # what fits into a small memory is as fast as what does not, whatever else the machine was doing
    memories = [Memory(name, size, max(speeds[k:])) for k, (name, size, _) in enumerate(reads)]
    # what lies between two sizes that were measured moves as fast as in the larger of them
    bounds: list[int | None] = [threads * target.l2_bytes, max(target.l3_bytes // 2, threads * target.l2_bytes), None]
    one, shared = (float(np.median(part)) for part in (steps[-2 * _STARTS : -_STARTS], steps[-_STARTS:]))
    return Limits(
        threads=threads,
        gigaflops=kernels[0].flops / steps[0] / 1e9,
        memories=tuple(
            Memory(m.name, bound, m.gigabytes_per_second) for m, bound in zip(memories, bounds, strict=True)
        ),
        start_seconds=one,
        parallel_start_seconds=max(shared, one),
    )


def _reads(target: Target, threads: int) -> list[tuple[str, int, int]]:
    """Name, bytes and rounds of what is read to measure each level."""
    memory = min(max(128 << 20, 2 * target.l3_bytes), _LARGEST_READ)
    sizes = [("L2", threads * target.l2_bytes // 2), ("L3", target.l3_bytes // 3), ("memory", memory)]
    whole = threads * 4096
    return [(name, max(1, size // whole) * whole, max(1, (128 << 20) // size)) for name, size in sizes]


def _multiply_adds(target: Target, threads: int) -> Kernel:
    """Each task multiplies and adds in registers; nothing else limits it."""
    lanes = target.vector_bytes // 4
    b = KernelBuilder("f32_multiply_adds", _TASKS)
    numbers = b.parameter("numbers", F32, 2 * lanes, "input", 64)
    out = b.parameter("out", F32, _TASKS * lanes, "output", 64)
    factor, term = (b.load(numbers, b.const(k * lanes), lanes) for k in range(2))
    starts = [b.binary("mul", term, b.const(float(k), F32, lanes)) for k in range(_ACCUMULATORS)]
    with b.loop(0, _ROUNDS, 1, starts) as loop:
        loop.yield_(*(b.multiply_add(total, factor, term) for total in loop.carried))
    total = loop.results[0]
    for other in loop.results[1:]:
        total = b.add(total, other)
    b.store(out, b.mul(b.task, b.const(lanes)), total)
    kernel = b.finish()
    kernel.flops = 2.0 * _TASKS * _ROUNDS * _ACCUMULATORS * lanes
    return kernel


def _fill(target: Target, size: int) -> Kernel:
    """Write what is read: memory that nobody has written to is one page of zeros, which the caches hold."""
    lanes, part = target.vector_bytes // 4, size // 4 // _TASKS
    b = KernelBuilder(f"fill_{size}", _TASKS)
    out = b.parameter("out", F32, size // 4, "output", 64)
    first, one = b.mul(b.task, b.const(part)), b.const(1.0, F32, lanes)
    with b.loop(0, part, lanes) as loop:
        b.store(out, b.add(first, loop.index), one, alignment=lanes * 4)
    return b.finish()


def _read(target: Target, size: int, rounds: int, threads: int) -> Kernel:
    """Read `size` bytes, `rounds` times. A thread has one part, which it reads again and again: smaller parts would lie
    in faster memory than the one that is measured. Nothing moves faster than what is only read."""
    lanes, part = target.vector_bytes // 4, size // 4 // threads
    b = KernelBuilder(f"read_{size}", threads)
    source = b.parameter("source", F32, size // 4, "scratch", 64)
    out = b.parameter("out", F32, threads * lanes, "output", 64)
    first = b.mul(b.task, b.const(part))
    starts = [b.const(0.0, F32, lanes)] * _SUMS
    with b.loop(0, rounds, 1, starts) as again:
        with b.loop(0, part, lanes * _SUMS, again.carried) as loop:
            places = [b.add(first, b.add(loop.index, b.const(k * lanes))) for k in range(_SUMS)]
            values = [b.load(source, place, lanes, alignment=target.vector_bytes) for place in places]
            loop.yield_(*(b.add(total, value) for total, value in zip(loop.carried, values, strict=True)))
        again.yield_(*loop.results)
    total = again.results[0]
    for other in again.results[1:]:
        total = b.add(total, other)
    b.store(out, b.mul(b.task, b.const(lanes)), total, alignment=lanes * 4)
    return b.finish()


def _nothing(tasks: int) -> Kernel:
    b = KernelBuilder("nothing", tasks)
    b.store(b.parameter("out", F32, tasks, "output", 64), b.task, b.const(0.0, F32))
    return b.finish()


def _run(kernels: Sequence[Kernel], largest: int, target: Target, threads: int) -> list[Profile]:
    arena = [Buffer(f"arena.{k}", Space.ARENA, k * largest, largest) for k in range(2)]
    numbers = Buffer("numbers", Space.WEIGHTS, 0, 2 * target.vector_bytes)

    def launch(number: int, kernel: Kernel) -> Launch:
        buffers = [arena[0]]
        if len(kernel.parameters) == 2:
            buffers = [numbers, arena[0]] if number == 0 else arena
        slots = tuple(Slot(buffer, buffer.name) for buffer in buffers)
        access = (*[Access.READ] * (len(slots) - 1), Access.WRITE)
        return Launch(f"{kernel.name}.{number}", "measure", None, kernel, slots, access)

    steps = tuple(launch(k, kernel) for k, kernel in enumerate(kernels))
    plan = Plan("limits", (), (), steps, (numbers, *arena), (), 2 * largest, numbers.bytes)
    code = generate_code(plan, target, emitter(target))
    factors = np.repeat(np.array([0.75, 0.125], np.float32), target.vector_bytes // 4)
    program = Program(
        inputs=(),
        outputs=(),
        objects=code.objects,
        thread_pool=assemble_thread_pool(target.triple),
        weights=factors.view(np.uint8),
        arena_bytes=plan.arena_bytes,
        steps=tuple(Step(s.name, s.opcode, "") for s in steps),
        triple=target.triple,
        cpu=target.cpu,
        features=target.features,
    )
    executable = Executable(program)

    def profile() -> Profile:
        array = new_profile(len(steps))
        executable.run([], threads, profile=array)
        return profile_of(program.steps, array)

    profile()  # the memory is touched, the threads are awake
    return [profile() for _ in range(_RUNS)]


def _best(profiles: Sequence[Profile]) -> list[float]:
    """The least time of each step."""
    return [max(min(times), 1e-9) for times in zip(*([r.seconds for r in p.rows] for p in profiles), strict=True)]
