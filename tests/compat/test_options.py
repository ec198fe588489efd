"""SessionOptions, providers and profiles: what is honoured, accepted and refused."""

import json
import logging
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx.helper import make_node as node
from onnx.helper import make_tensor_value_info as tensor

from onnxla.compat import (
    ExecutionMode,
    GraphOptimizationLevel,
    InferenceSession,
    OrtValue,
    SessionOptions,
    get_available_providers,
    get_device,
    providers,
    set_default_logger_severity,
)
from onnxla.compat.errors import EPFail, Fail, InvalidArgument, NotImplemented
from tests.compat.small_models import F32, defaults, mixed_sizes, model, numbers


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "_has_gpu", lambda: False)


def names(options: Any) -> set[str]:
    return {name for name in dir(options) if not name.startswith("_")}


def test_options_have_onnxruntimes_names_and_values() -> None:
    ours, theirs = SessionOptions(), onnxruntime.SessionOptions()
    assert names(ours) <= names(theirs)
    for name in names(ours):
        value = getattr(ours, name)
        if not callable(value):
            other = getattr(theirs, name)
            assert str(value) == str(other), name


def test_attributes_take_their_own_types_alone() -> None:
    options = SessionOptions()
    options.intra_op_num_threads = np.int64(2)  # type: ignore[assignment]
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_mode = ExecutionMode.ORT_PARALLEL
    wrong: tuple[tuple[str, Any], ...] = (
        ("intra_op_num_threads", "2"),
        ("graph_optimization_level", 99),
        ("enable_profiling", "yes"),
        ("logid", 1),
    )
    for each in (options, onnxruntime.SessionOptions()):
        for name, value in wrong:
            with pytest.raises(TypeError):
                setattr(each, name, value)
        with pytest.raises(AttributeError):
            each.num_threads = 2


def test_the_number_of_threads_is_that_of_the_options() -> None:
    options = SessionOptions()
    options.intra_op_num_threads = 1
    session = InferenceSession(defaults()[0], options)
    assert session._model._main is not None and session._model._main.num_threads == 1


def test_overrides_of_free_dimensions() -> None:
    data, _ = mixed_sizes()
    ours, theirs = SessionOptions(), onnxruntime.SessionOptions()
    for options in (ours, theirs):
        options.add_free_dimension_override_by_name("batch", 2)
    mine, other = InferenceSession(data, ours), onnxruntime.InferenceSession(data, theirs)
    for ask in ("get_inputs", "get_outputs"):
        assert [str(a) for a in getattr(mine, ask)()] == [str(a) for a in getattr(other, ask)()]
    with pytest.raises(InvalidArgument, match="index: 0 Got: 1 Expected: 2"):
        mine.run(None, {"x": numbers(1, 3, 4)})


def test_overrides_by_denotation() -> None:
    x = tensor("x", F32, ["n", 3])
    x.type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    x.type.tensor_type.shape.dim[1].denotation = "DATA_FEATURE"
    data = model([node("Relu", ["x"], ["y"])], [x], [tensor("y", F32, None)])
    options = SessionOptions()
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 4)
    session = InferenceSession(data, options)
    assert session.get_inputs()[0].shape == session.get_outputs()[0].shape == [4, 3]
    options.add_free_dimension_override_by_denotation("DATA_FEATURE", 5)
    with pytest.raises(Fail, match="x: the override 5 of DATA_FEATURE is 3 in the model"):
        InferenceSession(data, options)


def test_initializers_are_given_from_outside() -> None:
    data, feeds = defaults()
    b = OrtValue.ortvalue_from_numpy(np.array([10, 20], np.float32))
    theirs, ours = onnxruntime.SessionOptions(), SessionOptions()
    kept = onnxruntime.OrtValue.ortvalue_from_numpy(b.numpy())  # onnxruntime reads it in place, unasked
    theirs.add_initializer("b", kept)
    ours.add_initializer("b", b)
    expected = onnxruntime.InferenceSession(data, theirs).run(None, feeds)
    np.testing.assert_allclose(InferenceSession(data, ours).run(None, feeds)[0], expected[0], 1e-6)
    ours.add_initializer("q", b)
    ours.add_initializer("b", OrtValue.ortvalue_from_numpy(np.zeros(3, np.float32)))
    with pytest.raises(InvalidArgument) as caught:
        InferenceSession(data, ours)
    assert caught.value.text.splitlines() == [
        "add_initializer",
        "b: tensor(float) [3] for a tensor of [2]",
        "q: the model has no such initializer",
    ]


def test_all_that_may_not_be_passed_over_is_refused_at_once() -> None:
    options = SessionOptions()
    options.add_session_config_entry("session.load_model_format", "ORT")
    options.add_session_config_entry("ep.context_enable", "1")
    options.optimized_model_filepath = "optimized.onnx"
    with pytest.raises(NotImplemented) as caught:
        InferenceSession(defaults()[0], options)
    assert [line.split(":")[0] for line in caught.value.text.splitlines()] == [
        "session.load_model_format='ORT'",
        "ep.context_enable='1'",
        "optimized_model_filepath",
    ]
    with pytest.raises(NotImplemented, match="custom operators"):
        options.register_custom_ops_library("libcustom.so")


def test_a_provider_that_is_not_there_is_passed_over_with_onnxruntimes_warning() -> None:
    data, feeds = defaults()
    assert get_available_providers() == ["CPUExecutionProvider"] and get_device() == "CPU"
    with pytest.warns(UserWarning, match="Specified provider 'CUDAExecutionProvider' is not in available"):
        session = InferenceSession(data, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    with pytest.warns(UserWarning, match="Duplicate provider"):
        InferenceSession(data, providers=["CPUExecutionProvider"] * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        arena = {"arena_extend_strategy": "kSameAsRequested"}
        session = InferenceSession(data, providers=[("CPUExecutionProvider", arena)])
        again = InferenceSession(data, None, ["CPUExecutionProvider"], [arena])
    assert session.get_provider_options() == again.get_provider_options() == {"CPUExecutionProvider": arena}
    np.testing.assert_array_equal(session.run(None, feeds)[0], again.run(None, feeds)[0])


@pytest.mark.parametrize(
    ("given", "options"),
    [(["CPUExecutionProvider"], [{}, {}]), ([12], None), ([("a", "b")], None), ([("a", {})], [{}]), (12, None)],
)
def test_providers_that_cannot_be_read(given: Any, options: Any) -> None:
    with pytest.raises(ValueError, match="provider"):
        InferenceSession(defaults()[0], providers=given, provider_options=options)


def test_a_gpu_that_is_not_there_is_an_error_where_nothing_may_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "_has_gpu", lambda: True)
    options = SessionOptions()
    data = model([node("Det", ["x"], ["y"])], [tensor("x", F32, [2, 2])], [tensor("y", F32, [])])
    with pytest.raises(NotImplemented, match="user_compute_stream"):
        InferenceSession(data, options, [("CUDAExecutionProvider", {"user_compute_stream": "1"})])
    bad = model([node("Relu", ["x"], ["y"])], [tensor("x", F32, [2])], [tensor("y", 7, [2])])
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    with pytest.raises(EPFail, match="declared"):
        InferenceSession(bad, options, ["CUDAExecutionProvider"])
    with pytest.warns(UserWarning, match="runs on the CPU, not on cuda:0"), pytest.raises(Fail, match="declared"):
        InferenceSession(bad, None, ["CUDAExecutionProvider"])


def test_providers_of_the_options_are_used_where_the_session_is_given_none() -> None:
    options = SessionOptions()
    assert not options.has_providers()
    options.add_provider("CPUExecutionProvider", {"a": 1})
    assert options.has_providers()
    assert InferenceSession(defaults()[0], options).get_provider_options() == {"CPUExecutionProvider": {"a": "1"}}


def test_a_profile_has_the_events_that_programs_look_for(tmp_path: Path) -> None:
    data, feeds = defaults()
    options = SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = InferenceSession(data, options)
    plain = InferenceSession(data).run(None, feeds)
    for _ in range(2):
        np.testing.assert_array_equal(session.run(None, feeds)[0], plain[0])
    assert session.get_profiling_start_time_ns() > 0
    path = session.end_profiling()
    assert path.startswith(str(tmp_path / "profile_")) and session.end_profiling() == ""
    events = json.loads(Path(path).read_text())
    assert [e["name"] for e in events if e["cat"] == "Session"] == ["session_initialization", "model_run", "model_run"]
    runs = [e for e in events if e["name"] == "model_run"]
    for event in (e for e in events if e["cat"] == "Node"):
        assert event["name"].endswith("_kernel_time") and event["args"]["op_name"]
        assert any(
            run["ts"] <= event["ts"] and event["ts"] + event["dur"] <= run["ts"] + run["dur"] + 2 for run in runs
        )
    assert any("MatMul" in e["args"].get("node", "") + str(e["args"].get("also")) for e in events)


def test_a_session_is_made_again_in_another_process() -> None:
    data, feeds = defaults()
    options = SessionOptions()
    options.add_free_dimension_override_by_name("n", 2)
    session = InferenceSession(data, options)
    again = pickle.loads(pickle.dumps(session))
    assert [str(a) for a in again.get_inputs()] == [str(a) for a in session.get_inputs()]
    np.testing.assert_array_equal(again.run(None, feeds)[0], session.run(None, feeds)[0])


def test_severities_are_levels_of_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    before = logging.getLogger("onnxla").level
    try:
        for severity, level in enumerate(
            (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
        ):
            set_default_logger_severity(severity)
            assert logging.getLogger("onnxla").level == level
        with pytest.raises(ValueError):
            set_default_logger_severity(5)
    finally:
        logging.getLogger("onnxla").setLevel(before)
