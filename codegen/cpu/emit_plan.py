"""Print a plan as LLVM IR: the one native entry of a compiled model.

    void onnxla_run(ptr inputs, ptr outputs, ptr weights, ptr arena, ptr context)

`inputs` and `outputs` are arrays of pointers; `context` points to `{ i64 threads, ptr profile }`. A launch fills an
array of pointers on the stack and calls its kernel, or `onnxla_parallel_for` where there are several tasks.

With a profile the plan runs through a second function, which measures as `emit_profile.py` says; so the usual path has
no trace of it.
"""

from collections.abc import Callable

from onnxla.codegen.cpu.emit_profile import emit_profile
from onnxla.codegen.kernels.ir import Kernel
from onnxla.codegen.plan import Branch, Copy, Launch, Plan, Slot, Space, Step, Steps, WhileLoop, walk_steps

ENTRY = "onnxla_run"
_SIGNATURE = "ptr %inputs, ptr %outputs, ptr %weights, ptr %arena"


def emit_plan(plan: Plan, symbol_of: Callable[[Kernel], str], triple: str, entry: str = ENTRY) -> str:
    """The text of a whole LLVM module that defines `entry` and declares the kernels it calls."""
    plain = _Printer(plan, symbol_of, profiling=False).function(entry + "_plain", f"{_SIGNATURE}, i64 %threads")
    profiled = _Printer(plan, symbol_of, profiling=True).function(
        entry + "_profiled", f"{_SIGNATURE}, i64 %threads, ptr %profile"
    )
    symbols = sorted({symbol_of(step.kernel) for step in walk_steps(plan.steps) if isinstance(step, Launch)})
    declarations = [f"declare void @{symbol}(ptr, i64)" for symbol in symbols]
    return "\n".join(
        [
            f'target triple = "{triple}"',
            "declare void @onnxla_parallel_for(ptr, ptr, i64, i64)",
            "declare i32 @clock_gettime(i32, ptr)",
            "declare i64 @pthread_self()",
            *declarations,
            _entry(entry),
            plain,
            profiled,
            emit_profile(triple, sum(1 for _ in walk_steps(plan.steps))),
        ]
    )


def _entry(name: str) -> str:
    return f"""
define void @{name}({_SIGNATURE}, ptr %context) nounwind {{
  %threads = load i64, ptr %context, align 8
  %place = getelementptr i8, ptr %context, i64 8
  %profile = load ptr, ptr %place, align 8
  %quiet = icmp eq ptr %profile, null
  br i1 %quiet, label %plain, label %profiled
plain:
  call void @{name}_plain(ptr %inputs, ptr %outputs, ptr %weights, ptr %arena, i64 %threads)
  ret void
profiled:
  call void @{name}_profiled(ptr %inputs, ptr %outputs, ptr %weights, ptr %arena, i64 %threads, ptr %profile)
  ret void
}}
"""


class _Printer:
    def __init__(self, plan: Plan, symbol_of: Callable[[Kernel], str], profiling: bool) -> None:
        self.plan = plan
        self.symbol_of = symbol_of
        self.profiling = profiling
        self.number = -1
        """Of the step that is being printed, in the order of `walk_steps`."""
        self.lines: list[str] = []
        self.counter = 0

    def function(self, name: str, parameters: str) -> str:
        launches = [s for s in walk_steps(self.plan.steps) if isinstance(s, Launch)]
        slots = max((len(s.arguments) for s in launches), default=0)
        if self.profiling:
            self.lines.append(f"  %room = alloca [{slots + 4} x ptr], align 16")
            self.lines.append("  %buffers = getelementptr i8, ptr %room, i64 32")
            self.lines.append("  %profile.slot = getelementptr i8, ptr %buffers, i64 -16")
            self.lines.append("  store ptr %profile, ptr %profile.slot, align 8")
        else:
            self.lines.append(f"  %buffers = alloca [{max(slots, 1)} x ptr], align 16")
        for kind, count in (("input", len(self.plan.inputs)), ("output", len(self.plan.outputs))):
            for k in range(count):
                self.lines.append(f"  %{kind}{k}.place = getelementptr ptr, ptr %{kind}s, i64 {k}")
                self.lines.append(f"  %{kind}{k} = load ptr, ptr %{kind}{k}.place, align 8")
        if self.profiling:
            self.lines.append("  %last = alloca i64, align 8")
            now = self.fresh("call i64 @now()")
            self.lines += [f"  store i64 {now}, ptr %last, align 8", f"  store i64 {now}, ptr %profile, align 8"]
        self.steps(self.plan.steps)
        if self.profiling:
            end = self.fresh("load i64, ptr %last, align 8")
            place = self.fresh("getelementptr i8, ptr %profile, i64 8")
            self.lines.append(f"  store i64 {end}, ptr {place}, align 8")
        self.lines.append("  ret void")
        return f"define internal void @{name}({parameters}) noinline nounwind {{\n" + "\n".join(self.lines) + "\n}\n"

    def fresh(self, text: str) -> str:
        self.counter += 1
        self.lines.append(f"  %t{self.counter} = {text}")
        return f"%t{self.counter}"

    def labels(self, *hints: str) -> list[str]:
        self.counter += 1
        return [f"{hint}{self.counter}" for hint in hints]

    def pointer(self, slot: Slot) -> str:
        buffer = slot.buffer
        if buffer.space in (Space.INPUT, Space.OUTPUT):
            return f"%{buffer.space.value}{buffer.place}"
        base = "%weights" if buffer.space is Space.WEIGHTS else "%arena"
        return self.fresh(f"getelementptr inbounds i8, ptr {base}, i64 {buffer.place}") if buffer.place else base

    def steps(self, steps: Steps) -> None:
        for step in steps:
            self.number += 1
            number = self.number
            begin = self.fresh("load i64, ptr %last, align 8") if self.profiling else ""
            self.step(step)
            if self.profiling:
                self.lines.append(f"  call void @step_ended(ptr %profile, ptr %last, i64 {begin}, i64 {number})")

    def step(self, step: Step) -> None:
        if isinstance(step, Launch):
            self.launch(step)
        elif isinstance(step, Copy):
            self.lines.append(
                f"  call void @llvm.memcpy.p0.p0.i64(ptr {self.pointer(step.target)}, "
                f"ptr {self.pointer(step.source)}, i64 {step.target.buffer.bytes}, i1 false)"
            )
        elif isinstance(step, WhileLoop):
            self.loop(step)
        else:
            self.branch(step)

    def launch(self, step: Launch) -> None:
        tasks = step.kernel.tasks
        if tasks == 0:
            return
        for k, slot in enumerate(step.arguments):
            place = self.fresh(f"getelementptr inbounds ptr, ptr %buffers, i64 {k}") if k else "%buffers"
            self.lines.append(f"  store ptr {self.pointer(slot)}, ptr {place}, align 8")
        symbol = self.symbol_of(step.kernel)
        if tasks == 1:
            self.lines.append(f"  call void @{symbol}(ptr %buffers, i64 0)")
            return
        if self.profiling:
            for offset, content in ((-8, f"ptr @{symbol}"), (-24, f"i64 {self.number}")):
                place = self.fresh(f"getelementptr i8, ptr %buffers, i64 {offset}")
                self.lines.append(f"  store {content}, ptr {place}, align 8")
            symbol = "profiled_task"
        self.lines.append(f"  call void @onnxla_parallel_for(ptr @{symbol}, ptr %buffers, i64 {tasks}, i64 %threads)")

    def loop(self, step: WhileLoop) -> None:
        check, turn, leave = self.labels("check", "turn", "leave")
        self.lines += [f"  br label %{check}", f"{check}:"]
        self.steps(step.condition)
        byte = self.fresh(f"load i8, ptr {self.pointer(step.predicate)}, align 1")
        again = self.fresh(f"icmp ne i8 {byte}, 0")
        self.lines += [f"  br i1 {again}, label %{turn}, label %{leave}", f"{turn}:"]
        self.steps(step.body)
        self.lines += [f"  br label %{check}", f"{leave}:"]

    def branch(self, step: Branch) -> None:
        *cases, join = self.labels(*(f"case{k}.of" for k in range(len(step.cases))), "join")
        if step.index_is_pred:
            byte = self.fresh(f"load i8, ptr {self.pointer(step.index)}, align 1")
            bit = self.fresh(f"icmp ne i8 {byte}, 0")
            self.lines.append(f"  br i1 {bit}, label %{cases[0]}, label %{cases[1]}")
        else:
            index = self.fresh(f"load i32, ptr {self.pointer(step.index)}, align 4")
            table = " ".join(f"i32 {k}, label %{label}" for k, label in enumerate(cases[:-1]))
            self.lines.append(f"  switch i32 {index}, label %{cases[-1]} [ {table} ]")
        for label, case in zip(cases, step.cases, strict=True):
            self.lines.append(f"{label}:")
            self.steps(case)
            self.lines.append(f"  br label %{join}")
        self.lines.append(f"{join}:")
