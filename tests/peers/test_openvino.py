"""OpenVINO as a peer, where it is installed: it is none of onnxla's dependencies."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxla.errors import InputError
from onnxla.peers.openvino_peer import OpenVinoPeer
from tests.cli.command import save_model

pytest.importorskip("openvino")


def test_a_model_with_open_sizes_runs_on_the_sizes_of_its_inputs(tmp_path: Path) -> None:
    model = save_model(tmp_path / "m.onnx", helper.make_node("Relu", ["x"], ["y"]), x=("batch", 3))
    x = np.array([[-1, 0, 2], [np.inf, -2, 3]], np.float32)
    peer = OpenVinoPeer(model, 1, {"x": x.shape})
    assert peer.name == "openvino" and peer.version[0].isdigit()
    np.testing.assert_array_equal(peer.run({"x": x}, ["y"])["y"], np.maximum(x, 0))


@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 3)])
def test_results_outlive_the_next_run(tmp_path: Path, shape: tuple[int, ...]) -> None:
    model = save_model(tmp_path / "m.onnx", helper.make_node("Neg", ["x"], ["y"]), x=shape)
    peer = OpenVinoPeer(model, 1, {"x": shape})
    first = peer.run({"x": np.full(shape, 1, np.float32)}, ["y"])["y"]
    peer.runner({"x": np.full(shape, 2, np.float32)})()
    np.testing.assert_array_equal(first, np.full(shape, -1, np.float32))


def test_results_in_a_type_that_numpy_lacks_are_refused(tmp_path: Path) -> None:
    cast = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)
    model = save_model(tmp_path / "m.onnx", cast, y=TensorProto.BFLOAT16)
    with pytest.raises(InputError, match="y is bf16, which numpy does not have"):
        OpenVinoPeer(model, 1, {"x": (4,)})


def test_a_model_that_it_cannot_load_is_an_error_in_its_words(tmp_path: Path) -> None:
    model = save_model(tmp_path / "m.onnx", helper.make_node("Nowhere", ["x"], ["y"], domain="of.mine"))
    with pytest.raises(InputError, match=r"openvino [\d.]+ cannot load the model: .*"):
        OpenVinoPeer(model, 1, {"x": (4,)})
