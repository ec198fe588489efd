"""Stand-ins for real kernels: native functions that call back into numpy, so that a plan runs without any schedule.

`NativePlan` compiles a module whose kernels call `op.evaluate` on the very memory the plan gave them. So the plan,
its buffers, the printed entry and the linked code are all real; only the arithmetic is numpy's.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onnxla.codegen.cpu.compile_llvm import compile_module
from onnxla.codegen.cpu.generate import generate_code
from onnxla.codegen.cpu.target import host_target
from onnxla.codegen.dataflow import leaves_of
from onnxla.codegen.kernels.ir import INDEX, Block, Buffer, Kernel, KernelType, Value
from onnxla.codegen.lowering import Argument, KernelCall, Lowering, Operand, Result, Temporary
from onnxla.codegen.plan import Plan
from onnxla.codegen.planner import make_plan
from onnxla.codegen.weights import WeightsImage
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.op import Op
from onnxla.hlo.types import Array, TensorType, Type
from onnxla.runtime.loader import NativeLibrary

IN_PLACE = {"add", "multiply", "subtract", "negate", "maximum", "dynamic-update-slice"}
"""Opcodes whose results may overwrite an operand of the same size."""

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int64)
_SERIAL_POOL = """
define void @onnxla_parallel_for(ptr %kernel, ptr %buffers, i64 %tasks, i64 %threads) {
entry:
  br label %loop
loop:
  %task = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void %kernel(ptr %buffers, i64 %task)
  %next = add i64 %task, 1
  %more = icmp slt i64 %next, %tasks
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


@dataclass
class CallbackKernels:
    """Lowers every instruction to one kernel of `tasks` tasks (the first does it all) and a temporary."""

    tasks: int = 1
    temporary_bytes: int = 0
    callbacks: dict[Kernel, Any] = field(default_factory=dict)

    def lower(self, instruction: Instruction) -> Lowering:
        operands = [
            (k, leaf, t) for k, o in enumerate(instruction.operands) for leaf, t in enumerate(leaves_of(o.type))
        ]
        results = leaves_of(instruction.type)
        arguments: list[Argument] = [Operand(k, leaf) for k, leaf, _ in operands]
        arguments += [Result(k) for k in range(len(results))]
        parameters = [_parameter(t, "input") for *_, t in operands] + [_parameter(t, "output") for t in results]
        if self.temporary_bytes:
            arguments.append(Temporary(0))
            parameters.append(Buffer("scratch", results[0].element, 0, "scratch"))
        kernel = Kernel(instruction.op.opcode, parameters, self.tasks, Block([Value("task", KernelType(INDEX))]))
        op, types = instruction.op, [t for *_, t in operands]
        self.callbacks[kernel] = _CALLBACK(_run(op, [o.type for o in instruction.operands], types, results))
        pairs = []
        if op.opcode in IN_PLACE:
            among = instruction.operands[:1] if op.opcode == "dynamic-update-slice" else instruction.operands
            pairs = [(k, 0) for k, o in enumerate(among) if o.type == instruction.type]
        temporaries = (self.temporary_bytes,) if self.temporary_bytes else ()
        return Lowering((KernelCall(kernel, tuple(arguments)),), temporaries, tuple(pairs))

    def emit(self, kernel: Kernel, symbol: str) -> str:
        address = ctypes.cast(self.callbacks[kernel], ctypes.c_void_p).value
        return (
            f"define void @{symbol}(ptr %buffers, i64 %task) nounwind {{\n"
            f"  call void inttoptr (i64 {address} to ptr)(ptr %buffers, i64 %task)\n  ret void\n}}\n"
        )


def _parameter(type: TensorType, role: str) -> Buffer:
    return Buffer("x", type.element, type.size, role)


def _run(
    op: Op, operand_types: Sequence[Type], operands: Sequence[TensorType], results: Sequence[TensorType]
) -> Callable[[Any, int], None]:
    def run(buffers: Any, task: int) -> None:
        """Results start as garbage (but where they are an operand's own memory), as a kernel may write them early."""
        if task == 0:
            for k, type in enumerate(results):
                if buffers[len(operands) + k] not in buffers[: len(operands)]:
                    _view(buffers[len(operands) + k], type).reshape(-1).view(np.uint8)[...] = 0xEE
            given = iter([_view(buffers[k], t).copy() for k, t in enumerate(operands)])
            value = op.evaluate(*(_assemble(t, given) for t in operand_types))
            for k, (array, type) in enumerate(zip(flatten(value), results, strict=True)):
                _view(buffers[len(operands) + k], type)[...] = array

    return run


def _assemble(type: Type, leaves: Any) -> Any:
    return next(leaves) if isinstance(type, TensorType) else tuple(_assemble(e, leaves) for e in type.elements)


def flatten(value: Any) -> list[Array]:
    """The arrays of a value, depth first."""
    return [a for v in value for a in flatten(v)] if isinstance(value, tuple) else [np.asarray(value)]


def _view(address: int | None, type: TensorType) -> Array:
    if not type.bytes:
        return np.zeros(type.shape, type.element.dtype)
    assert address is not None
    memory = (ctypes.c_uint8 * type.bytes).from_address(address)
    return np.ctypeslib.as_array(memory).view(type.element.dtype).reshape(type.shape)


class NativePlan:
    """A module planned, printed, compiled and linked; `run` calls the entry on arrays."""

    def __init__(self, module: Module, kernels: CallbackKernels | None = None) -> None:
        self.kernels = kernels or CallbackKernels()
        image = WeightsImage()
        self.plan: Plan = make_plan(module, self.kernels.lower, image)
        self.weights = image.finish()
        self.code = generate_code(self.plan, host_target(), self.kernels.emit, processes=1)
        self.library = NativeLibrary([*self.code.objects, compile_module(_SERIAL_POOL, host_target())], {})
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)
        self.entry = prototype(self.library["onnxla_run"])

    def run(self, *inputs: Array, profile: Array | None = None) -> list[Array]:
        """The outputs; the arena starts as garbage."""
        held = [np.ascontiguousarray(x) for x in inputs]
        outputs = [np.full(max(t.bytes, 1), 0xAB, np.uint8) for t in self.plan.outputs]
        block = np.full(self.plan.arena_bytes + 128, 0xCD, np.uint8)
        arena = block[-block.ctypes.data % 64 :]
        context = np.array([1, 0 if profile is None else profile.ctypes.data], np.int64)
        weights = self.weights if self.weights.size else np.zeros(1, np.uint8)
        self.entry(_pointers(held), _pointers(outputs), weights.ctypes.data, arena.ctypes.data, context.ctypes.data)
        used = arena[self.plan.arena_bytes : self.plan.arena_bytes + 64]
        assert (used == 0xCD).all(), "wrote past the arena"
        return [
            o[: t.bytes].view(t.element.dtype).reshape(t.shape) for o, t in zip(outputs, self.plan.outputs, strict=True)
        ]


def _pointers(arrays: Sequence[Array]) -> Any:
    return (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))
