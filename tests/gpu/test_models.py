"""Whole models compiled for a GPU, run on the simulated device and on a GPU where there is one, against onnxruntime."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxla
from onnxla.errors import DeviceError
from onnxla.runtime.device import Device
from onnxla.runtime.device_executable import DeviceExecutable
from onnxla.runtime.profiler import new_profile, profile_of
from onnxla.runtime.tensors import Array
from tests.gpu.devices import BOTH, device_named
from tests.gpu.simulated_device import SimulatedDevice

rng = np.random.default_rng(0)


def model_of(
    nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, ...]], weights: dict[str, Array], output: str = "y"
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def weight(*shape: int) -> Array:
    return np.asarray(rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1), np.float32)


def mlp() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["l"], transB=1),
        helper.make_node("Softmax", ["l"], ["y"]),
    ]
    return model_of(
        nodes, {"x": (5, 20)}, {"w1": weight(40, 20), "b1": weight(40), "w2": weight(7, 40), "b2": weight(7)}
    )


def small_cnn() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "w2"], ["c2"], group=8, pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["c2", "w3"], ["c3"], strides=[2, 2]),
        helper.make_node("Relu", ["c3"], ["r3"]),
        helper.make_node("GlobalAveragePool", ["r3"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "w4"], ["y"]),
    ]
    weights = {"w1": weight(8, 3, 3, 3), "b1": weight(8), "w2": weight(8, 1, 3, 3), "w3": weight(12, 8, 1, 1)}
    return model_of(nodes, {"x": (2, 3, 12, 12)}, weights | {"w4": weight(12, 5)})


def attention_block() -> onnx.ModelProto:
    nodes = [
        helper.make_node("LayerNormalization", ["x", "g", "b"], ["n"], axis=-1),
        helper.make_node("MatMul", ["n", "wq"], ["q"]),
        helper.make_node("MatMul", ["n", "wk"], ["k"]),
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"]),
        helper.make_node("MatMul", ["p", "n"], ["a"]),
        helper.make_node("Add", ["a", "x"], ["y"]),
    ]
    weights = {"g": weight(24), "b": weight(24), "wq": weight(24, 16), "wk": weight(24, 16)}
    return model_of(nodes, {"x": (2, 9, 24)}, weights)


def top_k() -> onnx.ModelProto:
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["v", "i"]),
        helper.make_node("CumSum", ["v", "axis"], ["y"]),
    ]
    return model_of(nodes, {"x": (3, 50)}, {"k": np.array([7], np.int64), "axis": np.array(1, np.int64)})


def looped() -> onnx.ModelProto:
    """x doubled four times, by a loop."""
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "v"], ["w"]), helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, ()),
            helper.make_tensor_value_info("c", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, (6,)),
        ],
        [
            helper.make_tensor_value_info("d", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, (6,)),
        ],
    )
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)]
    return model_of(nodes, {"x": (6,)}, {"n": np.array(4, np.int64)})


def feeds_of(model: onnx.ModelProto) -> dict[str, Array]:
    return {
        i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32)
        for i in model.graph.input
    }


@pytest.fixture(params=BOTH)
def device(request: pytest.FixtureRequest) -> Device:
    """The simulated device, and a GPU where there is one."""
    return device_named(request.param)


@pytest.mark.parametrize("make", [mlp, small_cnn, attention_block, top_k, looped])
def test_a_model_runs_on_a_device(make: Callable[[], onnx.ModelProto], device: Device) -> None:
    model = make()
    feeds = feeds_of(model)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    compiled = onnxla.compile(model, target="gpu", options={"cache_dir": None})
    executable = DeviceExecutable(compiled.programs[0], device)
    for _ in range(2):
        results = executable.run(list(feeds.values()), 1)
        for ours, theirs in zip(results, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-4, 1e-5)


def test_an_artifact_holds_gpu_code_and_runs_after_loading() -> None:
    model = mlp()
    feeds = feeds_of(model)
    compiled = onnxla.compile(model, target="gpu", options={"cache_dir": None, "target_gpu": "sm_90,sm_80"})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mlp.onnxla"
        compiled.save(path)
        loaded = onnxla.load_compiled(path)
    (program,) = loaded.programs
    assert program.objects[2][:4] == program.objects[3][:4] == b"\x7fELF"
    assert ".target sm_80" in program.objects[1].decode()
    executable = DeviceExecutable(program, SimulatedDevice())
    (y,) = executable.run(list(feeds.values()), 1)
    np.testing.assert_allclose(y.sum(1), 1, 1e-5)
    array = new_profile(len(program.steps), 100)
    executable.run(list(feeds.values()), 1, profile=array)
    profile = profile_of(program.steps, array)
    assert all(row.rounds == 1 and row.seconds > 0 for row in profile.rows)
    assert [span.step for span in profile.spans] == list(range(len(program.steps)))
    executable.release_memory()
    executable.run(list(feeds.values()), 1)


def test_without_a_gpu_running_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda.bindings import driver

    def no_driver(flags: int) -> None:
        raise RuntimeError("libcuda.so.1 not found")

    monkeypatch.setattr(driver, "cuInit", no_driver)
    model = onnxla.compile(mlp(), target="gpu", options={"cache_dir": None})
    assert "__global__" in model.hlo("cuda")
    with pytest.raises(DeviceError, match="no NVIDIA driver"):
        model.run(None, feeds_of(mlp()))


def test_unknown_targets_and_architectures_are_refused() -> None:
    with pytest.raises(DeviceError, match="there are 'cpu' and 'gpu'"):
        onnxla.compile(mlp(), target="tpu")
    with pytest.raises(DeviceError, match="no GPU architecture 'hopper'"):
        onnxla.compile(mlp(), target="gpu", options={"target_gpu": "hopper"})
    with pytest.raises(DeviceError, match="sm_60"):
        onnxla.compile(mlp(), target="gpu", options={"target_gpu": "sm_60", "cache_dir": None})
