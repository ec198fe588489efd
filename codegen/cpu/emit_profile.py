"""What a profiled run measures, as LLVM IR: the time of each step, and on request of each round and task.

A profile is an array of i64, zero at first but for element 2. Clock values are in ns:

    0  when the run began     1  when it ended
    2  how many records fit: the caller says     3  how many there were, where that is more than 0
    4 + 3k ...  of step k of `walk_steps(plan.steps)`: when it last began, its time in all rounds, how many there were
    behind them, records of four: step, thread (0: the step as a whole), begin, end
"""

PROFILE_HEAD, PROFILE_STEP, PROFILE_RECORD = 4, 3, 4
"""Elements of a profile: before its steps, of a step, of a record."""


def emit_profile(triple: str, steps: int) -> str:
    """What the profiled function of a plan with so many steps (inner ones counted) calls."""
    clock = 6 if "darwin" in triple else 1  # CLOCK_MONOTONIC
    records = PROFILE_HEAD + PROFILE_STEP * steps
    return f"""
define internal i64 @now() noinline nounwind {{
  %time = alloca {{ i64, i64 }}, align 8
  %status = call i32 @clock_gettime(i32 {clock}, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %place = getelementptr i8, ptr %time, i64 8
  %fraction = load i64, ptr %place, align 8
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %fraction
  ret i64 %sum
}}

; A step that began at %begin has ended: %last becomes the time now.
define internal void @step_ended(ptr %profile, ptr %last, i64 %begin, i64 %step) noinline nounwind {{
  %end = call i64 @now()
  store i64 %end, ptr %last, align 8
  %row = mul i64 %step, {PROFILE_STEP}
  %first = add i64 %row, {PROFILE_HEAD}
  %began = getelementptr i64, ptr %profile, i64 %first
  store i64 %begin, ptr %began, align 8
  %time = sub i64 %end, %begin
  %sum = getelementptr i8, ptr %began, i64 8
  %before = load i64, ptr %sum, align 8
  %after = add i64 %before, %time
  store i64 %after, ptr %sum, align 8
  %count = getelementptr i8, ptr %began, i64 16
  %rounds = load i64, ptr %count, align 8
  %more = add i64 %rounds, 1
  store i64 %more, ptr %count, align 8
  call void @record(ptr %profile, i64 %step, i64 0, i64 %begin, i64 %end)
  ret void
}}

define internal void @record(ptr %profile, i64 %step, i64 %thread, i64 %begin, i64 %end) noinline nounwind {{
  %room.place = getelementptr i8, ptr %profile, i64 16
  %room = load i64, ptr %room.place, align 8
  %wanted = icmp sgt i64 %room, 0
  br i1 %wanted, label %take, label %done
take:
  %taken = getelementptr i8, ptr %profile, i64 24
  %number = atomicrmw add ptr %taken, i64 1 monotonic, align 8
  %fits = icmp slt i64 %number, %room
  br i1 %fits, label %write, label %done
write:
  %behind = mul i64 %number, {PROFILE_RECORD}
  %element = add i64 %behind, {records}
  %place = getelementptr i64, ptr %profile, i64 %element
  store i64 %step, ptr %place, align 8
  %place.1 = getelementptr i8, ptr %place, i64 8
  store i64 %thread, ptr %place.1, align 8
  %place.2 = getelementptr i8, ptr %place, i64 16
  store i64 %begin, ptr %place.2, align 8
  %place.3 = getelementptr i8, ptr %place, i64 24
  store i64 %end, ptr %place.3, align 8
  br label %done
done:
  ret void
}}

; A task of the kernel, the profile and the step that stand before the buffers, with its own record where there is room.
define internal void @profiled_task(ptr %buffers, i64 %task) nounwind {{
  %kernel.place = getelementptr i8, ptr %buffers, i64 -8
  %kernel = load ptr, ptr %kernel.place, align 8
  %profile.place = getelementptr i8, ptr %buffers, i64 -16
  %profile = load ptr, ptr %profile.place, align 8
  %room.place = getelementptr i8, ptr %profile, i64 16
  %room = load i64, ptr %room.place, align 8
  %wanted = icmp sgt i64 %room, 0
  br i1 %wanted, label %timed, label %plain
plain:
  call void %kernel(ptr %buffers, i64 %task)
  ret void
timed:
  %begin = call i64 @now()
  call void %kernel(ptr %buffers, i64 %task)
  %end = call i64 @now()
  %thread = call i64 @pthread_self()
  %step.place = getelementptr i8, ptr %buffers, i64 -24
  %step = load i64, ptr %step.place, align 8
  call void @record(ptr %profile, i64 %step, i64 %thread, i64 %begin, i64 %end)
  ret void
}}
"""
