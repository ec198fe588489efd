"""Print a kernel as one LLVM IR function: `void symbol(ptr buffers, i64 task)`.

`buffers` is an array with a pointer for each parameter of the kernel. The kernel IR is already SSA
with explicit vectors, so each operation becomes one or a few lines; loops become phis. Products and
sums carry `contract`, so LLVM may fuse them into one rounding; nothing else is relaxed.
Intrinsics need no declaration: LLVM declares those it knows.
"""

import struct
from collections.abc import Callable
from functools import partial

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels.ir import Block, Buffer, For, If, Kernel, KernelType, Value
from onnxla.codegen.kernels.verifier import verify_kernel
from onnxla.errors import InternalError
from onnxla.hlo.numerics import integer_limits
from onnxla.hlo.types import F16, F32, F64, PRED, S32, U8, ElementType, Kind

_FLOATS = {F16: "half", F32: "float", F64: "double"}
_PREDICATES = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}


def emitter(target: Target) -> Callable[[Kernel, str], str]:
    """`emit_kernel` for a target."""
    return partial(emit_kernel, vector_bytes=target.vector_bytes)


def emit_kernel(kernel: Kernel, symbol: str, vector_bytes: int) -> str:
    """The function's text, complete but for the module around it. Raises InternalError for an ill-formed kernel.

    `vector_bytes` is the width of the target's registers.
    """
    verify_kernel(kernel)
    return _Printer(kernel, symbol, vector_bytes).text()


def _scalar(element: ElementType) -> str:
    if element in _FLOATS:
        return _FLOATS[element]
    if element is PRED:
        return "i1"
    if element.kind in (Kind.SIGNED, Kind.UNSIGNED) and element.bits >= 8:
        return f"i{element.bits}"
    raise InternalError(f"{element} is not a type of the kernel IR")


def _first_lane_only(mask: Value) -> bool:
    """Whether a mask is known to be true for lane 0 and no other.

    With AVX-512, LLVM turns the masked store of one truncated element into a store of the whole element it was cut
    from, and so into the bytes behind it. Therefore such an element is stored as a scalar.
    """
    if mask.opcode != "cmp" or mask.attributes != ("LT",):
        return False
    lanes, limit = mask.operands
    return lanes.opcode == "step" and limit.is_constant and limit.attributes[0] == 1


def _stored(element: ElementType) -> ElementType:
    """What memory holds for an element: a byte for a truth value."""
    return U8 if element is PRED else element


def _memory(element: ElementType) -> str:
    return _scalar(_stored(element))


def _llvm_type(type: KernelType) -> str:
    scalar = _scalar(type.element)
    return scalar if type.lanes == 1 else f"<{type.lanes} x {scalar}>"


def _suffix(type: KernelType) -> str:
    """How an overloaded intrinsic spells a type: `v8f32`, `i64`."""
    scalar = f"f{type.element.bits}" if type.element.is_float else _scalar(type.element)
    return scalar if type.lanes == 1 else f"v{type.lanes}{scalar}"


def _scalar_constant(value: object, element: ElementType) -> str:
    if element is PRED:
        return "true" if value else "false"
    if element in _FLOATS:
        assert isinstance(value, float)
        if value != value:
            value = float("nan")
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    return str(value)


def _splat(like: Value, number: float | int) -> str:
    """A number of the type of a value, without the type."""
    scalar = _scalar_constant(number, like.element)
    return scalar if like.lanes == 1 else f"splat ({_scalar(like.element)} {scalar})"


class _Printer:
    def __init__(self, kernel: Kernel, symbol: str, vector_bytes: int) -> None:
        self.kernel = kernel
        self.symbol = symbol
        self.vector_bytes = vector_bytes
        self.lines: list[str] = []
        self.names: dict[Value, str] = {kernel.task: "%task"}
        self.pointers: dict[Buffer, str] = {}
        self.counter = 0
        self.block_name = "entry"

    def text(self) -> str:
        self.lines.append("entry:")
        for k, buffer in enumerate(self.kernel.parameters):
            slot = self.fresh(f"getelementptr inbounds ptr, ptr %buffers, i64 {k}")
            aligned = f", !align !{{i64 {buffer.alignment}}}" if buffer.alignment else ""
            self.pointers[buffer] = self.fresh(f"load ptr, ptr {slot}{aligned}")
        for buffer in self.kernel.scratch:
            kind = f"[{buffer.size} x {_memory(buffer.element)}]"
            self.pointers[buffer] = self.fresh(f"alloca {kind}, align {buffer.alignment}")
        self.block(self.kernel.body)
        self.lines.append("  ret void")
        body = "\n".join(self.lines)
        return f"define void @{self.symbol}(ptr %buffers, i64 %task) nounwind {{\n{body}\n}}\n"

    # Names

    def fresh(self, text: str) -> str:
        name = f"%v{self.counter}"
        self.counter += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def label(self, hint: str) -> str:
        self.counter += 1
        return f"{hint}{self.counter}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block_name = label

    def ref(self, value: Value) -> str:
        if value.is_constant:
            scalar = _scalar_constant(value.attributes[0], value.element)
            return scalar if value.lanes == 1 else f"splat ({_scalar(value.element)} {scalar})"
        return self.names[value]

    def typed(self, value: Value) -> str:
        return f"{_llvm_type(value.type)} {self.ref(value)}"

    # Structure

    def block(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, For):
                self.loop(op)
            elif isinstance(op, If):
                self.branch(op)
            elif op.opcode == "store":
                self.store(op)
            elif op.opcode == "prefetch":
                address = self.address(op.attributes[0], op.operands[0])
                self.lines.append(f"  call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 2, i32 1)")
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
            self.names[value] = self.fresh(f"phi {_llvm_type(value.type)} [ {self.ref(init)}, %{before} ]")
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
            self.names[result] = self.fresh(f"phi {_llvm_type(result.type)} {arrivals}")

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
            self.names[result] = self.fresh(f"phi {_llvm_type(result.type)} {sides}")

    # Memory

    def address(self, buffer: Buffer, index: Value) -> str:
        return self.fresh(
            f"getelementptr inbounds {_memory(buffer.element)}, ptr {self.pointers[buffer]}, {self.typed(index)}"
        )

    def load(self, op: Value) -> str:
        buffer, alignment = op.attributes
        index, *mask = op.operands
        address = self.address(buffer, index)
        lanes = op.lanes
        memory = KernelType(_stored(buffer.element), lanes)
        kind, suffix = _llvm_type(memory), _suffix(memory)
        align = alignment or buffer.element.bytes
        if index.lanes > 1:
            masks = self.ref(mask[0]) if mask else "splat (i1 true)"
            got = self.fresh(
                f"call {kind} @llvm.masked.gather.{suffix}.v{lanes}p0(<{lanes} x ptr> align {align} {address}, "
                f"<{lanes} x i1> {masks}, {kind} zeroinitializer)"
            )
        elif mask and lanes > 1:
            got = self.masked_load(memory, address, align, mask[0])
        elif mask:
            raise InternalError("a scalar load has no mask: guard it with an if")
        else:
            got = self.fresh(f"load {kind}, ptr {address}, align {align}")
        if buffer.element is PRED:
            zero = "0" if lanes == 1 else "zeroinitializer"
            got = self.fresh(f"icmp ne {kind} {got}, {zero}")
        return got

    def parts(self, memory: KernelType) -> list[range]:
        """The lanes of a vector in memory, a register at a time.

        Masked accesses are printed so. LLVM 22, with AVX2, divides one wider than a register itself, and takes the
        mask of a register for all true where it knows that it is all false: a load then gives what is behind the
        array for zeros. That comes from a mask that two registers share, therefore each gets its own (`mask_of`).
        """
        size = min(memory.lanes, max(self.vector_bytes // memory.element.bytes, 1))
        return [range(first, first + size) for first in range(0, memory.lanes, size)]

    def mask_of(self, mask: Value, lanes: range) -> str:
        """Some lanes of a mask, computed for them alone."""
        kind = f"<{len(lanes)} x i1>"
        if mask.is_constant or mask.lanes == len(lanes):
            return self.ref(mask)
        match mask.opcode:
            case "and" | "or":
                a, b = (self.mask_of(side, lanes) for side in mask.operands)
                return self.fresh(f"{mask.opcode} {kind} {a}, {b}")
            case "not":
                return self.fresh(f"xor {kind} {self.mask_of(mask.operands[0], lanes)}, splat (i1 true)")
            case "splat":
                return self.copies(mask.operands[0], len(lanes))
        return self.lanes_of(mask.type, self.ref(mask), self.ref(mask), lanes)

    def masked_load(self, memory: KernelType, address: str, align: int, mask: Value) -> str:
        """A vector with zeros where the mask is false."""
        loaded = []
        for lanes in self.parts(memory):
            part = memory.with_lanes(len(lanes))
            kind, place = _llvm_type(part), self.behind(address, memory.element, lanes.start)
            loaded.append(
                self.fresh(
                    f"call {kind} @llvm.masked.load.{_suffix(part)}.p0(ptr align {align} {place}, "
                    f"<{len(lanes)} x i1> {self.mask_of(mask, lanes)}, {kind} zeroinitializer)"
                )
            )
        while len(loaded) > 1:
            part = memory.with_lanes(memory.lanes // len(loaded))
            pairs = zip(loaded[::2], loaded[1::2], strict=True)
            loaded = [self.lanes_of(part, low, high, range(2 * part.lanes)) for low, high in pairs]
        return loaded[0]

    def masked_store(self, memory: KernelType, stored: str, address: str, align: int, mask: Value) -> None:
        for lanes in self.parts(memory):
            part = memory.with_lanes(len(lanes))
            value = stored if part == memory else self.lanes_of(memory, stored, stored, lanes)
            place, masked = self.behind(address, memory.element, lanes.start), self.mask_of(mask, lanes)
            self.lines.append(
                f"  call void @llvm.masked.store.{_suffix(part)}.p0({_llvm_type(part)} {value}, "
                f"ptr align {align} {place}, <{len(lanes)} x i1> {masked})"
            )

    def behind(self, address: str, element: ElementType, count: int) -> str:
        return self.fresh(f"getelementptr {_scalar(element)}, ptr {address}, i64 {count}") if count else address

    def lanes_of(self, type: KernelType, low: str, high: str, chosen: range) -> str:
        """Lanes `chosen` of two vectors of a type, one behind the other."""
        kind = _llvm_type(type)
        indices = ", ".join(f"i32 {k}" for k in chosen)
        return self.fresh(f"shufflevector {kind} {low}, {kind} {high}, <{len(chosen)} x i32> <{indices}>")

    def store(self, op: Value) -> None:
        buffer, alignment = op.attributes
        index, value, *mask = op.operands
        address = self.address(buffer, index)
        memory = KernelType(_stored(buffer.element), value.lanes)
        kind, suffix, stored = _llvm_type(memory), _suffix(memory), self.ref(value)
        if buffer.element is PRED:
            stored = self.fresh(f"zext {self.typed(value)} to {kind}")
        align = alignment or buffer.element.bytes
        if index.lanes > 1:
            masks = self.ref(mask[0]) if mask else "splat (i1 true)"
            self.lines.append(
                f"  call void @llvm.masked.scatter.{suffix}.v{value.lanes}p0({kind} {stored}, "
                f"<{value.lanes} x ptr> align {align} {address}, <{value.lanes} x i1> {masks})"
            )
        elif mask and _first_lane_only(mask[0]):
            element = self.fresh(f"extractelement {kind} {stored}, i64 0")
            self.lines.append(f"  store {_memory(buffer.element)} {element}, ptr {address}, align {align}")
        elif mask:
            self.masked_store(memory, stored, address, align, mask[0])
        else:
            self.lines.append(f"  store {kind} {stored}, ptr {address}, align {align}")

    # Operations

    def operation(self, op: Value) -> str:
        special = _SPECIAL.get(op.opcode)
        if special:
            return special(self, op)
        type, kind = op.type, _llvm_type(op.type)
        operands = ", ".join(self.ref(o) for o in op.operands)
        name = _instruction(op)
        if name.startswith("@"):
            arguments = ", ".join(self.typed(o) for o in op.operands)
            extra = ", i1 false" if op.opcode == "clz" or (op.opcode == "abs" and not type.element.is_float) else ""
            return self.fresh(f"call {kind} {name}.{_suffix(type)}({arguments}{extra})")
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
            f"call {_llvm_type(op.type)} @llvm.{sign}{op.opcode}.{_suffix(op.type)}({self.typed(a)}, {self.typed(b)})"
        )

    def select(self, op: Value) -> str:
        condition, a, b = op.operands
        return self.fresh(f"select {self.typed(condition)}, {self.typed(a)}, {self.typed(b)}")

    def convert(self, op: Value) -> str:
        (x,) = op.operands
        source, target, kind = x.element, op.element, _llvm_type(op.type)
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
                type = _llvm_type(x.type)
                operand = f"{type} " + self.fresh(f"call {type} @llvm.arithmetic.fence.{_suffix(x.type)}({operand})")
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
        kind, condition, value = _llvm_type(op.type), _llvm_type(op.type.with_element(PRED)), self.typed(x)
        above = self.fresh(f"fcmp oge {value}, {_splat(x, float(high + 1))}")
        below = self.fresh(f"fcmp olt {value}, {_splat(x, float(low))}")
        number_at_all = self.fresh(f"fcmp ord {value}, {self.ref(x)}")
        outside = self.fresh(f"or {condition} {above}, {below}")
        inside = self.fresh(f"xor {condition} {outside}, {'true' if op.lanes == 1 else 'splat (i1 true)'}")
        usable = self.fresh(f"and {condition} {inside}, {number_at_all}")
        safe = self.fresh(f"select {condition} {usable}, {value}, {_llvm_type(x.type)} {_splat(x, 0.0)}")
        plain = self.fresh(f"fpto{'s' if op.element.is_signed else 'u'}i {_llvm_type(x.type)} {safe} to {kind}")
        capped = self.fresh(f"select {condition} {above}, {kind} {_splat(op, high)}, {kind} {plain}")
        return self.fresh(f"select {condition} {below}, {kind} {_splat(op, low)}, {kind} {capped}")

    def bounded_convert(self, op: Value, low: float, high: float) -> str:
        """The same for limits that are floats too, far inside s32: two bounds, and a conversion to s32 that every
        machine has for vectors. The lower bound is what NaN becomes; where it is not 0, NaN is taken out before."""
        (x,) = op.operands
        kind, value = _llvm_type(x.type), self.typed(x)
        condition = _llvm_type(x.type.with_element(PRED))
        if low != 0.0:
            number_at_all = self.fresh(f"fcmp ord {value}, {self.ref(x)}")
            value = f"{kind} " + self.fresh(f"select {condition} {number_at_all}, {value}, {kind} {_splat(x, 0.0)}")
        for comparison, bound in (("ogt", low), ("olt", high)):
            inside = self.fresh(f"fcmp {comparison} {value}, {_splat(x, bound)}")
            value = f"{kind} " + self.fresh(f"select {condition} {inside}, {value}, {kind} {_splat(x, bound)}")
        wide = _llvm_type(x.type.with_element(S32))
        whole = self.fresh(f"fptosi {value} to {wide}")
        return self.fresh(f"trunc {wide} {whole} to {_llvm_type(op.type)}")

    def bitcast(self, op: Value) -> str:
        (x,) = op.operands
        source, target = _llvm_type(x.type), _llvm_type(op.type)
        return self.ref(x) if source == target else self.fresh(f"bitcast {self.typed(x)} to {target}")

    def reinterpret(self, op: Value) -> str:
        return self.fresh(f"bitcast {self.typed(op.operands[0])} to {_llvm_type(op.type)}")

    def dot_accumulate(self, op: Value) -> str:
        """One instruction where the schedule found it: vpdpbusd for groups of four, pmaddwd for groups of two."""
        total, a, b = op.operands
        bits = 32 * op.lanes
        if op.attributes[0] == 4:
            narrow = f"<{4 * op.lanes} x i8>"
            x = self.fresh(f"bitcast {self.typed(a)} to {narrow}")
            y = self.fresh(f"bitcast {self.typed(b)} to {narrow}")
            return self.fresh(
                f"call {_llvm_type(op.type)} @llvm.x86.avx512.vpdpbusd.{bits}({self.typed(total)}, "
                f"{narrow} {x}, {narrow} {y})"
            )
        narrow = f"<{2 * op.lanes} x i16>"
        x = self.fresh(f"bitcast {self.typed(a)} to {narrow}")
        y = self.fresh(f"bitcast {self.typed(b)} to {narrow}")
        name = {128: "sse2.pmadd.wd", 256: "avx2.pmadd.wd", 512: "avx512.pmaddw.d.512"}[bits]
        pairs = self.fresh(f"call {_llvm_type(op.type)} @llvm.x86.{name}({narrow} {x}, {narrow} {y})")
        return self.fresh(f"add {_llvm_type(op.type)} {self.ref(total)}, {pairs}")

    def splat(self, op: Value) -> str:
        return self.copies(op.operands[0], op.lanes)

    def copies(self, x: Value, lanes: int) -> str:
        kind = _llvm_type(x.type.with_lanes(lanes))
        one = self.fresh(f"insertelement {kind} poison, {self.typed(x)}, i64 0")
        return self.fresh(f"shufflevector {kind} {one}, {kind} poison, <{lanes} x i32> zeroinitializer")

    def step(self, op: Value) -> str:
        scalar = _scalar(op.element)
        lanes = (_scalar_constant(op.element.dtype.type(k).item(), op.element) for k in range(op.lanes))
        return "<" + ", ".join(f"{scalar} {lane}" for lane in lanes) + ">"

    def extract(self, op: Value) -> str:
        return self.fresh(f"extractelement {self.typed(op.operands[0])}, i64 {op.attributes[0]}")

    def any(self, op: Value) -> str:
        (mask,) = op.operands
        return self.fresh(f"call i1 @llvm.vector.reduce.or.{_suffix(mask.type)}({self.typed(mask)})")

    def pack(self, op: Value) -> str:
        kind, vector = _llvm_type(op.type), "poison"
        for k, scalar in enumerate(op.operands):
            vector = self.fresh(f"insertelement {kind} {vector}, {self.typed(scalar)}, i64 {k}")
        return vector

    def shuffle(self, op: Value) -> str:
        a, b = op.operands
        lanes = ", ".join(f"i32 {k}" for k in op.attributes)
        return self.fresh(f"shufflevector {self.typed(a)}, {self.typed(b)}, <{op.lanes} x i32> <{lanes}>")

    def logical_not(self, op: Value) -> str:
        minus_one = "true" if op.element is PRED else "-1"
        ones = minus_one if op.lanes == 1 else f"splat ({_scalar(op.element)} {minus_one})"
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
    return printer.fresh(f"sub {_llvm_type(op.type)} {zero}, {printer.ref(x)}")


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
    "step": _Printer.step,
    "extract": _Printer.extract,
    "pack": _Printer.pack,
    "any": _Printer.any,
    "shuffle": _Printer.shuffle,
    "not": _Printer.logical_not,
    "neg": _negate,
}
