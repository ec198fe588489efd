"""What `onnxla debug` says and writes of a fault: text for people, a document for scripts, a folder to replay."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxla.cli.comparison_table import print_comparisons
from onnxla.cli.feeds import write_outputs
from onnxla.cli.output import safe, say
from onnxla.cli.outputs import writing_to
from onnxla.debugging.culprit import Blame
from onnxla.version import __version__

if TYPE_CHECKING:
    from onnxla.debugging.find_fault import Finding, Findings


def replay_command(model: str, inputs: str, arguments: Sequence[str]) -> str:
    """The command that shows the fault again, for a shell."""
    return shlex.join(["onnxla", "debug", model, "--input", inputs, *arguments])


def write_case(folder: Path, fault: "Finding", arguments: Sequence[str]) -> None:
    """Write `model.onnx`, `inputs.npz`, `replay.sh` and `README.txt`. Raises InputError where that fails."""
    from onnxla.debugging.model_part import whole_proto

    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(whole_proto(fault.case.model).SerializeToString())
        write_outputs(folder / "inputs.npz", fault.case.feeds)
        script = folder / "replay.sh"
        command = replay_command("model.onnx", "inputs.npz", arguments)
        script.write_text(f'#!/bin/sh\ncd "$(dirname "$0")" && {command}\n')
        script.chmod(0o755)
        (folder / "README.txt").write_text("\n".join([f"Found by onnxla {__version__}.", "", *lines_of(fault), ""]))


def lines_of(finding: "Finding") -> list[str]:
    """A finding in sentences. Names in it are the model's, made harmless."""
    count = len(finding.nodes)
    lines = [
        f"first node that differs: {finding.node}",
        f"broken by: {finding.culprit}",
        *(f"  {detail}" for detail in finding.culprit.details),
    ]
    if finding.culprit.instruction:
        lines.append(f"  {finding.culprit.instruction}")
    if finding.difference is not None:
        lines.append(f"{finding.difference.name}: {finding.difference.cause}, ours against onnxruntime's")
    lines.append(f"smallest model that shows it: {count} {'node' if count == 1 else 'nodes'}")
    lines += [f"  {label}" for label in finding.nodes[:_SHOWN_NODES]]
    if count > _SHOWN_NODES:
        lines.append(f"  and {count - _SHOWN_NODES} more")
    if not finding.in_time:
        lines.append("the time was over before the model was as small as it gets; --seconds gives more")
    return [safe(line) for line in lines]


_SHOWN_NODES = 20


def print_findings(findings: "Findings", folder: Path | None) -> None:
    """All that was found, for people."""
    differing = [c for c in findings.outputs if not c.agrees]
    values = [c for c in findings.values if not c.agrees]
    say(
        f"{len(findings.outputs) - len(differing)} of {len(findings.outputs)} outputs agree with onnxruntime; "
        f"with every value as an output {len(findings.values) - len(values)} of {len(findings.values)} values do",
        style="bold",
    )
    if differing:
        print_comparisons(differing, "outputs that differ")
    for note in findings.notes:
        say(note, style="dim")
    for finding in findings.set_aside:
        say(f"not a fault of onnxla: {finding.culprit}", style="bold")
        for line in lines_of(finding)[2:] if finding.culprit.blame is not Blame.ROUNDING else ():
            say(line, style="dim")
    if findings.fault is None:
        say("no fault of onnxla was found", style="bold green")
        return
    say()
    first, second, *rest = lines_of(findings.fault)
    say(f"{first}\n{second}", style="bold red")
    say("\n".join(rest))
    if folder is not None:
        say(f"written to {folder}{os.sep}: model.onnx, inputs.npz, README.txt; {folder / 'replay.sh'} shows it again")


def findings_document(findings: "Findings", folder: Path | None, random: Sequence[str]) -> dict[str, Any]:
    """All that was found, for scripts."""
    return {
        "fault": None if findings.fault is None else _document(findings.fault),
        "set_aside": [_document(finding) for finding in findings.set_aside],
        "outputs": findings.outputs,
        "values": [c for c in findings.values if not c.agrees],
        "values_compared": len(findings.values),
        "trials": findings.trials,
        "notes": findings.notes,
        "random": random,
        "folder": None if folder is None else str(folder),
    }


def _document(finding: "Finding") -> dict[str, Any]:
    culprit = finding.culprit
    return {
        "node": finding.node,
        "part": culprit.blame.value,
        "name": culprit.name,
        "instruction": culprit.instruction,
        "details": culprit.details,
        "difference": finding.difference,
        "step": culprit.comparison,
        "nodes": finding.nodes,
        "in_time": finding.in_time,
    }
