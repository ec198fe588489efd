"""What a process asks of the thread pool beside jobs: a stack for a caller, how long to look, its end. LLVM IR."""

CALLS = r"""
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
"""
