"""SavedModels: signatures, variables from the checkpoint, and training (made by make_saved_models.py)."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import onnxla
from onnxla.errors import InputError, ModelFormatError
from tests.frontends.tensorflow.batches import batches

FOLDER = Path(__file__).parent / "saved_models"


def test_a_signature_predicts_with_the_variables_of_the_checkpoint() -> None:
    expected = np.load(FOLDER / "classifier.npz")["before"]
    model = onnxla.compile(FOLDER / "classifier", signature="predict")
    (logits,) = model.run(None, {"images": batches(1)[0][0]})
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)
    assert dict(model.state) == {}


def test_a_batch_of_another_size_compiles_when_it_comes() -> None:
    model = onnxla.compile(FOLDER / "classifier", signature="predict")
    (tensor,) = model.get_inputs()
    assert tensor.shape == ["images.0", 8, 8, 1]
    for size in (1, 3):
        assert model(np.zeros((size, 8, 8, 1), np.float32)).shape == (size, 4)


def test_a_loop_of_runs_trains_as_tensorflow_does() -> None:
    """A hundred steps with batch normalisation, dropout and Adam: loss for loss."""
    expected = np.load(FOLDER / "classifier.npz")
    model = onnxla.compile(FOLDER / "classifier", signature="train")
    losses = [model.run(["loss"], {"images": x, "labels": y})[0] for x, y in batches(100)]
    np.testing.assert_allclose(losses, expected["losses"], rtol=1e-3, atol=1e-5)
    assert losses[-1] < losses[0] / 10


def test_what_was_trained_predicts() -> None:
    expected = np.load(FOLDER / "classifier.npz")
    train = onnxla.compile(FOLDER / "classifier", signature="train")
    for x, y in batches(100):
        train.run(None, {"images": x, "labels": y})
    predict = onnxla.compile(FOLDER / "classifier", signature="predict", state=train.state)
    (logits,) = predict.run(None, {"images": batches(1)[0][0]})
    np.testing.assert_allclose(logits, expected["after"], rtol=1e-2, atol=1e-3)


def test_every_optimizer_steps_as_tensorflow_s() -> None:
    expected = np.load(FOLDER / "optimizers.npz")
    model = onnxla.compile(FOLDER / "optimizers")
    for gradient in expected["gradients"]:
        (count,) = model.run(None, {"gradient": gradient})
    assert count == 5
    for key in expected:
        if key.startswith("value:"):
            name = key.removeprefix("value:")
            np.testing.assert_allclose(model.state[name], expected[key], rtol=1e-5, atol=1e-6, err_msg=name)


def test_variables_change_inside_of_loops_and_branches_and_random_numbers_move_on() -> None:
    expected = np.load(FOLDER / "effects.npz")
    model = onnxla.compile(FOLDER / "effects")
    assert "constant" not in model.state
    for k, (x, times) in enumerate(zip(expected["x"], expected["times"], strict=True)):
        noise, row = model.run(["noise", "row"], {"x": x, "times": times})
        np.testing.assert_array_equal(noise, expected["noise"][k])
        np.testing.assert_allclose(row, expected["row"][k], rtol=1e-6)
    np.testing.assert_allclose(model.state["total"], expected["total"], rtol=1e-6)
    np.testing.assert_allclose(model.state["table"], expected["table"], rtol=1e-6)


def test_a_saved_model_of_tensorflow_1() -> None:
    expected = np.load(FOLDER / "first_version.npz")
    np.testing.assert_allclose(onnxla.compile(FOLDER / "first_version")(expected["x"][0]), expected["y"], rtol=1e-5)
    model = onnxla.compile(FOLDER / "first_version", signature="train")
    losses = [model(x=x, target=t) for x, t in zip(expected["x"], expected["target"], strict=True)]
    np.testing.assert_allclose(losses, expected["losses"], rtol=1e-5)
    np.testing.assert_allclose(model.state["w"], expected["w"], rtol=1e-5)


def test_a_name_that_is_no_signature_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="no signature 'nothing'; it has predict, train"):
        onnxla.compile(FOLDER / "classifier", signature="nothing")
    with pytest.raises(InputError, match="choose a signature of classifier: predict, train"):
        onnxla.compile(FOLDER / "classifier")


@pytest.mark.parametrize("file", ["variables.index", "variables.data-00000-of-00001"])
def test_a_damaged_checkpoint_is_found_by_its_checksums(tmp_path: Path, file: str) -> None:
    shutil.copytree(FOLDER / "optimizers", tmp_path / "model")
    path = tmp_path / "model" / "variables" / file
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(data)
    with pytest.raises(ModelFormatError, match="checksum does not fit"):
        onnxla.compile(tmp_path / "model")


def test_a_folder_that_is_no_saved_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match="is no SavedModel"):
        onnxla.compile(tmp_path)


@pytest.mark.parametrize("file", ["variables.index", "variables.data-00000-of-00001"])
def test_variables_that_are_links_are_not_followed(tmp_path: Path, file: str) -> None:
    shutil.copytree(FOLDER / "optimizers", tmp_path / "model")
    path = tmp_path / "model" / "variables" / file
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelFormatError, match="a link is not followed"):
        onnxla.compile(tmp_path / "model")
