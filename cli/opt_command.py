"""`onnxla opt`: passes on HLO text, for looking at one pass and for the text tests."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onnxla.cli import arguments
from onnxla.cli.output import print_json, safe, say
from onnxla.cli.outputs import writing_to
from onnxla.config import CompileOptions
from onnxla.errors import InputError
from onnxla.files import write_file

if TYPE_CHECKING:
    from onnxla.hlo.module import Module
    from onnxla.hlo.parser import Weights

File = Annotated[Path | None, typer.Argument(help="A file of HLO text; `-` reads standard input.")]
Passes = Annotated[str, typer.Option("--passes", help="Names of passes, separated by commas, run in this order.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="A file for the module that the passes leave, its weights beside it."),
]
FastMath = Annotated[bool, typer.Option("--fast-math", help="Allow rewrites that change values beyond rounding.")]
List = Annotated[bool, typer.Option("--list", help="Print the names of the passes.")]


def opt(
    file: File = None,
    passes: Passes = "",
    fast_math: FastMath = False,
    list_passes: List = False,
    option: arguments.OptionTexts = None,
    output: Output = None,
    as_json: arguments.Json = False,
) -> None:
    """Run passes on HLO text and print the module they leave. Without --passes the text is only read and printed.

    Constants that the text elides come from the weights beside it, as dumps have them; without any they are zeros.
    """
    if list_passes:
        _print_passes(as_json)
        return
    from onnxla.hlo.printer import print_module

    if file is None:
        raise InputError("give a file of HLO text, or --list")
    texts = [*(option or ()), *(["fast_math=true"] if fast_math else [])]
    module = run_passes(
        read_text(file), passes.split(",") if passes else [], arguments.parse_options(texts), weights_of(file)
    )
    text = print_module(module)
    if output is not None:
        _write(output, text, module)
    elif as_json:
        print_json({"hlo": text})
    else:
        print(safe(text), end="")


def run_passes(text: str, names: Sequence[str], options: CompileOptions, weights: "Weights | None" = None) -> "Module":
    """The module in `text` after the passes; elided constants are zeros without `weights`.

    Raises HloError, InputError.
    """
    from onnxla.hlo.parser import parse_module, zero_weights
    from onnxla.hlo.verifier import verify
    from onnxla.passes.by_name import pass_named
    from onnxla.passes.pipeline import Pipeline

    module = parse_module(text, weights=weights or zero_weights)
    verify(module)
    Pipeline([pass_named(name.strip(), options) for name in names], options).run(module)
    return module


def weights_of(file: Path) -> "Weights | None":
    """The weights beside a file of HLO text, if there are any."""
    from onnxla.hlo.weight_files import weights_beside

    return None if str(file) == "-" else weights_beside(file)


def _write(output: Path, text: str, module: "Module") -> None:
    from onnxla.hlo.weight_files import write_weights

    with writing_to(output):
        write_file(output, text)
        write_weights(output, module)


def read_text(path: Path) -> str:
    """The text of a file, or of standard input for `-`. Raises InputError."""
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as text: {error}") from error


def _print_passes(as_json: bool) -> None:
    from onnxla.passes.by_name import pass_classes

    about = {name: (cls.__doc__ or "").strip().partition("\n")[0] for name, cls in pass_classes().items()}
    if as_json:
        print_json(about)
        return
    for name, text in about.items():
        say(f"{name:<32} {text}")
