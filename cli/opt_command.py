"""`onnxla opt`: passes on HLO text, for looking at one pass and for the text tests."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from onnxla.cli import arguments
from onnxla.cli.output import print_json, safe, say
from onnxla.config import CompileOptions
from onnxla.errors import InputError

File = Annotated[Path | None, typer.Argument(help="A file of HLO text; `-` reads standard input.")]
Passes = Annotated[str, typer.Option("--passes", help="Names of passes, separated by commas, run in this order.")]
FastMath = Annotated[bool, typer.Option("--fast-math", help="Allow rewrites that change values beyond rounding.")]
List = Annotated[bool, typer.Option("--list", help="Print the names of the passes.")]


def opt(
    file: File = None,
    passes: Passes = "",
    fast_math: FastMath = False,
    list_passes: List = False,
    option: arguments.OptionTexts = None,
    as_json: arguments.Json = False,
) -> None:
    """Run passes on HLO text and print the module they leave. Without --passes the text is only read and printed."""
    if list_passes:
        _print_passes(as_json)
        return
    if file is None:
        raise InputError("give a file of HLO text, or --list")
    texts = [*(option or ()), *(["fast_math=true"] if fast_math else [])]
    text = run_passes(read_text(file), passes.split(",") if passes else [], arguments.parse_options(texts))
    print_json({"hlo": text}) if as_json else print(safe(text), end="")


def run_passes(text: str, names: Sequence[str], options: CompileOptions) -> str:
    """The module in `text` after the passes. Elided constants are zeros. Raises HloError, InputError."""
    from onnxla.hlo.parser import parse_module, zero_weights
    from onnxla.hlo.printer import print_module
    from onnxla.hlo.verifier import verify
    from onnxla.passes.by_name import pass_named
    from onnxla.passes.pipeline import Pipeline

    module = parse_module(text, weights=zero_weights)
    verify(module)
    Pipeline([pass_named(name.strip(), options) for name in names], options).run(module)
    return print_module(module)


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
