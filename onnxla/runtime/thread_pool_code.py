"""The thread pool itself, as LLVM IR text: it needs no C compiler, and an artifact carries its object code.

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

MAX_THREADS = 256
STACK_BYTES = 4 << 20
"""Of a thread that runs kernels: they keep up to about 1 MB there, and the system takes only the pages they touch."""

_TEXT = Template(r"""
target triple = "$triple"

; state, the CPU the worker keeps away from and one more, the rest of the cache line, mutex, condition variable
%slot = type { i64, i64, [48 x i8], [64 x i8], [64 x i8] }
%range = type { i64, i64, [48 x i8] }                  ; next task, end

@slots = internal global [$max_threads x %slot] zeroinitializer, align 64
@threads = internal global [$max_threads x i64] zeroinitializer, align 64
@pending = internal global i64 0, align 64
@kernel = internal global ptr null, align 64
@buffers = internal global ptr null
@ranges = internal global [$max_threads x %range] zeroinitializer, align 64
@participants = internal global i64 0
@workers = internal global i64 0
@spin_nanoseconds = internal global i64 200000
@busy = internal global i32 0, align 64
@owner = internal global i32 0
@done_mutex = internal global [64 x i8] zeroinitializer, align 64
@done_condition = internal global [64 x i8] zeroinitializer, align 64

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_destroy(ptr)
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

; Look at the word until it is `wanted` (true) or the spinning time is over (false). Now and then make way for threads
; that wait for this CPU: where there are more of them than CPUs, one may be what we wait for.
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
  %turn = phi i64 [ 0, %prepare ], [ %turn.next, %look.again ], [ 0, %make.way ]
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
  br i1 %over, label %missed, label %make.way
make.way:
  %yielded = call i32 @sched_yield()
  br label %look
seen:
  ret i1 true
missed:
  ret i1 false
}

define internal void @run_alone(ptr %kernel, ptr %buffers, i64 %tasks) {
entry:
  %any = icmp ne i64 %tasks, 0
  br i1 %any, label %loop, label %exit
loop:
  %task = phi i64 [ 0, %entry ], [ %task.next, %loop ]
  call void %kernel(ptr %buffers, i64 %task)
  %task.next = add i64 %task, 1
  %more = icmp ult i64 %task.next, %tasks
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

; Take tasks from the range of participant %first until it is empty, then from the ranges after it, once around.
define internal void @take_part(ptr %kernel, ptr %buffers, i64 %participants, i64 %first) {
entry:
  br label %range
range:
  %visited = phi i64 [ 0, %entry ], [ %visited.next, %empty ]
  %sum = add i64 %first, %visited
  %index = urem i64 %sum, %participants
  %next = getelementptr [$max_threads x %range], ptr @ranges, i64 0, i64 %index, i32 0
  %end.place = getelementptr [$max_threads x %range], ptr @ranges, i64 0, i64 %index, i32 1
  %end = load i64, ptr %end.place
  br label %look
look:
  %waiting = load atomic i64, ptr %next monotonic, align 8
  %any = icmp ult i64 %waiting, %end
  br i1 %any, label %take, label %empty
take:
  %task = atomicrmw add ptr %next, i64 1 monotonic, align 8
  %taken = icmp ult i64 %task, %end
  br i1 %taken, label %run, label %empty
run:
  call void %kernel(ptr %buffers, i64 %task)
  br label %look
empty:
  %visited.next = add i64 %visited, 1
  %more = icmp ult i64 %visited.next, %participants
  br i1 %more, label %range, label %exit
exit:
  ret void
}

; A worker's life: wait for a job in its slot, take part in it, say so. A job without a kernel ends it.
define internal ptr @worker(ptr %argument) {
entry:
  %index = ptrtoint ptr %argument to i64
  %participant = add i64 %index, 1
  %state = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 0
  %mutex = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 3
  %condition = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 4
  br label %wait
wait:
  %posted = call i1 @spin(ptr %state, i64 1)
  br i1 %posted, label %claim, label %lie.down
lie.down:
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  %exchange = cmpxchg ptr %state, i64 0, i64 2 acq_rel acquire, align 8
  br label %asleep
asleep:
  %now = load atomic i64, ptr %state acquire, align 8
  %still = icmp eq i64 %now, 2
  br i1 %still, label %sleep, label %get.up
sleep:
  %woken = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %asleep
get.up:
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %claim
claim:
  %claimed = cmpxchg ptr %state, i64 1, i64 3 acq_rel acquire, align 8
  %ours = extractvalue { i64, i1 } %claimed, 1
  br i1 %ours, label %work, label %wait
work:
  %kernel = load ptr, ptr @kernel
  %quit = icmp eq ptr %kernel, null
  br i1 %quit, label %end, label %run
run:
  %buffers = load ptr, ptr @buffers
  %participants = load i64, ptr @participants
  call void @take_part(ptr %kernel, ptr %buffers, i64 %participants, i64 %participant)
  store atomic i64 0, ptr %state release, align 8
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

$keep_away
define internal void @post(i64 %index) {
entry:
  %state = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 0
  %before = atomicrmw xchg ptr %state, i64 1 acq_rel, align 8
  %asleep = icmp eq i64 %before, 2
  br i1 %asleep, label %wake, label %exit
wake:
  %mutex = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 3
  %condition = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 4
  call void @keep_away(i64 %index)
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

; A thread with room for what kernels keep on the stack, whatever the process gives its threads. Returns 0, or an error.
define internal i32 @start_thread(ptr %thread, ptr %function, ptr %argument) {
  %attributes = alloca [128 x i8], align 16
  %made = call i32 @pthread_attr_init(ptr %attributes)
  %sized = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 $stack_bytes)
  %status = call i32 @pthread_create(ptr %thread, ptr %attributes, ptr %function, ptr %argument)
  %destroyed = call i32 @pthread_attr_destroy(ptr %attributes)
  ret i32 %status
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
  %mutex = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 3
  %condition = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 4
  %thread = getelementptr [$max_threads x i64], ptr @threads, i64 0, i64 %index
  %away = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 1
  store i64 0, ptr %away
  store atomic i64 0, ptr %state release, align 8
  %mutex.made = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %condition.made = call i32 @pthread_cond_init(ptr %condition, ptr null)
  %argument = inttoptr i64 %index to ptr
  %status = call i32 @start_thread(ptr %thread, ptr @worker, ptr %argument)
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

; Take back the posts that no worker has claimed; returns how many.
define internal i64 @take_back(i64 %helpers) {
entry:
  br label %loop
loop:
  %index = phi i64 [ 0, %entry ], [ %index.next, %loop ]
  %count = phi i64 [ 0, %entry ], [ %count.next, %loop ]
  %state = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 0
  %exchange = cmpxchg ptr %state, i64 1, i64 0 acq_rel acquire, align 8
  %back = extractvalue { i64, i1 } %exchange, 1
  %one = zext i1 %back to i64
  %count.next = add i64 %count, %one
  %index.next = add i64 %index, 1
  %more = icmp ult i64 %index.next, %helpers
  br i1 %more, label %loop, label %exit
exit:
  ret i64 %count.next
}

define internal void @share_out(i64 %tasks, i64 %participants) {
entry:
  br label %loop
loop:
  %index = phi i64 [ 0, %entry ], [ %index.next, %loop ]
  %begin = phi i64 [ 0, %entry ], [ %end, %loop ]
  %index.next = add i64 %index, 1
  %product = mul i64 %tasks, %index.next
  %end = udiv i64 %product, %participants
  %next.place = getelementptr [$max_threads x %range], ptr @ranges, i64 0, i64 %index, i32 0
  %end.place = getelementptr [$max_threads x %range], ptr @ranges, i64 0, i64 %index, i32 1
  store atomic i64 %begin, ptr %next.place monotonic, align 8
  store i64 %end, ptr %end.place
  %more = icmp ult i64 %index.next, %participants
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

define internal void @run_together(ptr %kernel, ptr %buffers, i64 %tasks, i64 %participants) {
entry:
  store ptr %kernel, ptr @kernel
  store ptr %buffers, ptr @buffers
  store i64 %participants, ptr @participants
  call void @share_out(i64 %tasks, i64 %participants)
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
  call void @take_part(ptr %kernel, ptr %buffers, i64 %participants, i64 0)
  %back = call i64 @take_back(i64 %helpers)
  %before = atomicrmw sub ptr @pending, i64 %back acq_rel, align 8
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
  call void @run_together(ptr %kernel, ptr %buffers, i64 %tasks, i64 %participants)
  store atomic i32 0, ptr @busy release, align 4
  ret void
unstaffed:
  store atomic i32 0, ptr @busy release, align 4
  br label %alone
alone:
  call void @run_alone(ptr %kernel, ptr %buffers, i64 %tasks)
  ret void
}

define internal ptr @called(ptr %call) {
  %entry = load ptr, ptr %call
  %inputs.place = getelementptr ptr, ptr %call, i64 1
  %outputs.place = getelementptr ptr, ptr %call, i64 2
  %weights.place = getelementptr ptr, ptr %call, i64 3
  %arena.place = getelementptr ptr, ptr %call, i64 4
  %context.place = getelementptr ptr, ptr %call, i64 5
  %inputs = load ptr, ptr %inputs.place
  %outputs = load ptr, ptr %outputs.place
  %weights = load ptr, ptr %weights.place
  %arena = load ptr, ptr %arena.place
  %context = load ptr, ptr %context.place
  call void %entry(ptr %inputs, ptr %outputs, ptr %weights, ptr %arena, ptr %context)
  ret ptr null
}

; Call a program's entry with its five arguments, which lie behind it at `call`, on a stack of its own: for callers
; whose stack is small. Returns 0, or the error of a system that starts no thread.
define i32 @onnxla_pool_call(ptr %call) {
entry:
  %thread = alloca i64, align 8
  %status = call i32 @start_thread(ptr %thread, ptr @called, ptr %call)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %exit, label %wait
wait:
  %id = load i64, ptr %thread
  %joined = call i32 @pthread_join(i64 %id, ptr null)
  br label %exit
exit:
  ret i32 %status
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

_KEEP_AWAY_ON_LINUX = r"""
; Before a worker is woken: it may run where the caller may, but not on the caller's own CPU. Left to itself the system
; often wakes it there, and it waits for milliseconds while the others are idle.
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)

define internal void @keep_away(i64 %index) {
entry:
  %set = alloca [16 x i64]
  %cpu.found = call i32 @sched_getcpu()
  %cpu = zext i32 %cpu.found to i64
  %mark = add i64 %cpu, 1
  %away = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %index, i32 1
  %before = load i64, ptr %away
  %known = icmp eq i64 %before, %mark
  %strange = icmp uge i64 %cpu, 1024
  %nothing.to.do = or i1 %known, %strange
  br i1 %nothing.to.do, label %exit, label %ask
ask:
  %status = call i32 @sched_getaffinity(i32 0, i64 128, ptr %set)
  %failed = icmp slt i32 %status, 0
  br i1 %failed, label %exit, label %remove
remove:
  %word = lshr i64 %cpu, 6
  %place = getelementptr [16 x i64], ptr %set, i64 0, i64 %word
  %bits = load i64, ptr %place
  %shift = and i64 %cpu, 63
  %bit = shl i64 1, %shift
  %others = xor i64 %bit, -1
  %left = and i64 %bits, %others
  store i64 %left, ptr %place
  %thread.place = getelementptr [$max_threads x i64], ptr @threads, i64 0, i64 %index
  %thread = load i64, ptr %thread.place
  ; with no CPU left the call fails and nothing changes
  %set.status = call i32 @pthread_setaffinity_np(i64 %thread, i64 128, ptr %set)
  store i64 %mark, ptr %away
  br label %exit
exit:
  ret void
}
"""
_KEEP_AWAY_ELSEWHERE = """
define internal void @keep_away(i64 %index) {
  ret void
}
"""

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
    keep_away = Template(_KEEP_AWAY_ON_LINUX if "linux" in triple else _KEEP_AWAY_ELSEWHERE)
    monotonic_clock = "6" if "apple" in triple or "darwin" in triple else "1"
    return _TEXT.substitute(
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
