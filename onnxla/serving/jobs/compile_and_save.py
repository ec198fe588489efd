"""Compile a model and say what came of it, in the child process: `outcome.py` has the form."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onnxla.api import compile as compile_model
from onnxla.error_json import error_json, problem_json
from onnxla.errors import CompileError, InputError, OnnxlaError, raise_problems
from onnxla.frontends.explain import explain
from onnxla.frontends.model_report import ModelReport
from onnxla.runtime.mixed_model import MixedModel
from onnxla.runtime.model import CompiledModel
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
        "clusters": None if clusters is None else {"text": str(clusters), "parts": _plain(clusters.clusters)},
    }


def _plain(parts: tuple[Any, ...]) -> Json:
    return json.loads(json.dumps([dataclasses.asdict(part) for part in parts], default=str))


def _text(compiled: CompiledModel, explained: ModelReport) -> str:
    return "\n".join([str(explained), *map(str, compiled.reports)])
