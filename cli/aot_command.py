"""`onnxla aot`: a model to a library for C and C++."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onnxla.cli import arguments
from onnxla.cli.argument_groups import Compilation, Sizes
from onnxla.cli.models import is_artifact, load_artifact, request, require_programs
from onnxla.cli.output import print_json, say, size
from onnxla.errors import InputError

if TYPE_CHECKING:
    from onnxla.ahead.library import Library

Source = Annotated[Path, typer.Argument(help="An ONNX or TensorFlow model, HLO text, or an artifact (.onnxla).")]
Folder = Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.")]
Name = Annotated[
    str | None, typer.Option("--name", help="What the library and its functions are called; by default as the file.")
]


Triple = Annotated[
    str | None,
    typer.Option("--triple", help="The machine it is for, such as `riscv64-linux-gnu` or `aarch64-linux-gnu`."),
]
Cpu = Annotated[
    str | None,
    typer.Option("--cpu", help="The CPU it is for: `x86-64`, `x86-64-v3`, ...; the knob target_cpu by another name."),
]
_BASELINES = {
    "x86_64": "x86-64",
    "aarch64": "generic-aarch64",
    "arm64": "generic-aarch64",
    "riscv64": "generic-riscv64",
}
"""The least CPU of each architecture."""
_WASM = "wasm32"


def write_ahead(
    model: Source,
    *,
    output: Folder = Path(),
    name: Name = None,
    triple: Triple = None,
    cpu: Cpu = None,
    sizes: Sizes,
    option: arguments.OptionTexts = None,
    as_json: arguments.Json = False,
) -> None:
    """Compile a model to a C library that needs neither Python nor onnxla."""
    from onnxla.ahead.header import library_name
    from onnxla.ahead.library import write_library

    options = [*(option or ()), *target_options(triple, cpu)]
    if is_artifact(model):
        if options:
            raise InputError("an artifact is compiled already: give its model, to compile it for another machine")
        compiled = load_artifact(model, device="cpu")
    else:
        wanted = request(model, Compilation(sizes=sizes, option=options))
        compiled = wanted.compile()
        require_programs(compiled, wanted)
    library = write_library(compiled, output, name if name is not None else library_name(model.resolve().stem))
    if as_json:
        print_json(library)
    else:
        _print_summary(library)


def target_options(triple: str | None, cpu: str | None) -> list[str]:
    """The knob that `--triple` and `--cpu` stand for. Raises InputError for machines that there is no code for."""
    if triple is None:
        return [] if cpu is None else [f"target_cpu={cpu}"]
    architecture = triple.partition("-")[0]
    if architecture == _WASM and cpu is None:
        return [f"target_cpu={_WASM}"]
    if architecture not in _BASELINES or "linux" not in triple:
        known = ", ".join([*(f"{name}-linux-gnu" for name in _BASELINES), f"{_WASM}-unknown-unknown"])
        raise InputError(f"--triple {triple}: libraries are made for {known}")
    if cpu is None or cpu == _BASELINES[architecture]:
        return [f"target_cpu={_BASELINES[architecture]}"]
    if architecture != "x86_64" or not cpu.startswith("x86-64"):
        raise InputError(f"--cpu {cpu}: for {triple} there is {_BASELINES[architecture]}")
    return [f"target_cpu={cpu}"]


def _print_summary(library: "Library") -> None:
    for path in library.files:
        say(f"{path}  {size(path.stat().st_size)}", style="bold")
    say(
        f"  code {size(library.code_bytes)}, weights {size(library.weights_bytes)}, a run takes "
        f"{size(library.arena_bytes)}"
    )
    say(f"  from other libraries: {', '.join(library.undefined)}")
