"""`onnxla aot`: a model to a library for C and C++."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onnxla.cli import arguments
from onnxla.cli.models import is_artifact, request, require_programs
from onnxla.cli.output import print_json, say, size
from onnxla.runtime.model import load_compiled

if TYPE_CHECKING:
    from onnxla.ahead.library import Library

Source = Annotated[Path, typer.Argument(help="An ONNX or TensorFlow model, HLO text, or an artifact (.onnxla).")]
Folder = Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.")]
Name = Annotated[
    str | None, typer.Option("--name", help="What the library and its functions are called; by default as the file.")
]


def write_ahead(
    model: Source,
    output: Folder = Path(),
    name: Name = None,
    shape: arguments.ShapeTexts = None,
    dim: arguments.DimTexts = None,
    constant: arguments.ConstantTexts = None,
    option: arguments.OptionTexts = None,
    as_json: arguments.Json = False,
) -> None:
    """Compile a model to a C library that needs neither Python nor onnxla."""
    from onnxla.ahead.header import c_identifier
    from onnxla.ahead.library import write_library

    if is_artifact(model):
        compiled = load_compiled(model)
    else:
        wanted = request(model, shape, dim, constant, option, None)
        compiled = wanted.compile()
        require_programs(compiled, wanted)
    library = write_library(compiled, output, name or c_identifier(model.resolve().stem))
    if as_json:
        print_json(library)
    else:
        _print_summary(library)


def _print_summary(library: "Library") -> None:
    for path in library.files:
        say(f"{path}  {size(path.stat().st_size)}", style="bold")
    say(
        f"  code {size(library.code_bytes)}, weights {size(library.weights_bytes)}, a run takes "
        f"{size(library.arena_bytes)}"
    )
    say(f"  from other libraries: {', '.join(library.undefined)}")
