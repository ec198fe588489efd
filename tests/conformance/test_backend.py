"""`onnx.backend.base.Backend`, implemented: what runners written for it may rely on."""

import unittest
from typing import Any

import numpy as np
import onnx
import onnx.backend.test
import pytest
from onnx import TensorProto, helper

import onnxla.backend
from onnxla.errors import InputError, UnsupportedOpError


def model_of(nodes: list[onnx.NodeProto], inputs: list[Any], outputs: list[Any]) -> onnx.ModelProto:
    return helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 20)]
    )


def tensor(name: str, *shape: int | str, code: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, code, shape)


def sequence(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, None)


def test_prepare_once_run_often() -> None:
    rep = onnxla.backend.prepare(
        model_of([helper.make_node("Neg", ["x"], ["y"])], [tensor("x", "n")], [tensor("y", "n")])
    )
    for n in (3, 5, 3):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(rep.run([x])[0], -x)
        np.testing.assert_array_equal(rep.run({"x": x})[0], -x)
        np.testing.assert_array_equal(rep.run(x)[0], -x)


def test_run_model() -> None:
    model = model_of([helper.make_node("Add", ["x", "x"], ["y"])], [tensor("x", 2)], [tensor("y", 2)])
    (y,) = onnxla.backend.run_model(model, [np.array([1, 2], np.float32)])
    assert y.tolist() == [2, 4]


def test_run_node() -> None:
    node = helper.make_node("TopK", ["x", "k"], ["values", "places"], axis=0)
    values, places = onnxla.backend.run_node(node, [np.array([3, 9, 5], np.float32), np.array([2])])
    assert (values.tolist(), places.tolist()) == ([9, 5], [1, 2])


def test_run_node_of_an_opset() -> None:
    node = helper.make_node("Squeeze", ["x"], ["y"], axes=[0])
    (y,) = onnxla.backend.run_node(node, [np.ones((1, 2), np.float32)], opset_version=11)
    assert y.shape == (2,)


def test_too_many_inputs() -> None:
    rep = onnxla.backend.prepare(model_of([helper.make_node("Neg", ["x"], ["y"])], [tensor("x", 1)], [tensor("y", 1)]))
    with pytest.raises(InputError, match=r"^2 inputs given; the model takes 1: x$"):
        rep.run([np.ones(1, np.float32)] * 2)


def test_cpu_is_supported() -> None:
    assert onnxla.backend.supports_device("CPU")


def test_unsupported_models_raise_when_prepared() -> None:
    node = helper.make_node("Mystery", ["x"], ["y"])
    with pytest.raises(UnsupportedOpError, match="Mystery"):
        onnxla.backend.prepare(model_of([node], [tensor("x", 1)], [tensor("y", 1)]))


def test_sequences_of_any_length() -> None:
    nodes = [helper.make_node("SequenceInsert", ["s", "x"], ["t"])]
    rep = onnxla.backend.prepare(model_of(nodes, [sequence("s"), tensor("x", 2)], [sequence("t")]))
    x = np.array([1, 2], np.float32)
    for length in (0, 1, 3):
        given = [np.full(k + 1, k, np.float32) for k in range(length)]
        (result,) = rep.run([given, x])
        assert [a.tolist() for a in result] == [a.tolist() for a in [*given, x]]


def test_strings() -> None:
    nodes = [helper.make_node("StringConcat", ["a", "b"], ["c"])]
    strings = [tensor(name, 2, code=TensorProto.STRING) for name in "abc"]
    rep = onnxla.backend.prepare(model_of(nodes, strings[:2], strings[2:]))
    for word in ("x", "y"):
        (c,) = rep.run([np.array(["p", "q"], object), np.array([word, word], object)])
        assert c.tolist() == [f"p{word}", f"q{word}"]


@pytest.mark.filterwarnings("ignore")
def test_the_standards_own_runner_drives_it() -> None:
    runner = onnx.backend.test.BackendTest(onnxla.backend.OnnxlaBackend, __name__)
    for name in ("test_relu", "test_sequence_map_add_1_sequence_1_tensor", "test_optional_get_element_sequence"):
        runner.include(f"{name}_cpu$")
    suite = unittest.TestSuite(
        unittest.defaultTestLoader.loadTestsFromTestCase(case) for case in runner.test_cases.values()
    )
    result = unittest.TestResult()
    suite.run(result)
    assert result.wasSuccessful(), result.failures + result.errors
    assert result.testsRun - len(result.skipped) == 3
