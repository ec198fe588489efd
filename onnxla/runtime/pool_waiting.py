"""The thread pool's state, and how a thread waits: by looking for a while, and then asleep. LLVM IR with `$places`.

The names with a place are those of `thread_pool_code.py`, which puts the parts together.
"""

STATE_AND_WAITING = r"""
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
"""
