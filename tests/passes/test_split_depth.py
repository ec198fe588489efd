"""Products in parts of their depth: which, in how many, and that values stay."""

import numpy as np
import pytest

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.ops.contraction import Convolution, ConvolutionDimensions, Dot, Window
from onnxla.hlo.types import F16, F32, F64, S8, S32, U8, ElementType, TensorType
from onnxla.passes.split_depth import SplitDepth, multiprocessors_of
from tests.gpu.running import samples


def split(b: Builder, result: Instruction) -> tuple[Module, int]:
    """The module after the pass, and in how many parts the depth is; values are checked."""
    arrays = samples(result)
    module = Module("m", b.build(b.tuple(result)))
    given = [array for array, o in zip(arrays, result.operands, strict=True) if o.op.opcode == "parameter"]
    (before,) = module.entry.evaluate(*given)
    changed = SplitDepth(108).run(module)
    (after,) = module.entry.evaluate(*given)
    assert after.dtype == before.dtype
    exact = after.dtype.kind == "i"
    np.testing.assert_allclose(after.astype("f8"), before.astype("f8"), 0 if exact else 2e-3, 0 if exact else 2e-2)
    (contraction,) = (i for i in module.entry.instructions() if isinstance(i.op, Dot | Convolution))
    parts = contraction.tensor_type.size // result.tensor_type.size
    assert changed == (parts > 1)
    return module, parts


@pytest.mark.parametrize(
    ("m", "k", "n", "parts"),
    [
        (49, 4608, 64, 16),  # one tile: as many parts as there may be
        (1, 1024, 1000, 4),  # 16 tiles and 108 multiprocessors
        (128, 768, 768, 4),
        (128, 768, 3072, 1),  # 96 tiles occupy most of a GPU
        (10, 255, 10, 1),  # parts of less than 128
        (10, 2 * 509, 10, 1),  # a prime
        (10, 1000, 10, 5),  # whole eighths
    ],
)
def test_depth_is_shared_out_where_tiles_are_few(m: int, k: int, n: int, parts: int) -> None:
    b = Builder()
    x, y = b.parameter(TensorType(F32, (m, k))), b.parameter(TensorType(F32, (k, n)))
    assert split(b, b.dot(x, y, [1], [0]))[1] == parts


@pytest.mark.parametrize(("element", "k", "parts"), [(F32, 256, 1), (F16, 512, 1), (F16, 1024, 8), (S8, 1024, 1)])
def test_what_a_kernel_costs_more_than_it_saves_stays(element: ElementType, k: int, parts: int) -> None:
    b = Builder()
    x, y = b.parameter(TensorType(element, (6, k))), b.parameter(TensorType(element, (k, 4)))
    assert split(b, b.dot(x, y, [1], [0], element=S32 if element is S8 else F32))[1] == parts


@pytest.mark.parametrize("contracting", [(1, 0), (0, 1)])
@pytest.mark.parametrize(("left", "element"), [(F16, F16), (F16, F32), (U8, S32)])
def test_types_and_layouts(left: ElementType, element: ElementType, contracting: tuple[int, int]) -> None:
    b = Builder()
    x = b.parameter(TensorType(left, (6, 2048) if contracting[0] else (2048, 6)))
    y = b.parameter(TensorType(S8 if left is U8 else left, (4, 2048) if contracting[1] else (2048, 4)))
    module, parts = split(b, b.dot(x, y, [contracting[0]], [contracting[1]], element=element))
    assert parts == 16
    (dot,) = (i for i in module.entry.instructions() if isinstance(i.op, Dot))
    assert dot.tensor_type.element is (S32 if element is S32 else F32)


def test_batches_keep_their_place() -> None:
    b = Builder()
    x, y = b.parameter(TensorType(F32, (3, 2, 5, 512))), b.parameter(TensorType(F32, (2, 512, 3, 7)))
    assert split(b, b.dot(x, y, [3], [1], [1, 0], [0, 2]))[1] == 4


@pytest.mark.parametrize("last", [True, False])
def test_convolutions_are_split_along_features(last: bool) -> None:
    b = Builder()
    rng = np.random.default_rng(0)
    dims = ConvolutionDimensions.nhwc(2) if last else ConvolutionDimensions.nchw(2)
    x = b.parameter(TensorType(F32, (1, 5, 5, 64) if last else (1, 64, 5, 5)))
    w = b.constant(rng.standard_normal((3, 3, 64, 12) if last else (12, 64, 3, 3)).astype("f4"))
    assert split(b, b.convolution(x, w, Window.of([3, 3], [1, 1], [1, 1], [1, 1]), dims))[1] == 2


def test_what_is_not_split() -> None:
    b = Builder()
    x, y = b.parameter(TensorType(F64, (2, 512))), b.parameter(TensorType(F64, (512, 2)))
    assert split(b, b.dot(x, y, [1], [0]))[1] == 1
    b = Builder()
    image, kernel = b.parameter(TensorType(F32, (1, 4, 4, 64))), b.parameter(TensorType(F32, (3, 3, 64, 8)))
    result = b.convolution(image, kernel, Window.of([3, 3]), ConvolutionDimensions.nhwc(2))
    assert split(b, result)[1] == 1  # weights that are computed would have to be moved
    b = Builder()
    kernel = b.constant(np.ones((3, 3, 32, 8), "f4"))
    grouped = b.convolution(
        b.parameter(TensorType(F32, (1, 4, 4, 64))), kernel, Window.of([3, 3]), ConvolutionDimensions.nhwc(2), 2
    )
    assert split(b, grouped)[1] == 1


def test_the_lowest_architecture_decides() -> None:
    assert multiprocessors_of("sm_90,sm_80") == 108
    assert multiprocessors_of("sm_90a") == 132
    assert multiprocessors_of("sm_75") < multiprocessors_of("sm_120")
