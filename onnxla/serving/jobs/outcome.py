"""What came of a compile, as JSON: made in the child process, kept beside the artifact, read by clients.

Of a success: inputs, outputs, the compiler's reports, and what `explain` says. Of a failure: the error, with all
problems.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from onnxla.api import compile as compile_model
from onnxla.error_json import error_json, error_of_json, problem_json
from onnxla.errors import CompileError, InputError, OnnxlaError, raise_problems
from onnxla.frontends.explain import explain
from onnxla.frontends.model_report import ModelReport
from onnxla.runtime.mixed_model import MixedModel
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.report import CompileReport, PassReport
from onnxla.runtime.signature import ModelTensor
from onnxla.serving.jobs.request import CompileRequest

Json = Any


def compile_and_save(
    source: Path,
    wanted: CompileRequest,
    artifact: Path,
    progress: Callable[[str, float], None],
    knobs: Mapping[str, Json],
) -> dict[str, Json]:
    """Compile the model in a file or folder, and write the artifact where that succeeds. `knobs` are those of
    `CompileOptions` that are no client's to choose.

    Raises what `onnxla.compile` raises for what is no model, wrong arguments, limits and devices; a model that cannot
    be compiled, whatever its problems, has an outcome that says so.
    """
    try:
        compiled = compile_model(source, **wanted.arguments(**knobs), progress=progress)
        explained = explain(source, **wanted.explain_arguments())
        require_code(compiled, lambda: explained)
    except CompileError as error:
        return {"error": error_json(error)} | _explained_if_possible(source, wanted)
    compiled.save(artifact)
    return _success(compiled) | {"explain": explain_json(explained), "text": _text(compiled, explained)}


def explain_json(report: ModelReport) -> dict[str, Json]:
    """What `explain` says of a model, problems and all."""
    return {
        "model": report.name,
        "compiles": report.compiles,
        **report.facts(),
        "operators": dict(report.operators),
        "inputs": [str(spec) for spec in report.signature.inputs],
        "outputs": [str(spec) for spec in report.signature.outputs],
        "problems": [problem_json(p) for p in report.problems],
    }


@dataclass(frozen=True)
class Outcome:
    """An outcome, checked: it comes from a process, or a store, that may be damaged."""

    document: Mapping[str, Json]

    def __post_init__(self) -> None:
        """Raises InputError for what is no outcome."""
        try:
            if self.error is None:
                _ = self.inputs, self.outputs, self.reports, int(self.document["programs"]), self.text
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"this is not what comes of a compile: {error!r}") from error

    @property
    def error(self) -> OnnxlaError | None:
        """Why there is no artifact, as the compiler raised it; None where there is one."""
        return error_of_json(self.document["error"]) if "error" in self.document else None

    @property
    def inputs(self) -> list[ModelTensor]:
        return [ModelTensor(str(n), str(t), shape) for n, t, shape in self.document["inputs"]]

    @property
    def outputs(self) -> list[ModelTensor]:
        return [ModelTensor(str(n), str(t), shape) for n, t, shape in self.document["outputs"]]

    @property
    def reports(self) -> list[CompileReport]:
        """One for each set of shapes."""
        return [_report_of_json(row) for row in self.document["reports"]]

    @property
    def text(self) -> str:
        """The report for people."""
        return str(self.document.get("text", ""))


def require_code(compiled: CompiledModel, explained: Callable[[], ModelReport]) -> None:
    """Raise for a model whose code must wait for the arrays of a run: what is kept is code."""
    if isinstance(compiled, MixedModel) and compiled.clusters is not None:
        return
    if not compiled.programs:
        raise_problems(explained().problems)
        raise InputError("the values of inputs decide shapes: give them as constants")


def _explained_if_possible(source: Path, wanted: CompileRequest) -> dict[str, Json]:
    """The report of a model that does not compile; nothing where not even that can be made."""
    try:
        explained = explain(source, **wanted.explain_arguments())
    except OnnxlaError:
        return {}
    return {"explain": explain_json(explained), "text": str(explained)}


def _success(compiled: CompiledModel) -> dict[str, Json]:
    clusters = compiled.clusters if isinstance(compiled, MixedModel) else None
    variables = compiled.state.signatures() if compiled.state else ()
    return {
        "inputs": [[t.name, t.type, t.shape] for t in compiled.get_inputs()],
        "outputs": [[t.name, t.type, t.shape] for t in compiled.get_outputs()],
        "programs": len(compiled.programs),
        "state": {"variables": len(variables), "bytes": sum(s.bytes for s in variables)},
        "reports": [dataclasses.asdict(report) for report in compiled.reports],
        "clusters": None if clusters is None else str(clusters),
    }


def _text(compiled: CompiledModel, explained: ModelReport) -> str:
    return "\n".join([str(explained), *map(str, compiled.reports)])


def _report_of_json(row: Mapping[str, Json]) -> CompileReport:
    passes = tuple(PassReport(**p) for p in cast(Sequence[Mapping[str, Json]], row["passes"]))
    return CompileReport(**{**row, "passes": passes})
