"""Products that read slices and transposes where they lie, and store where a transpose puts results: one kernel."""

import re

import pytest

from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.ops.structural import Parameter
from onnxla.hlo.types import F16, F32, ElementType, TensorType
from onnxla.passes.fusion import FuseInstructions
from tests.gpu.running import check
from tests.gpu.test_tensor_cores import code_of


def fused(b: Builder, result: Instruction, on_gpu: bool = True) -> list[Instruction]:
    """The kernels that compute a result."""
    module = Module("m", b.build(b.tuple(result)))
    FuseInstructions(on_gpu).run(module)
    return [i for i in module.entry.instructions() if i.op.opcode not in ("parameter", "tuple", "reshape")]


def heads(element: ElementType, start: int = 16) -> tuple[Builder, Instruction]:
    """q k of two heads of 16, where q and k are parts of the rows of one matrix of 20 by 80, in rows of the result."""
    b = Builder()
    x = b.parameter(TensorType(element, (20, 80)))
    q, k = (b.reshape(b.slice(x, (0, s), (20, s + 32)), (20, 2, 16)) for s in (start, start + 32))
    scores = b.dot(q, b.transpose(k, (1, 0, 2)), [2], [2], [1], [0], element=F32)
    return b, b.reshape(b.transpose(b.negate(scores), (1, 0, 2)), (20, 40))


@pytest.mark.parametrize(("element", "start", "bytes"), [(F16, 16, 16), (F16, 4, 8), (F16, 3, None), (F32, 16, None)])
def test_a_product_reads_and_stores_on_gpu(element: ElementType, start: int, bytes: int | None) -> None:
    (kernel,) = fused(*heads(element, start))
    code = code_of(kernel)
    assert set(re.findall(r"\[%0\], \[%1\], (\d+)", code)) == ({str(bytes)} if bytes else set())
    check(kernel, rtol=2e-3, atol=2e-3)


def test_elsewhere_views_are_kernels() -> None:
    assert len(fused(*heads(F16), on_gpu=False)) > 1


def test_views_that_take_rows_apart_are_kernels() -> None:
    b = Builder()
    x, y = b.parameter(TensorType(F16, (32, 64))), b.parameter(TensorType(F16, (32, 24)))
    every_other = b.slice(x, (0, 0), (32, 64), (1, 2))
    assert len(fused(b, b.dot(every_other, y, [1], [0]))) == 2
    b = Builder()
    x, y = b.parameter(TensorType(F32, (32, 64))), b.parameter(TensorType(F32, (64, 24)))
    assert len(fused(b, b.transpose(b.dot(x, y, [1], [0]), (1, 0)))) == 2


def test_a_slice_that_ends_before_its_rows_do_is_not_read_beyond() -> None:
    """Parcels are as long as all of the start, the length and the row allow."""
    b = Builder()
    x, y = b.parameter(TensorType(F16, (3, 17, 44))), b.parameter(TensorType(F16, (36, 24)))
    (kernel,) = fused(b, b.dot(b.slice(x, (1, 1, 4), (3, 17, 40)), y, [2], [0], element=F32))
    assert isinstance(kernel.operands[0].op, Parameter) and len(lower(kernel, GpuTarget()).calls) == 1
    assert set(re.findall(r"\[%0\], \[%1\], (\d+)", code_of(kernel))) == {"8", "16"}
    check(kernel, rtol=2e-3, atol=2e-3)
