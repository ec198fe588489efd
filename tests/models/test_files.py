"""Models as files: external data, old and mixed opsets, and what is left open until a run."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import onnxla
from tests.models.witnesses import check, model, normal


def test_external_data(tmp_path: Path) -> None:
    """Weights beside the model give what weights inside it give; the compiled file needs neither."""
    text = """<ir_version: 10, opset_import: ["": 17]>
        two (float[N,64] x) => (float[N,8] y) { h = MatMul(x, a) r = Relu(h) y = MatMul(r, b) }"""
    weights = {"a": normal(64, 64, seed=1, scale=0.1), "b": normal(64, 8, seed=2)}
    feeds = {"x": normal(5, 64)}
    (expected,) = check(model(text, weights), feeds)
    path = tmp_path / "model.onnx"
    onnx.save_model(model(text, weights), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    compiled = onnxla.compile(path, dims={"N": 5})
    compiled.save(tmp_path / "model.onnxla")
    (tmp_path / "weights.bin").unlink()
    for each in (compiled, onnxla.load_compiled(tmp_path / "model.onnxla")):
        assert each.run(None, feeds)[0].tobytes() == expected.tobytes()


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 18, 22])
def test_one_network_at_many_opsets(opset: int) -> None:
    """Operators whose attributes became inputs: axes of ReduceMean, the bounds of Clip, axes of Squeeze."""
    axes = "ReduceMean<axes = [2, 3], keepdims = 1>(c)" if opset < 18 else "ReduceMean<keepdims = 1>(c, axes)"
    clip = "Clip<min = -0.5, max = 0.5>(m)" if opset < 11 else "Clip(m, low, high)"
    squeeze = "Squeeze<axes = [2, 3]>(l)" if opset < 13 else "Squeeze(l, axes)"
    network = model(
        f"""<ir_version: 10, opset_import: ["": {opset}]>
        many (float[2,3,5,5] x) => (float[2,4] y) {{
            c = Conv(x, w)
            m = {axes}
            l = {clip}
            s = {squeeze}
            y = Softmax<axis = 1>(s)
        }}""",
        {
            "w": normal(4, 3, 3, 3, seed=1),
            "axes": np.array([2, 3]),
            "low": np.array(-0.5, np.float32),
            "high": np.array(0.5, np.float32),
        },
    )
    check(network, {"x": normal(2, 3, 5, 5)})


def test_mixed_domains() -> None:
    """A model-local function, com.microsoft, ai.onnx.ml and ai.onnx in one graph."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17, "ai.onnx.ml": 3, "com.microsoft": 1, "own": 1]>
        mixed (float[4,6] x) => (float[4,6] y) {
            s = ai.onnx.ml.Scaler<offset = [0.5], scale = [2.0]>(x)
            g = com.microsoft.FastGelu(s)
            y = own.twice(g)
        }
        <domain: "own", opset_import: ["": 17]>
        twice (v) => (w) { w = Add(v, v) }"""
    )
    check(network, {"x": normal(4, 6)}, 1e-3, 1e-4)


def test_shapes_left_open_until_a_run() -> None:
    """Each set of shapes is compiled when it first comes, and found again."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        open (float[N,T] x) => (float[N] y) { y = ReduceLogSumExp<axes = [1], keepdims = 0>(x) }"""
    )
    compiled = onnxla.compile(network)
    for shape in ((1, 5), (4, 1), (3, 33), (1, 5)):
        x = normal(*shape)
        (y,) = compiled.run(None, {"x": x})
        np.testing.assert_allclose(y, np.log(np.exp(x.astype(np.float64)).sum(axis=1)), rtol=1e-5)
    assert len(compiled.programs) == 3


def test_shape_decided_by_a_value() -> None:
    """The target of Reshape is an input: code is made for its value at the run."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        reshape (float[12] x, int64[2] shape) => (float[A,B] y) { r = Reshape(x, shape) y = Neg(r) }"""
    )
    compiled = onnxla.compile(network)
    for shape in ([3, 4], [2, -1], [12, 1]):
        x = normal(12)
        (y,) = compiled.run(None, {"x": x, "shape": np.array(shape)})
        np.testing.assert_array_equal(y, -x.reshape(shape))
