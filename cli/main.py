"""The command `onnxla`: its commands, its exit codes, and the one place that prints errors.

    0  all is well
    1  results differ, or a fault is found (validate, debug, replay, bench, conformance)
    2  wrong usage: arguments, names, files that cannot be read or written or are no models, inputs that do not fit
    3  the model cannot be compiled: the message lists every reason
    4  the compiled file is damaged, foreign, or for another machine
    5  a documented limit was met
    6  a device, or the compiler for it, is missing
    7  a server cannot be reached, or fails
    70 a fault of onnxla itself
    130 interrupted

The table holds for every command. An error is printed without a traceback; ONNXLA_DEBUG=1 shows it.
"""

import os
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from onnxla.cli import interrupt
from onnxla.cli.aot_command import write_ahead
from onnxla.cli.argument_groups import flat
from onnxla.cli.bench_command import bench
from onnxla.cli.cache_command import cache
from onnxla.cli.compile_command import TUNE_SECONDS, compile_model
from onnxla.cli.conformance_command import conformance
from onnxla.cli.debug_command import debug
from onnxla.cli.doctor_command import doctor
from onnxla.cli.explain_command import explain
from onnxla.cli.inspect_command import inspect
from onnxla.cli.ops_command import ops
from onnxla.cli.opt_command import opt
from onnxla.cli.output import error_console, forget_names, print_json, safe
from onnxla.cli.profile_command import profile
from onnxla.cli.replay_command import replay
from onnxla.cli.run_command import run
from onnxla.cli.serve_command import serve
from onnxla.cli.validate_command import validate
from onnxla.errors import (
    ArtifactError,
    CompileError,
    DeviceError,
    FileError,
    HloError,
    InputError,
    ModelFormatError,
    OnnxlaError,
    ResourceLimitError,
    ServiceError,
)
from onnxla.version import __version__

EXIT_CODES: dict[type[BaseException], int] = {
    FileError: 2,
    InputError: 2,
    ModelFormatError: 2,
    HloError: 2,
    CompileError: 3,
    ArtifactError: 4,
    ResourceLimitError: 5,
    DeviceError: 6,
    ServiceError: 7,
    KeyboardInterrupt: interrupt.EXIT_CODE,
}
"""By kind of error, the first that fits; anything else is 70, a fault of ours. Click itself ends with 2."""
_OURS = 70

app = typer.Typer(
    name="onnxla",
    help="Compile ONNX models to native code, run it, and look inside.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 well, 1 results differ, 2 usage or input, 3 the model cannot be compiled, 4 artifact, "
    "5 limit, 6 device, 7 server, 70 internal error.",
)
for name, command in (
    ("compile", compile_model),
    ("run", run),
    ("validate", validate),
    ("bench", bench),
    ("aot", write_ahead),
    ("inspect", inspect),
    ("profile", profile),
    ("explain", explain),
    ("ops", ops),
    ("conformance", conformance),
    ("debug", debug),
    ("serve", serve),
    ("opt", opt),
    ("replay", replay),
    ("doctor", doctor),
):
    app.command(name)(flat(command))
app.add_typer(cache, name="cache")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"onnxla {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Compile ONNX models to native code, run it, and look inside."""
    forget_names()


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command in this process; returns its exit code."""
    try:
        _require_texts(arguments)
        app(args=[f"--tune={TUNE_SECONDS}" if text == "--tune" else text for text in arguments], prog_name="onnxla")
    except SystemExit as ending:
        if ending.code == EXIT_CODES[KeyboardInterrupt]:  # typer has made this of it
            _print_error(KeyboardInterrupt(), as_json="--json" in arguments)
        return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except (Exception, KeyboardInterrupt) as found:
        error = KeyboardInterrupt() if interrupt.was_interrupted(found) else found
        _print_error(error, as_json="--json" in arguments)
        return exit_code(error)
    return 0


def _require_texts(arguments: Sequence[str]) -> None:
    """Raise InputError for an empty argument: a path or a name that somebody's variable does not have."""
    for before, text in zip(("onnxla", *arguments), arguments, strict=False):
        if not text:
            raise InputError(f"an argument is empty, behind {before}")
        if text.startswith("--") and text.find("=") == len(text) - 1:
            raise InputError(f"{text} has nothing behind it")


def exit_code(error: BaseException) -> int:
    """The exit code for an error that ended a command."""
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), _OURS)


def _print_error(error: BaseException, as_json: bool) -> None:
    """The error printer: kind and message; a traceback only when asked for, or when the fault is ours."""
    kind, text = type(error).__name__, str(error) or "no further text"
    if isinstance(error, KeyboardInterrupt):
        text = "stopped from the keyboard"
    if as_json:
        problems = [str(p) for p in error.problems] if isinstance(error, CompileError) else []
        print_json({"error": {"kind": kind, "message": text, "problems": problems}, "exit_code": exit_code(error)})
    console = error_console()
    console.print(f"{kind}:", style="bold red", end=" ")
    console.print(safe(text))
    debugging = os.environ.get("ONNXLA_DEBUG", "") not in ("", "0")
    if debugging:
        console.print(safe("".join(traceback.format_exception(error)).rstrip()), style="dim")
    elif not isinstance(error, (OnnxlaError, KeyboardInterrupt)):
        console.print("this is a fault of onnxla; ONNXLA_DEBUG=1 shows where", style="dim")
