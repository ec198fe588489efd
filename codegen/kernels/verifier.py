"""Check a kernel before it is printed for a target: a schedule's mistake is named here, not by LLVM."""

from onnxla.codegen.kernels.ir import (
    BINARY,
    COMPARISONS,
    INDEX,
    UNARY,
    Block,
    Buffer,
    For,
    If,
    Kernel,
    Value,
    results_of,
)
from onnxla.errors import InternalError
from onnxla.hlo.types import F16, PRED, S32


def verify_kernel(kernel: Kernel) -> None:
    """Raise InternalError naming the kernel and the operation that breaks a rule of the IR."""
    _Verifier(kernel).block(kernel.body, set(kernel.body.parameters))


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.buffers: set[Buffer] = {*kernel.parameters, *kernel.scratch}

    def require(self, condition: bool, op: Value, message: str) -> None:
        if not condition:
            raise InternalError(f"kernel {self.kernel.name}: {message} in {op.opcode} of {op.operands}")

    def block(self, block: Block, visible: set[Value]) -> None:
        """Every operand must be defined before its use, in this block or around it."""
        here = set(visible)
        for op in block.ops:
            for operand in op.operands:
                self.require(operand.is_constant or operand in here, op, f"{operand} is used before its definition")
            if isinstance(op, For):
                self.loop(op, here)
            elif isinstance(op, If):
                self.require(op.operands[0].type.element is PRED and op.operands[0].lanes == 1, op, "no truth value")
                for side in (op.then, op.otherwise):
                    self.block(side, here)
                    self.require([v.type for v in side.results] == [v.type for v in op.results], op, "uneven sides")
            else:
                self.operation(op)
            here.update(results_of(op))
        for value in block.results:
            self.require(value.is_constant or value in here, value, "a block yields what it does not define")

    def loop(self, op: For, visible: set[Value]) -> None:
        lower, upper, *inits = op.operands
        self.require(lower.element is INDEX and upper.element is INDEX and op.step > 0, op, "bad bounds")
        carried = [v.type for v in op.body.parameters[1:]]
        self.require([v.type for v in inits] == carried, op, "initial values of other types")
        self.require([v.type for v in op.body.results] == carried, op, "yielded values of other types")
        self.block(op.body, visible | set(op.body.parameters))

    def operation(self, op: Value) -> None:
        if op.opcode in ("load", "store"):
            buffer, index = op.attributes[0], op.operands[0]
            value = op if op.opcode == "load" else op.operands[1]
            mask = op.operands[1 if op.opcode == "load" else 2 :]
            self.require(buffer in self.buffers, op, f"{buffer.name} is no buffer of this kernel")
            self.require(index.element is INDEX and index.lanes in (1, value.lanes), op, "a bad index")
            self.require(value.element is buffer.element, op, f"{value.type} does not fit {buffer}")
            self.require(op.opcode == "load" or buffer.role != "input", op, f"{buffer.name} is read only")
            self.require(all(m.element is PRED and m.lanes == value.lanes > 1 for m in mask), op, "a bad mask")
        elif op.opcode in BINARY:
            a, b = op.operands
            self.require(a.type == b.type == op.type and a.element is not F16, op, "operands of other types")
        elif op.opcode in UNARY:
            self.require(op.operands[0].type == op.type and op.element is not F16, op, "an operand of another type")
        elif op.opcode == "cmp":
            a, b = op.operands
            self.require(a.type == b.type and op.attributes[0] in COMPARISONS, op, "operands of other types")
        elif op.opcode == "fma":
            same = all(o.type == op.type for o in op.operands)
            self.require(same and op.element.is_float, op, "operands of other types")
        elif op.opcode == "select":
            condition, a, b = op.operands
            self.require(condition.element is PRED and condition.lanes in (1, op.lanes), op, "a bad condition")
            self.require(a.type == b.type == op.type, op, "operands of other types")
        elif op.opcode == "lookup":
            index_type = op.operands[0].type
            self.require(len(op.attributes) == 8 and index_type == op.type and op.element is S32, op, "a bad table")
        elif op.opcode == "any":
            self.require(op.operands[0].element is PRED and op.type.lanes == 1, op, "no truth values")
        elif op.opcode == "copy_async":
            shared, source, count = op.attributes
            self.require({shared, source} <= self.buffers, op, "no buffers of this kernel")
            self.require(shared.role == "shared" and shared.element is source.element, op, "buffers that do not fit")
            self.require(count * source.element.bytes in (4, 8, 16), op, "a size that is not copied")
        elif op.opcode == "load_matrix":
            self.require(op.attributes[0] in self.buffers and op.attributes[0].role == "shared", op, "a bad buffer")
        elif op.opcode == "mma":
            lanes = [o.lanes for o in op.operands]
            self.require(lanes == [4, 1, 1, 4] and op.type == op.operands[3].type, op, "bad tiles")
        elif op.opcode == "bitcast":
            self.require(op.operands[0].element.bits == op.element.bits, op, "other widths")
