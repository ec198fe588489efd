"""`onnxla compile`: a model to an artifact, with a summary."""

from pathlib import Path
from typing import Annotated

import typer

from onnxla.cli import arguments
from onnxla.cli.argument_groups import Compilation, Cut, Rounding, Sizes
from onnxla.cli.compile_on_server import compile_on_server
from onnxla.cli.compile_summary import summary_of
from onnxla.cli.models import ARTIFACT_SUFFIX, is_artifact, request, require_programs
from onnxla.cli.output import print_json
from onnxla.cli.outputs import require_distinct
from onnxla.errors import ArtifactError, InputError

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
Server = Annotated[
    str | None, typer.Option("--server", metavar="URL", help="Compile there: `https://compile.example:8000`.")
]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="The server's token for admin calls, in a file.")
]
CaFile = Annotated[
    Path | None, typer.Option("--ca-file", metavar="FILE", help="Certificates (PEM) to trust in place of the system's.")
]
TUNE_SECONDS = 30
"""How long `--tune` measures, where it does not say."""


def compile_model(
    model: Source,
    *,
    output: Output = None,
    target: Annotated[
        str, typer.Option("--target", help="What to make code for: cpu, gpu, or cpu,gpu for both in one file.")
    ] = "cpu",
    arch: arguments.Architectures = None,
    rounding: Rounding,
    sizes: Sizes,
    option: arguments.OptionTexts = None,
    dump_to: arguments.DumpTo = None,
    fallback: arguments.Fallback = None,
    cut: Cut,
    tune: Tune = None,
    threads: arguments.Threads = None,
    server: Server = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: arguments.Json = False,
) -> None:
    """Compile a model to native code in one file, here or on a server (`onnxla serve`) for the CPU of this machine."""
    if is_artifact(model):
        _require_compiled(model)
        raise InputError(f"{model} is compiled already")
    path = output if output is not None else Path(f"{model.resolve().stem}.onnxla")
    require_distinct(model, path)
    knobs = option if tune is None else [*(option or ()), f"tune_seconds={tune}"]
    how = Compilation(target=target, rounding=rounding, sizes=sizes, option=knobs)
    wanted = request(model, how, threads=threads, cut=cut, fallback=fallback, arch=arch, dump_to=dump_to)
    if server is not None:
        summary = compile_on_server(wanted, path, server, token_file, ca_file)
    elif token_file is not None or ca_file is not None:
        raise InputError("--token-file and --ca-file go with --server")
    else:
        compiled = wanted.compile()
        require_programs(compiled, wanted)
        wanted.forget_model()  # which would be in memory beside the file that is written
        compiled.save(path)
        summary = summary_of(compiled)
    written = path.stat().st_size
    if as_json:
        print_json(summary.document(path, written))
    else:
        summary.say(path, written)


def _require_compiled(path: Path) -> None:
    """Raises InputError for a zip file of another kind, ArtifactError for a compiled model that is damaged."""
    from onnxla.runtime.artifact_reading import read_artifact

    try:
        read_artifact(path, verify_weights="off")
    except ArtifactError as error:
        if path.suffix == ARTIFACT_SUFFIX:
            raise
        raise InputError(f"{path} is a zip file, and no model\n  hint   unpack it, and give the model in it") from error
