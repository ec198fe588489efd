"""The thread pool's jobs: tasks shared out, taken one by one, and the caller's part in it. LLVM IR with `$places`."""

from string import Template

_ONE_BY_ONE = Template(r"""
define $linkage void @$name(ptr %kernel, ptr %buffers, i64 %tasks$more) {
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
""")


def one_by_one(name: str, linkage: str = "internal", more: str = "") -> str:
    """A function that runs kernel(buffers, task) for every task < tasks, and has further parameters `more`."""
    return _ONE_BY_ONE.substitute(name=name, linkage=linkage, more=more)


JOBS = (
    one_by_one("run_alone")
    + r"""
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

declare i64 @llvm.umin.i64(i64, i64)
"""
)
