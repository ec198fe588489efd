"""Attention in one kernel, in the simulator: all head sizes, tails, masks, and what fuses."""

import re

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import onnxla
from onnxla.codegen.gpu.compile_nvrtc import compile_cuda
from onnxla.codegen.gpu.emit_cuda import emit_cuda
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import BF16, F16, F32, Array, ElementType
from onnxla.passes.fuse_attention import FuseAttention
from onnxla.runtime.device_executable import DeviceExecutable
from tests.gpu.kernel_classes import attention, fused
from tests.gpu.running import reference, run, samples
from tests.gpu.simulated_device import SimulatedDevice
from tests.gpu.test_models import feeds_of, model_of, weight


def check_attention(instruction: Instruction, arrays: list[Array], tolerance: float = 4e-3) -> None:
    (result,), reports = run(instruction, arrays)
    assert not reports, dict(reports)
    assert not reports.conflicts, dict(reports.conflicts)
    (expected,) = reference(instruction, arrays)
    np.testing.assert_allclose(result, expected, tolerance, tolerance)


@pytest.mark.parametrize(("size", "features"), [(32, 32), (16, 64), (64, 16), (128, 128), (80, 24), (17, 33)])
def test_head_sizes(size: int, features: int) -> None:
    instruction = fused(attention(2, 70, 130, size, features))
    check_attention(instruction, samples(instruction))


@pytest.mark.parametrize(("queries", "keys"), [(64, 64), (1, 9), (65, 1), (17, 63), (128, 65)])
@pytest.mark.parametrize("element", [F16, BF16])
def test_tails_of_queries_and_keys(queries: int, keys: int, element: ElementType) -> None:
    instruction = fused(attention(1, queries, keys, 32, 32, element))
    check_attention(instruction, samples(instruction), 4e-3 if element is F16 else 3e-2)


def test_masks() -> None:
    """Whole blocks of keys may be masked, at the beginning too; a query without any key gives NaN."""
    instruction = fused(attention(2, 66, 140, 32, 32, masked=True))
    arrays = samples(instruction)
    mask = np.zeros((66, 140), "f4")
    mask[:, :70] = -np.inf
    mask[5, 100:] = -np.inf
    mask[7] = -np.inf
    arrays[[a.shape for a in arrays].index(mask.shape)] = mask
    check_attention(instruction, arrays)
    (result,), _ = run(instruction, arrays)
    assert np.isnan(result[:, 7]).all() and np.isfinite(np.delete(result, 7, 1)).all()


def test_large_scores_do_not_overflow() -> None:
    instruction = fused(attention(1, 16, 100, 32, 32))
    arrays = samples(instruction)
    arrays[0] *= np.float16(50)
    check_attention(instruction, arrays)


def test_scores_read_elsewhere_keep_their_kernels() -> None:
    module = attention(1, 16, 16, 32, 32)
    (result,) = module.entry.root.operands
    weights = result.operands[0]
    b = Builder()
    module.entry.root = b.tuple(result, weights)
    assert not FuseAttention().run(module)


@pytest.mark.parametrize(("size", "element"), [(256, F16), (160, F32)], ids=["large size", "large size of f32"])
def test_what_the_kernel_is_not_made_for_is_left_alone(size: int, element: ElementType) -> None:
    assert not FuseAttention().run(attention(1, 16, 16, size, 32, element))


@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_120"])
def test_resources(size: int, architecture: str) -> None:
    instruction = fused(attention(8, 128, 256, size, size))
    (call,) = lower(instruction, GpuTarget(architecture)).calls
    log = compile_cuda(emit_cuda(call.kernel, "kernel"), architecture).log
    # ptxas spills three words where one more block fits on a multiprocessor for it
    assert all(int(n) <= 12 for n in re.findall(r"(\d+) bytes spill", log)), log
    assert all(int(n) <= GpuTarget().shared_bytes for n in re.findall(r"(\d+) bytes smem", log)), log


def transformer_block() -> onnx.ModelProto:
    """Two heads of 32 over 20 tokens."""
    nodes = []
    for name in "qkv":
        nodes += [
            helper.make_node("MatMul", ["x", f"w{name}"], [f"{name}1"]),
            helper.make_node("Reshape", [f"{name}1", "split"], [f"{name}2"]),
            helper.make_node("Transpose", [f"{name}2"], [name], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]),
        ]
    nodes += [
        helper.make_node("MatMul", ["q", "k"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["t"]),
        helper.make_node("Softmax", ["t"], ["p"]),
        helper.make_node("MatMul", ["p", "v"], ["a"]),
        helper.make_node("Transpose", ["a"], ["b"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["b", "join"], ["c"]),
        helper.make_node("MatMul", ["c", "wo"], ["y"]),
    ]
    weights: dict[str, Array] = {f"w{name}": weight(64, 64) for name in "qkvo"}
    weights |= {"scale": np.array(0.2, np.float32), "split": np.array([1, 20, 2, 32]), "join": np.array([1, 20, 64])}
    return model_of(nodes, {"x": (1, 20, 64)}, weights)


@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_a_transformer_block_has_one_kernel_for_attention(precision: str) -> None:
    model = transformer_block()
    feeds = feeds_of(model)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    compiled = onnxla.compile(model, target="gpu", options={"cache_dir": None, "precision": precision})
    device = SimulatedDevice()
    (result,) = DeviceExecutable(compiled.programs[0], device).run(list(feeds.values()), 1)
    np.testing.assert_allclose(result, expected, 1e-2, 1e-2 if precision == "fp16" else 1e-5)
    assert "kind=kCustom" in compiled.hlo("optimized_hlo")
    assert len(device.launches) == (
        4 if precision == "fp16" else 3
    )  # x is converted, products of it, attention, output


def test_layers_that_share_a_mask_broadcast_it_in_their_kernels() -> None:
    module = attention(2, 16, 24, 32, 32, masked=True)
    (result,) = module.entry.root.operands
    b = Builder()
    scores = result.operands[0].operands[0].operands[0].operands[0].operands[0]
    spread = scores.operands[1]
    assert spread.op.opcode == "broadcast"
    module.entry.root = b.tuple(result, b.negate(spread))
    assert FuseAttention().run(module)
    instruction = module.entry.root.operands[0]
    assert sorted(len(o.shape) for o in instruction.operands) == [2, 3, 3, 3]
    check_attention(instruction, samples(instruction))


@pytest.mark.parametrize(
    ("element", "size", "features", "architecture"),
    [(F16, 8, 40, "sm_80"), (BF16, 32, 4, "sm_80"), (F16, 32, 32, "sm_75")],
)
def test_half_precision_without_tensor_cores_is_summed_in_f32(
    element: ElementType, size: int, features: int, architecture: str
) -> None:
    """Heads that would leave most of a tile empty, and GPUs without fitting tensor cores: weights are not rounded."""
    instruction = fused(attention(1, 20, 70, size, features, element))
    arrays = samples(instruction)
    (result,), reports = run(instruction, arrays, target=GpuTarget(architecture))
    assert not reports, dict(reports)
    q, k, v = (np.moveaxis(a.astype(np.float64), 1, 0) for a in arrays)
    scores = q @ k.swapaxes(1, 2) / 4
    weights = np.exp(scores - scores.max(2, keepdims=True))
    np.testing.assert_allclose(result, weights @ v / weights.sum(2, keepdims=True), 1e-5, 1e-6)


def test_older_gpus_have_one_kernel_for_attention() -> None:
    options = {"cache_dir": None, "precision": "fp16", "target_gpu": "sm_75"}
    assert "kind=kCustom" in onnxla.compile(transformer_block(), target="gpu", options=options).hlo("optimized_hlo")
