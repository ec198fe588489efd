"""The thread pool's workers: their life, how they are started and woken, and how the caller waits for them. LLVM IR."""

WORKERS = r"""
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
"""

KEEP_AWAY_ON_LINUX = r"""
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
KEEP_AWAY_ELSEWHERE = """
define internal void @keep_away(i64 %index) {
  ret void
}
"""
