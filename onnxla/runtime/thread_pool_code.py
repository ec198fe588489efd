"""The thread pool itself, as LLVM IR text: it needs no C compiler, and an artifact carries its object code.

The parts are in `pool_waiting.py`, `pool_workers.py`, `pool_jobs.py` and `pool_calls.py`.

One pool serves the process. A job is `kernel(buffers, task)` for `task < tasks`. Participant `i` of `p` (the caller
is number 0) owns the tasks from `tasks*i/p` to `tasks*(i+1)/p` and takes them one by one, so the same thread meets
the same part of the data in kernel after kernel; who has no tasks left takes those of the others. Each worker has a
slot with a state:

    0 idle, looking at the slot    1 a job is posted    2 asleep on the slot's condition variable    3 at work

The caller posts with one exchange, which also tells whether the worker has to be woken, on another CPU than the
caller's. When no task is left it takes
back the posts that no worker has seen yet: a run never waits for a thread that the system does not schedule.
`pending` counts the other workers of the job; its bit 62 says that the caller sleeps.

`busy` is taken by one caller at a time, never waited for: who finds it taken (a second thread, or a task that calls
`onnxla_parallel_for` itself) runs all tasks alone, which gives the same result because tasks are independent.
Workers start when a job first asks for them. After a fork the process id differs, the child starts its own.
Their stacks are large enough for kernels whatever the process gives its threads; `onnxla_pool_call` lends one to a
caller whose own is small.
"""

from functools import cache
from string import Template

from onnxla.runtime.pool_calls import CALLS
from onnxla.runtime.pool_jobs import JOBS
from onnxla.runtime.pool_waiting import STATE_AND_WAITING
from onnxla.runtime.pool_workers import KEEP_AWAY_ELSEWHERE, KEEP_AWAY_ON_LINUX, WORKERS

MAX_THREADS = 256
STACK_BYTES = 4 << 20
"""Of a thread that runs kernels: they keep up to about 1 MB there, and the system takes only the pages they touch."""

_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
_PAUSES["arm64"] = _PAUSES["aarch64"]
_ARCHITECTURES = {"riscv64": ("+m,+a,+f,+d,+c", "lp64d")}
"""LLVM's features and ABI where every CPU that runs Linux has more than the triple says."""


def thread_pool_ir(triple: str) -> str:
    """The pool's module for `triple`; it calls nothing beyond libc and libpthread."""
    declare_pause, pause = _PAUSES.get(triple.split("-")[0], ("", ""))
    keep_away = Template(KEEP_AWAY_ON_LINUX if "linux" in triple else KEEP_AWAY_ELSEWHERE)
    monotonic_clock = "6" if "apple" in triple or "darwin" in triple else "1"
    return Template(STATE_AND_WAITING + WORKERS + JOBS + CALLS).substitute(
        triple=triple,
        max_threads=MAX_THREADS,
        stack_bytes=STACK_BYTES,
        declare_pause=declare_pause,
        pause=pause,
        keep_away=keep_away.substitute(max_threads=MAX_THREADS),
        clock=monotonic_clock,
    )


@cache
def assemble_thread_pool(triple: str) -> bytes:
    """The pool's object code for `triple`: position-independent, for any CPU of that architecture."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(thread_pool_ir(triple))
    module.verify()
    features, abi = _ARCHITECTURES.get(triple.split("-")[0], ("", ""))
    machine = llvm.Target.from_triple(triple).create_target_machine(
        features=features, opt=2, reloc="pic", codemodel="small", abiname=abi
    )
    return bytes(machine.emit_object(module))
