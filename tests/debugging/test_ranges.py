"""What a lower precision would do: the ranges of factors, the nodes that overflow, and the results, without a GPU."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import onnxla
from onnxla.compiler.onnx_source import OnnxSource
from onnxla.compiler.sources import Source
from onnxla.config import CompileOptions, Limits
from onnxla.debugging.ranges import rounded_outputs, watch_ranges
from onnxla.errors import InputError
from onnxla.frontends.onnx.model_file import read_model
from onnxla.runtime.device_executable import DeviceExecutable
from onnxla.runtime.tensors import Array
from tests.gpu.simulated_device import SimulatedDevice
from tests.gpu.test_models import looped, model_of, weight


def growing(factor: float = 1e5) -> onnx.ModelProto:
    """Between the products numbers are as large as `factor`, and what multiplies by it is no product."""
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["r"], "positive"),
        helper.make_node("Mul", ["r", "f"], ["b"], "scale"),
        helper.make_node("Add", ["b", "one"], ["c"], "shift"),
        helper.make_node("MatMul", ["c", "w2"], ["d"], "second"),
        helper.make_node("Div", ["d", "f"], ["e"], "unscale"),
        helper.make_node("MatMul", ["e", "w3"], ["y"], "third"),
    ]
    weights = {"w1": weight(32, 48), "w2": weight(48, 40), "w3": weight(40, 24)}
    scalars = {"f": np.float32(factor), "one": np.float32(1)}
    return model_of(nodes, {"x": (20, 32)}, weights | {k: np.asarray(v) for k, v in scalars.items()})


MODEL = growing()
FEEDS = {"x": np.random.default_rng(0).standard_normal((20, 32)).astype("f4")}


def source_of(model: onnx.ModelProto) -> Source:
    options = CompileOptions()
    return OnnxSource(read_model(model), options, Limits(), {})


def expected() -> Array:
    (result,) = onnxruntime.InferenceSession(MODEL.SerializeToString()).run(None, FEEDS)
    return np.asarray(result)


def test_what_overflows_in_half_precision_is_named() -> None:
    ranges = watch_ranges(source_of(MODEL), FEEDS, CompileOptions(precision="fp16"))
    found = {f.node: f for f in ranges.factors}
    assert set(found) == {"first", "second", "third"} and "second" in ranges.overflowing
    assert "third" not in ranges.overflowing and found["third"].judged("fp16") == "fits"
    w1 = onnx.numpy_helper.to_array(MODEL.graph.initializer[0])
    inner = np.maximum(FEEDS["x"] @ w1, 0) * np.float32(1e5) + 1
    assert found["second"].largest[0] == pytest.approx(inner.max(), 1e-4)
    beyond = found["second"].overflows
    assert beyond >= np.count_nonzero(inner >= 65520) > 100
    assert found["first"].largest[0] == np.abs(FEEDS["x"]).max()


@pytest.mark.parametrize("precision", ["bf16", "tf32"])
def test_the_range_of_f32_is_enough_for_it(precision: str) -> None:
    ranges = watch_ranges(source_of(MODEL), FEEDS, CompileOptions(precision=precision))
    assert not ranges.overflowing and len(ranges.factors) == 3


def test_what_is_kept_is_not_rounded_and_not_watched() -> None:
    names = tuple(watch_ranges(source_of(MODEL), FEEDS, CompileOptions(precision="fp16")).overflowing)
    plain = rounded_outputs(source_of(MODEL), FEEDS, CompileOptions(precision="fp16"))["y"]
    assert not np.isfinite(plain).all()
    kept = CompileOptions(precision="fp16", keep_f32=names)
    assert not watch_ranges(source_of(MODEL), FEEDS, kept).overflowing
    result = rounded_outputs(source_of(MODEL), FEEDS, kept)["y"]
    np.testing.assert_allclose(result, expected(), 1e-2, 1e-2)
    assert np.abs(result - expected()).max() > 1e-6  # the third is still rounded


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_the_imitation_is_what_a_gpu_gives(precision: str) -> None:
    options = {"precision": precision, "keep_f32": ("second", "first"), "cache_dir": None}
    compiled = onnxla.compile(MODEL, target="gpu", options=options)
    assert compiled.about["options"]["keep_f32"] == ["second", "first"]
    (result,) = DeviceExecutable(compiled.programs[0], SimulatedDevice()).run([FEEDS["x"]], 1)
    imitated = rounded_outputs(
        source_of(MODEL), FEEDS, CompileOptions(precision=precision, keep_f32=("second", "first"))
    )
    np.testing.assert_allclose(result, imitated["y"], 1e-4, 1e-5)


def test_tf32_is_kept_away_from_a_node_as_well() -> None:
    def kernels(*kept: str) -> int:
        options = {"precision": "tf32", "keep_f32": kept, "cache_dir": None}
        return onnxla.compile(MODEL, target="gpu", options=options).hlo("cuda").count("__global__")

    def multiplied(*kept: str) -> int:
        options = {"precision": "tf32", "keep_f32": kept, "cache_dir": None}
        text = onnxla.compile(MODEL, target="gpu", options=options).hlo("cuda")
        return sum("tf32.tf32" in part for part in text.split("__global__"))

    assert multiplied() > multiplied("first") > multiplied("first", "second", "third") == 0


def test_names_that_are_no_products_are_refused_with_those_that_are() -> None:
    for precision in ("fp16", "tf32"):
        with pytest.raises(InputError, match="is called scale; there are first, second, third"):
            onnxla.compile(MODEL, target="gpu", options={"precision": precision, "keep_f32": ("scale",)})
    with pytest.raises(InputError, match="keep_f32 is for precision tf32, bf16, fp16"):
        onnxla.compile(MODEL, options={"keep_f32": ("first",)})


def test_precisions_without_a_range_to_watch() -> None:
    with pytest.raises(InputError, match="precision='fp32' rounds no factors"):
        watch_ranges(source_of(MODEL), FEEDS, CompileOptions(precision="fp32"))
    with pytest.raises(InputError, match="'tf32' cannot be imitated on a CPU; fp16 and bf16 can"):
        rounded_outputs(source_of(MODEL), FEEDS, CompileOptions(precision="tf32"))


def test_infinite_and_vanishing_numbers() -> None:
    x = FEEDS["x"].copy()
    x[0, 0], x[1, 1], x[2, :] = np.inf, np.nan, 1e-8
    ranges = watch_ranges(source_of(growing(1.0)), {"x": x}, CompileOptions(precision="fp16"))
    first = next(f for f in ranges.factors if f.node == "first")
    assert first.overflows == 0 and first.largest[0] == np.abs(x[np.isfinite(x)]).max()
    assert first.vanishing == pytest.approx(32 / (20 * 32 - 1 + 32 * 48), 0.1)


def test_products_inside_loops_are_named_as_not_watched() -> None:
    body = helper.make_graph(
        [helper.make_node("MatMul", ["v", "m"], ["w"], "inner"), helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, ()),
            helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, ()),
            helper.make_tensor_value_info("v", onnx.TensorProto.FLOAT, (3, 3)),
        ],
        [
            helper.make_tensor_value_info("d", onnx.TensorProto.BOOL, ()),
            helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, (3, 3)),
        ],
    )
    weights = {"n": np.array(4, np.int64), "m": weight(3, 3)}
    model = model_of([helper.make_node("Loop", ["n", "", "x"], ["y"], "loop", body=body)], {"x": (3, 3)}, weights)
    ranges = watch_ranges(source_of(model), {"x": np.eye(3, dtype="f4")}, CompileOptions(precision="fp16"))
    assert not ranges.factors and len(ranges.unwatched) == 1 and "inner" in ranges.unwatched[0]
    plain = watch_ranges(source_of(looped()), {"x": np.zeros(6, "f4")}, CompileOptions(precision="fp16"))
    assert not plain.factors and not plain.unwatched
