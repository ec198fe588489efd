"""Print a kernel as one LLVM IR function: `void symbol(ptr buffers, i64 task)`.

`buffers` is an array with a pointer for each parameter of the kernel. The kernel IR is already SSA
with explicit vectors, so each operation becomes one or a few lines; loops become phis. Products and
sums carry `contract`, so LLVM may fuse them into one rounding; nothing else is relaxed.
Intrinsics need no declaration: LLVM declares those it knows.
"""

from collections.abc import Callable
from functools import partial

from onnxla.codegen.cpu.emit_half import float_to_half, half_to_float
from onnxla.codegen.cpu.emit_memory import MemoryWriter, stored_type
from onnxla.codegen.cpu.llvm_text import llvm_type, scalar_constant, scalar_type, splat_of, suffix_of
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels.ir import Block, For, If, Kernel, KernelType, Value
from onnxla.codegen.kernels.verifier import verify_kernel
from onnxla.hlo.numerics import integer_limits
from onnxla.hlo.types import F16, PRED, S32

_PREDICATES = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}


def emitter(target: Target) -> Callable[[Kernel, str], str]:
    """`emit_kernel` for a target."""
    return partial(emit_kernel, vector_bytes=target.vector_bytes, converts_half=target.converts_half)


def emit_kernel(kernel: Kernel, symbol: str, vector_bytes: int, converts_half: bool = True) -> str:
    """The function's text, complete but for the module around it. Raises InternalError for an ill-formed kernel.

    `vector_bytes` is the width of the target's registers, `converts_half` whether it has instructions for f16.
    """
    verify_kernel(kernel)
    return _Printer(kernel, symbol, vector_bytes, converts_half).text()


class _Printer(MemoryWriter):
    def __init__(self, kernel: Kernel, symbol: str, vector_bytes: int, converts_half: bool) -> None:
        super().__init__(vector_bytes)
        self.kernel = kernel
        self.converts_half = converts_half
        self.symbol = symbol
        self.names[kernel.task] = "%task"
        self.block_name = "entry"

    def text(self) -> str:
        self.lines.append("entry:")
        for k, buffer in enumerate(self.kernel.parameters):
            slot = self.fresh(f"getelementptr inbounds ptr, ptr %buffers, i64 {k}")
            aligned = f", !align !{{i64 {buffer.alignment}}}" if buffer.alignment else ""
            self.pointers[buffer] = self.fresh(f"load ptr, ptr {slot}{aligned}")
        for buffer in self.kernel.scratch:
            kind = f"[{buffer.size} x {stored_type(buffer.element)}]"
            self.pointers[buffer] = self.fresh(f"alloca {kind}, align {buffer.alignment}")
        self.block(self.kernel.body)
        self.lines.append("  ret void")
        body = "\n".join(self.lines)
        return f"define void @{self.symbol}(ptr %buffers, i64 %task) nounwind {{\n{body}\n}}\n"

    # Structure

    def label(self, hint: str) -> str:
        self.counter += 1
        return f"{hint}{self.counter}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block_name = label

    def block(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, For):
                self.loop(op)
            elif isinstance(op, If):
                self.branch(op)
            elif op.opcode == "store":
                self.store(op)
            elif op.opcode == "prefetch":
                self.prefetch(op)
            else:
                self.names[op] = self.operation(op)

    def loop(self, op: For) -> None:
        lower, upper, *inits = op.operands
        certain = lower.is_constant and upper.is_constant and lower.attributes[0] < upper.attributes[0]
        body, end = self.label("loop"), self.label("end")
        before = self.block_name
        if certain:
            self.lines.append(f"  br label %{body}")
        else:
            enter = self.fresh(f"icmp slt i64 {self.ref(lower)}, {self.ref(upper)}")
            self.lines.append(f"  br i1 {enter}, label %{body}, label %{end}")
        self.start(body)
        heads = []
        for value, init in zip(op.body.parameters, (lower, *inits), strict=True):
            heads.append(len(self.lines))
            self.names[value] = self.fresh(f"phi {llvm_type(value.type)} [ {self.ref(init)}, %{before} ]")
        self.block(op.body)
        nexts = [self.fresh(f"add nsw i64 {self.ref(op.body.parameters[0])}, {op.step}")]
        nexts += [self.ref(v) for v in op.body.results]
        for line, text in zip(heads, nexts, strict=True):
            self.lines[line] += f", [ {text}, %{self.block_name} ]"
        again = self.fresh(f"icmp slt i64 {nexts[0]}, {self.ref(upper)}")
        last = self.block_name
        self.lines.append(f"  br i1 {again}, label %{body}, label %{end}")
        self.start(end)
        for result, text, init in zip(op.results, nexts[1:], inits, strict=True):
            arrivals = f"[ {text}, %{last} ]" + ("" if certain else f", [ {self.ref(init)}, %{before} ]")
            self.names[result] = self.fresh(f"phi {llvm_type(result.type)} {arrivals}")

    def branch(self, op: If) -> None:
        then, otherwise, end = self.label("then"), self.label("else"), self.label("end")
        self.lines.append(f"  br i1 {self.ref(op.operands[0])}, label %{then}, label %{otherwise}")
        arrivals = []
        for label, block in ((then, op.then), (otherwise, op.otherwise)):
            self.start(label)
            self.block(block)
            arrivals.append((self.block_name, [self.ref(v) for v in block.results]))
            self.lines.append(f"  br label %{end}")
        self.start(end)
        for k, result in enumerate(op.results):
            sides = ", ".join(f"[ {values[k]}, %{label} ]" for label, values in arrivals)
            self.names[result] = self.fresh(f"phi {llvm_type(result.type)} {sides}")

    # Operations

    def operation(self, op: Value) -> str:
        special = _SPECIAL.get(op.opcode)
        if special:
            return special(self, op)
        type, kind = op.type, llvm_type(op.type)
        operands = ", ".join(self.ref(o) for o in op.operands)
        name = _instruction(op)
        if name.startswith("@"):
            arguments = ", ".join(self.typed(o) for o in op.operands)
            extra = ", i1 false" if op.opcode == "clz" or (op.opcode == "abs" and not type.element.is_float) else ""
            return self.fresh(f"call {kind} {name}.{suffix_of(type)}({arguments}{extra})")
        return self.fresh(f"{name} {kind} {operands}")

    def compare(self, op: Value) -> str:
        a, b = op.operands
        predicate = _PREDICATES[op.attributes[0]]
        if a.element.is_float:
            ordered = "une" if predicate == "ne" else f"o{predicate}"
            return self.fresh(f"fcmp {ordered} {self.typed(a)}, {self.ref(b)}")
        if predicate not in ("eq", "ne"):
            predicate = ("s" if a.element.is_signed else "u") + predicate
        return self.fresh(f"icmp {predicate} {self.typed(a)}, {self.ref(b)}")

    def minmax(self, op: Value) -> str:
        a, b = op.operands
        if op.element.is_float:
            order = "olt" if op.opcode == "min" else "ogt"
            bit = self.fresh(f"fcmp {order} {self.typed(a)}, {self.ref(b)}")
            condition = "i1" if op.lanes == 1 else f"<{op.lanes} x i1>"
            return self.fresh(f"select {condition} {bit}, {self.typed(a)}, {self.typed(b)}")
        if op.element is PRED:
            return self.fresh(f"{'and' if op.opcode == 'min' else 'or'} {self.typed(a)}, {self.ref(b)}")
        sign = "s" if op.element.is_signed else "u"
        return self.fresh(
            f"call {llvm_type(op.type)} @llvm.{sign}{op.opcode}.{suffix_of(op.type)}({self.typed(a)}, {self.typed(b)})"
        )

    def select(self, op: Value) -> str:
        condition, a, b = op.operands
        return self.fresh(f"select {self.typed(condition)}, {self.typed(a)}, {self.typed(b)}")

    def convert(self, op: Value) -> str:
        (x,) = op.operands
        source, target, kind = x.element, op.element, llvm_type(op.type)
        if F16 in (source, target) and not self.converts_half:
            return half_to_float(self, x) if source is F16 else float_to_half(self, x)
        if target is PRED:
            zero = "0" if x.lanes == 1 else "zeroinitializer"
            if source.is_float:
                return self.fresh(f"fcmp une {self.typed(x)}, {'0.0' if x.lanes == 1 else zero}")
            return self.fresh(f"icmp ne {self.typed(x)}, {zero}")
        if source.is_float and target.is_float:
            widen = "fpext" if target.bits > source.bits else "fptrunc"
            operand = self.typed(x)
            if target is F16 and x.opcode == "convert":
                # a fence keeps LLVM from making one conversion of f64 to f32 to f16, which few CPUs have
                type = llvm_type(x.type)
                operand = f"{type} " + self.fresh(f"call {type} @llvm.arithmetic.fence.{suffix_of(x.type)}({operand})")
            return self.fresh(f"{widen} {operand} to {kind}")
        if source.is_float:
            return self.saturating_convert(op)
        if target.is_float:
            return self.fresh(f"{'sitofp' if source.is_signed else 'uitofp'} {self.typed(x)} to {kind}")
        width = 1 if source is PRED else source.bits
        if target.bits == width:
            return self.ref(x)
        widen = "trunc" if target.bits < width else "sext" if source.is_signed else "zext"
        return self.fresh(f"{widen} {self.typed(x)} to {kind}")

    def saturating_convert(self, op: Value) -> str:
        """Float to integer: NaN is 0, what is too large or small the nearest limit.

        LLVM's own saturating conversion falls apart into scalars on vectors, so the plain one is guarded.
        """
        (x,) = op.operands
        low, high = integer_limits(op.element)
        if op.element.bits < min(x.element.bits, 32):
            return self.bounded_convert(op, float(low), float(high))
        kind, condition, value = llvm_type(op.type), llvm_type(op.type.with_element(PRED)), self.typed(x)
        above = self.fresh(f"fcmp oge {value}, {splat_of(x, float(high + 1))}")
        below = self.fresh(f"fcmp olt {value}, {splat_of(x, float(low))}")
        number_at_all = self.fresh(f"fcmp ord {value}, {self.ref(x)}")
        outside = self.fresh(f"or {condition} {above}, {below}")
        inside = self.fresh(f"xor {condition} {outside}, {'true' if op.lanes == 1 else 'splat (i1 true)'}")
        usable = self.fresh(f"and {condition} {inside}, {number_at_all}")
        safe = self.fresh(f"select {condition} {usable}, {value}, {llvm_type(x.type)} {splat_of(x, 0.0)}")
        plain = self.fresh(f"fpto{'s' if op.element.is_signed else 'u'}i {llvm_type(x.type)} {safe} to {kind}")
        capped = self.fresh(f"select {condition} {above}, {kind} {splat_of(op, high)}, {kind} {plain}")
        return self.fresh(f"select {condition} {below}, {kind} {splat_of(op, low)}, {kind} {capped}")

    def bounded_convert(self, op: Value, low: float, high: float) -> str:
        """The same for limits that are floats too, far inside s32: two bounds, and a conversion to s32 that every
        machine has for vectors. The lower bound is what NaN becomes; where it is not 0, NaN is taken out before."""
        (x,) = op.operands
        kind, value = llvm_type(x.type), self.typed(x)
        condition = llvm_type(x.type.with_element(PRED))
        if low != 0.0:
            number_at_all = self.fresh(f"fcmp ord {value}, {self.ref(x)}")
            value = f"{kind} " + self.fresh(f"select {condition} {number_at_all}, {value}, {kind} {splat_of(x, 0.0)}")
        for comparison, bound in (("ogt", low), ("olt", high)):
            inside = self.fresh(f"fcmp {comparison} {value}, {splat_of(x, bound)}")
            value = f"{kind} " + self.fresh(f"select {condition} {inside}, {value}, {kind} {splat_of(x, bound)}")
        wide = llvm_type(x.type.with_element(S32))
        whole = self.fresh(f"fptosi {value} to {wide}")
        return self.fresh(f"trunc {wide} {whole} to {llvm_type(op.type)}")

    def bitcast(self, op: Value) -> str:
        (x,) = op.operands
        source, target = llvm_type(x.type), llvm_type(op.type)
        return self.ref(x) if source == target else self.fresh(f"bitcast {self.typed(x)} to {target}")

    def reinterpret(self, op: Value) -> str:
        return self.fresh(f"bitcast {self.typed(op.operands[0])} to {llvm_type(op.type)}")

    def dot_accumulate(self, op: Value) -> str:
        """One instruction where the schedule found it: vpdpbusd for groups of four, pmaddwd for groups of two."""
        total, a, b = op.operands
        bits = 32 * op.lanes
        if op.attributes[0] == 4:
            narrow = f"<{4 * op.lanes} x i8>"
            x = self.fresh(f"bitcast {self.typed(a)} to {narrow}")
            y = self.fresh(f"bitcast {self.typed(b)} to {narrow}")
            return self.fresh(
                f"call {llvm_type(op.type)} @llvm.x86.avx512.vpdpbusd.{bits}({self.typed(total)}, "
                f"{narrow} {x}, {narrow} {y})"
            )
        narrow = f"<{2 * op.lanes} x i16>"
        x = self.fresh(f"bitcast {self.typed(a)} to {narrow}")
        y = self.fresh(f"bitcast {self.typed(b)} to {narrow}")
        name = {128: "sse2.pmadd.wd", 256: "avx2.pmadd.wd", 512: "avx512.pmaddw.d.512"}[bits]
        pairs = self.fresh(f"call {llvm_type(op.type)} @llvm.x86.{name}({narrow} {x}, {narrow} {y})")
        return self.fresh(f"add {llvm_type(op.type)} {self.ref(total)}, {pairs}")

    def lookup(self, op: Value) -> str:
        """vpermd of each register full of lanes; one of sixteen holds the table twice."""
        (index,) = op.operands
        whole = KernelType(S32, 16 if self.vector_bytes == 64 and op.lanes >= 16 else 8)
        kind = llvm_type(whole)
        name = {8: "avx2.permd", 16: "avx512.permvar.si.512"}[whole.lanes]
        table = "<" + ", ".join(f"i32 {op.attributes[k % 8]}" for k in range(whole.lanes)) + ">"
        found = []
        for lanes in self.registers(index, whole.lanes):
            found.append(self.fresh(f"call {kind} @llvm.x86.{name}({kind} {table}, {kind} {lanes})"))
        if op.lanes == 1:
            return self.fresh(f"extractelement {kind} {found[0]}, i64 0")
        if op.lanes < whole.lanes:
            return self.lanes_of(whole, found[0], found[0], range(op.lanes))
        return self.joined(whole, found)

    def registers(self, x: Value, lanes: int) -> list[str]:
        """A value as vectors of `lanes`; of a shorter one the further lanes are arbitrary."""
        if x.lanes == 1:
            return [self.fresh(f"insertelement {llvm_type(x.type.with_lanes(lanes))} poison, {self.typed(x)}, i64 0")]
        text, type = self.ref(x), x.type
        while type.lanes < lanes:
            text, type = self.lanes_of(type, text, text, range(2 * type.lanes)), type.with_lanes(2 * type.lanes)
        parts = [range(first, first + lanes) for first in range(0, type.lanes, lanes)]
        return [text] if len(parts) == 1 else [self.lanes_of(type, text, text, part) for part in parts]

    def splat(self, op: Value) -> str:
        return self.copies(op.operands[0], op.lanes)

    def step(self, op: Value) -> str:
        scalar = scalar_type(op.element)
        lanes = (scalar_constant(op.element.dtype.type(k).item(), op.element) for k in range(op.lanes))
        return "<" + ", ".join(f"{scalar} {lane}" for lane in lanes) + ">"

    def extract(self, op: Value) -> str:
        return self.fresh(f"extractelement {self.typed(op.operands[0])}, i64 {op.attributes[0]}")

    def any(self, op: Value) -> str:
        (mask,) = op.operands
        return self.fresh(f"call i1 @llvm.vector.reduce.or.{suffix_of(mask.type)}({self.typed(mask)})")

    def pack(self, op: Value) -> str:
        kind, vector = llvm_type(op.type), "poison"
        for k, scalar in enumerate(op.operands):
            vector = self.fresh(f"insertelement {kind} {vector}, {self.typed(scalar)}, i64 {k}")
        return vector

    def shuffle(self, op: Value) -> str:
        a, b = op.operands
        lanes = ", ".join(f"i32 {k}" for k in op.attributes)
        return self.fresh(f"shufflevector {self.typed(a)}, {self.typed(b)}, <{op.lanes} x i32> <{lanes}>")

    def logical_not(self, op: Value) -> str:
        minus_one = "true" if op.element is PRED else "-1"
        ones = minus_one if op.lanes == 1 else f"splat ({scalar_type(op.element)} {minus_one})"
        return self.fresh(f"xor {self.typed(op.operands[0])}, {ones}")


def _instruction(op: Value) -> str:
    """The LLVM instruction, or the intrinsic (`@llvm....`) of an operation of one type."""
    element = op.element
    if element.is_float:
        return _FLOAT_OPS[op.opcode]
    return _UNSIGNED_OPS.get(op.opcode, _INTEGER_OPS[op.opcode]) if not element.is_signed else _INTEGER_OPS[op.opcode]


_FLOAT_OPS = {
    "add": "fadd contract",
    "sub": "fsub contract",
    "mul": "fmul contract",
    "div": "fdiv",
    "rem": "frem",
    "neg": "fneg",
    "fma": "@llvm.fma",
    "abs": "@llvm.fabs",
    "sqrt": "@llvm.sqrt",
    "floor": "@llvm.floor",
    "ceil": "@llvm.ceil",
    "trunc": "@llvm.trunc",
    "rint": "@llvm.roundeven",
}
_INTEGER_OPS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "div": "sdiv",
    "rem": "srem",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "shl": "shl",
    "shr": "ashr",
    "abs": "@llvm.abs",
    "popcnt": "@llvm.ctpop",
    "clz": "@llvm.ctlz",
}
_UNSIGNED_OPS = {"div": "udiv", "rem": "urem", "shr": "lshr"}


def _negate(printer: _Printer, op: Value) -> str:
    (x,) = op.operands
    if op.element.is_float:
        return printer.fresh(f"fneg {printer.typed(x)}")
    zero = "0" if op.lanes == 1 else "zeroinitializer"
    return printer.fresh(f"sub {llvm_type(op.type)} {zero}, {printer.ref(x)}")


_SPECIAL: dict[str, Callable[[_Printer, Value], str]] = {
    "load": _Printer.load,
    "cmp": _Printer.compare,
    "min": _Printer.minmax,
    "max": _Printer.minmax,
    "select": _Printer.select,
    "convert": _Printer.convert,
    "bitcast": _Printer.bitcast,
    "splat": _Printer.splat,
    "reinterpret": _Printer.reinterpret,
    "dot_accumulate": _Printer.dot_accumulate,
    "lookup": _Printer.lookup,
    "step": _Printer.step,
    "extract": _Printer.extract,
    "pack": _Printer.pack,
    "any": _Printer.any,
    "shuffle": _Printer.shuffle,
    "not": _Printer.logical_not,
    "neg": _negate,
}
