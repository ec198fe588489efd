"""Print a kernel as one CUDA C++ function that needs no header.

A task is a block: `blockIdx.x` is the task, `threadIdx.x` the thread. Operations print in SSA form,
one variable each. Positions are 32 bits where every buffer is small enough.
"""

import math
import struct
from collections.abc import Callable

from onnxla.codegen.kernels.ir import INDEX, Block, Buffer, For, If, Kernel, Value
from onnxla.codegen.kernels.verifier import verify_kernel
from onnxla.errors import InternalError
from onnxla.hlo.numerics import integer_limits
from onnxla.hlo.types import F16, F32, F64, PRED, S32, U32, ElementType, Kind

_COMPARISONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_VECTORS = {(F32, 4): "float4", (U32, 4): "uint4", (S32, 4): "int4"}
"""The vectors that CUDA code has: what tensor cores hold."""
_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "and": "&", "or": "|", "xor": "^"}


def emit_cuda(kernel: Kernel, symbol: str) -> str:
    """`extern "C" __global__ void symbol(...)`, a parameter for each buffer.

    Raises InternalError for a kernel that is ill-formed or has vectors that CUDA has none of.
    """
    verify_kernel(kernel)
    return _Printer(kernel, symbol).text()


class _Printer:
    def __init__(self, kernel: Kernel, symbol: str) -> None:
        self.kernel = kernel
        self.symbol = symbol
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        largest = max((b.size for b in (*kernel.parameters, *kernel.scratch)), default=0)
        self.index = "int" if max(largest, kernel.tasks * kernel.threads) < 1 << 30 else "long long"

    def text(self) -> str:
        parameters = ", ".join(
            f"{'const ' if b.role == 'input' else ''}{self.memory(b.element)}* {b.name}" for b in self.kernel.parameters
        )
        head = f'extern "C" __global__ void __launch_bounds__({self.kernel.threads}) {self.symbol}({parameters}) {{'
        self.lines.append(head)
        for buffer in self.kernel.scratch:
            place = "__shared__ " if buffer.role == "shared" else ""
            place += f"__align__({buffer.alignment}) " if buffer.role == "shared" and buffer.alignment else ""
            self.lines.append(f"  {place}{self.memory(buffer.element)} {buffer.name}[{max(buffer.size, 1)}];")
        self.lines.append(f"  const {self.index} task = blockIdx.x;")
        self.names[self.kernel.task] = "task"
        self.block(self.kernel.body, "  ")
        return "\n".join([*self.lines, "}"]) + "\n"

    # Types and names

    def scalar(self, element: ElementType) -> str:
        if element is INDEX:
            return self.index
        if element in (F32, F64):
            return "float" if element is F32 else "double"
        if element is PRED:
            return "bool"
        if element is F16:
            return "unsigned short"
        names = {8: "char", 16: "short", 32: "int", 64: "long long"}
        if element.kind in (Kind.SIGNED, Kind.UNSIGNED) and element.bits in names:
            return f"{'signed' if element.is_signed else 'unsigned'} {names[element.bits]}"
        raise InternalError(f"{element} is not a type of the kernel IR")

    def kind(self, value: Value) -> str:
        """The C++ type of a value."""
        if value.lanes == 1:
            return self.scalar(value.element)
        if (value.element, value.lanes) not in _VECTORS:
            raise InternalError(f"kernel {self.kernel.name}: {value} is a vector that CUDA code has none of")
        return _VECTORS[value.element, value.lanes]

    def memory(self, element: ElementType) -> str:
        return "unsigned char" if element is PRED else self.scalar(element)

    def ref(self, value: Value) -> str:
        return self.constant(value) if value.is_constant else self.names[value]

    def constant(self, value: Value) -> str:
        number, element = value.attributes[0], value.element
        if value.lanes > 1:
            lane = self.constant(Value("const", value.type.with_lanes(1), (), value.attributes))
            return f"make_{self.kind(value)}({', '.join([lane] * value.lanes)})"
        if element is PRED:
            return "true" if number else "false"
        if element in (F32, F64):
            return _float(number, element)
        if element is INDEX:
            return str(number)
        if element.bits == 64:
            suffix = "ll" if element.is_signed else "ull"
            return f"(-{(1 << 63) - 1}ll - 1)" if number == -(1 << 63) else f"{number}{suffix}"
        return f"({self.scalar(element)}){number}{'' if element.is_signed else 'u'}"

    def define(self, op: Value, expression: str, indent: str) -> None:
        name = f"v{len(self.names)}"
        self.names[op] = name
        self.lines.append(f"{indent}const {self.kind(op)} {name} = {expression};")

    # Structure

    def block(self, block: Block, indent: str) -> None:
        for op in block.ops:
            if isinstance(op, For):
                self.loop(op, indent)
            elif isinstance(op, If):
                self.branch(op, indent)
            elif op.opcode == "store":
                self.store(op, indent)
            elif op.opcode == "barrier":
                self.lines.append(f"{indent}__syncthreads();")
            elif op.opcode == "copy_async":
                self.copy_async(op, indent)
            elif op.opcode == "wait_for_copies":
                self.lines.append(f'{indent}asm volatile("cp.async.wait_all;" ::: "memory");')
            elif op.opcode != "prefetch":
                self.define(op, self.expression(op), indent)

    def loop(self, op: For, indent: str) -> None:
        lower, upper, *inits = op.operands
        for result, init in zip(op.results, inits, strict=True):
            self.names[result] = f"r{len(self.names)}"
            self.lines.append(f"{indent}{self.kind(result)} {self.names[result]} = {self.ref(init)};")
        counter, *carried = op.body.parameters
        for value, result in zip(carried, op.results, strict=True):
            self.names[value] = self.names[result]
        i = self.names[counter] = f"i{len(self.names)}"
        self.lines.append(
            f"{indent}for ({self.index} {i} = {self.ref(lower)}; {i} < {self.ref(upper)}; {i} += {op.step}) {{"
        )
        self.block(op.body, indent + "  ")
        self.assign(op.results, op.body.results, indent + "  ")
        self.lines.append(f"{indent}}}")

    def branch(self, op: If, indent: str) -> None:
        for result in op.results:
            self.names[result] = f"r{len(self.names)}"
            self.lines.append(f"{indent}{self.kind(result)} {self.names[result]};")
        self.lines.append(f"{indent}if ({self.ref(op.operands[0])}) {{")
        self.block(op.then, indent + "  ")
        self.assign(op.results, op.then.results, indent + "  ")
        if op.otherwise.ops or op.results:
            self.lines.append(f"{indent}}} else {{")
            self.block(op.otherwise, indent + "  ")
            self.assign(op.results, op.otherwise.results, indent + "  ")
        self.lines.append(f"{indent}}}")

    def assign(self, targets: list[Value], values: tuple[Value, ...], indent: str) -> None:
        """All at once: a value may be another target's old one."""
        changes = [(t, v) for t, v in zip(targets, values, strict=True) if self.names[t] != self.ref(v)]
        if len(changes) > 1:
            for k, (t, v) in enumerate(changes):
                self.lines.append(f"{indent}const {self.kind(t)} n{k}_ = {self.ref(v)};")
            self.lines += [f"{indent}{self.names[t]} = n{k}_;" for k, (t, _) in enumerate(changes)]
        else:
            self.lines += [f"{indent}{self.names[t]} = {self.ref(v)};" for t, v in changes]

    def place(self, buffer: Buffer, index: Value) -> str:
        return f"{buffer.name}[{self.ref(index)}]"

    def store(self, op: Value, indent: str) -> None:
        index, value = op.operands[:2]
        place = self.place(op.attributes[0], index)
        place = place if value.lanes == 1 else f"*({self.kind(value)}*)&{place}"
        self.lines.append(f"{indent}{place} = {self.ref(value)};")

    def copy_async(self, op: Value, indent: str) -> None:
        """Zeros are copied by reading no byte of the source."""
        (index, at, condition), (shared, source, count) = op.operands, op.attributes
        size = count * source.element.bytes
        cache = "cg" if size == 16 else "ca"
        inputs = (
            f'"r"({self.shared_address(shared, index)}), "l"(__cvta_generic_to_global(&{self.place(source, at)}))'
            f', "r"({self.ref(condition)} ? {size} : 0)'
        )
        text = f"cp.async.{cache}.shared.global [%0], [%1], {size}, %2;"
        self.lines.append(f'{indent}asm volatile("{text}" :: {inputs} : "memory");')

    def shared_address(self, buffer: Buffer, index: Value) -> str:
        return f"(unsigned)__cvta_generic_to_shared(&{self.place(buffer, index)})"

    # Operations

    def expression(self, op: Value) -> str:
        special = _SPECIAL.get(op.opcode)
        if special:
            return special(self, op)
        operands = [self.ref(o) for o in op.operands]
        element = op.element
        if op.opcode in ("min", "max"):
            order = "<" if op.opcode == "min" else ">"
            return f"{operands[0]} {order} {operands[1]} ? {operands[0]} : {operands[1]}"
        if op.opcode == "rem" and element.is_float:
            return f"fmod{_f(element)}({', '.join(operands)})"
        if op.opcode in _INFIX:
            # signed overflow wraps in the IR but not in C++
            if element.is_integer and element.is_signed and element is not INDEX and op.opcode in ("add", "sub", "mul"):
                wide = self.scalar(element).replace("signed", "unsigned")
                return f"({self.scalar(element)})(({wide}){operands[0]} {_INFIX[op.opcode]} ({wide}){operands[1]})"
            return f"{operands[0]} {_INFIX[op.opcode]} {operands[1]}"
        if op.opcode in ("shl", "shr"):
            sign = "<<" if op.opcode == "shl" else ">>"
            return f"({self.scalar(element)})({operands[0]} {sign} {operands[1]})"
        if op.opcode == "cmp":
            return f"{operands[0]} {_COMPARISONS[op.attributes[0]]} {operands[1]}"
        if op.opcode == "select":
            return f"{operands[0]} ? {operands[1]} : {operands[2]}"
        if op.opcode == "fma":
            return f"__fma{'f' if element is F32 else ''}_rn({', '.join(operands)})"
        raise InternalError(f"kernel {self.kernel.name}: CUDA C++ has no {op.opcode}")

    def load(self, op: Value) -> str:
        place = self.place(op.attributes[0], op.operands[0])
        return place if op.lanes == 1 else f"*(const {self.kind(op)}*)&{place}"

    def convert(self, op: Value) -> str:
        (x,) = op.operands
        source, target, text = x.element, op.element, self.ref(x)
        if target is PRED:
            return f"{text} != 0"
        if target is F16:
            return self.assembly("cvt.rn.f16.f32 %0, %1;", "h", op, "f", x)
        if source is F16:
            return self.assembly("cvt.f32.f16 %0, %1;", "f", op, "h", x)
        if source.is_float and target.is_integer:
            return self.saturating(op)
        return f"({self.scalar(target)}){text}"

    def saturating(self, op: Value) -> str:
        """Float to integer as the hardware does it: truncated, saturated, NaN to 0."""
        (x,) = op.operands
        bits = max(op.element.bits, 32)
        sign = "s" if op.element.is_signed else "u"
        form = f"{sign}{bits}"
        constraint = "r" if bits == 32 else "l"
        floating = "f" if x.element is F32 else "d"
        whole = self.assembly(f"cvt.rzi.{form}.f{x.element.bits} %0, %1;", constraint, op, floating, x)
        if op.element.bits < bits:
            low, high = integer_limits(op.element)
            whole = f"max(min({whole}, {high}), {low})" if op.element.is_signed else f"min({whole}, {high}u)"
        return f"({self.scalar(op.element)})(({self.ref(x)} != {self.ref(x)}) ? 0 : {whole})"

    def assembly(self, text: str, out: str, op: Value, constraint: str, x: Value, read: str = "") -> str:
        """The result of one PTX instruction over `read(x)`, through a statement before the expression."""
        kinds = {"h": "unsigned short", "f": "float", "d": "double"}
        kinds |= {"r": f"{'signed' if op.element.is_signed else 'unsigned'} int"}
        kinds |= {"l": f"{'signed' if op.element.is_signed else 'unsigned'} long long"}
        name = f"a{len(self.lines)}_"
        given = f'"{constraint}"({read}({self.ref(x)}))'
        self.lines.append(f'  {kinds[out]} {name}; asm("{text}" : "={out}"({name}) : {given});')
        return name

    def bitcast(self, op: Value) -> str:
        (x,) = op.operands
        kinds = (x.element, op.element)
        text = self.ref(x)
        if kinds[0] is F32:
            return f"({self.scalar(op.element)})__float_as_int({text})"
        if kinds[1] is F32:
            return f"__int_as_float((int){text})"
        if kinds[0] is F64:
            return f"({self.scalar(op.element)})__double_as_longlong({text})"
        if kinds[1] is F64:
            return f"__longlong_as_double((long long){text})"
        return f"({self.scalar(op.element)}){text}"

    def unary(self, op: Value) -> str:
        text, element = self.ref(op.operands[0]), op.element
        if op.opcode == "neg":
            return f"-{text}"
        if op.opcode == "not":
            return f"!{text}" if element is PRED else f"({self.scalar(element)})~{text}"
        if op.opcode in ("popcnt", "clz"):
            long = "ll" if element.bits == 64 else ""
            name = "__popc" if op.opcode == "popcnt" else "__clz"
            unsigned = self.scalar(element).replace("signed", "unsigned") if element.is_signed else self.scalar(element)
            surplus = f" - {32 - element.bits}" if op.opcode == "clz" and element.bits < 32 else ""
            return f"({self.scalar(element)})({name}{long}(({unsigned}){text}){surplus})"
        if op.opcode == "abs" and not element.is_float:
            return f"({self.scalar(element)})({text} < 0 ? -{text} : {text})"
        names = {"abs": "fabs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint"}
        if op.opcode == "sqrt":
            return f"__{'f' if element is F32 else 'd'}sqrt_rn({text})"
        return f"{names[op.opcode]}{_f(element)}({text})"

    def load_matrix(self, op: Value) -> str:
        buffer, transposed = op.attributes
        text = f"ldmatrix.sync.aligned.m8n8.x4{'.trans' if transposed else ''}.shared.b16 {{%0, %1, %2, %3}}, [%4];"
        return self.vector_assembly(text, op, f'"r"({self.shared_address(buffer, op.operands[0])})', "r", "memory")

    def mma(self, op: Value) -> str:
        a, first, second, total = op.operands
        kind = op.attributes[0]
        whole = op.element is S32
        shape = "m16n8k32" if whole else "m16n8k8" if kind == "tf32" else "m16n8k16"
        types = f"s32.{kind}.s32" if whole else f"f32.{kind}.{kind}.f32"
        text = (
            f"mma.sync.aligned.{shape}.row.col.{types} "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        )
        inputs = [f'"r"({self.ref(a)}.{lane})' for lane in "xyzw"]
        inputs += [f'"r"({self.ref(word)})' for word in (first, second)]
        constraint = "r" if whole else "f"
        inputs += [f'"{constraint}"({self.ref(total)}.{lane})' for lane in "xyzw"]
        return self.vector_assembly(text, op, ", ".join(inputs), constraint, "")

    def vector_assembly(self, text: str, op: Value, inputs: str, constraint: str, clobber: str) -> str:
        """The four lanes of the result of one PTX instruction, through a statement before the expression."""
        name = f"a{len(self.lines)}_"
        outputs = ", ".join(f'"={constraint}"({name}.{lane})' for lane in "xyzw")
        end = f' : "{clobber}"' if clobber else ""
        volatile = " volatile" if clobber else ""
        self.lines.append(f'  {self.kind(op)} {name}; asm{volatile}("{text}" : {outputs} : {inputs}{end});')
        return name

    def shuffle_xor(self, op: Value) -> str:
        return f"__shfl_xor_sync(0xffffffffu, {self.ref(op.operands[0])}, {op.attributes[0]})"


def _f(element: ElementType) -> str:
    return "f" if element is F32 else ""


def _float(number: float, element: ElementType) -> str:
    if math.isfinite(number):
        return f"{float(number).hex()}{_f(element)}"
    if element is F32:
        (bits,) = struct.unpack("<I", struct.pack("<f", number))
        return f"__int_as_float(0x{bits:08x})"
    (wide,) = struct.unpack("<Q", struct.pack("<d", number))
    return f"__longlong_as_double(0x{wide:016x}ll)"


_SPECIAL: dict[str, Callable[[_Printer, Value], str]] = {
    "load": _Printer.load,
    "convert": _Printer.convert,
    "bitcast": _Printer.bitcast,
    "shuffle_xor": _Printer.shuffle_xor,
    "load_matrix": _Printer.load_matrix,
    "mma": _Printer.mma,
    "round_to_tf32": lambda printer, op: printer.assembly(
        "cvt.rna.tf32.f32 %0, %1;", "r", op, "f", op.operands[0], "__uint_as_float"
    ),
    "extract": lambda printer, op: f"{printer.ref(op.operands[0])}.{'xyzw'[op.attributes[0]]}",
    "pack": lambda printer, op: f"make_{printer.kind(op)}({', '.join(map(printer.ref, op.operands))})",
    "splat": lambda printer, op: f"make_{printer.kind(op)}({', '.join([printer.ref(op.operands[0])] * op.lanes)})",
    "thread": lambda printer, op: f"({printer.index})threadIdx.x",
    **dict.fromkeys(("neg", "not", "abs", "sqrt", "floor", "ceil", "trunc", "rint", "popcnt", "clz"), _Printer.unary),
}
