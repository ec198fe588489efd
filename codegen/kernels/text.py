"""Kernels as text: what a kernel does, line by line, for dumps, tests and as the key of equal kernels.

kernel add_fusion(in0: f32[100] input, out0: f32[100] output) tasks 1 {
  for %1 in range(0, 96, 1) {
    %2 = mul %1, 8
    %3 = load f32x8 in0[%2]
    ...
  }
}
"""

from onnxla.codegen.kernels.ir import Block, Buffer, For, If, Kernel, Value


def print_kernel(kernel: Kernel) -> str:
    """The kernel's text; equal kernels have equal text but for the name in the first line."""
    return _Printer(kernel).text()


class _Printer:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names: dict[Value, str] = {kernel.task: "%task"}
        self.lines: list[str] = []

    def text(self) -> str:
        parameters = ", ".join(f"{b} {b.role}{_alignment(b)}" for b in self.kernel.parameters)
        self.lines.append(f"kernel {self.kernel.name}({parameters}) tasks {self.kernel.tasks} {{")
        self.lines += [f"  scratch {b}" for b in self.kernel.scratch]
        self.block(self.kernel.body, "  ")
        return "\n".join([*self.lines, "}"]) + "\n"

    def define(self, value: Value) -> str:
        self.names[value] = f"%{len(self.names)}"
        return self.names[value]

    def ref(self, value: Value) -> str:
        if not value.is_constant:
            return self.names[value]
        number = str(value.attributes[0])
        return number if value.lanes == 1 else f"splat({number})"

    def refs(self, values: tuple[Value, ...] | list[Value]) -> str:
        return ", ".join(map(self.ref, values))

    def block(self, block: Block, indent: str) -> None:
        for op in block.ops:
            if isinstance(op, For):
                self.loop(op, indent)
            elif isinstance(op, If):
                self.branch(op, indent)
            else:
                self.operation(op, indent)
        if block.results:
            self.lines.append(f"{indent}yield {self.refs(block.results)}")

    def loop(self, op: For, indent: str) -> None:
        lower, upper, *inits = op.operands
        counter, *carried = [self.define(v) for v in op.body.parameters]
        carry = ", ".join(f"{name} = {self.ref(v)}" for name, v in zip(carried, inits, strict=True))
        results = ", ".join(self.define(v) for v in op.results)
        head = f"for {counter} in range({self.ref(lower)}, {self.ref(upper)}, {op.step})"
        head = f"{results} = {head} carry ({carry})" if results else head
        self.lines.append(f"{indent}{head} {{")
        self.block(op.body, indent + "  ")
        self.lines.append(f"{indent}}}")

    def branch(self, op: If, indent: str) -> None:
        results = ", ".join(self.define(v) for v in op.results)
        self.lines.append(f"{indent}{results + ' = ' if results else ''}if {self.ref(op.operands[0])} {{")
        self.block(op.then, indent + "  ")
        if op.otherwise.ops or op.otherwise.results:
            self.lines.append(f"{indent}}} else {{")
            self.block(op.otherwise, indent + "  ")
        self.lines.append(f"{indent}}}")

    def operation(self, op: Value, indent: str) -> None:
        mask = ""
        if op.opcode in ("load", "store", "prefetch"):
            count = 2 if op.opcode == "store" else 1
            mask = f" where {self.ref(op.operands[count])}" if len(op.operands) > count else ""
            place = f"{op.attributes[0].name}[{self.ref(op.operands[0])}]"
            if op.opcode == "load":
                text = f"{self.define(op)} = load {op.type} {place}{mask}"
            elif op.opcode == "store":
                text = f"store {op.operands[1].type} {place}, {self.ref(op.operands[1])}{mask}"
            else:
                text = f"prefetch {place}" + (" near" if op.attributes[1] else "")
        else:
            extra = "".join(f" {a}" for a in op.attributes)
            operands = f" {self.refs(op.operands)}" if op.operands else ""
            name = self.define(op)
            text = f"{name} = {op.opcode}{extra} {op.type}{operands}"
        self.lines.append(indent + text)


def _alignment(buffer: Buffer) -> str:
    return f" align {buffer.alignment}" if buffer.alignment else ""
