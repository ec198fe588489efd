"""ONNX's backend tests as cases: they come with the `onnx` package.

Node tests of every operator, simple models, and models and operators exported from PyTorch. The suite of real
architectures, which downloads, is left out.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, TypeProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

SUITES = ("node", "simple", "pytorch-converted", "pytorch-operator")

RANDOM = ("test_bernoulli", "test_training_dropout")
"""How the names begin of tests whose results are drawn at random; those of a seed or ratio of zero are not."""
NOT_RANDOM = ("zero_ratio",)


@dataclass(frozen=True)
class Case:
    """A model and pairs of inputs and outputs; sequences are lists, an empty optional is None."""

    name: str
    suite: str
    model: ModelProto
    data_sets: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float

    @property
    def is_random(self) -> bool:
        return self.name.startswith(RANDOM) and not any(word in self.name for word in NOT_RANDOM)

    @property
    def opset(self) -> int:
        """The highest opset that the model imports of the domain of its first node."""
        node = self.model.graph.node[0]
        return max(
            (o.version for o in self.model.opset_import if (o.domain or "ai.onnx") == (node.domain or "ai.onnx")),
            default=1,
        )


@cache
def case_index() -> dict[str, TestCase]:
    """ONNX's test cases by name, models on disk not yet read."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for suite in SUITES for case in load_model_tests(kind=suite)}


def read_case(name: str) -> Case:
    """A case by name, with its data."""
    case = case_index()[name]
    if case.model is not None:
        sets = [([_plain(v) for v in i], [_plain(v) for v in o]) for i, o in case.data_sets or ()]
        return Case(name, case.kind, case.model, sets, case.rtol, case.atol)
    folder = Path(str(case.model_dir))
    model = onnx.load(str(folder / "model.onnx"))
    sets = [
        (_read(data, "input", model.graph.input), _read(data, "output", model.graph.output))
        for data in sorted(folder.glob("test_data_set*"))
    ]
    return Case(name, case.kind, model, sets, case.rtol, case.atol)


def _plain(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def _read(folder: Path, kind: str, infos: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    count = len(list(folder.glob(f"{kind}_*.pb")))
    return [_parse((folder / f"{kind}_{i}.pb").read_bytes(), infos[i].type) for i in range(count)]


def _parse(data: bytes, type: TypeProto) -> Any:
    if type.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if type.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def operator_of(case: Case) -> str:
    """What the table counts a case under: its operator, or its suite where it is a model."""
    if case.suite != "node":
        return f"(models: {case.suite})"
    name = case.name.split("_expanded")[0]
    original = case_index().get(name)
    model = original.model if original is not None and original.model is not None else case.model
    kinds = dict.fromkeys(n.op_type for n in model.graph.node if n.op_type not in ("Constant", "Cast", "Identity"))
    node = next((n for n in model.graph.node if n.op_type in kinds), model.graph.node[0])
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
