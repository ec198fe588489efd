"""`onnxla compile`: a model to an artifact, with a summary."""

from pathlib import Path
from typing import Annotated

import typer

from onnxla import CompiledModel
from onnxla.cli import arguments
from onnxla.cli.models import clusters_of, is_artifact, request, require_programs
from onnxla.cli.output import count, duration, print_json, say, signature_line, size
from onnxla.cli.outputs import require_distinct
from onnxla.errors import InputError
from onnxla.runtime.report import CompileReport

Source = Annotated[
    Path,
    typer.Argument(
        help="An ONNX model, a SavedModel's folder, a GraphDef (.pb, .pbtxt), or HLO: XLA's or StableHLO's text, "
        "bytecode, a function that jax.export has serialized."
    ),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="The file to write; by default model.onnxla.")]
Tune = Annotated[
    float | None,
    typer.Option(
        "--tune",
        min=0,
        metavar="SECONDS",
        help="Measure ways to compute the kernels on this machine, for about so long: `--tune` (30) or `--tune=60`. "
        "The cache folder keeps what was measured.",
    ),
]
TUNE_SECONDS = 30
"""How long `--tune` measures, where it does not say."""


def compile_model(
    model: Source,
    output: Output = None,
    target: Annotated[
        str, typer.Option("--target", help="What to make code for: cpu, gpu, or cpu,gpu for both in one file.")
    ] = "cpu",
    arch: arguments.Architectures = None,
    precision: arguments.Precision = None,
    keep_f32: arguments.KeepF32 = None,
    shape: arguments.ShapeTexts = None,
    dim: arguments.DimTexts = None,
    constant: arguments.ConstantTexts = None,
    option: arguments.OptionTexts = None,
    dump_to: arguments.DumpTo = None,
    fallback: arguments.Fallback = None,
    signature: arguments.Signature = None,
    begin: arguments.From = None,
    end: arguments.To = None,
    tune: Tune = None,
    threads: arguments.Threads = None,
    as_json: arguments.Json = False,
) -> None:
    """Compile a model to native code in one file."""
    if is_artifact(model):
        raise InputError(f"{model} is compiled already")
    path = output if output is not None else Path(f"{model.resolve().stem}.onnxla")
    require_distinct(model, path)
    wanted = request(
        model,
        shape,
        dim,
        constant,
        option if tune is None else [*(option or ()), f"tune_seconds={tune}"],
        dump_to,
        threads=threads,
        target=target,
        signature=signature,
        inputs=begin,
        outputs=end,
        fallback=fallback,
        arch=arch,
        precision=precision,
        keep_f32=keep_f32,
    )
    compiled = wanted.compile()
    require_programs(compiled, wanted)
    wanted.forget_model()  # which would be in memory beside the file that is written
    written = compiled.save(path)
    if as_json:
        print_json(_document(compiled, path, written))
    else:
        _print_summary(compiled, path, written)


def _document(compiled: CompiledModel, path: Path, written: int) -> dict[str, object]:
    return {
        "artifact": str(path),
        "artifact_bytes": written,
        "inputs": compiled.get_inputs(),
        "outputs": compiled.get_outputs(),
        "programs": len(compiled.programs),
        "report": compiled.report,
        "reports": compiled.reports,
        **({} if (clusters := clusters_of(compiled)) is None else {"clusters": clusters.clusters}),
    }


def _print_summary(compiled: CompiledModel, path: Path, written: int) -> None:
    say(f"{path}  {size(written)}", style="bold")
    say(f"  inputs   {signature_line(compiled.get_inputs())}")
    say(f"  outputs  {signature_line(compiled.get_outputs())}")
    if compiled.state:
        total = sum(s.bytes for s in compiled.state.signatures())
        say(f"  state    {count(len(compiled.state), 'variable')}, {size(total)}, which runs change")
    if len(compiled.programs) > 1 and clusters_of(compiled) is None:
        say(f"  code for {len(compiled.programs)} sets of shapes; the numbers are of the last")
    clusters = clusters_of(compiled)
    if clusters is not None:
        say(clusters)
    report = compiled.report
    if report is not None:
        for line in report_lines(report):
            say(f"  {line}")


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
