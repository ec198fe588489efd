"""Partial sums of a product, and the norm that adds them up: two kernels, the same bits every time."""

import numpy as np
import pytest

from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.types import F16, F32, ElementType, TensorType
from onnxla.passes.fusion import FuseInstructions
from onnxla.passes.split_depth import SplitDepth
from tests.gpu.running import reference, run, samples


def normed_product(element: ElementType, depth: int, norm: bool) -> list[Instruction]:
    """The kernels of x w + bias, scaled by the mean of each row or not."""
    b = Builder()
    x, w = b.parameter(TensorType(element, (17, depth))), b.parameter(TensorType(element, (depth, 24)))
    y = b.dot(x, w, [1], [0], element=F32)
    y = b.add(y, b.broadcast(b.parameter(TensorType(F32, (24,))), y.shape, [1]))
    if norm:
        mean = b.divide(b.reduce_by("add", y, [1]), b.full((17,), 24.0, F32))
        y = b.subtract(y, b.broadcast(mean, y.shape, [0]))
    module = Module("m", b.build(b.tuple(y)))
    assert SplitDepth().run(module)
    FuseInstructions(on_gpu=True).run(module)
    return [i for i in module.entry.instructions() if i.op.opcode not in ("parameter", "reshape", "tuple")]


@pytest.mark.parametrize(("element", "depth", "norm"), [(F16, 768, True), (F32, 512, False)])
def test_parts_are_added_up_by_what_follows(element: ElementType, depth: int, norm: bool) -> None:
    product, total = normed_product(element, depth, norm)
    arrays = samples(product)
    (parts,), reports = run(product, arrays)
    assert not reports and parts.shape == (depth // 128, 17, 24) and parts.dtype == np.float32
    np.testing.assert_allclose(parts, reference(product, arrays)[0], 1e-3, 1e-3)
    assert len(lower(total, GpuTarget()).calls) == 1
    given = [parts if o.shape == parts.shape else a for o, a in zip(total.operands, samples(total), strict=True)]
    (result,), reports = run(total, given)
    assert not reports
    np.testing.assert_allclose(result, reference(total, given)[0], 1e-5, 1e-5)
    (again,), _ = run(total, given)
    assert again.tobytes() == result.tobytes()
