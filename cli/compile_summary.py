"""What `onnxla compile` says of a model that it has compiled, here or on a server."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxla
from onnxla.cli.models import clusters_of
from onnxla.cli.output import count, duration, say, signature_line, size
from onnxla.runtime.report import CompileReport
from onnxla.runtime.signature import ModelTensor
from onnxla.serving.jobs.outcome import Outcome


@dataclass(frozen=True)
class Summary:
    """A compiled model in numbers."""

    inputs: Sequence[ModelTensor]
    outputs: Sequence[ModelTensor]
    programs: int
    variables: int
    state_bytes: int
    reports: Sequence[CompileReport]
    clusters: Any = None
    """Of a model with parts in onnxruntime what runs where, for programs; None for others."""
    clusters_text: str = ""

    @property
    def report(self) -> CompileReport | None:
        return self.reports[-1] if self.reports else None

    def document(self, path: Path, written: int) -> dict[str, object]:
        """For `--json`."""
        return {
            "artifact": str(path),
            "artifact_bytes": written,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "programs": self.programs,
            "report": self.report,
            "reports": self.reports,
            **({} if self.clusters is None else {"clusters": self.clusters}),
        }

    def say(self, path: Path, written: int) -> None:
        """Print it."""
        say(f"{path}  {size(written)}", style="bold")
        say(f"  inputs   {signature_line(self.inputs)}")
        say(f"  outputs  {signature_line(self.outputs)}")
        if self.variables:
            say(f"  state    {count(self.variables, 'variable')}, {size(self.state_bytes)}, which runs change")
        if self.programs > 1 and self.clusters is None:
            say(f"  code for {self.programs} sets of shapes; the numbers are of the last")
        if self.clusters is not None:
            say(self.clusters_text)
        for line in () if self.report is None else report_lines(self.report):
            say(f"  {line}")


def summary_of(compiled: onnxla.CompiledModel) -> Summary:
    clusters = clusters_of(compiled)
    return Summary(
        inputs=compiled.get_inputs(),
        outputs=compiled.get_outputs(),
        programs=len(compiled.programs),
        variables=len(compiled.state),
        state_bytes=sum(s.bytes for s in compiled.state.signatures()) if compiled.state else 0,
        reports=compiled.reports,
        clusters=None if clusters is None else clusters.clusters,
        clusters_text="" if clusters is None else str(clusters),
    )


def summary_of_outcome(outcome: Outcome) -> Summary:
    state, clusters = outcome.document["state"], outcome.document["clusters"]
    return Summary(
        inputs=outcome.inputs,
        outputs=outcome.outputs,
        programs=int(outcome.document["programs"]),
        variables=int(state["variables"]),
        state_bytes=int(state["bytes"]),
        reports=outcome.reports,
        clusters=None if clusters is None else clusters["parts"],
        clusters_text="" if clusters is None else str(clusters["text"]),
    )


def report_lines(report: CompileReport) -> list[str]:
    """What compiling did, a line for each idea."""
    stages = ", ".join(f"{stage} {duration(seconds)}" for stage, seconds in report.seconds.items())
    return [
        f"work     {count(report.nodes, 'node')} -> {count(report.instructions, 'instruction')} -> "
        f"{count(report.kernels, 'kernel')}, {count(report.steps, 'step')}",
        f"memory   arena {size(report.arena_bytes)} (all intermediates: {size(report.intermediate_bytes)}), "
        f"weights {size(report.weights_bytes)}, code {size(report.code_bytes)}",
        f"time     {duration(report.total_seconds)}: {stages}" + (" (from the cache)" if report.from_cache else ""),
        *([f"tuning   {report.tuning}"] if report.measured else []),
    ]
