"""Run an instruction's GPU kernels in the simulator and hold the results against `evaluate`."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from onnxla.codegen.gpu.compile_nvrtc import CompiledKernel, compile_cuda
from onnxla.codegen.gpu.emit_cuda import emit_cuda
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.lowering import Argument, Lowering, Operand, Packed, Result, Table, Temporary
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.control_flow import Fusion
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import Array, TensorType
from onnxla.runtime.device import Device, DeviceCode
from tests.gpu.ptx_memory import GlobalMemory, Reports
from tests.gpu.ptx_simulator import simulate
from tests.gpu.ptx_text import PtxKernel, parse_ptx

ARCHITECTURE = "sm_80"
TARGET = GpuTarget(ARCHITECTURE)
Mutation = Callable[[str], str]


@cache
def code_for(source: str) -> CompiledKernel:
    """What NVRTC makes of a CUDA source for ARCHITECTURE."""
    return compile_cuda(source, ARCHITECTURE)


@cache
def compiled(source: str) -> PtxKernel:
    """The kernel named `kernel` of a CUDA source."""
    return parse_ptx(code_for(source).ptx)["kernel"]


def fusion(inner: Builder, *roots: Instruction, kind: str = "kLoop") -> Instruction:
    """A fusion around what `inner` has built."""
    body = inner.build(roots[0] if len(roots) == 1 else inner.tuple(*roots))
    outer = Builder()
    return outer.emit(Fusion(kind, body), *(outer.parameter(p.type) for p in inner.parameters))


def run(
    instruction: Instruction,
    arrays: Sequence[Array],
    mutate: Mutation = lambda source: source,
    target: GpuTarget = TARGET,
) -> tuple[list[Array], Reports]:
    """The result leaves of an instruction over `arrays` (one for each operand), and the faults of its kernels."""
    return run_lowering(lower(instruction, target), instruction, arrays, mutate)


def run_blocks(
    lowering: Lowering,
    instruction: Instruction,
    arrays: Sequence[Array],
    kernels: Sequence[PtxKernel],
    most: int | None,
    pattern: int,
) -> tuple[list[Array], Reports]:
    """As `run_lowering`, the first and last of at most so many blocks of each of its `kernels`, or all; what the blocks
    do not write, of results, are bytes of `pattern`."""
    return run_lowering(lowering, instruction, arrays, kernels=kernels, most=most, pattern=pattern)


def run_lowering(
    lowering: Lowering,
    instruction: Instruction,
    arrays: Sequence[Array],
    mutate: Mutation = lambda source: source,
    *,
    kernels: Sequence[PtxKernel] = (),
    most: int | None = None,
    pattern: int = 0,
    measures: bool = False,
) -> tuple[list[Array], Reports]:
    kind = instruction.type
    leaves = [kind] if isinstance(kind, TensorType) else [t for t in kind.elements if isinstance(t, TensorType)]
    memory, reports = GlobalMemory(), Reports()

    def put(array: Array) -> int:
        address = memory.allocate(array.nbytes)
        memory.write(address, array)
        return address

    operands = [put(a) for a in arrays]
    results = [memory.allocate(t.bytes) for t in leaves]
    temporaries = [memory.allocate(size) for size in lowering.temporaries]
    if pattern:
        for place, kind_of_leaf in zip(results, leaves, strict=True):
            memory.write(place, np.full(kind_of_leaf.bytes, pattern, np.uint8))
    for operand, leaf in lowering.copies:
        memory.write(results[leaf], arrays[operand])

    for k, call in enumerate(lowering.calls):
        kernel = kernels[k] if kernels else compiled(mutate(emit_cuda(call.kernel, "kernel")))
        places = _places(call.arguments, operands, results, temporaries, arrays, put)
        blocks = call.kernel.tasks
        only = None
        if most is not None:
            only = sorted({*range(blocks)[: -(-most // 2)], *range(blocks)[max(blocks - most // 2, 0) :]})
        reports.take(simulate(kernel, memory, blocks, call.kernel.threads, places, only, measures))
    return [
        memory.read(place, t.bytes).view(t.element.dtype).reshape(t.shape)
        for place, t in zip(results, leaves, strict=True)
    ], reports


def run_on(device: Device, instruction: Instruction, arrays: Sequence[Array]) -> list[Array]:
    """As `run`, through a `Device`, which says itself what it thinks of faults."""
    lowering = lower(instruction, TARGET)
    kind = instruction.type
    leaves = [kind] if isinstance(kind, TensorType) else [t for t in kind.elements if isinstance(t, TensorType)]
    taken: list[tuple[int, int]] = []

    def put(data: Array | None, size: int) -> int:
        taken.append((device.allocate(max(size, 1)), max(size, 1)))
        if data is not None and size:
            device.upload(taken[-1][0], np.ascontiguousarray(data).reshape(-1).view(np.uint8), device.stream)
        return taken[-1][0]

    with device.active():
        operands = [put(a, a.nbytes) for a in arrays]
        results = [put(None, t.bytes) for t in leaves]
        temporaries = [put(None, size) for size in lowering.temporaries]
        for operand, leaf in lowering.copies:
            device.copy(results[leaf], operands[operand], arrays[operand].nbytes, device.stream)
        for call in lowering.calls:
            code = code_for(emit_cuda(call.kernel, "kernel"))
            kernels = device.load(DeviceCode(("kernel",), code.ptx, {ARCHITECTURE: code.cubin}))
            places = _places(call.arguments, operands, results, temporaries, arrays, lambda a: put(a, a.nbytes))
            device.launch(kernels["kernel"], call.kernel.tasks, call.kernel.threads, places, device.stream)
        found = [np.empty(t.shape, t.element.dtype) for t in leaves]
        finish = [device.download(place, a, device.stream) for place, a in zip(results, found, strict=True) if a.size]
        device.synchronize(device.mark(device.stream))
        for done in finish:
            done()
        for place, size in taken:
            device.free(place, size)
    return found


def _places(
    arguments: Sequence[Argument],
    operands: Sequence[int],
    results: Sequence[int],
    temporaries: Sequence[int],
    arrays: Sequence[Array],
    put: Callable[[Array], int],
) -> list[int]:
    """Addresses of what a kernel is called with; `put` places data that is known when compiling."""

    def address(argument: Argument) -> int:
        if isinstance(argument, Operand):
            return operands[argument.index]
        if isinstance(argument, Result):
            return results[argument.leaf]
        if isinstance(argument, Temporary):
            return temporaries[argument.index]
        if isinstance(argument, Packed):
            return put(argument.pack(arrays[argument.index]))
        assert isinstance(argument, Table)
        return put(argument.array)

    return [address(argument) for argument in arguments]


def reference(instruction: Instruction, arrays: Sequence[Array]) -> list[Array]:
    """What the interpreter says."""
    b = Builder()
    operands = [
        b.constant(o.op.literal.array) if isinstance(o.op, Constant) else b.parameter(o.type)
        for o in instruction.operands
    ]
    given = [a for a, o in zip(arrays, instruction.operands, strict=True) if not isinstance(o.op, Constant)]
    result = b.build(b.emit(instruction.op, *operands)).evaluate(*given)
    return list(result) if isinstance(result, tuple | list) else [result]


def samples(instruction: Instruction, seed: int = 0) -> list[Array]:
    """An array for each operand: small numbers of its type."""
    rng = np.random.default_rng(seed)
    arrays = []
    for operand in instruction.operands:
        element, shape = operand.tensor_type.element, operand.shape
        if isinstance(operand.op, Constant):
            arrays.append(operand.op.literal.array)
        elif element.is_float:
            arrays.append(rng.standard_normal(shape).astype(element.dtype))
        elif element.dtype == np.dtype(bool):
            arrays.append(rng.integers(0, 2, shape).astype(bool))
        else:
            arrays.append(rng.integers(0 if not element.is_signed else -4, 5, shape).astype(element.dtype))
    return arrays


def check(
    instruction: Instruction, arrays: Sequence[Array] | None = None, rtol: float = 1e-5, atol: float = 1e-6
) -> None:
    """The kernels run without a fault and give what the interpreter gives."""
    arrays = samples(instruction) if arrays is None else arrays
    results, reports = run(instruction, arrays)
    assert not reports, dict(reports)
    for ours, theirs in zip(results, reference(instruction, arrays), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours.astype("f8"), theirs.astype("f8"), rtol, atol)
