"""Factors of products are rounded, sums and everything else are not."""

import numpy as np
import pytest

from onnxla.config import CompileOptions
from onnxla.errors import InternalError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.ops.contraction import Dot
from onnxla.hlo.types import BF16, F16, F32, S8, ElementType, TensorType
from onnxla.passes.inline_calls import InlineCalls
from onnxla.passes.lower_contractions import LowerContractions
from onnxla.passes.pipelines import check_order, optimize, pipeline_for


def product(element: ElementType = F32) -> tuple[Builder, Instruction]:
    b = Builder()
    x, w = (b.parameter(TensorType(element, shape)) for shape in ((4, 3), (3, 5)))
    return b, b.dot(x, w, [1], [0])


@pytest.mark.parametrize("element", [F16, BF16])
def test_factors_are_rounded_and_sums_stay_f32(element: ElementType) -> None:
    b, dot = product()
    module = Module("m", b.build(b.exponential(dot)))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((4, 3)).astype("f4"), rng.standard_normal((3, 5)).astype("f4")
    assert LowerContractions(element).run(module)
    result = np.asarray(module.entry.evaluate(x, w))
    rounded = x.astype(element.dtype).astype("f8") @ w.astype(element.dtype).astype("f8")
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, np.exp(rounded), 1e-5)
    assert not LowerContractions(element).run(module)


def test_products_of_other_types_are_left_alone() -> None:
    b, dot = product(S8)
    assert not LowerContractions(F16).run(Module("m", b.build(dot)))


def test_the_gpu_pipeline_lowers_what_precision_asks_for() -> None:
    for precision, expected in (("default", F32), ("fp32", F32), ("tf32", F32), ("fp16", F16), ("bf16", BF16)):
        b, dot = product()
        module = Module("m", b.build(b.tuple(dot)))
        optimize(module, "gpu", CompileOptions(precision=precision))
        dots = [i for c in module.computations() for i in c.instructions() if isinstance(i.op, Dot)]
        assert [o.tensor_type.element for o in dots[0].operands] == [expected, expected]
        assert dots[0].tensor_type.element is F32


def test_it_comes_after_what_finds_quantised_products() -> None:
    passes = pipeline_for("gpu", CompileOptions(precision="fp16")).passes
    with pytest.raises(InternalError, match="integer-contractions must run before lower-contractions"):
        check_order([InlineCalls(), LowerContractions(F16), *passes[1:]])
