"""The thread pool itself, as LLVM IR text: it needs no C compiler, and an artifact carries its object code.

One pool serves the process. A job is `kernel(buffers, task)` for `task < tasks`; participant `i` of `p` runs the tasks
from `tasks*i/p` to `tasks*(i+1)/p`, and participant 0 is the caller. Each worker owns a slot whose state is

    0 idle, looking at the slot    1 a job is posted    2 asleep on the slot's condition variable

so a worker that has no part in a job is not disturbed by it. The caller posts with one exchange, which also tells
whether the worker has to be woken. `pending` counts the workers still at work; its bit 62 says that the caller sleeps.

`busy` is taken by one caller at a time, never waited for: who finds it taken (a second thread, or a task that calls
`onnxla_parallel_for` itself) runs all tasks alone, which gives the same result because tasks are independent.
Workers start when a job first asks for them. After a fork the process id differs, the child starts its own.
"""

from functools import cache
from string import Template

MAX_THREADS = 256

_TEXT = Template(r"""
target triple = "$triple"

%slot = type { i64, [56 x i8], [64 x i8], [64 x i8] } ; state, its cache line, mutex, condition variable

@slots = internal global [$max_threads x %slot] zeroinitializer, align 64
@threads = internal global [$max_threads x i64] zeroinitializer, align 64
@pending = internal global i64 0, align 64
@kernel = internal global ptr null, align 64
@buffers = internal global ptr null
@tasks = internal global i64 0
@participants = internal global i64 0
@workers = internal global i64 0
@spin_nanoseconds = internal global i64 50000
@busy = internal global i32 0, align 64
@owner = internal global i32 0
@done_mutex = internal global [64 x i8] zeroinitializer, align 64
@done_condition = internal global [64 x i8] zeroinitializer, align 64

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @getpid()
declare i32 @sched_yield()
declare i32 @clock_gettime(i32, ptr)
$declare_pause

define internal i64 @now() {
  %time = alloca { i64, i64 }
  %status = call i32 @clock_gettime(i32 $clock, ptr %time)
  %seconds = load i64, ptr %time
  %fraction.place = getelementptr { i64, i64 }, ptr %time, i64 0, i32 1
  %fraction = load i64, ptr %fraction.place
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %fraction
  ret i64 %sum
}

; Look at the word until it is `wanted` (true) or the spinning time is over (false).
define internal i1 @spin(ptr %word, i64 %wanted) {
entry:
  %first = load atomic i64, ptr %word acquire, align 8
  %at.once = icmp eq i64 %first, %wanted
  br i1 %at.once, label %seen, label %prepare
prepare:
  %start = call i64 @now()
  %limit = load atomic i64, ptr @spin_nanoseconds monotonic, align 8
  br label %look
look:
  %turn = phi i64 [ 0, %prepare ], [ %turn.next, %look.again ], [ 0, %clock ]
  $pause
  %value = load atomic i64, ptr %word acquire, align 8
  %found = icmp eq i64 %value, %wanted
  br i1 %found, label %seen, label %look.again
look.again:
  %turn.next = add i64 %turn, 1
  %more = icmp ult i64 %turn.next, 32
  br i1 %more, label %look, label %clock
clock:
  %time = call i64 @now()
  %spent = sub i64 %time, %start
  %over = icmp ugt i64 %spent, %limit
  br i1 %over, label %missed, label %look
seen:
  ret i1 true
missed:
  ret i1 false
}

define internal void @run_share(ptr %kernel, ptr %buffers, i64 %tasks, i64 %participants, i64 %index) {
entry:
  %next.index = add i64 %index, 1
  %low = mul i64 %tasks, %index
  %high = mul i64 %tasks, %next.index
  %begin = udiv i64 %low, %participants
  %end = udiv i64 %high, %participants
  %any = icmp ult i64 %begin, %end
  br i1 %any, label %loop, label %exit
loop:
  %task = phi i64 [ %begin, %entry ], [ %task.next, %loop ]
  call void %kernel(ptr %buffers, i64 %task)
  %task.next = add i64 %task, 1
  %more = icmp ult i64 %task.next, %end
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

; A worker's life: wait for a job in its slot, run its share, say so. A job without a kernel ends it.
define internal ptr @worker(ptr %argument) {
entry:
  %index = ptrtoint ptr %argument to i64
  %participant = add i64 %index, 1
  %state = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 0
  %mutex = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 2
  %condition = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 3
  br label %wait
wait:
  %posted = call i1 @spin(ptr %state, i64 1)
  br i1 %posted, label %work, label %lie.down
lie.down:
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  %exchange = cmpxchg ptr %state, i64 0, i64 2 acq_rel acquire, align 8
  br label %asleep
asleep:
  %now = load atomic i64, ptr %state acquire, align 8
  %called = icmp eq i64 %now, 1
  br i1 %called, label %get.up, label %sleep
sleep:
  %woken = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %asleep
get.up:
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %work
work:
  %kernel = load ptr, ptr @kernel
  %quit = icmp eq ptr %kernel, null
  br i1 %quit, label %end, label %run
run:
  %buffers = load ptr, ptr @buffers
  %tasks = load i64, ptr @tasks
  %participants = load i64, ptr @participants
  call void @run_share(ptr %kernel, ptr %buffers, i64 %tasks, i64 %participants, i64 %participant)
  store atomic i64 0, ptr %state monotonic, align 8
  %before = atomicrmw sub ptr @pending, i64 1 acq_rel, align 8
  %last.of.sleeper = icmp eq i64 %before, 4611686018427387905
  br i1 %last.of.sleeper, label %wake.caller, label %wait
wake.caller:
  %done.locked = call i32 @pthread_mutex_lock(ptr @done_mutex)
  %signalled = call i32 @pthread_cond_signal(ptr @done_condition)
  %done.unlocked = call i32 @pthread_mutex_unlock(ptr @done_mutex)
  br label %wait
end:
  ret ptr null
}

define internal void @post(i64 %index) {
entry:
  %state = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 0
  %before = atomicrmw xchg ptr %state, i64 1 acq_rel, align 8
  %asleep = icmp eq i64 %before, 2
  br i1 %asleep, label %wake, label %exit
wake:
  %mutex = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 2
  %condition = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 3
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  %signalled = call i32 @pthread_cond_signal(ptr %condition)
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %exit
exit:
  ret void
}

define internal void @wait_for_workers() {
entry:
  %seen = call i1 @spin(ptr @pending, i64 0)
  br i1 %seen, label %exit, label %lie.down
lie.down:
  %locked = call i32 @pthread_mutex_lock(ptr @done_mutex)
  %before = atomicrmw or ptr @pending, i64 4611686018427387904 acq_rel, align 8
  %late = icmp eq i64 %before, 0
  br i1 %late, label %get.up, label %asleep
asleep:
  %left = load atomic i64, ptr @pending acquire, align 8
  %done = icmp eq i64 %left, 4611686018427387904
  br i1 %done, label %get.up, label %sleep
sleep:
  %woken = call i32 @pthread_cond_wait(ptr @done_condition, ptr @done_mutex)
  br label %asleep
get.up:
  store atomic i64 0, ptr @pending monotonic, align 8
  %unlocked = call i32 @pthread_mutex_unlock(ptr @done_mutex)
  br label %exit
exit:
  ret void
}

; Start workers until there are `wanted`, or the system refuses; `busy` is held. Returns how many there are.
define internal i64 @start_workers(i64 %wanted) {
entry:
  %have = load i64, ptr @workers
  br label %check
check:
  %index = phi i64 [ %have, %entry ], [ %index.next, %started ]
  %enough = icmp uge i64 %index, %wanted
  br i1 %enough, label %exit, label %start
start:
  %state = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 0
  %mutex = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 2
  %condition = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 3
  %thread = getelementptr [$max_threads x i64], ptr @threads, i64 0, i64 %index
  store atomic i64 0, ptr %state release, align 8
  %mutex.made = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %condition.made = call i32 @pthread_cond_init(ptr %condition, ptr null)
  %argument = inttoptr i64 %index to ptr
  %status = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %argument)
  %refused = icmp ne i32 %status, 0
  br i1 %refused, label %exit, label %started
started:
  %index.next = add i64 %index, 1
  store i64 %index.next, ptr @workers
  br label %check
exit:
  ret i64 %index
}

; True when the pool is this process's and now the caller's. In a new process (the first call, or after a fork) the
; first caller makes the state anew; a caller that meets one doing so gets false.
define internal i1 @take() {
entry:
  %process = call i32 @getpid()
  %owner = load atomic i32, ptr @owner acquire, align 4
  %ours = icmp eq i32 %owner, %process
  br i1 %ours, label %try, label %foreign
foreign:
  %in.making = icmp eq i32 %owner, -1
  br i1 %in.making, label %no, label %claim
claim:
  %claimed = cmpxchg ptr @owner, i32 %owner, i32 -1 acq_rel acquire, align 4
  %won = extractvalue { i32, i1 } %claimed, 1
  br i1 %won, label %make, label %no
make:
  store i64 0, ptr @workers
  store atomic i64 0, ptr @pending monotonic, align 8
  store atomic i32 0, ptr @busy monotonic, align 4
  %mutex.made = call i32 @pthread_mutex_init(ptr @done_mutex, ptr null)
  %condition.made = call i32 @pthread_cond_init(ptr @done_condition, ptr null)
  store atomic i32 %process, ptr @owner release, align 4
  br label %try
try:
  %taken = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic, align 4
  %got = extractvalue { i32, i1 } %taken, 1
  ret i1 %got
no:
  ret i1 false
}

define internal void @post_and_work(ptr %kernel, ptr %buffers, i64 %tasks, i64 %participants) {
entry:
  store ptr %kernel, ptr @kernel
  store ptr %buffers, ptr @buffers
  store i64 %tasks, ptr @tasks
  store i64 %participants, ptr @participants
  %helpers = sub i64 %participants, 1
  store atomic i64 %helpers, ptr @pending release, align 8
  br label %posting
posting:
  %index = phi i64 [ 0, %entry ], [ %index.next, %posting ]
  call void @post(i64 %index)
  %index.next = add i64 %index, 1
  %more = icmp ult i64 %index.next, %helpers
  br i1 %more, label %posting, label %work
work:
  call void @run_share(ptr %kernel, ptr %buffers, i64 %tasks, i64 %participants, i64 0)
  call void @wait_for_workers()
  ret void
}

; Run kernel(buffers, task) for every task < tasks on at most `threads` threads; returns when all have ended.
define void @onnxla_parallel_for(ptr %kernel, ptr %buffers, i64 %tasks, i64 %threads) {
entry:
  %useful = call i64 @llvm.umin.i64(i64 %tasks, i64 %threads)
  %wanted = call i64 @llvm.umin.i64(i64 %useful, i64 $max_threads)
  %several = icmp ugt i64 %wanted, 1
  br i1 %several, label %try, label %alone
try:
  %taken = call i1 @take()
  br i1 %taken, label %staff, label %alone
staff:
  %helpers = sub i64 %wanted, 1
  %workers = call i64 @start_workers(i64 %helpers)
  %present = call i64 @llvm.umin.i64(i64 %workers, i64 %helpers)
  %participants = add i64 %present, 1
  %helped = icmp ugt i64 %participants, 1
  br i1 %helped, label %together, label %unstaffed
together:
  call void @post_and_work(ptr %kernel, ptr %buffers, i64 %tasks, i64 %participants)
  store atomic i32 0, ptr @busy release, align 4
  ret void
unstaffed:
  store atomic i32 0, ptr @busy release, align 4
  br label %alone
alone:
  call void @run_share(ptr %kernel, ptr %buffers, i64 %tasks, i64 1, i64 0)
  ret void
}

define void @onnxla_pool_set_spin(i64 %nanoseconds) {
  store atomic i64 %nanoseconds, ptr @spin_nanoseconds monotonic, align 8
  ret void
}

define i64 @onnxla_pool_workers() {
  %count = load i64, ptr @workers
  ret i64 %count
}

; End every worker of this process; a later job starts new ones. Waits for the job that runs.
define void @onnxla_pool_shutdown() {
entry:
  %process = call i32 @getpid()
  %owner = load atomic i32, ptr @owner acquire, align 4
  %ours = icmp eq i32 %owner, %process
  br i1 %ours, label %try, label %exit
try:
  %taken = call i1 @take()
  br i1 %taken, label %stop, label %again
again:
  %yielded = call i32 @sched_yield()
  br label %try
stop:
  %count = load i64, ptr @workers
  store ptr null, ptr @kernel
  br label %check
check:
  %index = phi i64 [ 0, %stop ], [ %index.next, %join ]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %join, label %free
join:
  call void @post(i64 %index)
  %place = getelementptr [$max_threads x i64], ptr @threads, i64 0, i64 %index
  %thread = load i64, ptr %place
  %joined = call i32 @pthread_join(i64 %thread, ptr null)
  %index.next = add i64 %index, 1
  br label %check
free:
  store i64 0, ptr @workers
  store atomic i32 0, ptr @busy release, align 4
  br label %exit
exit:
  ret void
}

declare i64 @llvm.umin.i64(i64, i64)
""")

_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
_PAUSES["arm64"] = _PAUSES["aarch64"]


def thread_pool_ir(triple: str) -> str:
    """The pool's module for `triple`; it calls nothing beyond libc and libpthread."""
    declare_pause, pause = _PAUSES.get(triple.split("-")[0], ("", ""))
    monotonic_clock = "6" if "apple" in triple or "darwin" in triple else "1"
    return _TEXT.substitute(
        triple=triple, max_threads=MAX_THREADS, declare_pause=declare_pause, pause=pause, clock=monotonic_clock
    )


@cache
def assemble_thread_pool(triple: str) -> bytes:
    """The pool's object code for `triple`: position-independent, for any CPU of that architecture."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(thread_pool_ir(triple))
    module.verify()
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=2, reloc="pic")
    return bytes(machine.emit_object(module))
