"""Constants in the weights image: each once, in the layout its reader wants, mapped and not copied."""

import numpy as np
import pytest

from onnxla.codegen.kernels.ir import INDEX, Block, Buffer, Kernel, KernelType, Value
from onnxla.codegen.lowering import KernelCall, Lowering, Operand, Packed, Result, Table
from onnxla.codegen.planner import make_plan
from onnxla.codegen.weights import WeightsImage
from onnxla.errors import ResourceLimitError
from onnxla.hlo.builder import Builder
from onnxla.hlo.literal import Literal
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.types import F32, S4, Array, TensorType, type_of
from tests.codegen.callback_kernels import CallbackKernels

LARGE: Array = np.arange(1 << 16, dtype=np.float32)


def at(image: Array, place: tuple[int, int], like: Array) -> Array:
    offset, size = place
    return image[offset : offset + size].view(like.dtype).reshape(like.shape)


def test_equal_constants_share_a_place_large_ones_too() -> None:
    image = WeightsImage()
    places = {image.add(Literal(LARGE.copy())) for _ in range(3)}
    other = LARGE.copy()
    other[12345] += 1
    different = image.add(Literal(other))
    assert len(places) == 1 and different not in places
    assert image.bytes == 2 * LARGE.nbytes
    mapped = image.finish()
    np.testing.assert_array_equal(at(mapped, different, other), other)
    assert not mapped.flags.writeable and mapped.ctypes.data % 64 == 0


def test_equal_bytes_of_another_type_are_another_constant() -> None:
    image = WeightsImage()
    assert image.add(Literal(np.zeros(4, np.int32))) != image.add(Literal(np.zeros(4, np.float32)))


def test_a_packing_is_made_once_of_the_operand_as_the_kernel_sees_it() -> None:
    image = WeightsImage()
    seen: list[tuple[int, ...]] = []

    def pack(array: Array) -> Array:
        seen.append(array.shape)
        return np.ascontiguousarray(array.T)

    literals = [Literal(LARGE.copy()) for _ in range(2)]
    type = TensorType(F32, (256, 256))
    first, second = (image.add_packed(literal, type, "transposed", pack) for literal in literals)
    other = image.add_packed(literals[0], type, "as it is", lambda array: array)
    assert first == second != other and seen == [(256, 256)]
    transposed = LARGE.reshape(256, 256).T
    np.testing.assert_array_equal(at(image.finish(), first, transposed), transposed)


def test_odd_sizes_start_at_cache_lines() -> None:
    image = WeightsImage()
    arrays: list[Array] = [np.ones(3, np.uint8), np.zeros((0, 2)), np.array(True), np.ones(5).astype(S4.dtype)]
    places = [image.add(Literal(a)) for a in arrays]
    mapped = image.finish()
    assert all(offset % 64 == 0 for offset, _ in places) and mapped.size % 64 == 0
    for array, place in zip(arrays, places, strict=True):
        assert type_of(array).bytes == place[1]
        np.testing.assert_array_equal(at(mapped, place, array), array)


def test_no_constants_no_file_to_map() -> None:
    assert WeightsImage().finish().size == 0


class FullDisk:
    def write(self, data: bytes) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk_is_told_as_such() -> None:
    with pytest.raises(ResourceLimitError, match="no room for the weights.*set TMPDIR"):
        WeightsImage(FullDisk()).add(Literal(LARGE))  # type: ignore[arg-type]


ROLES = ("input", "input", "output")


def lower_packed(instruction: Instruction) -> Lowering:
    """A kernel that reads operand 1 packed, and a table."""
    kinds = [o.tensor_type for o in (*instruction.operands, instruction)]
    parameters = [Buffer("x", k.element, k.size, role) for k, role in zip(kinds, ROLES, strict=True)]
    kernel = Kernel("k", [*parameters, Buffer("t", F32, 2, "input", 64)], 1, Block([Value("task", KernelType(INDEX))]))
    table = Table(np.ones(2, np.float32))
    packed = Packed(1, "doubled", lambda array: np.concatenate([array, array]))
    return Lowering((KernelCall(kernel, (Operand(0), packed, Result(), table)),))


def test_a_weight_that_is_only_read_packed_is_not_stored_raw() -> None:
    b = Builder()
    x = b.parameter(TensorType(F32, (256,)), "x")
    y = b.add(b.add(x, b.constant(LARGE[:256], name="w")), b.constant(LARGE[:256].copy(), name="again"))
    image = WeightsImage()
    plan = make_plan(Module("m", b.build(b.tuple(y))), lower_packed, image)
    assert image.bytes == plan.weights_bytes == 2 * 1024 + 64
    assert [str(s.buffer) for s in plan.steps[1].arguments[1:2]] == ["weights+0[2048]"]  # type: ignore[union-attr]


def test_a_constant_that_nothing_reads_is_not_stored() -> None:
    b = Builder()
    x = b.parameter(TensorType(F32, (4,)), "x")
    pair = b.tuple(b.negate(x), b.constant(LARGE))
    image = WeightsImage()
    make_plan(Module("m", b.build(b.tuple(b.get_tuple_element(pair, 0)))), CallbackKernels().lower, image)
    assert image.bytes == 0
