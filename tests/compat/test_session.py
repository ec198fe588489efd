"""`onnxla.compat.InferenceSession` beside onnxruntime's, on the same models and the same mistakes."""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper
from onnx.helper import make_node as node
from onnx.helper import make_tensor_value_info as tensor
from onnxruntime.capi import onnxruntime_pybind11_state as their_errors

import onnxla
import onnxla.compat as ort
from onnxla.compat import InferenceSession, RunOptions, SessionOptions
from onnxla.compat.capi import onnxruntime_pybind11_state as our_errors
from onnxla.compat.errors import Fail, InvalidArgument, NotImplemented
from onnxla.errors import OnnxlaError
from tests.compat.small_models import F32, I64, MODELS, bfloat16, defaults, mixed_sizes, model, numbers, optional, proto

THEIRS = onnxruntime.SessionOptions()
THEIRS.log_severity_level = 4


def theirs(data: bytes) -> Any:
    return onnxruntime.InferenceSession(data, THEIRS)


def assert_equal(ours: Any, expected: Any) -> None:
    """Same kinds, types, shapes and values, through lists and dicts."""
    assert type(ours) is type(expected)
    if isinstance(expected, list):
        assert len(ours) == len(expected)
        for one, other in zip(ours, expected, strict=True):
            assert_equal(one, other)
    elif isinstance(expected, dict):
        assert ours.keys() == expected.keys()
        np.testing.assert_allclose([*ours.values()], [*expected.values()], 1e-6)
    elif isinstance(expected, np.ndarray):
        assert (ours.dtype, ours.shape) == (expected.dtype, expected.shape)
        if expected.dtype == object:
            assert ours.tolist() == expected.tolist()
        else:
            np.testing.assert_allclose(ours, expected, 1e-6)
    else:
        assert ours == expected


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_it_says_and_gives_what_onnxruntime_does(make: Callable[[], tuple[bytes, dict[str, Any]]]) -> None:
    data, feeds = make()
    ours, expected = InferenceSession(data), theirs(data)
    for ask in ("get_inputs", "get_outputs", "get_overridable_initializers"):
        mine, other = getattr(ours, ask)(), getattr(expected, ask)()
        assert [str(arg) for arg in mine] == [str(arg) for arg in other]
        assert [(a.name, a.type, a.shape) for a in mine] == [(a.name, a.type, a.shape) for a in other]
    assert_equal(ours.run(None, feeds), expected.run(None, feeds))
    last = [ours.get_outputs()[-1].name]
    assert_equal(ours.run(last, feeds), expected.run(last, feeds))


def test_the_models_metadata() -> None:
    data, _ = defaults()
    ours, expected = InferenceSession(data).get_modelmeta(), theirs(data).get_modelmeta()
    names = [name for name in dir(expected) if not name.startswith("_")]
    assert {name: getattr(ours, name) for name in names} == {name: getattr(expected, name) for name in names}


MISTAKES: dict[str, Callable[[Any], Any]] = {
    "missing": lambda s: s.run(None, {}),
    "unknown": lambda s: s.run(None, {"x": numbers(2, 3, 4), "q": numbers(1)}),
    "output": lambda s: s.run(["q"], {"x": numbers(2, 3, 4)}),
    "type": lambda s: s.run(None, {"x": numbers(2, 3, 4, dtype=np.float64)}),
    "rank": lambda s: s.run(None, {"x": numbers(2, 3)}),
    "size": lambda s: s.run(None, {"x": numbers(2, 5, 4)}),
    "entry": lambda s: s.get_session_options().get_session_config_entry("q"),
    "binding": lambda s: s.io_binding().bind_cpu_input("q", numbers(1)),
    "nothing bound": lambda s: s.run_with_iobinding(s.io_binding()),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_the_same_words(mistake: str) -> None:
    data, _ = mixed_sizes()
    with pytest.raises(Exception) as expected:
        MISTAKES[mistake](theirs(data))
    with pytest.raises(expected.type) as ours:  # onnxruntime is loaded here, so its own classes catch ours
        MISTAKES[mistake](InferenceSession(data))
    assert str(ours.value) == str(expected.value)
    if expected.type.__module__ != "builtins":
        assert isinstance(ours.value, getattr(our_errors, expected.type.__name__))
        assert isinstance(ours.value, OnnxlaError)


def unknown_operator() -> bytes:
    return model([node("Nope", ["x"], ["y"])], [tensor("x", F32, ["n"])], [tensor("y", F32, ["n"])])


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("/nowhere/model.onnx", "NoSuchFile"),
        (b"no model at all", "InvalidProtobuf"),
        (b"", "InvalidArgument"),
        (unknown_operator(), "InvalidGraph"),
        (12, "TypeError"),
        (None, "TypeError"),
    ],
)
def test_what_is_no_model(source: Any, kind: str) -> None:
    for session in (onnxruntime.InferenceSession, InferenceSession):
        with pytest.raises(Exception) as caught:
            session(source)
        assert caught.type.__name__ == kind
    if kind != "TypeError":
        assert isinstance(caught.value, getattr(their_errors, kind))


def test_without_onnxruntime_its_exceptions_are_only_ours() -> None:
    program = """
import sys, onnxla.compat
from onnxla.compat.capi.onnxruntime_pybind11_state import InvalidProtobuf
try:
    onnxla.compat.InferenceSession(b"no")
except InvalidProtobuf as error:
    print(type(error) is InvalidProtobuf, "onnxruntime" in sys.modules, error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("True False [ONNXRuntimeError] : 7 : INVALID_PROTOBUF : ")


def test_a_run_replaces_an_initializer() -> None:
    data, feeds = defaults()
    ours, expected = InferenceSession(data), theirs(data)
    for w in (numbers(3, 2), np.ones((3, 2), np.float32)):
        assert_equal(ours.run(None, {**feeds, "w": w}), expected.run(None, {**feeds, "w": w}))
    assert_equal(ours.run(None, feeds), expected.run(None, feeds))
    with pytest.raises(InvalidArgument, match="index: 0 Got: 4 Expected: 3"):
        ours.run(None, {**feeds, "w": numbers(4, 2)})
    with pytest.raises(ValueError, match="missing"):
        ours.run(None, {"w": numbers(3, 2)})


def test_a_model_without_a_version() -> None:
    made = proto(defaults()[0])
    made.ClearField("model_version")
    data = made.SerializeToString()
    assert InferenceSession(data).get_modelmeta().version == theirs(data).get_modelmeta().version


def test_before_version_4_of_the_format_no_initializer_is_replaced() -> None:
    data, feeds = defaults(ir_version=3)
    ours, expected = InferenceSession(data), theirs(data)
    assert ours.get_overridable_initializers() == [] == list(expected.get_overridable_initializers())
    for session in (ours, expected):
        with pytest.raises(their_errors.InvalidArgument, match="Invalid input name: w"):
            session.run(None, {**feeds, "w": numbers(3, 2)})


def test_an_optional_with_and_without_a_value() -> None:
    data, _ = optional()
    ours, expected = InferenceSession(data), theirs(data)
    for feeds in ({"x": None}, {"x": numbers(2)}, {}, {"x": numbers(3)}):
        assert_equal(ours.run(None, feeds), expected.run(None, feeds))


def test_a_sequence_of_other_elements_is_refused() -> None:
    nodes = [node("SequenceLength", ["s"], ["y"])]
    inputs = [helper.make_tensor_sequence_value_info("s", F32, None)]
    ours = InferenceSession(model(nodes, inputs, [tensor("y", I64, [])]))
    assert ours.run(None, {"s": []})[0] == 0
    with pytest.raises(InvalidArgument, match=r"element 1 .*tensor\(double\).*tensor\(float\)"):
        ours.run(None, {"s": [numbers(2), numbers(2, dtype=np.float64)]})
    with pytest.raises(InvalidArgument, match="received ndarray"):
        ours.run(None, {"s": numbers(2)})


def test_bfloat16_comes_and_goes_as_numpy_has_it() -> None:
    data, feeds = bfloat16()
    ours = InferenceSession(data)
    assert [str(a) for a in ours.get_outputs()] == [str(a) for a in theirs(data).get_outputs()]
    (y,) = ours.run(None, feeds)
    assert y.dtype == feeds["x"].dtype and np.array_equal(y, feeds["x"])


def test_run_async_calls_back_with_results_or_with_the_error() -> None:
    data, feeds = mixed_sizes()
    session, calls, called = InferenceSession(data), [], threading.Event()

    def callback(results: list[Any], user_data: Any, error: str) -> None:
        calls.append((results, user_data, error))
        called.set()

    for given in (feeds, {"x": numbers(2, 3)}):
        called.clear()
        session.run_async(["shape"], given, callback, "mine")
        assert called.wait(60)
    assert calls[0][0][0].tolist() == [2, 3, 4] and calls[0][1:] == ("mine", "")
    assert calls[1] == (
        [],
        "mine",
        "Invalid rank for input: x Got: 2 Expected: 3 Please fix either the inputs/outputs or the model.",
    )
    with pytest.raises(ValueError, match="missing"):
        session.run_async(None, {}, callback, None)


def test_a_terminated_run_does_not_begin() -> None:
    data, feeds = mixed_sizes()
    options = RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    session = InferenceSession(data)
    session.run(None, feeds, options)
    options.terminate = True
    with pytest.raises(Fail, match="terminate flag"):
        session.run(None, feeds, options)


def test_an_operator_that_is_unknown_whatever_the_sizes_is_found_when_the_session_is_made() -> None:
    body = helper.make_graph([node("Nope", ["x"], ["z"])], "body", [], [tensor("z", F32, ["n"])])
    nodes = [node("If", ["c"], ["y"], then_branch=body, else_branch=body), node("Nope", ["x"], ["unused"])]
    inputs = [tensor("x", F32, ["n"]), tensor("c", 9, [])]
    with pytest.raises(their_errors.InvalidGraph) as caught:
        InferenceSession(model(nodes, inputs, [tensor("y", F32, ["n"])]))
    assert str(caught.value).count("Nope at opset 21 has no import rule") == 2  # both branches, and nothing unused


def test_an_artifact_is_opened_by_its_path(tmp_path: Path) -> None:
    data, feeds = defaults()
    path = tmp_path / "model.onnxla"
    compiled = onnxla.compile(proto(data), dims={"n": 2})
    compiled.save(path)
    session = InferenceSession(path)
    assert [str(arg) for arg in session.get_inputs()] == ["NodeArg(name='x', type='tensor(float)', shape=[2, 3])"]
    assert_equal(session.run(None, feeds), theirs(data).run(None, feeds))
    with pytest.raises(InvalidArgument, match="index: 0 Got: 5 Expected: 2"):
        session.run(None, {"x": numbers(5, 3)})
    with pytest.raises(their_errors.NoSuchFile):
        InferenceSession(tmp_path / "other.onnxla")


def test_many_threads_run_one_session() -> None:
    data, _ = defaults()
    session, wrong = InferenceSession(data), []

    def work(rows: int) -> None:
        x, w = np.full((rows, 3), rows, np.float32), np.full((3, 2), rows, np.float32)
        for _ in range(20):
            if not np.array_equal(session.run(None, {"x": x, "w": w})[0], x @ w + np.array([1, -1], np.float32)):
                wrong.append(rows)

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_what_fails_to_compile_may_be_left_to_onnxruntime_by_name() -> None:
    data = model(
        [node("Relu", ["x"], ["t"]), node("Bernoulli", ["t"], ["u"], seed=1.0), node("Neg", ["t"], ["y"])],
        [tensor("x", F32, [3])],
        [tensor("y", F32, [3])],
    )
    options = SessionOptions()
    options.add_session_config_entry("onnxla.fallback", "onnxruntime")
    x = numbers(3)
    assert_equal(InferenceSession(data, options).run(None, {"x": x}), theirs(data).run(None, {"x": x}))
    options.add_session_config_entry("onnxla.fallback", "elsewhere")
    with pytest.raises(NotImplemented, match="elsewhere"):
        InferenceSession(data, options)


def test_the_names_that_programs_import() -> None:
    assert set(ort.__all__) <= set(dir(onnxruntime))
    assert ort.capi.onnxruntime_pybind11_state is our_errors
    assert set(our_errors.__all__) <= set(dir(their_errors))
    for name in ("GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder", "OrtAllocatorType", "OrtMemType"):
        ours, expected = getattr(ort, name), getattr(onnxruntime, name)
        assert {n: int(v) for n, v in ours.__members__.items()} == {n: int(v) for n, v in expected.__members__.items()}
        assert str(next(iter(ours))) == str(next(iter(expected.__members__.values())))
