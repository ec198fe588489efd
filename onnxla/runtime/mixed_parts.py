"""How an artifact keeps a model with parts in onnxruntime: its plans, each with stages of native code or of ONNX.

Weights of ONNX parts are sections like those of programs, so that equal ones are stored once; onnxruntime reads them
where they are mapped. What a plan says is checked when it is read: a stage never meets a value that nobody has made.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from onnxla.errors import ArtifactError
from onnxla.runtime.manifest import Json, names_of_json, shape_of_json, signature_json, signature_of_json, typed
from onnxla.runtime.mixed_report import ClusterReport, FallbackReport, Reason
from onnxla.runtime.program import Program
from onnxla.runtime.signature import ModelSignature
from onnxla.runtime.tensors import Array, dtype_of, element_of_dtype

ExpectedType: TypeAlias = tuple[np.dtype[Any], tuple[int, ...]]
"""Element type and shape of a value."""


@dataclass(frozen=True)
class StoredStage:
    """A stage: native code with its signature, or a model for onnxruntime with the weights that are not in it."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    program: int | None
    """Which of the artifact's programs."""
    signature: ModelSignature
    onnx: bytes
    weights: Mapping[str, Array]


@dataclass(frozen=True)
class StoredPlan:
    """The stages for one set of input shapes, as `MixedPlan` has them."""

    stages: tuple[StoredStage, ...]
    shapes: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, Array]
    expected: Mapping[str, ExpectedType]
    weights: Mapping[str, Array]
    report: FallbackReport


@dataclass(frozen=True)
class Codec:
    """How the artifact around it writes and reads what plans are made of."""

    arrays: Callable[[Any], Any]
    """Small arrays by name."""
    weights: Callable[[Any], Any]
    """Large ones, which stay in the file."""
    section: Callable[[Any], Any]


def plan_json(plan: StoredPlan, codec: Codec) -> Json:
    """A plan as JSON; `codec` writes."""
    return {
        "stages": [
            {
                "inputs": list(stage.inputs),
                "outputs": list(stage.outputs),
                "program": stage.program,
                "signature": signature_json(stage.signature),
                "onnx": None if stage.program is not None else codec.section(stage.onnx),
                "weights": codec.weights(stage.weights),
            }
            for stage in plan.stages
        ],
        "shapes": {name: list(shape) for name, shape in plan.shapes.items()},
        "constants": codec.arrays(plan.constants),
        "expected": [[n, element_of_dtype(dtype), list(shape)] for n, (dtype, shape) in sorted(plan.expected.items())],
        "weights": codec.arrays(plan.weights),
        "report": [
            plan.report.model,
            [_cluster_json(cluster) for cluster in plan.report.clusters],
        ],
    }


def plan_of_json(stored: Json, programs: Sequence[Program], signature: ModelSignature, codec: Codec) -> StoredPlan:
    """A plan from what `plan_json` gave; `codec` reads. Raises ArtifactError, or what a wrong type of JSON raises."""
    plan = StoredPlan(
        tuple(
            StoredStage(
                names_of_json(stage["inputs"]),
                names_of_json(stage["outputs"]),
                None if stage["program"] is None else _index(stage["program"], programs),
                signature_of_json(stage["signature"]),
                b"" if stage["onnx"] is None else codec.section(stage["onnx"]),
                codec.weights(stage["weights"]),
            )
            for stage in stored["stages"]
        ),
        {typed(name, str): shape_of_json(shape) for name, shape in stored["shapes"].items()},
        codec.arrays(stored["constants"]),
        {typed(name, str): (dtype_of(element), shape_of_json(shape)) for name, element, shape in stored["expected"]},
        codec.arrays(stored["weights"]),
        _report(stored["report"]),
    )
    _require_complete(plan, programs, signature)
    return plan


def _require_complete(plan: StoredPlan, programs: Sequence[Program], signature: ModelSignature) -> None:
    """Every value is there when a stage reads it, and native code takes what its stage says."""
    inputs = {t.name for t in signature.inputs}
    known = inputs | plan.constants.keys() | plan.weights.keys()
    _require(plan.shapes.keys() <= inputs, "shapes of no inputs")
    for stage in plan.stages:
        _require(known.issuperset(stage.inputs), f"a stage reads {', '.join(sorted({*stage.inputs} - known))}")
        known |= {*stage.outputs}
        if stage.program is not None:
            taken = tuple(t.name for t in programs[stage.program].inputs)
            given = tuple(t.name for t in stage.signature.outputs)
            _require((taken, given) == (stage.inputs, stage.outputs), "a stage that is not its program")
    _require(known.issuperset(t.name for t in signature.outputs), "outputs that no stage makes")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ArtifactError(f"the manifest is malformed: {what}")


def _index(value: Json, programs: Sequence[Program]) -> int:
    _require(type(value) is int and 0 <= value < len(programs), "a stage without its program")
    return int(value)


def _cluster_json(cluster: ClusterReport) -> Json:
    names = (cluster.nodes, cluster.operators, cluster.inputs, cluster.outputs)
    reasons = [[reason.text, bool(reason.problems) or reason.was_told] for reason in cluster.reasons]
    return [cluster.compiled, *map(list, names), reasons]


def _report(stored: Json) -> FallbackReport:
    model, clusters = stored
    found = []
    for compiled, nodes, operators, inputs, outputs, reasons in clusters:
        why = tuple(Reason(typed(text, str), was_told=told is True) for text, told in reasons)
        parts = (names_of_json(nodes), names_of_json(operators), names_of_json(inputs), names_of_json(outputs))
        _require(len(parts[0]) == len(parts[1]) and len(why) in (0, len(parts[0])), "a report without its nodes")
        found.append(ClusterReport(compiled is True, *parts, why, None))
    return FallbackReport(typed(model, str), tuple(found))
