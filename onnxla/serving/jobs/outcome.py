"""What came of a compile, as JSON: made in the child process, kept beside the artifact, read by clients.

Of a success: inputs, outputs, the compiler's reports, and what `explain` says. Of a failure: the error, with all
problems. `compile_and_save.py` makes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from onnxla.error_json import error_of_json
from onnxla.errors import InputError, OnnxlaError
from onnxla.runtime.report import CompileReport, PassReport
from onnxla.runtime.signature import ModelTensor

Json = Any


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


def _report_of_json(row: Mapping[str, Json]) -> CompileReport:
    passes = tuple(PassReport(**p) for p in cast(Sequence[Mapping[str, Json]], row["passes"]))
    return CompileReport(**{**row, "passes": passes})
