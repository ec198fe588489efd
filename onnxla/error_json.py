"""Errors as JSON and back: what ends a compile in another process, or on another machine, is raised here the same."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from onnxla import errors
from onnxla.errors import CompileError, InternalError, OnnxlaError, Problem, SourceNode

Json = Any

_KINDS: dict[str, type[OnnxlaError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, OnnxlaError)
}


def problem_json(problem: Problem) -> dict[str, Json]:
    """A problem for programs; `node` is its text, `source` the same in parts."""
    return {
        "kind": problem.kind.__name__,
        "cause": problem.cause,
        "node": None if problem.node is None else str(problem.node),
        "source": None if problem.node is None else dataclasses.asdict(problem.node),
        "details": [list(row) for row in problem.details],
        "hint": problem.hint,
        "needs_constants": list(problem.needs_constants),
    }


def error_json(error: OnnxlaError) -> dict[str, Json]:
    """An error of any kind, a CompileError with all of its problems."""
    kind = next(kind for kind in type(error).__mro__ if _KINDS.get(kind.__name__) is kind)
    problems = [problem_json(p) for p in error.problems] if isinstance(error, CompileError) else []
    return {"kind": kind.__name__, "message": str(error), "problems": problems}


def error_of_json(document: Json) -> OnnxlaError:
    """The error that `error_json` wrote. What is no such document is an InternalError that says so."""
    try:
        kind, message = _KINDS[_text(document["kind"])], _text(document["message"])
        if issubclass(kind, CompileError):
            return kind([_problem(row) for row in document["problems"]] or message)
        return kind(message)
    except (KeyError, TypeError, ValueError) as error:
        return InternalError(f"an error came in a form that is not known: {error!r}")


def _problem(row: Mapping[str, Json]) -> Problem:
    kind = _KINDS[_text(row["kind"])]
    if not issubclass(kind, CompileError):
        raise ValueError(f"{kind.__name__} is no kind of problem")
    source = row["source"]
    return Problem(
        kind=kind,
        cause=_text(row["cause"]),
        node=None
        if source is None
        else SourceNode(_text(source["name"]), _text(source["op_type"]), int(source["index"]), int(source["opset"])),
        details=tuple((_text(label), _text(text)) for label, text in row["details"]),
        hint=_text(row["hint"]),
        needs_constants=_texts(row["needs_constants"]),
    )


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _texts(values: Sequence[Json]) -> tuple[str, ...]:
    return tuple(map(_text, values))
