"""Every operation against TensorFlow's own results, kept in `operations/` (made by make_operations.py)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxla
from onnxla.frontends.tensorflow.importer import import_tensorflow
from onnxla.frontends.tensorflow.messages import GraphDef

FOLDER = Path(__file__).parent / "operations"
CASES = sorted(path.stem for path in FOLDER.glob("*.npz"))
COMPILED = [
    name
    for name in CASES
    if name.startswith(
        ("conv", "depthwise", "max_pool", "avg_pool", "batch_norm", "while", "branches", "scan", "nested")
    )
    or name
    in (
        "gradient_while",
        "gradient_long_loop",
        "scatter",
        "segments",
        "slices",
        "dynamic_slices",
        "stateless_random",
        "top_k",
    )
]


class Case:
    """A graph with its inputs by name, and the results by position."""

    def __init__(self, name: str) -> None:
        arrays = np.load(FOLDER / f"{name}.npz")
        self.graph = GraphDef.FromString(arrays["graph"].tobytes())
        self.cut: dict[str, Any] = {key: [str(n) for n in arrays[key]] for key in ("inputs", "outputs")}
        self.feeds = {n.split(":")[0]: arrays[f"in:x{k}"] for k, n in enumerate(self.cut["inputs"])}
        self.results = [arrays[f"out:y{k:02d}"] for k in range(len(self.cut["outputs"]))]

    def check(self, found: list[Any]) -> None:
        for k, (ours, theirs) in enumerate(zip(found, self.results, strict=True)):
            ours = np.asarray(ours)
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), f"output {k}"
            if theirs.dtype.kind in "fc":
                tolerance = 1e-3 if theirs.dtype == np.float16 else 2e-5
                finite = np.abs(theirs[np.isfinite(theirs)])
                absolute = tolerance * max(1e-3, finite.max(initial=0))
                np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=absolute, err_msg=f"output {k}")
            else:
                np.testing.assert_array_equal(ours, theirs, err_msg=f"output {k}")


def test_there_are_cases() -> None:
    assert len(CASES) > 100 and len(COMPILED) > 30


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_gives_what_tensorflow_gives(name: str) -> None:
    case = Case(name)
    model = import_tensorflow(case.graph, **case.cut)
    results = model.module.entry.evaluate(*(case.feeds[s.name] for s in model.inputs), *model.state.values())
    assert isinstance(results, (tuple, list))
    case.check(list(results)[: len(model.outputs)])


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_code_gives_what_tensorflow_gives(name: str) -> None:
    case = Case(name)
    case.check(onnxla.compile(case.graph, **case.cut).run(None, case.feeds))
