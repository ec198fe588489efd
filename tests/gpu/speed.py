"""A table of times on a GPU: ours beside onnxruntime's CUDA provider, `torch.compile`, cuBLAS, and copies.

Columns of what is not there, or fails, say so. Each number is the median over rounds of bursts, the host waiting once a
burst. Ours reads and writes arrays that are on the GPU.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnxla
from onnxla.errors import OnnxlaError
from onnxla.runtime.cuda_device import CudaDevice
from onnxla.runtime.device_results import DeviceArray
from onnxla.runtime.tensors import Array, TensorSignature


@dataclass(frozen=True)
class Case:
    """A model, its inputs, and the same in PyTorch: `torch_of(torch, inputs, weights)` gives a function of nothing."""

    name: str
    model: onnx.ModelProto
    inputs: dict[str, Array]
    precision: str = "fp32"
    torch_of: Callable[[Any, dict[str, Any], dict[str, Any]], Callable[[], Any]] | None = None
    is_product: bool = False
    """Whether PyTorch's eager form is one call of cuBLAS."""
    weights: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Scale:
    """How large the cases are, and how often they run."""

    size: int
    rounds: int
    burst: int


LARGE, SMALL = Scale(1024, 7, 20), Scale(32, 1, 2)


def cases(size: int) -> list[Case]:
    """A product in three precisions, a convolution, softmax, and a layer of perceptrons, from one size."""
    rng = np.random.default_rng(0)

    def numbers(*shape: int) -> Array:
        return np.asarray(rng.standard_normal(shape) / np.sqrt(shape[-1]), np.float32)

    x, w = numbers(size, size), numbers(size, size)
    found = [
        Case(
            f"product {size}^3 {precision}",
            _model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": x.shape}, {"w": w}),
            {"x": x},
            precision,
            lambda torch, i, c: lambda: i["x"] @ c["w"],
            True,
            {"w": w},
        )
        for precision in ("fp32", "tf32", "fp16", "bf16")
    ]
    softmax = _model([helper.make_node("Softmax", ["x"], ["y"])], {"x": x.shape}, {})
    found.append(
        Case(f"softmax {size}x{size}", softmax, {"x": x}, torch_of=lambda torch, i, c: lambda: i["x"].softmax(-1))
    )
    layer = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["s"]),
        helper.make_node("Relu", ["s"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["o"]),
        helper.make_node("Add", ["o", "x"], ["y"]),
    ]
    weights = {"w": w, "b": numbers(size), "v": numbers(size, size)}

    def perceptrons(torch: Any, i: dict[str, Any], c: dict[str, Any]) -> Callable[[], Any]:
        return lambda: (i["x"] @ c["w"] + c["b"]).relu() @ c["v"] + i["x"]

    model = _model(layer, {"x": x.shape}, weights)
    found.append(Case(f"perceptrons {size} fp16", model, {"x": x}, "fp16", perceptrons, weights=weights))
    channels = max(size // 16, 4)
    image, filters = numbers(1, channels, 32, 32), numbers(channels, channels, 3, 3)
    conv = _model([helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4)], {"x": image.shape}, {"w": filters})
    found.append(
        Case(
            f"convolution {channels} channels fp16",
            conv,
            {"x": image},
            "fp16",
            lambda torch, i, c: lambda: torch.nn.functional.conv2d(i["x"], c["w"], padding=1),
            weights={"w": filters},
        )
    )
    return found


def table(scale: Scale, seconds: float) -> str:
    """The table as text. Cases for which the seconds do not suffice are left out by name."""
    rows: list[tuple[str, ...]] = [("case", "onnxla", "onnxruntime", "torch.compile", "cuBLAS", "copies", "error")]
    begin = time.monotonic()
    for case in cases(scale.size):
        if time.monotonic() - begin > seconds:
            rows.append((case.name, "no time left", "", "", "", "", ""))
            continue
        rows.append(_row(case, scale))
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows)


def _row(case: Case, scale: Scale) -> tuple[str, ...]:
    results: dict[str, Array] = {}
    columns = [_timed(make, case, scale, results) for make in (_ours, _onnxruntime, _torch_compiled, _cublas, _copies)]
    error = "unknown"
    if "onnxla" in results:
        expected = _expected(case)
        norm = float(np.linalg.norm(expected)) or 1.0
        error = f"{float(np.linalg.norm(results['onnxla'] - expected)) / norm:.1e}"
    return (case.name, *columns, error)


Runner = tuple[Callable[[], object], Callable[[], object]]
"""Asks for one run; waits for all."""


class NotThere(Exception):
    """What a column needs is missing."""


def _timed(
    make: Callable[[Case, dict[str, Array]], Runner], case: Case, scale: Scale, results: dict[str, Array]
) -> str:
    try:
        run, wait = make(case, results)
        for _ in range(3):
            run()
        wait()
        times = []
        for _ in range(scale.rounds):
            start = time.perf_counter()
            for _ in range(scale.burst):
                run()
            wait()
            times.append((time.perf_counter() - start) / scale.burst)
    except NotThere as error:
        return str(error)
    except OnnxlaError as error:
        return f"failed: {str(error)[:60]}"
    return f"{1e6 * statistics.median(times):.1f} us"


def _ours(case: Case, results: dict[str, Array]) -> Runner:
    options = {"precision": case.precision, "cache_dir": None, "target_gpu": own_architecture()}
    model = onnxla.compile(case.model, target="gpu", options=options)
    first = model.run_async(None, case.inputs)
    results["onnxla"] = first.wait()[0].numpy()
    outputs = first.outputs
    device = outputs[0]._device
    inputs = {name: _on_gpu(device, name, array) for name, array in case.inputs.items()}
    last: list[Any] = [first]

    def run() -> None:
        last[0] = model.run_async(None, inputs, out=outputs)

    return run, lambda: last[0].wait()


def _on_gpu(device: Any, name: str, array: Array) -> DeviceArray:
    with device.active():
        placed = DeviceArray(device, TensorSignature(name, "f32", array.shape))
        device.upload(placed.address, array, device.stream)
        placed.written(device.mark(device.stream), device.stream)
    return placed


def own_architecture() -> str:
    """The GPU's own, or the newest that NVRTC has machine code for."""
    from onnxla.codegen.gpu.compile_nvrtc import supported_architectures

    architecture = CudaDevice().architecture
    return architecture if architecture in supported_architectures() else "sm_80"


def _onnxruntime(case: Case, results: dict[str, Array]) -> Runner:
    import onnxruntime

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        raise NotThere("no CUDA provider")
    session = onnxruntime.InferenceSession(case.model.SerializeToString(), providers=["CUDAExecutionProvider"])
    if session.get_providers()[0] != "CUDAExecutionProvider":
        raise NotThere("CUDA provider fails")
    binding = session.io_binding()
    for name, array in case.inputs.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array, "cuda", 0))
    binding.bind_output("y", "cuda")
    return lambda: session.run_with_iobinding(binding), binding.synchronize_outputs


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise NotThere("no PyTorch") from None
    if not torch.cuda.is_available():
        raise NotThere("no GPU in PyTorch")
    return torch


def _torch_run(case: Case, torch: Any) -> Callable[[], Any]:
    """The same in PyTorch, in the precision of the case."""
    if case.torch_of is None:
        raise NotThere("not written")
    half = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(case.precision, torch.float32)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = case.precision == "tf32"
    inputs, weights = (
        {name: torch.from_numpy(array).to("cuda", half) for name, array in arrays.items()}
        for arrays in (case.inputs, case.weights)
    )
    return case.torch_of(torch, inputs, weights)


def _torch_compiled(case: Case, results: dict[str, Array]) -> Runner:
    torch = _torch()
    return torch.compile(_torch_run(case, torch)), torch.cuda.synchronize


def _cublas(case: Case, results: dict[str, Array]) -> Runner:
    if not case.is_product:
        raise NotThere("-")
    torch = _torch()
    return _torch_run(case, torch), torch.cuda.synchronize


def _copies(case: Case, results: dict[str, Array]) -> Runner:
    """Reading as many bytes as the inputs and weights have, and writing as many: what memory allows."""
    device = CudaDevice()
    size = sum(a.nbytes for a in (*case.inputs.values(), *case.weights.values()))
    whole = TensorSignature("bytes", "u8", (size,))
    with device.active():
        source, target = DeviceArray(device, whole), DeviceArray(device, whole)

    def run() -> None:
        with device.active():
            device.copy(target.address, source.address, size, device.stream)

    def wait() -> None:
        with device.active():
            device.synchronize(device.mark(device.stream))

    return run, wait


def _expected(case: Case) -> Array:
    import onnxruntime

    session = onnxruntime.InferenceSession(case.model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, case.inputs)[0])


def _model(
    nodes: Sequence[onnx.NodeProto], inputs: dict[str, tuple[int, ...]], weights: dict[str, Array]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "case",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
