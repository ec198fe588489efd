"""Folders of small models, and engines that serve them in the tests' own event loop."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnxla
from onnxla.runtime.tensors import Array
from onnxla.serving.engine import ServingEngine
from onnxla.serving.requests import InferRequest
from onnxla.serving.settings import EngineSettings

T = TypeVar("T")
_SECONDS = 120
"""No test waits longer."""
W = np.arange(12, dtype=np.float32).reshape(4, 3)
"""The weights of `dense`."""


def in_loop(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What `work()` gives, awaited on a new event loop."""

    async def bounded() -> T:
        return await asyncio.wait_for(work(), _SECONDS)

    return asyncio.run(bounded())


def dense(factor: float = 1.0, rows: str | int = "batch", columns: str | int = 4) -> ModelProto:
    """y [rows, 3] = x [rows, 4] @ w * factor, and s [rows] = the sums of the rows of x."""
    w = W * np.float32(factor)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("ReduceSum", ["x", "axes"], ["s"], keepdims=0),
    ]
    return _model(
        nodes,
        [("x", TensorProto.FLOAT, [rows, columns])],
        [("y", TensorProto.FLOAT, [rows, 3]), ("s", TensorProto.FLOAT, [rows])],
        {"w": w, "axes": np.array([1])},
    )


def scaled(columns: str | int = "columns") -> ModelProto:
    """y [batch, columns] = x * k + 1, with one k [] for all rows."""
    nodes = [helper.make_node("Mul", ["x", "k"], ["m"]), helper.make_node("Add", ["m", "one"], ["y"])]
    return _model(
        nodes,
        [("x", TensorProto.FLOAT, ["batch", columns]), ("k", TensorProto.FLOAT, [])],
        [("y", TensorProto.FLOAT, ["batch", columns])],
        {"one": np.ones((), np.float32)},
    )


def mixing() -> ModelProto:
    """y [batch, 2] = softmax over the rows: they depend on one another."""
    nodes = [helper.make_node("Softmax", ["x"], ["y"], axis=0)]
    shape = ["batch", 2]
    return _model(nodes, [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)], {})


def reshaping() -> ModelProto:
    """y = x [n] reshaped to what the input `shape` [2] says."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    return _model(
        nodes,
        [("x", TensorProto.FLOAT, ["n"]), ("shape", TensorProto.INT64, [2])],
        [("y", TensorProto.FLOAT, ["a", "b"])],
        {},
    )


def words() -> ModelProto:
    """y [n] = the place of each string in a list, or -1."""
    nodes = [
        helper.make_node(
            "LabelEncoder",
            ["x"],
            ["y"],
            domain="ai.onnx.ml",
            keys_strings=["one", "two", "zwei"],
            values_int64s=[1, 2, 2],
            default_int64=-1,
        )
    ]
    return _model(nodes, [("x", TensorProto.STRING, [3])], [("y", TensorProto.INT64, [3])], {})


def echo_words() -> ModelProto:
    """y [n] = x, strings."""
    row = ("x", TensorProto.STRING, ["n"])
    return _model([helper.make_node("Identity", ["x"], ["y"])], [row], [("y", *row[1:])], {})


def _model(
    nodes: Sequence[Any],
    inputs: Sequence[tuple[str, int, Sequence[Any]]],
    outputs: Sequence[tuple[str, int, Sequence[Any]]],
    weights: dict[str, Array],
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(*row) for row in inputs],
        [helper.make_tensor_value_info(*row) for row in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def put(root: Path, name: str, model: ModelProto, version: int = 1, config: str = "") -> Path:
    """Write a model into a repository; the folder of its version."""
    folder = root / name / str(version)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    if config:
        (root / name / "config.pbtxt").write_text(config)
    return folder


def put_artifact(root: Path, name: str, artifact: Path) -> None:
    """Let an artifact take the place of the model's, as one file."""
    (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(artifact, root / name / ".new")
    (root / name / ".new").rename(root / name / "model.onnxla")


def batched_artifact(path: Path, factor: float = 1.0) -> Path:
    """`dense`, compiled for batches up to 4."""
    model = onnxla.compile(dense(factor), dims={"batch": [1, 2, 4]}, options={"pad_to_bucket": "batch"})
    model.save(path)
    return path


@asynccontextmanager
async def serving(root: Path, **settings: Any) -> AsyncIterator[ServingEngine]:
    """An engine that has started; compiles in threads, which takes less time than processes."""
    engine = ServingEngine(EngineSettings(root, **{"compile_in": "thread", **settings}))
    try:
        await engine.start()
        yield engine
    finally:
        await engine.close()


class Gate:
    """Holds every run of a model back until it is opened."""

    def __init__(self, engine: ServingEngine, name: str) -> None:
        self.began, self._open = threading.Semaphore(0), threading.Event()
        served = engine._models[name].newest
        assert served is not None
        for instance in served._scheduler._instances:
            self._hold(instance.runner)

    def open(self) -> None:
        self._open.set()

    def _hold(self, runner: Any) -> None:
        run = runner.run

        def held(*arguments: Any) -> Any:
            self.began.release()
            assert self._open.wait(_SECONDS)
            return run(*arguments)

        runner.run = held


async def ask(engine: ServingEngine, model: str, inputs: Mapping[str, Any], **fields: Any) -> dict[str, Array]:
    """The outputs by name."""
    response = await engine.infer(InferRequest(model, inputs, **fields))
    return dict(response.outputs)


def random_rows(rows: int, columns: int = 4, seed: int = 0) -> Array:
    return np.random.default_rng([seed, rows]).standard_normal((rows, columns)).astype(np.float32)
