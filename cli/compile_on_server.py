"""`onnxla compile --server`: the model goes to a server, the artifact comes back; all else is as it is here."""

from dataclasses import fields
from pathlib import Path

from onnxla.cli.compile_summary import Summary, summary_of_outcome
from onnxla.cli.feeds import require_sizes
from onnxla.cli.models import Request
from onnxla.cli.output import progress_bar
from onnxla.config import CompileOptions
from onnxla.errors import InputError, UnboundDimensionsError
from onnxla.files import read_file
from onnxla.serving.jobs.request import OF_SERVERS
from onnxla.watch import Watch


def compile_on_server(wanted: Request, path: Path, url: str, token_file: Path | None, ca_file: Path | None) -> Summary:
    """Compile there, for the CPU of this machine where none is named, and write the artifact to `path`.

    Raises what a compile here raises; ServiceError where the server cannot be reached, or fails.
    """
    from onnxla.client import CompileServer

    if wanted.options.dump_to is not None:
        raise InputError("--dump-to is for compiles on this machine: leave it out with --server")
    if wanted.options.tune_seconds:
        raise InputError("--tune measures on this machine: leave it out with --server")
    server = CompileServer(url, token=None if token_file is None else _token(token_file), ca_file=ca_file)
    wanted.require_names()
    wanted.read()
    wanted.forget_model()
    watch = Watch(None, wanted.options.compile_timeout)
    with progress_bar(f"compiling {wanted.path.name} on {url}") as bar:

        def tell(stage: str, part: float) -> None:
            watch.check()
            bar(stage, part)

        try:
            outcome = server.compile(
                wanted.path,
                path,
                progress=tell,
                target=wanted.target,
                shapes=wanted.shapes,
                dims=wanted.dims,
                constants=wanted.constants,
                options=_changed(wanted.options),
                num_threads=wanted.threads,
                fallback=wanted.fallback,
                **wanted.cut.arguments(),
            )
        except UnboundDimensionsError:
            require_sizes(wanted.source().signature({}, wanted.shapes).inputs, wanted.single_dims)
            raise
    return summary_of_outcome(outcome)


def _changed(options: CompileOptions) -> dict[str, object]:
    """The knobs that are not as they are by default, but those that are every machine's own."""
    return {
        knob.name: getattr(options, knob.name)
        for knob in fields(options)
        if knob.name not in OF_SERVERS and getattr(options, knob.name) != knob.default
    }


def _token(path: Path) -> str:
    """The first line of a file. Raises InputError."""
    try:
        lines = [line for line in read_file(path).decode().splitlines() if line and not line.startswith("#")]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if not lines or not lines[0].strip().isascii():
        raise InputError(f"{path} has no token in it")
    return lines[0].strip()
