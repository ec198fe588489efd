"""Models that are compiled in part: the same results as onnxruntime's, and a report that says what runs where."""

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import onnxla
from onnxla.errors import CompileError, DeviceError, InputError, UnsupportedOpError
from onnxla.fallback import session
from onnxla.frontends.onnx.model_file import read_model
from onnxla.hlo.types import Array
from onnxla.runtime import mixed_model, onnxruntime_part
from onnxla.runtime.mixed_model import MixedModel
from tests.fallback.models import (
    FLOAT,
    INT,
    detector,
    hash_between,
    model_of,
    node,
    nonzero_between,
    onnxruntime_results,
    require_equal,
    weight,
)


def mixed(model: Any, **arguments: Any) -> MixedModel:
    compiled = onnxla.compile(model, fallback="onnxruntime", num_threads=1, **arguments)
    assert isinstance(compiled, MixedModel)
    return compiled


def check(model: ModelProto, feeds: dict[str, Array], **arguments: Any) -> MixedModel:
    compiled = mixed(model, **arguments)
    require_equal(compiled.run(None, feeds), onnxruntime_results(model, feeds))
    return compiled


def image(batch: int = 1) -> Array:
    return np.random.default_rng(7).random((batch, 3, 16, 16), np.float32)


def kinds(compiled: MixedModel) -> list[tuple[bool, tuple[str, ...]]]:
    assert compiled.clusters is not None
    return [(cluster.compiled, cluster.operators) for cluster in compiled.clusters.clusters]


# What runs where


def test_a_detector_is_compiled_up_to_its_selection() -> None:
    compiled = check(detector(), {"x": image()}, dims={"N": 1})
    assert str(compiled.clusters) == (
        "graph: 10 nodes compiled in 1 cluster, 3 in onnxruntime in 1 cluster\n"
        "1 compiled: 10 nodes (Conv 3, Reshape 2, Relu 1, Shape 1, Concat 1, Transpose 1, ...)\n"
        "  reads x; gives boxes, scores\n"
        "2 onnxruntime: 3 nodes (Gather 2, NonMaxSuppression 1)\n"
        "  reads boxes, scores; gives found\n"
        "  nms (NonMaxSuppression), node 10\n"
        "    the overlap of boxes decides the shape of NonMaxSuppression's output, and is computed at run time\n"
        "  2 nodes (Gather 2): it reads what has no known shape before the model runs"
    )


def test_the_compiler_begins_again_where_shapes_are_static() -> None:
    x = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32)
    compiled = check(nonzero_between(), {"x": x})
    assert kinds(compiled) == [
        (True, ("MatMul", "Relu")),
        (False, ("NonZero", "Cast", "ReduceMean")),
        (True, ("MatMul", "Tanh")),
    ]


def test_an_operator_of_another_domain_between_two_clusters() -> None:
    x = np.random.default_rng(3).integers(-999, 999, (200, 200), np.int32)
    compiled = check(hash_between(), {"x": x})
    assert str(compiled.clusters) == (
        "graph: 4 nodes compiled in 2 clusters, 1 in onnxruntime in 1 cluster\n"
        "1 compiled: 2 nodes (Mul 1, Add 1)\n"
        "  reads x; gives sums\n"
        "2 onnxruntime: 1 node (com.microsoft.MurmurHash3 1)\n"
        "  reads sums; gives hashes\n"
        "  hash (com.microsoft.MurmurHash3), node 2\n"
        "    com.microsoft.MurmurHash3 at opset 1 has no import rule\n"
        "3 compiled: 2 nodes (Cast 1, Mul 1)\n"
        "  reads hashes; gives y"
    )


def test_a_model_without_such_nodes_is_one_cluster() -> None:
    model = model_of([node("Relu", ["x"], ["y"])], {"x": (FLOAT, [3])}, {"y": FLOAT}, {})
    compiled = check(model, {"x": np.array([1, -1, np.nan], np.float32)})
    assert kinds(compiled) == [(True, ("Relu",))]


def test_a_cluster_that_moves_little_is_left_with_its_neighbours() -> None:
    nodes = [
        node("Mul", ["x", "two"], ["doubled"], name="double"),
        node("NonZero", ["doubled"], ["y"], name="nonzero"),
    ]
    model = model_of(nodes, {"x": (FLOAT, [4])}, {"y": INT}, {"two": np.array(2, np.float32)})
    compiled = check(model, {"x": np.array([0, 1, 0, -0.0], np.float32)})
    assert str(compiled.clusters) == (
        "graph: 0 nodes compiled in 0 clusters, 2 in onnxruntime in 1 cluster\n"
        "1 onnxruntime: 2 nodes (Mul 1, NonZero 1)\n"
        "  reads x; gives y\n"
        "  nonzero (NonZero), node 1\n"
        "    which elements are not zero decides the shape of NonZero's output, and is computed at run time\n"
        "  1 node (Mul 1): its cluster moves 20 bytes, fewer than handing over is worth"
    )


@pytest.mark.parametrize("positive", [True, False])
def test_bodies_read_values_of_compiled_clusters(positive: bool) -> None:
    """A branch that cannot be compiled reads a value and a weight of the graph around it, a loop a known shape."""
    branches = [
        helper.make_graph(
            [
                node("NonZero", ["big"], ["z"]),
                node("Gather", ["table", "first"], ["t"]),
                node("Add", ["z", "t"], ["r"]),
            ],
            name,
            [],
            [helper.make_tensor_value_info("r", INT, None)],
        )
        for name in ("then", "else")
    ]
    branches[1].node[2].op_type = "Sub"
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["go_out"]),
            node("NonZero", ["state"], ["places"]),
            node("ReduceSum", ["places"], ["sum"], keepdims=0),
            node("Add", ["sum", "size"], ["more"]),
            node("Cast", ["more"], ["number"], to=FLOAT),
            node("Mul", ["state", "number"], ["state_out"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", INT, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", FLOAT, [8]),
        ],
        [
            helper.make_tensor_value_info("go_out", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state_out", FLOAT, [8]),
        ],
    )
    nodes = [
        node("MatMul", ["x", "w"], ["big"]),
        node("ReduceSum", ["x"], ["total"], keepdims=0),
        node("Greater", ["total", "zero"], ["choice"]),
        node("Size", ["big"], ["size"]),
        node("If", ["choice"], ["chosen"], then_branch=branches[0], else_branch=branches[1]),
        node("Loop", ["trips", "", "start"], ["looped"], body=body),
    ]
    held = {
        "w": weight(128, 256),
        "zero": np.array(0, np.float32),
        "table": np.array([5, 7]),
        "first": np.array([1]),
        "trips": np.array(3),
    }
    model = model_of(nodes, {"x": (FLOAT, [16, 128]), "start": (FLOAT, [8])}, {"chosen": INT, "looped": FLOAT}, held)
    x = np.full((16, 128), 1 if positive else -1, np.float32)
    compiled = check(model, {"x": x, "start": np.arange(8, dtype=np.float32)})
    assert [kind for kind, _ in kinds(compiled)] == [True, False]
    assert set(kinds(compiled)[1][1]) >= {"If", "Loop"}


def test_sequences_stay_in_onnxruntime() -> None:
    nodes = [
        node("Mul", ["x", "x"], ["squares"], name="squares"),
        node("SequenceConstruct", ["squares", "x"], ["pair"], name="pair"),
        node("NonZero", ["x"], ["places"], name="nonzero"),
        node("Gather", ["places", "zero"], ["position"], axis=1, name="position"),
        node("Gather", ["position", "zero"], ["row"], name="row"),
        node("Mod", ["row", "two"], ["index"], name="mod"),
        node("SequenceAt", ["pair", "index"], ["y"], name="at"),
    ]
    held = {"zero": np.array(0), "two": np.array(2)}
    model = model_of(nodes, {"x": (FLOAT, [200, 200])}, {"y": FLOAT}, held)
    x = np.zeros((200, 200), np.float32)
    x[3, 4] = 3
    compiled = check(model, {"x": x})
    report = compiled.clusters
    assert report is not None
    assert "only tensors of numbers are handed over" in str(report)
    assert [kind for kind, _ in kinds(compiled)] == [True, False]
    assert kinds(compiled)[0] == (True, ("Mul",))


def test_outputs_that_are_inputs_and_weights_are_copies() -> None:
    nodes = [node("NonZero", ["x"], ["places"])]
    model = model_of(nodes, {"x": (FLOAT, [4])}, {"x": FLOAT, "places": INT, "table": INT}, {"table": np.arange(3)})
    x = np.array([0, 1, 2, 0], np.float32)
    compiled = mixed(model)
    for _ in range(2):
        given, places, table = compiled.run(None, {"x": x})
        np.testing.assert_array_equal(given, x)
        np.testing.assert_array_equal(places, [[1, 2]])
        np.testing.assert_array_equal(table, [0, 1, 2])
        given[...] = table[...] = places[...] = 9 if given.shape == table.shape else 0
        table[...] = 9
    np.testing.assert_array_equal(x, [0, 1, 2, 0])


# Memory


@pytest.mark.parametrize("inside", [True, False], ids=["by its insides", "by public methods"])
def test_nothing_is_copied_between_clusters(monkeypatch: pytest.MonkeyPatch, inside: bool) -> None:
    if not inside:
        monkeypatch.setattr(onnxruntime_part._Insides, "of", lambda _: None)
    taken: dict[str, Array] = {}
    stage_run = mixed_model.Stage.run

    def run(stage: mixed_model.Stage, values: dict[str, Any]) -> list[Any]:
        results = stage_run(stage, values)
        taken.update({f"read {name}": values[name] for name in stage.inputs})
        taken.update({f"made {name}": value for name, value in zip(stage.outputs, results, strict=True)})
        return results

    shared = []
    ort_value, view_of, value_inside = (
        onnxruntime_part.ort_value,
        onnxruntime_part.view_of,
        onnxruntime_part._Insides.value,
    )

    def checked_inside(insides: Any, array: Array) -> Any:
        value = value_inside(insides, array)
        shared.append(value.data_ptr() == array.ctypes.data)
        return value

    def checked_value(array: Array) -> Any:
        value = ort_value(array)
        shared.append(value.data_ptr() == array.ctypes.data)
        return value

    def checked_view(value: Any) -> Array:
        array = view_of(value)
        shared.append(value.data_ptr() == array.ctypes.data)
        return array

    monkeypatch.setattr(mixed_model.Stage, "run", run)
    monkeypatch.setattr(onnxruntime_part, "ort_value", checked_value)
    monkeypatch.setattr(onnxruntime_part._Insides, "value", checked_inside)
    monkeypatch.setattr(onnxruntime_part, "view_of", checked_view)
    check(nonzero_between(), {"x": np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32)})
    assert shared == [True, True]
    assert np.shares_memory(taken["made active"], taken["read active"])
    assert np.shares_memory(taken["made mean"], taken["read mean"])


def test_a_view_keeps_what_it_views() -> None:
    views = [onnxruntime_part.view_of(onnxruntime_part.ort_value(np.full(1 << 16, k, np.int64))) for k in range(20)]
    assert all((view == k).all() for k, view in enumerate(views))


def test_arrays_with_gaps_reach_onnxruntime_whole() -> None:
    """Dense copies live as long as onnxruntime reads them."""
    nodes = [node("MurmurHash3", ["x"], ["y"], domain="com.microsoft", positive=0)]
    part = read_model(model_of(nodes, {"x": (INT, [300, 200])}, {"y": TensorProto.INT32}, {}))
    ran = session.Session(part, 1)
    for k in range(5):
        wide = np.random.default_rng(k).integers(0, 1000, (300, 400))
        (whole,), (gapped,) = (ran.run(["y"], {"x": x}) for x in (wide[:, ::2].copy(), wide[:, ::2]))
        np.testing.assert_array_equal(whole, gapped)


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int8, np.float16, np.float64, np.uint64, "bfloat16"])
def test_element_types_survive_the_way(dtype: Any) -> None:
    import ml_dtypes

    array = np.array([[0, 1, 1], [1, 0, 0]]).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    for given in (array, array[:0], array[0, 1:2].reshape(())):
        view = onnxruntime_part.view_of(onnxruntime_part.ort_value(given))
        assert view.dtype == given.dtype and view.shape == given.shape
        assert view.tobytes() == given.tobytes()


# Sizes


def test_sizes_are_settled_by_the_first_run() -> None:
    compiled = mixed(detector())
    assert compiled.clusters is None and not compiled.compiled_parts
    for batch in (1, 3, 1):
        require_equal(compiled.run(None, {"x": image(batch)}), onnxruntime_results(detector(), {"x": image(batch)}))
    assert [program.inputs[0].shape[0] for program in compiled.programs] == [3]


def test_several_sizes_and_no_others() -> None:
    compiled = mixed(detector(), dims={"N": [1, 2]})
    require_equal(compiled.run(None, {"x": image(2)}), onnxruntime_results(detector(), {"x": image(2)}))
    with pytest.raises(InputError) as caught:
        compiled.run(None, {"x": image(3)})
    assert str(caught.value) == (
        "no code for x [3, 3, 16, 16]\n  there is code for x [1, 3, 16, 16]\n  there is code for x [2, 3, 16, 16]"
    )


def test_a_value_that_decides_a_shape_is_settled_by_the_run() -> None:
    nodes = [
        node("Reshape", ["x", "shape"], ["rows"]),
        node("MatMul", ["rows", "w"], ["product"]),
        node("NonZero", ["product"], ["y"]),
    ]
    model = model_of(nodes, {"x": (FLOAT, [512]), "shape": (INT, [2])}, {"y": INT}, {"w": weight(64, 300)})
    x = np.random.default_rng(0).integers(-1, 2, 512).astype(np.float32)
    compiled = mixed(model)
    for shape in ([8, 64], [-1, 64]):
        feeds = {"x": x, "shape": np.array(shape)}
        require_equal(compiled.run(None, feeds), onnxruntime_results(model, feeds))
        assert kinds(compiled) == [(True, ("Reshape", "MatMul")), (False, ("NonZero",))]


def test_a_declared_shape_that_is_wrong_is_not_believed(caplog: pytest.LogCaptureFixture) -> None:
    """Its size would be a constant of what follows, as it is one for onnxruntime."""
    nodes = [
        node("NonZero", ["x"], ["places"]),
        node("Shape", ["places"], ["shape"]),
        node("Cast", ["places"], ["numbers"], to=FLOAT),
        node("MatMul", ["w", "numbers"], ["product"]),
    ]
    info = helper.make_tensor_value_info("places", INT, [2, 5])
    model_weight = weight(20000, 2)
    model = model_of(nodes, {"x": (FLOAT, [3, 3])}, {"shape": INT, "product": FLOAT}, {"w": model_weight}, [info])
    compiled = mixed(model)
    assert [kind for kind, _ in kinds(compiled)] == [False, True]
    with caplog.at_level(logging.WARNING):
        for x in (np.eye(3, dtype=np.float32), np.ones((3, 3), np.float32)):
            places = np.stack(np.nonzero(x))
            expected = [np.array(places.shape), model_weight @ places.astype(np.float32)]
            require_equal(compiled.run(None, {"x": x}), expected)
    assert "places is int64 [2, 3], and int64 [2, 5] was inferred: it is planned again" in caplog.text
    assert [kind for kind, _ in kinds(compiled)] == [False]


def test_constants_are_weights_of_both_sides() -> None:
    nodes = [
        node("Add", ["x", "offset"], ["moved"]),
        node("NonZero", ["moved"], ["places"]),
        node("Cast", ["places"], ["numbers"], to=FLOAT),
        node("Add", ["numbers", "offset"], ["y"]),
    ]
    model = model_of(nodes, {"x": (FLOAT, [200, 200]), "offset": (FLOAT, [])}, {"y": FLOAT}, {})
    x, offset = np.eye(200, dtype=np.float32), np.array(-1, np.float32)
    compiled = mixed(model, constants={"offset": offset})
    assert [tensor.name for tensor in compiled.get_inputs()] == ["x"]
    require_equal(compiled.run(None, {"x": x}), onnxruntime_results(model, {"x": x, "offset": offset}))


def test_weights_in_files_beside_the_model(tmp_path: Path) -> None:
    nodes = [
        node("MatMul", ["x", "w"], ["product"]),
        node("NonZero", ["product"], ["places"]),
        node("Gather", ["table", "places"], ["y"]),
    ]
    held = {"w": weight(32, 600), "table": weight(600, 5, seed=2)}
    model = model_of(nodes, {"x": (FLOAT, [2, 32])}, {"y": FLOAT}, held)
    inside, outside = tmp_path / "inside.onnx", tmp_path / "outside.onnx"
    onnx.save(model, inside)
    onnx.save(
        onnx.ModelProto.FromString(model.SerializeToString()),
        outside,
        save_as_external_data=True,
        location="weights.bin",
    )
    x = np.random.default_rng(0).standard_normal((2, 32)).astype(np.float32)
    for path in (inside, outside):
        require_equal(mixed(path).run(None, {"x": x}), onnxruntime_results(model, {"x": x}))


# Using it


def test_threads_share_a_model() -> None:
    """They meet the sizes at once, and each gets its own results."""
    compiled = mixed(detector())
    feeds = [{"x": image(1 + k % 2) * (1 + k)} for k in range(8)]
    expected = [onnxruntime_results(detector(), f) for f in feeds]
    with ThreadPoolExecutor(8) as pool:
        for results, wanted in zip(pool.map(lambda f: compiled.run(None, f), feeds), expected, strict=True):
            require_equal(results, wanted)


def test_it_is_used_as_a_compiled_model() -> None:
    compiled = mixed(detector(), dims={"N": 1})
    found, scores = compiled(image())
    assert compiled.run(["scores"], {"x": image()})[0].shape == scores.shape
    target = np.empty_like(scores)
    assert compiled.run(["scores"], {"x": image()}, out=[target])[0] is target
    np.testing.assert_array_equal(target, scores)
    with pytest.raises(InputError, match=r"scores: out has shape \[1, 3\], the model gives \[1, 3, 256\]"):
        compiled.run(["scores"], {"x": image()}, out=[np.empty((1, 3), np.float32)])
    memory = np.empty(found.nbytes + scores.nbytes, np.uint8)
    overlapping = [memory[: r.nbytes].view(r.dtype).reshape(r.shape) for r in (found, scores)]
    with pytest.raises(InputError, match="their out arrays overlap"):
        compiled.run(None, {"x": image()}, out=overlapping)
    with pytest.raises(InputError, match="missing inputs: x"):
        compiled.run(None, {})
    with pytest.raises(InputError, match="x: shape"):
        compiled.run(None, {"x": image()[:, :2]})
    assert [part.run(None, {"x": image()})[0].shape for part in compiled.compiled_parts] == [(1, 256, 4)]
    compiled.link()
    compiled.release_memory()
    assert found.shape[0] == 1


def test_what_it_does_not_do_is_said() -> None:
    compiled = mixed(detector(), dims={"N": 1})
    with pytest.raises(InputError, match=r"model.compiled_parts\[0\].profile\(...\)"):
        compiled.profile({"x": image()})
    with pytest.raises(InputError, match="there is 'onnxruntime'"):
        onnxla.compile(detector(), fallback="tensorrt")
    with pytest.raises(DeviceError, match="for target='cpu'"):
        onnxla.compile(detector(), fallback="onnxruntime", target="gpu")
    with pytest.raises(InputError, match="fallback= is for ONNX models"):
        onnxla.compile("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }", fallback="onnxruntime")


def test_without_the_option_nothing_is_left_to_onnxruntime() -> None:
    with pytest.raises(onnxla.DynamicShapeError, match="--fallback onnxruntime"):
        onnxla.compile(detector(), dims={"N": 1})


def test_onnxruntime_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(DeviceError, match="pip install onnxruntime"):
        onnxla.compile(detector(), fallback="onnxruntime")


def test_what_neither_can_run_is_an_error_of_the_model() -> None:
    nodes = [node("Nonsense", ["x"], ["y"], domain="com.microsoft", name="strange")]
    with pytest.raises(UnsupportedOpError, match="(?s)strange.*onnxruntime .* refuses the part of graph"):
        mixed(model_of(nodes, {"x": (FLOAT, [2])}, {"y": FLOAT}, {}))
    broken = [node("Concat", ["x", "w"], ["y"], axis=0, name="broken")]
    with pytest.raises(CompileError, match="broken"):
        mixed(model_of(broken, {"x": (FLOAT, [2, 3])}, {"y": FLOAT}, {"w": weight(2, 4)}))
