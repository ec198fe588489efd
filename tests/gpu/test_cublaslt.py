"""Products by cuBLASLt: what is described to the library is what the model multiplies, by value; and what happens
without the library."""

import gc
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import helper

import onnxla
from onnxla.codegen.gpu.launch_list import _library
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.strides import Strided
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.lowering import Operand
from onnxla.errors import InputError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.ops.control_flow import Fusion
from onnxla.hlo.types import BF16, F16, F32, F64, Array, ElementType, TensorType
from onnxla.passes import library_products
from onnxla.passes.library_products import LibraryProducts
from onnxla.runtime import cuda_driver, device
from onnxla.runtime.cublaslt import CublasLt
from onnxla.runtime.model import CompiledModel
from tests.gpu.pretended_driver import PretendedDriver
from tests.gpu.running import TARGET, reference, samples
from tests.gpu.test_cuda_device import Theirs, fresh
from tests.gpu.test_models import feeds_of, model_of, weight
from tests.gpu.test_recording import expected_of

if TYPE_CHECKING:
    from tests.gpu.pretended_cublaslt import PretendedCublasLt

pytest.importorskip("nvmath", reason="the bindings of cuBLASLt are not installed (onnxla[cublas])")
STREAM = 7001
OPTIONS = {"cache_dir": None, "gpu_library": "cublaslt"}


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> PretendedDriver:
    pretended = PretendedDriver()
    monkeypatch.setattr(cuda_driver, "_bindings", lambda: pretended)
    return pretended


@pytest.fixture
def library(driver: PretendedDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator["PretendedCublasLt"]:
    from nvmath import CudaDataType
    from nvmath.bindings import cublas

    from onnxla.runtime import cublaslt
    from tests.gpu.pretended_cublaslt import PretendedCublasLt

    pretended = PretendedCublasLt(driver)
    monkeypatch.setattr(cublaslt, "_bindings", lambda: (pretended, cublas, CudaDataType))
    take_small_ones(monkeypatch)
    yield pretended


def take_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_products, "SMALLEST_SIDE", 4)
    monkeypatch.setattr(library_products, "FEWEST_PRODUCTS", 64)


def fused(b: Builder, root: Instruction) -> Instruction:
    """The kernel that the pass makes."""
    module = Module("product", b.build(b.tuple(root)))
    assert LibraryProducts().run(module)
    (instruction,) = module.entry.root.operands
    assert isinstance(instruction.op, Fusion)
    return instruction


def computed(
    instruction: Instruction, arrays: Sequence[Array], driver: PretendedDriver, target: GpuTarget = TARGET
) -> Array:
    """What the library makes of it, by the description that goes into an artifact."""
    (call,) = lower(instruction, target).calls
    assert call.library is not None
    driver.cuCtxPushCurrent(100)
    kind = instruction.tensor_type
    buffers = [*arrays, np.zeros(kind.shape, kind.element.dtype), np.zeros(call.library.workspace_bytes, np.uint8)]
    addresses = [int(driver.cuMemAlloc(max(array.nbytes, 1))[1]) for array in buffers]
    for array, address in zip(buffers, addresses, strict=True):
        driver.memory.write(address, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    places: list[list[str | int]] = [
        ["input", argument.index if isinstance(argument, Operand) else len(arrays) + (k > 2)]
        for k, argument in enumerate(call.library.arguments)
    ]
    wanted = device._library(_library(call.library, places))
    asked = CublasLt()
    asked.multiply(asked.product(wanted), [addresses[place.number] for place in wanted.places], STREAM)
    driver.cuCtxSynchronize()
    driver.cuCtxPopCurrent()
    raw = driver.memory.read(addresses[len(arrays)], kind.bytes)
    return raw.view(kind.element.dtype).reshape(kind.shape)


def check(instruction: Instruction, driver: PretendedDriver, tolerance: float = 1e-5) -> None:
    arrays = samples(instruction)
    (expected,) = reference(instruction, arrays)
    result = computed(instruction, arrays, driver)
    np.testing.assert_allclose(result.astype("f8"), expected.astype("f8"), tolerance, tolerance)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("left", ["mk", "km"])
@pytest.mark.parametrize("right", ["kn", "nk"])
@pytest.mark.parametrize("batched", ["", "first", "between"])
def test_layouts(left: str, right: str, batched: str, driver: PretendedDriver) -> None:
    """Every order of dimensions that leaves one of rows, columns and depth innermost."""
    sizes = {"m": 8, "k": 12, "n": 20, "b": 3}
    if batched:
        left, right = ("b" + s if batched == "first" else s[0] + "b" + s[1] for s in (left, right))
    b = Builder()
    x, y = (b.parameter(TensorType(F32, tuple(sizes[d] for d in order))) for order in (left, right))
    depth, batches = ([[order.index(d)] if d in order else [] for order in (left, right)] for d in "kb")
    check(fused(b, b.dot(x, y, depth[0], depth[1], batches[0], batches[1])), driver)


@pytest.mark.usefixtures("library")
def test_views_are_read_where_they_lie(driver: PretendedDriver) -> None:
    """A part of each row of a wider matrix, heads apart: an offset, a leading dimension and a stride."""
    b = Builder()
    x = b.parameter(TensorType(F32, (10, 3 * 4 * 16)))
    part = b.slice(x, [0, 64], [10, 128], [1, 1])
    heads = b.transpose(b.reshape(part, (10, 4, 16)), [1, 0, 2])
    y = b.parameter(TensorType(F32, (4, 16, 12)))
    instruction = fused(b, b.dot(heads, y, [2], [1], [0], [0]))
    assert [o.shape for o in instruction.operands] == [(10, 192), (4, 16, 12)]
    (call,) = lower(instruction, GpuTarget()).calls
    assert call.library is not None
    assert (call.library.right.line, call.library.right.batch, call.library.right.offset) == (192, 16, 64)
    check(instruction, driver)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("element", "sums", "stored"),
    [(F16, F32, F32), (F16, F16, F16), (F16, F32, F16), (BF16, F32, F32), (BF16, F32, BF16)],
)
def test_half_precision(element: ElementType, sums: ElementType, stored: ElementType, driver: PretendedDriver) -> None:
    b = Builder()
    x, y = b.parameter(TensorType(element, (8, 40))), b.parameter(TensorType(element, (40, 16)))
    root = b.dot(x, y, [1], [0], element=sums)
    check(
        fused(b, b.convert(root, stored) if stored is not sums else root), driver, 1e-2 if stored is not F32 else 1e-5
    )


@pytest.mark.usefixtures("library")
def test_bias_is_an_epilogue(driver: PretendedDriver) -> None:
    b = Builder()
    x, y = b.parameter(TensorType(F32, (3, 8, 12))), b.parameter(TensorType(F32, (12, 20)))
    bias = b.parameter(TensorType(F32, (20,)))
    product = b.dot(x, y, [2], [0])
    instruction = fused(b, b.add(b.broadcast(bias, product.shape, [2]), product))
    assert len(instruction.operands) == 3
    check(instruction, driver)


@pytest.mark.usefixtures("library")
def test_tf32_is_asked_for_where_it_may_be(driver: PretendedDriver) -> None:
    b = Builder()
    x, y = b.parameter(TensorType(F32, (8, 12))), b.parameter(TensorType(F32, (12, 20)))
    instruction = fused(b, b.dot(x, y, [1], [0]))
    arrays = [np.full((8, 12), 1 + 2**-12, "f4"), np.ones((12, 20), "f4")]
    assert (computed(instruction, arrays, driver) > 12).all()
    assert (computed(instruction, arrays, driver, GpuTarget(tf32=True)) == 12).all()


def test_what_stays_with_our_kernels(library: "PretendedCublasLt", monkeypatch: pytest.MonkeyPatch) -> None:
    def runs(element: ElementType, shape: tuple[int, int], sums: ElementType | None = None) -> bool:
        b = Builder()
        x, y = b.parameter(TensorType(element, shape)), b.parameter(TensorType(element, (shape[1], 16)))
        return LibraryProducts().run(
            Module("product", b.build(b.tuple(b.dot(x, y, [1], [0], element=sums or element))))
        )

    assert runs(F32, (8, 12)) and not runs(F64, (8, 12)) and not runs(F32, (3, 12))
    assert not runs(F32, (8, 12), F16)
    monkeypatch.setattr(library_products, "FEWEST_PRODUCTS", 8 * 12 * 16 + 1)
    assert not runs(F32, (8, 12))


@pytest.mark.usefixtures("library")
def test_a_bias_for_rows_and_one_of_another_type_are_kernels_behind(driver: PretendedDriver) -> None:
    for dimension, element in ((0, F32), (1, F16)):
        b = Builder()
        x, y = b.parameter(TensorType(element, (20, 12))), b.parameter(TensorType(element, (12, 20)))
        product = b.dot(x, y, [1], [0], element=F32)
        bias = b.broadcast(b.parameter(TensorType(F32, (20,))), (20, 20), [dimension])
        root = b.convert(b.add(product, bias), element)
        module = Module("product", b.build(b.tuple(root)))
        assert LibraryProducts().run(module)
        fusions = [i for i in module.entry.instructions() if isinstance(i.op, Fusion)]
        assert len(fusions) == 1 and len(fusions[0].operands) == (2 if dimension == 0 else 3)


def test_strides_say_what_numpy_says() -> None:
    """Random views of a small tensor: an element is where the strides say, or numpy has to copy."""
    random = np.random.default_rng(5)
    copied = 0
    for _ in range(300):
        shape = tuple(int(n) for n in random.choice([1, 2, 3, 4, 6], random.integers(1, 5)))
        array, b = np.arange(np.prod(shape)).reshape(shape), Builder()
        at: Strided | None = Strided.dense(shape)
        view, value = array, b.parameter(TensorType(F32, shape))
        for _ in range(4):
            if at is None:
                break
            kind, before = random.integers(3), value
            if kind == 0:
                permutation = [int(d) for d in random.permutation(view.ndim)]
                value, view = b.transpose(value, permutation), view.transpose(permutation)
            elif kind == 1:
                starts = [int(random.integers(n)) for n in view.shape]
                steps = [int(random.integers(1, 3)) for _ in view.shape]
                value = b.slice(value, starts, view.shape, steps)
                view = view[tuple(slice(s, None, t) for s, t in zip(starts, steps, strict=True))]
            else:
                factors = [f for n in view.shape for f in ((2, n // 2) if n % 2 == 0 else (n,))]
                cut = int(random.integers(len(factors) + 1))
                other = (int(np.prod(factors[:cut])), *factors[cut:])
                value, view = b.reshape(value, other), view.reshape(other)
            if value is not before:
                at = at.through(value)
        if at is None:
            copied += 1
            continue
        places = at.offset + sum(
            np.arange(n).reshape([-1 if k == d else 1 for k in range(len(at.shape))]) * at.strides[d]
            for d, n in enumerate(at.shape)
        )
        np.testing.assert_array_equal(np.broadcast_to(places, view.shape), view)
    assert 0 < copied < 150


def model() -> onnx.ModelProto:
    """A product of the input with its bias, one in the middle, one before the kernel that writes the output."""
    nodes = [
        helper.make_node("Gemm", ["x", "wa", "ba"], ["a"], transB=1),
        helper.make_node("Relu", ["a"], ["h"]),
        helper.make_node("MatMul", ["h", "wb"], ["c"]),
        helper.make_node("Add", ["c", "bb"], ["d"]),
        helper.make_node("Tanh", ["d"], ["e"]),
        helper.make_node("MatMul", ["e", "wc"], ["f"]),
        helper.make_node("Transpose", ["f"], ["y"], perm=[1, 0]),
    ]
    weights = {"wa": weight(24, 16), "ba": weight(24), "wb": weight(24, 20), "bb": weight(20), "wc": weight(20, 8)}
    return model_of(nodes, {"x": (12, 16)}, weights)


MODEL = model()


@pytest.fixture(scope="module")
def compiled() -> CompiledModel:
    with pytest.MonkeyPatch.context() as monkeypatch:
        take_small_ones(monkeypatch)
        return onnxla.compile(MODEL, target="gpu", options=OPTIONS)


def test_a_model_runs_and_replays(
    compiled: CompiledModel, library: "PretendedCublasLt", driver: PretendedDriver
) -> None:
    """Inputs and outputs lie elsewhere in every run: the product of the input is asked for anew, those behind it are
    part of the graph, whose last kernel is revised."""
    compiled = fresh(compiled)
    for turn in range(4):
        feeds = feeds_of(MODEL)
        x, y = Theirs(driver, feeds["x"]), Theirs(driver, np.zeros((8, 12), "f4"))
        compiled.run(None, {"x": x}, out=[y])
        np.testing.assert_allclose(y.numpy(), expected_of(MODEL, feeds), 1e-5, 1e-5)
        assert library.products == 3 * (turn + 1)
    assert driver.counts["cuGraphLaunch"] == 3 and driver.counts["cuGraphExecKernelNodeSetParams"] == 2
    things = library.kept()
    compiled.release_memory()
    del compiled
    gc.collect()
    assert things and not library.kept()


@pytest.mark.parametrize(("missing", "refuses"), [(True, ""), (False, "no algorithm")])
def test_own_kernels_where_the_library_is_not_or_does_not(
    compiled: CompiledModel,
    missing: bool,
    refuses: str,
    library: "PretendedCublasLt",
    caplog: pytest.LogCaptureFixture,
) -> None:
    library.missing, library.refuses = missing, refuses
    compiled, feeds = fresh(compiled), feeds_of(MODEL)
    with caplog.at_level(logging.WARNING, "onnxla"):
        np.testing.assert_allclose(compiled.run(None, feeds)[0], expected_of(MODEL, feeds), 1e-5, 1e-5)
    assert not library.products
    (said,) = {record.message for record in caplog.records}
    assert ("pip install onnxla[cublas]" in said) if missing else ("no algorithm" in said)


def test_options() -> None:
    with pytest.raises(InputError, match="no library gpu_library='mkl'; there is 'cublaslt'"):
        onnxla.compile(MODEL, target="gpu", options={"cache_dir": None, "gpu_library": "mkl"})
    plain = onnxla.compile(MODEL, target="gpu", options={"cache_dir": None})
    assert b'"library"' not in plain.programs[0].objects[0]
