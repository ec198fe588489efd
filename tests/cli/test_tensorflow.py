"""The commands on TensorFlow models."""

import json
from pathlib import Path

import numpy as np

from tests.cli.command import onnxla
from tests.frontends.tensorflow.batches import batches

MODELS = Path(__file__).parent.parent / "frontends" / "tensorflow" / "saved_models"


def test_a_training_signature_is_compiled_inspected_and_run(tmp_path: Path) -> None:
    artifact = tmp_path / "model.onnxla"
    made = onnxla("compile", MODELS / "optimizers", "-o", artifact)
    assert made.code == 0 and "variables" in made.out and "which runs change" in made.out
    assert "count s32[]" in onnxla("inspect", artifact).out
    ran = onnxla("run", artifact, "--json")
    assert ran.code == 0 and json.loads(ran.out)["outputs"]["count"] == 1


def test_explain_tells_signatures_and_state(tmp_path: Path) -> None:
    told = onnxla("explain", MODELS / "classifier", "--signature", "train", "--json")
    document = json.loads(told.out)
    assert document["compiles"] and document["signatures"] == ["predict", "train"]
    assert any(text.startswith("sequential/dense/kernel float32") for text in document["state"])
    assert onnxla("explain", MODELS / "classifier").err.count("choose a signature of classifier: predict, train") == 1


def test_validate_compares_with_the_outputs_given(tmp_path: Path) -> None:
    expected = np.load(MODELS / "classifier.npz")["before"]
    arguments = ("validate", MODELS / "classifier", "--signature", "predict", "--dim", "images.0=16")
    np.savez(tmp_path / "right.npz", images=batches(1)[0][0], logits=expected)
    np.savez(tmp_path / "wrong.npz", images=batches(1)[0][0], logits=expected + 1)
    assert onnxla(*arguments, "-i", tmp_path / "right.npz").code == 0
    assert onnxla(*arguments, "-i", tmp_path / "wrong.npz").code == 1
    refused = onnxla(*arguments)
    assert refused.code != 0 and "onnxruntime does not read TensorFlow models" in refused.err


def test_inspect_prints_hlo_and_commands_for_onnx_refuse() -> None:
    shown = onnxla(
        "inspect", MODELS / "classifier", "--signature", "predict", "--dim", "images.0=1", "--after", "import"
    )
    assert "convolution" in shown.out and "b01f_01io->b01f" in shown.out
    refused = onnxla("bench", MODELS / "classifier")
    assert refused.code != 0


def test_ops_lists_tensorflow_s_operations() -> None:
    assert "Conv2DBackpropFilter" in json.loads(onnxla("ops", "conv2d", "--tensorflow", "--json").out)
