"""`onnxla conformance`: ONNX's own backend tests through onnxla and, beside it, onnxruntime."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onnxla.cli import arguments
from onnxla.cli.output import count, print_json, progress_bar, say, table
from onnxla.cli.outputs import write_output
from onnxla.errors import DeviceError, InputError

if TYPE_CHECKING:
    from onnxla.conformance.suite import Result

Only = Annotated[str, typer.Argument(help="Only tests whose name holds this.")]
Reference = Annotated[bool, typer.Option("--reference/--no-reference", help="Run onnxruntime beside it.")]
TableTo = Annotated[Path | None, typer.Option("--table", help="Write the whole table, as Markdown, to this file.")]


def conformance(
    only: Only = "",
    target: arguments.Target = "cpu",
    reference: Reference = True,
    table_to: TableTo = None,
    as_json: arguments.Json = False,
) -> None:
    """Run ONNX's backend tests and print how many pass, are rejected and fail, by operator.

    With --target gpu they run on the first NVIDIA GPU; without one the command says what is missing.
    """
    from onnxla.conformance.cases import case_index
    from onnxla.conformance.suite import run_suite

    names = sorted(name for name in case_index() if only in name)
    if not names:
        raise InputError(f"no test has {only!r} in its name")
    device = _device(target)
    begin = time.perf_counter()
    results: list[Result] = []
    with progress_bar("conformance") as advance:
        for done, result in enumerate(run_suite(names, device=device, reference=reference), 1):
            results.append(result)
            advance(result.name, done / len(names))
    seconds = time.perf_counter() - begin
    if table_to is not None:
        from onnxla.cli.conformance_table import markdown

        write_output(table_to, markdown(results))
    if as_json:
        print_json([_as_json(r) for r in results])
    else:
        _print(results)
        say(f"{seconds:.0f} s", style="dim")
    if any(r.outcome.status == "fail" for r in results):
        raise typer.Exit(1)


def _device(target: str) -> str:
    """ONNX's name for where a target runs. Raises DeviceError where there is no GPU: no test could run."""
    if target == "cpu":
        return "CPU"
    if target != "gpu":
        raise DeviceError(f"no target {target!r}; there are 'cpu' and 'gpu'")
    from onnxla.runtime.cuda_device import CudaDevice

    CudaDevice()
    return "CUDA"


def _as_json(result: "Result") -> dict[str, object]:
    outcome, reference = result.outcome, result.reference
    return {
        "name": result.name,
        "operator": result.operator,
        "opset": result.opset,
        "status": outcome.status,
        "kind": outcome.kind,
        "message": outcome.message,
        "onnxruntime": None if reference is None else reference.status,
    }


def _print(results: "list[Result]") -> None:
    from onnxla.conformance.suite import by_operator, counts

    rows = [
        (operator, len(group), *counts(r.outcome for r in group), *counts(r.reference for r in group))
        for operator, group in by_operator(results).items()
    ]
    table(("operator", ">tests", ">pass", ">reject", ">fail", ">ORT pass", ">reject", ">fail"), rows)
    passed, rejected, failed = counts(r.outcome for r in results)
    say(f"{count(len(results), 'test')}: {passed} pass, {rejected} are rejected, {failed} fail")
    if any(r.reference for r in results):
        passed, rejected, failed = counts(r.reference for r in results)
        say(f"onnxruntime: {passed} pass, {rejected} are rejected, {failed} fail")
    for result in results:
        if result.outcome.status == "fail":
            say(f"{result.name}: {result.outcome.kind}: {result.outcome.message}", style="red")
