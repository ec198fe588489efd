"""Programs written by hand in LLVM IR, so that the runtime is tested without the compiler."""

from collections.abc import Mapping
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from onnxla.runtime.program import Program, Step
from onnxla.runtime.tensors import Array, TensorSignature
from onnxla.runtime.thread_pool_code import assemble_thread_pool

# y = 2*x + weights, in tasks of 16 elements over the thread pool; the doubled x passes through the arena.
SCALE_AND_ADD = """
declare void @onnxla_parallel_for(ptr, ptr, i64, i64)
declare i32 @clock_gettime(i32, ptr)

define internal void @double(ptr %buffers, i64 %task) {
entry:
  %x = load ptr, ptr %buffers
  %arena.place = getelementptr ptr, ptr %buffers, i64 1
  %arena = load ptr, ptr %arena.place
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
  %base = mul i64 %task, 16
  %i = add i64 %base, %k
  %x.place = getelementptr float, ptr %x, i64 %i
  %value = load float, ptr %x.place, align 4
  %doubled = fmul float %value, 2.0
  %out = getelementptr float, ptr %arena, i64 %i
  store float %doubled, ptr %out, align 4
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, 16
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

define internal void @add(ptr %buffers, i64 %task) {
entry:
  %arena.place = getelementptr ptr, ptr %buffers, i64 1
  %arena = load ptr, ptr %arena.place
  %weights.place = getelementptr ptr, ptr %buffers, i64 2
  %weights = load ptr, ptr %weights.place
  %y.place = getelementptr ptr, ptr %buffers, i64 3
  %y = load ptr, ptr %y.place
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
  %base = mul i64 %task, 16
  %i = add i64 %base, %k
  %a.place = getelementptr float, ptr %arena, i64 %i
  %a = load float, ptr %a.place, align 4
  %w.place = getelementptr float, ptr %weights, i64 %i
  %w = load float, ptr %w.place, align 4
  %sum = fadd float %a, %w
  %out = getelementptr float, ptr %y, i64 %i
  store float %sum, ptr %out, align 4
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, 16
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

; Row 0 begins a run; row k ends step k - 1. The profile is laid out as `codegen/cpu/emit_profile.py` says.
define internal void @tick(ptr %profile, i64 %row) {
entry:
  %time = alloca { i64, i64 }
  %off = icmp eq ptr %profile, null
  br i1 %off, label %exit, label %write
write:
  %status = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %fraction.place = getelementptr { i64, i64 }, ptr %time, i64 0, i32 1
  %fraction = load i64, ptr %fraction.place
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %fraction
  %last = getelementptr i64, ptr %profile, i64 1
  %before = load i64, ptr %last
  store i64 %sum, ptr %last
  %first = icmp eq i64 %row, 0
  br i1 %first, label %begin, label %step
begin:
  store i64 %sum, ptr %profile
  br label %exit
step:
  %place = mul i64 %row, 3
  %element = add i64 %place, 1
  %began = getelementptr i64, ptr %profile, i64 %element
  store i64 %before, ptr %began
  %took = sub i64 %sum, %before
  %took.place = getelementptr i64, ptr %began, i64 1
  store i64 %took, ptr %took.place
  %rounds.place = getelementptr i64, ptr %began, i64 2
  store i64 1, ptr %rounds.place
  br label %exit
exit:
  ret void
}

define void @onnxla_run(ptr %inputs, ptr %outputs, ptr %weights, ptr %arena, ptr %context) {
  %threads = load i64, ptr %context
  %profile.place = getelementptr { i64, ptr }, ptr %context, i64 0, i32 1
  %profile = load ptr, ptr %profile.place
  %buffers = alloca [4 x ptr]
  %x = load ptr, ptr %inputs
  %y = load ptr, ptr %outputs
  %arena.place = getelementptr ptr, ptr %buffers, i64 1
  %weights.place = getelementptr ptr, ptr %buffers, i64 2
  %y.place = getelementptr ptr, ptr %buffers, i64 3
  store ptr %x, ptr %buffers
  store ptr %arena, ptr %arena.place
  store ptr %weights, ptr %weights.place
  store ptr %y, ptr %y.place
  call void @tick(ptr %profile, i64 0)
  call void @onnxla_parallel_for(ptr @double, ptr %buffers, i64 TASKS, i64 %threads)
  call void @tick(ptr %profile, i64 1)
  call void @onnxla_parallel_for(ptr @add, ptr %buffers, i64 TASKS, i64 %threads)
  call void @tick(ptr %profile, i64 2)
  ret void
}
"""


@cache
def object_code(ir: str) -> bytes:
    """The object code of a module in LLVM IR, for this machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1, reloc="pic", codemodel="small")
    return bytes(machine.emit_object(llvm.parse_assembly(ir)))


def thread_pool_object() -> bytes:
    return assemble_thread_pool(llvm.get_process_triple())


def scale_and_add(rows: int, weights: Array | None = None, constants: Mapping[str, Array] | None = None) -> Program:
    """The program y = 2*x + weights for x of shape [rows, 16]; the weights are 0, 1, 2, ... unless given."""
    count = rows * 16
    values = np.arange(count, dtype=np.float32) if weights is None else weights
    return Program(
        inputs=(TensorSignature("x", "f32", (rows, 16)),),
        outputs=(TensorSignature("y", "f32", (rows, 16)),),
        objects=(object_code(SCALE_AND_ADD.replace("TASKS", str(rows))),),
        thread_pool=thread_pool_object(),
        weights=values.view(np.uint8).reshape(-1),
        arena_bytes=count * 4,
        steps=(Step("double", "multiply", "/Mul (Mul)", count * 8), Step("add", "add", "/Add (Add)", count * 12)),
        triple=llvm.get_process_triple(),
        cpu="generic",
        features=(),
        constants=constants or {},
        intermediate_bytes=count * 4,
        kernel_count=2,
        texts={"hlo": "HloModule hand_written\n"},
    )


def expected(x: Array, rows: int) -> Array:
    """What `scale_and_add(rows)` gives for `x`."""
    return np.asarray(2 * x + np.arange(rows * 16, dtype=np.float32).reshape(rows, 16))
