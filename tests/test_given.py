"""Numbers that users give: a number of the wrong kind is an error, wherever it is given, never a nearby number."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import onnxla
from onnxla.config import CompileOptions, Limits, RuntimeSettings
from onnxla.errors import InputError
from onnxla.given import number, shapes_of, sizes_of, whole_number


def doubled() -> ModelProto:
    """y = x + x for x of [batch, 3]."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "graph", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


NO_WHOLE_NUMBERS: list[Any] = [1.0, 1.5, True, np.True_, np.float32(2), "2", None, float("nan"), 2j, [1], b"1"]


@pytest.mark.parametrize("value", NO_WHOLE_NUMBERS, ids=repr)
def test_what_is_no_whole_number_is_refused_everywhere(value: Any, tmp_path: Path) -> None:
    model = doubled()
    with pytest.raises(InputError, match="n=.*whole number"):
        whole_number(value, "n")
    attempts: list[Callable[[], object]] = [
        lambda: onnxla.compile(model, dims={"batch": [2, value]}),
        lambda: onnxla.compile(model, shapes={"x": (value, 3)}),
        lambda: onnxla.compile(model, input_shapes={"x": [value, 3]}),
        lambda: onnxla.compile(model, dims={"batch": [2, value]}, fallback="onnxruntime"),
        lambda: onnxla.compile(model, options={"opt_level": value}),
        lambda: CompileOptions(folding_bytes=value),
        lambda: Limits(nodes=value),
        lambda: RuntimeSettings(specialisations=value),
    ]
    if value is not None and not isinstance(value, list):
        attempts.append(lambda: onnxla.compile(model, dims={"batch": value}))
    if value is not None:
        attempts.append(lambda: onnxla.compile(model, num_threads=value))
        attempts.append(lambda: onnxla.compile(model, num_threads=value, fallback="onnxruntime"))
        attempts.append(lambda: RuntimeSettings(num_threads=value))
    for attempt in attempts:
        with pytest.raises(InputError):
            attempt()


def test_a_compiled_model_refuses_them_too(tmp_path: Path) -> None:
    model = onnxla.compile(doubled(), dims={"batch": 2})
    model.save(tmp_path / "model.onnxla")
    x = {"x": np.ones((2, 3), np.float32)}
    for attempt in (
        lambda: model.warm_up(dims={"batch": 2.0}),  # type: ignore[dict-item]
        lambda: model.warm_up(shapes={"x": (True, 3)}),
        lambda: model.profile(x, runs=1.5),  # type: ignore[arg-type]
        lambda: model.profile(x, runs=0),
        lambda: onnxla.load_compiled(tmp_path / "model.onnxla", num_threads=True),
        lambda: onnxla.load_compiled(tmp_path / "model.onnxla", num_threads=0),
    ):
        with pytest.raises(InputError, match="needed"):
            attempt()


def test_numbers_of_numpy_are_numbers() -> None:
    assert sizes_of({"n": np.int64(3), "m": np.array([1, 2])}) == {"n": (3,), "m": (1, 2)}
    assert sizes_of({"n": np.array(3)}) == {"n": (3,)}
    assert shapes_of({"x": np.array([2, 3]), "scalar": ()}) == {"x": (2, 3), "scalar": ()}
    assert Limits(nodes=np.int32(5)).nodes == 5  # type: ignore[arg-type]


def test_a_size_given_twice_is_compiled_once() -> None:
    model = onnxla.compile(doubled(), dims={"batch": [8, 8, 2, 8]})
    assert sorted(p.inputs[0].shape for p in model.programs) == [(2, 3), (8, 3)]
    once = onnxla.compile(doubled(), dims={"batch": [8, 8]})
    assert [t.shape for t in once.get_inputs()] == [[8, 3]]


@pytest.mark.parametrize("given", ["12", b"12", 3, {"a": 1}])
def test_a_shape_is_a_sequence(given: Any) -> None:
    with pytest.raises(InputError, match=r"shapes\['x'\]=.*whole numbers are needed"):
        shapes_of({"x": given})


def test_names_are_asked_for() -> None:
    with pytest.raises(InputError, match="shapes are given by name, not as list"):
        onnxla.compile(doubled(), shapes=[(2, 3)])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="dims: 0 is no name"):
        onnxla.compile(doubled(), dims={0: 2})  # type: ignore[dict-item]


@pytest.mark.parametrize("value", [float("nan"), -1e-9, -float("inf"), True, "1", None], ids=repr)
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(InputError):
        number(value, "seconds")
    with pytest.raises(InputError):
        CompileOptions(folding_seconds=value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fast_math": 1}, "fast_math=1: choose True or False"),
        ({"disabled_passes": "fuse"}, "disabled_passes='fuse': a list of names is needed"),
        ({"precision": 16}, "precision=16: a text is needed"),
        ({"compile_timeout": 0}, "compile_timeout=0: choose a number of seconds above 0"),
        ({"folding_bytes": -1}, "folding_bytes=-1: at least 0 is needed"),
        ("fast", "options are CompileOptions or a dict, not str"),
    ],
    ids=str,
)
def test_a_knob_takes_values_of_its_kind(options: Any, said: str) -> None:
    with pytest.raises(InputError) as error:
        onnxla.compile(doubled(), dims={"batch": 1}, options=options)
    assert said in str(error.value)


def test_folders_may_be_paths(tmp_path: Path) -> None:
    assert CompileOptions(cache_dir=tmp_path).cache_dir == str(tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "model", [None, 5, 1.5, True, [], {}, "", np.zeros(3), object()], ids=lambda m: type(m).__name__
)
def test_what_is_no_model_is_said(model: Any) -> None:
    with pytest.raises(InputError, match="model"):
        onnxla.compile(model)
    with pytest.raises(InputError, match="model"):
        onnxla.compile(model, fallback="onnxruntime")
