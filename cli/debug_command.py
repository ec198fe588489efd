"""`onnxla debug`: the first node that is wrong, who broke it, and the smallest model that shows it."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onnxla.cli import arguments
from onnxla.cli.argument_groups import Compilation, Sizes
from onnxla.cli.fault_report import findings_document, print_findings, write_case
from onnxla.cli.feeds import feeds_for, read_inputs
from onnxla.cli.models import is_artifact, request
from onnxla.cli.output import print_json, progress_bar, say
from onnxla.cli.outputs import require_distinct
from onnxla.errors import InputError

if TYPE_CHECKING:
    from onnxla.debugging.find_fault import Model
    from onnxla.debugging.trial import Settings

Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the smallest model; by default MODEL-fault."),
]
Seconds = Annotated[
    float,
    typer.Option("--seconds", min=1, callback=arguments.sensible, help="About how long to look for a smaller model."),
]
Bundle = Annotated[
    Path | None,
    typer.Option("--bundle", metavar="FILE.zip", help="Look for nothing; pack a report of the model and this machine."),
]
RandomWeights = Annotated[
    int | None,
    typer.Option("--random-weights", min=0, metavar="SEED", help="In the bundle: random numbers in place of weights."),
]


def debug(
    model: arguments.OnnxModel,
    *,
    input: arguments.Inputs = None,
    out: Out = None,
    seconds: Seconds = 120,
    bundle: Bundle = None,
    random_weights: RandomWeights = None,
    seed: arguments.Seed = 0,
    rtol: arguments.Rtol = None,
    atol: arguments.Atol = None,
    threads: arguments.Threads = None,
    target: arguments.Target = "cpu",
    sizes: Sizes,
    option: arguments.OptionTexts = None,
    as_json: arguments.Json = False,
) -> None:
    """Find the first node whose value differs from onnxruntime's, and the pass or kernel that broke it.

    Writes the smallest model that still shows it, with inputs and the command that shows it again. Ends with 1 where
    a fault of onnxla is found.
    """
    require_distinct(model, bundle)
    if random_weights is not None and bundle is None:
        raise InputError("--random-weights is for --bundle")
    from onnxla.debugging.budget import Budget
    from onnxla.debugging.find_fault import Model, find_fault
    from onnxla.debugging.trial import Settings

    if is_artifact(model):
        raise InputError(f"{model} is compiled; give the ONNX model it was made from")
    wanted = request(model, Compilation(target=target, sizes=sizes, option=option), threads=threads)
    signature = wanted.source().signature(wanted.single_dims, wanted.shapes)
    feeds = feeds_for(signature.inputs, signature.outputs, read_inputs(input), seed, wanted.single_dims)
    run = Model(wanted.onnx, model.parent, feeds.arrays, wanted.constants, model)
    settings = Settings(target, wanted.options, threads, rtol, atol)
    if bundle is not None:
        names = _write_bundle(bundle, run, settings, random_weights)
        print_json({"bundle": str(bundle), "files": names}) if as_json else say(f"{bundle}: {', '.join(names)}")
        return
    with progress_bar(f"debugging {model.name}") as progress:
        findings = find_fault(run, settings, Budget(seconds, progress))
    folder = None
    if findings.fault is not None:
        folder = out if out is not None else Path(f"{model.stem}-fault")
        write_case(folder, findings.fault, _same_again(target, option, rtol, atol, threads))
    if as_json:
        print_json(findings_document(findings, folder, feeds.random))
    else:
        if feeds.random:
            say(f"random inputs (seed {seed}): {', '.join(feeds.random)}", style="dim")
        print_findings(findings, folder)
    if findings.fault is not None:
        raise typer.Exit(1)


def _write_bundle(path: Path, run: "Model", settings: "Settings", seed: int | None) -> list[str]:
    from onnxla.cli.bundle import write_bundle

    shapes = {name: array.shape for name, array in run.feeds.items()}
    with progress_bar(f"packing {path.name}") as progress:
        progress("compiling", 0.0)
        return write_bundle(path, run, settings, shapes, shlex.join(["onnxla", *sys.argv[1:]]), seed)


def _same_again(
    target: str, options: list[str] | None, rtol: float | None, atol: float | None, threads: int | None
) -> list[str]:
    """The arguments that the smallest model needs too: shapes and constants are in it."""
    given = [("--target", target if target != "cpu" else None), ("--rtol", rtol), ("--atol", atol)]
    given += [("--threads", threads), *(("--option", text) for text in options or ())]
    return [str(part) for name, value in given if value is not None for part in (name, value)]
